"""Controls of a robot: numbers for its actuators, from a list, a dict or a function of the user's."""

import dataclasses
import inspect
from typing import Any

import numpy as np

from pliant.errors import PliantError, SimulationError, unknown_name
from pliant.solvers.robots.mjcf import mujoco

LARGEST = 1e10  # beyond, MuJoCo takes a control for none


@dataclasses.dataclass(frozen=True)
class RobotState:
    """What a control function is told, in the units and the order of the model."""

    time: float  # [s]
    qpos: np.ndarray  # (nq,) positions of joints
    qvel: np.ndarray  # (nv,) velocities
    ctrl: np.ndarray  # (nu,) controls of the last step
    sensors: dict[str, np.ndarray]  # by name


def state_of(model: Any, data: Any, time: float) -> RobotState:
    return RobotState(time, data.qpos.copy(), data.qvel.copy(), data.ctrl.copy(), sensors(model, data.sensordata))


def sensors(model: Any, values: np.ndarray) -> dict[str, np.ndarray]:
    """What sensors measure, by name, or by number where they have none."""
    found = {}
    for k in range(model.nsensor):
        first = int(model.sensor_adr[k])
        found[model.sensor(k).name or f"sensor{k}"] = values[first : first + int(model.sensor_dim[k])].copy()
    return found


def actuators(model: Any) -> list[str]:
    """Their names; of those without one, what they are called here."""
    return [model.actuator(k).name or f"actuator{k}" for k in range(model.nu)]


def values(given: Any, model: Any, state: RobotState) -> np.ndarray:
    """The numbers for the actuators now. Whatever a function of the user's raises, or returns that is none, becomes one
    sentence."""
    if given is None:
        return state.ctrl
    try:
        return as_numbers(_call(given, state) if callable(given) else given, model, state.ctrl)
    except Exception as error:
        raise SimulationError(f"its control fails at t = {state.time:g} s: {error}") from error


def first_values(given: Any, model: Any) -> np.ndarray:
    """Those at the start."""
    data = mujoco().MjData(model)
    mujoco().mj_forward(model, data)
    return values(given, model, state_of(model, data, 0.0))


def _call(function: Any, state: RobotState) -> Any:
    """Functions of time, or of time and state."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # built in, and silent
        return function(state.time)
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    return function(state.time, state) if len(places) > 1 else function(state.time)


def as_numbers(given: Any, model: Any, before: np.ndarray) -> np.ndarray:
    """(nu,) numbers from a list in the order of the actuators, or a dict by name; what that leaves out stays."""
    names = actuators(model)
    if isinstance(given, dict):
        found = np.array(before, dtype=float)
        for name, value in given.items():
            if name not in names:
                raise PliantError(unknown_name("actuator", str(name), names))
            found[names.index(name)] = _numbers(value, name, ())
        return found
    wanted = f"{model.nu} numbers, for {', '.join(names)}" if names else "no numbers, for it has no actuators"
    return _numbers(given, f"controls must be {wanted}, or a dict by name; it", (model.nu,))


def _numbers(given: Any, what: str, shape: tuple[int, ...]) -> np.ndarray:
    try:
        found = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        found = np.full(1, np.nan)
    if shape == (1,) and found.shape == ():
        found = found.reshape(1)
    if found.shape != shape or not (np.abs(found) <= LARGEST).all():
        raise PliantError(f"{what} got {given!r}" if shape else f"{what} needs a finite number, got {given!r}")
    return found
