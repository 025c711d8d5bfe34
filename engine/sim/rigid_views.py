"""Rigid bodies and joints of a running simulation: `sim[crate]` and `sim[hinge]`."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.transform import Rotation

from pliant.boundary.wall import Wall
from pliant.errors import PliantError
from pliant.scene.scene import FASTEST, FASTEST_SPIN, Body, is_vector
from pliant.sim.stats import angular_momentum, kinetic_energy, world_inertia
from pliant.sim.views import WallView
from pliant.solvers.rigid.options import Joint

if TYPE_CHECKING:
    from pliant.sim.simulation import Simulation

STAGE = "rigid"  # that moves rigid bodies
ORTHOGONAL = 1e-3  # how far R R^T of a rotation that is assigned may be from 1


def known_to_stage(sim: "Simulation", table: str) -> dict[Any, Any]:
    """A table of the stage that moves rigid bodies: nothing before its first step."""
    return next((getattr(stage, table, {}) for stage in sim.stages if stage.name == STAGE), {})


class RigidView(WallView):
    """`sim[crate]`: where a rigid body is, how it moves, and what acts on it."""

    _assignable = ("position", "rotation", "quaternion", "velocity", "spin")

    def __init__(self, sim: "Simulation", wall: Wall, body: Body):
        super().__init__(wall, body)
        self._sim = sim

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and name not in self._assignable:
            allowed = ", ".join(self._assignable[:-1]) + f" and {self._assignable[-1]}"
            raise PliantError(f"{self._body.name}.{name} cannot be assigned; {allowed} can")
        object.__setattr__(self, name, value)

    # --- where it is and how it moves -------------------------------------------------------------------

    @property
    def position(self) -> np.ndarray:
        """Where its centre of mass is [m]."""
        return self._wall.pivot + self._wall.shift

    @position.setter
    def position(self, value: Any) -> None:
        self._write("shift", self._vector("position", value, math.inf, "m") - self._wall.pivot)

    @property
    def rotation(self) -> np.ndarray:
        """The matrix (3, 3) that turns it from how it was built."""
        return self._wall.rotation.copy()

    @rotation.setter
    def rotation(self, value: Any) -> None:
        R = _array(value)
        if R.shape != (3, 3) or not np.abs(R @ R.T - np.eye(3)).max() <= ORTHOGONAL or not np.linalg.det(R) > 0:
            raise PliantError(f"{self._body.name}.rotation needs a rotation matrix (3, 3), got {value!r}")
        self._write("rotation", Rotation.from_matrix(R).as_matrix())

    @property
    def quaternion(self) -> np.ndarray:
        """The same as a unit quaternion (x, y, z, w)."""
        return np.asarray(Rotation.from_matrix(self._wall.rotation).as_quat())

    @quaternion.setter
    def quaternion(self, value: Any) -> None:
        q = _array(value)
        if q.shape != (4,) or not np.isfinite(q).all() or not q.any():
            raise PliantError(f"{self._body.name}.quaternion needs four numbers (x, y, z, w), not all zero, got "
                              f"{value!r}")  # fmt: skip
        self._write("rotation", Rotation.from_quat(q).as_matrix())

    @property
    def velocity(self) -> np.ndarray:
        """Velocity of its centre of mass [m/s]."""
        return self._wall.velocity.copy()

    @velocity.setter
    def velocity(self, value: Any) -> None:
        self._only_free("velocity")
        self._write("velocity", self._vector("velocity", value, FASTEST, "m/s"))

    @property
    def spin(self) -> np.ndarray:
        """Angular velocity [rad/s]."""
        return self._wall.spin.copy()

    @spin.setter
    def spin(self, value: Any) -> None:
        self._only_free("spin")
        self._write("spin", self._vector("spin", value, FASTEST_SPIN, "rad/s"))

    def _vector(self, name: str, value: Any, limit: float, unit: str) -> np.ndarray:
        if not is_vector(value, limit):
            within = "finite numbers" if math.isinf(limit) else f"numbers within {limit:g} {unit}"
            raise PliantError(f"{self._body.name}.{name} needs three {within}, got {value!r}")
        return np.array(value, dtype=float)

    def _only_free(self, name: str) -> None:
        if not self._wall.free:
            raise PliantError(f"{self._body.name} is held or led, so that its {name} is not its own; "
                              f"sim[{self._body.name!r}].release() frees it")  # fmt: skip

    def _write(self, name: str, value: np.ndarray) -> None:
        setattr(self._wall, name, value)
        self._sim.measure()

    # --- what it has ------------------------------------------------------------------------------------

    @property
    def mass(self) -> float:
        """Mass [kg]."""
        return float(self._wall.mass)

    @property
    def inertia(self) -> np.ndarray:
        """Inertia (3, 3) about its centre of mass, along the world's axes, as it lies now [kg m^2]."""
        return world_inertia(self._wall)

    @property
    def momentum(self) -> np.ndarray:
        """Momentum (3,) [kg m/s]."""
        return self._wall.mass * self._wall.velocity

    @property
    def angular_momentum(self) -> np.ndarray:
        """Angular momentum (3,) about the origin [kg m^2/s]."""
        return angular_momentum(self._wall)

    @property
    def energy(self) -> float:
        """Kinetic energy of its motion and its spin [J]."""
        return kinetic_energy(self._wall)

    @property
    def contacts(self) -> dict[str, np.ndarray]:
        """Which rigid bodies and walls touch it, and the force on it (3,) [N] of each, in the last step."""
        name, found = self._body.name, {}
        for (one, other), force in known_to_stage(self._sim, "contact_forces").items():
            if name in (one, other):
                sign = 1.0 if name == one else -1.0
                found[other if name == one else one] = sign * np.asarray(force, dtype=float)
        return found

    # --- prescribed motion ------------------------------------------------------------------------------

    @property
    def fixed(self) -> bool:
        """Whether it is held or led, and no force moves it."""
        return not self._wall.free

    def fix(self) -> None:
        """Holds it where it is, whatever acts on it."""
        self._lead(None, True)

    def release(self) -> None:
        """Lets it go, at the velocity it has."""
        self._lead(None, None)

    def move(self, motion: Any) -> None:
        """Moves it at the velocity `motion(t)` from now on, whatever acts on it, as `body.move` does; None holds it."""
        if motion is not None and not callable(motion):
            raise PliantError(f"{self._body.name}: move needs a function of time, got {motion!r}")
        self._lead(motion, True if motion is None else None)

    def _lead(self, motion: Any, fixed: bool | None) -> None:
        """Gives it a motion, holds it or lets it go; the scene's body then says the same."""
        body, wall = self._body, self._wall
        body.motion = None
        if motion is not None:
            body.move(motion)
        body.fixed, wall.motion, wall.free = fixed, body.motion, motion is None and not fixed
        if not wall.free:
            wall.set_velocity(self._sim.time)
        self._sim.measure()


