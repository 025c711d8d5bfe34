"""How the pressure system is solved: the lengths of sweeps, and the loop over them.

Jacobi iterations, which these methods are known with, need many sweeps. Pressures of liquids and of what else is free
are swept with the lengths of Chebyshev (`chebyshev`): the next change of a pressure is a step along its residual and a
share of the last change. They need no sums, so that sweeps follow each other without anyone looking at the result, and
pressures may be cut off at zero after each. It takes a third of the sweeps of Jacobi's at usual tolerances.

Where bodies couple, or friction acts, the spectrum is not known, and each sweep is a projected gradient step whose
length is the one of Barzilai and Borwein 1988 in the metric of the diagonal D (Dai and Fletcher 2005: projected),

    step = <dq, D dq> / <dq, K dq>,

the inverse of the curvature just seen. It costs no further product with K.

What was tried beside (a dam break of 2,000 to 100,000 particles, by the residual or by the error of velocities):
conjugate gradients and conjugate residuals need as many sweeps as Chebyshev's, and a last one for what they have pushed
below zero; a coarse level (hat functions 3 to 6 spacings wide, solved exactly) changes nothing, because after a warm
start what is slow to go is not smooth: it jumps from particle to particle. Displacements that begin with a share of the
last ones take a third of the sweeps, and steps after Barzilai and Borwein half, but deep water then does not calm down.
"""

import functools
from typing import TYPE_CHECKING

import numpy as np
import taichi as ti

from pliant.core import team
from pliant.core.backend import runs_alone, workers
from pliant.solvers.granular import friction
from pliant.solvers.granular.friction import Friction
from pliant.solvers.pressure import sweeps

if TYPE_CHECKING:
    from pliant.solvers.pressure.projection import Projection

# Largest eigenvalue of D^-1 K that is reckoned with; 2.85 to 3.2 were measured in dam breaks, splashes included.
LARGEST_EIGENVALUE = 3.4
MARGIN = 1.1  # by which one that was seen is exceeded next
# The least eigenvalue that a run of sweeps aims at, and their number: what is slower is for the next run.
RUNS = ((0.2, 8), (0.05, 16), (0.0125, 32), (0.003, 64))
IN_TURN = sum(count for _, count in RUNS)  # sweeps after which runs begin again

FIRST_STEP = 1.0  # replaced by the curvature after one sweep
LONGEST_STEP = 20.0
LONGEST_BOUND_STEP = 1e4  # few particles that touch move a stiff body as a whole: D takes it for far lighter
SHORTEST_STEP = 0.1
SHORTEST_BOUND_STEP = 1e-3  # sand that rubs on a light rigid body moves it with all that touches it at once


@functools.cache
def chebyshev(largest: float) -> np.ndarray:
    """Step and momentum of each sweep (IN_TURN + 1, 2), the last of which begins anew: with the eigenvalues l of D^-1 K
    from a `least` to the `largest`, and sigma = (largest + least) / (largest - least),

        r_0 = 1 / sigma,  r_k = 1 / (2 sigma - r_(k-1)),  step_k = 4 r_k / (largest - least),  momentum_k = r_k r_(k-1)

    (Golub and Varga 1961; Saad 2003, Algorithm 12.1). Runs for smaller least eigenvalues follow each other."""
    rows: list[tuple[float, float]] = []
    for least, count in RUNS:
        half, middle = (largest - least) / 2, (largest + least) / 2
        r = half / middle
        rows.append((1 / middle, 0.0))
        for _ in range(count - 1):
            last, r = r, 1 / (2 * middle / half - r)
            rows.append((2 * r / half, r * last))
    return np.array([*rows, rows[0]], np.float32)


class Sweeps:
    """Sweeps of a solver until it is done. They change `moved`: velocities, or displacements with dt = 1."""

    first_step = float(chebyshev(LARGEST_EIGENVALUE)[0, sweeps.STEP])
    least = 0  # sweeps

    def __init__(self, solver: "Projection", moved: ti.Ndarray, dt: float):
        self.solver, self.moved, self.dt = solver, moved, dt
        self.slides = moved is solver.world.particles.v  # displacements rub on nothing

    @property
    def arguments(self) -> tuple:
        """What kernels of a whole sweep take first."""
        solver, p = self.solver, self.solver.world.particles
        operator, volume = solver.operator(self.slides), solver.world.spacing**3
        return p.n, *operator, p.V, volume, p.inverse_density, solver.least, 1.0 / self.dt

    def run(self, tolerance: float, strictness: float, least: int, most: int) -> tuple[int, bool]:
        """Sweeps until the error is below the tolerance, but `least` and not more than `most`; returns how many there
        were and whether it is."""
        raise NotImplementedError


