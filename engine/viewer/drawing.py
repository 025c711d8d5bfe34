"""From a moment, and what the user wants to see of it, to a picture."""

import dataclasses

import numpy as np

from pliant.core.data import GRAINS, Cloud, Snapshot
from pliant.render.camera import Camera, Triple
from pliant.render.coloring import diverges, robust_range
from pliant.render.colors import colormap
from pliant.render.compose import DEFAULT_FIELD, GLOSS, SHEEN, SKIN, placed, tints
from pliant.render.fluid_surface import NORMAL
from pliant.render.joints import joint_lines
from pliant.render.look import BACKGROUNDS, Look
from pliant.render.picture import LIGHTS, Lines, Picture, Points, Surface
from pliant.render.render_scene import RenderScene
from pliant.skin.skins import SUFFIX
from pliant.viewer.messages import Moment, Opened
from pliant.viewer.state import OWN, ViewState
from pliant.viewer.surfacer import Surfacer

SHRINK = 0.03  # share of its excess by which an automatic range shrinks with each moment; it grows at once
AXES = "xyz"
NOTHING = Cloud(np.zeros((0, 3)), {DEFAULT_FIELD: np.zeros(0)}, {DEFAULT_FIELD: "m/s"})  # of a scene without particles
SPRING, SPRING_WIDTH = (0.95, 0.25, 0.15), 3.0  # colour and width [pixels] of the spring between body and hand


@dataclasses.dataclass
class Drawn:
    """A picture, what the groups of its points and its surfaces are called, and the colour range with the maps used."""

    picture: Picture
    points: list[str]
    surfaces: list[str]
    low: float
    high: float
    maps: tuple[str, ...]
    field: str
    unit: str


class Drawing:
    """Makes the picture of one moment after another."""

    def __init__(self) -> None:
        self._range: tuple[str, float, float] | None = None
        self.surfacer = Surfacer()

    def draw(self, opened: Opened, moment: Moment, state: ViewState, camera: Camera) -> Drawn:
        """What `moment` looks like."""
        render_scene, snapshot = opened.render_scene, moment.snapshot
        behind = BACKGROUNDS[(render_scene.look or Look()).background]
        first = next(iter(snapshot.clouds.values()), NOTHING)
        field = next(iter(first.fields))
        low, high = self._find_range(render_scene, snapshot, state, field)
        ground = float(render_scene.bounds[0][1]) if (render_scene.look or Look()).ground else None
        picture = Picture(camera, background=behind.zenith, horizon=behind.horizon, ground=ground,
                          ground_color=behind.ground, lights=render_scene.lights or LIGHTS, dark=behind.dark,
                          shadow=(render_scene.look or Look()).shadow if state.shadow else 0.0)  # fmt: skip
        drawn = Drawn(picture, [], [], low, high, (), field, first.units.get(field, ""))
        self._add_walls(drawn, render_scene, snapshot, state, behind.line)
        self._add_bodies(drawn, render_scene, snapshot, state)
        if state.clip != "off":
            _clip(picture, render_scene.bounds, state)
        if state.joints:
            picture.lines += joint_lines(render_scene.joints, snapshot.poses)
        if moment.grip is not None:
            picture.lines.append(Lines(moment.grip[None], SPRING, SPRING_WIDTH, over=True))
        return drawn

    def _find_range(self, render_scene: RenderScene, snapshot: Snapshot, state: ViewState,
                    field: str) -> tuple[float, float]:  # fmt: skip
        if not state.auto:
            return state.low, max(state.high, np.nextafter(state.low, np.inf))
        if field == DEFAULT_FIELD:
            return 0.0, float(render_scene.top_speed)
        seen = [cloud.fields for name, cloud in snapshot.clouds.items() if name not in state.hidden]
        low, high = robust_range([values[field] for values in seen if field in values], diverges([state.colors]))
        if self._range is not None and self._range[0] == field:
            low = min(low, self._range[1] + SHRINK * (low - self._range[1]))
            high = max(high, self._range[2] + SHRINK * (high - self._range[2]))
        self._range = (field, low, high)
        return low, high

    def _add_walls(self, drawn: Drawn, render_scene: RenderScene, snapshot: Snapshot, state: ViewState,
                   line: Triple) -> None:  # fmt: skip
        for wall in render_scene.walls:
            if wall.name in state.hidden or state.walls == "hidden":
                continue
            pose = snapshot.poses.get(wall.name)
            if wall.container or state.walls == "wireframe":
                drawn.picture.lines.append(Lines(placed(wall.outline, pose), line))
            else:
                mesh = wall.mesh
                drawn.picture.surfaces.append(Surface(placed(mesh.vertices, pose), mesh.faces, wall.color))
                drawn.surfaces.append(wall.name)

    def _add_bodies(self, drawn: Drawn, render_scene: RenderScene, snapshot: Snapshot, state: ViewState) -> None:
        field, picture, maps = drawn.field, drawn.picture, []
        plain = field == DEFAULT_FIELD and not state.bar
        surface = self.surfacer.made if state.fluid == "surface" else {}
        if state.fluid == "surface":
            self.surfacer.ask(render_scene, snapshot, field)
        for body in render_scene.bodies:
            name, cloud = body.name, snapshot.clouds.get(body.name)
            if cloud is None or name.removesuffix(GRAINS) in state.hidden or name in state.hidden:
                continue
            map_name = body.colors if state.colors == OWN else state.colors
            if name + GRAINS in snapshot.clouds and state.grains:
                continue
            if body.grains and not state.grains:
                continue
            mesh, gloss = snapshot.meshes.get(name + SUFFIX), SHEEN
            if mesh is None or state.solid != "mesh":
                mesh, gloss = surface.get(name) if body.fluid else None, GLOSS
            if mesh is not None:
                values = mesh.fields.get(field)
                shades = (colormap(np.array([SKIN]), 0.0, 1.0, map_name) if plain and not body.fluid or values is None
                          else colormap(values, drawn.low, drawn.high, map_name))  # fmt: skip
                picture.surfaces.append(Surface(mesh.vertices, mesh.faces, shades, mesh.fields[NORMAL], gloss))
                drawn.surfaces.append(name)
            else:
                shades = (tints(len(cloud.x), map_name) if plain and body.grains
                          else colormap(cloud.fields[field], drawn.low, drawn.high, map_name))  # fmt: skip
                picture.points.append(Points(cloud.x, Look().radius * body.radius, shades))
                drawn.points.append(name.removesuffix(GRAINS))
            maps.append(map_name)
        drawn.maps = tuple(dict.fromkeys(maps))


def _clip(picture: Picture, bounds: np.ndarray, state: ViewState) -> None:
    """Leaves out what lies beyond the clipping plane, triangles as a whole."""
    axis = AXES.index(state.clip)
    low, high = bounds[0][axis], bounds[1][axis]
    at, sign = low + state.clip_at * (high - low), -1.0 if state.clip_flip else 1.0
    for k, group in enumerate(picture.points):
        kept = sign * group.x[:, axis] <= sign * at
        picture.points[k] = Points(group.x[kept], group.radius, np.asarray(group.colors)[kept])
    for surface in picture.surfaces:
        kept = (sign * surface.vertices[surface.faces, axis] <= sign * at).all(axis=1)
        surface.faces = surface.faces[kept]
