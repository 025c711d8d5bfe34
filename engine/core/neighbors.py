"""Who is near whom: particles sorted by cell, neighbor lists, and the kernel gradient of every pair.

Each step the particles are counting-sorted into cells as wide as the support along y and z and a quarter of it
along x, row after row. Inside a cell they are ordered by position, so the order (and with it every floating-point
sum) depends on where the particles are and on nothing else: not on threads, not on the order in which they were given.

A neighborhood is then at most nine contiguous runs of particles, each just as long as the support is wide there.
GROUP particles that follow each other search theirs together, one in each lane of a vector: candidates are read once
for all of them, and appended without a branch (write always, advance the counter by the test).

Lists are rows of one long array, almost without gaps (STRIDE) between those of BLOCK particles, which one thread makes:
particle i has the entries `span[i][0]` to `span[i][1]`. Beside each neighbor stands the factor V_j W'(r) / r of its
gradient, so the pressure iterations need positions and nothing else:

    G_ij = V_j grad W_ij = factor x_ij.

`point` holds positions, and volumes, in vectors of four: one load brings in a neighbor, and sums over pairs in which
all four components are treated alike run in full vectors. Measured, that halves the cost of a pressure iteration.
"""

import numpy as np
import taichi as ti

from pliant.core import backend
from pliant.core.backend import (
    Ints,
    Points,
    Reals,
    Spans,
    Vectors,
    desk_of,
    ivec2,
    ivec3,
    ivec8,
    share,
    turns,
    vec3,
    vec4,
    vec8,
    vector_at,
)
from pliant.core.fields import read_first
from pliant.core.particles import Particles
from pliant.core.smoothing import SPACINGS_PER_SUPPORT, Smoothing
from pliant.core.speedups import light, with_vectors

GROUP = 8  # particles that search together, in the lanes of a vector
BLOCK = 64  # particles whose rows stand together
START_ROOM = 32  # entries a particle that there is room for; a full neighborhood has 26-32 members at rest
START_DEPTH = 96  # entries that one particle may have
RUN = 32  # candidates between two looks whether there is depth enough
STRIDE = 2  # rows take a multiple of so many entries: behind their end may stand one whose factor is zero
GROWTH = 1.25  # of the lists, beyond what is needed
X_CELLS = 4  # cells per support along x: candidates come from runs cut to this precision
SCAN_BLOCKS = 256
CELLS_PER_PARTICLE = 16  # beyond this the grid covers the bulk only, and stragglers share its outermost cells
LEAST_CELLS = 1 << 16
LEAST_PERIOD = 3  # cells along a periodic axis: with fewer, a cell would be a neighbor of another on both sides

# Rows of the small tables that kernels read: vectors as arguments cost far more to pass than arrays.
ORIGIN, SIZE, INVERSE = 0, 1, 2
LENGTH, INVERSE_LENGTH = 0, 1
ENTRIES, DEEPEST = 0, 1  # entries of all lists, and whether one of them did not fit


@ti.func
def triple(values: ti.template(), k: ti.template()):
    return ti.Vector([values[k], values[k + 1], values[k + 2]])


@ti.func
def cell_along(k: ti.template(), x: ti.f32, grid: ti.template(), size: ti.i32, wraps: ti.template(), periodic: ti.i32):
    """One cell coordinate; outside the grid the nearest cell, which keeps neighbors in adjacent cells."""
    c = ti.floor((x - grid[ORIGIN][k]) * grid[INVERSE][k], ti.i32)
    if ti.static(wraps):
        c -= periodic * size * ti.floor(ti.cast(c, ti.f32) / size, ti.i32)
    return ti.min(ti.max(c, 0), size - 1)


@ti.func
def cell_of(x, grid: ti.template(), dims, wraps: ti.template(), periodic):
    """Cell coordinates."""
    return ivec3(cell_along(0, x[0], grid, dims[0], wraps, periodic[0]),
                 cell_along(1, x[1], grid, dims[1], wraps, periodic[1]),
                 cell_along(2, x[2], grid, dims[2], wraps, periodic[2]))  # fmt: skip


