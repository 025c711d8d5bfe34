"""What stands behind the particles: a pale sky that brightens towards the horizon, and a floor that fades into it.

GGUI has only one flat background colour, but draws an image underneath the scene: this makes that image.
"""

from typing import TypeAlias

import numpy as np
import taichi as ti

from pliant.render.camera import Camera
from pliant.render.picture import Picture
from pliant.render.shadow import Grid, Rows, ShadowMap

_FADE = 2.6  # distance from the target, in camera distances, at which the floor has mostly become horizon
_FARTHEST = 1e6  # in camera distances: beyond, the floor has long become horizon
_GONE = 12.0  # exponent from which on nothing is left of the floor: a thousandth of a byte
_NOWHERE = -1e30  # height of a floor that is not there
_NO_COVER = np.zeros((1, 1), np.float32)

Image: TypeAlias = ti.types.ndarray(dtype=ti.math.vec3, ndim=2)


def backdrop(image: np.ndarray, picture: Picture, shadows: ShadowMap | None) -> None:
    """Fill `image` (width, height, 3), columns first and bottom up as GGUI wants it."""
    _paint(image, *surroundings(picture, picture.camera, shadows, image.shape[0] / image.shape[1]))


def surroundings(
    picture: Picture, camera: Camera, shadows: ShadowMap | None, aspect: float
) -> tuple[np.ndarray, np.ndarray]:
    """What `behind` is made from, as rows (12, 3), and the shadow's outline; `aspect` is width over height."""
    tangent = np.tan(np.radians(camera.fov) / 2)
    right, up, forward = camera.axes()
    right, up = right * tangent * aspect, up * tangent
    a, b, light = np.eye(3)[[0, 2, 1]] if shadows is None else shadows.axes
    origin, cell = ((0.0, 0.0), 1.0) if shadows is None else (shadows.origin, shadows.cell)
    strength = 0.0 if shadows is None or light[1] <= 0 else picture.shadow
    height = _NOWHERE if picture.ground is None else float(picture.ground)
    rows = [right, up, forward, camera.position, camera.target, picture.background, picture.horizon,
            picture.ground_color, a, b, (*origin, cell), (height, _FADE * camera.distance, strength)]  # fmt: skip
    return np.array(rows, np.float32), _NO_COVER if shadows is None else shadows.cover


@ti.kernel
def _paint(image: Image, rows: Rows, cover: Grid):
    for i, j in image:
        image[i, j] = behind((2 * i + 1) / image.shape[0] - 1.0, (j + 0.5) / image.shape[1], rows, cover)


@ti.func
def behind(side: ti.f32, t: ti.f32, rows: ti.template(), cover: ti.template()) -> ti.math.vec3:
    """What is seen at `side` in -1..1 from left to right and t in 0..1 from below; `rows` are of `surroundings`."""
    # The sky is measured on the screen, not in the world: a camera that looks down would see one flat colour.
    seen = ti.math.mix(rows[6], rows[5], ti.math.clamp(t * t * (0.85 + 0.3 * side * side), 0.0, 1.0))
    ray, height = rows[2] + side * rows[0] + (2 * t - 1.0) * rows[1], rows[11][0]
    away = (height - rows[3][1]) / ray[1]  # to the floor, in lengths of the ray
    if 0.0 < away < _FARTHEST:
        p = rows[3] + away * ray
        faded = (p - rows[4]).norm_sqr() / (rows[11][1] * rows[11][1])
        if faded < _GONE:
            at = (ti.Vector([p.dot(rows[8]), p.dot(rows[9])]) - rows[10].xy) / rows[10][2]
            shadow = rows[11][2] * _bilinear(cover, at)
            seen = ti.math.mix(seen, rows[7] * (1.0 - shadow), ti.exp(-faded))
    return seen


@ti.func
def _bilinear(grid: ti.template(), at: ti.math.vec2) -> ti.f32:
    base = ti.floor(at)
    w, i, j = at - base, ti.cast(base[0], ti.i32), ti.cast(base[1], ti.i32)
    value = 0.0
    if 0 <= i < grid.shape[0] - 1 and 0 <= j < grid.shape[1] - 1:
        low = ti.math.mix(grid[i, j], grid[i + 1, j], w[0])
        high = ti.math.mix(grid[i, j + 1], grid[i + 1, j + 1], w[0])
        value = ti.math.mix(low, high, w[1])
    return value
