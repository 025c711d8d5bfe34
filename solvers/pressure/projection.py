"""What the incompressible solvers share: the pressure system of a step, and when it is solved well enough.

Sweeps over it (`iteration`) end when the mean compression is below the tolerance and the two-sided error, which also
counts matter that pressure pushes apart, is below twice of it: otherwise pressure left over from the guess would add
energy. Pressures of the last step, carried by the particles, are the first guess. Where there is sand, the mean strain
that friction still has to remove must be below the tolerance as well.

Velocities of liquids are solved for to more than that. What their own bending adds to the divergence in a step,
dt^2 |tr((grad v)^2)|, is small of second order, and just what pressure is there to undo, beside weight: an error of
SHARE of it, or of REST_SHARE of what gravity would add, is one of a few percent of the pressure. Here only that counts
which neighbors have in common, the mean over eight of them. What is different from one particle to the next K hardly
sees (it is made of central differences, for which a checkerboard is flat): to remove it takes most of the sweeps, and
pressures that jump from particle to particle.
"""

from typing import Any, ClassVar

import numpy as np
import taichi as ti

from pliant.boundary import images
from pliant.boundary.images import Images
from pliant.core.backend import upload
from pliant.core.fields import Field
from pliant.core.options import param, positive
from pliant.core.reduce import BLOCKS
from pliant.core.world import Coupling, World
from pliant.solvers.granular import friction
from pliant.solvers.granular.friction import Friction
from pliant.solvers.pressure import correction, free, sweeps, system
from pliant.solvers.pressure.base import PressureOptions, PressureSolver
from pliant.solvers.pressure.free import FreeGroups
from pliant.solvers.pressure.iteration import BoundSweeps, FreeSweeps, FrictionSweeps, Sweeps
from pliant.solvers.stage import SolveResult

SHARE = 0.03  # of what the flow adds to its divergence in a step that may be left
REST_SHARE = 0.01  # and of what gravity would add
RESOLVED = 0.33  # of the time in which sqrt(p / rho) passes a spacing: the longest step (0.7 of it boils, measured)
NOISE = 1e-6  # what single precision leaves
LONELY = 1e-2  # particles with a diagonal below this share of a full neighborhood's have nothing to push against


class ProjectionOptions(PressureOptions):
    """Settings of every incompressible solver."""

    solves_friction: ClassVar[bool] = True
    couples: ClassVar[bool] = True

    max_density_error: float = positive(1e-3, "mean density error at which the iteration ends", "1", high=0.1,
                                        source="Bender and Koschier 2017 use 0.01 % to 0.1 %")  # fmt: skip
    min_iterations: int = param(2, "least iterations of the solve for velocities", kind="integer", low=0, high=1000)
    max_iterations: int = param(100, "bound on the iterations of each solve", kind="integer", low=1, high=100_000)

    @staticmethod
    def fields(materials: Any) -> tuple[Field, ...]:
        return (
            *system.FIELDS,
            *correction.FIELDS,
            *images.FIELDS,
            *(friction.FIELDS if any(m.has_yield_stress for m in materials) else ()),
            Field("p", "real", "Pa", "pressure", carried=True),
            Field("shift", "vector", "m", "displacement that removes compression, beside dt v"),
            *free.FIELDS,
        )


