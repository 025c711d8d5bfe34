"""The robots of a scene: how they stand and move, which checkpoints keep to the last bit."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pliant.core.store import Store
from pliant.core.world import BodySamples, World
from pliant.solvers.robots.mechanism import Mechanism


class Robots(Store):
    """Mechanisms. Where their links are stands with the walls as well."""

    name = "robots"

    @classmethod
    def wanted(cls, materials: Sequence[Any], settings: Any) -> bool:
        return bool(getattr(settings, "robots", ()))

    @classmethod
    def build(cls, world: World, bodies: Sequence[BodySamples]) -> "Robots":
        return cls(world, [body for body in bodies if body.material.is_wall])

    def __init__(self, world: World, bodies: Sequence[BodySamples]):
        self.articulations: list[Mechanism] = []
        for spec in world.robots:
            parts = [k for k, body in enumerate(bodies) if getattr(body.material, "robot", None) == spec.name]
            rows = np.array([k for k in parts if bodies[k].material.driven], int)
            numbers = np.array([bodies[k].material.geom for k in rows], int)
            self.articulations.append(Mechanism(world, spec, rows, np.array(parts, int), numbers))
        self._good: dict[str, np.ndarray] = {}

    @property
    def names(self) -> list[str]:
        return [robot.spec.name for robot in self.articulations]

    def robot(self, name: str) -> Mechanism:
        return self.articulations[self.names.index(name)]

    # --- the protocol of stores -------------------------------------------------------------------------

    def save(self) -> dict[str, np.ndarray]:
        return {f"{robot.spec.name}/{name}": array for robot in self.articulations
                for name, array in robot.save().items()}  # fmt: skip

    def restore(self, arrays: Mapping[str, np.ndarray], partly: bool = False) -> None:
        for robot in self.articulations:
            own = f"{robot.spec.name}/"
            robot.restore({key.removeprefix(own): value for key, value in arrays.items() if key.startswith(own)})

    def backup(self) -> None:
        self._good = self.save()

    def rollback(self) -> None:
        self.restore(self._good)
