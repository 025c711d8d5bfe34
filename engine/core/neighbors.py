"""Who is near whom: particles sorted by cell, neighbor lists, and the kernel gradient of every pair.

Each step the particles are counting-sorted into cells as wide as the support along y and z and a quarter of it
along x, row after row. Inside a cell they are ordered by position, so the order (and with it every floating-point
sum) depends on where the particles are and on nothing else: not on threads, not on the order in which they were given.

A neighborhood is then at most nine contiguous runs of particles, each just as long as the support is wide there.
Lists are appended without a branch (write always, advance the counter by the test). Beside each neighbor stands
the factor V_j W'(r) / r of its gradient, so the pressure iterations need positions and nothing else:

    G_ij = V_j grad W_ij = factor x_ij.

Rows are filled up to a multiple of LANES with the particle itself at factor 0. This changes no sum, and lets the
compiler run the loops over neighbors in full vectors: measured, it halves the cost of a pressure iteration.
"""

import numpy as np
import taichi as ti

from pliant.core.backend import Ints, IntTable, Reals, RealTable, Vectors, vec3
from pliant.core.particles import Particles
from pliant.core.smoothing import SPACINGS_PER_SUPPORT, Smoothing

LANES = 16
START_WIDTH = 48  # a full neighborhood has 26-32 members at rest; lists grow when one is fuller
X_CELLS = 4  # cells per support along x: candidates come from runs cut to this precision
SCAN_BLOCKS = 256
CELLS_PER_PARTICLE = 16  # beyond this the grid covers the bulk only, and stragglers share its outermost cells
LEAST_CELLS = 1 << 16

# Rows of the small tables that kernels read: vectors as arguments cost far more to pass than arrays.
ORIGIN, SIZE, INVERSE = 0, 1, 2
LENGTH, INVERSE_LENGTH = 0, 1


@ti.func
def triple(values: ti.template(), k: ti.template()):
    return ti.Vector([values[k], values[k + 1], values[k + 2]])


@ti.func
def cell_of(x, grid: ti.template(), dims, wraps: ti.template(), periodic):
    """Cell coordinates; outside the grid the nearest cell, which keeps neighbors in adjacent cells."""
    c = ti.floor((x - grid[ORIGIN]) * grid[INVERSE], ti.i32)
    for k in ti.static(range(3)):
        if ti.static(wraps) and periodic[k] != 0:
            c[k] = c[k] - dims[k] * ti.floor(ti.cast(c[k], ti.f32) / dims[k], ti.i32)
        c[k] = ti.min(ti.max(c[k], 0), dims[k] - 1)
    return c


@ti.func
def difference(xi: vec3, xj: vec3, wraps: ti.template(), period: ti.template()):
    """x_ij = x_i - x_j, the shortest of its images across periodic boundaries where there are any."""
    dx = xi - xj
    if ti.static(wraps):
        dx -= period[LENGTH] * ti.round(dx * period[INVERSE_LENGTH])
    return dx


@ti.kernel
def _count_cells(n: ti.i32, x: Vectors, grid: Vectors, shape: Ints, wraps: ti.template(), cell: Ints, start: Ints,
                 sums: Ints):  # fmt: skip
    """Cell of each particle and, by an exclusive scan over the counts, where each cell starts."""
    dims, periodic = triple(shape, 0), triple(shape, 3)
    cells = dims[0] * dims[1] * dims[2]
    for c in range(cells + 1):
        start[c] = 0
    for i in range(n):
        c = cell_of(x[i], grid, dims, wraps, periodic)
        cell[i] = c[0] + dims[0] * (c[1] + dims[1] * c[2])
        ti.atomic_add(start[cell[i]], 1)
    size = (cells + SCAN_BLOCKS) // SCAN_BLOCKS
    ti.loop_config(block_dim=1)
    for b in range(SCAN_BLOCKS):
        total = 0
        for c in range(ti.min(b * size, cells + 1), ti.min((b + 1) * size, cells + 1)):
            total += start[c]
        sums[b] = total
    ti.loop_config(serialize=True)
    for _ in range(1):
        running = 0
        for b in range(SCAN_BLOCKS):
            total = sums[b]
            sums[b] = running
            running += total
    ti.loop_config(block_dim=1)
    for b in range(SCAN_BLOCKS):
        running = sums[b]
        for c in range(ti.min(b * size, cells + 1), ti.min((b + 1) * size, cells + 1)):
            running += start[c]
            start[c] = running  # one past the end of cell c: placing counts it down to the start


@ti.func
def comes_before(a: vec3, ida: ti.i32, b: vec3, idb: ti.i32):
    """Order by position; ids settle the case of coincident particles."""
    result = ida < idb
    for k in ti.static((2, 1, 0)):
        result = ti.select(a[k] == b[k], result, a[k] < b[k])
    return result


