"""Parameters that change while a simulation runs.

A change is a restart with another scene: the state is held, all solvers are made anew of the new parameters, and the
state is put back. So whatever a parameter decides, from a coefficient to which forces there are, is decided anew, and a
change to the value that is there already changes not one bit. Only what takes long and does not depend on what has
changed is kept: the walls' maps, rest poses, and the factors of bodies that have the same matrix as before.
"""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.errors import PliantError, SceneError, unknown_name
from pliant.scene import joints, robots
from pliant.scene.scene import Body, Scene
from pliant.scene.sources import replaced
from pliant.sim import checkpoint
from pliant.sim.checkpoint import Checkpoint
from pliant.solvers.births.options import Emitter, Source
from pliant.solvers.rigid.options import Joint
from pliant.solvers.robots.options import Robot

if TYPE_CHECKING:
    from pliant.sim.simulation import Simulation

LASTING = ("particle_radius", "smoothing", "periodic", "inside_out", "grains",  # they say where particles are,
           "sources", "probes", "joints", "shape", "body", "name", "moves_with",  # or who is who,
           "a", "b", "at", "axis")  # or what a joint joins, and where  # fmt: skip


def apply(sim: "Simulation", body: Body | Source | Joint | Robot | str | None, values: dict[str, Any]) -> None:
    """See `Simulation.change`."""
    name = None if body is None else body.name if isinstance(body, (Body, Source, Joint, Robot)) else str(body)
    held = checkpoint.capture_state(sim)
    undo = give(sim.scene, name, values)
    try:
        sim.rebuild(with_masses(held, sim.scene))
    except PliantError:
        undo()
        sim.rebuild(with_masses(held, sim.scene))
        raise


def give(scene: Scene, name: str | None, values: dict[str, Any]) -> Callable[[], None]:
    """Gives parameters of a scene, or of the material of a body, the emitter or the joint of that name, other values.
    Returns what takes that back."""
    before = scene.settings
    joint = next((one for one in before.joints if one.name == name), None)
    source = next((s for s in before.sources if isinstance(s, Emitter) and s.name == name), None)
    if name is None:
        scene.settings = _changed(before, values, "Scene")
    elif joint is not None:
        scene.settings = before.replaced(joints=joints.replaced(before.joints, name, _changed(joint, values, name)))
    elif name in [robot.name for robot in before.robots]:
        scene.settings = before.replaced(robots=robots.controlled(before.robots, name, values))
    elif source is not None:
        scene.settings = before.replaced(sources=replaced(before.sources, name, _changed(source, values, name)))
    else:
        body = next((one for one in scene.bodies if one.name == name), None)
        if body is None:
            known = [b.name for b in (*scene.bodies, *before.joints, *before.robots)]
            known += [s.name for s in before.sources if isinstance(s, Emitter)]
            raise PliantError(unknown_name("body", name, known))
        old = body.material
        body.material = _changed(old, values, f"{name}: {type(old).__name__}")
        return lambda: setattr(body, "material", old)
    return lambda: setattr(scene, "settings", before)


def _changed(old: Any, values: dict[str, Any], title: str) -> Any:
    known = [field.name for field in dataclasses.fields(old)]
    problems = [f"{title} has no {unknown_name('parameter', name, known)[8:]}" for name in values if name not in known]
    problems += [f"{title}: {name} {_why(old)}; build the scene with another one" for name in values if name in LASTING]
    if problems:
        raise SceneError(problems)
    new = old.replaced(**values)
    if new.problems():
        raise SceneError(new.problems())
    return new


def _why(old: Any) -> str:
    """Why a parameter of it cannot change."""
    says = "what it joins, and where," if isinstance(old, Joint) else "where particles are"
    return f"says {says} and cannot change while they move"


def with_masses(held: Checkpoint, scene: Scene) -> Checkpoint:
    """The state with the masses that particles have by the densities of their materials now."""
    materials = [body.material for body in scene.bodies if body.material.has_particles]
    density = np.array([material.density for material in materials])[held.particles("material")]
    free = held.particles("inverse_density") > 0
    arrays = held.arrays | {
        "particles/m": (held.particles("V") * density).astype(np.float32),
        "particles/inverse_density": np.where(free, 1.0 / density, 0.0).astype(np.float32),
    }
    return dataclasses.replace(held, arrays=arrays)
