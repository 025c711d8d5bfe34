"""What stands behind the particles: a pale sky that brightens towards the horizon, and a floor that fades into it.

GGUI has only one flat background colour, but draws an image underneath the scene: this makes that image.
"""

from typing import TypeAlias

import numpy as np
import taichi as ti

from pliant.render.picture import Picture
from pliant.render.shadow import Grid, ShadowMap

_FADE = 2.6  # distance from the target, in camera distances, at which the floor has mostly become horizon
_FARTHEST = 1e6  # in camera distances: beyond, the floor has long become horizon
_NOWHERE = -1e30  # height of a floor that is not there
_NO_COVER = np.zeros((1, 1), np.float32)

Image: TypeAlias = ti.types.ndarray(dtype=ti.math.vec3, ndim=2)


def backdrop(image: np.ndarray, picture: Picture, shadows: ShadowMap | None) -> None:
    """Fill `image` (width, height, 3), columns first and bottom up as GGUI wants it."""
    camera = picture.camera
    tangent = np.tan(np.radians(camera.fov) / 2)
    right, up, forward = camera.axes()
    right, up = right * tangent * image.shape[0] / image.shape[1], up * tangent
    a, b, light = np.eye(3)[[0, 2, 1]] if shadows is None else shadows.axes
    origin, cell = ((0.0, 0.0), 1.0) if shadows is None else (shadows.origin, shadows.cell)
    strength = 0.0 if shadows is None or light[1] <= 0 else picture.shadow
    height = _NOWHERE if picture.ground is None else float(picture.ground)
    _paint(
        image, *map(ti.math.vec3, (right, up, forward, camera.position, camera.target)),
        *map(ti.math.vec3, (picture.background, picture.horizon, picture.ground_color)),
        height, _FADE * camera.distance, ti.math.vec3(a), ti.math.vec3(b), ti.math.vec2(origin), cell,
        _NO_COVER if shadows is None else shadows.cover, strength,
    )  # fmt: skip


@ti.kernel
def _paint(
    image: Image, right: ti.math.vec3, up: ti.math.vec3, forward: ti.math.vec3, eye: ti.math.vec3,
    target: ti.math.vec3, zenith: ti.math.vec3, horizon: ti.math.vec3, color: ti.math.vec3, height: ti.f32,
    fade: ti.f32, a: ti.math.vec3, b: ti.math.vec3, origin: ti.math.vec2, cell: ti.f32, cover: Grid, strength: ti.f32,
):  # fmt: skip
    for i, j in image:
        # The sky is measured on the screen, not in the world: a camera that looks down would see one flat colour.
        t = (j + 0.5) / image.shape[1]
        side = (2 * i + 1) / image.shape[0] - 1.0
        seen = ti.math.mix(horizon, zenith, ti.math.clamp(t * t * (0.85 + 0.3 * side * side), 0.0, 1.0))
        ray = forward + side * right + (2 * t - 1.0) * up
        away = (height - eye[1]) / ray[1]  # to the floor, in lengths of the ray
        if 0.0 < away < _FARTHEST:
            p = eye + away * ray
            visible = ti.exp(-(p - target).norm_sqr() / (fade * fade))
            shadow = strength * _bilinear(cover, (ti.Vector([p.dot(a), p.dot(b)]) - origin) / cell)
            seen = ti.math.mix(seen, color * (1.0 - shadow), visible)
        image[i, j] = seen


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
