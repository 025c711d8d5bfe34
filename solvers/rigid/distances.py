"""Signed distances of rigid bodies' surfaces on the device, each in the frame of its form, with their gradients.

A form's distance is one row of a table, a `part`. For primitives it is the closed form of `geometry/primitives.py`, in
a frame whose origin is the centre and whose z axis is the axis of symmetry; for all else a grid of quadratic B-splines
as in `boundary/distance_map.py`: exact for planes, with a continuous gradient. A result is (unit gradient, distance).
"""

import numpy as np
import taichi as ti

from pliant.core.backend import vec3, vec4

BOX, BALL, CYLINDER, CAPSULE, TORUS, PLANE, TUBE, GRID = range(8)  # TUBE: a cylinder without ends

# Columns of a part: 0-2 half edges; or radius, half height; or radius of ring and tube; or a plane's normal.
KIND, SIGN, SIZES, OFFSET, RIM, DETAIL, LOW, HIGH, ORIGIN, PER_CELL, DIMS, FIRST, PARTS = (
    0, 1, 2, 5, 6, 7, 8, 11, 14, 17, 20, 23, 25)  # fmt: skip
UNBOUNDED = 1e9  # [m] where bounds of infinite forms are: far, and with room for squares in single precision
PAGE = 4096  # nodes: the first node of a grid is told by whole pages and a rest, exact in single precision
TINY = 1e-12  # [m] lengths below this have no direction
NODES_READ = 3  # along each axis by a quadratic spline


@ti.func
def three(table: ti.template(), row: ti.i32, column: ti.i32):
    """Three neighboring columns of a table as a vector."""
    return vec3(table[row, column], table[row, column + 1], table[row, column + 2])


@ti.func
def _box(p: vec3, half: vec3, rim: ti.f32) -> vec4:
    """|max(q, 0)| outside and max(q) inside, q = |p| - half. A point that overhangs a face by less than `rim` is still
    over that face: its normal is that of the face, not that of the rounded distance around an edge."""
    q = ti.abs(p) - half
    most = q.max()
    direction = vec3(0.0)
    d = most
    if most > 0.0:
        for k in ti.static(range(3)):
            if q[k] == most or q[k] > rim:
                direction[k] = q[k]
        d = direction.norm()
        direction /= d
    else:
        found = 0
        for k in ti.static(range(3)):
            if q[k] == most and found == 0:
                direction[k], found = 1.0, 1
    for k in ti.static(range(3)):
        if p[k] < 0.0:
            direction[k] = -direction[k]
    return vec4(direction[0], direction[1], direction[2], d)


@ti.func
def _from(p: vec3, radius: ti.f32) -> vec4:
    """Distance from a ball around the origin; at its centre any direction is as good as another."""
    length = p.norm()
    direction = vec3(0.0, 0.0, 1.0)
    if length > TINY:
        direction = p / length
    return vec4(direction[0], direction[1], direction[2], length - radius)


@ti.func
def _cylinder(p: vec3, radius: ti.f32, half: ti.f32, rim: ti.f32) -> vec4:
    """A box in the half-plane through the axis."""
    rho = ti.sqrt(p[0] * p[0] + p[1] * p[1])
    found = _box(vec3(rho, 0.0, p[2]), vec3(radius, UNBOUNDED, half), rim)
    radial = vec3(1.0, 0.0, 0.0)
    if rho > TINY:
        radial = vec3(p[0], p[1], 0.0) / rho
    return vec4(radial[0] * found[0], radial[1] * found[0], found[2], found[3])


