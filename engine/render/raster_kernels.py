"""Where the particles and triangles of a picture are in it, and which of them each tile of it has to draw.

Everything is in the camera's frame: x down, y to the right, z forward [m], so that memory runs along the rows of the
picture. A pixel (i, j), rows from the top and columns from the left, looks along d = (u, v, 1) with
u = (i + 0.5 - height / 2) / scale, v = (j + 0.5 - width / 2) / scale: t d has the depth t. There are two rounds: first
what hides most of the others, then what it does not.
"""

from typing import TypeAlias

import taichi as ti

from pliant.core.backend import Ints, Reals
from pliant.render.shadow import Grid, Rows

TILE = 32  # pixels along the side of a tile
PART = 8  # pixels along the side of the parts of a tile that know the farthest depth in them
FARTHEST = 1e15  # its square is a number, too
LEAST_REACH = 0.75  # pixels: a disc of radius 0.71 holds the centre of a pixel wherever it lies
CLOSEST = 2.0  # in radii: a sphere any nearer would fill the picture
OUT, LATER, NOW = 0, 1, 2  # a thing is not drawn at all, perhaps in the next round, or in this one

Fours: TypeAlias = ti.types.ndarray(dtype=ti.math.vec4, ndim=1)
Boxes: TypeAlias = ti.types.ndarray(dtype=ti.math.ivec4, ndim=1)
Faces: TypeAlias = ti.types.ndarray(dtype=ti.math.ivec3, ndim=1)


@ti.func
def local(p: ti.math.vec3, view: ti.template()) -> ti.math.vec3:
    """A point in the camera's frame; `view` has the rows eye, down, right, forward."""
    q = p - view[0]
    return ti.math.vec3(q.dot(view[1]), q.dot(view[2]), q.dot(view[3]))


@ti.func
def _span(x: ti.f32, z: ti.f32, r: ti.f32) -> ti.math.vec2:
    """Slopes of the two lines from the eye that touch a circle at (x, z) of radius r < z."""
    half = r * ti.sqrt(ti.max(x * x + z * z - r * r, 0.0))
    return ti.math.vec2(x * z - half, x * z + half) / (z * z - r * r)


@ti.func
def _pixels(low: ti.math.vec2, high: ti.math.vec2, scale: ti.f32, height: ti.i32, width: ti.i32) -> ti.math.ivec4:
    """Pixels with slopes between `low` and `high`: from (x, y) on to before (z, w), at most the picture."""
    size = ti.math.vec2(height, width)
    first = ti.math.clamp(low * scale + 0.5 * size, 0.0, size)
    last = ti.math.clamp(high * scale + 0.5 * size + 1.0, 0.0, size)
    return ti.math.ivec4(ti.cast(first.x, ti.i32), ti.cast(first.y, ti.i32), ti.cast(last.x, ti.i32),
                         ti.cast(last.y, ti.i32))  # fmt: skip


@ti.func
def _cells(size: ti.i32, cell: ti.f32) -> ti.i32:
    return ti.cast(size / cell, ti.i32) + 1


@ti.kernel
def project(
    n: ti.i32, x: Rows, radius: Reals, view: Rows, centres: Fours, nearest: Grid, cell: ti.f32, scale: ti.f32,
    height: ti.i32, width: ti.i32, near: ti.f32,
):  # fmt: skip
    """Brings n particles to the camera's frame, with a radius of no less than a pixel, or of 0 if out of sight.

    `nearest` becomes the least depth of a centre in each cell, of so many pixels.
    """
    rows, columns = _cells(height, cell), _cells(width, cell)
    for i in range(rows):
        for j in range(columns):
            nearest[i, j] = FARTHEST
    for k in range(n):
        c, r = local(x[k], view), radius[k]
        shown = 0.0
        if c.z > ti.max(near + r, CLOSEST * r):
            r = ti.max(r, LEAST_REACH * c.z / scale)
            reach = scale * r / (c.z - r) + 1.0
            px, py = scale * c.x / c.z + 0.5 * height, scale * c.y / c.z + 0.5 * width
            if -reach < px < height + reach and -reach < py < width + reach:
                shown = r
                i = ti.math.clamp(ti.cast(px / cell, ti.i32), 0, rows - 1)
                j = ti.math.clamp(ti.cast(py / cell, ti.i32), 0, columns - 1)
                if c.z < nearest[i, j]:  # most are not: an atomic operation costs more than a look
                    ti.atomic_min(nearest[i, j], c.z)
        centres[k] = ti.math.vec4(c, shown)


