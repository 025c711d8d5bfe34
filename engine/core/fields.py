"""Fields of stores: how they are declared, and the kernels that move them about.

A launch costs as much as thousands of elements, so each moves several arrays of one kind.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import taichi as ti

from pliant.core.backend import Ints, Points, Reals, RealTable, SymmetricMatrices, Vectors, host_view, vec3, vec4, vec6
from pliant.core.speedups import light

FUSED = 4  # arrays that one launch moves


@dataclasses.dataclass(frozen=True)
class Field:
    """One array of a store. `carried` fields follow their element when the order changes and are saved in checkpoints;
    the others are scratch, written anew each step before they are read. `saved` ones among these are in checkpoints
    too, because views read them. New elements begin with the value `initial`."""

    name: str
    kind: str  # "vector", "point" (four numbers, see `neighbors`), "symmetric" (diagonal, yz, zx, xy), "real" or "int"
    unit: str
    doc: str
    carried: bool = False
    saved: bool = False
    initial: float = 0.0


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of field: its type on the device, and as NumPy has it."""

    device: Any
    dtype: type
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return int(np.dtype(self.dtype).itemsize * np.prod(self.shape, dtype=int))


KINDS = {
    "vector": Kind(vec3, np.float32, (3,)),
    "point": Kind(vec4, np.float32, (4,)),
    "symmetric": Kind(vec6, np.float32, (6,)),
    "real": Kind(ti.f32, np.float32, ()),
    "int": Kind(ti.i32, np.int32, ()),
}


def _moving_kernels(array: Any) -> tuple[Any, Any]:
    """Kernels that gather and copy up to FUSED arrays of one kind."""

    @light
    @ti.kernel
    def gather(n: ti.i32, fields: ti.template(), back: ti.template(), order: Ints, s0: array, t0: array, s1: array,
               t1: array, s2: array, t2: array, s3: array, t3: array):  # fmt: skip
        for i in range(n):
            j = order[i]
            t0[i] = s0[j]
            if ti.static(fields > 1):
                t1[i] = s1[j]
            if ti.static(fields > 2):
                t2[i] = s2[j]
            if ti.static(fields > 3):
                t3[i] = s3[j]
        if ti.static(back):
            for i in range(n):
                s0[i] = t0[i]
                if ti.static(fields > 1):
                    s1[i] = t1[i]
                if ti.static(fields > 2):
                    s2[i] = t2[i]
                if ti.static(fields > 3):
                    s3[i] = t3[i]

    @light
    @ti.kernel
    def copy(n: ti.i32, fields: ti.template(), s0: array, t0: array, s1: array, t1: array, s2: array, t2: array,
             s3: array, t3: array):  # fmt: skip
        for i in range(n):
            t0[i] = s0[i]
            if ti.static(fields > 1):
                t1[i] = s1[i]
            if ti.static(fields > 2):
                t2[i] = s2[i]
            if ti.static(fields > 3):
                t3[i] = s3[i]

    return gather, copy


_ARRAYS = {"vector": Vectors, "point": Points, "symmetric": SymmetricMatrices, "real": Reals, "int": Ints}
_GATHER, _COPY = ({kind: _moving_kernels(array)[k] for kind, array in _ARRAYS.items()} for k in (0, 1))

Pair = tuple[ti.Ndarray, ti.Ndarray]  # source and target


def _chunks(pairs: Sequence[Pair]) -> Iterator[tuple[int, list[ti.Ndarray]]]:
    for k in range(0, len(pairs), FUSED):
        part = list(pairs[k : k + FUSED])
        yield len(part), [array for pair in (part + [part[0]] * FUSED)[:FUSED] for array in pair]


def gather(kind: str, n: int, order: ti.Ndarray, pairs: Sequence[Pair], back: bool = False) -> None:
    """target[i] = source[order[i]] for all pairs (source, target) of one kind; and then, if they are to come `back`,
    source[i] = target[i]."""
    for count, arrays in _chunks(pairs):
        _GATHER[kind](n, count, back, order, *arrays)


def copy(kind: str, n: int, pairs: Sequence[Pair]) -> None:
    """target[i] = source[i] for all pairs (source, target) of one kind."""
    for count, arrays in _chunks(pairs):
        _COPY[kind](n, count, *arrays)


@light
@ti.kernel
def scatter_vectors(n: ti.i32, order: Ints, source: Vectors, target: Vectors):
    """target[order[i]] = source[i]."""
    for i in range(n):
        target[order[i]] = source[i]


def _row_kernels(array: Any, host: Any, width: int) -> tuple[Any, Any]:
    """Kernels that read and write some rows of an array of one kind, from and to NumPy arrays."""

    @ti.kernel
    def read(n: ti.i32, rows: Ints, source: array, target: host):
        for i in range(n):
            if ti.static(width > 0):
                for k in ti.static(range(width)):
                    target[i, k] = source[rows[i]][k]
            else:
                target[i] = source[rows[i]]

    @ti.kernel
    def write(n: ti.i32, rows: Ints, source: host, target: array):
        for i in range(n):
            if ti.static(width > 0):
                for k in ti.static(range(width)):
                    target[rows[i]][k] = source[i, k]
            else:
                target[rows[i]] = source[i]

    return read, write


_HOST = {"vector": (RealTable, 3), "point": (RealTable, 4), "symmetric": (RealTable, 6), "real": (Reals, 0),
         "int": (Ints, 0)}  # fmt: skip
_READ, _WRITE = ({kind: _row_kernels(_ARRAYS[kind], *_HOST[kind])[k] for kind in KINDS} for k in (0, 1))


def read_first(count: int, array: ti.Ndarray) -> np.ndarray:
    """A copy of the first so many rows of an array."""
    memory = host_view(array)
    return array.to_numpy()[:count] if memory is None else memory[:count].copy()


def read_rows(kind: str, rows: np.ndarray, array: ti.Ndarray) -> np.ndarray:
    """A copy of some rows of an array of that kind."""
    memory = host_view(array)
    if memory is not None:
        return memory[rows]
    values: np.ndarray = np.empty((len(rows), *KINDS[kind].shape), KINDS[kind].dtype)
    if len(rows):
        _READ[kind](len(rows), np.ascontiguousarray(rows, np.int32), array, values)
    return values


def write_rows(kind: str, rows: np.ndarray, values: np.ndarray, array: ti.Ndarray) -> None:
    """Writes some rows of an array of that kind."""
    memory = host_view(array)
    if memory is not None:
        memory[rows] = values
    elif len(rows):
        values = np.ascontiguousarray(values, KINDS[kind].dtype)
        _WRITE[kind](len(rows), np.ascontiguousarray(rows, np.int32), values, array)
