"""The particles: one structure of arrays, everything about it derived from one declared schema."""

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import taichi as ti

from pliant.core.backend import Ints, Reals, Vectors, vec3


@dataclasses.dataclass(frozen=True)
class Field:
    """One array of the structure. `carried` fields follow their particle when the order changes and are saved in
    checkpoints; the others are scratch, written anew each step before they are read. `shown` ones among these are
    saved too, because views read them."""

    name: str
    kind: str  # "vector", "real" or "int"
    unit: str
    doc: str
    carried: bool = False
    shown: bool = False


KINDS = {"vector": (vec3, np.float32, (3,)), "real": (ti.f32, np.float32, ()), "int": (ti.i32, np.int32, ())}

CORE = (
    Field("x", "vector", "m", "position", carried=True),
    Field("v", "vector", "m/s", "velocity", carried=True),
    Field("m", "real", "kg", "mass", carried=True),
    Field("V", "real", "m^3", "rest volume", carried=True),
    Field("mobility", "real", "m^3/kg", "1 / rest density, or 0 for particles with prescribed motion", carried=True),
    Field("body", "int", "", "index of the body it belongs to", carried=True),
    Field("id", "int", "", "its place in the order in which bodies were added", carried=True),
    Field("density", "real", "1", "density over rest density", shown=True),
)


@ti.kernel
def gather_vectors(n: ti.i32, order: Ints, source: Vectors, target: Vectors):
    for i in range(n):
        target[i] = source[order[i]]


@ti.kernel
def scatter_vectors(n: ti.i32, order: Ints, source: Vectors, target: Vectors):
    for i in range(n):
        target[order[i]] = source[i]


@ti.kernel
def _gather_reals(n: ti.i32, order: Ints, source: Reals, target: Reals):
    for i in range(n):
        target[i] = source[order[i]]


@ti.kernel
def _gather_ints(n: ti.i32, order: Ints, source: Ints, target: Ints):
    for i in range(n):
        target[i] = source[order[i]]


GATHER = {"vector": gather_vectors, "real": _gather_reals, "int": _gather_ints}


class Particles:
    """Arrays of `n` particles, one attribute per schema field: `particles.x`, `particles.v`, ..."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> ti.Ndarray: ...

    def __init__(self, n: int, fields: Iterable[Field] = ()):
        self.n = n
        self.schema = {field.name: field for field in (*CORE, *fields)}
        for field in self.schema.values():
            setattr(self, field.name, self._allocate(field.kind))
        self._spare = {kind: self._allocate(kind) for kind in KINDS}

    def _allocate(self, kind: str) -> ti.Ndarray:
        array = ti.ndarray(KINDS[kind][0], self.n)
        array.fill(0)
        return array

    def reorder(self, order: ti.Ndarray) -> None:
        """Moves every carried field so that particle i becomes the former particle order[i]."""
        for field in self.schema.values():
            if field.carried:
                source, target = getattr(self, field.name), self._spare[field.kind]
                GATHER[field.kind](self.n, order, source, target)
                setattr(self, field.name, target)
                self._spare[field.kind] = source

    def copies(self) -> dict[str, ti.Ndarray]:
        """Room for a copy of every carried field that a step may change: all but the integers."""
        return {f.name: self._allocate(f.kind) for f in self.schema.values() if f.carried and f.kind != "int"}

    def reorder_from(self, order: ti.Ndarray, sources: dict[str, ti.Ndarray]) -> None:
        """Overwrites fields with saved copies that still have the order from before `reorder(order)`."""
        for name, source in sources.items():
            GATHER[self.schema[name].kind](self.n, order, source, getattr(self, name))

    @property
    def saved(self) -> list[str]:
        """Names of the fields that make up a checkpoint."""
        return [field.name for field in self.schema.values() if field.carried or field.shown]

    def numpy(self, name: str) -> np.ndarray:
        """A copy of one field in the current order."""
        return getattr(self, name).to_numpy()

    def by_id(self, name: str) -> np.ndarray:
        """A copy of one field in the order in which the particles were made."""
        values = self.numpy(name)
        result = np.empty_like(values)
        result[self.numpy("id")] = values
        return result

    def set_by_id(self, name: str, values: np.ndarray) -> None:
        """Writes one field, given in the order in which the particles were made."""
        self.set(name, np.asarray(values)[self.numpy("id")])

    def set(self, name: str, values: np.ndarray) -> None:
        """Writes one field, given in the current order."""
        getattr(self, name).from_numpy(np.ascontiguousarray(values, dtype=KINDS[self.schema[name].kind][1]))

    @property
    def bytes_per_particle(self) -> int:
        kinds = [field.kind for field in self.schema.values()] + list(KINDS)
        return sum(int(np.dtype(KINDS[k][1]).itemsize * np.prod(KINDS[k][2], dtype=int)) for k in kinds)
