"""Elastic solids by one prefactored system (after Kugelstadt et al. 2021).

Backward Euler with rotations R held fast over a step dt needs the solution of

    (M + dt^2 (A + B)) dv = dt f(x + dt v),                                                          (Eq. 25)

where A, the stretching and zero-energy terms, is constant and the same for x, y and z, while B, the volume term,
changes with R and couples them. The paper splits: it solves with A by a Cholesky factorisation made once (Eq. 29), and
then with B by conjugate gradients (Eq. 30). But the two solves then pull in turn, each against inertia alone: at rest
they hold each other in a state that is no equilibrium of A + B. Measured on a clamped block with dt such that dt^2 A is
40 times M, it sags 12 % off, in the limit of long steps 24 %; and for a negative Poisson ratio M + dt^2 B is indefinite
and the step explodes.

So here the whole force stands on the right, and on the left, in place of A + B, a constant matrix that is no smaller:
as |tr(R^T F)|^2 <= 3 |F|^2,

    B <= 3 lambda / (2 mu) A,   and   (M + dt^2 c A) dv = dt f(x + dt v),   c = 1 + 3 lambda / (2 mu),

takes one solve with one factor. It is stable for every step and stiffness (each mode has a factor
s = k / (1 + c a) between 0 and 1, with the eigenvalues of the step on the circle |z|^2 = 1 - s), its equilibria are
those of the true forces, and its cost does not depend on stiffness, step or Poisson ratio. The price is that motions
which are fast compared with dt are slowed a little more than backward Euler slows them, as if dt were sqrt(c) longer.
As A takes rotations for stretching (in the paper's method too), the bending of slender bodies is among them: what must
vibrate true wants a shorter `dt_elastic`, or `iterations`, which find the rotations anew. `volume="cg"` is the paper's
own splitting, for comparison.
"""

import dataclasses
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import taichi as ti

from pliant.core.backend import SHARE_OF_MEMORY, vec3
from pliant.core.console import console
from pliant.core.fields import Field, gather, scatter_vectors
from pliant.core.memory import available_memory
from pliant.core.options import param
from pliant.core.world import World
from pliant.errors import PliantError
from pliant.solvers.elasticity.base import SAME, Elasticity, ElasticityOptions
from pliant.solvers.elasticity.body import HELD, Law, add_impulse
from pliant.solvers.elasticity.compliance import Compliance
from pliant.solvers.elasticity.rest import Rest, congruent, stiffness
from pliant.solvers.linear.cg import ConjugateGradient
from pliant.solvers.linear.cholesky import Factor, factorise
from pliant.solvers.linear.iterative import Iterative
from pliant.solvers.stage import SolveResult

LEAST_SHARE = 0.01  # of its own inverse density is what a particle keeps, however much moves along with it
CG_TOLERANCE, CG_ITERATIONS = 1e-4, 500
LARGE = 20_000  # particles: what is factorised above this is announced


class Split(ElasticityOptions):
    """Elastic solids by one factorisation, after Kugelstadt et al. 2021."""

    iterations: int = param(
        1, "solves in a step; more come closer to backward Euler, which helps nearly incompressible bodies (poisson "
        "above 0.45) to move as fast as they should", kind="integer", low=1, high=100,
    )  # fmt: skip
    volume: str = param(
        "bounded", "how the volume term is taken along: bounded puts an upper bound of it into the factorised matrix "
        "(one solve, exact equilibria); cg solves for it apart as in the paper, Eq. 30", choices=("bounded", "cg"),
    )  # fmt: skip
    solver: str = param(
        "auto", "direct factorises the matrix once; iterative solves it by conjugate gradients each step, in little "
        "memory; auto is direct where there is memory for it", choices=("auto", "direct", "iterative"),
    )  # fmt: skip
    control: str = param(
        "implicit", "zero-energy modes: implicit holds them with the factorised matrix (Kugelstadt 2021, Section 4); "
        "explicit by the forces of Ganzenmüller 2015, as far as they are stable", choices=("implicit", "explicit"),
    )  # fmt: skip

    @property
    def explicit_control(self) -> bool:
        return self.control == "explicit"


def factor_bytes(n: int) -> float:
    """Memory that the factorisation of a compact body of n particles takes at its peak, measured from 16k to 250k."""
    return 11e9 * (n / 250_000) ** 1.4


def bound(law: Law) -> float:
    """c: how much stiffer than stretching alone stretching and volume together can be."""
    return 1.0 + 1.5 * max(law.lame_lambda[3] / law.shear, 0.0)


