"""Divergence-free SPH (Bender and Koschier 2017): a divergence-free and a constant-density solve each step.

Both are the same complementarity problem (see `system`) with another source. The first makes the velocities
divergence-free, and its pressure is the pressure. The second brings the density ratio to one within the tolerance, by
displacing particles beside dt v.

In the original the velocities undo all compression in each step. But a density error is no momentum, and giving it
back as velocity heats the fluid: a column of ten layers, compressed by 0.1 % and set right within 5 ms, throws its
surface up at 0.1 m/s, and still water simmers at that speed however the system is solved. So inside liquids velocities
know nothing of density errors. Where matter meets at surfaces, they undo a share of a compression, the feedback: not
more than what a mean compression of KICK would cause, and a step may add no more compression than the feedback removes.
"""

from collections.abc import Callable, Mapping

from pliant.core.options import positive
from pliant.core.world import World
from pliant.solvers.pressure import correction
from pliant.solvers.pressure.projection import Projection, ProjectionOptions
from pliant.solvers.stage import SolveResult

KICK = 3e-4  # mean compression that velocities may undo in a step


class DFSPH(ProjectionOptions):
    """Pressure solver after Bender and Koschier 2017."""

    max_divergence_error: float = positive(1e-3, "mean density error per step that the velocity may still cause", "1",
                                           high=0.1, source="Bender and Koschier 2017, Section 3.3")  # fmt: skip

    def solver(self, world: World) -> "DFSPHSolver":
        return DFSPHSolver(self, world)


class DFSPHSolver(Projection):
    """Velocities first, then what displacements are still needed."""

    options: DFSPH

    def __init__(self, options: DFSPH, world: World):
        super().__init__(options, world)
        self.feedback = min(1.0, KICK / options.max_density_error)

    def solves(self) -> dict[str, Callable[[float], SolveResult]]:
        return {"divergence": lambda dt: self.remove_divergence(dt), "density": lambda dt: self.remove_compression(dt)}

    def errors(self, results: Mapping[str, SolveResult]) -> dict[str, SolveResult]:
        return {name: results.get(name, SolveResult(0)) for name in ("density", "divergence")}

    def remove_divergence(self, dt: float) -> SolveResult:
        """Velocities: what is at rest density comes no closer, what is above it parts."""
        tolerance = min(self.options.max_divergence_error, self.feedback * self.options.max_density_error)
        return self.solve_velocities(dt, self.feedback, tolerance)

    def remove_compression(self, dt: float) -> SolveResult:
        """Displacements beside dt v that leave no particle above rest density, and none below it inside liquids."""
        p = self.world.particles
        p.shift.fill(0.0)
        p.q.fill(0.0)
        self.predict(dt, 1.0, 1.0, velocities=False)
        result = self.iterate(self.pressure_sweeps(p.shift, 1.0), self.options.max_density_error, 0.0, 0)
        if self.tense:
            correction.spread(p.n, dt, self.world.spacing, p.inside, p.inverse_density, p.p, p.lopsided, p.shift)
        if result.iterations or self.tense or self.friction:
            self.free.keep_angular_momentum()
        return result
