"""The elements of a .ply file as arrays: binary of either byte order, or text. See `ply.py` for the format."""

import json
import os
from dataclasses import dataclass, field

import numpy as np

from pliant.io.arrays import UV, grouped
from pliant.io.reading import foreign, read_bytes, truncated

TYPES = {
    "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4", "float32": "f4",
    "float64": "f8", "char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4",
    "float": "f4", "double": "f8",
}  # fmt: skip
ALIASES: dict[str, tuple[str, ...]] = {"normal": ("nx", "ny", "nz"), UV: ("s", "t")}
_TEXT = "text"
_BYTE_ORDERS = {"binary_little_endian": "<", "binary_big_endian": ">", "ascii": _TEXT}
_LENGTH = "length of "
_INDEX_LISTS = ("vertex_indices", "vertex_index")  # both are common


@dataclass
class _Property:
    name: str
    code: str
    length_code: str = ""  # of a list: the type of its length


@dataclass
class _Element:
    name: str
    count: int
    properties: list[_Property] = field(default_factory=list)


class PlyFile:
    """A .ply file, of which elements are read in their order up to the one that is asked for."""

    def __init__(self, path: str | os.PathLike):
        self.path, self._data = path, read_bytes(path)
        head, end, _ = self._data.partition(b"\nend_header")
        body = self._data.find(b"\n", len(head) + len(end)) + 1
        if not self._data.startswith((b"ply\n", b"ply\r")):
            raise foreign(path, ".ply", "it does not begin with the word 'ply'")
        if not end or not body:
            raise foreign(path, ".ply", "its header has no end")
        self._elements: list[_Element] = []
        self._names: dict[str, str] = {}
        self._units: dict[str, str] = {}
        self._order = ""
        for line in head.decode("latin-1").splitlines()[1:]:
            self._header_line(line.split(maxsplit=3))
        if not self._order:
            raise foreign(path, ".ply", "its header names no known format")
        self._text = self._order == _TEXT
        self._rows: dict[str, np.ndarray] = {}
        self._next, self._place = 0, body
        if self._text:  # as doubles, which hold every number that the format has
            self._data, self._place = np.array(self._data[body:].split()).astype("<f8").tobytes(), 0

    def _header_line(self, words: list[str]) -> None:
        match words:
            case ["format", kind, *_]:
                self._order = _BYTE_ORDERS.get(kind, "")
            case ["comment", "name", word, text]:
                self._names[word] = _string(text) or word
            case ["comment", "unit", word, text]:
                self._units[word] = _string(text)
            case ["element", name, count, *_]:
                self._elements.append(_Element(name, int(count)))
                if int(count) < 0:
                    raise foreign(self.path, ".ply", f"it promises {count} of element {name!r}")
            case ["property", "list", length, rest]:
                code, name = rest.split()
                self._elements[-1].properties.append(_Property(name, TYPES[code], TYPES[length]))
            case ["property", code, name]:
                self._elements[-1].properties.append(_Property(name, TYPES[code]))

    def vertices(self, what: str, *pairs: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Positions (n, 3), and the other properties as fields under their true names, `pairs` among them as one."""
        element = self._element("vertex")
        if element is None:
            raise foreign(self.path, ".ply", "it has no vertices")
        rows = self._read("vertex", what)
        scalars = [p for p in element.properties if not p.length_code]
        kinds = {p.name: p.code for p in scalars}
        if not {"x", "y", "z"} <= kinds.keys():
            raise foreign(self.path, ".ply", "its vertices have no x, y and z")
        precision = "<f4" if {kinds[axis] for axis in "xyz"} == {"f4"} else "<f8"
        with np.errstate(over="ignore"):
            x = np.stack([rows[axis] for axis in "xyz"], axis=1).astype(precision, copy=False)
        fields, rest = {}, [p for p in scalars if p.name not in ("x", "y", "z")]
        columns = iter(rest)
        aliases = {name: parts for name, parts in ALIASES.items() if len(parts) > 2 or name in pairs}
        for name, code, shape in grouped([(p.name, p.code) for p in rest], aliases):
            size = int(np.prod(shape, dtype=int))
            values = np.empty((len(rows), size), "<" + code)
            for i in range(size):
                values[:, i] = self._cast(rows[next(columns).name], code)
            fields[self._names.get(name, name)] = values.reshape(len(rows), *shape)
        return x, fields

    def faces(self) -> np.ndarray | None:
        """The faces (m, corners), or None where the file has no such element."""
        element = self._element("face")
        if element is None:
            return None
        rows = self._read("face", "faces")
        for p in element.properties:
            if p.name in _INDEX_LISTS and p.length_code:
                return self._cast(rows[p.name], p.code).astype("<i8")
        raise foreign(self.path, ".ply", "its faces have no vertex_indices")

    def units(self, fields: dict[str, np.ndarray]) -> dict[str, str]:
        """The units in the comments, by the true names of the fields."""
        units = {self._names.get(word, word): unit for word, unit in self._units.items()}
        return {name: unit for name, unit in units.items() if name in fields and unit}

    def _element(self, name: str) -> _Element | None:
        return next((element for element in self._elements if element.name == name), None)

    def _read(self, name: str, what: str) -> np.ndarray:
        """Reads on until the element `name` is there."""
        while name not in self._rows:
            element = self._elements[self._next]
            self._rows[element.name] = self._block(element, what if element.name == name else element.name + " rows")
            self._next += 1
        return self._rows[name]

    def _block(self, element: _Element, what: str) -> np.ndarray:
        """All rows of an element, the lengths of its lists taken from the first row and required of the others."""
        row: list[tuple] = []
        for p in element.properties:
            shape: tuple[int, ...] = ()
            if p.length_code:
                start = self._place + np.dtype(row).itemsize
                row.append((_LENGTH + p.name, self._number(p.length_code)))
                first = self._rows_at(start, np.dtype(row[-1][1]), min(element.count, 1))
                shape = (int(first[0]) if len(first) else 0,)
            row.append((p.name, self._number(p.code), shape))
        rows = self._rows_at(self._place, np.dtype(row), element.count)
        for name in rows.dtype.names or ():
            if name.startswith(_LENGTH) and np.any(rows[name] != rows[name][:1]):
                raise foreign(self.path, ".ply", f"its {what} have different numbers of {name.removeprefix(_LENGTH)}")
        if len(rows) < element.count:
            raise truncated(self.path, element.count, len(rows), what)
        self._place += rows.nbytes
        return rows

    def _rows_at(self, place: int, dtype: np.dtype, count: int) -> np.ndarray:
        """As many of `count` rows as the file holds."""
        if not dtype.itemsize:
            return np.zeros(0, dtype)
        held = max(len(self._data) - place, 0) // dtype.itemsize
        return np.frombuffer(self._data, dtype, min(count, held), place) if min(count, held) else np.zeros(0, dtype)

    def _cast(self, values: np.ndarray, code: str) -> np.ndarray:
        """Numbers of a text as the type that its header names, which they need not fit."""
        if not self._text:
            return values
        with np.errstate(invalid="ignore", over="ignore"):
            cast = values.astype("<" + code)
        if cast.dtype.kind in "iu" and np.any(cast != values):
            raise foreign(self.path, ".ply", f"it has numbers that are no {cast.dtype.name}, as its header says")
        return cast

    def _number(self, code: str) -> str:
        return "<f8" if self._text else self._order + code


def _string(text: str) -> str:
    """A JSON string from a comment, or "" for one that another program wrote there."""
    try:
        value = json.loads(text)
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""
