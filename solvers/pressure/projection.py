"""What the incompressible solvers share: the sweeps over the pressure system, with or without friction.

Jacobi iterations, which these methods are known with, need many sweeps for smooth errors. Here each sweep is a
projected gradient step whose length is the one of Barzilai and Borwein 1988 in the metric of the diagonal D (Dai and
Fletcher 2005 for the projection),

    step = <dq, D dq> / <dq, K dq>  or  <dq, K dq> / <K dq, D^-1 K dq>,

the inverse of the curvature just seen, one formula after the other (Dai 2003: a tenth fewer sweeps than by the first
alone). It costs no further product with K, and needs three to four times fewer sweeps at equal error. Pressures of the
last step, carried by the particles, are the first guess.

An iteration ends when the mean compression is below the tolerance and the two-sided error, which also counts matter
that pressure pushes apart, is below twice of it: otherwise pressure left over from the guess would add energy. Where
there is sand, the mean strain that friction still has to remove must be below the tolerance as well.

Velocities of liquids are solved for to more than that. What their own bending adds to the divergence in a step,
dt^2 |tr((grad v)^2)|, is small of second order, and just what pressure is there to undo, beside weight: an error of
SHARE of it, or of REST_SHARE of what gravity would add, is one of a few percent of the pressure.
"""

from typing import Any, ClassVar

import numpy as np
import taichi as ti

from pliant.boundary import images
from pliant.boundary.images import Images
from pliant.core.backend import runs_alone, upload
from pliant.core.fields import Field
from pliant.core.options import param, positive
from pliant.core.reduce import BLOCKS
from pliant.core.world import Coupling, World
from pliant.solvers.granular import friction
from pliant.solvers.granular.friction import Friction
from pliant.solvers.pressure import correction, system
from pliant.solvers.pressure.base import PressureOptions, PressureSolver
from pliant.solvers.stage import SolveResult

FIRST_STEP = 1.0  # replaced by the curvature after one sweep
LONGEST_STEP = 20.0
LONGEST_BOUND_STEP = 1e4  # few particles that touch move a stiff body as a whole: D takes it for far lighter
SHORTEST_STEP = 0.1
SHARE = 0.05  # of what the flow adds to its divergence in a step that may be left
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
        )