@ti.func
def _sphere_box(c: ti.math.vec4, scale: ti.f32, height: ti.i32, width: ti.i32) -> ti.math.ivec4:
    rows, columns = _span(c.x, c.z, c.w), _span(c.y, c.z, c.w)
    return _pixels(ti.math.vec2(rows[0], columns[0]), ti.math.vec2(rows[1], columns[1]), scale, height, width)


@ti.kernel
def first_spheres(
    n: ti.i32, centres: Fours, nearest: Grid, cell: ti.f32, scale: ti.f32, height: ti.i32, width: ti.i32, turn: Ints,
    boxes: Boxes,
):  # fmt: skip
    """Chooses the nearest sphere of each cell for the first round: a few, which hide most of the others."""
    for k in range(n):
        c = centres[k]
        turn[k] = OUT
        if c.w > 0.0:
            turn[k] = LATER
            px, py = scale * c.x / c.z + 0.5 * height, scale * c.y / c.z + 0.5 * width
            i = ti.math.clamp(ti.cast(px / cell, ti.i32), 0, _cells(height, cell) - 1)
            j = ti.math.clamp(ti.cast(py / cell, ti.i32), 0, _cells(width, cell) - 1)
            if c.z <= nearest[i, j]:
                turn[k] = NOW
                boxes[k] = _sphere_box(c, scale, height, width)