@ti.kernel
def _place(n: ti.i32, cells: ti.i32, x: Vectors, ids: Ints, cell: Ints, start: Ints, order: Ints):
    for i in range(n):
        order[ti.atomic_sub(start[cell[i]], 1) - 1] = i
    for c in range(cells):
        lo, hi = start[c], start[c + 1]
        for a in range(lo + 1, hi):
            moving = order[a]
            b = a - 1
            while b >= lo and comes_before(x[moving], ids[moving], x[order[b]], ids[order[b]]):
                order[b + 1] = order[b]
                b -= 1
            order[b + 1] = moving


@ti.func
def gap(offset: ti.i32, position: ti.f32, low: ti.f32, size: ti.f32):
    """Distance from a position to the cells `offset` (-1, 0, 1) further; `low` is where its own cell begins."""
    below, above = position - low, low + size - position
    return ti.max(ti.select(offset < 0, below, ti.select(offset > 0, above, 0.0)), 0.0)


@ti.kernel
def _build_lists(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, V: Reals, start: Ints, grid: Vectors,
                 shape: Ints, w: ti.template(), f: ti.template(), h: ti.f32, sigma: ti.f32, width: ti.i32, count: Ints,
                 neighbor: IntTable, factor: RealTable, density: Reals, fullest: Ints):  # fmt: skip
    """Lists, factors of the gradients, and the density ratio sum_j V_j W_ij (Kugelstadt 2021, Eq. 2)."""
    fullest[0] = 0
    inverse_h, scale = 1.0 / h, sigma / (h * h)
    dims, periodic = triple(shape, 0), triple(shape, 3)
    origin, size, inverse = grid[ORIGIN], grid[SIZE], grid[INVERSE]
    for i in range(n):
        xi = x[i]
        c = cell_of(xi, grid, dims, wraps, periodic)
        low, along = origin + c * size, xi[0] - origin[0]
        if ti.static(wraps):  # a periodic particle may stand whole periods away from its cell
            away = period[LENGTH] * ti.round((xi - low) * period[INVERSE_LENGTH])
            low += away
            along -= away[0]
        k = 0
        for row in ti.static(range(9)):  # unrolled: each row has branches of its own to predict, 15 % faster
            dy, dz = row % 3 - 1, row // 3 - 1
            cy, cz = c[1] + dy, c[2] + dz
            if ti.static(wraps):
                cy += dims[1] * (ti.cast(cy < 0, ti.i32) - ti.cast(cy >= dims[1], ti.i32)) * periodic[1]
                cz += dims[2] * (ti.cast(cz < 0, ti.i32) - ti.cast(cz >= dims[2], ti.i32)) * periodic[2]
            reach2 = h * h - gap(dy, xi[1], low[1], size[1]) ** 2 - gap(dz, xi[2], low[2], size[2]) ** 2
            if reach2 > 0.0 and cy >= 0 and cy < dims[1] and cz >= 0 and cz < dims[2]:
                base = dims[0] * (cy + dims[1] * cz)
                reach = ti.sqrt(reach2)
                left = ti.floor((along - reach) * inverse[0] - 1e-3, ti.i32)
                right = ti.floor((along + reach) * inverse[0] + 1e-3, ti.i32)
                first, last = ti.max(ti.min(left, dims[0] - 1), 0), ti.min(ti.max(right, 0), dims[0] - 1)
                for part in range(ti.static(2 if wraps else 1)):
                    if ti.static(wraps):
                        if part == 1:  # what of the run lies beyond a periodic end of the x axis
                            first, last = 0, -1
                            if periodic[0] != 0 and left < 0:
                                first, last = left + dims[0], dims[0] - 1
                            elif periodic[0] != 0 and right >= dims[0]:
                                first, last = 0, right - dims[0]
                    for j in range(start[base + first], start[base + last + 1]):
                        dx = difference(xi, x[j], wraps, period)
                        r2 = dx.dot(dx)
                        slot = ti.min(k, width - 1)
                        neighbor[i, slot], factor[i, slot] = j, r2
                        k += ti.cast(r2 < h * h, ti.i32) & ti.cast(j != i, ti.i32)
        if k >= width:  # the last slot is for candidates that turn out to be none
            ti.atomic_max(fullest[0], k + 1)
            k = width
        count[i] = (k + LANES - 1) // LANES * LANES
        for l in range(k, count[i]):
            neighbor[i, l], factor[i, l] = i, h * h
        rho = 0.0
        for l in range(count[i]):
            q = ti.sqrt(factor[i, l]) * inverse_h
            volume = V[neighbor[i, l]]
            rho += volume * w(q)
            factor[i, l] = scale * volume * f(q)
        density[i] = sigma * (rho + V[i] * w(0.0))


@ti.kernel
def _count_pairs(n: ti.i32, count: Ints, neighbor: IntTable, total: Ints):
    total[0] = 0
    for i in range(n):
        own = 0  # one atomic addition for a particle, not for each pair
        for k in range(count[i]):
            own += ti.cast(neighbor[i, k] != i, ti.i32)
        total[0] += own


