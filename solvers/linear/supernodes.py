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

from pliant.core.backend import ROUNDS, Ints, IntTable, Reals, Vectors, upload
from pliant.errors import PliantError
from pliant.solvers.linear.ordering import STRIP, TILE, Supernodes, tiles

TASKS = 48  # a subtree with less than this share of the factor is one task...
TASK_ENTRIES = 60_000  # ...and so is one with less than this many entries
COLUMNS = 32  # columns of an upper supernode that one task solves for on the way down
LEVELS = 2  # levels of upper supernodes in one kernel: launching one costs as much as a small level

strip_of = ti.types.vector(STRIP, ti.f32)


# --- kernels ----------------------------------------------------------------------------------------
# node[s]: first column, first row, first tile and first place in `front` of supernode s. Lane q of a vector of size N
# is [q * N, (q + 1) * N): the components of all copies, one after the other. No inner loop stores to an array: the
# compiler would have to expect that it changes the arrays' addresses, and would not vectorise.


@ti.func
def _collect(j: ti.i32, place: IntTable, rhs: Vectors, incoming: Ints, source: Ints, front: Reals, x: Reals):
    """b of column j: the right-hand side and the updates of all supernodes below it, in their order."""
    n, copies = place.shape[1], place.shape[0]
    size = front.shape[0] // (3 * copies)
    for copy in range(copies):
        b = rhs[place[copy, j]]
        lane = 3 * copy * size
        for e in range(incoming[j], incoming[j + 1]):
            at = lane + source[e]
            b += ti.Vector([front[at], front[at + size], front[at + 2 * size]])
        for k in ti.static(range(3)):
            x[(3 * copy + k) * n + j] = b[k]


@ti.func
def _tile(s: ti.i32, tile: ti.i32, node: IntTable):
    """Place in `front`, rows and columns of a tile."""
    top = (tile - node[s, 2]) * TILE
    rows = ti.min(TILE, node[s + 1, 3] - node[s, 3] - top)
    return node[s, 3] + top, rows, ti.min(node[s + 1, 0] - node[s, 0], top + rows)


