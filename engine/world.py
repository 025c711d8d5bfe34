"""What all solvers share: the particles and their neighbours, the walls, and the numbers of the scene."""

import dataclasses

import numpy as np

from pliant.neighbors import Neighbors
from pliant.particles import Particles
from pliant.walls import Walls


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
    time: float = 0.0  # [s]

    @property
    def h(self) -> float:
        """Support of the smoothing function [m]."""
        return self.neighbors.h
