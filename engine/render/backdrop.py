"""What stands behind the particles: a pale sky that brightens towards the horizon, and a floor that fades into it.

GGUI has only one flat background colour, but draws an image underneath the scene: this makes that image.
"""

from typing import TypeAlias

import numpy as np
import taichi as ti

from pliant.render.picture import Picture
from pliant.render.shadow import Grid, ShadowMap

_FADE = 2.6  # distance from the target, in camera distances, at which the floor has mostly become horizon
_NO_COVER = np.zeros((1, 1), np.float32)

Image: TypeAlias = ti.types.ndarray(dtype=ti.math.vec3, ndim=2)


def backdrop(image: np.ndarray, picture: Picture, shadows: ShadowMap | None) -> None:
    """Fill `image` (width, height, 3), columns first and bottom up as GGUI wants it."""
    camera = picture.camera
    tangent = np.tan(np.radians(camera.fov) / 2)
    right, up, forward = camera.axes()
    right, up = right * tangent * image.shape[0] / image.shape[1], up * tangent
    _sky(image, ti.math.vec3(picture.background), ti.math.vec3(picture.horizon))
    if picture.ground is None:
        return
    a, b, _ = np.eye(3) if shadows is None else shadows.axes
    origin, cell = ((0.0, 0.0), 1.0) if shadows is None else (shadows.origin, shadows.cell)
    light = np.array((0.0, 1.0, 0.0)) if shadows is None else shadows.axes[2]
    strength = 0.0 if shadows is None or light[1] <= 0 else picture.shadow
    _floor(
        image, *map(ti.math.vec3, (right, up, forward, camera.position, camera.target)),
        float(picture.ground), _FADE * camera.distance, ti.math.vec3(picture.ground_color),
        ti.math.vec3(a), ti.math.vec3(b), ti.math.vec2(origin), cell,
        _NO_COVER if shadows is None else shadows.cover, strength,
    )  # fmt: skip


@ti.func
def _ray(image: ti.template(), i: ti.i32, j: ti.i32, right: ti.template(), up: ti.template(), forward: ti.template()):
    x = (2 * i + 1) / image.shape[0] - 1.0
    y = (2 * j + 1) / image.shape[1] - 1.0
    return (forward + x * right + y * up).normalized()


@ti.kernel
def _sky(image: Image, zenith: ti.math.vec3, horizon: ti.math.vec3):
    for i, j in image:
        # Measured on the screen, not in the world: a camera that looks down would otherwise see one flat colour.
        t = (j + 0.5) / image.shape[1]
        side = (2 * i + 1) / image.shape[0] - 1.0
        t = ti.math.clamp(t * t * (0.85 + 0.3 * side * side), 0.0, 1.0)
        image[i, j] = ti.math.mix(horizon, zenith, t)


@ti.kernel
def _floor(
    image: Image, right: ti.math.vec3, up: ti.math.vec3, forward: ti.math.vec3, eye: ti.math.vec3,
    target: ti.math.vec3, height: ti.f32, fade: ti.f32, color: ti.math.vec3,
    a: ti.math.vec3, b: ti.math.vec3, origin: ti.math.vec2, cell: ti.f32, cover: Grid, strength: ti.f32,
):  # fmt: skip
    for i, j in image:
        ray = _ray(image, i, j, right, up, forward)
        t = (height - eye[1]) / ray[1]
        if t > 0:
            p = eye + t * ray
            far = (p - target).norm() / fade
            visible = ti.exp(-far * far)
            shadow = strength * _bilinear(cover, (ti.Vector([p.dot(a), p.dot(b)]) - origin) / cell)
            image[i, j] = ti.math.mix(image[i, j], color * (1.0 - shadow), visible)


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