@ti.func
def _ascend(s: ti.i32, tile: ti.i32, copies: ti.i32, node: IntTable, begin: Ints, value: Reals, front: Reals,
            x: Reals):  # fmt: skip
    """[y1; update] = T b1, for the rows of one tile."""
    n, size = x.shape[0] // (3 * copies), front.shape[0] // (3 * copies)
    row, rows, columns = _tile(s, tile, node)
    for strip in range(rows // STRIP):
        at = begin[tile] + strip * STRIP
        for copy in range(copies):
            b, to = 3 * copy * n + node[s, 0], 3 * copy * size + row + strip * STRIP
            t0, t1, t2 = strip_of(0.0), strip_of(0.0), strip_of(0.0)
            for g in range(columns // 4):
                a, c = at + 4 * g * rows, b + 4 * g
                b0 = ti.Vector([x[c], x[c + 1], x[c + 2], x[c + 3]])
                b1 = ti.Vector([x[c + n], x[c + n + 1], x[c + n + 2], x[c + n + 3]])
                b2 = ti.Vector([x[c + 2 * n], x[c + 2 * n + 1], x[c + 2 * n + 2], x[c + 2 * n + 3]])
                for r in range(STRIP):
                    v = ti.Vector([value[a + r], value[a + rows + r], value[a + 2 * rows + r], value[a + 3 * rows + r]])
                    t0[r] += v.dot(b0)
                    t1[r] += v.dot(b1)
                    t2[r] += v.dot(b2)
            for c in range(columns // 4 * 4, columns):
                b0, b1, b2 = x[b + c], x[b + n + c], x[b + 2 * n + c]
                for r in range(STRIP):
                    v = value[at + c * rows + r]
                    t0[r] += v * b0
                    t1[r] += v * b1
                    t2[r] += v * b2
            for r in range(STRIP):
                front[to + r] = t0[r]
                front[to + size + r] = t1[r]
                front[to + 2 * size + r] = t2[r]


@ti.func
def _descend(s: ti.i32, first: ti.i32, last: ti.i32, copies: ti.i32, node: IntTable, begin: Ints, value: Reals,
             front: Reals, x: Reals):  # fmt: skip
    """x1 = T^T [y1; x2], for the columns first:last of supernode s."""
    n, size = x.shape[0] // (3 * copies), front.shape[0] // (3 * copies)
    for q in range(3 * copies):
        for c in range(first, last):
            x[q * n + node[s, 0] + c] = 0.0
    for tile in range(node[s, 2] + first // TILE, node[s + 1, 2]):  # tiles further up end left of these columns
        row, rows, columns = _tile(s, tile, node)
        end = ti.min(last, columns)
        for g in range((end - first + 1) // 2):
            c = first + 2 * g
            a = begin[tile] + c * rows
            other = ti.select(c + 1 < end, rows, 0)  # an odd last column is done twice, and kept once
            for copy in range(copies):
                f, to = 3 * copy * size + row, 3 * copy * n + node[s, 0] + c
                x00, x01, x02, x10, x11, x12 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
                for r in range(rows):
                    y0, y1, y2 = front[f + r], front[f + size + r], front[f + 2 * size + r]
                    v, w = value[a + r], value[a + other + r]
                    x00 += v * y0
                    x01 += v * y1
                    x02 += v * y2
                    x10 += w * y0
                    x11 += w * y1
                    x12 += w * y2
                x[to] += x00
                x[to + n] += x01
                x[to + 2 * n] += x02
                if other > 0:
                    x[to + 1] += x10
                    x[to + n + 1] += x11
                    x[to + 2 * n + 1] += x12


@ti.kernel
def _subtrees_up(task: IntTable, node: IntTable, begin: Ints, incoming: Ints, source: Ints, place: IntTable,
                 value: Reals, rhs: Vectors, front: Reals, x: Reals):  # fmt: skip
    ti.loop_config(block_dim=ROUNDS)
    for round in range(task.shape[0] * ROUNDS):
        if round % ROUNDS == 0:
            t = round // ROUNDS
            for s in range(task[t, 0], task[t, 1]):
                for j in range(node[s, 0], node[s + 1, 0]):
                    _collect(j, place, rhs, incoming, source, front, x)
                for tile in range(node[s, 2], node[s + 1, 2]):
                    _ascend(s, tile, place.shape[0], node, begin, value, front, x)


@ti.kernel
def _levels_up(level: ti.i32, extent: IntTable, columns: Ints, tile: IntTable, node: IntTable,
               begin: Ints, incoming: Ints, source: Ints, place: IntTable, value: Reals, rhs: Vectors, front: Reals,
               x: Reals):  # fmt: skip
    for k in ti.static(range(LEVELS)):
        for i in range(extent[level + k, 0], extent[level + k + 1, 0]):
            _collect(columns[i], place, rhs, incoming, source, front, x)
        ti.loop_config(block_dim=ROUNDS)
        for round in range(extent[level + k, 1] * ROUNDS, extent[level + k + 1, 1] * ROUNDS):
            if round % ROUNDS == 0:
                i = round // ROUNDS
                _ascend(tile[i, 0], tile[i, 1], place.shape[0], node, begin, value, front, x)


@ti.kernel
def _levels_down(level: ti.i32, extent: IntTable, piece: IntTable, gather: IntTable, node: IntTable, begin: Ints,
                 place: IntTable, value: Reals, front: Reals, x: Reals):  # fmt: skip
    for k in ti.static(range(LEVELS)):
        for i in range(extent[level - k, 2], extent[level - k + 1, 2]):
            for q in range(3 * place.shape[0]):
                size = front.shape[0] // (3 * place.shape[0])
                front[q * size + gather[i, 0]] = x[q * place.shape[1] + gather[i, 1]]
        ti.loop_config(block_dim=ROUNDS)
        for round in range(extent[level - k, 3] * ROUNDS, extent[level - k + 1, 3] * ROUNDS):
            if round % ROUNDS == 0:
                i = round // ROUNDS
                _descend(piece[i, 0], piece[i, 1], piece[i, 2], place.shape[0], node, begin, value, front, x)


@ti.kernel
def _subtrees_down(task: IntTable, node: IntTable, begin: Ints, rows: Ints, place: IntTable, value: Reals,
                   front: Reals, x: Reals):  # fmt: skip
    lanes = 3 * place.shape[0]
    size = front.shape[0] // lanes
    ti.loop_config(block_dim=ROUNDS)
    for round in range(task.shape[0] * ROUNDS):
        if round % ROUNDS == 0:
            t = round // ROUNDS
            for back in range(task[t, 1] - task[t, 0]):
                s = task[t, 1] - 1 - back
                for q in range(lanes):
                    for i in range(node[s, 1], node[s + 1, 1]):
                        to = node[s, 3] + node[s + 1, 0] - node[s, 0] + i - node[s, 1]
                        front[q * size + to] = x[q * place.shape[1] + rows[i]]
                _descend(s, 0, node[s + 1, 0] - node[s, 0], place.shape[0], node, begin, value, front, x)


@ti.kernel
def _spread(place: IntTable, x: Reals, out: Vectors):
    for j in range(place.shape[1]):
        for copy in range(place.shape[0]):
            at = 3 * copy * place.shape[1] + j
            out[place[copy, j]] = ti.Vector([x[at], x[at + place.shape[1]], x[at + 2 * place.shape[1]]])


# --- who does what ----------------------------------------------------------------------------------


class Panels:
    """The factor on the device, and the schedule of its sweeps."""

    def __init__(self, structure: Supernodes, values: np.ndarray):
        start, begin = tiles(structure)
        if begin[-1] >= 2**31:
            raise PliantError(f"the Cholesky factor has {begin[-1]:,} entries, more than the 2,147,483,647 that "
                              "kernels can address; use larger particles.")  # fmt: skip
        self.n, self.order = len(structure.order), structure.order
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
        task, level = _schedule(structure, np.diff(begin[start]))
        self.task = upload(task, ti.i32)
        self._upper(structure, level, start, where)

    def _upper(self, structure: Supernodes, level: np.ndarray, start: np.ndarray, where: np.ndarray) -> None:
        """Lists, level by level, of the columns, tiles, gathered rows and column pieces of the upper supernodes."""
        columns, tile, gather, piece = [], [], [], []
        self.levels = -(-(int(level.max(initial=-1)) + 1) // LEVELS) * LEVELS
        extent = np.zeros((self.levels + 1, 4), np.int64)
        for k in range(self.levels):
            for s in np.flatnonzero(level == k):
                first, last = structure.first[s], structure.first[s + 1]
                rows = np.arange(structure.row_start[s], structure.row_start[s + 1])
                columns.append(np.arange(first, last))
                tile.append(np.stack(np.broadcast_arrays(s, np.arange(start[s], start[s + 1])), axis=1))
                gather.append(np.stack([where[rows], structure.rows[rows]], axis=1))
                c = np.arange(0, last - first, COLUMNS)
                piece.append(np.stack(np.broadcast_arrays(s, c, np.minimum(c + COLUMNS, last - first)), axis=1))
            extent[k + 1] = [sum(map(len, some)) for some in (columns, tile, gather, piece)]
        self.extent = upload(extent, ti.i32)
        self.columns = upload(np.concatenate(columns) if columns else np.zeros(0, int), ti.i32)
        self.tile = upload(np.concatenate(tile) if tile else np.zeros((0, 2), int), ti.i32)
        self.gather = upload(np.concatenate(gather) if gather else np.zeros((0, 2), int), ti.i32)
        self.piece = upload(np.concatenate(piece) if piece else np.zeros((0, 3), int), ti.i32)


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

    def solve(self, rhs: ti.Ndarray, out: ti.Ndarray) -> None:
        """out[places] = matrix^-1 rhs[places]. The two may be the same array; other entries stay as they are."""
        p = self.panels
        if not self.lanes * p.n:
            return
        where = (p.node, p.begin)
        collect = (p.incoming, p.source, self.place, p.value, rhs, self.front, self.x)
        _subtrees_up(p.task, *where, *collect)
        for level in range(0, p.levels, LEVELS):
            _levels_up(level, p.extent, p.columns, p.tile, *where, *collect)
        for level in range(p.levels - 1, -1, -LEVELS):
            _levels_down(level, p.extent, p.piece, p.gather, *where, self.place, p.value, self.front, self.x)
        _subtrees_down(p.task, *where, p.rows, self.place, p.value, self.front, self.x)
        _spread(self.place, self.x, out)
