"""Draws what the lists of the tiles name: for each pixel, how deep the nearest thing there is, and which it is.

What a pixel sees is one number, its key: above, the bits of t |d|^2 (as an integer, which is in the same order; and a
sphere's needs no division), below, the index of the thing. The nearest one has the lowest key, and of equally near ones
the first. Each tile is drawn by one thread, so that no order of the threads shows.
"""

from typing import TypeAlias

import taichi as ti

from pliant.core.backend import Ints, task, turns
from pliant.render.raster_kernels import FARTHEST, PART, TILE, Boxes, Faces, Fours
from pliant.render.shadow import Grid, Rows

EMPTY = 0x58635FA9_7FFFFFFF  # key of a pixel that sees nothing: FARTHEST, and the last index
_OVERLAP = 0.01  # pixels by which triangles that share an edge overlap: rounding must not leave gaps

Keys: TypeAlias = ti.types.ndarray(dtype=ti.i64, ndim=2)


@ti.func
def _offer(keys: ti.template(), i: ti.i32, j: ti.i32, t: ti.f32, k: ti.i32):
    keys[i, j] = ti.min(keys[i, j], (ti.cast(ti.bit_cast(t, ti.i32), ti.i64) << 32) | k)


@ti.func
def _draw_sphere(c: ti.math.vec4, k: ti.i32, box: ti.math.ivec4, scale: ti.f32, keys: ti.template()):
    """With c = z (u0, v0, 1), d = (u0 + du, v0 + dv, 1) and q = (r/z)^2 d^2 - |c x d|^2 / z^2, t d^2 = c.d - z sqrt(q).

    In each row q = alpha + beta dv - gamma dv^2, which is above zero between two columns.
    """
    u0, v0, thin, pixel = c.x / c.z, c.y / c.z, (c.w / c.z) ** 2, 1.0 / scale
    straight = 1.0 + u0 * u0 + v0 * v0
    gamma = 1.0 - thin + u0 * u0
    half = 0.5 / gamma
    top = u0 + (0.5 * keys.shape[0] - 0.5) * pixel
    base = v0 * scale + 0.5 * keys.shape[1] - 0.5  # the column where dv is zero
    for i in range(box.x, box.z):
        du = i * pixel - top
        alpha = thin * (straight + 2.0 * u0 * du) - (1.0 - thin + v0 * v0) * du * du
        beta = 2.0 * v0 * (thin + u0 * du)
        square = beta * beta + 4.0 * gamma * alpha
        if square >= 0.0:
            middle, wide = base + beta * half * scale, ti.sqrt(square) * half * scale
            low, high = ti.ceil(middle - wide, ti.i32), ti.floor(middle + wide, ti.i32) + 1
            along = straight + u0 * du
            for j in range(ti.max(low, box.y), ti.min(high, box.w)):
                dv = (j - base) * pixel
                q = ti.max(alpha + (beta - gamma * dv) * dv, 0.0)
                _offer(keys, i, j, c.z * (along + v0 * dv - ti.sqrt(q)), k)


@ti.func
def _edge(p: ti.math.vec3, q: ti.math.vec3, u: ti.f32, v: ti.f32, sign: ti.f32) -> ti.math.vec3:
    """d.(p x q), at (u, v) and its slopes along u and v: the weight of a triangle's third corner, but for a factor."""
    here = (p.x - u * p.z) * (q.y - v * q.z) - (p.y - v * p.z) * (q.x - u * q.z)
    return sign * ti.math.vec3(here, p.y * q.z - p.z * q.y, p.z * q.x - p.x * q.z)


@ti.func
def _draw_triangle(
    a: ti.math.vec3, b: ti.math.vec3, c: ti.math.vec3, k: ti.i32, box: ti.math.ivec4, scale: ti.f32, near: ti.f32,
    keys: ti.template(),
):  # fmt: skip
    """Homogeneous weights (Olano and Greer 1997), which need no clipping where a triangle passes the camera."""
    sign = ti.math.sign(a.dot((b - a).cross(c - a)))
    pixel = 1.0 / scale
    u, v = (box.x + 0.5 - 0.5 * keys.shape[0]) * pixel, (box.y + 0.5 - 0.5 * keys.shape[1]) * pixel
    e, f, g = _edge(b, c, u, v, sign), _edge(c, a, u, v, sign), _edge(a, b, u, v, sign)
    slack = _OVERLAP * pixel * ti.math.vec3(e.yz.norm(), f.yz.norm(), g.yz.norm())
    wide, high = (box.z - 1 - box.x) * pixel, (box.w - 1 - box.y) * pixel
    most = ti.math.vec3(0.0)
    for s in ti.static(range(3)):
        w = (e, f, g)[s]
        most[s] = w[0] + ti.max(w[1], 0.0) * wide + ti.max(w[2], 0.0) * high + slack[s]
    if sign != 0.0 and most.min() >= 0.0:
        for i in range(box.x, box.z):
            for j in range(box.y, box.w):
                du, dv = (i - box.x) * pixel, (j - box.y) * pixel
                w = ti.math.vec3(e.x + e.y * du + e.z * dv, f.x + f.y * du + f.z * dv, g.x + g.y * du + g.z * dv)
                if (w + slack).min() >= 0.0:
                    w = ti.max(w, 0.0)
                    total = w.sum()
                    t = w.dot(ti.math.vec3(a.z, b.z, c.z)) / total
                    if total > 0.0 and t > near:
                        _offer(keys, i, j, t * (1.0 + (u + du) ** 2 + (v + dv) ** 2), k)


