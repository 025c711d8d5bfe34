"""From a `RenderScene` and a moment to a picture. Frames of a running simulation and of files pass here alike."""

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from pliant.core.data import GRAINS, Cloud, Snapshot, TriMesh
from pliant.errors import PliantError
from pliant.render.camera import Camera
from pliant.render.coloring import DERIVED, diverges, label, no_such_field, robust_range, scalar, unit
from pliant.render.colors import colormap
from pliant.render.fluid_surface import NORMAL, reconstruct
from pliant.render.joints import joint_lines
from pliant.render.look import BACKGROUNDS, Look
from pliant.render.picture import LIGHTS, Bar, Lines, Picture, Points, Surface
from pliant.skin.skins import SkinSource, is_skin

if TYPE_CHECKING:  # a `RenderScene` composes pictures through this file
    from pliant.render.render_scene import RenderScene

DEFAULT_FIELD = "speed"  # what is coloured unless asked otherwise: then a body without it is drawn plain
PLAIN = 0.3  # along a body's colour map: its colour where it has no such field
GLOSS = 1.0  # of fluid surfaces
SHEEN = 0.15  # of skins: rubber rather than water
SKIN = 0.5  # along a body's colour map: the colour of its skin
TINTS = (0.35, 0.85)  # along a body's colour map: each of its grains has a colour between these
MARKER, MARKER_WIDTH = (0.85, 0.08, 0.10), 2.0  # colour of what marks probes, and its width as that of lines is
VIEW_DIRECTION = (0.75, 0.5, 1.6)
UPRIGHT = [(0.75, 0.5, 1.6), (1.3, 0.6, 1.3), (1.6, 0.6, 0.75), (1.6, 1.6, 0.9)]  # for pictures taller than wide


def framed(bounds: np.ndarray, aspect: float) -> Camera:
    """A camera that sees the whole of `bounds`; upright pictures look along it rather than across."""
    directions = [VIEW_DIRECTION] if aspect >= 1 else UPRIGHT
    cameras = [Camera.framing((bounds[0], bounds[1]), direction, aspect) for direction in directions]
    return min(cameras, key=lambda camera: camera.distance)


def settled(render_scene: "RenderScene", snapshots: Iterable[Snapshot], look: Look) -> Look:
    """The look with both ends of its colour range fixed, good for all these snapshots: a film must not flicker."""
    if look.low is not None and look.high is not None:
        return look
    if look.color in DERIVED and DERIVED[look.color] == "velocity":
        low, high = 0.0, float(render_scene.top_speed)
    else:
        samples = [values for snapshot in snapshots for values in _values(snapshot, look.color)]
        low, high = robust_range(samples, diverges([look.colors or ""]))
    low, high = low if look.low is None else look.low, high if look.high is None else look.high
    if low >= high:  # the given end lies beyond all values
        low, high = (high - 1.0, high) if look.low is None else (low, low + 1.0)
    return dataclasses.replace(look, low=low, high=high)  # type: ignore[type-var]


def compose(render_scene: "RenderScene", snapshot: Snapshot, look: Look, aspect: float) -> Picture:
    """What `snapshot` looks like."""
    problems = look.problems()
    if problems:
        raise PliantError("\n".join(problems))
    _check_field(snapshot, look)
    look = settled(render_scene, [snapshot], look)
    behind = BACKGROUNDS[look.background]
    picture = Picture(
        render_scene.view(snapshot.time, aspect), background=behind.zenith, horizon=behind.horizon,
        ground=float(render_scene.bounds[0][1]) if look.ground else None, ground_color=behind.ground,
        lights=render_scene.lights or LIGHTS, shadow=look.shadow, title=look.title,
        clock=f"t = {snapshot.time:.2f} s" if look.clock else "", dark=behind.dark,
    )  # fmt: skip
    _add_walls(picture, render_scene, snapshot, look)
    if look.probes:
        for wall, segments in render_scene.markers.items():
            picture.lines.append(Lines(placed(segments, snapshot.poses.get(wall)), MARKER, MARKER_WIDTH))
    if look.joints:
        picture.lines += joint_lines(render_scene.joints, snapshot.poses)
    maps = _add_bodies(picture, render_scene, snapshot, look)
    if look.bar and maps:
        units = {name: text for item in _items(snapshot) for name, text in item.units.items()}
        picture.bar = Bar(label(look.color, unit(units, look.color)), look.low, look.high, tuple(dict.fromkeys(maps)))
    return picture


def _items(snapshot: Snapshot) -> list[Cloud | TriMesh]:
    """Everything that is drawn with colours of its own: a body with a skin shows that instead of its particles."""
    clouds = [cloud for name, cloud in snapshot.clouds.items() if name not in snapshot.meshes]
    return [*clouds, *(mesh for name, mesh in snapshot.meshes.items() if not is_skin(name, snapshot))]


def _values(snapshot: Snapshot, name: str) -> list[np.ndarray]:
    found = [scalar(item.fields, name) for item in _items(snapshot)]
    return [values for values in found if values is not None]


def _check_field(snapshot: Snapshot, look: Look) -> None:
    items = _items(snapshot)
    if look.color != DEFAULT_FIELD and items and not _values(snapshot, look.color):
        raise no_such_field(look.color, {name for item in items for name in item.fields})


def placed(points: np.ndarray, pose: np.ndarray | None) -> np.ndarray:
    return points if pose is None else points @ pose[:3, :3].T + pose[:3, 3]