class Projection(PressureSolver):
    """Solves by projected sweeps. `solve_velocities` finds pressures, stresses of sand and velocities."""

    def __init__(self, options: ProjectionOptions, world: World):
        self.options, self.world = options, world
        self.partial = ti.ndarray(ti.f32, (BLOCKS, friction.SUMS))
        self.sums = np.zeros(friction.SUMS, np.float32)  # of NumPy, so that the host reads them at no cost
        self.done = np.zeros(2, np.int32)  # sweeps, and why they ended
        self.least = LONELY * self._full_diagonal()
        self.friction = Friction(world) if "stress" in world.particles.schema else None
        self.solves_friction = self.friction is not None
        self.free = FreeGroups(world, self.solves_friction)
        self.couplings: list[Coupling] = []  # that have a say in this step
        # Sand has sweeps of its own, with gradients and walls as they are for all that is no liquid.
        liquid = np.array([float(m.liquid) for m in world.materials])
        self.has_liquid, self._mixed, self._liquid = bool(liquid.any()), not liquid.all(), upload(liquid, ti.f32)
        self.corrected = self.has_liquid and self.friction is None
        mirrored = upload(liquid * self.corrected, ti.f32)
        self.images = Images(world.walls, world.neighbors, mirrored, self.corrected)
        self._system: tuple | None = None
        self._heads = np.zeros((BLOCKS, 2), np.float32)
        self.tense, self._tense = False, np.zeros(1, np.int32)  # whether anything was under tension in this step

    def _full_diagonal(self) -> float:
        """D of an interior particle of the rest lattice: sum_j V W'^2 / rho0, for the lightest material."""
        d, h, s = self.world.spacing, self.world.h, self.world.neighbors.smoothing
        k = np.arange(-2, 3)
        r = np.sqrt(sum(c**2 for c in np.meshgrid(k, k, k))).ravel() * d
        r = r[(r > 0) & (r < h)]
        step = 1e-4 * h
        slope = (s.W(r + step, h) - s.W(r - step, h)) / (2 * step)
        lightest = min((m.density for m in self.world.materials), default=1000.0)
        return float((d**3 * slope**2).sum() * d**3 / lightest)

    def prepare(self) -> None:
        p = self.world.particles
        apparent = p.effective_inverse_density if "effective_inverse_density" in p.schema else p.inverse_density
        self.images.update()
        near, whole = self.world.neighbors, self.arrays
        system.pack(p.n, p.x, p.v, whole)
        if self.has_liquid:
            correction.find_corrections(p.n, near.wraps, near.period, whole, p.wall_gradient, self.world.spacing,
                                        self.weight, self._mixed, p.material, self._liquid, p.image_lopsided,
                                        p.image_trace, p.lopsided)  # fmt: skip
        system.prepare(p.n, near.wraps, near.period, whole, self.images.gradient, self.corrected, p.V, apparent, 1.0,
                       p.D)  # fmt: skip
        if self.friction:
            self.friction.prepare(apparent, whole)
        self.couplings = [coupling for coupling in self.world.couplings if coupling.prepare()]

    @property
    def weight(self) -> float:
        """g / d [1/s^2]: what gravity does to velocities over a spacing."""
        return float(np.linalg.norm(self.world.gravity)) / self.world.spacing

    def operator(self, velocities: bool = True) -> tuple:
        """What kernels take after n for K as velocities see it, or displacements."""
        near = self.world.neighbors
        return near.wraps, near.period, self.corrected and velocities, self.arrays

    @property
    def arrays(self) -> system.System:
        """The system as kernels take it; made anew when some of its arrays have grown."""
        p, near, images = self.world.particles, self.world.neighbors, self.images
        parts = (p.capacity, near.span, near.neighbor, images.rows)
        if self._system is None or any(a is not b for a, b in zip(parts, self._system[0], strict=True)):
            names = ("special", "Lx", "Ly", "Lz", "inside", "S", "D", "xq", "xo", "u", "q", "response", "residual",
                     "body_response")  # fmt: skip
            made = system.System(span=near.span, neighbor=near.neighbor, factor=near.factor, b=images.gradient,
                                 **images.arrays, **{name: getattr(p, name) for name in names})  # fmt: skip
            self._system = parts, made
        return self._system[1]

    def warm_start(self, dt: float) -> None:
        p = self.world.particles
        self.free.begin()
        acting = [coupling for coupling in self.couplings if not coupling.after_warm_start]
        dv = p.a if acting else p.v
        if acting:
            dv.fill(0.0)
        sweeps.begin(p.n, *self.operator(), p.inverse_density, dt, p.p, dv)
        if self.friction:
            self.friction.warm_start(dt, dv)
        if acting:
            for coupling in acting:
                coupling.constrain(p.a)
            sweeps.add(p.n, 1.0, p.a, p.v)
        for coupling in self.couplings:
            coupling.warm_start(dt)

    def max_dt(self) -> float:
        """Particles under the pressure p are held in their places as by springs: a displacement s of one changes its
        force by some p s / d^2, and what is disturbed swings at sqrt(p / rho) / d. Steps that do not resolve that heat
        the liquid. p / rho is its mean over where there is pressure, weighted by itself: single peaks count little."""
        if not self.has_liquid:
            return float("inf")
        p = self.world.particles
        sweeps.pressure_head(p.n, p.material, self._liquid, p.inverse_density, p.p, self._heads)
        first, second = self._heads.sum(axis=0, dtype=float)
        return RESOLVED * self.world.spacing * float(np.sqrt(first / second)) if second > 0 else float("inf")

    def constrain(self, moving: bool) -> None:
        """Lets all couplings act on `particles.a`."""
        for coupling in self.couplings:
            coupling.constrain(self.world.particles.a, moving)

    def predict(self, dt: float, compression: float, feedback: float, slack: float = sweeps.UNBOUNDED,
                velocities: bool = True) -> None:  # fmt: skip
        """Finds the residuals that velocities, or displacements beside them, are to remove (`sweeps.predict`)."""
        p = self.world.particles
        for coupling in self.couplings:
            coupling.tell_motion()
        sweeps.predict(p.n, *self.operator(velocities), p.wall_flux, p.wall_density, p.density, self.least, p.v, dt,
                       compression, feedback, slack, Sweeps.first_step, self.partial, self.sums)  # fmt: skip

    def solve_velocities(self, dt: float, compression: float, tolerance: float, feedback: float = 0.0,
                         slack: float = sweeps.UNBOUNDED) -> SolveResult:  # fmt: skip
        """Velocities by which what is at rest density comes no closer, and what is above it parts: at the rate that
        undoes the share `compression` of it within the step. Inside liquids it neither gathers nor parts, but for what
        density there is too much or too little: the share `feedback` of it within the `slack`, and all beyond."""
        p = self.world.particles
        self.predict(dt, compression, feedback, slack)
        strictness, least = tolerance / self.precision(dt) if self.has_liquid else 0.0, self.options.min_iterations
        if self.friction:
            if self.has_liquid:  # pressure first: by the short steps of friction deep water takes hundreds of sweeps
                self.iterate(self.pressure_sweeps(p.v, dt), tolerance, strictness, 0)
            self.friction.predict(dt)
            result = self.iterate(FrictionSweeps(self, dt, self.friction), tolerance, 0.0, least)
        else:
            result = self.iterate(self.pressure_sweeps(p.v, dt), tolerance, strictness, least)
        sweeps.finish(p.n, dt, p.q, p.p, self._tense)
        self.tense = self.has_liquid and bool(self._tense[0])
        if self.friction:
            self.friction.finish(dt)
        for coupling in self.couplings:
            coupling.finish(dt)
        return result

    def precision(self, dt: float) -> float:
        """The divergence of velocities, times dt, that leaves their pressures right within a few percent."""
        return max(SHARE * self.sum(sweeps.SOURCE) / self.members, REST_SHARE * dt * dt * self.weight, NOISE)

    def pressure_sweeps(self, moved: ti.Ndarray, dt: float) -> Sweeps:
        return (BoundSweeps if self.couplings else FreeSweeps)(self, moved, dt)

    def iterate(self, run: Sweeps, tolerance: float, strictness: float, least: int) -> SolveResult:
        """Sweeps until the error is below the tolerance."""
        iterations, converged = run.run(tolerance, strictness, least, self.options.max_iterations)
        mean = self.sum(sweeps.COMPRESSION) / self.members
        return SolveResult(iterations, mean, self.sum(sweeps.LARGEST), converged)

    def sum(self, k: int) -> float:
        """One of the sums over all particles of the last sweep."""
        return float(self.sums[k])

    def error(self, strictness: float) -> float:
        """The mean error that is left, where what neighbors have in common counts so many times as much."""
        two_sided = max(self.sum(sweeps.TWO_SIDED), strictness * self.sum(sweeps.GATHERED)) / sweeps.BOTH_SIDES
        return max(self.sum(sweeps.COMPRESSION), two_sided) / self.members

    @property
    def members(self) -> float:
        """How many particles have something to push against."""
        return max(self.sum(sweeps.MEMBERS), 1.0)