class FreeSweeps(Sweeps):
    """Sweeps of pressures of what each follows them by itself."""

    def run(self, tolerance: float, strictness: float, least: int, most: int) -> tuple[int, bool]:
        solver, largest, iterations = self.solver, LARGEST_EIGENVALUE, 0
        while iterations < least or (iterations < most and solver.error(strictness) > tolerance):
            fewest, room = max(least - iterations, 0), min(most - iterations, IN_TURN)
            count = self._sweep(tolerance, strictness, fewest, room, chebyshev(largest)[1:], largest)
            iterations += count
            seen = solver.sum(sweeps.CURVATURE) / max(solver.sum(sweeps.LENGTH), 1e-30)
            if seen > largest:
                p, largest = solver.world.particles, MARGIN * seen
                first = float(chebyshev(largest)[0, sweeps.STEP])
                sweeps.find_changes(p.n, first, solver.least, solver.arrays)
        return iterations, solver.error(strictness) <= tolerance

    def _sweep(self, tolerance: float, strictness: float, fewest: int, most: int, lengths: np.ndarray, largest: float
               ) -> int:  # fmt: skip
        """At most `most` sweeps, all in one launch where there are threads that can do them together."""
        solver = self.solver
        many = 1 if runs_alone(sweeps.sweep_together) else workers()
        if many:
            shares, desk = team.SHARES_EACH * many, team.clean_desk(many, 2 * IN_TURN)
            sweeps.sweep_together(*self.arguments, lengths, largest, tolerance, strictness, fewest, most, self.moved,
                                  solver.partial, solver.sums, many, shares, desk, solver.done)  # fmt: skip
            return int(solver.done[0])
        for k in range(most):
            step, momentum = lengths[k].tolist()
            sweeps.sweep(*self.arguments, step, momentum, self.moved, solver.partial, solver.sums)
            too_long = solver.sum(sweeps.CURVATURE) > largest * solver.sum(sweeps.LENGTH)
            if too_long or (k + 1 >= fewest and solver.error(strictness) <= tolerance):
                return k + 1
        return most


class BoundSweeps(Sweeps):
    """Sweeps of pressures where couplings have a say."""

    first_step, shortest = FIRST_STEP, SHORTEST_STEP

    def run(self, tolerance: float, strictness: float, least: int, most: int) -> tuple[int, bool]:
        solver, step, iterations, goal = self.solver, self.first_step, 0, tolerance
        least, error = max(least, self.least), solver.error(strictness)
        while iterations < least or ((error > goal or self.unsettled(tolerance)) and iterations < most):
            self.sweep(step)
            iterations += 1
            length, curvature = (solver.sum(k) for k in (sweeps.LENGTH, sweeps.CURVATURE))
            if curvature > 0.0:
                longest = LONGEST_BOUND_STEP if solver.couplings else LONGEST_STEP
                step = min(max(length / curvature, self.shortest), longest)
            goal, error = self.goal(tolerance), max(solver.error(strictness), self.slip())
        return iterations, error <= goal

    def sweep(self, step: float) -> None:
        solver, p = self.solver, self.solver.world.particles
        operator, volume = solver.operator(self.slides), solver.world.spacing**3
        self.foresee(step)
        sweeps.push(p.n, *operator, p.inverse_density, solver.least, step, p.a)
        self.push(step)
        sweeps.follow(p.n, *operator, p.V, volume, solver.least, 1.0 / self.dt, p.a, self.moved, solver.partial,
                      solver.sums)  # fmt: skip
        self.tally(step)

    def foresee(self, step: float) -> None:
        """What couplings will make of the residuals, in a projected step of that length if it is known."""
        for coupling in self.solver.couplings:
            coupling.foresee(self.slides, self.changes, self.solver.least, step)

    @property
    def changes(self) -> ti.Ndarray:
        """Where the changes of pressures stand: the fourth of these points, if they are points."""
        return self.solver.world.particles.xq

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

    def unsettled(self, tolerance: float) -> bool:
        """Whether a coupling needs another sweep."""
        return self.slides and any(c.unsettled(self.dt, tolerance) for c in self.solver.couplings)

    def goal(self, tolerance: float) -> float:
        """The error at which to stop."""
        return tolerance

    def slip(self) -> float:
        """An error beside that of the density."""
        return 0.0


class FrictionSweeps(BoundSweeps):
    """Sweeps of pressures and shear stresses together."""

    first_step, least = friction.FIRST_STEP, friction.LEAST_SWEEPS

    def __init__(self, solver: "Projection", dt: float, rubbing: Friction):
        super().__init__(solver, solver.world.particles.v, dt)
        self.friction = rubbing
        self.shortest = SHORTEST_BOUND_STEP if solver.couplings else SHORTEST_STEP

    @property
    def changes(self) -> ti.Ndarray:
        return self.solver.world.particles.change

    def sweep(self, step: float) -> None:
        push = (lambda: self.push(step)) if self.solver.couplings else None
        self.foresee(0.0)
        self.friction.sweep(self.dt, step, self.solver.least, self.solver.partial, self.solver.sums, push)
        if self.solver.couplings:
            self.tally(step)

    def goal(self, tolerance: float) -> float:
        return self.friction.tolerance(self.dt, tolerance, self.solver.sum(friction.SPEED) / self.solver.members)

    def slip(self) -> float:
        return self.solver.sum(friction.SLIP) / self.solver.members
