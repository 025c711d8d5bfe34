"""What all solvers share: the stores, the neighbors, the materials, and the numbers of the scene."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import taichi as ti

from pliant.boundary.walls import Walls
from pliant.core.frictions import Frictions
from pliant.core.neighbors import Neighbors
from pliant.core.particles import DRAINED, EMITTED, INITIAL, Particles
from pliant.core.store import Store
from pliant.geometry import Shape


class Coupling:
    """Particles that cannot follow pressure each by itself: parts of a rigid body, the surface of an elastic one.

    Pressures q accelerate free particles by a = -inverse_density gradient(q). `constrain` makes of it what those who
    move together really do. The pressure system K = divergence . constrain . gradient stays symmetric if `constrain`
    is, in the inner product weighted by mass.

    `after_warm_start` says that a stage of its own answers all that acts before the solve, the pressures of the last
    step among it. `idle` says that all particles are its own and that nothing presses on them in this step.
    """

    after_warm_start: bool = False
    idle: bool = False

    def prepare(self) -> bool:
        """Hears that the system was made anew; returns whether it has a say in this step."""
        return True

    def warm_start(self, dt: float) -> None:
        """Lets act on `particles.v` what it has found itself in the last step of dt [s]."""

    def tell_motion(self) -> None:
        """Writes to `particles.body_response` what its motion in this step, so far, does to density ratios [1/s], where
        it is no motion of particles."""

    def foresee(self, moving: bool, changes: ti.Ndarray, least: float, step: float) -> None:
        """Writes to `particles.body_response` what it will make of the residuals, if all pressures do their best to
        remove them: then these leave it to it. `constrain` writes there what it has done. `changes` is where the
        changes of pressures will stand; those with a diagonal below the `least` have none. The `step` is the length of
        the sweep along the residuals, zero if pressures are not all that it changes."""

    def push(self, dt: float, step: float) -> None:
        """Adds to `particles.a` what it finds itself beside the pressures, by one step along its residuals."""

    def tally(self, dt: float, step: float, least: float, sums: np.ndarray) -> None:
        """Adds what `particles.a` has made of that to the sums of a sweep (`pressure.system`)."""

    def unsettled(self, dt: float, tolerance: float) -> bool:
        """Whether it needs another sweep, beside what the density error says."""
        return False

    def finish(self, dt: float) -> None:
        """Hears that the velocities are found."""

    def constrain(self, a: ti.Ndarray, moving: bool = True) -> None:
        """Replaces accelerations (or displacements) of free particles by those of bound ones, in place: velocities if
        `moving`, or displacements beside these, which take compression out of fluids."""
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
    fixed: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, bool))  # (n,) has a prescribed motion


def wall_distance(body: Any, points: np.ndarray) -> np.ndarray:
    """Distance to the surface of a wall (a scene's body, or its samples), negative inside its solid."""
    phi = body.shape.exact_distance(points)
    return -phi if body.material.inside_out else phi


class Filler(Protocol):
    """What has fields of the particles that it fills by itself."""

    def fill(self, world: "World", rows: np.ndarray) -> None: ...


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
    frictions: Frictions = dataclasses.field(default_factory=lambda: Frictions({}, ()))  # of all pairs of bodies
    cache: dict[str, list] = dataclasses.field(default_factory=dict)  # takes long to make, outlasts changed parameters
    stores: dict[str, Store] = dataclasses.field(default_factory=dict)  # all, by name; particles and walls among them
    couplings: list[Coupling] = dataclasses.field(default_factory=list)
    sources: tuple[Any, ...] = ()  # by which particles come and go: emitters, drains, arrivals of whole bodies
    probes: tuple[Any, ...] = ()  # what is measured, and where
    robots: tuple[Any, ...] = ()  # mechanisms whose links are walls
    fillers: Sequence[Filler] = ()  # give new particles their first values: the kinds of stages that the scene has

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

    # --- particles come and go --------------------------------------------------------------------------

    def waiting_bodies(self) -> dict[int, np.ndarray]:
        """The bodies that are to appear later, by number, and where their particles (n, 3) will be [m]."""
        return {number: x for store in self.stores.values() for number, x in store.waiting_bodies().items()}

    def make_particles(self, number: int, x: np.ndarray, v: np.ndarray, fixed: np.ndarray | None = None,
                       account: str = INITIAL) -> np.ndarray:  # fmt: skip
        """Appends particles of a body, by its number, at places x (n, 3) [m] with velocities v (n, 3) [m/s], some of
        them `fixed`; returns their rows."""
        group, n = self.bodies[number], len(x)
        density = float(self.materials[group.material].density)
        V = np.full(n, group.volume_each, np.float32)
        rows = self.particles.add(number, {
            "x": x, "v": v, "V": V, "m": V.astype(float) * density,  # as `changes.with_masses` has it, to the last bit
            "inverse_density": np.where(np.zeros(n, bool) if fixed is None else fixed, 0.0, 1.0 / density),
            "material": np.full(n, group.material),
        })  # fmt: skip
        for filler in self.fillers:
            filler.fill(self, rows)
        self.particles.enter(account, np.full(n, number))
        return rows

    def add_particles(self, number: int, x: np.ndarray, v: np.ndarray,
                      fixed: np.ndarray | None = None) -> np.ndarray:  # fmt: skip
        """The same while the scene runs: other stores hear of it."""
        rows = self.make_particles(number, x, v, fixed, EMITTED)
        for store in self.stores.values():
            store.particles_added(number, x, v)
        return rows

    def remove_particles(self, rows: np.ndarray) -> None:
        """Takes particles out, by their rows."""
        p = self.particles
        x, body = p.read("x", rows), p.read("body", rows)
        for number in np.unique(body):
            for store in self.stores.values():
                store.particles_removed(int(number), x[body == number])
        p.enter(DRAINED, body)
        p.remove(rows)
