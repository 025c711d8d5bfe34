"""Robots of a running simulation: `sim[arm]`."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.errors import PliantError, unknown_name
from pliant.solvers.robots import control
from pliant.solvers.robots.geoms import link_name
from pliant.solvers.robots.mechanism import Mechanism

if TYPE_CHECKING:
    from pliant.sim.simulation import Simulation

LARGEST = 1e6  # position or velocity of a joint
ASSIGNABLE = ("qpos", "qvel", "ctrl")


class RobotView:
    """`sim[arm]`: how a robot stands and moves. Numbers are in the units and the order of its model."""

    def __init__(self, sim: "Simulation", robot: Mechanism):
        self._sim, self._robot = sim, robot

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and name not in ASSIGNABLE:
            raise PliantError(f"{self._robot.spec.name}.{name} cannot be assigned; qpos, qvel and ctrl can")
        object.__setattr__(self, name, value)

    @property
    def qpos(self) -> np.ndarray:
        """Positions of its joints (nq,), as MuJoCo orders them: [rad], [m], quaternions (w, x, y, z)."""
        return np.array(self._robot.data.qpos)

    @qpos.setter
    def qpos(self, value: Any) -> None:
        self._robot.place(qpos=self._numbers("qpos", value, self._robot.model.nq))
        self._tell()

    @property
    def qvel(self) -> np.ndarray:
        """Velocities of its joints (nv,) [rad/s], [m/s]."""
        return np.array(self._robot.data.qvel)

    @qvel.setter
    def qvel(self, value: Any) -> None:
        self._robot.place(qvel=self._numbers("qvel", value, self._robot.model.nv))
        self._tell()

    @property
    def ctrl(self) -> np.ndarray:
        """Controls of its actuators (nu,) in the last step."""
        return np.array(self._robot.data.ctrl)

    @ctrl.setter
    def ctrl(self, value: Any) -> None:
        """A list, or a dict by the names of actuators."""
        spec, data = self._robot.spec, self._robot.data
        if spec.control is not None:
            raise PliantError(f"{spec.name} has a control of its own, which says what its ctrl is")
        try:
            data.ctrl[:] = control.as_numbers(value, self._robot.model, data.ctrl)
        except PliantError as error:
            raise PliantError(f"{spec.name}.ctrl: {error}") from error

    @property
    def actuators(self) -> list[str]:
        """Their names, in the order of `ctrl`."""
        return control.actuators(self._robot.model)

    @property
    def sensors(self) -> dict[str, np.ndarray]:
        """What its sensors measure, by name."""
        return control.sensors(self._robot.model, self._robot.sensordata)

    @property
    def links(self) -> "Links":
        """Its links by name: `sim[arm].links["hand"].position`."""
        return Links(self._sim, self._robot)

    def _numbers(self, name: str, value: Any, count: int) -> np.ndarray:
        try:
            found = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            found = np.zeros(0)
        if found.shape != (count,) or not (np.abs(found) <= LARGEST).all():
            raise PliantError(f"{self._robot.spec.name}.{name} needs {count} numbers within {LARGEST:g}, got {value!r}")
        return found

    def _tell(self) -> None:
        """Lets the walls know, and everybody else."""
        robot, states = self._robot, self._sim.world.walls.states
        states.shift[robot.rows], states.rotation[robot.rows] = robot.poses()
        states.velocity[robot.rows], states.spin[robot.rows] = np.hsplit(robot.motion(), 2)
        self._sim.measure()


class Links(dict[str, "LinkView"]):
    """The links of a robot by name; a name that there is not is told in a sentence."""

    def __init__(self, sim: "Simulation", robot: Mechanism):
        model = robot.model
        super().__init__({link_name(model, body): LinkView(robot, body) for body in range(1, model.nbody)})
        self._name = robot.spec.name

    def __missing__(self, name: str) -> "LinkView":
        raise PliantError(f"{self._name}: {unknown_name('link', str(name), list(self))}")


class LinkView:
    """A link of a robot, in the scene."""

    def __init__(self, robot: Mechanism, body: int):
        self._robot, self._body = robot, body

    @property
    def position(self) -> np.ndarray:
        """Where the origin of its frame is [m]."""
        return np.asarray(self._robot.base.place(self._robot.data.xpos[self._body]))

    @property
    def rotation(self) -> np.ndarray:
        """The matrix (3, 3) whose columns are the axes of its frame."""
        return self._robot.base.rotation @ self._robot.data.xmat[self._body].reshape(3, 3)

    @property
    def velocity(self) -> np.ndarray:
        """Velocity of the origin of its frame [m/s]."""
        return self._robot.link_motion(self._body)[:3]

    @property
    def spin(self) -> np.ndarray:
        """Angular velocity [rad/s]."""
        return self._robot.link_motion(self._body)[3:]

    @property
    def force(self) -> np.ndarray:
        """Force of everything in the scene on it in the last step (3,) [N]; not of its joints and own contacts."""
        return self._robot.link_load(self._body)[:3]

    @property
    def torque(self) -> np.ndarray:
        """Moment of these forces about `position` (3,) [N m]."""
        return self._robot.link_load(self._body)[3:]