class Projection(PressureSolver):
    """Solves by projected sweeps. `solve_velocities` finds pressures, stresses of sand and velocities."""

    def __init__(self, options: ProjectionOptions, world: World):
        self.options, self.world = options, world
        self.partial = ti.ndarray(ti.f32, (BLOCKS, friction.SUMS))
        self.sums = np.zeros(friction.SUMS, np.float32)  # of NumPy, so that the host reads them at no cost
        self.least = LONELY * self._full_diagonal()
        self.friction = Friction(world) if "stress" in world.particles.schema else None
        self.solves_friction = self.friction is not None
        self.couplings: list[Coupling] = []  # that have a say in this step
        # Sand has sweeps of its own, with gradients and walls as they are for all that is no liquid.
        liquid = np.array([float(m.liquid) for m in world.materials])
        self.has_liquid, self._mixed, self._liquid = bool(liquid.any()), not liquid.all(), upload(liquid, ti.f32)
        self.corrected = self.has_liquid and self.friction is None
        mirrored = upload(liquid * self.corrected, ti.f32)
        self.images = world.walls.images = Images(world.walls, world.neighbors, mirrored, self.corrected)
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
        correction.find_corrections(p.n, near.wraps, near.period, whole, p.wall_gradient, self.world.spacing,
                                    self.weight, self._mixed, p.material, self._liquid, p.image_lopsided,
                                    p.image_trace, p.L, p.lopsided)  # fmt: skip
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
            names = ("special", "Lx", "Ly", "Lz", "inside", "D", "xq", "xo", "u", "q", "response", "residual")
            made = system.System(span=near.span, neighbor=near.neighbor, factor=near.factor, b=images.gradient,
                                 **images.arrays, **{name: getattr(p, name) for name in names})  # fmt: skip
            self._system = parts, made
        return self._system[1]

    def warm_start(self, dt: float) -> None:
        p = self.world.particles
        acting = [coupling for coupling in self.couplings if not coupling.after_warm_start]
        dv = p.a if acting else p.v
        if acting:
            dv.fill(0.0)
        system.begin(p.n, *self.operator(), p.inverse_density, dt, p.p, dv)
        if self.friction:
            self.friction.warm_start(dt, dv)
        if acting:
            for coupling in acting:
                coupling.constrain(p.a)
            system.add(p.n, 1.0, p.a, p.v)
        for coupling in self.couplings:
            coupling.warm_start(dt)

    def max_dt(self) -> float:
        """Particles under the pressure p are held in their places as by springs: a displacement s of one changes its
        force by some p s / d^2, and what is disturbed swings at sqrt(p / rho) / d. Steps that do not resolve that heat
        the liquid. p / rho is its mean over where there is pressure, weighted by itself: single peaks count little."""
        if not self.has_liquid:
            return float("inf")
        p = self.world.particles
        system.pressure_head(p.n, p.material, self._liquid, p.inverse_density, p.p, self._heads)
        first, second = self._heads.sum(axis=0, dtype=float)
        return RESOLVED * self.world.spacing * float(np.sqrt(first / second)) if second > 0 else float("inf")

    @property
    def bound(self) -> bool:
        """Whether there are particles that cannot follow pressure each by itself."""
        return bool(self.couplings)

    def constrain(self, moving: bool) -> None:
        """Lets all couplings act on `particles.a`."""
        for coupling in self.couplings:
            coupling.constrain(self.world.particles.a, moving)

    def predict(self, dt: float, compression: float, feedback: float, slack: float = system.UNBOUNDED,
                velocities: bool = True) -> None:  # fmt: skip
        """Finds the residuals that velocities, or displacements beside them, are to remove (`system.predict`)."""
        p = self.world.particles
        system.predict(p.n, *self.operator(velocities), p.wall_flux, p.wall_density, p.density, self.least, p.v, dt,
                       compression, feedback, slack, self.partial, self.sums)  # fmt: skip

    def solve_velocities(self, dt: float, compression: float, tolerance: float, feedback: float = 0.0,
                         slack: float = system.UNBOUNDED) -> SolveResult:  # fmt: skip
        """Velocities by which what is at rest density comes no closer, and what is above it parts: at the rate that
        undoes the share `compression` of it within the step. Inside liquids it neither gathers nor parts, but for what
        density there is too much or too little: the share `feedback` of it within the `slack`, and all beyond."""
        p = self.world.particles
        self.predict(dt, compression, feedback, slack)
        if self.corrected:
            tolerance = min(tolerance, self.precision(dt))
        if self.friction:
            if self.has_liquid:  # pressure first: by the short steps of friction deep water takes hundreds of sweeps
                self.iterate(PressureSweeps(self, p.v, dt), min(tolerance, self.precision(dt)), 0)
            self.friction.predict(dt)
        sweeps = FrictionSweeps(self, dt, self.friction) if self.friction else PressureSweeps(self, p.v, dt)
        result = self.iterate(sweeps, tolerance, self.options.min_iterations)
        system.finish(p.n, dt, p.q, p.p, self._tense)
        self.tense = self.has_liquid and bool(self._tense[0])
        if self.friction:
            self.friction.finish(dt)
        for coupling in self.couplings:
            coupling.finish(dt)
        return result

    def precision(self, dt: float) -> float:
        """The divergence of velocities, times dt, that leaves their pressures right within a few percent."""
        return max(SHARE * self.sum(system.SOURCE) / self.members, REST_SHARE * dt * dt * self.weight, NOISE)

    def iterate(self, sweeps: "PressureSweeps", tolerance: float, least: int) -> SolveResult:
        """Sweeps until the error is below the tolerance."""
        iterations, step, goal, error = 0, sweeps.first_step, tolerance, self.error()
        least, most = max(least, sweeps.least), self.options.max_iterations
        if sweeps.by_turns and runs_alone(system.solve):
            iterations = sweeps.run_all(tolerance, least, most)
            error, least = self.error(), iterations
        while iterations < least or ((error > goal or sweeps.unsettled(tolerance)) and iterations < most):
            sweeps.run(step)
            iterations += 1
            step = sweeps.next_step(step, iterations)
            goal, error = sweeps.goal(tolerance), max(self.error(), sweeps.slip())
        mean = self.sum(system.COMPRESSION) / self.members
        return SolveResult(iterations, mean, self.sum(system.LARGEST), error <= goal)

    def sum(self, k: int) -> float:
        """One of the sums over all particles of the last sweep."""
        return float(self.sums[k])

    def error(self) -> float:
        return max(self.sum(system.COMPRESSION), self.sum(system.TWO_SIDED) / system.BOTH_SIDES) / self.members

    @property
    def members(self) -> float:
        """How many particles have something to push against."""
        return max(self.sum(system.MEMBERS), 1.0)


