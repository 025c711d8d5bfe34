"""Reads the points of .vtu files whose arrays are appended raw, plain or zlib-compressed: Pliant's and ParaView's."""

import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

import numpy as np

from pliant.core.data import Cloud
from pliant.errors import PliantError
from pliant.io.arrays import checked_positions, item_fields
from pliant.io.reading import finite, foreign, parse_xml, read_bytes, reading, truncated
from pliant.io.registry import PathLike

NUMBERS = {
    "Float32": "f4", "Float64": "f8", "Int8": "i1", "Int16": "i2", "Int32": "i4", "Int64": "i8",
    "UInt8": "u1", "UInt16": "u2", "UInt32": "u4", "UInt64": "u8",
}  # fmt: skip
_ORDERS = {"LittleEndian": "<", "BigEndian": ">"}
_COMPRESSORS = (None, "vtkZLibDataCompressor")
_APPENDED = re.compile(rb'<AppendedData\s+encoding="raw"\s*>\s*_')
_END, _TAIL_BYTES = b"</VTKFile>", 100  # which is as much as is searched for the end


def read_vtu(path: str | os.PathLike) -> Cloud:
    """The points of an unstructured grid with their fields and units; what its cells are does not matter."""
    with reading(path, ".vtu"):
        data = read_bytes(path)
        if b"<VTKFile" not in data[:1000]:
            raise foreign(path, ".vtu", "it does not begin as VTK's XML does")
        if not data[-_TAIL_BYTES:].rstrip().endswith(_END):
            raise PliantError(f"{path} is truncated: it does not end with {_END.decode()}.")
        start = _APPENDED.search(data)
        if start is None:
            raise foreign(path, ".vtu", "its arrays are not appended as raw binary (in ParaView: data mode 'Appended')")
        root = parse_xml(path, data[: start.start()] + _END)
        pieces = root.findall("UnstructuredGrid/Piece")
        if len(pieces) != 1:
            raise foreign(path, ".vtu", f"it has {len(pieces)} pieces of an unstructured grid")
        return _cloud(path, pieces[0], _Appended.of(path, root, memoryview(data)[start.end() :]))


def _cloud(path: PathLike, piece: ElementTree.Element, appended: "_Appended") -> Cloud:
    n = int(piece.attrib["NumberOfPoints"])
    position = piece.find("Points/DataArray")
    if n < 0 or position is None:
        raise foreign(path, ".vtu", "it has no points")
    x = finite(path, checked_positions(appended.array(position, n)), "particles")
    cloud = Cloud(x)
    for element in piece.iterfind("PointData/DataArray"):
        name, unit = element.get("Name", ""), element.find("InformationKey[@name='UNITS_LABEL']")
        cloud.fields.update(item_fields(name, appended.array(element, n)))
        if unit is not None and unit.text:
            cloud.units[name] = unit.text
    return cloud


@dataclass
class _Appended:
    """The appended section, from which arrays are taken by the offsets in the XML."""

    path: PathLike
    data: memoryview
    order: str
    header: np.dtype
    compressed: bool

    @classmethod
    def of(cls, path: PathLike, root: ElementTree.Element, data: memoryview) -> "_Appended":
        compressor, order = root.get("compressor"), _ORDERS[root.get("byte_order", "LittleEndian")]
        if compressor not in _COMPRESSORS:
            raise foreign(path, ".vtu", f"it is compressed by {compressor}; zlib is known")
        header = np.dtype(order + NUMBERS[root.get("header_type", "UInt32")])
        return cls(path, data, order, header, compressor is not None)

    def array(self, element: ElementTree.Element, n: int) -> np.ndarray:
        """The (n, components) array that a DataArray describes."""
        components = int(element.get("NumberOfComponents", "1"))
        dtype = np.dtype(self.order + NUMBERS[element.attrib["type"]])
        name, start = element.get("Name", "Points"), int(element.attrib["offset"])
        if components < 1 or not 0 <= start <= len(self.data):
            raise foreign(self.path, ".vtu", f"array {name!r} has {components} components at byte {start}")
        row = components * dtype.itemsize
        chunks = self._inflated(start, n * row) if self.compressed else self._plain(start, n * row)
        data = bytearray().join(chunks)
        if len(data) != n * row:
            raise truncated(self.path, n, len(data) // row, f"particles in {name!r}")
        return np.frombuffer(data, dtype).reshape(n, components).astype(dtype.newbyteorder("<"), copy=False)

    def _numbers(self, start: int, count: int) -> list[int]:
        size = count * self.header.itemsize
        if start + size > len(self.data):
            raise ValueError("an array begins behind the end of the file")
        return np.frombuffer(self.data, self.header, count, start).tolist() if count else []

    def _plain(self, start: int, wanted: int) -> Iterator[memoryview]:
        (size,) = self._numbers(start, 1)
        start += self.header.itemsize
        yield self.data[start : start + min(size, wanted)]

    def _inflated(self, start: int, wanted: int) -> Iterator[bytes]:
        """The compressed blocks, behind [blocks, block size, last size, sizes...], and never more than `wanted`."""
        (blocks,) = self._numbers(start, 1)
        if not blocks:
            return
        if blocks > len(self.data):
            raise ValueError("an array promises more blocks than the file has bytes")
        sizes = self._numbers(start + 3 * self.header.itemsize, blocks)
        start += (3 + blocks) * self.header.itemsize
        for size in sizes:
            block = zlib.decompressobj().decompress(self.data[start : start + size], max(wanted, 1))
            start, wanted = start + size, wanted - len(block)
            yield block
