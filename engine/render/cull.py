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
_FINE_CELLS = 6.0  # the same for the second test, which looks at each sphere's shape
_HALF = 0.71  # of a cell's diagonal, in cells: what holds at its centre is known at its corners but for this
_TIE, _SHRINK = 0.02, 0.96  # in radii: how much nearer what is tested counts, how much smaller what covers it
_FARTHEST = 1e30


def visible(points: Sequence[Points], camera: Camera, width: int, height: int, samples: int = 1) -> list[np.ndarray]:
    """For each group, which particles may show in a picture of this size: bools (n,).

    `samples` across a pixel are drawn. A coarse test leaves some of all particles, a fine one a few of these.
    """
    points = list(points)
    first = _in_front(points, camera, width, height)
    few = [Points(group.x[seen], group.radius) for group, seen in zip(points, first, strict=True)]
    second = _on_top(few, camera, width, height, samples)
    for seen, still in zip(first, second, strict=True):
        seen[seen] = still
    return first


def _in_front(points: list[Points], camera: Camera, width: int, height: int) -> list[np.ndarray]:
    """The coarse test.

    Every sphere writes its centre's depth into the cells of a coarse depth image that lie wholly inside its outline
    (its surface there is nearer than that). A sphere is hidden if all cells it could touch hold something nearer
    than its front.
    """
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


def _on_top(points: list[Points], camera: Camera, width: int, height: int, samples: int) -> list[np.ndarray]:
    """The fine test: a sphere is hidden if, wherever it could show, something else is nearer than its surface there.

    What covers is taken a little smaller and farther, what is tested a little larger and nearer than it is drawn.
    """
    if not any(len(p.x) for p in points):
        return [np.zeros(0, bool) for _ in points]
    scale = height / 2 / np.tan(np.radians(camera.fov) / 2)
    radius = min(p.radius for p in points if len(p.x))
    cell = max(1.0 / samples, radius * scale / camera.distance / _FINE_CELLS)
    scale /= cell
    depths = np.empty((int(np.ceil(width / cell)), int(np.ceil(height / cell))), np.float32)
    _clear(depths)
    view = [ti.math.vec3(v) for v in (camera.position, *camera.axes())]
    middle = ti.math.vec2(width / cell / 2, height / cell / 2)
    for group in points:
        _cover_round(group.x, group.radius, depths, *view, middle, scale)
    masks = []
    for group in points:
        mask = np.ones(len(group.x), np.int32)
        _test_round(group.x, group.radius, mask, depths, *view, middle, scale)
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


@ti.kernel
def _clear(depths: Grid):
    for i, j in depths:
        depths[i, j] = _FARTHEST


@ti.kernel
def _cover_round(
    x: Rows, radius: ti.f32, depths: Grid, eye: ti.math.vec3, right: ti.math.vec3, up: ti.math.vec3,
    forward: ti.math.vec3, middle: ti.math.vec2, scale: ti.f32,
):  # fmt: skip
    for k in x:
        p = _seen(x[k], eye, right, up, forward, middle, scale)
        if p[2] > 2 * radius:
            size = _SHRINK * scale * radius / p[2]
            reach = size - _HALF
            low = ti.max(ti.floor(p.xy - reach, ti.i32), 0)
            high = ti.min(ti.ceil(p.xy + reach, ti.i32), ti.Vector(depths.shape))
            for i in range(low[0], high[0]):
                for j in range(low[1], high[1]):
                    away = ti.sqrt((i + 0.5 - p[0]) ** 2 + (j + 0.5 - p[1]) ** 2)
                    if away < reach:
                        bulge = ti.sqrt(1.0 - ((away + _HALF) / size) ** 2)
                        ti.atomic_min(depths[i, j], p[2] - radius * bulge)


@ti.kernel
def _test_round(
    x: Rows, radius: ti.f32, mask: ti.types.ndarray(dtype=ti.i32, ndim=1), depths: Grid, eye: ti.math.vec3,
    right: ti.math.vec3, up: ti.math.vec3, forward: ti.math.vec3, middle: ti.math.vec2, scale: ti.f32,
):  # fmt: skip
    for k in x:
        p = _seen(x[k], eye, right, up, forward, middle, scale)
        if p[2] > 2 * radius:
            size = scale * radius / (p[2] - radius)  # the outline of a sphere off the axis is wider than its disc
            reach = size + _HALF
            hidden = 1
            low = ti.max(ti.floor(p.xy - reach, ti.i32), 0)
            high = ti.min(ti.ceil(p.xy + reach, ti.i32), ti.Vector(depths.shape))
            for i in range(low[0], high[0]):
                for j in range(low[1], high[1]):
                    away = ti.sqrt((i + 0.5 - p[0]) ** 2 + (j + 0.5 - p[1]) ** 2)
                    if hidden == 1 and away < reach:
                        bulge = ti.sqrt(ti.max(1.0 - (ti.max(away - _HALF, 0.0) / size) ** 2, 0.0))
                        if depths[i, j] > p[2] - radius * (bulge + _TIE):
                            hidden = 0
            mask[k] = 1 - hidden
