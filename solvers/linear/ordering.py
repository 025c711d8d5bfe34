"""Nested dissection: the order in which a sparse Cholesky factorisation eliminates the points of a body.

A set of points whose removal leaves two halves without a common non-zero (a separator) is numbered last, and the
halves are ordered in the same way (George 1973). The halves then never fill each other in, and are independent tasks.

The rest positions of the points give the halves: a set is cut by a plane near its middle, where it is thinnest. Of all
separators that sever the non-zeros across that cut, the smallest is a minimum vertex cover of a bipartite graph, which
Koenig's theorem reads off a maximum matching. On solid bodies this fills in less than METIS does.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import maximum_bipartite_matching

SCANNED = 500  # points from which on several cuts are with_masses
SHARES = np.linspace(0.3, 0.7, 17)  # where these may be
UNEVEN = 16.0  # price of uneven halves
LEAF = 8  # points that are not cut any further
# Rows of a tile. Panels are padded with zero rows to a multiple of it, and stored in tiles, each column by column: so
# both sweeps read them from the first to the last number.
TILE = 32
ZEROS = 0.08  # share of explicit zeros up to which a supernode is merged with its parent: wide panels are fast
NARROW = 16  # columns below which it is merged whatever the zeros


@dataclass
class Dissection:
    """Pieces of the index set, children before parents; `parent[p]` is a later piece, or -1 for a root."""

    pieces: list[np.ndarray]
    parent: np.ndarray


def dissect(matrix: sparse.csr_array, points: np.ndarray) -> Dissection:
    """Cuts the graph of a symmetric matrix into separators and leaves. `points` (n, 3) place its rows in space."""
    points = np.asarray(points, dtype=float)
    curve = _morton(points)  # what is close together in a separator gets numbers in a row: few, long runs of rows
    side = np.full(len(points), -1, np.int8)  # 0 and 1 in the two halves of the set being cut
    pieces: list[np.ndarray] = []
    above: list[int] = []
    reach = _reach(matrix, points)
    stack = [(np.arange(len(points)), -1)]
    while stack:
        part, parent = stack.pop()
        separator, halves = (part, []) if len(part) <= LEAF else _cut(matrix, points, part, side, reach)
        if len(separator):
            pieces.append(separator[np.argsort(curve[separator], kind="stable")])
            above.append(parent)
            parent = len(pieces) - 1
        stack += [(half, parent) for half in halves if len(half)]
    last = len(pieces) - 1
    return Dissection(pieces[::-1], np.array([last - p if p >= 0 else -1 for p in above[::-1]], np.int64))


def _morton(points: np.ndarray, bits: int = 10) -> np.ndarray:
    """The place of each point on a Z-order curve through the bounding cube."""
    if not len(points):
        return np.zeros(0, np.int64)
    size = max(np.ptp(points, axis=0).max(), np.finfo(float).tiny)
    cell = np.minimum((points - points.min(axis=0)) / size * 2**bits, 2**bits - 1).astype(np.int64)
    return sum(((cell[:, a] >> b) & 1) << (3 * b + a) for b in range(bits) for a in range(3))


def _reach(matrix: sparse.csr_array, points: np.ndarray) -> float:
    """How far apart points may be and still have a common non-zero: seen in a few rows."""
    rows = np.arange(0, len(points), max(len(points) // 100, 1))
    row, column = neighbors(matrix, rows)
    return float(np.linalg.norm(points[rows[row]] - points[column], axis=1).max(initial=0.0))


def _halves(place: np.ndarray, part: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Two halves of a set: a small one is cut in the middle of its longest side. A large one is cut across one of its
    axes (of the box, or principal) where the fewest points lie within reach of the plane, if not too far from the
    middle."""
    if len(part) < SCANNED:
        along, k = place[:, np.argmax(np.ptp(place, axis=0))], len(part) // 2
    else:
        axes = np.concatenate([np.eye(3), np.linalg.eigh(np.cov(place.T))[1].T])
        least, along, k = np.inf, place[:, 0], 0
        for projected in (place @ axes.T).T:
            ordered = np.sort(projected)
            for share in SHARES:
                cut = int(share * len(part))
                slab = np.diff(np.searchsorted(ordered, ordered[cut] + np.array([-0.5, 0.5]) * reach))[0]
                cost = slab**2 * (1 + UNEVEN * (share - 0.5) ** 2)
                if cost < least:
                    least, along, k = cost, projected, cut
    order = np.argpartition(along, k)
    return part[order[:k]], part[order[k:]]


