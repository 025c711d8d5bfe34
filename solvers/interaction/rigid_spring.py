"""A rigid body that is held at a point, by the spring of `grip` (1).

The mass M there is that of the body and of all that is joined to it, so that a chain is lifted by any of its links. The
step is backward Euler in the spring: with the arm r of the point, the matrix K by which a force there moves it,

    u' = u + dt (K f + g),    f = k (e - dt u') - c u',    K = 1 / m - [r] J^-1 [r],                      (3)

three equations for f. What else acts is not foreseen, so that the hand is weaker on a link than (1) says, by up to a
factor of 1 + dt (c + dt k) / m, but it is stable for any mass and step. The force, which is at most F_max, acts evenly
through the step, as weight does: what hangs is at rest, and what is dragged stays on the floor.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pliant.boundary.wall import Wall
from pliant.core.world import World
from pliant.solvers.elasticity.base import Elasticity
from pliant.solvers.interaction.grip import STRENGTH, Grip, bounded
from pliant.solvers.rigid.articulation import cross_matrix
from pliant.solvers.rigid.store import RigidBodies

TWIST = 2.0  # [1/s]: rate at which the hand slows the turning of what it holds; it swings a few times in two seconds


class RigidSpring(Grip):
    """A free rigid body, by a spring to a point of it. `force` is what it pulled with in the last step [N], `torque`
    [N m] what it did to the body about its centre of mass."""

    def __init__(self, world: World, settings: Any, wall: Wall, point: np.ndarray, let_go: Callable[[Grip], None]):
        super().__init__(world, settings, point, wall.extent, let_go)
        self.name_held = wall.name
        self.bind(world, settings, None)
        arm = bounded((point - wall.pivot - wall.shift) @ wall.rotation, wall.extent)
        self._arm = arm  # of the point, as the body was built
        self.force, self.torque = np.zeros(3), np.zeros(3)
        self._target = self.point

    def bind(self, world: World, settings: Any, elasticity: Elasticity | None) -> None:
        super().bind(world, settings, elasticity)
        wall, store = world.walls.find(self.name_held), world.stores[RigidBodies.name]
        assert wall is not None and isinstance(store, RigidBodies)
        self.wall, self.store = wall, store
        self.mass = sum(world.walls.walls[k].mass for k in store.joined(wall.number))
        self.strongest = STRENGTH * self.mass * self.gravity  # F_max [N]

    @property
    def point(self) -> np.ndarray:
        wall = self.wall
        place: np.ndarray = wall.pivot + wall.shift + wall.rotation @ self._arm
        return place

    def run(self, dt: float) -> None:
        """Says what the hand does in this step; the stage of rigid bodies acts on it."""
        wall = self.wall
        self.force, self.torque = np.zeros(3), np.zeros(3)
        if not wall.free:
            return
        arm, R = wall.rotation @ self._arm, wall.rotation
        inertia = R @ wall.inertia @ R.T
        turned, lever = np.linalg.inv(inertia), cross_matrix(arm)
        K = np.eye(3) / wall.mass - lever @ turned @ lever
        k, c = self.mass * self.w**2, 2 * self.mass * self.w
        way = self.within(self.world.neighbors.shortest(self._target - self.point))
        u = wall.velocity + np.cross(wall.spin, arm) + dt * self.world.gravity
        force = np.linalg.solve(np.eye(3) + dt * (c + dt * k) * K, k * way - (c + dt * k) * u)  # (3)
        self.force = bounded(force, self.strongest)
        held = inertia - wall.mass * lever @ lever  # about the point
        spin = np.linalg.solve(np.eye(3) + TWIST * dt * turned @ held, wall.spin)  # backward Euler
        self.torque = np.cross(arm, self.force) - TWIST * held @ spin
        self.store.pulls[wall.number] += np.concatenate([self.force, self.torque])

    def max_dt(self) -> float:
        way = self.within(self.world.neighbors.shortest(self._target - self.point))
        return self.step_at(0.5 * self.w * float(np.linalg.norm(way)))
