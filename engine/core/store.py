"""Stores: everything that has a state, with one protocol for all.

A store declares a schema and is then saved in checkpoints (`save`, `restore`), guarded (`backup`, `rollback`), shown in
files, pictures and the viewer (`clouds`, `styles`) and read by users (`sim[body]`) without another line anywhere. The
particles, grains and walls are stores; so is what a plugin defines: CONTRIBUTING.md has an example.

The arrays of an `ArrayStore` are longer than they need be: `n` elements are in use of a `capacity` that grows by
doubling. Kernels take `n`, so that nothing is compiled anew. Each element has an `id` that is never used twice.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import taichi as ti

from pliant.core.backend import Ints, IntTable
from pliant.core.data import Cloud, CloudStyle
from pliant.core.fields import FUSED, KINDS, Field, copy, gather, read_first, read_rows, write_rows
from pliant.core.reduce import BLOCKS, block
from pliant.core.registry import Registry
from pliant.core.speedups import LIGHT
from pliant.errors import PliantError

if TYPE_CHECKING:
    from pliant.core.world import BodySamples, World


@ti.kernel
def _count_members(n: ti.i32, number: ti.i32, body: Ints, count: Ints):
    ti.loop_config(block_dim=1)
    for b in range(BLOCKS):
        lo, hi = block(b, n)
        total = 0
        for i in range(lo, hi):
            total += ti.cast(body[i] == number, ti.i32)
        count[b] = total


@ti.kernel
def _list_members(n: ti.i32, number: ti.i32, body: Ints, ids: Ints, first: Ints, found: IntTable):
    """Rows and ids of the elements of one body, in the order they have."""
    ti.loop_config(block_dim=1)
    for b in range(BLOCKS):
        lo, hi = block(b, n)
        k = first[b]
        for i in range(lo, hi):
            if body[i] == number:
                found[k, 0], found[k, 1] = i, ids[i]
                k += 1


class Store:
    """Base of all stores. A subclass registers itself; `wanted` says whether a scene has one.

    `name` is what checkpoints call it, and what materials name whose bodies live in it (`Material.store`).
    """

    name: ClassVar[str]
    kinds: ClassVar[Registry] = Registry()
    built_in: ClassVar[bool] = False  # made by the simulation itself, not found by `wanted`
    version: int = 0  # counts the changes from outside of the step

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        Store.kinds.add(cls)

    @classmethod
    def wanted(cls, materials: Sequence[Any], settings: Any) -> bool:
        """Whether a scene of these materials has such a store: by default, if one of them lives in it."""
        return any(material.store == getattr(cls, "name", None) for material in materials)

    @classmethod
    def build(cls, world: "World", bodies: Sequence["BodySamples"]) -> "Store":
        """The store of a scene of these bodies (`world.BodySamples`, walls among them), still empty."""
        raise NotImplementedError

    def fill(self, bodies: Sequence["BodySamples"]) -> None:
        """Puts the state at the start into it."""

    def save(self) -> dict[str, np.ndarray]:
        """The state as arrays, for a checkpoint."""
        raise NotImplementedError

    def restore(self, arrays: Mapping[str, np.ndarray], partly: bool = False) -> None:
        """Puts a saved state back. A state that was taken with other parameters may hold a part of it only."""
        raise NotImplementedError

    def trouble(self) -> str:
        """What of the state cannot be, in words; nothing if it is sound."""
        return ""

    def backup(self) -> None:
        """Keeps a copy of the state as it is, which is sound."""
        raise NotImplementedError

    def rollback(self) -> None:
        """Puts the copy back."""
        raise NotImplementedError

    def particles_added(self, body: int, x: np.ndarray, v: np.ndarray) -> None:
        """Hears of new particles of a body, at x [m] with velocities v [m/s]."""

    def particles_removed(self, body: int, x: np.ndarray) -> None:
        """Hears of particles of a body that are taken out, at x [m]."""

    def waiting_bodies(self) -> dict[int, np.ndarray]:
        """The bodies that it lets appear later, by number, and where their particles (n, 3) will be [m]."""
        return {}

    def clouds(self) -> dict[str, Cloud]:
        """What files and pictures show of it, by name: points with fields."""
        return {}

    def styles(self) -> list[CloudStyle]:
        """How these clouds are drawn."""
        return []

    def counts(self) -> dict[str, int]:
        """How many points these clouds have, by name."""
        return {}

    @property
    def names(self) -> Sequence[str]:
        """Of the bodies in it."""
        return ()


class ArrayStore(Store):
    """Arrays of `n` elements, one attribute for each field of the schema: `store.x`, `store.v`, ...

    `body` is the number of the body an element belongs to, `bodies` has their names. `order_version` counts the changes
    of the order or number of elements.
    """

    fields: ClassVar[tuple[Field, ...]] = ()
    own: ClassVar[tuple[Field, ...]] = (
        Field("body", "int", "", "number of the body it belongs to", carried=True),
        Field("id", "int", "", "its own number, which no other ever has", carried=True),
    )

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> ti.Ndarray: ...

    def __init__(self, bodies: Sequence[str] = (), fields: Iterable[Field] = (), count: int = 0):
        self.bodies = list(bodies)
        self.looks: list[CloudStyle] = []
        self.schema = self._declared((*self.fields, *self.own, *fields))
        self.n, self.capacity, self.next_id = 0, 0, 0
        self.population = np.zeros(max(len(self.bodies), 1), int)  # how many elements each body has
        self.version = self.order_version = 0
        self._kept: dict[str, ti.Ndarray] = {}  # the copies of `backup`
        self._sorted_by: ti.Ndarray | None = None  # the order of the sort since then
        self._rows: dict[int, tuple[int, np.ndarray]] = {}
        self.reserve(max(count, 1))

    @classmethod
    def build(cls, world: "World", bodies: Sequence["BodySamples"]) -> "ArrayStore":
        """A store of the bodies whose material names it."""
        own = [body for body in bodies if body.material.store == cls.name]
        made = cls([body.name for body in own])
        made.looks = [CloudStyle(body.name, body.colors, body.spacing / 2, fluid=False) for body in own]
        return made

    def fill(self, bodies: Sequence["BodySamples"]) -> None:
        """The points of each body, at its velocity."""
        for number, name in enumerate(self.bodies):
            body = next(b for b in bodies if b.name == name)
            given = {"x": body.x, "v": np.broadcast_to(body.velocity, body.x.shape)}
            self.add(number, {key: values for key, values in given.items() if key in self.schema})

    def styles(self) -> list[CloudStyle]:
        return self.looks

    def _declared(self, fields: Sequence[Field]) -> dict[str, Field]:
        schema: dict[str, Field] = {}
        for field in fields:
            if field.name in schema or hasattr(type(self), field.name):
                raise PliantError(f"the field {field.name!r} of the {self.name} is declared twice; choose another name")
            schema[field.name] = field
        return schema

    def _allocate(self, kind: str, initial: float = 0.0) -> ti.Ndarray:
        array = ti.ndarray(KINDS[kind].device, self.capacity)
        array.fill(int(initial) if kind == "int" else initial)
        return array

    def reserve(self, count: int) -> None:
        """Makes room for so many elements: at least twice as many as there was room for."""
        if count <= self.capacity:
            return
        self.capacity = max(count, 2 * self.capacity)
        for field in self.schema.values():
            array = self._allocate(field.kind, field.initial)
            if self.n:
                copy(field.kind, self.n, [(getattr(self, field.name), array)])
            setattr(self, field.name, array)
        carried = [field.kind for field in self.schema.values() if field.carried]
        self._spare = {k: [self._allocate(k) for _ in range(min(carried.count(k), FUSED))] for k in KINDS}
        self._kept.clear()

    # --- elements come and go ---------------------------------------------------------------------------

    def add(self, body: int, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """Appends elements of one body with these values, by field; returns their rows, which are the last."""
        count = len(next(iter(values.values())))
        first = self.n
        self.reserve(first + count)
        rows = np.arange(first, first + count, dtype=np.int32)
        self.n += count
        given = dict(values) | {"body": np.full(count, body), "id": self.next_id + np.arange(count)}
        self.next_id += count
        self.population[body] += count
        for field in self.schema.values():
            if field.carried or field.saved:  # the others are written anew in each step before they are read
                shape = (count, *KINDS[field.kind].shape)
                self.write(field.name, rows, given.get(field.name, np.full(shape, field.initial)))
        self._moved()
        return rows

    def remove(self, rows: np.ndarray) -> None:
        """Takes elements out; the last ones move into their places, the others stay where they are. All keep their
        ids."""
        gone = np.zeros(self.n, bool)
        gone[rows] = True
        self.population -= np.bincount(self.read("body", np.flatnonzero(gone)), minlength=len(self.population))
        left = self.n - int(gone.sum())
        holes, last = np.flatnonzero(gone[:left]), left + np.flatnonzero(~gone[left:])
        for field in self.schema.values():
            if field.carried or field.saved:
                self.write(field.name, holes, self.read(field.name, last))
        self.n = left
        self._moved()

    def _moved(self) -> None:
        self.version += 1
        self.order_version += 1

    def reorder(self, order: ti.Ndarray) -> None:
        """Moves every carried field so that element i becomes the former element order[i]. Fields of a few elements
        stay in their arrays, by another copy, for kernels start sooner with arrays that they had before."""
        few = self.n <= LIGHT
        for kind in KINDS:
            names = [field.name for field in self.schema.values() if field.carried and field.kind == kind]
            for k in range(0, len(names), FUSED):
                part, spare = names[k : k + FUSED], self._spare[kind]
                sources = [getattr(self, name) for name in part]
                gather(kind, self.n, order, list(zip(sources, spare, strict=False)), back=few)
                if not few:
                    for name, target in zip(part, spare, strict=False):
                        setattr(self, name, target)
                    spare[: len(part)] = sources
        self._sorted_by = order
        self.order_version += 1

    # --- the protocol -----------------------------------------------------------------------------------

    @property
    def saved_names(self) -> list[str]:
        """Names of the fields that make up a checkpoint."""
        return [field.name for field in self.schema.values() if field.carried or field.saved]

    def save(self) -> dict[str, np.ndarray]:
        return {name: self.numpy(name) for name in self.saved_names} | {"next_id": np.array(self.next_id)}

    def restore(self, arrays: Mapping[str, np.ndarray], partly: bool = False) -> None:
        count = len(arrays["id"]) if "id" in arrays else -1
        for name in self.saved_names:
            kind, array = KINDS[self.schema[name].kind], arrays.get(name)
            if array is None and partly:
                continue
            if array is None or array.dtype != kind.dtype or array.shape != (count, *kind.shape):
                raise PliantError(f"it does not hold the field {name!r} of the {self.name} as this version of Pliant "
                                  "keeps it")  # fmt: skip
        self.n = 0
        self.reserve(max(count, 1))
        self.n, self.next_id = count, int(arrays.get("next_id", count))
        for name in self.saved_names:
            if name in arrays:
                self.set(name, arrays[name])
        self.population = np.bincount(self.numpy("body"), minlength=len(self.population))
        self._moved()

    @functools.cached_property
    def _guarded(self) -> list[Field]:
        """What a step may change: what is carried, but for the numbers that tell who is who."""
        return [field for field in self.schema.values() if field.carried and field.kind != "int"]

    def backup(self) -> None:
        if not self._kept:
            self._kept = {field.name: self._allocate(field.kind) for field in self._guarded}
        for kind in KINDS:
            names = [field.name for field in self._guarded if field.kind == kind]
            copy(kind, self.n, [(getattr(self, name), self._kept[name]) for name in names])
        self._sorted_by = None

    def rollback(self) -> None:
        """Puts the copy back, in the order that the elements have by now."""
        for kind in KINDS:
            pairs = [(self._kept[f.name], getattr(self, f.name)) for f in self._guarded if f.kind == kind]
            if self._sorted_by is None:
                copy(kind, self.n, pairs)
            else:
                gather(kind, self.n, self._sorted_by, pairs)
        self.backup()

    @property
    def names(self) -> Sequence[str]:
        return self.bodies

    def clouds(self) -> dict[str, Cloud]:
        """The points of each body, with their velocities, ids and whatever else they carry."""
        shown = {"velocity" if name == "v" else name: self.numpy(name) for name in self.saved_names
                 if name not in ("x", "body")}  # fmt: skip
        x, found = self.numpy("x"), {}
        for name, rows in self.rows_by_body().items():
            units = {key: unit for key in shown if (unit := self.schema["v" if key == "velocity" else key].unit)}
            found[name] = Cloud(x[rows], {key: values[rows] for key, values in shown.items()}, units)
        return found

    def counts(self) -> dict[str, int]:
        return {name: self.count_of(number) for number, name in enumerate(self.bodies)}

    # --- to and from NumPy ------------------------------------------------------------------------------

    def numpy(self, name: str) -> np.ndarray:
        """A copy of one field in the current order."""
        return read_first(self.n, getattr(self, name))

    def set(self, name: str, values: np.ndarray) -> None:
        """Writes one field, given in the current order."""
        array, kind = getattr(self, name), KINDS[self.schema[name].kind]
        values = np.ascontiguousarray(values, dtype=kind.dtype)
        if self.n == self.capacity:
            array.from_numpy(values)
        elif self.n:
            self.write(name, np.arange(self.n, dtype=np.int32), values)

    def read(self, name: str, rows: np.ndarray) -> np.ndarray:
        """A copy of some rows of one field."""
        return read_rows(self.schema[name].kind, rows, getattr(self, name))

    def write(self, name: str, rows: np.ndarray, values: np.ndarray) -> None:
        """Writes some rows of one field."""
        write_rows(self.schema[name].kind, rows, values, getattr(self, name))

    def rows_by_id(self) -> np.ndarray:
        """All rows, in the order of the ids."""
        ids = self.numpy("id")
        if self.next_id > 4 * self.n:  # few are left of many
            return np.argsort(ids).astype(np.int32)
        place = np.full(self.next_id, -1, np.int32)
        place[ids] = np.arange(self.n, dtype=np.int32)
        return place[place >= 0]

    def rows_by_body(self) -> dict[str, np.ndarray]:
        """The rows of each body, in the order of their ids."""
        if not self.bodies:
            return {}
        rows = self.rows_by_id()
        body = self.numpy("body")[rows].astype(np.int16)
        grouped = rows[np.argsort(body, kind="stable")]
        ends = np.cumsum(np.bincount(body, minlength=len(self.bodies)))
        return dict(zip(self.bodies, np.split(grouped, ends[:-1]), strict=True))

    def rows_of(self, body: int) -> np.ndarray:
        """The rows of one body, in the order of their ids. Nothing of the others is downloaded."""
        version, rows = self._rows.get(body, (-1, None))
        if rows is None or version != self.order_version:
            count = np.empty(BLOCKS, np.int32)
            _count_members(self.n, body, self.body, count)
            found = np.empty((max(int(count.sum()), 1), 2), np.int32)
            _list_members(self.n, body, self.body, self.id, (np.cumsum(count) - count).astype(np.int32), found)
            found = found[: int(count.sum())]
            rows = np.ascontiguousarray(found[np.argsort(found[:, 1]), 0])
            self._rows[body] = self.order_version, rows
        return rows

    def count_of(self, body: int) -> int:
        """Number of the elements of one body."""
        return int(self.population[body])

    @property
    def bytes_per_element(self) -> int:
        spare = sum(KINDS[kind].bytes * len(arrays) for kind, arrays in self._spare.items())
        return sum(KINDS[field.kind].bytes for field in self.schema.values()) + spare
