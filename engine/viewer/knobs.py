"""Which parameters of a scene a view offers, and how a slider sets one."""

import dataclasses
from typing import Any

import numpy as np

from pliant.core.options import Rule
from pliant.materials import Air
from pliant.scene.changes import LASTING
from pliant.scene.scene import Scene
from pliant.solvers.births.options import Emitter
from pliant.viewer.messages import Knob

# Ends of the sliders, in the parameters' units, and whether they are logarithmic. A value beyond an end moves it. What
# is called alike but has another unit has that behind its name.
RANGES = {
    "density": (50.0, 20_000.0, True), "viscosity": (1e-7, 10.0, True), "surface_tension": (0.0, 1.0, False),
    "damping": (0.0, 1.0, False), "young": (1e3, 1e9, True), "poisson": (-0.4, 0.495, False),
    "zero_energy": (0.0, 5.0, False), "friction_angle": (0.0, 60.0, False), "cohesion": (0.0, 5e3, False),
    "friction": (0.0, 2.0, False), "gravity": (-20.0, 20.0, False), "wind": (-30.0, 30.0, False),
    "flow speed": (0.0, 5.0, False), "mass": (1e-2, 1e4, True), "restitution": (0.0, 1.0, False),
    "speed": (-20.0, 20.0, False), "torque": (-100.0, 100.0, False), "force": (-1e3, 1e3, False),
    "stiffness": (1.0, 1e6, True), "damping [N s/m]": (0.0, 100.0, False), "length": (0.0, 2.0, False),
    "max_torque": (1e-2, 1e4, True), "max_force": (1e-2, 1e5, True),
}  # fmt: skip
AXES = "xyz"
WIND = "velocity of the air"
FLOW = "flow speed"


def knobs(scene: Scene) -> list[Knob]:
    """All parameters that may change while it runs: those of the scene, then those of each body."""
    rules = _rules(scene.settings)
    found = [_knob("", f"gravity.{a}", g, rules["gravity"].unit, rules["gravity"].doc)
             for a, g in zip(AXES, scene.settings.gravity, strict=True)]  # fmt: skip
    wind = _wind(scene)
    if wind is not None:
        found += [_knob("", f"wind.{a}", v, "m/s", WIND) for a, v in zip(AXES, wind, strict=True)]
    for body in scene.bodies:
        found += _numbers(body.name, body.material)
    for joint in scene.settings.joints:
        found += _numbers(joint.name, joint)
    found += [_knob(emitter.name, FLOW, float(np.linalg.norm(emitter.velocity)), "m/s", "speed at which it flows")
              for emitter in _emitters(scene)]  # fmt: skip
    return found


def _numbers(owner: str, options: Any) -> list[Knob]:
    """Knobs of the numbers of a material or a joint that may change; its functions of time are left alone."""
    found = {name: (rule, getattr(options, name)) for name, rule in _rules(options).items()}
    return [_knob(owner, name, float(value), rule.unit, rule.doc) for name, (rule, value) in found.items()
            if name in RANGES and name not in LASTING and isinstance(value, (int, float)) and rule.kind != "flag"]


def _emitters(scene: Scene) -> list[Emitter]:
    """Those that flow at one velocity for ever."""
    return [s for s in scene.settings.sources if isinstance(s, Emitter) and not callable(s.velocity)]


def change(scene: Scene, owner: str, name: str, value: float) -> dict[str, Any]:
    """What `Simulation.change` is to be told when a knob of the scene, or of the owner of that name, gets a value."""
    if name == FLOW:
        emitter = next(one for one in _emitters(scene) if one.name == owner)
        return {"velocity": tuple((value * emitter.direction()).tolist())}
    name, _, axis = name.partition(".")
    if name == "gravity":
        return {"gravity": _with(scene.settings.gravity, axis, value)}
    if name == "wind":
        wind = _with(_wind(scene) or (0.0, 0.0, 0.0), axis, value)
        air = scene.settings.air
        return {"air": Air(velocity=wind) if air is None else dataclasses.replace(air, velocity=wind)}
    return {name: value}


def _wind(scene: Scene) -> tuple[float, ...] | None:
    """The wind, where it is the same everywhere and something can feel it."""
    if not any(body.material.has_particles and body.material.fluid_like for body in scene.bodies):
        return None
    velocity = (0.0, 0.0, 0.0) if scene.settings.air is None else scene.settings.air.velocity
    return None if callable(velocity) or np.shape(velocity) != (3,) else tuple(map(float, velocity))


def _with(vector: Any, axis: str, value: float) -> tuple[float, ...]:
    return tuple(float(value) if a == axis else float(v) for a, v in zip(AXES, vector, strict=True))


def _rules(options: Any) -> dict[str, Rule]:
    return {field.name: field.metadata["rule"] for field in dataclasses.fields(options) if "rule" in field.metadata}


def _knob(owner: str, name: str, value: float, unit: str, doc: str) -> Knob:
    low, high, log = RANGES.get(f"{name} [{unit}]") or RANGES[name.partition(".")[0]]
    low = min(low, value) if not log or value > 0 else low
    return Knob(owner, name, float(value), low, max(high, value), log, "" if unit == "1" else unit, doc)
