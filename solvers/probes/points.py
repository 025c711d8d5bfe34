"""Fields at points, and heights of free surfaces: sums over the particles around a place, normalised by their weights.

    f(x) = sum_j V_j W(|x - x_j|) f_j / sum_j V_j W(|x - x_j|)                                  (Shepard 1968)

Only particles count, walls do not: next to a wall the sums have fewer members and the same normalisation, so that
pressures and densities are not biased by what the wall lacks. Constants are exact everywhere; next to a wall or a
surface a gradient is read somewhat inside the fluid, less than a spacing away.
"""

import taichi as ti

from pliant.core.backend import Ints, IntTable, Reals, RealTable, Vectors, vec3
from pliant.core.neighbors import INVERSE, ORIGIN, SIZE, difference, triple
from pliant.core.reduce import BLOCKS, block

SPRAY = 0.5  # of the rest density: what is less dense is spray, and no surface
STRIDE = 0.5  # in spacings, down a column: a film of one layer is a spacing thick and cannot be stepped over
THICK = 1.75  # in spacings, from the first place within down to the last: two particles have 1.5, three have 2
HALVINGS = 12  # of a stride: the surface is found to 1e-4 spacings

# What a sum over the particles around a place holds: weight, pressure, velocity, density.
WEIGHT, PRESSURE, VELOCITY, DENSITY, SUMS = 0, 1, 2, 5, 6
sums6 = ti.types.vector(SUMS, ti.f32)


@ti.kernel
def farthest_move(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, before: Vectors, out: RealTable):
    """Square of the farthest that a particle of each block has moved."""
    ti.loop_config(block_dim=1)
    for b in range(BLOCKS):
        lo, hi = block(b, n)
        most = 0.0
        for i in range(lo, hi):
            way = difference(x[i], before[i], wraps, period)
            most = ti.max(most, way.dot(way))
        out[b, 0] = most


@ti.func
def sum_around(at: vec3, row: ti.i32, level: ti.template(), reach: ti.f32, wraps: ti.template(), period: ti.template(),
               start: ti.template(), grid: ti.template(), shape: ti.template(), w: ti.template(), h: ti.f32,
               sigma: ti.f32, x: ti.template(), V: ti.template(), m: ti.template(), p: ti.template(),
               v: ti.template(), density: ti.template(), wall_density: ti.template(), body: ti.template(),
               counts: ti.template()):  # fmt: skip
    """The sums at a place over the bodies that count in this row. The cells are those of the start of the step, so all
    within `reach` are looked at: the support h, and as far as a particle has moved since. With `level`, spray does not
    count, and ways to the particles take the place of their velocities."""
    dims, periodic = triple(shape, 0), triple(shape, 3)
    first = ti.floor((at - reach - grid[ORIGIN]) * grid[INVERSE], ti.i32)
    last = ti.floor((at + reach - grid[ORIGIN]) * grid[INVERSE], ti.i32)
    for k in ti.static(range(3)):
        if periodic[k] == 0:
            first[k], last[k] = ti.min(ti.max(first[k], 0), dims[k] - 1), ti.min(ti.max(last[k], 0), dims[k] - 1)
        elif last[k] - first[k] >= dims[k]:
            first[k], last[k] = 0, dims[k] - 1
    sums = sums6(0.0)
    for cz in range(first[2], last[2] + 1):
        for cy in range(first[1], last[1] + 1):
            for cx in range(first[0], last[0] + 1):
                row_of_cells = (cy + dims[1]) % dims[1] + dims[1] * ((cz + dims[2]) % dims[2])
                cell = (cx + dims[0]) % dims[0] + dims[0] * row_of_cells
                for j in range(start[cell], start[cell + 1]):
                    way = difference(x[j], at, wraps, period)
                    r2 = way.dot(way)
                    ratio = density[j] + wall_density[j]
                    if r2 < h * h and counts[row, body[j]] > 0 and (not level or ratio >= SPRAY):
                        weight = sigma * V[j] * w(ti.sqrt(r2) / h)
                        sums[WEIGHT] += weight
                        sums[PRESSURE] += weight * p[j]
                        sums[DENSITY] += weight * ratio * m[j] / V[j]
                        shown = v[j]
                        if ti.static(level):
                            shown = way
                        for a in ti.static(range(3)):
                            sums[VELOCITY + a] += weight * shown[a]
    return sums


