"""Thin glass: GGUI knows no transparency, so glass is laid under and over its picture.

Of a container, the walls on the far side are behind everything it holds and the near ones in front of it. The far ones
are therefore blended into the backdrop before the scene is drawn, the near ones into the finished picture: exact for
convex containers, without sorting and without reading depths back.
"""

from typing import TypeAlias

import numpy as np
import taichi as ti

from pliant.render.picture import Picture, Triple

FACE_ON = 0.08  # share of light that a pane reflects at right angles: its two sides, 4 % each (Fresnel)
GRAZING = 0.50  # and at a grazing angle: less than Fresnel's 1, since panes here are all seen at grazing angles
POWER = 4.0  # of the rise in between (Schlick 1994 has 5, for a single side)
TINT, DENSITY = (0.66, 0.85, 0.86), 0.05  # what colour the glass itself is, and how much of it
SHINE, SPREAD = 0.55, 0.45  # strength and angular width [rad] of the key light's reflection
_EDGES, _NORMAL, _BOX = 0, 9, 12  # columns of a triangle's table: three edges (a, b, c), its normal, its pixels

Table: TypeAlias = ti.types.ndarray(dtype=ti.f32, ndim=2)
Layer: TypeAlias = ti.types.ndarray(dtype=ti.math.vec4, ndim=2)
Float: TypeAlias = ti.types.ndarray(dtype=ti.math.vec3, ndim=2)
Bytes: TypeAlias = ti.types.ndarray(dtype=ti.u8, ndim=3)


class Glass:
    """The glass of one picture, in a layer that is reused from picture to picture."""

    def __init__(self, width: int, height: int):
        self._layer = np.empty((height, width, 4), np.float32)

    def behind(self, backdrop: np.ndarray, picture: Picture) -> None:
        """Blends the far walls into a backdrop (width, height, 3), bottom up."""
        if self._draw(picture, front=False):
            _under(self._layer, backdrop)

    def before(self, image: np.ndarray, picture: Picture) -> None:
        """Blends the near walls into a finished picture (height, width, 3), top down."""
        if self._draw(picture, front=True):
            _over(self._layer, image)

    def _draw(self, picture: Picture, front: bool) -> bool:
        height, width = self._layer.shape[:2]
        table = _triangles(picture, width, height, front)
        if not len(table):
            return False
        camera = picture.camera
        tangent = np.tan(np.radians(camera.fov) / 2)
        right, up, forward = camera.axes()
        light: Triple = picture.lights[0].direction if picture.lights else (0.0, 1.0, 0.0)
        _shade(
            self._layer, table, *map(ti.math.vec3, (right * tangent * width / height, up * tangent, forward)),
            ti.math.vec3(np.asarray(light, float) / np.linalg.norm(light)),
            ti.math.vec3(picture.background), ti.math.vec3(picture.horizon),
        )  # fmt: skip
        return True


def _triangles(picture: Picture, width: int, height: int, front: bool) -> np.ndarray:
    """(m, 16): the glass triangles that face the camera, or those that do not, ready to be drawn.

    An edge is the plane through the eye and two corners: e = d . (v1 x v2) for a ray d, which needs no clipping at the
    eye (Olano and Greer 1997). Along rows and columns e is linear; divided by its slope it is a distance in pixels.
    """
    camera, rows = picture.camera, []
    axes, slope = camera.axes(), np.tan(np.radians(camera.fov) / 2) * 2 / height
    for pane in picture.glass:
        corners = pane.vertices.astype(np.float64)[pane.faces] - np.asarray(camera.position, float)
        normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        facing = (normal * corners[:, 0]).sum(axis=1)
        chosen = facing < 0 if front else facing > 0
        corners, normal = corners[chosen] @ axes.T, normal[chosen]
        edges = np.cross(corners[:, [1, 2, 0]], corners[:, [2, 0, 1]])
        edges *= np.sign((edges[:, 0] * corners[:, 0]).sum(axis=1))[:, None, None]
        a, b = edges[..., 0] * slope, -edges[..., 1] * slope  # per column to the right, per row downwards
        c = edges[..., 2] + a * (0.5 - width / 2) + b * (0.5 - height / 2)
        scale = np.maximum(np.hypot(a, b), 1e-30)
        lines = np.stack([a / scale, b / scale, c / scale], axis=-1).reshape(-1, 9)
        normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-30)
        rows.append(np.concatenate([lines, normal, _pixels(corners, slope, width, height)], axis=1))
    return np.concatenate(rows).astype(np.float32) if rows else np.zeros((0, 16), np.float32)


