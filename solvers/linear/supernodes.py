"""Triangular sweeps over the supernodes of a Cholesky factor, as kernels: single precision, three components at once.

A supernode is a run of columns that share their non-zero rows, so it is one dense panel. What is kept of a supernode
with k columns and m rows below them is not L itself but

    T = [ L11^-1 ; -L21 L11^-1 ]        ((k + m) x k)

because both sweeps are then plain matrix-vector products without any order among their rows: [y1; update] = T b1 on
the way up the elimination tree, x1 = T^T [y1; x2] on the way down. Both run in parallel, over subtrees first and
inside the large upper supernodes then. Every sum has a fixed order: the same bits come out on any number of threads.
"""

import numpy as np
import taichi as ti

from pliant.core.backend import Ints, IntTable, Reals, Vectors, task, threads_for, turns, upload
from pliant.errors import PliantError
from pliant.solvers.linear.ordering import TILE, Supernodes, tiles

TASKS = 48  # a subtree with less than this share of the factor is one task...
TASK_ENTRIES = 400_000  # ...and so is one with less than this many entries
ENTRIES = 2000  # of a factor that take as long as an element of other kernels
PIECE_ENTRIES = 1 << 17  # of an upper supernode that one task takes on the way down...
PIECES = 32  # ...but it has no more than so many tasks, for each has sums of its own

rows_of_tile = ti.types.vector(TILE, ti.f32)


# --- kernels ----------------------------------------------------------------------------------------
# node[s]: first column, first row, first tile and first place in `front` of supernode s. Vectors have three components
# in a row, and the copies of a body one after the other. No inner loop stores to an array: the compiler would have to
# expect that it changes the arrays' addresses, and would not vectorise.


@ti.func
def _collect(j: ti.i32, place: IntTable, rhs: Vectors, incoming: Ints, source: Ints, front: Reals, x: Reals):
    """b of column j: the right-hand side and the updates of all supernodes below it, in their order."""
    n, copies = place.shape[1], place.shape[0]
    size = front.shape[0] // (3 * copies)
    for copy in range(copies):
        b = rhs[place[copy, j]]
        for e in range(incoming[j], incoming[j + 1]):
            at = 3 * (copy * size + source[e])
            b += ti.Vector([front[at], front[at + 1], front[at + 2]])
        for k in ti.static(range(3)):
            x[3 * (copy * n + j) + k] = b[k]


@ti.func
def _hand_out(j: ti.i32, place: IntTable, x: Reals, out: Vectors):
    for copy in range(place.shape[0]):
        at = 3 * (copy * place.shape[1] + j)
        out[place[copy, j]] = ti.Vector([x[at], x[at + 1], x[at + 2]])


@ti.func
def _columns(s: ti.i32, tile: ti.i32, node: IntTable):
    """Of a tile: none lie to the right of the diagonal."""
    return ti.min(node[s + 1, 0] - node[s, 0], (tile - node[s, 2] + 1) * TILE)