@ti.kernel
def sample_points(points: ti.i32, reach: ti.f32, wraps: ti.template(), period: Vectors, start: Ints, grid: Vectors,
                  shape: Ints, w: ti.template(), h: ti.f32, sigma: ti.f32, x: Vectors, V: Reals, m: Reals, p: Reals,
                  v: Vectors, density: Reals, wall_density: Reals, body: Ints, place: Vectors, counts: IntTable,
                  out: RealTable):  # fmt: skip
    """The sums at each of the points."""
    for k in range(points):
        sums = sum_around(place[k], k, False, reach, wraps, period, start, grid, shape, w, h, sigma, x, V, m, p, v,
                          density, wall_density, body, counts)  # fmt: skip
        for a in ti.static(range(SUMS)):
            out[k, a] = sums[a]


@ti.func
def is_within(sums: ti.template(), up: vec3, radius: ti.f32, least: ti.f32):
    """Whether a place lies in the fluid: not more than a particle radius above or below the particles around it. Of
    their weighted mean (Zhu and Bridson 2005) only the height is looked at, which no vertical wall shifts."""
    height = sums[VELOCITY] * up[0] + sums[VELOCITY + 1] * up[1] + sums[VELOCITY + 2] * up[2]
    return sums[WEIGHT] > least and ti.abs(height) < radius * sums[WEIGHT]


@ti.kernel
def find_levels(points: ti.i32, spacing: ti.f32, least: ti.f32, reach: ti.f32, wraps: ti.template(), period: Vectors,
                start: Ints, grid: Vectors, shape: Ints, w: ti.template(), h: ti.f32, sigma: ti.f32, x: Vectors,
                V: Reals, m: Reals, p: Reals, v: Vectors, density: Reals, wall_density: Reals, body: Ints,
                place: Vectors, up: Vectors, counts: IntTable, out: RealTable):  # fmt: skip
    """Height of the surface over (or under) each point, and whether there is one: that of the highest layer of three
    particles or more, or of the lowest one if all are thinner. From above all particles down; then the stride that
    crossed the surface is halved."""
    dims = triple(shape, 0)
    for k in range(points):
        height, bottom = reach, -reach  # above the point
        for a in ti.static(range(3)):
            low = up[0][a] * (grid[ORIGIN][a] - place[k][a])
            high = up[0][a] * (grid[ORIGIN][a] + dims[a] * grid[SIZE][a] - place[k][a])
            height += ti.max(low, high)
            bottom += ti.min(low, high)
        top, was, found, thick = 0.0, 0, 0, 0
        while thick == 0 and height > bottom:
            height -= STRIDE * spacing
            sums = sum_around(place[k] + height * up[0], k, True, reach, wraps, period, start, grid, shape, w, h, sigma,
                              x, V, m, p, v, density, wall_density, body, counts)  # fmt: skip
            now = ti.cast(is_within(sums, up[0], 0.5 * spacing, least), ti.i32)
            if now == 1 and was == 0:
                top, found = height, 1
            thick = now * ti.cast(top - height > THICK * spacing, ti.i32)
            was = now
        low, high = top, top + STRIDE * spacing
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            sums = sum_around(place[k] + middle * up[0], k, True, reach, wraps, period, start, grid, shape, w, h, sigma,
                              x, V, m, p, v, density, wall_density, body, counts)  # fmt: skip
            if is_within(sums, up[0], 0.5 * spacing, least):
                low = middle
            else:
                high = middle
        out[k, 0], out[k, 1] = 0.5 * (low + high), ti.cast(found, ti.f32)
