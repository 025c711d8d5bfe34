"""A hand that takes hold of things: it pulls elastic bodies (see `grab_spring`) and rigid ones (`rigid_spring`), stirs
what flows, and carries walls.

Walls, and the hand that stirs, are led by the spring of `grip` (1) as if nothing resisted. Its backward Euler step is

    u' = (u + dt w^2 e) / (1 + dt w)^2.

Around the hand, what flows takes on its velocity at the rate `GRASP`, before pressure makes the flow incompressible.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import taichi as ti

from pliant.boundary.wall import Wall
from pliant.core.backend import Ints, Reals, Vectors, vec3
from pliant.core.neighbors import difference
from pliant.core.world import World
from pliant.errors import PliantError
from pliant.solvers.elasticity.base import Elasticity
from pliant.solvers.interaction.grab_spring import GrabSpring
from pliant.solvers.interaction.grip import Grip, checked_point
from pliant.solvers.interaction.rigid_spring import RigidSpring
from pliant.solvers.stage import material_table

STIR, LADLE = 5.0, 0.15  # spacings, and share of the size of what flows: the radius that is stirred, the larger one
GRASP = 60.0  # [1/s]: rate at which what flows takes on the velocity of the hand


@ti.kernel
def _stir(n: ti.i32, wraps: ti.template(), period: Vectors, material: Ints, fluid_like: Reals, inverse_density: Reals,
          x: Vectors, hand: Vectors, radius: ti.f32, gain: ti.f32, v: Vectors):  # fmt: skip
    """`hand` is where it is and how it moves. Its hold is full in the inner half and fades to nothing at the radius."""
    for i in range(n):
        if fluid_like[material[i]] * inverse_density[i] > 0.0:
            share = 2.0 - 2.0 * difference(x[i], hand[0], wraps, period).norm() / radius
            if share > 0.0:
                v[i] += ti.min(share, 1.0) * gain * (hand[1] - v[i])


class Stir(Grip):
    """What flows around the hand, whatever bodies it belongs to, takes on the velocity of the hand."""

    def __init__(self, world: World, settings: Any, number: int, point: np.ndarray, radius: float | None,
                 let_go: Callable[[Grip], None]):  # fmt: skip
        p = world.particles
        size = float(p.read("V", p.rows_of(number)).sum(dtype=float)) ** (1 / 3)
        super().__init__(world, settings, point, size, let_go)
        self.radius = max(STIR * world.spacing, LADLE * size) if radius is None else radius
        self._point, self.velocity, self._hand = point, np.zeros(3), ti.ndarray(vec3, 2)
        self.bind(world, settings, None)

    def bind(self, world: World, settings: Any, elasticity: Elasticity | None) -> None:
        super().bind(world, settings, elasticity)
        self._fluid_like = material_table(world, "fluid_like")

    @property
    def point(self) -> np.ndarray:
        return self._point.copy()

    def run(self, dt: float) -> None:
        p, near = self.world.particles, self.world.neighbors
        self.velocity = self.led(self.velocity, self._target - self._point, dt)
        self._hand.from_numpy(np.array([self._point, self.velocity], np.float32))
        _stir(p.n, near.wraps, near.period, p.material, self._fluid_like, p.inverse_density, p.x, self._hand,
              self.radius, 1 - math.exp(-GRASP * dt), p.v)  # fmt: skip
        self._point = self._point + dt * self.velocity

    def max_dt(self) -> float:
        way = float(np.linalg.norm(self.within(self._target - self._point)))
        return self.step_at(max(0.5 * self.w * way, float(np.linalg.norm(self.velocity))))


class Carry(Grip):
    """A wall, or a rigid body that is fixed, led without regard to what is in its way. It does not turn, and particles
    feel its velocity as that of a wall with a motion of its own."""

    def __init__(self, world: World, settings: Any, wall: Wall, point: np.ndarray, let_go: Callable[[Grip], None]):
        if wall.motion is not None:
            raise PliantError(f"{wall.name} has a motion of its own, or is held already, and cannot be grabbed")
        if not wall.extent:
            raise PliantError(f"{wall.name} is infinite and cannot be grabbed")
        super().__init__(world, settings, point, wall.extent, let_go)
        self.bind(world, settings, None)
        self.wall, self._taken_at, self._asked = wall, point - wall.shift, world.time
        wall.motion = self._motion

    @property
    def point(self) -> np.ndarray:
        return self._taken_at + self.wall.shift

    def _motion(self, t: float) -> np.ndarray:
        """The velocity from time t on. It is asked for several times in a step, and changes once."""
        dt, self._asked = max(t - self._asked, 0.0), t
        return self.led(self.wall.velocity, self._target - self.point, dt)

    def release(self) -> None:
        if self.held:
            self.wall.motion = None
            self.wall.set_velocity(self.world.time)
        super().release()


def take(world: World, settings: Any, elasticity: Elasticity | None, name: str, point: Any, radius: Any,
         let_go: Callable[[Grip], None]) -> Grip:  # fmt: skip
    """The grip that fits a body (see `Simulation.grab`)."""
    point = checked_point("point", point)
    if radius is not None and not (is_number(radius) and 0 < radius < math.inf):
        raise PliantError(f"radius must be a positive number or None, got {radius!r}")
    number = world.body_number(name)
    if number is None:
        wall = world.walls.find(name)
        if wall is None:
            raise PliantError(f"{name} can be neither pulled, nor stirred, nor carried, and so not be grabbed")
        if wall.free and not math.isfinite(wall.mass):
            raise PliantError(f"{wall.name} is a link of a robot, which its own controls move, and cannot be grabbed")
        held = RigidSpring if wall.free else Carry
        return held(world, settings, wall, point, let_go)
    if elasticity is not None and number in elasticity.solids:
        return GrabSpring(world, settings, elasticity, number, point, radius, let_go)
    return Stir(world, settings, number, point, radius, let_go)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