class Neighbors:
    """Sorts particles and keeps their lists: `neighbor[i, k]` and `factor[i, k]` for k < `count[i]`."""

    def __init__(self, particles: Particles, smoothing: Smoothing, spacing: float, period: tuple[float | None, ...]):
        self.particles, self.smoothing = particles, smoothing
        self.h = SPACINGS_PER_SUPPORT * spacing
        self.sigma = smoothing.sigma(self.h)
        self.periods = np.array([p or 0.0 for p in period])
        inverse = [1.0 / p if p else 0.0 for p in self.periods]
        self.period, self.grid = ti.ndarray(vec3, 2), ti.ndarray(vec3, 3)
        self.period.from_numpy(np.array([self.periods, inverse], np.float32))
        self.shape = ti.ndarray(ti.i32, 6)
        self.wraps = bool(self.periods.any())
        self.sums, self.fullest = ti.ndarray(ti.i32, SCAN_BLOCKS), ti.ndarray(ti.i32, 1)
        self.start = ti.ndarray(ti.i32, LEAST_CELLS + 2)
        self.width, self.capacity = START_WIDTH, 0
        self._grow()

    def _grow(self) -> None:
        """Makes room for as many particles as their own arrays have."""
        self.capacity = self.particles.capacity
        self.cell, self.order, self.count = (ti.ndarray(ti.i32, self.capacity) for _ in range(3))
        self._allocate_lists(self.width)

    def _allocate_lists(self, width: int) -> None:
        self.width = width
        self.neighbor = ti.ndarray(ti.i32, (self.capacity, width))
        self.factor = ti.ndarray(ti.f32, (self.capacity, width))

    @property
    def pairs(self) -> tuple:
        """What kernels over pairs take after n: wraps, period, x, count, neighbor, factor."""
        return (self.wraps, self.period, self.particles.x, self.count, self.neighbor, self.factor)

    def update(self, low: np.ndarray, high: np.ndarray) -> None:
        """Sorts the particles, which lie in the box low..high, and builds lists, gradients and densities."""
        p = self.particles
        if self.capacity < p.capacity:
            self._grow()
        origin, size, dims = self._grid(low, high)
        cells = int(np.prod(dims))
        if cells + 2 > self.start.shape[0]:
            self.start = ti.ndarray(ti.i32, 2 * cells + 2)
        self.grid.from_numpy(np.array([origin, size, 1.0 / size], np.float32))
        self.shape.from_numpy(np.array([*dims, *(self.periods > 0)], np.int32))
        _count_cells(p.n, p.x, self.grid, self.shape, self.wraps, self.cell, self.start, self.sums)
        _place(p.n, cells, p.x, p.id, self.cell, self.start, self.order)
        p.reorder(self.order)
        while True:
            s = self.smoothing
            _build_lists(p.n, self.wraps, self.period, p.x, p.V, self.start, self.grid, self.shape, s.w, s.f, self.h,
                         self.sigma, self.width, self.count, self.neighbor, self.factor, p.density,
                         self.fullest)  # fmt: skip
            fullest = self.fullest[0]
            if fullest <= self.width:
                return
            self._allocate_lists(-(-fullest // LANES) * LANES)

    def _grid(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Origin, cell sizes and dimensions. Stray particles far away must not blow the grid up: it is
        cut down around its middle until it fits, and `cell_of` puts what lies outside into the outermost cells."""
        fine = np.array([X_CELLS, 1, 1])
        size = self.h * (1 + 1e-5) / fine
        dims = np.maximum(np.floor((high - low) / size).astype(np.int64) + 1, 1)
        origin = low - 1e-5 * self.h
        for k in np.flatnonzero(self.periods):
            dims[k] = int(self.periods[k] / self.h * (1 - 1e-5)) * fine[k]
            size[k] = self.periods[k] / dims[k]
            origin[k] = 0.0
        limit = max(LEAST_CELLS, CELLS_PER_PARTICLE * self.particles.n)
        if np.prod(dims.astype(float)) > limit:
            wanted = dims.copy()
            middle = np.median(self.particles.numpy("x"), axis=0)
            while np.prod(dims.astype(float)) > limit:
                longest = int(np.argmax(np.where(self.periods > 0, 0, dims)))
                dims[longest] = (dims[longest] + 1) // 2
            for k in np.flatnonzero(dims < wanted):
                first = np.clip((middle[k] - origin[k]) / size[k] - dims[k] / 2, 0, wanted[k] - dims[k])
                origin[k] += np.floor(first) * size[k]
        return origin, size, dims

    @property
    def mean_count(self) -> float:
        """Mean number of neighbors, without the padding of the rows."""
        total = ti.ndarray(ti.i32, 1)
        _count_pairs(self.particles.n, self.count, self.neighbor, total)
        return float(total[0]) / max(self.particles.n, 1)

    @property
    def bytes_per_particle(self) -> float:
        lists = self.width * (4 + 4) + 3 * 4
        return lists + 4 * self.start.shape[0] / max(self.particles.n, 1)


