"""Who is near whom: particles sorted by cell, neighbour lists, and the kernel gradients of every pair.

Each step the particles are counting-sorted into cells as wide as the support, row after row. Inside a
cell they are ordered by position, so the order (and with it every floating-point sum) depends on where the
particles are and on nothing else: not on threads, not on the order in which they were given.

A neighbourhood is then nine contiguous runs of particles. Lists are appended without a branch (write
always, advance the counter by the test), and the gradients V_j grad W_ij are stored beside them: the
pressure iterations read these and never touch positions again.
"""

import numpy as np
import taichi as ti

from pliant.backend import Ints, IntTable, Reals, Vectors, VectorTable, ivec3, vec3
from pliant.particles import Particles
from pliant.smoothing import SPACINGS_PER_SUPPORT, Smoothing

START_WIDTH = 40  # a full neighbourhood has 26-32 members at rest; lists grow when one is fuller
WIDTH_STEP = 8
SCAN_BLOCKS = 256
CELLS_PER_PARTICLE = 8  # beyond this the grid covers the bulk only, and stragglers share its outermost cells
LEAST_CELLS = 1 << 16


@ti.func
def cell_of(x, origin, inverse, dims, periodic):
    """Cell coordinates; outside the grid the nearest cell, which keeps neighbours in adjacent cells."""
    c = ti.floor((x - origin) * inverse, ti.i32)
    for k in ti.static(range(3)):
        if periodic[k] != 0:
            c[k] = c[k] - dims[k] * ti.floor(ti.cast(c[k], ti.f32) / dims[k], ti.i32)
        c[k] = ti.min(ti.max(c[k], 0), dims[k] - 1)
    return c


@ti.func
def nearest_image(dx, period, inverse_period):
    """Shortest of the periodic images of dx; axes with inverse_period 0 are not periodic."""
    return dx - period * ti.round(dx * inverse_period)


@ti.kernel
def _count_cells(n: ti.i32, x: Vectors, origin: vec3, inverse: vec3, dims: ivec3, periodic: ivec3,
                 cell: Ints, start: Ints, sums: Ints):  # fmt: skip
    """Cell of each particle and, by an exclusive scan over the counts, where each cell starts."""
    cells = dims[0] * dims[1] * dims[2]
    for c in range(cells + 1):
        start[c] = 0
    for i in range(n):
        c = cell_of(x[i], origin, inverse, dims, periodic)
        cell[i] = c[0] + dims[0] * (c[1] + dims[1] * c[2])
        ti.atomic_add(start[cell[i]], 1)
    size = (cells + SCAN_BLOCKS) // SCAN_BLOCKS
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


@ti.kernel
def _build_lists(n: ti.i32, x: Vectors, V: Reals, start: Ints, origin: vec3, inverse: vec3, dims: ivec3,
                 periodic: ivec3, period: vec3, inverse_period: vec3, wraps: ti.template(),
                 w: ti.template(), f: ti.template(), h: ti.f32, sigma: ti.f32, width: ti.i32,
                 count: Ints, neighbor: IntTable, gradient: VectorTable, density: Reals, fullest: Ints):  # fmt: skip
    """Lists, V_j grad W_ij of every pair, and the density ratio sum_j V_j W_ij (Kugelstadt 2021, Eq. 2)."""
    fullest[0] = 0
    inverse_h, scale = 1.0 / h, sigma / (h * h)
    for i in range(n):
        xi = x[i]
        c = cell_of(xi, origin, inverse, dims, periodic)
        k = 0
        for row in range(9):
            cy, cz = c[1] + row % 3 - 1, c[2] + row // 3 - 1
            if ti.static(wraps):
                cy += dims[1] * (ti.cast(cy < 0, ti.i32) - ti.cast(cy >= dims[1], ti.i32)) * periodic[1]
                cz += dims[2] * (ti.cast(cz < 0, ti.i32) - ti.cast(cz >= dims[2], ti.i32)) * periodic[2]
            if cy >= 0 and cy < dims[1] and cz >= 0 and cz < dims[2]:
                base = dims[0] * (cy + dims[1] * cz)
                first, last = ti.max(c[0] - 1, 0), ti.min(c[0] + 1, dims[0] - 1)
                for part in range(ti.static(2 if wraps else 1)):
                    if ti.static(wraps):
                        if part == 1:  # the cell on the far side of a periodic x axis, if this row touches it
                            first = ti.select(c[0] == 0, dims[0] - 1, 0)
                            last = first - 1 + periodic[0] * ti.cast(c[0] == 0 or c[0] == dims[0] - 1, ti.i32)
                    for j in range(start[base + first], start[base + last + 1]):
                        dx = xi - x[j]
                        if ti.static(wraps):
                            dx = nearest_image(dx, period, inverse_period)
                        neighbor[i, ti.min(k, width - 1)] = j
                        k += ti.cast(dx.dot(dx) < h * h, ti.i32) & ti.cast(j != i, ti.i32)
        if k > width:
            ti.atomic_max(fullest[0], k)
            k = width
        count[i] = k
        rho = sigma * V[i] * w(0.0)
        for l in range(k):
            j = neighbor[i, l]
            dx = xi - x[j]
            if ti.static(wraps):
                dx = nearest_image(dx, period, inverse_period)
            q = ti.sqrt(dx.dot(dx)) * inverse_h
            rho += sigma * V[j] * w(q)
            gradient[i, l] = scale * V[j] * f(q) * dx
        density[i] = rho


