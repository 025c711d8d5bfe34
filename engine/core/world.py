"""What all solvers share: the stores, the neighbors, the materials, and the numbers of the scene."""

import dataclasses
from typing import Any

import numpy as np
import taichi as ti

from pliant.boundary.walls import Walls
from pliant.core.neighbors import Neighbors
from pliant.core.particles import Particles
from pliant.core.store import Store
from pliant.geometry import Shape


class Coupling:
    """Particles that cannot follow pressure each by itself: parts of a rigid body, the surface of an elastic one.

    Pressures q accelerate free particles by a = -inverse_density gradient(q). `constrain` makes of it what those who
    move together really do. The pressure system K = divergence . constrain . gradient stays symmetric if `constrain`
    is, in the inner product weighted by mass.

    A `diagonal` coupling scales the acceleration of each particle by itself: it keeps what it makes of inverse
    densities in `particles.effective_inverse_density`, which the operator takes at no cost, and `constrain` is not
    called.
    """

    diagonal: bool = False

    def constrain(self, a: ti.Ndarray) -> None:
        """Replaces accelerations (or displacements) of free particles by those of bound ones, in place."""
        raise NotImplementedError


@dataclasses.dataclass
class BodyGroup:
    """A body of particles as solvers know it; its number is its place in `World.bodies`, and in `particles.body`."""

    name: str
    shape: Shape
    material: int  # that its particles begin with, in the table of materials
    spacing: float  # distance of its particles at rest [m]
    volume_each: float  # of a particle [m^3]
    colors: str = "water"  # colour map in which it is drawn


@dataclasses.dataclass
class BodySamples:
    """A body at the start, whatever store it is for: the points that fill it, and what the scene says of it."""

    name: str
    shape: Shape
    material: Any
    x: np.ndarray  # (n, 3) [m]; a wall has none
    volume_each: float  # of a point [m^3]
    spacing: float  # of the points at rest [m]
    velocity: np.ndarray  # (3,) [m/s]
    colors: str = "water"


def wall_distance(body: Any, points: np.ndarray) -> np.ndarray:
    """Distance to the surface of a wall (a scene's body, or its samples), negative inside its solid."""
    phi = body.shape.signed_distance(points)
    return -phi if body.material.inside_out else phi


@dataclasses.dataclass
class World:
    """The state of one simulation, without a clock's opinion on what happens next."""

    particles: Particles
    neighbors: Neighbors
    walls: Walls
    spacing: float  # particle diameter d [m]
    gravity: np.ndarray  # [m/s^2]
    materials: list[Any]  # all that can occur, in the order of `particles.material`
    bodies: list[BodyGroup]
    time: float = 0.0  # [s]
    low: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(3))  # corners of the box that all particles
    high: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(3))  # were in at the last look [m]
    cache: dict[str, list] = dataclasses.field(default_factory=dict)  # takes long to make, outlasts changed parameters
    stores: dict[str, Store] = dataclasses.field(default_factory=dict)  # all, by name; particles and walls among them
    couplings: list[Coupling] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        for store in (self.particles, self.walls):
            self.stores.setdefault(store.name, store)

    @property
    def h(self) -> float:
        """Support of the smoothing function [m]."""
        return self.neighbors.h

    def body_number(self, name: str) -> int | None:
        """The number of the body of particles of this name, None if there is none."""
        return next((k for k, body in enumerate(self.bodies) if body.name == name), None)
