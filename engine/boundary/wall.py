"""One wall: its surface, where it is, and how it moves."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import taichi as ti

from pliant.boundary.volume_map import VolumeMap
from pliant.core.backend import vec3

FASTEST = 1e6  # [m/s] that a wall may move at,
FASTEST_SPIN = 1e6  # and [rad/s] turn
STATE = ("shift", "rotation", "velocity", "spin", "force", "torque")  # of each wall, in checkpoints


@dataclasses.dataclass
class WallStates:
    """Where walls are and how they move: row k is of the k-th."""

    shift: np.ndarray  # (n, 3) of the pivots since the start [m]
    rotation: np.ndarray  # (n, 3, 3) since the start
    velocity: np.ndarray  # (n, 3) of the pivots [m/s]
    spin: np.ndarray  # (n, 3) [rad/s]
    force: np.ndarray  # (n, 3) of the last step [N],
    torque: np.ndarray  # (n, 3) and its moment about the pivot [N m]

    @classmethod
    def at_rest(cls, count: int) -> "WallStates":
        zeros = [np.zeros((count, 3)) for _ in range(5)]
        return cls(zeros[0], np.tile(np.eye(3), (count, 1, 1)), *zeros[1:])

    @classmethod
    def of(cls, walls: "Sequence[Wall]") -> "WallStates":
        """Those of some walls in one, in which the walls have theirs from now on."""
        all_ = cls.at_rest(len(walls))
        for k, wall in enumerate(walls):
            for name in STATE:
                getattr(all_, name)[k] = getattr(wall, name)
            wall.states, wall.number = all_, k
        return all_


def _row(name: str) -> Any:
    """A property that is the wall's row of one of the arrays of `WallStates`."""

    def get(wall: "Wall") -> np.ndarray:
        return getattr(wall.states, name)[wall.number]  # type: ignore[no-any-return]

    def put(wall: "Wall", value: np.ndarray) -> None:
        getattr(wall.states, name)[wall.number] = value

    return property(get, put)


@dataclasses.dataclass
class Wall:
    """One boundary body: its map or its planes, where it is and how it moves.

    `motion(t)` gives its velocity [m/s], or a pair of velocity and angular velocity [rad/s] about `pivot`.
    """

    name: str
    map: VolumeMap | None
    planes: np.ndarray | None  # (k, 2, 3): a point and the outward normal of each half-space the wall consists of
    no_slip: bool
    pivot: np.ndarray
    motion: Callable[[float], object] | None = None
    patch_force: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros((0, 3)))  # on each of its patches [N]
    wetting: float = 0.0  # cosine of its contact angle
    extent: float = 0.0  # largest distance of the surface from the pivot: spin times this bounds the surface speed
    inside_out: bool = False  # whether it is all that is outside of its shape
    mass: float = np.inf  # [kg]; that of a rigid body is finite, and its pivot is its centre of mass
    inertia: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros((3, 3)))  # about it, as built [kg m^2]
    restitution: float = 0.0  # speed after an impact over that before
    free: bool = False  # moves as forces make it: a rigid body that is neither held nor led, or a link of a mechanism
    states: WallStates = dataclasses.field(default_factory=lambda: WallStates.at_rest(1))
    number: int = 0  # its row there

    shift, rotation, velocity, spin, force, torque = (_row(name) for name in STATE)

    def set_velocity(self, t: float) -> None:
        """Takes the prescribed velocity at time t; what nothing moves is at rest, what is free keeps its own."""
        if self.free:
            return
        self.velocity, self.spin = rigid_velocity(np.zeros(3) if self.motion is None else self.motion(t))

    def advance(self, dt: float) -> None:
        """Moves by one step: a translation and an exact rotation about the spin axis (Rodrigues)."""
        self.shift = self.shift + dt * self.velocity
        angle = float(np.linalg.norm(self.spin)) * dt
        if angle:
            a = self.spin / np.linalg.norm(self.spin)
            K = np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])
            self.rotation = (np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K) @ self.rotation

    @property
    def moved(self) -> bool:
        """Whether it moves, or is elsewhere than it was built."""
        return self.motion is not None or bool(self.shift.any()) or not np.array_equal(self.rotation, np.eye(3))

    def placed(self, points: np.ndarray) -> np.ndarray:
        """Points of the wall as it was built, where they are now."""
        return (points - self.pivot) @ self.rotation.T + self.pivot + self.shift

    def unplaced(self, points: np.ndarray) -> np.ndarray:
        """Points as the wall sees them that is still where it was built: the inverse of `placed`."""
        return (points - self.pivot - self.shift) @ self.rotation + self.pivot

    def pose(self) -> np.ndarray:
        """The (4, 4) matrix that takes points of the wall as it was built to where they are now."""
        matrix = np.eye(4)
        matrix[:3, :3], matrix[:3, 3] = self.rotation, self.pivot + self.shift - self.rotation @ self.pivot
        return matrix


def rigid_velocity(value: object) -> tuple[np.ndarray, np.ndarray]:
    """Velocity and angular velocity from what a user's motion function returned."""
    array = np.asarray(value, dtype=float)
    if array.shape not in ((3,), (2, 3)) or not np.isfinite(array).all():
        raise ValueError(
            f"a motion must return a finite velocity (3 numbers) or a pair (velocity, angular velocity), got {value!r}"
        )
    return (array, np.zeros(3)) if array.shape == (3,) else (array[0], array[1])


@ti.func
def stopped(slip: vec3, out: vec3, friction: ti.f32):
    """What keeps something that slips past a wall from entering it: the change of velocity along the wall's normal, and
    by Coulomb's law that of its sliding."""
    stop = ti.min(slip.dot(out), 0.0)
    sliding = slip - slip.dot(out) * out
    cut = ti.min(-friction * stop / ti.max(sliding.norm(), 1e-12), 1.0)
    return -stop * out, -cut * sliding
