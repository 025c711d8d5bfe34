"""What all solvers share: the particles and their neighbours, the walls, and the numbers of the scene."""

import dataclasses
from typing import Any

import numpy as np

from pliant.boundary.walls import Walls
from pliant.core.neighbors import Neighbors
from pliant.core.particles import Particles


@dataclasses.dataclass
class World:
    """The state of one simulation, without a clock's opinion on what happens next."""

    particles: Particles
    neighbors: Neighbors
    walls: Walls
    spacing: float  # particle diameter d [m]
    gravity: np.ndarray  # [m/s^2]
    materials: tuple  # one for each body, in the order of `particles.body`
    names: tuple[str, ...]  # of these bodies
    spacings: tuple[float, ...]  # distances of their particles at rest [m]
    time: float = 0.0  # [s]
    kept: dict[str, list] = dataclasses.field(default_factory=dict)  # takes long to make, outlasts changed parameters

    def replace_material(self, body: int, material: Any) -> None:
        """Gives one body another material."""
        self.materials = (*self.materials[:body], material, *self.materials[body + 1 :])

    @property
    def h(self) -> float:
        """Support of the smoothing function [m]."""
        return self.neighbors.h
