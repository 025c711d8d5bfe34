"""What the incompressible solvers share: the sweeps over the pressure system, with or without friction.

Jacobi iterations, which these methods are known with, need many sweeps for smooth errors. Here each sweep is a
projected gradient step whose length is the one of Barzilai and Borwein 1988 in the metric of the diagonal D (Dai and
Fletcher 2005 for the projection),

    step = <dq, D dq> / <dq, K dq>,

the inverse of the curvature just seen. It costs no further product with K, and needs three to four times fewer
sweeps at equal error. Pressures of the last step, carried by the particles, are the first guess.

An iteration ends when the mean compression is below the tolerance and the two-sided error, which also counts matter
that pressure pushes apart, is below twice of it: otherwise pressure left over from the guess would add energy. Where
there is sand, the mean strain that friction still has to remove must be below the tolerance as well.
"""

import numpy as np
import taichi as ti

from pliant.core.options import param, positive
from pliant.core.particles import Field
from pliant.core.reduce import BLOCKS
from pliant.core.world import World
from pliant.solvers.granular import friction
from pliant.solvers.granular.friction import Friction
from pliant.solvers.pressure import system
from pliant.solvers.pressure.base import Outcome, PressureOptions

FIRST_STEP = 1.0  # replaced by the curvature after one sweep
TWO_SIDED = 2.0  # tolerance of the two-sided error, in tolerances of compression
LONGEST_STEP = 20.0
SHORTEST_STEP = 0.1
LONELY = 1e-2  # particles with a diagonal below this share of a full neighbourhood's have nothing to push against


class ProjectionOptions(PressureOptions):
    """Settings of every incompressible solver."""

    max_density_error: float = positive(1e-3, "mean density error at which the iteration ends", "1", high=0.1,
                                        source="Bender and Koschier 2017 use 0.01 % to 0.1 %")  # fmt: skip
    min_iterations: int = param(2, "least iterations of the solve for velocities", kind="integer", low=0, high=1000)
    max_iterations: int = param(100, "bound on the iterations of each solve", kind="integer", low=1, high=100_000)

    @staticmethod
    def fields(materials: tuple) -> tuple[Field, ...]:
        return (
            *system.FIELDS,
            *(friction.FIELDS if any(m.stands for m in materials) else ()),
            Field("p", "real", "Pa", "pressure", carried=True),
            Field("shift", "vector", "m", "displacement that removes compression, beside dt v"),
        )


class Projection:
    """`remove_divergence` acts on velocities once all forces have, `remove_compression` then finds `particles.shift`.
    `prepare` and `guess` belong before them, once positions have changed."""

    def __init__(self, options: ProjectionOptions, world: World):
        self.options, self.world = options, world
        self.partial, self.sums = ti.ndarray(ti.f32, (BLOCKS, friction.SUMS)), ti.ndarray(ti.f32, friction.SUMS)
        self.least = LONELY * self._full_diagonal()
        self.friction = Friction(world) if "stress" in world.particles.schema else None

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
        system.prepare(p.n, *self.world.neighbors.pairs, p.wall_gradient, p.V, self.ease, 1.0, p.D)
        if self.friction:
            self.friction.prepare(self.ease)

    def guess(self, dt: float) -> None:
        """Lets the pressures of the last step act."""
        p = self.world.particles
        system.begin(p.n, *self.world.neighbors.pairs, p.wall_gradient, p.mobility, dt, p.p, p.q, p.v)
        if self.friction:
            self.friction.guess(dt)

    def _solve_velocities(self, dt: float, compression: float, tolerance: float) -> Outcome:
        """Velocities by which what is at rest density comes no closer, and what is above it parts: at the rate that
        undoes the share `compression` of it within the step."""
        p, least = self.world.particles, self.options.min_iterations
        system.predict(p.n, *self.world.neighbors.pairs, p.wall_gradient, p.wall_flux, p.wall_density, p.density, p.D,
                       self.least, p.v, dt, compression, p.q, p.residual, self.partial, self.sums)  # fmt: skip
        if self.friction:
            self.friction.predict(dt)
        outcome = self._solve(tolerance, least, p.v, dt, self.friction)
        system.finish(p.n, dt, p.q, p.p)
        if self.friction:
            self.friction.finish(dt)
        return outcome

    def _solve(self, tolerance: float, least: int, moved: ti.Ndarray, dt: float, rubbing: Friction | None) -> Outcome:
        """Sweeps until the error is below the tolerance. Changes `moved`: velocities, or positions with dt = 1."""
        p, pairs, sums = self.world.particles, self.world.neighbors.pairs, (self.partial, self.sums)
        iterations, step, slip, goal = 0, FIRST_STEP, 0.0, tolerance
        if rubbing:
            step, least = friction.FIRST_STEP, max(least, friction.LEAST_SWEEPS)
        most = self.options.max_iterations
        while iterations < least or (max(self._error(), slip) > goal and iterations < most):
            if rubbing:
                rubbing.sweep(dt, step, self.ease, self.least, *sums)
                slip, speed = (self.sums[k] / self._members() for k in (friction.SLIP, friction.SPEED))
                goal = rubbing.tolerance(dt, tolerance, speed)
            else:
                system.iterate(p.n, *pairs, p.wall_gradient, p.V, self.world.spacing**3, self.ease, p.D, self.least,
                               1.0 / dt, step, p.q, p.change, p.a, moved, p.answer, p.residual, *sums)  # fmt: skip
            iterations += 1
            curvature = self.sums[system.CURVATURE]
            if curvature > 0.0:
                step = min(max(self.sums[system.LENGTH] / curvature, SHORTEST_STEP), LONGEST_STEP)
        mean = self.sums[system.COMPRESSION] / self._members()
        return Outcome(iterations, mean, self.sums[system.LARGEST], self._error() <= goal)

    def _error(self) -> float:
        two_sided = self.sums[system.TWO_SIDED] / TWO_SIDED
        return max(self.sums[system.COMPRESSION], two_sided) / self._members()

    def _members(self) -> float:
        return max(self.sums[system.MEMBERS], 1.0)
