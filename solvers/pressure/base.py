"""What a pressure solver is to the rest of the engine."""

import dataclasses
from typing import Any

from pliant.core.options import Options
from pliant.core.particles import Field
from pliant.core.world import World


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a solve ended: iterations, mean and largest compression left."""

    iterations: int
    mean: float
    largest: float
    converged: bool


class PressureOptions(Options):
    """Base of what `Scene(pressure=...)` takes: the settings of a method, and how to make its solver."""

    @staticmethod
    def fields(materials: tuple) -> tuple[Field, ...]:
        """Arrays that the method keeps with particles of these materials; `p` [Pa] and `shift` [m] are expected of
        all."""
        raise NotImplementedError

    def solver(self, world: World) -> Any:
        """An object with `prepare()`, `guess(dt)`, `remove_divergence(dt)` and `remove_compression()`, called in that
        order."""
        raise NotImplementedError
