"""How a scene says that particles come and go, and what may be wrong with that."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.core.world import wall_distance
from pliant.errors import unknown_name
from pliant.geometry import Empty, Patch, Shape
from pliant.materials import Material
from pliant.solvers.births.nozzle import LAYERS, WALL_CLEAR
from pliant.solvers.births.options import Arrival, Drain, Emitter, Source

if TYPE_CHECKING:
    from pliant.scene.scene import Body, Scene


def add_emitter(scene: "Scene", shape: Any, body: Any, name: str | None, moves_with: Any, values: dict) -> Emitter:
    """Adds a nozzle; a material in place of a body makes a body that begins without particles."""
    from pliant.scene.scene import Body

    name = scene.free_name(name, "emitter")
    if isinstance(body, Material):
        body = scene.add(None, body)
    label = body.name if isinstance(body, Body) else str(body)
    wall = moves_with.name if isinstance(moves_with, Body) else moves_with
    made = Emitter(shape=shape, body=label, name=name, moves_with=wall, **values)
    if not made.problems() and getattr(shape, "normal", ()) is None:  # it keeps its direction when the flow changes
        made = made.replaced(shape=shape.replaced(normal=tuple(made.axes()[2].tolist())))
    return add(scene, made)


def add_drain(scene: "Scene", shape: Any, name: str | None, moves_with: Any) -> Drain:
    """Adds a region in which particles are gone."""
    from pliant.scene.scene import Body

    wall = moves_with.name if isinstance(moves_with, Body) else moves_with
    return add(scene, Drain(shape=shape, name=scene.free_name(name, "drain"), moves_with=wall))


def add_arrivals(scene: "Scene", shape: Any, material: Any, times: Any, name: str | None,
                 values: dict) -> "list[Body]":  # fmt: skip
    """Adds equal bodies that appear one after the other, as `name1`, `name2`, ..."""
    kind = name or (type(material).__name__.lower() if isinstance(material, Material) else "body")
    try:
        times = [float(t) for t in np.atleast_1d(np.asarray(times, dtype=float))]
    except (TypeError, ValueError):
        scene.note_problem(f"{kind}: at must be a list of times [s], got {times!r}")
        times = []
    bodies = []
    for k, time in enumerate(times):
        body = scene.add(shape, material, name=f"{kind}{k + 1}" if name else None, **values)
        add(scene, Arrival(name=body.name, time=time))
        bodies.append(body)
    return bodies


def add(scene: "Scene", source: Any) -> Any:
    scene.settings = scene.settings.replaced(sources=(*scene.settings.sources, source))
    return source


def problems(scene: "Scene") -> list[str]:
    """What is wrong with the emitters, drains and arrivals of a scene whose bodies are sound, one sentence each."""
    filled = {source.body for source in scene.settings.sources if isinstance(source, Emitter)}
    found = [f"{body.name}: it has no shape, and no emitter fills it; give it a shape such as pl.Box(...), or let "
             "scene.emit fill it"
             for body in scene.bodies if isinstance(body.shape, Empty) and body.name not in filled]  # fmt: skip
    for source in scene.settings.sources:
        if not isinstance(source, Source):
            found.append(f"Scene: sources are made by scene.emit and scene.drain, got {source!r}")
            continue
        own = source.problems()
        if not own and isinstance(source, Emitter):
            own = _emitter_problems(scene, source)
        if not own and isinstance(source, Arrival):
            own = _arrival_problems(scene, source)
        if not own and getattr(source, "moves_with", None) is not None:
            own = _wall_problems(scene, source)
        found += own
    return found


def _emitter_problems(scene: "Scene", emitter: Emitter) -> list[str]:
    name, d = emitter.name, scene.spacing
    bodies = {body.name: body for body in scene.bodies}
    body = bodies.get(emitter.body)
    if body is None:
        flowing = [b.name for b in scene.bodies if b.material.has_particles and b.material.fluid_like]
        return [f"{name}: it emits an " + unknown_name("body", emitter.body, flowing)]
    if not (body.material.has_particles and body.material.fluid_like):
        return [f"{name}: {body.name} is {type(body.material).__name__}, and only fluids and sand flow out of a "
                "nozzle; whole bodies appear by scene.emit(shape, material, at=[...])"]  # fmt: skip
    axes, flow = emitter.axes(), emitter.velocity_at(emitter.start)
    if not callable(emitter.velocity) and flow.any() and flow @ axes[2] == 0:  # zero is shut, until it is changed
        return [f"{name}: its velocity {emitter.velocity!r} does not lead out of the nozzle, so that nothing flows"]
    points = emitter.shape.points(d)
    if not len(points):
        return [f"{name}: its nozzle of {emitter.shape.area():.3g} m^2 is smaller than half a particle, "
                f"{0.5 * d * d:.3g} m^2; make it larger, or the particle_radius smaller"]  # fmt: skip
    if emitter.volume is not None and emitter.volume < 0.5 * d**3:
        return [f"{name}: a volume of {emitter.volume:.3g} m^3 is less than half a particle"]
    return _nozzle_in_walls(scene, emitter, axes, points)


def _nozzle_in_walls(scene: "Scene", emitter: Emitter, axes: np.ndarray, points: np.ndarray) -> list[str]:
    """Whether the layers in a nozzle have room at the start."""
    d, found = scene.spacing, []
    x = emitter.shape.middle() + points @ axes[:2]
    layers = np.concatenate([x + k * d * axes[2] for k in np.linspace(0, LAYERS, 2 * LAYERS + 1)])
    for wall in scene.bodies:
        if wall.material.is_wall:
            inside = wall_distance(wall, layers) < WALL_CLEAR * d
            if inside.any():
                part = "lies inside" if inside.all() else "is cut by, or opens too close to,"
                found.append(f"{emitter.name}: its nozzle {part} {wall.name}; it needs {LAYERS} spacings "
                             f"({LAYERS * d:.3g} m) of free way")  # fmt: skip
    return found


def _arrival_problems(scene: "Scene", arrival: Arrival) -> list[str]:
    body = next((b for b in scene.bodies if b.name == arrival.name), None)
    if body is None:
        return [f"Scene: the body {arrival.name!r} that is to appear is not there"]
    if isinstance(body.shape, Empty) or not isinstance(body.shape, Shape):
        return [f"{arrival.name}: a body that appears needs a shape to fill, got {body.shape!r}"]
    if not body.material.has_particles:
        return [f"{arrival.name}: {type(body.material).__name__} has no particles and cannot appear later"]
    return []


def _wall_problems(scene: "Scene", source: Any) -> list[str]:
    walls = [body.name for body in scene.bodies if body.material.is_wall]
    if source.moves_with in walls:
        return []
    return [f"{source.name}: moves_with must be a wall: " + unknown_name("wall", str(source.moves_with), walls)]


def is_nozzle(shape: Any) -> bool:
    return isinstance(shape, Patch)


def replaced(sources: Sequence[Source], name: str, new: Source) -> tuple[Source, ...]:
    """The sources with another one under this name."""
    return tuple(new if source.name == name else source for source in sources)