@ti.func
def _grid(p: vec3, part: ti.i32, parts: ti.template(), grid: ti.template()) -> vec4:
    """The spline at the nearest point of the grid; beyond it, the distance from there is added."""
    low, high = three(parts, part, LOW), three(parts, part, HIGH)
    inner = ti.min(ti.max(p, low), high)
    per_cell = three(parts, part, PER_CELL)
    u = (inner - three(parts, part, ORIGIN)) * per_cell
    node = ti.cast(ti.floor(u + 0.5), ti.i32)
    t = u - ti.cast(node, ti.f32)
    nx, ny = ti.cast(parts[part, DIMS], ti.i32), ti.cast(parts[part, DIMS + 1], ti.i32)
    first = ti.cast(parts[part, FIRST], ti.i32) * PAGE + ti.cast(parts[part, FIRST + 1], ti.i32)
    first += node[0] - 1 + nx * (node[1] - 1 + ny * (node[2] - 1))
    w0, w1, w2 = 0.5 * (0.5 - t) ** 2, 0.75 - t**2, 0.5 * (0.5 + t) ** 2
    s0, s1, s2 = t - 0.5, -2.0 * t, t + 0.5
    value, slope = 0.0, vec3(0.0)
    for k in range(NODES_READ):
        wz = ti.select(k == 0, w0[2], ti.select(k == 1, w1[2], w2[2]))
        sz = ti.select(k == 0, s0[2], ti.select(k == 1, s1[2], s2[2]))
        for j in range(NODES_READ):
            wy = ti.select(j == 0, w0[1], ti.select(j == 1, w1[1], w2[1]))
            sy = ti.select(j == 0, s0[1], ti.select(j == 1, s1[1], s2[1]))
            row = first + nx * (j + ny * k)
            a, b, c = grid[row], grid[row + 1], grid[row + 2]
            along = w0[0] * a + w1[0] * b + w2[0] * c
            value += along * wy * wz
            slope += vec3((s0[0] * a + s1[0] * b + s2[0] * c) * wy * wz, along * sy * wz, along * wy * sz)
    slope *= per_cell
    length = slope.norm()
    slope = ti.select(length > TINY, slope / ti.max(length, TINY), vec3(0.0, 0.0, 1.0))
    beyond = p - inner
    far = beyond.norm()
    if far > TINY:  # the surface is |p - inner + value * slope| away, about
        away = beyond + ti.max(value, 0.0) * slope
        value = away.norm()
        slope = away / ti.max(value, TINY)
    return vec4(slope[0], slope[1], slope[2], value)


@ti.func
def distance(p: vec3, part: ti.i32, parts: ti.template(), grid: ti.template()) -> vec4:
    """Gradient (a unit vector) and signed distance of a part at p."""
    kind = ti.cast(parts[part, KIND], ti.i32)
    size, rim = three(parts, part, SIZES), parts[part, RIM]
    result = vec4(0.0)
    if kind == BOX:
        result = _box(p, size, rim)
    elif kind == BALL:
        result = _from(p, size[0])
    elif kind == CYLINDER:
        result = _cylinder(p, size[0], size[1], rim)
    elif kind == TUBE:
        result = _from(vec3(p[0], p[1], 0.0), size[0])
    elif kind == CAPSULE:
        z = ti.min(ti.max(p[2], -size[1]), size[1])
        result = _from(p - vec3(0.0, 0.0, z), size[0])
    elif kind == TORUS:
        rho = ti.sqrt(p[0] * p[0] + p[1] * p[1])
        radial = vec3(1.0, 0.0, 0.0)
        if rho > TINY:
            radial = vec3(p[0], p[1], 0.0) / rho
        result = _from(p - size[0] * radial, size[1])
    elif kind == PLANE:
        result = vec4(size[0], size[1], size[2], size.dot(p) - parts[part, OFFSET])
    else:
        result = _grid(p, part, parts, grid)
    return parts[part, SIGN] * result


def spline_coefficients(phi: np.ndarray) -> np.ndarray:
    """Coefficients with which a quadratic B-spline passes through values on a grid up to fourth order:
    c = phi - (sum of second differences) / 8, without the differences that would need nodes outside."""
    result = phi.astype(np.float64)
    for axis in range(3):
        second = np.zeros_like(result)
        inner = [slice(None)] * 3
        inner[axis] = slice(1, -1)
        second[tuple(inner)] = np.diff(phi, 2, axis=axis)
        result = result - second / 8.0
    return result
