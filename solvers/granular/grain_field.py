"""The motion of a granular medium as a field, which its grains read (Neder 2024, Section 5.12; on a grid instead of
over the neighbors of each grain, as Section 6 suggests).

Nodes stand about 2/3 of a spacing d apart, in blocks of 8^3. Only blocks within reach of particles have nodes, so that
a stray particle costs a few blocks. Nodes stand at fixed places: they must not move with the box around the particles,
or the field would flicker in a pile at rest. At each node, with the weight of Eq. 40 over particles in reach R = 3 r,

    w = (1 - |x - x_j|^2 / R^2)^3,    W = sum_j w,    W v = sum_j w v_j,

and both are interpolated, so that their ratio, Eq. 41, is exact for a translation. W over its mean in a full medium is
the fill: one half at the surface, where a half-space of particles ends d / 2 above its last layer. A node in a wall, or
nearer than d / 2 to it, looks from d / 2 away, where particles stand: up to the wall the medium goes on as it is there.

Interpolated motion is not free of divergence, so that grains gather in clumps. Against these,
- where cells hold too many grains, these drift away from the crowd (`_drift`),
- and each grain has the velocity of a random place near it (`field_at`).
Both are as large as the medium stirs there: at rest, or in a translation, nothing happens. So do real grains: they
diffuse by D ~ shear rate times diameter^2 (Utter and Behringer 2004).
"""

from typing import Any, TypeAlias

import numpy as np
import taichi as ti

from pliant.boundary.wall_table import (
    WallTable,
    candidate,
    candidates,
    side_at,
    within,
)
from pliant.core.backend import ROUNDS, Ints, Reals, Vectors, vec3, vec4
from pliant.core.neighbors import INVERSE, ORIGIN, SIZE, difference, triple
from pliant.core.world import World

REACH = 1.5  # in spacings: R = 3 r (Ihmsen et al. 2013, where the weights come from)
MEAN_WEIGHT = 4 * np.pi * REACH**3 * 16 / 315  # of all particles of a full medium at a point: integral of w over d^3
LOG = 3
DENSITY = 1 << LOG  # nodes along a block's edge
OWN = DENSITY**3
SIDE = DENSITY + 1  # a block also holds the next nodes of its neighbors, so that grains find all corners in it
PADDED = SIDE**3
BLOCK = 16 / 3  # in spacings: nodes 2/3 apart. Coarser, crowds in the cells go unseen; finer, it costs more
STAND_OFF = 0.5  # in spacings: where particles stand in front of walls
BLOCKS_PER_PARTICLE = 64  # beyond, the directory covers the bulk only: what flies far outside falls freely
LEAST_BLOCKS = 1 << 16
SCATTER = 0.5  # in cells: see `field_at`
MIXING = 1.5  # drift per stir and slope of the crowd, see `_drift`

Nodes: TypeAlias = ti.types.ndarray(dtype=vec4, ndim=1)


@ti.func
def wrapped(block, dims, periodic, wraps: ti.template()):
    """A block's coordinates, inside the grid where it is periodic."""
    if ti.static(wraps):
        for k in ti.static(range(3)):
            if periodic[k] != 0:
                block[k] -= dims[k] * ti.floor(ti.cast(block[k], ti.f32) / dims[k], ti.i32)
    return block


@ti.func
def slot_at(block, dims, periodic, wraps: ti.template(), directory: ti.template()):
    """Which slot holds a block, or -1: outside the grid, or nothing in reach."""
    slot, b = -1, wrapped(block, dims, periodic, wraps)
    if b[0] >= 0 and b[1] >= 0 and b[2] >= 0 and b[0] < dims[0] and b[1] < dims[1] and b[2] < dims[2]:
        slot = directory[b[0] + dims[0] * (b[1] + dims[1] * b[2])]
    return slot


