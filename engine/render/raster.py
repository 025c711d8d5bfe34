"""Draws pictures for a window: a software rasteriser that does not wait for a graphics driver.

It is split into what depends on the picture alone (`Raster.load`: shadows, normals), what depends on the camera
(`Raster.draw`), and what is put on top of it (`Raster.image`), so that each is done only when it has changed.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import taichi as ti

from pliant.errors import PliantError
from pliant.render import raster_kernels as kernels
from pliant.render.backdrop import surroundings
from pliant.render.camera import Camera
from pliant.render.gloss import light_rows
from pliant.render.mesh import corner_normals
from pliant.render.picture import Picture, Surface
from pliant.render.raster_finish import HIDING, STRIP, draw_lines, finish
from pliant.render.raster_shade import FINISHED, paint_sky, shade, wet_vertices
from pliant.render.raster_tiles import EMPTY, draw
from pliant.render.shadow import ShadowMap, shaded, shadow_map, shadows_on

_REFERENCE = 1280 * 720  # pixels of the picture for which line widths are given
_NEVER = 1e30  # times as far: nothing hides what lies over all else
_LEAST_LINE = 1.0  # pixels: lines are no thinner
_NEAR = 0.02  # nearest depth that is drawn, in camera distances
_SEARCH = 4  # pixels around the one asked for in which something is picked
_CELL = 1.0  # in radii of spheres as the camera's target would show them: width of the cells of the first round
_LEAST_CELL = 2.0  # pixels
_FIRST_CAPACITY = 1024
_ON_CPU = (ti.x64, ti.arm64)
_NO_PANELS = np.zeros((1, 1), np.uint32)


@dataclass(frozen=True)
class Hit:
    """What is seen at a pixel: `kind` is "points" or "surface", `group` its place in that list of the picture, `index`
    the particle or face in the group, as its arrays have it, and `point` (3,) the place [m]."""

    kind: str
    group: int
    index: int
    point: np.ndarray


class Raster:
    """Draws a `Picture` at a size that may change; Taichi must be running on the CPU, in whose memory all data is.

    `picture.glass` and what is written on a picture are left out.
    """

    def __init__(self, width: int, height: int):
        if ti.lang.impl.get_runtime().prog is None or ti.lang.impl.current_cfg().arch not in _ON_CPU:
            raise PliantError("cannot draw for a window: start the engine on the CPU first, backend.start('cpu').")
        self._pool: dict[str, np.ndarray] = {}
        self._picture: Picture | None = None
        self._shadows: ShadowMap | None = None
        self._camera: Camera | None = None
        self._normals: dict[int, tuple[np.ndarray, ...]] = {}  # of surfaces by their place: vertices, faces, normals
        self._line_colors = np.zeros((1, 3), np.float32)
        self._point_starts = self._face_starts = np.zeros(1, np.int64)
        self._segments = 0
        self._wet = False  # whether there are fine wet surfaces
        self.resize(width, height)

    def resize(self, width: int, height: int) -> None:
        """Draw at this size [pixels] from now on; what was drawn is forgotten, what was loaded is not."""
        if min(width, height) < 1:
            raise PliantError(f"a picture needs a positive size, got {width} x {height}.")
        self.width, self.height = int(width), int(height)
        self._keys = np.full((self.height, self.width), EMPTY, np.int64)
        self._colors = np.zeros((self.height, self.width), np.uint32)
        self._lines = np.zeros((self.height, self.width), np.int32)
        rows, strips = (-(-n // STRIP) for n in self._keys.shape)
        self._sky = np.zeros((rows + 1, strips + 1, 3), np.float32)
        self._strips = np.zeros((self.height, strips), np.int32)
        self._nearest = np.zeros([int(n / _LEAST_CELL) + 1 for n in self._keys.shape], np.float32)
        self._farthest = np.zeros([-(-n // kernels.PART) for n in self._keys.shape], np.float32)
        self._farthest_around = np.zeros_like(self._farthest)
        rows, self._across = (-(-n // kernels.TILE) for n in self._keys.shape)
        self._tiles = rows * self._across
        self._starts, self._used = np.zeros(self._tiles + 1, np.int32), np.zeros(self._tiles, np.int32)
        self._drawn: tuple[float, ...] = ()

    def load(self, picture: Picture) -> None:
        """Take over what is in a picture: everything that does not depend on where it is seen from."""
        casts = picture.shadow > 0 and len(picture.lights) > 0
        self._shadows = shadow_map(picture.lights[0].direction, picture.points, picture.surfaces) if casts else None
        self._picture, self._drawn = picture, ()
        self._load_points(picture)
        self._load_surfaces(picture)
        self._load_lines(picture)

    def draw(self, camera: Camera | None = None) -> None:
        """Draw what was loaded, as `camera` sees it or, without one, the picture's own, unless just that is drawn."""
        picture = self._loaded()
        camera = camera or picture.camera
        drawn = (*camera.position, *camera.target, *camera.up, camera.fov)
        if drawn == self._drawn:
            return
        self._camera, self._drawn = camera, drawn
        axes = _axes(camera)
        view = np.array([camera.position, *axes], np.float32)
        scale, near = self._scale(camera), _NEAR * camera.distance
        self._cover(view, scale, near, camera.distance)
        lights = light_rows(picture)
        lights[::2] = lights[::2] @ axes.T
        half = lights[0] / max(np.linalg.norm(lights[0]), 1e-9) - (0.0, 0.0, 1.0)
        shading = np.array([axes[:, 1], picture.ambient, *axes, picture.background, picture.horizon,
                          half / max(np.linalg.norm(half), 1e-9)], np.float32)  # fmt: skip
        paint_sky(self._sky, *self._keys.shape, *surroundings(picture, camera, self._shadows, self.width / self.height))
        pool = self._pool
        if self._wet:
            wet_vertices(
                int(self._vertex_starts[-1]), pool["placed"], pool["vertex_normals"], pool["vertex_colors"],
                pool["clear"], pool["vertex_gloss"], lights, len(lights) // 2, shading, pool["seen_colors"],
            )  # fmt: skip
        shade(
            self._keys, self._colors, self._strips, int(self._point_starts[-1]), pool["centres"], pool["colors"],
            pool["corners"], pool["placed"], pool["normals"], pool["seen_colors"], pool["clear"], pool["gloss"],
            lights, len(lights) // 2, shading, self._sky, scale,
        )  # fmt: skip
        self._draw_lines(picture, view, scale, near)

    def image(self, panels: np.ndarray | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """What was drawn as (height, width) uint32, first row on top: blue, green, red and 255, a byte each from the
        lowest on. It is written to `out`, if there is one.

        `panels` (height, width, 4) uint8, with straight alpha, are put over it.
        """
        if panels is not None and panels.shape != (self.height, self.width, 4):
            raise PliantError(f"panels must have shape {(self.height, self.width, 4)}, got {panels.shape}.")
        top = _NO_PANELS if panels is None else np.ascontiguousarray(panels, np.uint8).view(np.uint32)[:, :, 0]
        out = np.empty((self.height, self.width), np.uint32) if out is None else out
        finish(self._colors, self._strips, self._lines, self._line_colors, top, int(panels is not None), out)
        return out

    def rows(self) -> np.ndarray:
        """What was drawn as (height, width, 3) uint8, red, green, blue, without panels: for files."""
        return np.ascontiguousarray(self.image().view(np.uint8).reshape(self.height, self.width, 4)[:, :, 2::-1])

    def pick(self, px: int, py: int) -> Hit | None:
        """What is seen at a pixel, counted from the left and from the top, or else at the next one within 4 pixels."""
        if self._camera is None or not self._drawn:
            return None
        i, j = int(py), int(px)
        low, high = (max(i - _SEARCH, 0), max(j - _SEARCH, 0)), (i + _SEARCH + 1, j + _SEARCH + 1)
        around = self._keys[low[0] : max(high[0], 0), low[1] : max(high[1], 0)]
        found = np.argwhere(around != EMPTY) + low
        if not len(found):
            return None
        a, b = found[np.argmin(((found - (i, j)) ** 2).sum(axis=1))]
        return self._hit(int(a), int(b), self._camera)

    def _hit(self, i: int, j: int, camera: Camera) -> Hit:
        key = self._keys[i, j]
        scale, index = self._scale(camera), int(key & 0x7FFFFFFF)
        ray = np.array([(i + 0.5 - self.height / 2) / scale, (j + 0.5 - self.width / 2) / scale, 1.0])
        depth = float(np.int32(key >> 32).view(np.float32)) / (ray @ ray)
        point = np.asarray(camera.position, float) + depth * ray @ _axes(camera)
        kind, starts = "points", self._point_starts
        if index >= starts[-1]:
            kind, starts, index = "surface", self._face_starts, index - int(starts[-1])
        group = int(np.searchsorted(starts, index, side="right")) - 1
        return Hit(kind, group, index - int(starts[group]), point)

    def _loaded(self) -> Picture:
        if self._picture is None:
            raise PliantError("nothing to draw: Raster.load takes a picture first.")
        return self._picture

    def _scale(self, camera: Camera) -> float:
        """Pixels per unit of slope."""
        return self.height / 2 / float(np.tan(np.radians(camera.fov) / 2))

    def _array(self, name: str, count: int, *shape: int, kind: Any = np.float32) -> np.ndarray:
        """An array of that name with room for at least `count` rows: one that grows keeps nothing of what it held."""
        old = self._pool.get(name)
        if old is None or len(old) < count:
            capacity = _FIRST_CAPACITY if old is None else len(old)
            while capacity < count:
                capacity *= 2
            self._pool[name] = np.zeros((capacity, *shape), kind)
        return self._pool[name]

    def _load_points(self, picture: Picture) -> None:
        self._point_starts = np.cumsum([0, *(len(group.x) for group in picture.points)])
        count = int(self._point_starts[-1])
        x, radius, colors = self._array("x", count, 3), self._array("radius", count), self._array("colors", count, 3)
        self._array("centres", count, 4)
        for group, first in zip(picture.points, self._point_starts, strict=False):
            part = slice(first, first + len(group.x))
            x[part], radius[part], colors[part] = group.x, group.radius, shaded(group, self._shadows, picture.shadow)

    def _load_surfaces(self, picture: Picture) -> None:
        surfaces = picture.surfaces
        self._face_starts = np.cumsum([0, *(len(s.faces) for s in surfaces)])
        self._vertex_starts = np.cumsum([0, *(len(s.vertices) for s in surfaces)])
        vertices, faces = int(self._vertex_starts[-1]), int(self._face_starts[-1])
        x, colors = self._array("vertices", vertices, 3), self._array("vertex_colors", vertices, 3)
        corners, normals = self._array("corners", faces, 3, kind=np.int32), self._array("normals", 3 * faces, 3)
        gloss, seen = self._array("gloss", faces), self._array("seen_colors", vertices, 3)
        clear, bent = self._array("clear", vertices), self._array("vertex_normals", vertices, 3)
        wet = self._array("vertex_gloss", vertices)
        self._array("placed", vertices, 3)
        self._wet = False
        for slot, (s, vertex, face) in enumerate(zip(surfaces, self._vertex_starts, self._face_starts, strict=False)):
            here, part = slice(vertex, vertex + len(s.vertices)), slice(face, face + len(s.faces))
            x[here], colors[here], corners[part] = s.vertices, s.color, s.faces + vertex
            seen[here], gloss[part], wet[here] = colors[here], 0.0, 0.0
            if s.gloss > 0 and s.normals is not None:  # as in files: a sheen needs smooth normals
                gloss[part], clear[here] = s.gloss, shadows_on(s, s.normals, self._shadows, picture.shadow)
                if s.fine:
                    self._wet, gloss[part], wet[here], bent[here] = True, FINISHED, s.gloss, s.normals
                    continue
            normals[3 * face : 3 * (face + len(s.faces))] = self._corner_normals(s, slot)

    def _corner_normals(self, surface: Surface, slot: int) -> np.ndarray:
        """Normals (3 m, 3) of the corners; if they must be found, those of an equal surface in the same place do."""
        if surface.normals is not None:
            return surface.normals[surface.faces.reshape(-1)]
        kept = self._normals.get(slot)
        if kept is None or not all(map(np.array_equal, kept, (surface.vertices, surface.faces))):
            kept = (surface.vertices, surface.faces, corner_normals(surface.vertices, surface.faces))
            self._normals[slot] = kept
        return kept[2]

    def _load_lines(self, picture: Picture) -> None:
        counts = [len(lines.segments) for lines in picture.lines]
        self._segments = sum(counts)
        ends = self._array("ends", 2 * self._segments, 3)
        group = self._array("line_group", self._segments, kind=np.int32)
        if self._segments:
            ends[: 2 * self._segments] = np.concatenate([lines.segments.reshape(-1, 3) for lines in picture.lines])
            group[: self._segments] = np.repeat(np.arange(len(counts)), counts)

    def _draw_lines(self, picture: Picture, view: np.ndarray, scale: float, near: float) -> None:
        larger = (self.width * self.height / _REFERENCE) ** 0.5
        widths = np.array([max(_LEAST_LINE, lines.width * larger) for lines in picture.lines] or [0.0], np.float32)
        hiding = np.array([_NEVER if lines.over else HIDING for lines in picture.lines] or [0.0], np.float32)
        self._line_colors = np.array([lines.color for lines in picture.lines] or [(0.0, 0.0, 0.0)], np.float32)
        self._lines.fill(0)
        draw_lines(
            self._segments, self._pool["ends"], self._pool["line_group"], widths, hiding, view, scale, near,
            self._keys, self._lines, self._strips,
        )  # fmt: skip

    def _cover(self, view: np.ndarray, scale: float, near: float, distance: float) -> None:
        """Find out what each pixel sees, in two rounds: first what hides much, then what it does not hide."""
        spheres, faces = int(self._point_starts[-1]), int(self._face_starts[-1])
        pool, size = self._pool, self._keys.shape
        turn = self._array("turn", spheres + faces, kind=np.int32)
        boxes = self._array("boxes", spheres + faces, 4, kind=np.int32)
        if faces:
            kernels.place_triangles(
                int(self._vertex_starts[-1]), faces, spheres, pool["vertices"], pool["corners"], view, pool["placed"],
                turn, boxes, scale, *size, near,
            )  # fmt: skip
        if spheres:
            radius = min(group.radius for group in self._loaded().points if len(group.x))
            cell = max(_LEAST_CELL, _CELL * radius * scale / distance)
            kernels.project(
                spheres, pool["x"], pool["radius"], view, pool["centres"], self._nearest, cell, scale, *size, near
            )
            kernels.first_spheres(spheres, pool["centres"], self._nearest, cell, scale, *size, turn, boxes)
        self._round(True, spheres, spheres + faces, scale, near)
        if spheres:
            parts = (self._farthest, self._farthest_around)
            kernels.other_spheres(spheres, pool["centres"], *parts, scale, *size, turn, boxes)
        if faces:
            kernels.other_triangles(faces, spheres, pool["corners"], pool["placed"], self._farthest, turn, boxes)
        if spheres or faces:
            self._round(False, spheres, spheres + faces, scale, near)

    def _round(self, fresh: bool, spheres: int, things: int, scale: float, near: float) -> None:
        pool, tiles = self._pool, (self._tiles, self._across)
        total = kernels.count(things, pool["turn"], pool["boxes"], self._tiles, self._starts, self._across)
        lists = self._array("lists", total, kind=np.int32)
        kernels.sort(things, pool["turn"], pool["boxes"], self._tiles, self._starts, self._across, self._used, lists)
        draw(
            int(fresh), spheres, *tiles, self._starts, lists, pool["boxes"], pool["centres"], pool["corners"],
            pool["placed"], scale, near, self._keys, self._farthest,
        )  # fmt: skip


def _axes(camera: Camera) -> np.ndarray:
    """Rows: unit vectors down, to the right and forward."""
    right, up, forward = camera.axes()
    return np.array([-up, right, forward])
