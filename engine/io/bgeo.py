"""Particles for Houdini and the SPH tools around SPlisHSPlasH: the classic big-endian "Bgeo", version 5.

The layout is the one of Partio (src/lib/io/BGEO.cpp): a header of counts, the point attributes by name, then for each
point its position, a homogeneous 1 and its attributes, each number in four bytes. As Partio does for SPlisHSPlasH, the
file is wrapped in gzip, because the Blender sequence loader opens no other; it is stored, not squeezed, for speed.

Decisions that keep every known reader in step:

- Numbers are float32 or int32. Doubles are rounded; whole numbers that do not fit are refused.
- Float vectors are VECTOR attributes. The sequence loader takes any other attribute for one number a point, so whole
  vectors and all tensors are written by component (`F_xx` ... `F_zz`).
- Names are ours, which are also SPlisHSPlasH's (`velocity`, `density`, `id`); Houdini's `v` is read as `velocity`.
- Units are not stored: the place for them would be detail attributes, on which the sequence loader stops. The reader
  knows the units of the fields that Pliant itself writes.
"""

import gzip
import os
import struct
import zlib
from typing import BinaryIO

import numpy as np

from pliant.core.data import Cloud
from pliant.errors import PliantError
from pliant.io.arrays import (
    KNOWN_UNITS,
    SUFFIXES,
    Layout,
    checked_fields,
    checked_positions,
    grouped,
    item_fields,
    narrowed,
)
from pliant.io.files import atomic_write
from pliant.io.reading import finite, foreign, reading, truncated
from pliant.io.registry import CLOUDS

_MAGIC, _VERSION = b"BgeoV", 5
_FLOAT, _INT, _INDEXED_STRING, _VECTOR = 0, 1, 4, 5  # attribute types; 2 is a plain string, which nobody reads
_NUMBERS = {_FLOAT: ">f4", _INT: ">i4", _INDEXED_STRING: ">i4", _VECTOR: ">f4"}
_HEADER = struct.Struct(">8i")  # points, primitives, 2 groups, then attributes of points, vertices, primitives, detail
_END = b"\x00\xff"  # "begin extra", "end extra": the empty section that closes the file
_GZIP_MAGIC, _STORED = b"\x1f\x8b", 0
_PIECE_BYTES = 1 << 16  # read at once, so that memory follows what the file holds and not what it promises
_HOUDINI_NAMES = {"v": "velocity"}


def write_bgeo(path: str | os.PathLike, cloud: Cloud) -> None:
    """Writes particles with their fields as point attributes; see the top of the file for names and number types."""
    x = checked_positions(cloud.x)
    columns = _columns(checked_fields(cloud, len(x)))
    head = _MAGIC + struct.pack(">i", _VERSION) + _HEADER.pack(len(x), 0, 0, 0, len(columns), 0, 0, 0)
    formats: list[tuple] = [("position", ">f4", (3,)), ("w", ">f4")]
    for name, (kind, values) in columns.items():
        size, label = int(np.prod(values.shape[1:], dtype=int)), name.encode()
        head += struct.pack(">H", len(label)) + label + struct.pack(">Hi", size, kind) + bytes(4 * size)  # defaults: 0
        formats.append((f"field {name}", _NUMBERS[kind], values.shape[1:]))
    rows = np.empty(len(x), formats)
    rows["position"], rows["w"] = narrowed("position", x, ">f4", ".bgeo"), 1.0
    for name, (_, values) in columns.items():
        rows[f"field {name}"] = values
    with atomic_write(path) as file, gzip.GzipFile("", "wb", _STORED, file, mtime=0) as stored:
        stored.write(head)
        stored.write(rows.view(np.uint8).data)
        stored.write(_END)


def _columns(fields: dict[str, np.ndarray]) -> dict[str, tuple[int, np.ndarray]]:
    """The attributes by name: (type, values)."""
    columns: dict[str, tuple[int, np.ndarray]] = {}
    for name, values in fields.items():
        kind, shape = (_FLOAT if values.dtype.kind == "f" else _INT), values.shape[1:]
        values = narrowed(name, values, _NUMBERS[kind], ".bgeo")
        if kind == _FLOAT and shape == (3,):
            parts = {name: (_VECTOR, values)}
        else:
            flat = values.reshape(len(values), len(SUFFIXES[shape]))
            parts = {name + suffix: (kind, flat[:, i]) for i, suffix in enumerate(SUFFIXES[shape])}
        if twice := columns.keys() & parts.keys():
            raise PliantError(f"two fields would both be called {min(twice)!r} in a .bgeo file: rename one.")
        columns |= parts
    return columns