@ti.func
def squared(i: ti.i32, j: ti.i32, scale: ti.f32, height: ti.i32, width: ti.i32) -> ti.f32:
    """|d|^2 of a pixel."""
    return 1.0 + ((i + 0.5 - 0.5 * height) / scale) ** 2 + ((j + 0.5 - 0.5 * width) / scale) ** 2


@ti.func
def key_depth(key: ti.i64) -> ti.f32:
    """t |d|^2 of a key."""
    return ti.bit_cast(ti.cast(key >> 32, ti.i32), ti.f32)


@ti.kernel
def draw(
    fresh: ti.i32, spheres: ti.i32, tiles: ti.i32, across: ti.i32, starts: Ints, lists: Ints, boxes: Boxes,
    centres: Fours, corners: Faces, placed: Rows, scale: ti.f32, near: ti.f32, keys: Keys, farthest: Grid,
):  # fmt: skip
    """Draws the things listed for each tile. `fresh` empties the picture first, and fills `farthest` afterwards."""
    for turn in range(turns(tiles)):
        tile = task(turn)
        if tile < tiles:
            _draw_tile(fresh, spheres, tile, across, starts, lists, boxes, centres, corners, placed, scale, near, keys,
                       farthest)  # fmt: skip


@ti.func
def _draw_tile(
    fresh: ti.i32, spheres: ti.i32, tile: ti.i32, across: ti.i32, starts: ti.template(), lists: ti.template(),
    boxes: ti.template(), centres: ti.template(), corners: ti.template(), placed: ti.template(), scale: ti.f32,
    near: ti.f32, keys: ti.template(), farthest: ti.template(),
):  # fmt: skip
    low = ti.math.ivec2(tile // across * TILE, tile % across * TILE)
    high = ti.min(low + TILE, ti.math.ivec2(keys.shape[0], keys.shape[1]))
    if fresh == 1:
        for i in range(low.x, high.x):
            for j in range(low.y, high.y):
                keys[i, j] = ti.i64(EMPTY)
    for entry in range(starts[tile], starts[tile + 1]):
        k = lists[entry]
        box = ti.math.ivec4(ti.max(boxes[k].xy, low), ti.min(boxes[k].zw, high))
        if k < spheres:
            c = centres[k]
            if not _hidden(c.z - c.w, box, scale, keys):
                _draw_sphere(c, k, box, scale, keys)
        else:
            f = corners[k - spheres]
            p, q, r = placed[f.x], placed[f.y], placed[f.z]
            if not _hidden(ti.min(p.z, q.z, r.z), box, scale, keys):
                _draw_triangle(p, q, r, k, box, scale, near, keys)
    if fresh == 1:
        for i in range(low.x // PART, (high.x + PART - 1) // PART):
            for j in range(low.y // PART, (high.y + PART - 1) // PART):
                farthest[i, j] = FARTHEST
                if starts[tile] < starts[tile + 1]:
                    part = ti.math.ivec2(i, j) * PART
                    farthest[i, j] = _farthest_in(ti.math.ivec4(part, ti.min(part + PART, high)), scale, keys)


@ti.func
def _least(box: ti.math.ivec4, scale: ti.f32, keys: ti.template()) -> ti.f32:
    """The least |d|^2 in a box of pixels: that of the one nearest to the middle of the picture."""
    height, width = keys.shape[0], keys.shape[1]
    i, j = ti.math.clamp(height // 2, box.x, box.z), ti.math.clamp(width // 2, box.y, box.w)
    return squared(i, j, scale, height, width)


@ti.func
def _hidden(front: ti.f32, box: ti.math.ivec4, scale: ti.f32, keys: ti.template()) -> bool:
    """Whether all pixels of a box see something nearer than this depth already."""
    found = front > 0.0
    limit = ti.cast(ti.bit_cast(front * _least(box, scale, keys), ti.i32), ti.i64) << 32
    for i in range(box.x, box.z):
        for j in range(box.y, box.w):
            if keys[i, j] >= limit:
                found = False
                break
        if not found:
            break
    return found


@ti.func
def _farthest_in(box: ti.math.ivec4, scale: ti.f32, keys: ti.template()) -> ti.f32:
    """No less than the farthest depth in a box of pixels."""
    last = ti.cast(0, ti.i64)
    for i in range(box.x, box.z):
        for j in range(box.y, box.w):
            last = ti.max(last, keys[i, j])
    return key_depth(last) / _least(box, scale, keys)