def _pixels(corners: np.ndarray, slope: float, width: int, height: int) -> np.ndarray:
    """(m, 4): first and last column, first and last row that a triangle may touch."""
    ahead = corners[..., 2].min(axis=1, initial=np.inf) > 1e-6
    z = np.where(ahead[:, None], corners[..., 2], 1.0) * slope
    x, y = corners[..., 0] / z + width / 2, height / 2 - corners[..., 1] / z
    box = np.stack([x.min(axis=1) - 1, x.max(axis=1) + 1, y.min(axis=1) - 1, y.max(axis=1) + 1], axis=1)
    box = np.where(ahead[:, None], box, (0, width, 0, height))  # partly behind the eye: it may be anywhere
    return np.clip(box, 0, (width, width, height, height))


@ti.func
def _reflected(ray: ti.math.vec3, light: ti.math.vec3, zenith: ti.math.vec3, horizon: ti.math.vec3) -> ti.math.vec3:
    """What a pane mirrors: the sky, and the soft glow of the key light."""
    angle = ti.acos(ti.math.clamp(ray.dot(light), -1.0, 1.0)) / SPREAD
    return ti.math.mix(horizon, zenith, ti.math.clamp(ray[1], 0.0, 1.0)) + SHINE * ti.exp(-angle * angle)


@ti.kernel
def _shade(
    layer: Layer, table: Table, right: ti.math.vec3, up: ti.math.vec3, forward: ti.math.vec3, light: ti.math.vec3,
    zenith: ti.math.vec3, horizon: ti.math.vec3,
):  # fmt: skip
    """Colour (already times its share) and share of glass in each pixel. Rows run in parallel, triangles in order, so
    that the same picture comes out every time."""
    height, width = layer.shape[0], layer.shape[1]
    for j in range(height):
        for i in range(width):
            layer[j, i] = ti.Vector([0.0, 0.0, 0.0, 0.0])
        for t in range(table.shape[0]):
            if table[t, _BOX + 2] <= j <= table[t, _BOX + 3]:
                normal = ti.Vector([table[t, _NORMAL], table[t, _NORMAL + 1], table[t, _NORMAL + 2]])
                for i in range(ti.cast(table[t, _BOX], ti.i32), ti.cast(table[t, _BOX + 1], ti.i32)):
                    cover = 1.0
                    for k in ti.static(range(3)):
                        edge = table[t, 3 * k] * i + table[t, 3 * k + 1] * j + table[t, 3 * k + 2]
                        cover = ti.min(cover, edge + 0.5)
                    if cover > 0.0:
                        x, y = (2 * i + 1) / width - 1.0, 1.0 - (2 * j + 1) / height
                        ray = (forward + x * right + y * up).normalized()
                        cosine = ray.dot(normal)
                        share = FACE_ON + (GRAZING - FACE_ON) * (1.0 - ti.abs(cosine)) ** POWER
                        seen = share * _reflected(ray - 2.0 * cosine * normal, light, zenith, horizon)
                        color = seen + DENSITY * ti.Vector(TINT)
                        here = ti.Vector([color[0], color[1], color[2], share + DENSITY])
                        layer[j, i] += (1.0 - layer[j, i][3]) * ti.min(cover, 1.0) * here


@ti.kernel
def _under(layer: Layer, backdrop: Float):
    for i, j in backdrop:
        glass = layer[layer.shape[0] - 1 - j, i]
        if glass[3] > 0.0:
            backdrop[i, j] = ti.min((1.0 - glass[3]) * backdrop[i, j] + glass.xyz, 1.0)


@ti.kernel
def _over(layer: Layer, image: Bytes):
    for j, i in layer:
        if layer[j, i][3] > 0.0:
            for c in ti.static(range(3)):
                mixed = (1.0 - layer[j, i][3]) * ti.cast(image[j, i, c], ti.f32) + 255.0 * layer[j, i][c]
                image[j, i, c] = ti.cast(ti.math.clamp(mixed + 0.5, 0.0, 255.0), ti.u8)
