"""Rows and columns of the inverse of a factorised matrix, for a few of its unknowns: A^-1 condensed to them.

With A = L L^T and the unit vectors E of the wanted unknowns,

    E^T A^-1 E = Y^T Y,    Y = L^-1 E:

half a solve for each column, and only along its way up the elimination tree. The columns that reach a supernode are
those of its subtree, which are neighbors once they are sorted by the order of elimination, so all is done by products
of dense matrices. The result is symmetric and positive semi-definite whatever is rounded.
"""

import functools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from pliant.solvers.linear.blas import blocks, fortran, one_blas_thread
from pliant.solvers.linear.ordering import TILE, Supernodes, tiles

TILES = 8  # that are multiplied together

Each = Callable[[Callable[[slice], None], list[slice]], object]
Update = tuple[int, np.ndarray, np.ndarray]  # first column, rows, and what is to be added to them


class Condenser:
    """Condenses the inverse of one factor, `values` being its panels (`cholesky`)."""

    def __init__(self, structure: Supernodes, values: np.ndarray):
        self.structure, self.values = structure, values
        self.start, self.begin = tiles(structure)
        self.height, self.subtree = structure.height(), structure.subtrees()
        self.place = np.empty(len(structure.order), np.int64)  # of an unknown in the order of elimination
        self.place[structure.order] = np.arange(len(structure.order))

    def __call__(self, wanted: np.ndarray) -> np.ndarray:
        """The rows and columns `wanted` of the inverse, in single precision."""
        place = self.place[wanted]
        by_place = np.argsort(place)
        result = np.zeros((len(wanted), len(wanted)), np.float32, order="F")
        with one_blas_thread(), ThreadPoolExecutor(os.cpu_count()) as pool:
            self._ascend(place[by_place], result, lambda task, blocks: list(pool.map(task, blocks)))
        lower = np.tril(result)
        lower += np.tril(result, -1).T
        back = np.argsort(by_place)
        return lower[np.ix_(back, back)]

    def _ascend(self, place: np.ndarray, result: np.ndarray, each: Each) -> None:
        """Adds y^T y of each supernode on the way, y being its rows of Y, to the lower half of the result."""
        waiting: dict[int, list[Update]] = {}
        tree = self.structure
        for s in self._ways_up(place):
            k, rows = tree.first[s + 1] - tree.first[s], tree.rows[tree.row_start[s] : tree.row_start[s + 1]]
            low, high = np.searchsorted(place, (tree.first[self.subtree[s]], tree.first[s + 1]))
            front = np.zeros((self.height[s], high - low), np.float32, order="F")
            own = np.searchsorted(place, tree.first[s])
            front[place[own:high] - tree.first[s], np.arange(own - low, high - low)] = 1.0
            for first, below, update in waiting.pop(s, []):
                at = np.where(below < tree.first[s + 1], below - tree.first[s], k + np.searchsorted(rows, below))
                front[at, first - low : first - low + update.shape[1]] += update
            y = np.empty((k, high - low), np.float32, order="F")
            each(functools.partial(self._multiply, s, front, y), blocks(high - low))
            each(functools.partial(_add_products, y, result[low:high, low:high]), blocks(high - low))
            if tree.parent[s] >= 0:
                waiting.setdefault(tree.parent[s], []).append((low, rows, front[k : k + len(rows)]))

    def _ways_up(self, place: np.ndarray) -> Iterator[int]:
        """The supernodes of some unknowns and all above them, children first."""
        tree = self.structure
        met = np.zeros(tree.count, bool)
        met[np.searchsorted(tree.first, place, side="right") - 1] = True
        for s in range(tree.count):
            if met[s]:
                yield s
                if tree.parent[s] >= 0:
                    met[tree.parent[s]] = True

    def _multiply(self, s: int, whole_front: np.ndarray, whole_y: np.ndarray, some: slice) -> None:
        """[y; update] = T b in some columns, with b the upper rows of the front and the update added to its lower
        rows."""
        front, y = whole_front[:, some], whole_y[:, some]
        k, columns = y.shape
        for tile in range(self.start[s], self.start[s + 1], TILES):
            T = self._rows_of(tile, min(tile + TILES, self.start[s + 1]))
            top, rows = (tile - self.start[s]) * TILE, len(T)
            product = np.empty((rows, columns), np.float32, order="F")
            fortran("sgemm", "N", "N", rows, columns, T.shape[1], 1.0, T, front, 0.0, product)
            inner = min(max(k - top, 0), rows)
            y[top : top + inner] = product[:inner]
            front[top + inner : top + rows] += product[inner:]

    def _rows_of(self, first: int, last: int) -> np.ndarray:
        """Some tiles of one supernode as a matrix: products of single ones would be slow."""
        parts = [self.values[self.begin[t] : self.begin[t + 1]].reshape(-1, TILE) for t in range(first, last)]
        T = np.zeros(((last - first) * TILE, len(parts[-1])), np.float32, order="F")
        for k, part in enumerate(parts):
            T[k * TILE : (k + 1) * TILE, : len(part)] = part.T
        return T


def _add_products(y: np.ndarray, part: np.ndarray, columns: slice) -> None:
    """part += y^T y in some columns, from their diagonal down."""
    below = y[:, columns.start :]
    target = part[columns.start :, columns]
    fortran("sgemm", "T", "N", *target.shape, len(y), 1.0, below, y[:, columns], 1.0, target)
