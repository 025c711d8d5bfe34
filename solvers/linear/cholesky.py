"""Direct solver for the sparse symmetric positive definite matrix of an elastic body: factorise once, solve each step.

    factor = factorise(matrix, points)       # NumPy and SciPy only: may run in a background thread
    solver = factor.bind(places)             # device arrays: main thread
    solver.solve(rhs, out)                   # out[places] = matrix^-1 rhs[places], three components at once
    factor.condense(wanted)                  # rows and columns of matrix^-1

The columns are eliminated in the order of a nested dissection, front by front, in double precision (multifrontal
method, Duff and Reid 1983): a front collects the entries of the matrix in its columns and the updates of its children,
is factorised by LAPACK, and hands its own update to its parent. The panels are kept in single precision, because a
solve reads them twice and does little else: memory bandwidth decides.
"""

import contextlib
import ctypes
import hashlib
import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from scipy import sparse

from pliant.core.backend import host_view
from pliant.core.cache import cache_folder, keep, kept
from pliant.errors import PliantError
from pliant.solvers.linear.blas import blocks, fortran, one_blas_thread
from pliant.solvers.linear.condense import Condenser
from pliant.solvers.linear.ordering import TILE, Supernodes, analyse, dissect, tiles
from pliant.solvers.linear.supernodes import Panels, Solver

FRONT = 160  # supernodes in a subtree of up to so many columns share one front: BLAS likes large matrices
SUBTREES = 12  # a subtree with less than this share of the work is left to one thread
ASYMMETRY = 1e-8  # of the largest entry: more is no rounding error

CACHE_VERSION = 3  # of the files on disk: raised when their contents change
CACHE_BYTES = 4 << 30  # the oldest files are removed above this
WORTH_CACHING = 0.3  # seconds of work

_shared: "weakref.WeakValueDictionary[str, Factor]" = weakref.WeakValueDictionary()


def available() -> str:
    """The method in use, for a log line."""
    return "sparse Cholesky (nested dissection, multifrontal, LAPACK)"


class Factor:
    """The Cholesky factor of one matrix. `seconds` is what it cost to make: 0 when it comes from the cache."""

    method = available()

    def __init__(self, structure: Supernodes, values: np.ndarray, seconds: float, cached: bool):
        self.structure, self.seconds, self.cached = structure, seconds, cached
        self.n, self.nnz = len(structure.order), len(values)
        self._values: np.ndarray | None = values
        self._panels: Panels | None = None
        self._condenser: Condenser | None = None
        self._condensed: tuple[np.ndarray, np.ndarray] | None = None

    def condense(self, wanted: np.ndarray) -> np.ndarray:
        """Rows and columns of the inverse of the matrix. The last ones are kept: bodies that arrive ask again."""
        if self._condensed is not None and np.array_equal(wanted, self._condensed[0]):
            return self._condensed[1]
        if self._condenser is None:
            values = self._values
            if values is None:
                assert self._panels is not None
                values = host_view(self._panels.value)
                values = self._panels.value.to_numpy() if values is None else values
            self._condenser = Condenser(self.structure, values)
        self._condensed = wanted.copy(), self._condenser(wanted)
        return self._condensed[1]

    @property
    def bytes(self) -> int:
        return 4 * self.nnz

    def bind(self, places: np.ndarray) -> Solver:
        """A solver for copies of a body with this matrix: row k of copy c lives at places[c, k] of its arrays."""
        if self._panels is None:
            assert self._values is not None
            self._panels = Panels(self.structure, self._values)
            self._values = None  # the device has them now
        return Solver(self._panels, places)


def factorise(matrix: sparse.sparray, points: np.ndarray) -> Factor:
    """The factor of a symmetric positive definite matrix. `points` (n, 3) place its rows in space, to order them.

    Equal matrices share one factor, in the process and, where it is worth the time, between runs.
    """
    matrix = _checked(matrix, points)
    key = _key(matrix)
    factor = _shared.get(key)
    if factor is None:
        factor = _load(key, len(points)) or _make(matrix, points, key)
        _shared[key] = factor
    return factor