@dataclasses.dataclass
class Share:
    """Bodies that have one matrix: the same shape wherever it is, stiffness, masses and free particles."""

    rest: Rest
    law: Law
    mass: np.ndarray
    free: np.ndarray
    starts: list[int]

    def admits(self, other: "Share", tolerance: float) -> bool:
        pairs = (self.mass, other.mass), (self.free, other.free), (self.rest.i, other.rest.i)
        alike = all(np.array_equal(mine, theirs) for mine, theirs in pairs)
        return self.law == other.law and alike and congruent(self.rest.X, other.rest.X, tolerance)

    def matrix(self, dt: float, c: float, zero_energy: bool) -> sp.csr_matrix:
        """M + dt^2 (c times stretching + zero-energy), for the free particles."""
        weight = np.full(self.rest.n, HELD)
        weight[self.free] = 1.0
        K = stiffness(self.rest, 2 * self.law.shear * c, zero_energy * self.law.zero_energy * self.law.shear, weight)
        return (sp.diags(self.mass) + dt**2 * K).tocsr()[self.free][:, self.free]


class SplitSolver(Elasticity):
    """One factor for all bodies that can share it. They are made in a thread of their own; a step waits for them."""

    options = Split
    volume = "bounded"

    @classmethod
    def wanted(cls, materials: Sequence[Any], settings: Any) -> bool:
        return super().wanted(materials, settings) and settings.elasticity.volume == cls.volume

    def __init__(self, world: World, settings: Any):
        self.threads = ThreadPoolExecutor(1, thread_name_prefix="factorisation")
        self.solvers: list[Any] = []
        self._coming: Future | None = None
        self._members: list[list[int]] | None = None  # of the compliance that is to be
        super().__init__(world, settings)

    def _take_bodies(self) -> None:
        self.solvers, self._keeping = [], True  # another of the same shape may come
        super()._take_bodies()
        self._keeping = False

    def refresh(self) -> None:
        super().refresh()
        self._members = None
        if self.solvers:
            console.print("Stiffness or held particles have changed: factorising anew.")
        if self.solids:
            self._coming = self.threads.submit(self._factors, self._shares(), self._keeping)

    def save(self) -> dict[str, Any]:
        members = self._members if self.compliance is None else self.compliance.members
        return {} if members is None else {"condensed": members}

    def restore(self, state: dict[str, Any]) -> None:
        self._members = state.get("condensed")
        if self.compliance is not None and self._members is not None:
            self.compliance.take(self._members)

    def _shares(self) -> list[Share]:
        starts, mass = self.bodies.starts.tolist(), self.bodies.read("m").astype(float)
        found: list[Share] = []
        for rest, law, a, b in zip(self.rests, self.laws, starts[:-1], starts[1:], strict=True):
            mine = Share(rest, law, mass[a:b], np.flatnonzero(self.free[a:b]), [a])
            twin = next((s for s in found if s.admits(mine, SAME * self.world.spacing)), None)
            if twin:
                twin.starts.append(a)
            else:
                found.append(mine)
        return found

    def _factors(self, shares: list[Share], keeping: bool) -> list[tuple[Factor | Iterative, Share]]:
        """What solves for each share: what was made for an equal one before, or a new one. What none of them needs is
        forgotten, unless `keeping`."""
        known, implicit = self.world.cache.get("factors", []), not self.settings.explicit_control
        todo, factors = [], []
        for share in shares:
            c = bound(share.law) if self.volume == "bounded" else 1.0
            asked = self.dt * self.settings.implicitness**0.5, c, implicit, self.settings.solver
            factor = next((f for a, s, f in known if a == asked and s.admits(share, SAME * self.world.spacing)), None)
            todo.append((asked, share, factor))
        known = self.world.cache["factors"] = list(known) if keeping else [one for one in todo if one[2] is not None]
        for asked, share, factor in todo:
            if factor is None:
                factor = self._factor(share, share.matrix(*asked[:3]))
                known.append((asked, share, factor))
            factors.append((factor, share))
        return factors

    def _factor(self, share: Share, matrix: sp.csr_matrix) -> Factor | Iterative:
        n = len(share.free)
        if not self._is_direct(n):
            return Iterative(matrix)
        if n > LARGE:
            console.print(f"Factorising the matrix of {n:,} elastic particles ...")
        factor = factorise(matrix, share.rest.X[share.free])
        if n > LARGE:
            console.print(f"  {factor.seconds:.1f} s, {factor.bytes / 2**20:.0f} MiB, {factor.method}")
        return factor

    def _is_direct(self, n: int) -> bool:
        """Whether to factorise the matrix of n particles."""
        if self.settings.solver != "auto":
            return self.settings.solver == "direct"
        needed, free = factor_bytes(n), SHARE_OF_MEMORY * available_memory()
        if needed > free:
            console.print(f"To factorise the matrix of {n:,} elastic particles takes about {needed / 2**30:.3g} GiB, "
                          f"and {free / 2**30:.3g} GiB may be used: it is solved by conjugate gradients instead, in "
                          "little memory, but slower the stiffer the body.")  # fmt: skip
        return needed <= free

    def factors(self) -> list[Factor | Iterative]:
        """What the matrices are solved with, once they are there; empty after the first step has taken them over."""
        return [factor for factor, _ in self._coming.result()] if self._coming is not None else []

    @property
    def ready(self) -> bool:
        """Whether the next step need not wait for a factorisation."""
        return self._coming is None or self._coming.done()

    def find_effective_densities(self) -> None:
        """Waits for the factors."""
        assert self._coming is not None
        pairs, self._coming = self._coming.result(), None
        self.solvers = [f.bind(np.array([start + share.free for start in share.starts])) for f, share in pairs]
        if all(isinstance(factor, Factor) for factor, _ in pairs):
            self.compliance = Compliance(pairs, self.momenta, self.bodies, self.world.spacing)
            if self._members is not None:
                self.compliance.take(self._members)
        self._members = None
        super().find_effective_densities()
        own = self.bodies.read("inverse_density") * np.clip(self._shares_of_motion(), LEAST_SHARE, 1.0)
        self.bodies.write("effective_inverse_density", own)

    def _shares_of_motion(self) -> np.ndarray:
        """How much of an impulse stays with a particle of the surface when its whole face is pushed, and the rest moves
        what lies behind: solves for pushes on the faces that look along each axis, both ways, and takes for each
        particle those that its normal is made of."""
        bodies = self.bodies
        normal = np.concatenate([rest.normals for rest in self.rests])
        mass = bodies.read("m")
        share = np.where(normal.any(axis=1), 0.0, 1.0)
        for sign in (1.0, -1.0):
            facing = np.maximum(sign * normal, 0.0)
            bodies.force.from_numpy((mass[:, None] * facing).astype(np.float32))
            bodies.dv.fill(0.0)
            for solver in self.solvers:
                solver.solve(bodies.force, bodies.dv)
            share += np.einsum("na,na->n", facing, bodies.dv.to_numpy())
        return share

    def solve(self) -> None:
        bodies, condensed = self.bodies, self.contact.condensed
        for k in range(self.settings.iterations):
            bodies.find_forces(self.dt, volume=self.volume == "bounded")
            add_impulse(bodies.n, bodies.mass, bodies.dv_external, bodies.dv, bodies.force)
            self.momenta.part(bodies.force)
            if k == 0 and condensed is not None and self.momenta.bodies:
                condensed.find_response(self.world.particles)  # which contact needs to know, too
            else:
                self.find_response()
            bodies.accept(self.settings.implicitness * self.dt)

    def find_response(self) -> int:
        for solver in self.solvers:
            solver.solve(self.bodies.force, self.bodies.correction)
        return 1