def read_bgeo(path: str | os.PathLike) -> Cloud:
    """The points of a classic .bgeo, plain or gzipped; primitives, groups and text attributes are passed over."""
    with reading(path, ".bgeo"), open(path, "rb") as file:
        stream = _Stream(file)
        magic = stream.take(len(_MAGIC))
        if not magic:
            raise PliantError(f"{path} is empty.")
        if magic != _MAGIC:
            raise foreign(path, ".bgeo", "it is not the classic format, which Houdini writes as .bhclassic")
        try:
            (version,) = stream.unpack(">i")
            n, _, _, _, attributes, *_ = stream.unpack(_HEADER.format)
            if version != _VERSION or min(n, attributes) < 0:
                raise foreign(path, ".bgeo", f"it is of version {version}, with {n} points of {attributes} attributes")
            layout = _layout(path, stream, attributes)
        except EOFError:
            raise PliantError(f"{path} is truncated: it ends within its header.") from None
        row = np.dtype([(str(i), dtype, shape) for i, (_, dtype, shape) in enumerate(layout)])
        data = stream.take(n * row.itemsize)
        if len(data) < n * row.itemsize:
            raise truncated(path, n, len(data) // row.itemsize, "particles")
        if len(stream.take(len(_END))) < len(_END) or stream.cut():
            raise PliantError(f"{path} is truncated: it ends without its closing mark.")
        return _cloud(path, layout, np.frombuffer(data, row))


def _layout(path: str | os.PathLike, stream: "_Stream", attributes: int) -> Layout:
    """What stands in a row: position, its homogeneous coordinate, then each attribute, with "" for those to skip."""
    columns: list[tuple[str, str, int]] = []
    for _ in range(attributes):
        name = stream.text()
        size, kind = stream.unpack(">Hi")
        if kind not in _NUMBERS:
            raise foreign(path, ".bgeo", f"its attribute {name!r} is of the unknown type {kind}")
        if kind == _INDEXED_STRING:
            name = ""
            for _ in range(*stream.unpack(">i")):
                stream.text()
        else:
            stream.unpack(f">{size}i")  # default values
        columns.append((name, _NUMBERS[kind], size))
    layout: Layout = [("", ">f4", (3,)), ("", ">f4", ())]
    while columns:
        run = next((i for i, column in enumerate(columns) if column[2] != 1), len(columns))
        layout += grouped([column[:2] for column in columns[:run]], {})
        layout += [(name, dtype, (size,)) for name, dtype, size in columns[run : run + 1]]
        columns = columns[run + 1 :]
    return layout


def _cloud(path: str | os.PathLike, layout: Layout, rows: np.ndarray) -> Cloud:
    fields: dict[str, np.ndarray] = {}
    for i, (name, dtype, shape) in enumerate(layout):
        if name:
            name = _HOUDINI_NAMES.get(name, name)
            values = rows[str(i)].astype(dtype.replace(">", "<"))
            fields.update([(name, values)] if len(shape) != 1 else item_fields(name, values))
    x = finite(path, rows["0"].astype("<f4"), "particles")
    return Cloud(x, fields, {name: unit for name, unit in KNOWN_UNITS.items() if name in fields})


class _Stream:
    """Bytes one after the other, unzipped on the way where the file is zipped."""

    def __init__(self, file: BinaryIO):
        zipped = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        file.seek(0)
        self._file, self._buffer = file, bytearray()
        self._unzip = zlib.decompressobj(zlib.MAX_WBITS | 16) if zipped else None  # 16: with gzip's header and checksum

    def take(self, size: int) -> bytearray:
        """The next `size` bytes, or what is left of them."""
        while len(self._buffer) < size and (piece := self._file.read(_PIECE_BYTES)):
            self._buffer += self._unzip.decompress(piece) if self._unzip else piece
        taken = self._buffer[:size]
        del self._buffer[:size]
        return taken

    def cut(self) -> bool:
        """Whether a zipped file ends before its checksum."""
        return not self.take(1) and self._unzip is not None and not self._unzip.eof

    def unpack(self, layout: str) -> tuple:
        """The next numbers."""
        data = self.take(struct.calcsize(layout))
        if len(data) < struct.calcsize(layout):
            raise EOFError
        return struct.unpack(layout, data)

    def text(self) -> str:
        """The next string, behind its 16-bit length."""
        (length,) = self.unpack(">H")
        return b"".join(self.unpack(f"{length}s")).decode()


CLOUDS.register(".bgeo", write_bgeo, read_bgeo)