def _checked(matrix: sparse.sparray, points: np.ndarray) -> sparse.csr_array:
    """The matrix in one form; one sentence for each way in which it cannot be factorised."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise PliantError(f"only a square matrix has a Cholesky factor, got shape {matrix.shape}.")
    if np.shape(points) != (matrix.shape[0], 3):
        raise PliantError(f"a matrix with {matrix.shape[0]} rows needs as many points in space, got an array of shape "
                          f"{np.shape(points)}.")  # fmt: skip
    matrix = sparse.csr_array(matrix, dtype=np.float64)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if not (np.isfinite(matrix.data).all() and np.isfinite(points).all()):
        raise PliantError("the matrix or its points contain NaN or infinite numbers, so it has no Cholesky factor.")
    if abs((matrix - matrix.T).data).max(initial=0.0) > ASYMMETRY * abs(matrix.data).max(initial=0.0):
        raise PliantError("the matrix is not symmetric, so it has no Cholesky factor.")
    return matrix


def _make(matrix: sparse.csr_array, points: np.ndarray, key: str) -> Factor:
    began = time.perf_counter()
    structure = analyse(matrix, dissect(matrix, points))
    values = _Elimination(matrix, structure).run()
    seconds = time.perf_counter() - began
    if seconds > WORTH_CACHING and values.nbytes < CACHE_BYTES:
        _store(key, structure, values)
    return Factor(structure, values, seconds, cached=False)


# --- elimination ------------------------------------------------------------------------------------

Update = tuple[np.ndarray, np.ndarray]  # rows, and what is to be added to them: symmetric, the lower half counts
Each = Callable[[Callable, Iterable], object]  # `map`, in this thread or in several


def _fronts(structure: Supernodes) -> Iterator[tuple[int, int]]:
    """Runs of supernodes that are factorised together: whole subtrees of up to FRONT columns, or single ones."""
    begin = structure.subtrees()
    small = structure.first[1:] - structure.first[begin] <= FRONT
    s = 0
    while s < structure.count:
        t = s
        if small[s]:
            while structure.parent[t] >= 0 and small[structure.parent[t]]:
                t = structure.parent[t]
        yield s, t + 1
        s = t + 1


class _Elimination:
    """Makes the tiles of all T, in single precision.

    Small subtrees are done by one thread each, large fronts by all of them, in blocks that do not depend on their
    number. BLAS itself is held to one thread: its own ones wait for each other in a busy loop, which takes ten times
    as long as soon as another program wants a core, and its results depend on their number.
    """

    def __init__(self, matrix: sparse.csr_array, structure: Supernodes):
        self.structure, self.offset, self.height = structure, tiles(structure), structure.height()
        self.values = np.zeros(self.offset[1][-1], np.float32)
        self.lower = sparse.tril(matrix[structure.order][:, structure.order], format="csc")
        self.fronts = list(_fronts(structure))
        self.owner = np.repeat(np.arange(len(self.fronts)), [b - a for a, b in self.fronts])
        self.waiting: dict[int, list[Update]] = {}  # for each front, what its children hand to it

    def run(self) -> np.ndarray:
        """Subtrees and what is above them take turns, in the order of the tree: few updates wait at a time."""
        work = np.diff(self.structure.first) * self.height**2
        task = self._tasks(work)
        with one_blas_thread(), ThreadPoolExecutor(os.cpu_count()) as pool:
            f = 0
            while f < len(self.fronts):
                subtrees = []
                while f < len(self.fronts) and task[f] > f:
                    subtrees.append(range(f, task[f]))
                    f = task[f]
                list(pool.map(self._subtree, subtrees))
                if f < len(self.fronts):
                    self._front(f, lambda *given: list(pool.map(*given)))
                    f += 1
        return self.values

    def _tasks(self, work: np.ndarray) -> np.ndarray:
        """For the first front of a subtree that one thread does: one past its last front; elsewhere 0."""
        begin, task = self.structure.subtrees(), np.zeros(len(self.fronts), np.int64)
        done = np.concatenate([[0], np.cumsum(work)])
        total = done[1:] - done[begin]
        for f, (_, end) in enumerate(self.fronts):
            if total[end - 1] < done[-1] / SUBTREES:
                task[self.owner[begin[end - 1]]] = f + 1  # a larger subtree with the same beginning comes later
        return task

    def _subtree(self, fronts: Iterable[int]) -> None:
        for f in fronts:
            self._front(f, lambda *given: list(map(*given)))

    def _front(self, f: int, each: Each) -> None:
        a, b = self.fronts[f]
        low, high = self.structure.first[a], self.structure.first[b]
        below = self.structure.rows[self.structure.row_start[b - 1] : self.structure.row_start[b]]
        front, update = self._assemble(f, low, high, below, each)
        _eliminate(front, each)
        under = front[high - low :]
        each(lambda c: _multiply(under[c.start :], under[c], update[c.start :, c]), blocks(len(below)))
        if len(below):
            self.waiting.setdefault(self.owner[self.structure.parent[b - 1]], []).append((below, update))
        for s in range(a, b):
            self._keep(s, low, below, front, each)

    def _assemble(self, f: int, low: int, high: int, below: np.ndarray, each: Each) -> tuple[np.ndarray, np.ndarray]:
        """The columns low:high of what is left of the matrix when all earlier ones are eliminated, and that
        elimination's update of the rows below."""
        width = high - low
        front = np.zeros((width + len(below), width), order="F")
        update = np.zeros((len(below), len(below)), order="F")
        some = slice(self.lower.indptr[low], self.lower.indptr[high])
        row, column = self.lower.indices[some], np.repeat(np.arange(width), np.diff(self.lower.indptr[low : high + 1]))
        front[np.where(row < high, row - low, width + np.searchsorted(below, row)), column] = self.lower.data[some]
        children = sorted(self.waiting.pop(f, []), key=lambda child: int(child[0][0]))  # threads end in any order
        while children:
            rows, part = children.pop()
            p = np.searchsorted(rows, high)
            index = np.where(rows < high, rows - low, width + np.searchsorted(below, rows))
            _extend(front, index, index[:p], part[:, :p], each)
            _extend(update, index[p:] - width, index[p:] - width, part[p:, p:], each)
            del part  # the largest arrays there are: let go of them before the next
        return front, update

    def _keep(self, s: int, low: int, below: np.ndarray, front: np.ndarray, each: Each) -> None:
        """Writes T of supernode s, from its front's columns of L. Destroys them if the front is this supernode."""
        first, row_start = self.structure.first, self.structure.row_start
        a, b = first[s] - low, first[s + 1] - low
        rows = self.structure.rows[row_start[s] : row_start[s + 1]]
        square, under = front[a:b, a:b], front[b:]
        width = front.shape[1]
        if b - a < width:
            index = np.where(rows < low + width, rows - low, width + np.searchsorted(below, rows))
            under = np.asfortranarray(front[index, a:b])

        def inverse(c: slice) -> None:
            part = np.zeros((b - a - c.start, c.stop - c.start), order="F")
            np.fill_diagonal(part, 1.0)
            fortran("dtrsm", "L", "L", "N", "N", *part.shape, 1.0, square[c.start :, c.start :], part)
            self._write(s, c.start, c, part)

        def lower(r: slice) -> None:
            fortran("dtrsm", "R", "L", "N", "N", r.stop - r.start, b - a, -1.0, square, under[r])
            self._write(s, b - a + r.start, slice(0, b - a), under[r])

        each(inverse, blocks(b - a))
        each(lower, blocks(len(rows)))

    def _write(self, s: int, row: int, columns: slice, part: np.ndarray) -> None:
        """Puts a part of T that begins at a row into its tiles."""
        start, begin = self.offset
        for t in range(start[s] + row // TILE, start[s] + -(-(row + len(part)) // TILE)):
            top = (t - start[s]) * TILE
            first, last = max(row, top), min(row + len(part), top + TILE)
            tile = self.values[begin[t] : begin[t + 1]].reshape(-1, TILE)
            end = min(columns.stop, len(tile))  # nothing is kept to the right of the diagonal
            inside = part[first - row : last - row, : end - columns.start]
            tile[columns.start : end, first - top : last - top] = inside.T


def _eliminate(front: np.ndarray, each: Each) -> None:
    """The columns of L in place of a front's: A11 = L11 L11^T, L21 = A21 L11^-T, block by block."""
    width = front.shape[1]
    for c in blocks(width):
        info = ctypes.c_int()
        fortran("dpotrf", "L", c.stop - c.start, front[c, c], info)
        if info.value:
            raise PliantError("the matrix is not positive definite, so it has no Cholesky factor.")
        rest = front[c.stop :, c]
        each(lambda r, rest=rest, c=c: fortran("dtrsm", "R", "L", "T", "N", r.stop - r.start, c.stop - c.start, 1.0,
                                                front[c, c], rest[r]), blocks(len(rest)))  # fmt: skip
        each(lambda r, rest=rest, c=c: _multiply(rest[r.start :], rest[r], front[c.stop + r.start :, c.stop :][:, r]),
             blocks(width - c.stop))  # fmt: skip


def _multiply(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """c -= a b^T"""
    fortran("dgemm", "N", "T", *c.shape, a.shape[1], -1.0, a, b, 1.0, c)


def _extend(target: np.ndarray, rows: np.ndarray, columns: np.ndarray, part: np.ndarray, each: Each) -> None:
    """target[rows, columns] += part, where `columns` begins like `rows`: the lower half.

    Sorted rows come in runs, so this is done block by block: `np.ix_` would be ten times slower.
    """
    down = _runs(rows)

    def column(run: tuple[int, int, int]) -> None:
        a, b, t = run
        for c, d, u in down:
            if d > a:
                target[u : u + d - c, t : t + b - a] += part[c:d, a:b]

    each(column, _runs(columns))


def _runs(index: np.ndarray) -> list[tuple[int, int, int]]:
    """Maximal runs a:b of an increasing index that go up by one, with the index at a."""
    if not len(index):
        return []
    cuts = [0, *(np.flatnonzero(np.diff(index) != 1) + 1).tolist(), len(index)]
    return [(a, b, int(index[a])) for a, b in zip(cuts, cuts[1:], strict=False)]


# --- cache ------------------------------------------------------------------------------------------


def _key(matrix: sparse.csr_array) -> str:
    digest = hashlib.blake2b(f"{CACHE_VERSION} {matrix.shape}".encode(), digest_size=16)
    for array, kind in ((matrix.indptr, np.int64), (matrix.indices, np.int32), (matrix.data, np.float64)):
        digest.update(np.ascontiguousarray(array, kind).data)
    return digest.hexdigest()


def _path(key: str) -> Path:
    return cache_folder() / "factors" / f"{key}.npz"


def _load(key: str, n: int) -> Factor | None:
    path = _path(key)
    names = ("order", "first", "row_start", "rows", "parent")
    stored = kept(path, (*names, "values"))
    if stored is None:
        return None
    try:
        structure = Supernodes(*(stored[name] for name in names))
        if len(structure.order) != n or len(stored["values"]) != tiles(structure)[1][-1]:
            return None
        path.touch()  # used last: removed last
    except (OSError, ValueError, IndexError):
        return None  # damaged: computed anew
    return Factor(structure, stored["values"], 0.0, cached=True)


def _store(key: str, structure: Supernodes, values: np.ndarray) -> None:
    path = _path(key)
    keep(path, {"values": values, **vars(structure)})
    with contextlib.suppress(OSError):
        _tidy(path.parent)


def _tidy(folder: Path) -> None:
    """Removes the files that were not used for longest, down to CACHE_BYTES."""
    files = sorted(((path.stat().st_mtime, path.stat().st_size, path) for path in folder.glob("*.npz")), reverse=True)
    total = 0
    for _, size, path in files:
        total += size
        if total > CACHE_BYTES:
            path.unlink(missing_ok=True)