class PaperSolver(SplitSolver):
    """Algorithm 1 of Kugelstadt 2021 to the letter: stretching by the factor, then volume by conjugate gradients."""

    volume = "cg"
    fields: ClassVar[tuple[Field, ...]] = (
        *SplitSolver.fields,
        Field("volume_dv", "vector", "m/s", "change of velocity by the volume term, the next guess", carried=True),
    )

    def _take_bodies(self) -> None:
        super()._take_bodies()
        self.cg = ConjugateGradient(CG_TOLERANCE, CG_ITERATIONS)
        if self.solids:
            self.residual, self.direction, self.image, self.z = (ti.ndarray(vec3, self.bodies.n) for _ in range(4))

    def refresh(self) -> None:
        for b in self.solids:
            if self._material(b).poisson < 0:
                raise PliantError(f"{self.world.bodies[b].name}: Split(volume='cg') needs poisson of at least 0, for "
                                  "the volume term alone is unstable below; use volume='bounded'")  # fmt: skip
        super().refresh()

    def solve(self) -> None:
        super().solve()
        bodies, p, dt = self.bodies, self.world.particles, self.dt
        bodies.find_forces(dt)  # for F and R at the new positions
        bodies.press()
        bodies.resist(bodies.none, bodies.dv, -dt, self.residual)
        gather("vector", bodies.n, bodies.place, [(p.volume_dv, bodies.correction)])
        implicit = dt * self.settings.implicitness**0.5
        iterations = bodies.iterate(self.cg, implicit, bodies.none, self.residual, self.direction, self.image, self.z)
        scatter_vectors(bodies.n, bodies.place, bodies.correction, p.volume_dv)
        bodies.accept(self.settings.implicitness * dt)
        self.results["volume"] = SolveResult(iterations)