@ti.func
def difference(xi: vec3, xj: vec3, wraps: ti.template(), period: ti.template()):
    """x_ij = x_i - x_j, the shortest of its images across periodic boundaries where there are any."""
    dx = xi - xj
    if ti.static(wraps):
        dx -= period[LENGTH] * ti.round(dx * period[INVERSE_LENGTH])
    return dx


@ti.func
def difference_of_points(xi: vec4, xj: vec4, wraps: ti.template(), period: ti.template()):
    """The same for vectors of four: the last component is the difference of whatever they carry beside positions."""
    dx = xi - xj
    if ti.static(wraps):
        length, inverse = vector_at(period, LENGTH), vector_at(period, INVERSE_LENGTH)
        dx = dx - vec4(length, 0.0) * ti.round(dx * vec4(inverse, 0.0))
    return dx


@ti.func
def sum_row(term: ti.template(), i: ti.i32, first: ti.i32, end: ti.i32, wraps: ti.template(), period: ti.template(),
            c: ti.template()):  # fmt: skip
    """sum_k term(i, k, wraps, period, c), of vectors of four, over a row of pairs. Two sums side by side, because an
    addition has to wait for the one before: the entry that stands behind a row (STRIDE) adds nothing to a term with a
    factor."""
    even, odd = vec4(0.0), vec4(0.0)
    k = first
    while k < end:
        even += term(i, k, wraps, period, c)
        odd += term(i, k + 1, wraps, period, c)
        k += STRIDE
    return even + odd


@light
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


@light
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


@light
@ti.kernel
def _pack_points(n: ti.i32, x: Vectors, V: Reals, point: Points):
    for i in range(n):
        point[i] = vec4(x[i], V[i])


@ti.func
def gap(offset: ti.template(), lowest: ti.f32, highest: ti.f32, low: ti.f32, size: ti.f32):
    """Least distance of positions from `lowest` to `highest` to the cells `offset` (-1, 0, 1) further; `low` is where
    their own cell begins."""
    result = 0.0
    if ti.static(offset < 0):
        result = ti.max(lowest - low, 0.0)
    if ti.static(offset > 0):
        result = ti.max(low + size - highest, 0.0)
    return result


@ti.func
def lanes(members: ivec8, k: ti.template(), point: ti.template()):
    """One coordinate of the members of a group."""
    values = vec8(0.0)
    for l in ti.static(range(GROUP)):
        values[l] = point[members[l]][k]
    return values


@ti.func
def lane_numbers():
    return ivec8(0, 1, 2, 3, 4, 5, 6, 7)


@ti.func
def listed(found: ti.template(), at: ti.i32, rest: ti.i32, other: ti.i32):
    """The next entries of a list, of which there are `rest`; in lanes beyond its end another one."""
    entries = ivec8(other)
    for l in ti.static(range(GROUP)):
        entries[l] = ti.select(rest > l, found[at + l], other)
    return entries


@ti.func
def place(i: ti.i32, point: ti.template()):
    p = point[i]
    return vec3(p[0], p[1], p[2])


@ti.func
def companions(i: ti.i32, end: ti.i32, h: ti.f32, point: ti.template(), grid: ti.template(), dims,
               wraps: ti.template(), periodic):  # fmt: skip
    """How many particles from i on search together: those before the `end` that are of one row of cells and close to
    each other, up to a whole group."""
    low, first, count, going = place(i, point), cell_of(place(i, point), grid, dims, wraps, periodic), 1, 1
    high = low
    for l in ti.static(range(1, GROUP)):
        x = place(ti.min(i + l, end - 1), point)
        c = cell_of(x, grid, dims, wraps, periodic)
        low, high = ti.min(low, x), ti.max(high, x)
        size = high - low
        near = size[0] < 2.0 * h and size[1] < h and size[2] < h
        going &= ti.cast(i + l < end and c[1] == first[1] and c[2] == first[2] and near, ti.i32)
        count += going
    return count