@ti.func
def _turn(front: ti.f32, box: ti.math.ivec4, farthest: ti.template()) -> ti.i32:
    """NOW for what may show in the second round: it begins before the farthest depth in a part of its box."""
    found = OUT
    for p in range(box.x // PART, (box.z + PART - 1) // PART):
        for q in range(box.y // PART, (box.w + PART - 1) // PART):
            if farthest[p, q] > front:
                found = NOW
    return found


@ti.kernel
def other_spheres(
    n: ti.i32, centres: Fours, farthest: Grid, farthest_around: Grid, scale: ti.f32, height: ti.i32, width: ti.i32,
    turn: Ints, boxes: Boxes,
):  # fmt: skip
    """Chooses for the second round the spheres whose front is nearer than the farthest depth in a part they touch."""
    for i, j in farthest:
        last = 0.0
        for p in range(ti.max(i - 1, 0), ti.min(i + 2, farthest.shape[0])):
            for q in range(ti.max(j - 1, 0), ti.min(j + 2, farthest.shape[1])):
                last = ti.max(last, farthest[p, q])
        farthest_around[i, j] = last
    for k in range(n):
        if turn[k] == NOW:
            turn[k] = OUT
        elif turn[k] == LATER:
            c = centres[k]
            turn[k] = OUT
            front = c.z - c.w
            reach = c.w / front * ti.sqrt(1.0 + c.xy.norm_sqr() / (c.z * c.z))  # no less than that of the outline
            px, py = scale * c.x / c.z + 0.5 * height, scale * c.y / c.z + 0.5 * width
            i = ti.math.clamp(ti.cast(px, ti.i32) // PART, 0, farthest.shape[0] - 1)
            j = ti.math.clamp(ti.cast(py, ti.i32) // PART, 0, farthest.shape[1] - 1)
            if farthest_around[i, j] > front or reach * scale > PART - 1:
                box = _sphere_box(c, scale, height, width)
                boxes[k] = box
                turn[k] = _turn(front, box, farthest)


@ti.func
def _reach(p: ti.math.vec3, q: ti.math.vec3, near: ti.f32, low: ti.template(), high: ti.template()):
    """Widens the slopes to those of the first end, if it is beyond `near`, and of where the edge passes `near`."""
    if p.z > near:
        low, high = ti.min(low, p.xy / p.z), ti.max(high, p.xy / p.z)
    if (p.z > near) != (q.z > near):
        s = ti.math.mix(p, q, (near - p.z) / (q.z - p.z)).xy / near
        low, high = ti.min(low, s), ti.max(high, s)


@ti.kernel
def place_triangles(
    vertices: ti.i32, faces: ti.i32, first: ti.i32, x: Rows, corners: Faces, view: Rows, placed: Rows, turn: Ints,
    boxes: Boxes, scale: ti.f32, height: ti.i32, width: ti.i32, near: ti.f32,
):  # fmt: skip
    """Brings vertices to the camera's frame, and chooses the triangles that may show; `first` spheres come before.

    Those that turn their backs on the camera wait for the second round: mostly, others hide them.
    """
    for k in range(vertices):
        placed[k] = local(x[k], view)
    for m in range(faces):
        a, b, c = placed[corners[m].x], placed[corners[m].y], placed[corners[m].z]
        low, high = ti.math.vec2(FARTHEST), ti.math.vec2(-FARTHEST)
        _reach(a, b, near, low, high)
        _reach(b, c, near, low, high)
        _reach(c, a, near, low, high)
        turn[first + m] = OUT
        if low.x <= high.x:
            box = _pixels(low, high, scale, height, width)
            if box.x < box.z and box.y < box.w:
                boxes[first + m] = box
                turn[first + m] = LATER if a.dot((b - a).cross(c - a)) > 0.0 else NOW


@ti.kernel
def other_triangles(
    faces: ti.i32, first: ti.i32, corners: Faces, placed: Rows, farthest: Grid, turn: Ints, boxes: Boxes
):  # fmt: skip
    """Chooses triangles for the second round as `other_spheres` does."""
    for m in range(faces):
        k = first + m
        if turn[k] == NOW:
            turn[k] = OUT
        elif turn[k] == LATER:
            front = ti.min(placed[corners[m].x].z, placed[corners[m].y].z, placed[corners[m].z].z)
            turn[k] = _turn(front, boxes[k], farthest)


@ti.kernel
def count(n: ti.i32, turn: Ints, boxes: Boxes, tiles: ti.i32, starts: Ints, across: ti.i32) -> ti.i32:
    """How many entries the lists of all tiles have; `starts` becomes where each list begins and, last, that number."""
    for t in range(tiles + 1):
        starts[t] = 0
    for k in range(n):
        if turn[k] == NOW:
            box = boxes[k]
            for i in range(box.x // TILE, (box.z + TILE - 1) // TILE):
                for j in range(box.y // TILE, (box.w + TILE - 1) // TILE):
                    ti.atomic_add(starts[i * across + j], 1)
    total = 0
    ti.loop_config(serialize=True)
    for t in range(tiles + 1):
        here = starts[t]
        starts[t] = total
        total += here
    return total


@ti.kernel
def sort(n: ti.i32, turn: Ints, boxes: Boxes, tiles: ti.i32, starts: Ints, across: ti.i32, used: Ints, lists: Ints):
    """Writes each thing into the lists of the tiles it may touch, in any order."""
    for t in range(tiles):
        used[t] = 0
    for k in range(n):
        if turn[k] == NOW:
            box = boxes[k]
            for i in range(box.x // TILE, (box.z + TILE - 1) // TILE):
                for j in range(box.y // TILE, (box.w + TILE - 1) // TILE):
                    t = i * across + j
                    lists[starts[t] + ti.atomic_add(used[t], 1)] = k