@ti.func
def _ascend(s: ti.i32, tile: ti.i32, copies: ti.i32, node: IntTable, begin: Ints, value: Reals, front: Reals,
            x: Reals):  # fmt: skip
    """[y1; update] = T b1, for the rows of one tile: four columns at a time, so that the sums over them, which are too
    many for the registers, are read and written four times less often."""
    n, size = x.shape[0] // (3 * copies), front.shape[0] // (3 * copies)
    at, columns = begin[tile], _columns(s, tile, node)
    for copy in range(copies):
        b, to = 3 * (copy * n + node[s, 0]), 3 * (copy * size + node[s, 3] + (tile - node[s, 2]) * TILE)
        t0, t1, t2 = rows_of_tile(0.0), rows_of_tile(0.0), rows_of_tile(0.0)
        for g in range(columns // 4):
            a, c = at + 4 * g * TILE, b + 12 * g
            b0 = ti.Vector([x[c], x[c + 3], x[c + 6], x[c + 9]])
            b1 = ti.Vector([x[c + 1], x[c + 4], x[c + 7], x[c + 10]])
            b2 = ti.Vector([x[c + 2], x[c + 5], x[c + 8], x[c + 11]])
            for r in range(TILE):
                v = ti.Vector([value[a + r], value[a + TILE + r], value[a + 2 * TILE + r], value[a + 3 * TILE + r]])
                t0[r] += v.dot(b0)
                t1[r] += v.dot(b1)
                t2[r] += v.dot(b2)
        for c in range(columns // 4 * 4, columns):
            b0, b1, b2 = x[b + 3 * c], x[b + 3 * c + 1], x[b + 3 * c + 2]
            for r in range(TILE):
                v = value[at + c * TILE + r]
                t0[r] += v * b0
                t1[r] += v * b1
                t2[r] += v * b2
        for r in range(TILE):
            front[to + 3 * r] = t0[r]
            front[to + 3 * r + 1] = t1[r]
            front[to + 3 * r + 2] = t2[r]


@ti.func
def _descend(s: ti.i32, first: ti.i32, last: ti.i32, copies: ti.i32, node: IntTable, begin: Ints, rows: Ints,
             value: Reals, front: Reals, x: Reals, sums: Reals, at: ti.i32, lane: ti.i32):  # fmt: skip
    """x1 = T^T [y1; x2], as far as the rows of the tiles first:last go, into `sums`, from `at` on, where two copies are
    a `lane` apart. It takes four columns at a time, so that [y1; x2] is read less often; of the last ones some are done
    again."""
    n, size = x.shape[0] // (3 * copies), front.shape[0] // (3 * copies)
    width, below = node[s + 1, 0] - node[s, 0], node[s + 1, 1] - node[s, 1]
    top, bottom = (first - node[s, 2]) * TILE, (last - node[s, 2]) * TILE
    for copy in range(copies):
        for r in range(ti.max(top, width), ti.min(bottom, width + below)):
            for k in ti.static(range(3)):
                front[3 * (copy * size + node[s, 3] + r) + k] = x[3 * (copy * n + rows[node[s, 1] + r - width]) + k]
        for c in range(3 * width):
            sums[3 * (copy * lane + at) + c] = 0.0
    for tile in range(first, last):
        columns = _columns(s, tile, node)
        for copy in range(copies):  # inside, while the tile is in the cache
            f = 3 * (copy * size + node[s, 3] + (tile - node[s, 2]) * TILE)
            y0, y1, y2 = rows_of_tile(0.0), rows_of_tile(0.0), rows_of_tile(0.0)
            for r in range(TILE):
                y0[r], y1[r], y2[r] = front[f + 3 * r], front[f + 3 * r + 1], front[f + 3 * r + 2]
            for g in range((columns + 3) // 4):
                a, left = begin[tile] + 4 * g * TILE, columns - 4 * g
                b, c, d = a + TILE * (left > 1), a + 2 * TILE * (left > 2), a + 3 * TILE * (left > 3)
                a0, a1, a2, b0, b1, b2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
                c0, c1, c2, d0, d1, d2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
                for r in range(TILE):
                    t, u, v, w = value[a + r], value[b + r], value[c + r], value[d + r]
                    a0 += t * y0[r]
                    a1 += t * y1[r]
                    a2 += t * y2[r]
                    b0 += u * y0[r]
                    b1 += u * y1[r]
                    b2 += u * y2[r]
                    c0 += v * y0[r]
                    c1 += v * y1[r]
                    c2 += v * y2[r]
                    d0 += w * y0[r]
                    d1 += w * y1[r]
                    d2 += w * y2[r]
                to = 3 * (copy * lane + at + 4 * g)
                for k, z0, z1, z2 in ti.static(((0, a0, a1, a2), (1, b0, b1, b2), (2, c0, c1, c2), (3, d0, d1, d2))):
                    if left > k:  # written so, because += is atomic
                        sums[to + 3 * k] = sums[to + 3 * k] + z0
                        sums[to + 3 * k + 1] = sums[to + 3 * k + 1] + z1
                        sums[to + 3 * k + 2] = sums[to + 3 * k + 2] + z2


@ti.kernel
def _subtrees_up(tasks: IntTable, node: IntTable, begin: Ints, incoming: Ints, source: Ints, place: IntTable,
                 value: Reals, rhs: Vectors, front: Reals, x: Reals):  # fmt: skip
    for turn in range(turns(tasks.shape[0])):
        t = task(turn)
        if t < tasks.shape[0]:
            for s in range(tasks[t, 0], tasks[t, 1]):
                for j in range(node[s, 0], node[s + 1, 0]):
                    _collect(j, place, rhs, incoming, source, front, x)
                for tile in range(node[s, 2], node[s + 1, 2]):
                    _ascend(s, tile, place.shape[0], node, begin, value, front, x)


@ti.kernel
def _levels_up(level: ti.i32, extent: IntTable, columns: IntTable, tile: IntTable, node: IntTable,
               begin: Ints, incoming: Ints, source: Ints, place: IntTable, value: Reals, rhs: Vectors, front: Reals,
               x: Reals):  # fmt: skip
    for i in range(extent[level, 0], extent[level + 1, 0]):
        _collect(columns[i, 0], place, rhs, incoming, source, front, x)
    for turn in range(turns(extent[level + 1, 1] - extent[level, 1])):
        i = extent[level, 1] + task(turn)
        if i < extent[level + 1, 1]:
            _ascend(tile[i, 0], tile[i, 1], place.shape[0], node, begin, value, front, x)


@ti.kernel
def _levels_down(level: ti.i32, extent: IntTable, columns: IntTable, piece: IntTable, node: IntTable, begin: Ints,
                 rows: Ints, place: IntTable, value: Reals, front: Reals, x: Reals, out: Vectors,
                 sums: Reals):  # fmt: skip
    lane = sums.shape[0] // (3 * place.shape[0])
    for turn in range(turns(extent[level + 1, 2] - extent[level, 2])):
        i = extent[level, 2] + task(turn)
        if i < extent[level + 1, 2]:
            _descend(piece[i, 0], piece[i, 1], piece[i, 2], place.shape[0], node, begin, rows, value, front, x, sums,
                     piece[i, 3], lane)  # fmt: skip
    for i in range(extent[level, 0], extent[level + 1, 0]):
        j = columns[i, 0]
        for copy in range(place.shape[0]):
            for k in ti.static(range(3)):
                total = 0.0
                for t in range(columns[i, 1], columns[i, 2]):
                    total += sums[3 * (copy * lane + piece[t, 3] + j - node[piece[t, 0], 0]) + k]
                x[3 * (copy * place.shape[1] + j) + k] = total
        _hand_out(j, place, x, out)


@ti.kernel
def _subtrees_down(tasks: IntTable, node: IntTable, begin: Ints, rows: Ints, place: IntTable, value: Reals,
                   front: Reals, x: Reals, out: Vectors):  # fmt: skip
    for turn in range(turns(tasks.shape[0])):
        t = task(turn)
        if t < tasks.shape[0]:
            for back in range(tasks[t, 1] - tasks[t, 0]):
                s = tasks[t, 1] - 1 - back
                _descend(s, node[s, 2], node[s + 1, 2], place.shape[0], node, begin, rows, value, front, x, x,
                         node[s, 0], place.shape[1])  # fmt: skip
                for j in range(node[s, 0], node[s + 1, 0]):
                    _hand_out(j, place, x, out)


# --- who does what ----------------------------------------------------------------------------------


class Panels:
    """The factor on the device, and the schedule of its sweeps."""

    def __init__(self, structure: Supernodes, values: np.ndarray):
        start, begin = tiles(structure)
        if begin[-1] >= 2**31:
            raise PliantError(f"the Cholesky factor has {begin[-1]:,} entries, more than the 2,147,483,647 that "
                              "kernels can address; use larger particles.")  # fmt: skip
        self.n, self.order = len(structure.order), structure.order
        self.entries = len(values)
        front = np.concatenate([[0], np.cumsum(structure.height())])
        self.size = int(front[-1])
        self.node = upload(np.stack([structure.first, structure.row_start, start, front], axis=1), ti.i32)
        self.begin, self.rows = upload(begin, ti.i32), upload(structure.rows, ti.i32)
        self.value = upload(values, ti.f32)
        # Where each row of the panels is in a front's vector, and sorted by row: what each column has to collect.
        owner = np.repeat(np.arange(structure.count), np.diff(structure.row_start))
        below = front[:-1] + structure.width() - structure.row_start[:-1]
        where = below[owner] + np.arange(len(structure.rows))
        by_row = np.argsort(structure.rows, kind="stable")
        self.source = upload(where[by_row], ti.i32)
        self.incoming = upload(np.searchsorted(structure.rows[by_row], np.arange(self.n + 1)), ti.i32)
        tasks, level = _schedule(structure, np.diff(begin[start]))
        self.tasks = upload(tasks, ti.i32)
        self._upper(structure, level, start, begin)

    def _upper(self, structure: Supernodes, level: np.ndarray, start: np.ndarray, begin: np.ndarray) -> None:
        """Lists, level by level, of the columns, the tiles and the pieces, which are runs of tiles, of the upper
        supernodes. `room` is what sums over pieces take."""
        self.levels = int(level.max(initial=-1)) + 1
        columns, tile, piece = [np.zeros((0, 3), int)], [np.zeros((0, 2), int)], [np.zeros((0, 4), int)]
        extent, self.room, pieces = np.zeros((self.levels + 1, 3), np.int64), 0, 0
        for k in range(self.levels):
            for s in np.flatnonzero(level == k):
                own, width = np.arange(start[s], start[s + 1]), structure.width()[s]
                size = max(PIECE_ENTRIES, (begin[start[s + 1]] - begin[start[s]]) // PIECES)
                number = (begin[own] - begin[start[s]]) // size  # of the piece that a tile is in
                cuts = own[np.flatnonzero(np.diff(number, prepend=-1))]
                places = self.room + width * np.arange(len(cuts))
                piece.append(np.stack(np.broadcast_arrays(s, cuts, [*cuts[1:], start[s + 1]], places), axis=1))
                j = np.arange(structure.first[s], structure.first[s + 1])
                columns.append(np.stack(np.broadcast_arrays(j, pieces, pieces + len(cuts)), axis=1))
                tile.append(np.stack(np.broadcast_arrays(s, own), axis=1))
                pieces, self.room = pieces + len(cuts), self.room + width * len(cuts)
            extent[k + 1] = [sum(map(len, some)) for some in (columns, tile, piece)]
        self.extent, self.columns = upload(extent, ti.i32), upload(np.concatenate(columns), ti.i32)
        self.tile, self.piece = upload(np.concatenate(tile), ti.i32), upload(np.concatenate(piece), ti.i32)


def _schedule(structure: Supernodes, entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The subtrees that are one task each (first and one-past-last supernode), and the level of each supernode above
    them (-1 inside a task). It depends on the factor alone, never on the number of threads."""
    below, begin, level = entries.copy(), np.arange(structure.count), np.full(structure.count, -1)
    limit = max(int(entries.sum()) // TASKS, TASK_ENTRIES)
    tasks = []
    for s, parent in enumerate(structure.parent):
        if below[s] > limit:
            level[s] += 1  # one above its highest child
        if parent >= 0:
            below[parent] += below[s]
            begin[parent] = min(begin[parent], begin[s])
            level[parent] = max(level[parent], level[s])
    for s, parent in enumerate(structure.parent):
        if below[s] <= limit and (parent < 0 or below[parent] > limit):
            tasks.append((begin[s], s + 1, below[s]))
    tasks.sort(key=lambda task: -task[2])  # large ones first, so that no thread is left with one at the end
    return np.array([task[:2] for task in tasks], np.int64).reshape(-1, 2), level


class Solver:
    """Solves with one factor for several copies of a body at once."""

    def __init__(self, panels: Panels, places: np.ndarray):
        places = np.asarray(places)
        if places.ndim != 2 or places.shape[1] != panels.n:
            raise PliantError(f"places must have {panels.n} columns, one for each row of the matrix, got shape "
                              f"{places.shape}.")  # fmt: skip
        self.panels, self.lanes = panels, 3 * len(places)
        if self.lanes * panels.size >= 2**31:
            raise PliantError(f"{len(places)} copies of a body of {panels.n} particles are too many for one solver.")
        self.place = upload(places[:, panels.order], ti.i32)
        self.front = ti.ndarray(ti.f32, max(self.lanes * panels.size, 1))
        self.x = ti.ndarray(ti.f32, max(self.lanes * panels.n, 1))
        self.sums = ti.ndarray(ti.f32, max(self.lanes * panels.room, self.lanes, 1))

    def solve(self, rhs: ti.Ndarray, out: ti.Ndarray) -> None:
        """out[places] = matrix^-1 rhs[places]. The two may be the same array; other entries stay as they are."""
        p = self.panels
        if not self.lanes * p.n:
            return
        where = (p.node, p.begin)
        above = (*where, p.incoming, p.source, self.place, p.value, rhs, self.front, self.x)
        below = (*where, p.rows, self.place, p.value, self.front, self.x, out)
        with threads_for(self.lanes // 3 * p.entries // ENTRIES):
            _subtrees_up(p.tasks, *above)
            for level in range(p.levels):
                _levels_up(level, p.extent, p.columns, p.tile, *above)
            for level in reversed(range(p.levels)):
                _levels_down(level, p.extent, p.columns, p.piece, *below, self.sums)
            _subtrees_down(p.tasks, *below)