def _cut(matrix: sparse.csr_array, points: np.ndarray, part: np.ndarray, side: np.ndarray,
         reach: float) -> tuple[np.ndarray, list[np.ndarray]]:  # fmt: skip
    """A separator of `part` and what it leaves on either side. `side` is -1 everywhere, before and after."""
    low, high = _halves(points[part], part, reach)
    side[low], side[high] = 0, 1
    row, column = neighbors(matrix, low)
    across = side[column] == 1
    separator = _vertex_cover(low[row[across]], column[across])
    side[separator] = -1
    halves = [low[side[low] == 0], high[side[high] == 1]]
    side[part] = -1
    return separator, halves


def neighbors(matrix: sparse.csr_array, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The non-zeros of some rows, as (which of `rows`, column)."""
    begin = matrix.indptr[rows].astype(np.int64)
    count = matrix.indptr[rows + 1] - begin
    row = np.repeat(np.arange(len(rows)), count)
    skipped = np.cumsum(count) - count
    return row, matrix.indices[np.arange(len(row)) + (begin - skipped)[row]]


def _by_degree(ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The vertices of edges' ends, those with few edges first, and each end's place among them.

    In this order the matching is quick. In the order of the points it took 48 s for one cut of a large ball, not 0.2 s.
    """
    vertices, place, degree = np.unique(ends, return_inverse=True, return_counts=True)
    order = np.argsort(degree, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return vertices[order], rank[place]


def _vertex_cover(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The fewest vertices that touch all edges (low[e], high[e]) of a bipartite graph."""
    if not len(low):
        return low
    (left, a), (right, b) = _by_degree(low), _by_degree(high)
    graph = sparse.csr_array((np.ones(len(a), np.int8), (a, b)), shape=(len(left), len(right)))
    partner = maximum_bipartite_matching(graph, perm_type="column")  # of each left vertex, or -1
    back = np.full(len(right), -1)
    back[partner[partner >= 0]] = np.flatnonzero(partner >= 0)
    # Koenig: from the left vertices without partner, walk any edge to the right and matched edges to the left.
    seen, reached = partner < 0, np.zeros(len(right), bool)
    front = np.flatnonzero(seen)
    while len(front):
        new = np.unique(neighbors(graph, front)[1])
        new = new[~reached[new]]
        reached[new] = True
        front = back[new]
        front = front[~seen[front]]
        seen[front] = True
    return np.concatenate([left[~seen], right[reached]])


@dataclass
class Supernodes:
    """The structure of the factor. Supernode s has columns first[s]:first[s+1] of the new order, and below them the
    rows rows[row_start[s]:row_start[s+1]]. `parent[s]` > s, or -1; children come before parents, subtrees in a row."""

    order: np.ndarray  # new index -> old index
    first: np.ndarray
    row_start: np.ndarray
    rows: np.ndarray
    parent: np.ndarray

    @property
    def count(self) -> int:
        return len(self.parent)

    def subtrees(self) -> np.ndarray:
        """The first supernode of the subtree below each."""
        begin = np.arange(self.count)
        for s, parent in enumerate(self.parent):
            if parent >= 0:
                begin[parent] = min(begin[parent], begin[s])
        return begin

    def width(self) -> np.ndarray:
        return np.diff(self.first)

    def height(self) -> np.ndarray:
        """Rows of each panel as it is stored: those of its columns, those below, and the padding."""
        return -(-(np.diff(self.first) + np.diff(self.row_start)) // TILE) * TILE


def tiles(structure: Supernodes) -> tuple[np.ndarray, np.ndarray]:
    """The first tile of each supernode, and where each tile begins in the values (with the total as last)."""
    count = structure.height() // TILE
    start = np.concatenate([[0], np.cumsum(count)])
    node = np.repeat(np.arange(structure.count), count)
    bottom = (np.arange(start[-1]) - start[node] + 1) * TILE
    size = TILE * np.minimum(bottom, structure.width()[node])  # no columns to the right of the diagonal
    return start, np.concatenate([[0], np.cumsum(size)])


def analyse(matrix: sparse.csr_array, dissection: Dissection) -> Supernodes:
    """The rows of each piece's panel (those it touches, and those its children do), then merged where that is cheap."""
    n, parent = matrix.shape[0], dissection.parent.copy()
    width = np.array([len(piece) for piece in dissection.pieces], np.int64)
    new = np.empty(n, np.int64)
    if n:
        new[np.concatenate(dissection.pieces)] = np.arange(n)
    end = np.cumsum(width)
    mark = np.zeros(n, bool)
    rows: list[np.ndarray] = []
    children: list[list[int]] = [[] for _ in parent]
    merged: list[list[int]] = [[s] for s in range(len(parent))]  # the pieces in each supernode, in order
    entries = np.zeros(len(parent), np.int64)  # without explicit zeros
    for s, piece in enumerate(dissection.pieces):
        touched = [new[neighbors(matrix, piece)[1]]] + [rows[c] for c in children[s]]
        for some in touched:
            mark[some] = True
        rows.append(end[s] + np.flatnonzero(mark[end[s] :]))
        for some in touched:
            mark[some] = False
        entries[s] = _entries(width[s], len(rows[s]))
        for c in sorted(children[s], key=lambda c: -len(rows[c])):
            both = _entries(width[s] + width[c], len(rows[s]))
            if both - entries[s] - entries[c] < ZEROS * both or width[c] < NARROW:
                merged[s] = merged[c] + merged[s]
                width[s] += width[c]
                entries[s] += entries[c]
                children[s] += children[c]
                children[s].remove(c)
                merged[c] = []
        if parent[s] >= 0:
            children[parent[s]].append(s)
    return _number(dissection, children, merged, rows, new)


def _entries(width: int, below: int) -> int:
    return width * (width + 1) // 2 + width * below


def _number(dissection: Dissection, children: list[list[int]], merged: list[list[int]], rows: list[np.ndarray],
            old: np.ndarray) -> Supernodes:  # fmt: skip
    """Numbers the supernodes that are left with children before parents, and their columns and rows with them."""
    inner = {c for some in children for c in some}
    stack = [(s, -1) for s in range(len(merged)) if merged[s] and s not in inner]
    nodes, above = [], []
    while stack:
        s, parent = stack.pop()
        nodes.append(s)
        above.append(parent)
        stack += [(c, len(nodes) - 1) for c in children[s]]
    nodes.reverse()
    columns = [np.concatenate([dissection.pieces[p] for p in merged[s]]) for s in nodes]
    order = np.concatenate(columns) if columns else np.zeros(0, np.int64)
    renumber = np.empty(len(order), np.int64)  # from the numbers of the dissection
    renumber[old[order]] = np.arange(len(order))
    last = len(nodes) - 1
    below = [np.sort(renumber[rows[s]]) for s in nodes]
    return Supernodes(order, np.concatenate([[0], np.cumsum([len(c) for c in columns])]).astype(np.int64),
                      np.concatenate([[0], np.cumsum([len(b) for b in below])]).astype(np.int64),
                      np.concatenate(below) if below else np.zeros(0, np.int64),
                      np.array([last - p if p >= 0 else -1 for p in above[::-1]], np.int64))  # fmt: skip