class PressureSweeps:
    """Sweeps of pressures alone. They change `moved`: velocities, or displacements with dt = 1."""

    first_step, least = FIRST_STEP, 0

    def __init__(self, solver: Projection, moved: ti.Ndarray, dt: float):
        self.solver, self.moved, self.dt = solver, moved, dt
        self.slides = moved is solver.world.particles.v  # displacements rub on nothing
        self._done = np.zeros(1, np.int32)

    def run(self, step: float) -> None:
        solver, p, rate = self.solver, self.solver.world.particles, 1.0 / self.dt
        operator, volume = solver.operator(self.slides), solver.world.spacing**3
        if not solver.bound:
            system.iterate(p.n, *operator, p.V, volume, p.inverse_density, solver.least, rate, step, self.moved,
                           solver.partial, solver.sums)  # fmt: skip
            return
        system.push(p.n, *operator, p.inverse_density, solver.least, step, p.a)
        self.push(step)
        system.follow(p.n, *operator, p.V, volume, solver.least, rate, p.a, self.moved, solver.partial, solver.sums)
        self.tally(step)

    def run_all(self, tolerance: float, least: int, most: int) -> int:
        """All sweeps that are needed, in one launch; returns their number."""
        solver, p = self.solver, self.solver.world.particles
        system.solve(p.n, *solver.operator(self.slides), p.V, solver.world.spacing**3, p.inverse_density, solver.least,
                     1.0 / self.dt, tolerance, least, most, SHORTEST_STEP, LONGEST_STEP, self.moved, solver.partial,
                     solver.sums, self._done)  # fmt: skip
        return int(self._done[0])

    def push(self, step: float) -> None:
        """What couplings find themselves, and then make of `particles.a`."""
        if self.slides:
            for coupling in self.solver.couplings:
                coupling.push(self.dt, step)
        self.solver.constrain(self.slides)

    def tally(self, step: float) -> None:
        if self.slides:
            for coupling in self.solver.couplings:
                coupling.tally(self.dt, step, self.solver.least, self.solver.sums)

    def next_step(self, step: float, iterations: int) -> float:
        """The length of the next step after so many, the last of which was `step`."""
        length, curvature, square = (self.solver.sum(k) for k in (system.LENGTH, system.CURVATURE, system.SQUARE))
        if curvature <= 0.0:
            return step
        found = curvature / square if self.by_turns and iterations % 2 == 0 else length / curvature
        return min(max(found, SHORTEST_STEP), LONGEST_BOUND_STEP if self.solver.bound else LONGEST_STEP)

    @property
    def by_turns(self) -> bool:
        """Whether both formulas for the length of a step hold: couplings and friction have sums for the first alone."""
        return not self.solver.bound

    def unsettled(self, tolerance: float) -> bool:
        """Whether a coupling needs another sweep."""
        return self.slides and any(c.unsettled(self.dt, tolerance) for c in self.solver.couplings)

    def goal(self, tolerance: float) -> float:
        """The error at which to stop."""
        return tolerance

    def slip(self) -> float:
        """An error beside that of the density."""
        return 0.0


class FrictionSweeps(PressureSweeps):
    """Sweeps of pressures and shear stresses together."""

    first_step, least, by_turns = friction.FIRST_STEP, friction.LEAST_SWEEPS, False

    def __init__(self, solver: Projection, dt: float, rubbing: Friction):
        super().__init__(solver, solver.world.particles.v, dt)
        self.friction = rubbing

    def run(self, step: float) -> None:
        push = (lambda: self.push(step)) if self.solver.bound else None
        self.friction.sweep(self.dt, step, self.solver.least, self.solver.partial, self.solver.sums, push)
        if self.solver.bound:
            self.tally(step)

    def goal(self, tolerance: float) -> float:
        return self.friction.tolerance(self.dt, tolerance, self.solver.sum(friction.SPEED) / self.solver.members)

    def slip(self) -> float:
        return self.solver.sum(friction.SLIP) / self.solver.members