class Neighbors:
    """Sorts particles, keeps lists `neighbor[i, k]` (k < `count[i]`) and gradients `gradient[i, k]` = V_j grad W_ij."""

    def __init__(self, particles: Particles, smoothing: Smoothing, spacing: float, period: tuple[float | None, ...]):
        self.particles, self.smoothing = particles, smoothing
        self.h = SPACINGS_PER_SUPPORT * spacing
        self.sigma = smoothing.sigma(self.h)
        self.periods = np.array([p or 0.0 for p in period])
        self.period = vec3(*self.periods)
        self.inverse_period = vec3(*[1.0 / p if p else 0.0 for p in self.periods])
        self.wraps = bool(self.periods.any())
        n = particles.n
        self.cell, self.order, self.count = (ti.ndarray(ti.i32, n) for _ in range(3))
        self.sums, self.fullest = ti.ndarray(ti.i32, SCAN_BLOCKS), ti.ndarray(ti.i32, 1)
        self.start = ti.ndarray(ti.i32, LEAST_CELLS + 2)
        self._allocate_lists(START_WIDTH)

    def _allocate_lists(self, width: int) -> None:
        self.width = width
        self.neighbor = ti.ndarray(ti.i32, (self.particles.n, width))
        self.gradient = ti.ndarray(vec3, (self.particles.n, width))

    def update(self, low: np.ndarray, high: np.ndarray, center: np.ndarray | None = None) -> None:
        """Sorts the particles, which lie in the box low..high, and builds lists, gradients and densities."""
        p = self.particles
        origin, size, dims = self._grid(low, high)
        cells = int(np.prod(dims))
        if cells + 2 > self.start.shape[0]:
            self.start = ti.ndarray(ti.i32, 2 * cells + 2)
        periodic = ivec3(*(self.periods > 0).astype(int).tolist())
        grid = (vec3(*origin), vec3(*(1.0 / size)), ivec3(*dims.tolist()), periodic)
        _count_cells(p.n, p.x, *grid, self.cell, self.start, self.sums)
        _place(p.n, cells, p.x, p.id, self.cell, self.start, self.order)
        p.reorder(self.order)
        while True:
            s = self.smoothing
            _build_lists(p.n, p.x, p.V, self.start, *grid, self.period, self.inverse_period, self.wraps,
                         s.w, s.f, self.h, self.sigma, self.width, self.count, self.neighbor, self.gradient,
                         p.density, self.fullest)  # fmt: skip
            fullest = self.fullest[0]
            if fullest <= self.width:
                return
            self._allocate_lists(-(-fullest // WIDTH_STEP) * WIDTH_STEP)

    def _grid(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Origin, cell sizes and dimensions. Stray particles far away must not blow the grid up: it is
        cut down around its middle until it fits, and `cell_of` puts what lies outside into the outermost cells."""
        dims = np.maximum(np.floor((high - low) / self.h).astype(np.int64) + 1, 1)
        size = np.full(3, self.h * (1 + 1e-5))
        origin = low - 1e-5 * self.h
        for k in np.flatnonzero(self.periods):
            dims[k] = int(self.periods[k] / self.h)
            size[k] = self.periods[k] / dims[k]
            origin[k] = 0.0
        limit = max(LEAST_CELLS, CELLS_PER_PARTICLE * self.particles.n)
        if np.prod(dims.astype(float)) > limit:
            wanted = dims.copy()
            middle = np.median(self.particles.numpy("x"), axis=0)
            while np.prod(dims.astype(float)) > limit:
                k = int(np.argmax(np.where(self.periods > 0, 0, dims)))
                dims[k] = (dims[k] + 1) // 2
            for k in np.flatnonzero(dims < wanted):
                first = np.clip((middle[k] - origin[k]) / size[k] - dims[k] / 2, 0, wanted[k] - dims[k])
                origin[k] += np.floor(first) * size[k]
        return origin, size, dims

    @property
    def bytes_per_particle(self) -> float:
        lists = self.width * (4 + 12) + 3 * 4
        return lists + 4 * self.start.shape[0] / self.particles.n


