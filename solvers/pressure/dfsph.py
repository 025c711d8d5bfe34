"""Divergence-free SPH (Bender and Koschier 2017): a divergence-free and a constant-density solve each step.

Both are the same complementarity problem (see `system`) with another source. The first makes the velocities
divergence-free, and its pressure is the pressure. It also lets them undo a share of any compression, the feedback. The
second removes what compression is then left above the tolerance, by displacing particles; mostly it has nothing to do.

In the original the velocities undo all compression in each step. But a density error is no momentum, and giving it
back as velocity heats the fluid: a column of ten layers, compressed by 0.1 % and set right within 5 ms, throws its
surface up at 0.1 m/s, and still water simmers at that speed however the system is solved. So the feedback is held to
what a mean compression of KICK would cause, and a step may add no more compression than the feedback removes.

Jacobi iterations, which the method is known with, need many sweeps for smooth errors. Here each sweep is a projected
gradient step whose length is the one of Barzilai and Borwein 1988 in the metric of the diagonal D (Dai and Fletcher
2005 for the projection),

    step = <dq, D dq> / <dq, K dq>,

the inverse of the curvature just seen. It costs no further product with K, and needs three to four times fewer
sweeps at equal error. Pressures of the last step, carried by the particles, are the first guess of the first solve.

An iteration ends when the mean compression is below the tolerance and the two-sided error, which also counts fluid
that pressure pushes apart, is below twice of it: otherwise pressure left over from the guess would add energy.
"""

import numpy as np
import taichi as ti

from pliant.options import param, positive
from pliant.particles import Field
from pliant.reduce import BLOCKS
from pliant.solvers.pressure import system
from pliant.solvers.pressure.base import Outcome, PressureOptions
from pliant.world import World

FIRST_STEP = 1.0  # replaced by the curvature after one sweep
KICK = 3e-4  # mean compression that velocities may undo in a step
TWO_SIDED = 2.0  # tolerance of the two-sided error, in tolerances of compression
LONGEST_STEP = 20.0
SHORTEST_STEP = 0.1
LONELY = 1e-2  # particles with a diagonal below this share of a full neighbourhood's have nothing to push against


class DFSPH(PressureOptions):
    """Pressure solver after Bender and Koschier 2017."""

    max_density_error: float = positive(1e-3, "mean density error at which the iteration ends", "1", high=0.1,
                                        source="Bender and Koschier 2017 use 0.01 % to 0.1 %")  # fmt: skip
    max_divergence_error: float = positive(1e-3, "mean density error per step that the velocity may still cause", "1",
                                           high=0.1, source="Bender and Koschier 2017, Section 3.3")  # fmt: skip
    min_iterations: int = param(2, "least iterations of the divergence solve", kind="integer", low=0, high=1000)
    max_iterations: int = param(100, "bound on the iterations of each solve", kind="integer", low=1, high=100_000)

    def solver(self, world: World) -> "DFSPHSolver":
        return DFSPHSolver(self, world)

    @staticmethod
    def fields() -> tuple[Field, ...]:
        return (
            *system.FIELDS,
            Field("p", "real", "Pa", "pressure", carried=True),
            Field("shift", "vector", "m", "displacement that removes compression, beside dt v"),
        )


class DFSPHSolver:
    """`remove_divergence` acts on velocities once all forces have, `remove_compression` then finds `particles.shift`.
    `prepare` and `guess` belong before them, once positions have changed."""

    def __init__(self, options: DFSPH, world: World):
        self.options, self.world = options, world
        self.feedback = min(1.0, KICK / options.max_density_error)
        self.partial, self.sums = ti.ndarray(ti.f32, (BLOCKS, system.SUMS)), ti.ndarray(ti.f32, system.SUMS)
        self.least = LONELY * self._full_diagonal()

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

    @property
    def ease(self) -> ti.Ndarray:
        """Mobilities: those of solids count what moves along with a particle."""
        p = self.world.particles
        return p.ease if "ease" in p.schema else p.mobility

    def prepare(self) -> None:
        p = self.world.particles
        system.prepare(p.n, *self.world.neighbors.pairs, p.wall_gradient, p.V, self.ease, p.D)

    def guess(self, dt: float) -> None:
        """Lets the pressures of the last step act."""
        p = self.world.particles
        system.begin(p.n, *self.world.neighbors.pairs, p.wall_gradient, p.mobility, dt, p.p, p.q, p.v)

    def remove_divergence(self, dt: float) -> Outcome:
        """Velocities: what is at rest density comes no closer, what is above it parts."""
        p, options = self.world.particles, self.options
        tolerance = min(options.max_divergence_error, self.feedback * options.max_density_error)
        system.predict(p.n, *self.world.neighbors.pairs, p.wall_gradient, p.wall_flux, p.wall_density, p.density, p.D,
                       self.least, p.v, dt, self.feedback, p.q, p.residual, self.partial, self.sums)  # fmt: skip
        outcome = self._solve(tolerance, options.min_iterations, p.v, 1.0 / dt)
        system.finish(p.n, dt, p.q, p.p)
        return outcome

    def remove_compression(self) -> Outcome:
        """Displacements beside dt v that leave no particle above rest density."""
        p = self.world.particles
        p.shift.fill(0.0)
        system.go_on(p.n, p.wall_density, p.density, p.D, self.least, self.feedback, p.q, p.residual, self.partial,
                     self.sums)  # fmt: skip
        return self._solve(self.options.max_density_error, 0, p.shift, 1.0)

    def _solve(self, tolerance: float, least: int, moved: ti.Ndarray, rate: float) -> Outcome:
        p, pairs = self.world.particles, self.world.neighbors.pairs
        iterations, step = 0, FIRST_STEP
        while iterations < least or (self._error() > tolerance and iterations < self.options.max_iterations):
            system.iterate(p.n, *pairs, p.wall_gradient, p.V, self.world.spacing**3, self.ease, p.D, self.least, rate,
                           step, p.q, p.change, p.a, moved, p.answer, p.residual, self.partial, self.sums)  # fmt: skip
            iterations += 1
            curvature = self.sums[system.CURVATURE]
            if curvature > 0.0:
                step = min(max(self.sums[system.LENGTH] / curvature, SHORTEST_STEP), LONGEST_STEP)
        mean = self.sums[system.COMPRESSION] / self._members()
        return Outcome(iterations, mean, self.sums[system.LARGEST], self._error() <= tolerance)

    def _error(self) -> float:
        two_sided = self.sums[system.TWO_SIDED] / TWO_SIDED
        return max(self.sums[system.COMPRESSION], two_sided) / self._members()

    def _members(self) -> float:
        return max(self.sums[system.MEMBERS], 1.0)