def _add_walls(picture: Picture, render_scene: "RenderScene", snapshot: Snapshot, look: Look) -> None:
    line = BACKGROUNDS[look.background].line
    for wall in render_scene.walls:
        if wall.name in snapshot.meshes:
            continue
        pose = snapshot.poses.get(wall.name)
        if not wall.container:
            picture.surfaces.append(Surface(placed(wall.mesh.vertices, pose), wall.mesh.faces, wall.color))
            continue
        if look.containers == "glass":
            picture.glass.append(Surface(placed(wall.mesh.vertices, pose), wall.mesh.faces))
        if look.containers != "hidden":
            picture.lines.append(Lines(placed(wall.outline, pose), line))


def _add_bodies(picture: Picture, render_scene: "RenderScene", snapshot: Snapshot, look: Look) -> list[str]:
    """Adds particles, fluid surfaces and skins; returns the colour maps that show the field."""
    from pliant.render.render_scene import CloudStyle

    known, used = {body.name: body for body in render_scene.bodies}, []
    radius = min((body.radius for body in render_scene.bodies), default=0.01)
    fluids: dict[tuple[str, float], list[Cloud]] = {}
    for name, cloud in snapshot.clouds.items():
        if name in snapshot.meshes or name in _undrawn(snapshot, look) or not len(cloud.x):
            continue
        if look.solid == "mesh" and name in render_scene.skins:
            used += _add_skin(picture, render_scene.skins[name], cloud, look.colors or known[name].colors, look)
            continue
        body = known.get(name) or CloudStyle(name, "water", radius, fluid=False)
        map_name = look.colors or body.colors
        if look.fluid == "surface" and body.fluid:
            fluids.setdefault((map_name, body.radius), []).append(cloud)
        else:
            colors, colored = _colors(cloud.fields, len(cloud.x), map_name, look)
            if body.grains and look.color == DEFAULT_FIELD and not look.bar:
                colors, colored = tints(len(cloud.x), map_name), False
            picture.points.append(Points(cloud.x, look.radius * body.radius, colors))
            used += [map_name] if colored else []
    for (map_name, size), clouds in fluids.items():
        mesh = _surface(render_scene, snapshot, clouds, size, look.color)
        colors, colored = _colors(mesh.fields, len(mesh.vertices), map_name, look)
        picture.surfaces.append(Surface(mesh.vertices, mesh.faces, colors, mesh.fields[NORMAL], GLOSS))
        used += [map_name] if colored else []
    for name, mesh in snapshot.meshes.items():
        if is_skin(name, snapshot):
            continue
        map_name = look.colors or (known[name].colors if name in known else "water")
        colors, colored = _colors(mesh.fields, len(mesh.vertices), map_name, look)
        picture.surfaces.append(Surface(mesh.vertices, mesh.faces, colors))
        used += [map_name] if colored else []
    return used


def _undrawn(snapshot: Snapshot, look: Look) -> set[str]:
    """Bodies whose grains are drawn instead of them, or grains whose bodies are."""
    pairs = [(name, name + GRAINS) for name in snapshot.clouds if name + GRAINS in snapshot.clouds]
    shown = {grains: look.grains and (look.color == DEFAULT_FIELD
                                      or scalar(snapshot.clouds[grains].fields, look.color) is not None)
             for _, grains in pairs}  # fmt: skip
    return {name if shown[grains] else grains for name, grains in pairs}


def tints(count: int, map_name: str) -> np.ndarray:
    """A colour for each grain, by its number, so that it keeps it: sand is of many colours."""
    mixed = (np.arange(count, dtype=np.uint32) * np.uint32(2654435769)).astype(np.float64) / 2**32  # golden ratio
    return colormap(TINTS[0] + (TINTS[1] - TINTS[0]) * mixed, 0.0, 1.0, map_name)


def _add_skin(picture: Picture, source: SkinSource, cloud: Cloud, map_name: str, look: Look) -> list[str]:
    """Adds the skin of a body; returns its colour map if it shows the field."""
    values = scalar(cloud.fields, look.color) if look.bar or look.color != DEFAULT_FIELD else None
    mesh = source.drawn(cloud, {} if values is None else {look.color: values})
    plain = colormap(np.array([SKIN]), 0.0, 1.0, map_name)
    colors = plain if values is None else colormap(mesh.fields[look.color], look.low, look.high, map_name)
    picture.surfaces.append(Surface(mesh.vertices, mesh.faces, colors, mesh.fields[NORMAL], SHEEN))
    return [] if values is None else [map_name]


def _colors(fields: dict[str, np.ndarray], count: int, map_name: str, look: Look) -> tuple[np.ndarray, bool]:
    """Colours (count, 3), and whether they show the field."""
    values = scalar(fields, look.color)
    if values is None:
        return np.tile(colormap(np.array([PLAIN]), 0.0, 1.0, map_name), (count, 1)), False
    return colormap(values, look.low, look.high, map_name), True


def _surface(render_scene: "RenderScene", snapshot: Snapshot, clouds: list[Cloud], radius: float,
             field: str) -> TriMesh:  # fmt: skip
    """One surface around fluids of one colour map, cut at the walls of the containers that they are in."""
    x = np.concatenate([cloud.x for cloud in clouds])
    found = [scalar(cloud.fields, field) for cloud in clouds]
    values = [v.astype(np.float32) for v in found if v is not None]
    cloud = Cloud(x, {field: np.concatenate(values)} if len(values) == len(clouds) else {})
    return reconstruct(cloud, radius, render_scene.planes_around(x, snapshot.poses))
