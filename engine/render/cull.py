"""Leaves out the particles that nobody can see.

A sphere is drawn as a square of pixels whether or not it is hidden, and a body of fluid is mostly inside: with a
software driver the hidden layers take ten times as long as the visible ones. The test here errs on the safe side.
"""

from collections.abc import Sequence

import numpy as np
import taichi as ti

from pliant.render.picture import Camera, Points
from pliant.render.shadow import Grid, Rows

_CELLS_PER_RADIUS = 4.0  # depth cells across a sphere's radius: coarser hides too little, finer costs too much
_FARTHEST = 1e30


def visible(points: Sequence[Points], camera: Camera, width: int, height: int) -> list[np.ndarray]:
    """For each group, which particles may show in a picture of this size: bools (n,).

    Every sphere writes its centre's depth into the cells of a coarse depth image that lie wholly inside its outline
    (its surface there is nearer than that). A sphere is hidden if all cells it could touch hold something nearer
    than its front.
    """
    points = list(points)
    if not any(len(p.x) for p in points):
        return [np.zeros(0, bool) for _ in points]
    scale = height / 2 / np.tan(np.radians(camera.fov) / 2)  # pixels per unit of slope
    radius = min(p.radius for p in points if len(p.x))
    cell = max(1.0, radius * scale / camera.distance / _CELLS_PER_RADIUS)
    scale /= cell
    depths = np.full((int(np.ceil(width / cell)), int(np.ceil(height / cell))), _FARTHEST, np.float32)
    view = [ti.math.vec3(v) for v in (camera.position, *camera.axes())]
    middle = ti.math.vec2(width / cell / 2, height / cell / 2)
    for group in points:
        _cover(group.x, group.radius, depths, *view, middle, scale)
    masks = []
    for group in points:
        mask = np.ones(len(group.x), np.int32)
        _test(group.x, group.radius, mask, depths, *view, middle, scale)
        masks.append(mask.astype(bool))
    return masks


@ti.func
def _seen(
    p: ti.math.vec3, eye: ti.math.vec3, right: ti.math.vec3, up: ti.math.vec3, forward: ti.math.vec3,
    middle: ti.math.vec2, scale: ti.f32,
) -> ti.math.vec3:  # fmt: skip
    """Position in cells, and depth."""
    depth = (p - eye).dot(forward)
    at = middle + scale / depth * ti.Vector([(p - eye).dot(right), (p - eye).dot(up)])
    return ti.Vector([at[0], at[1], depth])


@ti.kernel
def _cover(
    x: Rows, radius: ti.f32, depths: Grid, eye: ti.math.vec3, right: ti.math.vec3, up: ti.math.vec3,
    forward: ti.math.vec3, middle: ti.math.vec2, scale: ti.f32,
):  # fmt: skip
    for k in x:
        p = _seen(x[k], eye, right, up, forward, middle, scale)
        if p[2] > 2 * radius:
            reach = scale * radius / p[2] - 0.71  # a cell whose centre is within this lies inside, corners and all
            low = ti.max(ti.floor(p.xy - reach, ti.i32), 0)
            high = ti.min(ti.ceil(p.xy + reach, ti.i32), ti.Vector(depths.shape))
            for i in range(low[0], high[0]):
                for j in range(low[1], high[1]):
                    if (i + 0.5 - p[0]) ** 2 + (j + 0.5 - p[1]) ** 2 < reach * ti.abs(reach):
                        ti.atomic_min(depths[i, j], p[2])


@ti.kernel
def _test(
    x: Rows, radius: ti.f32, mask: ti.types.ndarray(dtype=ti.i32, ndim=1), depths: Grid, eye: ti.math.vec3,
    right: ti.math.vec3, up: ti.math.vec3, forward: ti.math.vec3, middle: ti.math.vec2, scale: ti.f32,
):  # fmt: skip
    for k in x:
        p = _seen(x[k], eye, right, up, forward, middle, scale)
        front = p[2] - radius
        if front > radius:
            reach = scale * radius / front + 1.0  # the outline of a sphere off the axis is a little wider than its disc
            hidden = 1
            low = ti.max(ti.floor(p.xy - reach, ti.i32), 0)
            high = ti.min(ti.ceil(p.xy + reach, ti.i32), ti.Vector(depths.shape))
            for i in range(low[0], high[0]):
                for j in range(low[1], high[1]):
                    if depths[i, j] > front:
                        hidden = 0
            mask[k] = 1 - hidden