class JointView:
    """`sim[hinge]`: how a joint stands, and what it bears."""

    def __init__(self, sim: "Simulation", joint: Joint):
        self._sim, self._joint = sim, joint

    @property
    def _state(self) -> Any:
        """What the stage knows of it; None before the first step."""
        return known_to_stage(self._sim, "joint_states").get(self._joint.name)

    def _only(self, name: str, *kinds: str) -> None:
        if self._joint.kind not in kinds:
            raise PliantError(f"{self._joint.name} is a {self._joint.kind} joint and has no {name}; only a "
                              f"{' or a '.join(kinds)} has one")  # fmt: skip

    def _anchors(self) -> np.ndarray:
        """(2, 3) where its two ends are now [m]."""
        walls = [self._sim.world.walls.find(name) for name in (self._joint.a, self._joint.b)]
        return np.array([point if wall is None else wall.placed(point)
                         for wall, point in zip(walls, self._joint.anchors(), strict=True)])  # fmt: skip

    @property
    def position(self) -> np.ndarray:
        """Where its end on the first body is now (3,) [m]."""
        return self._anchors()[0]

    @property
    def angle(self) -> float:
        """Angle of a hinge [degrees]: by how much the first body has turned relative to the second, turns counted."""
        self._only("angle", "hinge")
        return math.degrees(self._state.angle) if self._state else 0.0

    @property
    def displacement(self) -> float:
        """How far the first body of a slider has moved along the axis of the second [m]."""
        self._only("displacement", "slider")
        p, q = self._anchors()
        frame = self._sim.world.walls.find(self._joint.b)
        axis = self._joint.direction()  # type: ignore[attr-defined]
        return float((p - q) @ (axis if frame is None else frame.rotation @ axis))

    @property
    def length(self) -> float:
        """Distance of the two ends of a spring or a rod now [m]."""
        self._only("length", "spring", "distance")
        return float(np.linalg.norm(np.subtract(*self._anchors())))

    @property
    def speed(self) -> float:
        """Speed of a hinge [rad/s] or a slider [m/s]: of the first body relative to the second."""
        self._only("speed", "hinge", "slider")
        return float(self._state.speed) if self._state else 0.0

    @property
    def force(self) -> np.ndarray:
        """Force of the joint on the first body in the last step (3,) [N], springs and motors included."""
        return np.array(self._state.force, dtype=float) if self._state else np.zeros(3)

    @property
    def torque(self) -> np.ndarray:
        """Torque of the joint on the first body in the last step (3,) [N m], its motor's included."""
        return np.array(self._state.torque, dtype=float) if self._state else np.zeros(3)


def _array(value: Any) -> np.ndarray:
    """Numbers as an array, and nothing if they are none."""
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return np.zeros(0)
