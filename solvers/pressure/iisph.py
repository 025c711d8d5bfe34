"""Implicit incompressible SPH (Ihmsen et al. 2014): one solve each step, for velocities that end it at rest density.

It is the first solve of `dfsph` with a density error as its source, where that leaves it to displacements. This saves
the second solve. The price is what is said there: a density error comes back as velocity. Inside liquids, where errors
of either sign are undone, only the share FEEDBACK of what is within the tolerance anyway is undone in a step. With all
of it still water would simmer at 0.1 m/s; so it comes to rest, and such errors die away within ten steps.

Pressure is unilateral at surfaces (Neder 2024, Eq. 5): it pushes, and matter that is thinner than at rest moves freely.

The original starts from half the pressures of the last step and takes Jacobi sweeps of length 0.5. Here it starts from
all of them, and the sweeps are those of `projection`.
"""

from collections.abc import Callable

from pliant.core.world import World
from pliant.solvers.pressure.projection import Projection, ProjectionOptions
from pliant.solvers.stage import SolveResult

FEEDBACK = 0.1  # share of what density error may be left that velocities inside liquids undo in a step


class IISPH(ProjectionOptions):
    """Pressure solver after Ihmsen et al. 2014."""

    def solver(self, world: World) -> "IISPHSolver":
        return IISPHSolver(self, world)


class IISPHSolver(Projection):
    """Velocities only: `particles.shift` stays zero."""

    def solves(self) -> dict[str, Callable[[float], SolveResult]]:
        return {"density": lambda dt: self.remove_compression(dt)}

    def remove_compression(self, dt: float) -> SolveResult:
        """Velocities by which no particle is above rest density at the end of the step."""
        error = self.options.max_density_error
        result = self.solve_velocities(dt, 1.0, error, FEEDBACK, slack=error)
        if self.friction:
            self.free.keep_angular_momentum()
        return result
