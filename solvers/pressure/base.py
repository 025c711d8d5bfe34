"""What a pressure solver is to the rest of the engine."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from pliant.core.fields import Field
from pliant.core.options import Options
from pliant.core.world import World
from pliant.solvers.stage import SolveResult, Stage


class PressureOptions(Options):
    """Base of what `Scene(pressure=...)` takes: settings of a method, what it can do, and how to make its solver."""

    solves_friction: ClassVar[bool] = False  # finds the friction of sand together with the pressure
    couples: ClassVar[bool] = False  # lets couplings have their say (`world.Coupling`), which elastic bodies need

    def cannot(self, materials: Sequence[Any]) -> list[str]:
        """What a scene of these materials asks of it that it cannot do, a sentence each."""
        name, found = type(self).__name__, []
        if not self.solves_friction and any(material.has_yield_stress for material in materials):
            found.append(f"{name} does not solve for friction, which sand needs; use pl.DFSPH() or pl.IISPH()")
        if not self.couples and any(material.elastic for material in materials):
            found.append(f"{name} cannot couple with elastic bodies; use pl.DFSPH() or pl.IISPH()")
        return found

    @staticmethod
    def fields(materials: Sequence[Any]) -> tuple[Field, ...]:
        """Arrays that the method keeps with particles of these materials; `p` [Pa] and `shift` [m], a displacement
        beside dt v, are expected of all."""
        raise NotImplementedError

    def solver(self, world: World) -> "PressureSolver":
        raise NotImplementedError


class PressureSolver:
    """Base of the solvers. In each step `prepare`, `warm_start` and then all `solves` are called, in this order."""

    solves_friction: bool = False  # whether this scene's friction, also that of walls, is found with the pressure
    world: World

    def prepare(self) -> None:
        """Takes over the new neighbors and walls."""
        raise NotImplementedError

    def warm_start(self, dt: float) -> None:
        """Lets the pressures of the last step act on the velocities."""
        raise NotImplementedError

    @property
    def idle(self) -> bool:
        """Whether nothing presses on anything in this step: then there is nothing to solve for."""
        return any(coupling.idle for coupling in self.world.couplings)

    def solves(self) -> dict[str, Callable[[float], SolveResult]]:
        """The solves of a step dt [s] by name, in their order. They change `particles.v` and find `particles.p` and
        `particles.shift`. The error of the last one is that of the density at the end of the step."""
        raise NotImplementedError

    def max_dt(self) -> float:
        """Bound on the time step [s]."""
        return float("inf")

    def errors(self, results: Mapping[str, SolveResult]) -> dict[str, SolveResult]:
        """Which of the results tell of the "density" that is left, and of the "divergence" of the velocities: by
        default both those of the last solve."""
        last = results.get(list(self.solves())[-1], SolveResult(0))
        return {"density": last, "divergence": last}

    def stages(self) -> list[Stage]:
        """The stages of the step that it stands for."""
        return [WarmStart(self), *(Solve(self, k, *item) for k, item in enumerate(self.solves().items()))]


class WarmStart(Stage):
    """Prepares the pressure system, and lets the pressures of the last step act on the velocities."""

    name = place = "warm start"

    def __init__(self, solver: PressureSolver):
        super().__init__(solver.world, None)
        self.solver = solver

    def run(self, dt: float) -> None:
        self.solver.prepare()
        if not self.solver.idle:
            self.solver.warm_start(dt)

    def max_dt(self) -> float:
        return self.solver.max_dt()


class Solve(Stage):
    """One of the solves of a pressure solver."""

    name, place = "pressure", "pressure"

    def __init__(self, solver: PressureSolver, rank: int, name: str, solve: Callable[[float], SolveResult]):
        super().__init__(solver.world, None)
        self.name, self.rank, self.solver = name, rank, solver  # type: ignore[misc]
        self._solve: Callable[[float], SolveResult] = solve

    def run(self, dt: float) -> None:
        if self.solver.idle:
            p = self.world.particles
            p.p.fill(0.0)
            p.shift.fill(0.0)
        self.results[self.name] = SolveResult(0) if self.solver.idle else self._solve(dt)