@ti.func
def block_of(b: ti.i32, dims):
    return ti.Vector([b % dims[0], b // dims[0] % dims[1], b // (dims[0] * dims[1])])


@ti.func
def node_of(k: ti.i32):
    return ti.Vector([k % DENSITY, k // DENSITY % DENSITY, k // DENSITY**2])


@ti.kernel
def _mark(n: ti.i32, dt: ti.f32, reach: ti.f32, x: Vectors, v: Vectors, body: Ints, crowd: Reals, grid: Vectors,
          shape: Ints, wraps: ti.template(), directory: Ints, used: Ints):  # fmt: skip
    """Numbers the blocks within reach of particles. The numbers depend on threads, the fields do not."""
    dims, periodic = triple(shape, 0), triple(shape, 3)
    blocks = dims[0] * dims[1] * dims[2]
    used[0] = 0
    for b in range(blocks):
        directory[b] = -1
    for i in range(n):
        if crowd[body[i]] > 0.0:
            at = (x[i] - dt * v[i] - grid[ORIGIN]) * grid[INVERSE] / DENSITY
            apart = reach * grid[INVERSE] / DENSITY
            first, last = ti.floor(at - apart, ti.i32), ti.floor(at + apart, ti.i32)
            for k in range(27):
                c = first + ti.Vector([k % 3, k // 3 % 3, k // 9])
                if (c <= last).all():
                    c = wrapped(c, dims, periodic, wraps)
                    if (c >= 0).all() and (c < dims).all():
                        directory[c[0] + dims[0] * (c[1] + dims[1] * c[2])] = 0
    for b in range(blocks):
        if directory[b] == 0:
            directory[b] = ti.atomic_add(used[0], 1)


@ti.kernel
def _open(grid: Vectors, shape: Ints, directory: Ints, where: Ints, near: Ints, place: Vectors, count: Ints):
    """Places the nodes of the blocks in use."""
    dims = triple(shape, 0)
    for b in range(dims[0] * dims[1] * dims[2]):
        slot = directory[b]
        if slot >= 0:
            where[slot], near[slot] = b, 0
            for k in range(OWN):
                place[OWN * slot + k] = grid[ORIGIN] + grid[SIZE] * (DENSITY * block_of(b, dims) + node_of(k))
                count[OWN * slot + k] = 0


@ti.kernel
def _stand_off(nodes: ti.i32, away: ti.f32, close: ti.f32, place: Vectors, near: Ints, t: WallTable):
    """Nodes near a wall look from where particles stand in front of it. A block with a node nearer than `close` is near
    a wall."""
    for m in range(nodes):
        walls, offset = candidates(place[m], t)
        for k in range(walls):
            wall = candidate(k, offset, t)
            if within(wall, place[m], ti.max(away, close), t):
                for side in range(t.side_begin[wall], t.side_begin[wall + 1]):
                    distance, outward = side_at(side, place[m], t)
                    if distance < close:
                        near[m // OWN] = 1
                    if distance < away and outward.norm() > 0.0:
                        place[m] = place[m] + (away - distance) * outward.normalized()


@ti.kernel
def _count(n: ti.i32, x: Vectors, grid: Vectors, shape: Ints, wraps: ti.template(), directory: Ints, count: Ints):
    """Grains in each cell, whose first corner is the node of the same number."""
    dims, periodic = triple(shape, 0), triple(shape, 3)
    for g in range(n):
        node = ti.floor((x[g] - grid[ORIGIN]) * grid[INVERSE], ti.i32)
        slot = slot_at(node >> LOG, dims, periodic, wraps, directory)
        if slot >= 0:
            c = node & (DENSITY - 1)
            ti.atomic_add(count[OWN * slot + c[0] + DENSITY * (c[1] + DENSITY * c[2])], 1)


@ti.kernel
def _crowd(slots: ti.i32, shape: Ints, wraps: ti.template(), directory: Ints, where: Ints, count: Ints, held: Reals):
    """Sets up the counts of all cells around the nodes of a block: its own, and the last ones of the blocks before."""
    dims, periodic = triple(shape, 0), triple(shape, 3)
    for task in range(ROUNDS * slots):
        if task % ROUNDS == 0:
            slot = task // ROUNDS
            block = block_of(where[slot], dims)
            for n in range(8):
                under = ti.Vector([n & 1, n >> 1 & 1, n >> 2])
                other = slot_at(block - under, dims, periodic, wraps, directory)
                first = (DENSITY - 1) * under
                for c in range(first[2], DENSITY):
                    for b in range(first[1], DENSITY):
                        for a in range(first[0], DENSITY):
                            t = ti.Vector([a, b, c]) + 1 - DENSITY * under
                            value = 0.0
                            if other >= 0:
                                value = ti.cast(count[OWN * other + a + DENSITY * (b + DENSITY * c)], ti.f32)
                            held[PADDED * slot + t[0] + SIDE * (t[1] + SIDE * t[2])] = value


@ti.func
def _drift(first: ti.i32, crowd: ti.f32, stir: ti.f32, held: ti.template()):
    """Velocity at a node away from the crowd: -MIXING stir d grad p, where p is by what share the cells around the node
    hold more grains than they should; no faster than the stir."""
    slope, full = vec3(0.0), 1.0 / crowd
    for k in ti.static(range(2)):
        for j in ti.static(range(2)):
            for i in ti.static(range(2)):
                p = ti.max(full * held[first + i + SIDE * (j + SIDE * k)] - 1.0, 0.0)
                slope += 0.25 * p * vec3(2.0 * i - 1.0, 2.0 * j - 1.0, 2.0 * k - 1.0)
    u = -MIXING * DENSITY / BLOCK * stir * slope  # nodes are BLOCK / DENSITY spacings apart
    return u * ti.min(stir / ti.max(u.norm(), 1e-12), 1.0)


@ti.func
def _add(at: vec3, dv: vec3, first: ti.i32, size: vec3, reach: vec3, own: ti.template(), squares: ti.template()):
    """Adds one particle to the nodes of a block that it reaches. `at` is its place from the block's first node, in
    cells as is `reach`; `size` holds the squares of their edges, in reaches."""
    low, high = ti.max(ti.ceil(at - reach, ti.i32), 0), ti.min(ti.floor(at + reach, ti.i32), DENSITY - 1)
    energy = dv.dot(dv)
    for c in range(low[2], high[2] + 1):
        for b in range(low[1], high[1] + 1):
            left = 1.0 - size[1] * (at[1] - b) ** 2 - size[2] * (at[2] - c) ** 2
            if left > 0.0:
                for a in range(low[0], high[0] + 1):
                    q = ti.max(left - size[0] * (at[0] - a) ** 2, 0.0)
                    w = q * q * q
                    m = first + a + DENSITY * (b + DENSITY * c)
                    own[m] = own[m] + ti.Vector([w * dv[0], w * dv[1], w * dv[2], w])  # += would be atomic
                    squares[m] = squares[m] + w * energy


@ti.kernel
def _gather(slots: ti.i32, dt: ti.f32, reach: ti.f32, wraps: ti.template(), period: Vectors, n_grid: Vectors,
            n_shape: Ints, start: Ints, x: Vectors, v: Vectors, body: Ints, crowd: Reals, grid: Vectors, shape: Ints,
            where: Ints, held: Reals, own: Nodes, squares: Reals):  # fmt: skip
    """W v and W at each node (Eq. 40, 41), over particles where they were before the step, block by block."""
    cells, around = triple(n_shape, 0), triple(n_shape, 3)
    dims = triple(shape, 0)
    for task in range(ROUNDS * slots):
        if task % ROUNDS == 0:
            slot = task // ROUNDS
            block, first = block_of(where[slot], dims), OWN * slot
            corner = grid[ORIGIN] + DENSITY * grid[SIZE] * block
            for k in range(OWN):
                own[first + k] = ti.Vector([0.0, 0.0, 0.0, 0.0])
                squares[first + k] = 0.0
            low = ti.floor((corner - reach - n_grid[ORIGIN]) * n_grid[INVERSE] - 1e-3, ti.i32)
            edge, size = (DENSITY - 1) * grid[SIZE], (grid[SIZE] / reach) ** 2
            high = ti.floor((corner + edge + reach - n_grid[ORIGIN]) * n_grid[INVERSE] + 1e-3, ti.i32)
            for k in ti.static(range(3)):  # what lies outside the grid of the particles is in its outermost cells
                if around[k] == 0:
                    low[k] = ti.min(ti.max(low[k], 0), cells[k] - 1)
                    high[k] = ti.max(ti.min(high[k], cells[k] - 1), 0)
                high[k] = ti.min(high[k], low[k] + cells[k] - 1)  # no cell twice in a short period
            base, full = vec3(0.0), 0.0
            for rz in range(low[2], high[2] + 1):
                for ry in range(low[1], high[1] + 1):
                    cy, cz = (ry + cells[1]) % cells[1], (rz + cells[2]) % cells[2]
                    row = cells[0] * (cy + cells[1] * cz)
                    for part in range(ti.static(2 if wraps else 1)):
                        left, right = low[0], high[0]
                        if ti.static(wraps):  # what of the run lies beyond a periodic end of the x axis
                            left, right = ti.max(low[0], 0), ti.min(high[0], cells[0] - 1)
                            if part == 1:
                                left, right = 0, high[0] - cells[0]
                                if low[0] < 0:
                                    left, right = low[0] + cells[0], cells[0] - 1
                        if right >= left:
                            for j in range(start[row + left], start[row + right + 1]):
                                c = crowd[body[j]]
                                at = difference(x[j] - dt * v[j], corner + 0.5 * edge, wraps, period)
                                if c > 0.0 and (ti.abs(at) < 0.5 * edge + reach).all():
                                    if full == 0.0:
                                        base, full = v[j], c
                                    # sums of differences: a translation has no stir at all
                                    at = (at + 0.5 * edge) * grid[INVERSE]
                                    _add(at, v[j] - base, first, size, reach * grid[INVERSE], own, squares)
            for k in range(OWN):
                weight = own[first + k][3]
                if weight > 0.0:
                    mean = own[first + k][:3] / weight
                    stir = ti.sqrt(ti.max(squares[first + k] / weight - mean.dot(mean), 0.0))
                    mean += base
                    if stir > 0.0:
                        c = node_of(k)
                        mean += _drift(PADDED * slot + c[0] + SIDE * (c[1] + SIDE * c[2]), full, stir, held)
                    own[first + k] = ti.Vector([weight * mean[0], weight * mean[1], weight * mean[2], weight])


@ti.kernel
def _pad(slots: ti.i32, still: ti.f32, shape: Ints, wraps: ti.template(), directory: Ints, where: Ints, own: Nodes,
         values: Nodes, calm: Ints):  # fmt: skip
    """Sets up all nodes that the cells of a block have: its own, and the first ones of the next blocks. The block is
    calm if none of them is faster than `still`."""
    dims, periodic = triple(shape, 0), triple(shape, 3)
    for task in range(ROUNDS * slots):
        if task % ROUNDS == 0:
            slot = task // ROUNDS
            block, fast = block_of(where[slot], dims), 0
            for n in range(8):
                over = ti.Vector([n & 1, n >> 1 & 1, n >> 2])
                other = slot_at(block + over, dims, periodic, wraps, directory)
                size = ti.select(over > 0, 1, DENSITY)
                for c in range(size[2]):
                    for b in range(size[1]):
                        for a in range(size[0]):
                            value = ti.Vector([0.0, 0.0, 0.0, 0.0])
                            if other >= 0:
                                value = own[OWN * other + a + DENSITY * (b + DENSITY * c)]
                            t = DENSITY * over + ti.Vector([a, b, c])
                            values[PADDED * slot + t[0] + SIDE * (t[1] + SIDE * t[2])] = value
                            fast |= value[:3].norm() > still * value[3]
            calm[slot] = 1 - fast


@ti.kernel
def _redirect(nodes: ti.i32, grid: Vectors, shape: Ints, wraps: ti.template(), directory: Ints, where: Ints,
              place: Vectors, values: Nodes, own: Nodes):  # fmt: skip
    """Gives nodes that look from elsewhere what there is to see."""
    dims, periodic = triple(shape, 0), triple(shape, 3)
    for m in range(nodes):
        slot = m // OWN
        at = grid[ORIGIN] + grid[SIZE] * (DENSITY * block_of(where[slot], dims) + node_of(m % OWN))
        if (place[m] != at).any():
            own[m] = sums_at(place[m], grid, dims, periodic, wraps, directory, values)


@ti.func
def _blend(near: vec3, t: vec3, first: ti.i32, values: ti.template()):
    """W v and W at one place in the cell that begins with a node, and W at another; both go from 0 to 1 in it."""
    total, weight, s, far = ti.Vector([0.0, 0.0, 0.0, 0.0]), 0.0, 1.0 - t, 1.0 - near
    for k in ti.static(range(2)):
        for j in ti.static(range(2)):
            across = (near[1] if j == 1 else far[1]) * (near[2] if k == 1 else far[2])
            beside = (t[1] if j == 1 else s[1]) * (t[2] if k == 1 else s[2])
            for i in ti.static(range(2)):
                corner = values[first + i + SIDE * (j + SIDE * k)]
                total += across * (near[0] if i == 1 else far[0]) * corner
                weight += beside * (t[0] if i == 1 else s[0]) * corner[3]
    return total, weight


@ti.func
def sums_at(x: vec3, grid: ti.template(), dims, periodic, wraps: ti.template(), directory: ti.template(),
            values: ti.template()):  # fmt: skip
    """W v and W at x, from the eight nodes around it."""
    u = (x - grid[ORIGIN]) * grid[INVERSE]
    node = ti.floor(u, ti.i32)
    slot = slot_at(node >> LOG, dims, periodic, wraps, directory)
    total = ti.Vector([0.0, 0.0, 0.0, 0.0])
    if slot >= 0:
        c = node & (DENSITY - 1)
        total, _ = _blend(u - node, u - node, PADDED * slot + c[0] + SIDE * (c[1] + SIDE * c[2]), values)
    return total


@ti.func
def field_at(x: vec3, seed: ti.i32, grid: ti.template(), dims, periodic, wraps: ti.template(),
             directory: ti.template(), values: ti.template()):  # fmt: skip
    """Velocity of the medium (Eq. 41) and its fill at x, 1 inside and 0 where there is none, and the slot of the block
    that holds x. The velocity is that at a random place in the same cell, up to SCATTER cells away, which the seed and
    x decide: grains at one place part where the medium shears, and nothing changes where it moves as a whole."""
    u = (x - grid[ORIGIN]) * grid[INVERSE]
    node = ti.floor(u, ti.i32)
    slot = slot_at(node >> LOG, dims, periodic, wraps, directory)
    velocity, fill = vec3(0.0), 0.0
    if slot >= 0:
        c, t = node & (DENSITY - 1), u - node
        near = ti.min(ti.max(t + SCATTER * random_offset(seed, x), 0.0), 1.0)
        total, weight = _blend(near, t, PADDED * slot + c[0] + SIDE * (c[1] + SIDE * c[2]), values)
        fill = weight / MEAN_WEIGHT
        if total[3] > 0.0:
            velocity = total[:3] / total[3]
    return velocity, fill, slot


@ti.func
def random_offset(seed: ti.i32, x: vec3):
    """Three numbers between -1 and 1, as good as random (PCG, O'Neill 2014), the same for the same input."""
    state = ti.cast(seed, ti.u32)
    for k in ti.static(range(3)):
        state = state * ti.u32(747796405) + ti.bit_cast(x[k], ti.u32)
    word = ((state >> ((state >> 28) + 4)) ^ state) * ti.u32(277803737)
    word = (word >> 22) ^ word
    return ti.cast(ti.Vector([word & 1023, word >> 10 & 1023, word >> 20 & 1023]), ti.f32) / 511.5 - 1.0


class GrainField:
    """Finds the field of all bodies that have grains, once a step. `crowd` holds, for each body, how many grains a cell
    has in a full medium, and 0 for bodies without grains."""

    def __init__(self, world: World, crowd: Reals):
        self.world, self.crowd = world, crowd
        self.reach = REACH * world.spacing
        block = np.full(3, BLOCK * world.spacing)
        periods = world.neighbors.periods
        # two at least: in a single one, nodes would miss the images of particles at its other end
        self.dims = np.where(periods > 0, np.maximum(np.floor(periods / block), 2), 0).astype(int)
        self.size = np.where(periods > 0, periods / np.maximum(self.dims, 1), block) / DENSITY
        self.grid, self.shape = ti.ndarray(vec3, 3), ti.ndarray(ti.i32, 6)
        self.directory, self.used = ti.ndarray(ti.i32, LEAST_BLOCKS), ti.ndarray(ti.i32, 1)
        self._allocate(1)

    def _allocate(self, slots: int) -> None:
        self.where, self.near, self.calm = (ti.ndarray(ti.i32, slots) for _ in range(3))
        kinds = (ti.i32, vec3, vec4, ti.f32)
        self.count, self.place, self.own, self.squares = (ti.ndarray(kind, OWN * slots) for kind in kinds)
        self.values, self.held = ti.ndarray(vec4, PADDED * slots), ti.ndarray(ti.f32, PADDED * slots)

    def find(self, dt: float, low: np.ndarray, high: np.ndarray, n: int, x: ti.Ndarray, walls: Any,
             reach: float, still: float) -> None:  # fmt: skip
        """The field of a step of dt that has just ended, for `n` grains at `x` before it. Particles were in the box
        low..high then. `walls` is the table of them, or None. A block is near one if a point in it may be within
        `reach` [m] of it, and calm if nothing in it is faster than `still` [m/s]."""
        p, near, d = self.world.particles, self.world.neighbors, self.world.spacing
        self._cover(low, high)
        layout = self.shape, near.wraps, self.directory
        _mark(p.n, dt, self.reach, p.x, p.v, p.body, self.crowd, self.grid, *layout, self.used)
        slots = int(self.used[0])
        if slots > self.where.shape[0]:
            self._allocate(slots + slots // 2)
        _open(self.grid, self.shape, self.directory, self.where, self.near, self.place, self.count)
        _count(n, x, self.grid, *layout, self.count)
        _crowd(slots, *layout, self.where, self.count, self.held)
        _gather(slots, dt, self.reach, near.wraps, near.period, near.grid, near.shape, near.start, p.x, p.v, p.body,
                self.crowd, self.grid, self.shape, self.where, self.held, self.own, self.squares)  # fmt: skip
        _pad(slots, still, *layout, self.where, self.own, self.values, self.calm)
        close = reach + float(np.linalg.norm(self.size))  # a block goes on by one cell behind its last own node
        if walls is not None:
            _stand_off(OWN * slots, STAND_OFF * d, close, self.place, self.near, walls)
            _redirect(OWN * slots, self.grid, *layout, self.where, self.place, self.values, self.own)
            _pad(slots, still, *layout, self.where, self.own, self.values, self.calm)

    def _cover(self, low: np.ndarray, high: np.ndarray) -> None:
        """Lays the directory over the particles; if these are too far apart, over their bulk."""
        block, periodic = DENSITY * self.size, self.dims > 0
        first = np.where(periodic, 0, np.floor((low - self.reach) / block)).astype(np.int64)
        last = np.where(periodic, self.dims - 1, np.floor((high + self.reach) / block)).astype(np.int64)
        limit = max(LEAST_BLOCKS, BLOCKS_PER_PARTICLE * self.world.particles.n)
        if np.prod((last - first + 1).astype(float)) > limit:
            middle = np.floor(np.median(self.world.particles.numpy("x"), axis=0) / block).astype(np.int64)
            while np.prod((last - first + 1).astype(float)) > limit:
                k = int(np.argmax(np.where(periodic, 0, last - first)))
                half = (last[k] - first[k]) // 4 + 1
                first[k], last[k] = max(first[k], middle[k] - half), min(last[k], middle[k] + half)
        dims = last - first + 1
        if np.prod(dims) > self.directory.shape[0]:
            self.directory = ti.ndarray(ti.i32, int(2 * np.prod(dims)))
        self.grid.from_numpy(np.array([first * block, self.size, 1.0 / self.size], np.float32))
        self.shape.from_numpy(np.array([*dims, *periodic], np.int32))

    @property
    def arguments(self) -> tuple:
        """What kernels that use `field_at` take: grid, shape, wraps, directory, values, and near."""
        return self.grid, self.shape, self.world.neighbors.wraps, self.directory, self.values, self.near