@ti.func
def nearest_image(dx: vec8, k: ti.template(), wraps: ti.template(), period: ti.template()):
    """Differences along the axis k, each the shortest of its images."""
    if ti.static(wraps):
        dx = dx - period[LENGTH][k] * ti.round(dx * period[INVERSE_LENGTH][k])
    return dx


@ti.func
def search(members: ivec8, h: ti.f32, wraps: ti.template(), period: ti.template(), point: ti.template(),
           start: ti.template(), grid: ti.template(), dims, periodic, begin: ivec8, depth: ti.i32,
           found: ti.template()):  # fmt: skip
    """Writes the neighbors of each member to `found`, from `begin` on, and returns where they end; or where they would
    be too many for the depth."""
    x, y, z = lanes(members, 0, point), lanes(members, 1, point), lanes(members, 2, point)
    xi = place(members[0], point)
    c = cell_of(xi, grid, dims, wraps, periodic)
    size, inverse, h2 = vector_at(grid, SIZE), vector_at(grid, INVERSE), h * h
    low, origin = vector_at(grid, ORIGIN) + c * size, grid[ORIGIN][0]
    if ti.static(wraps):  # a periodic particle may stand whole periods away from its cell
        away = vector_at(period, LENGTH) * ti.round((xi - low) * vector_at(period, INVERSE_LENGTH))
        low += away
        origin += away[0]
    lowest, highest = vec3(x.min(), y.min(), z.min()), vec3(x.max(), y.max(), z.max())
    ends = begin
    for row in ti.static(range(9)):  # unrolled: each row has branches of its own to predict
        dy, dz = ti.static(row % 3 - 1, row // 3 - 1)
        cy, cz = c[1] + dy, c[2] + dz
        if ti.static(wraps):
            cy += dims[1] * (ti.cast(cy < 0, ti.i32) - ti.cast(cy >= dims[1], ti.i32)) * periodic[1]
            cz += dims[2] * (ti.cast(cz < 0, ti.i32) - ti.cast(cz >= dims[2], ti.i32)) * periodic[2]
        aside = gap(dy, lowest[1], highest[1], low[1], size[1])
        behind = gap(dz, lowest[2], highest[2], low[2], size[2])
        reach2 = h2 - aside * aside - behind * behind
        if reach2 > 0.0 and cy >= 0 and cy < dims[1] and cz >= 0 and cz < dims[2]:
            base, reach = dims[0] * (cy + dims[1] * cz), ti.sqrt(reach2)
            left = ti.floor((lowest[0] - origin - reach) * inverse[0] - 1e-3, ti.i32)
            right = ti.floor((highest[0] - origin + reach) * inverse[0] + 1e-3, ti.i32)
            first, last = ti.max(ti.min(left, dims[0] - 1), 0), ti.min(ti.max(right, 0), dims[0] - 1)
            for part in range(ti.static(2 if wraps else 1)):
                if ti.static(wraps):
                    if part == 1:  # what of the run lies beyond a periodic end of the x axis
                        if periodic[0] != 0 and left < 0:
                            first, last = ti.max(left + dims[0], last + 1), dims[0] - 1
                        elif periodic[0] != 0 and right >= dims[0]:
                            first, last = 0, ti.min(right - dims[0], first - 1)
                        else:
                            first, last = 0, -1
                j, end = start[base + first], start[base + last + 1]
                while j < end:
                    stop = ti.min(j + RUN, end)
                    if (ends - begin).max() + RUN > depth:
                        ends, stop, end = begin + depth, j, j
                    for k in range(j, stop):
                        other = point[k]
                        a = nearest_image(x - other[0], 0, wraps, period)
                        b = nearest_image(y - other[1], 1, wraps, period)
                        c_ = nearest_image(z - other[2], 2, wraps, period)
                        r2 = a * a + b * b + c_ * c_
                        for l in ti.static(range(GROUP)):
                            found[ends[l]] = k
                        if ti.static(row == 4):
                            ends += ti.select(members == k, ivec8(0), ti.select(r2 < h2, ivec8(1), ivec8(0)))
                        else:
                            ends += ti.select(r2 < h2, ivec8(1), ivec8(0))
                    j = stop
    return ends


@ti.func
def write_row(i: ti.i32, first: ti.i32, h: ti.f32, sigma: ti.f32, wraps: ti.template(), period: ti.template(),
              point: ti.template(), w: ti.template(), f: ti.template(), found: ti.template(), at: ti.i32, many: ti.i32,
              neighbor: ti.template(), factor: ti.template()):  # fmt: skip
    """Takes the neighbors of i, which stand in `found` from `first` on, into the lists from `at` on, with their factors
    and as many at once as a vector holds; returns the density ratio."""
    xi, rho = point[i], vec8(0.0)
    for k in range((many + GROUP - 1) // GROUP):
        rest, place = many - GROUP * k, at + GROUP * k
        j = listed(found, first + GROUP * k, rest, i)
        dx = nearest_image(xi[0] - lanes(j, 0, point), 0, wraps, period)
        dy = nearest_image(xi[1] - lanes(j, 1, point), 1, wraps, period)
        dz = nearest_image(xi[2] - lanes(j, 2, point), 2, wraps, period)
        V = ti.select(lane_numbers() < rest, lanes(j, 3, point), 0.0)
        q = ti.sqrt(dx * dx + dy * dy + dz * dz) / h
        rho += V * w(q)
        F = sigma / (h * h) * V * f(q)
        for l in ti.static(range(GROUP)):
            neighbor[place + l], factor[place + l] = j[l], F[l]
    return sigma * (rho.sum() + xi[3] * w(0.0))


@with_vectors
@ti.kernel
def _build_lists(n: ti.i32, wraps: ti.template(), period: Vectors, point: Points, start: Ints, grid: Vectors,
                 shape: Ints, w: ti.template(), f: ti.template(), h: ti.f32, sigma: ti.f32, block: ti.i32,
                 depth: ti.i32, found: Ints, span: Spans, neighbor: Ints, factor: Reals, density: Reals,
                 used: Ints):  # fmt: skip
    """Lists, factors of the gradients, and the density ratio sum_j V_j W_ij (Kugelstadt 2021, Eq. 2). `used` tells how
    many entries there are, and whether one particle has more than the depth. Where the rows of a block stand depends on
    which thread is faster, what stands there does not."""
    used[ENTRIES], used[DEEPEST] = 0, 0
    blocks = (n + block - 1) // block
    for turn in range(turns(blocks)):
        b = share(turn, blocks)
        if b < blocks:
            dims, periodic = triple(shape, 0), triple(shape, 3)
            lo, hi = b * block, ti.min((b + 1) * block, n)
            desk, entries = desk_of(turn, b) * block * depth, 0
            first = lo
            while first < hi:
                together = companions(first, hi, h, point, grid, dims, wraps, periodic)
                members = ti.min(lane_numbers() + first, first + together - 1)
                begin = desk + (members - lo) * depth
                ends = search(members, h, wraps, period, point, start, grid, dims, periodic, begin, depth, found)
                for l in range(together):
                    many = ends[l] - begin[l]
                    span[first + l] = ivec2(entries, entries + many)
                    entries += (many + STRIDE - 1) // STRIDE * STRIDE
                    if many == depth:
                        used[DEEPEST] = 1
                first += together
            at = ti.atomic_add(used[ENTRIES], entries + GROUP)  # rows are written in whole vectors
            if at + entries + GROUP <= neighbor.shape[0]:
                for i in range(lo, hi):
                    row = span[i] + at
                    span[i] = row
                    density[i] = write_row(i, desk + (i - lo) * depth, h, sigma, wraps, period, point, w, f, found,
                                           row[0], row[1] - row[0], neighbor, factor)  # fmt: skip


class Neighbors:
    """Sorts particles and keeps their lists: `neighbor[k]` and `factor[k]` for k from `span[i][0]` to `span[i][1]`."""

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
        self.sums, self._used = ti.ndarray(ti.i32, SCAN_BLOCKS), np.zeros(2, np.int32)
        self.start = ti.ndarray(ti.i32, LEAST_CELLS + 2)
        self.block = BLOCK if backend.started() == "cpu" else GROUP  # on a GPU each group has a thread of its own
        self.room, self.depth, self.capacity = 0, START_DEPTH, 0
        self._grow()

    def _grow(self) -> None:
        """Makes room for as many particles as their own arrays have."""
        self.capacity = self.particles.capacity
        self.cell, self.order = (ti.ndarray(ti.i32, self.capacity) for _ in range(2))
        self.span, self.point = ti.ndarray(ivec2, self.capacity), ti.ndarray(vec4, self.capacity)
        self._allocate_lists(max(self.room, START_ROOM * self.capacity))
        self._allocate_desks()

    def _allocate_lists(self, room: int) -> None:
        self.room = room
        self.neighbor, self.factor = (ti.ndarray(kind, room) for kind in (ti.i32, ti.f32))

    def _allocate_desks(self) -> None:
        """Where blocks put together what they find. A thread has one for all the blocks that it makes."""
        desks = backend.desks(-(-self.capacity // self.block))
        self._found = ti.ndarray(ti.i32, desks * self.block * self.depth + GROUP)

    @property
    def pairs(self) -> tuple:
        """What kernels over pairs take after n: wraps, period, x, span, neighbor, factor."""
        return (self.wraps, self.period, self.particles.x, self.span, self.neighbor, self.factor)

    def shortest(self, dx: np.ndarray) -> np.ndarray:
        """Differences (..., 3), each the shortest of its images across periodic boundaries, as `difference`."""
        return dx - self.periods * np.round(dx / np.where(self.periods > 0, self.periods, 1.0))

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
        _pack_points(p.n, p.x, p.V, self.point)
        while not self._build_lists():
            pass

    def _build_lists(self) -> bool:
        """Whether all found room in the lists, which otherwise are larger now."""
        p, s = self.particles, self.smoothing
        _build_lists(p.n, self.wraps, self.period, self.point, self.start, self.grid, self.shape, s.w, s.f, self.h,
                     self.sigma, self.block, self.depth, self._found, self.span, self.neighbor, self.factor, p.density,
                     self._used)  # fmt: skip
        entries, deepest = self._used.tolist()
        if deepest:
            self.depth *= 2
            self._allocate_desks()
        if entries > self.room:
            self._allocate_lists(int(GROWTH * entries))
            return False
        return not deepest

    def _grid(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Origin, cell sizes and dimensions. Stray particles far away must not blow the grid up: it is
        cut down around its middle until it fits, and `cell_of` puts what lies outside into the outermost cells."""
        fine = np.array([X_CELLS, 1, 1])
        size = self.h * (1 + 1e-5) / fine
        dims = np.maximum(np.floor((high - low) / size).astype(np.int64) + 1, 1)
        origin = low - 1e-5 * self.h
        for k in np.flatnonzero(self.periods):
            dims[k] = max(int(self.periods[k] / self.h * (1 - 1e-5)), LEAST_PERIOD) * fine[k]
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
        """Mean number of neighbors."""
        spans = read_first(self.particles.n, self.span)
        return float((spans[:, 1] - spans[:, 0]).sum() / max(self.particles.n, 1))

    @property
    def bytes_per_particle(self) -> float:
        return 8 + 16 + 2 * 4 + (8 * self.room + 4 * self.start.shape[0]) / max(self.particles.n, 1)
