"""Particles for ParaView: one .vtu per body and frame, and a .pvd that lists the series.

The .vtu holds an unstructured grid of vertex cells with its arrays appended as raw little-endian binary, the most
compact form that VTK's own XML readers, meshio and PyVista all accept (VTK file formats, "XML file formats").
"""

import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from pliant.core.data import Cloud
from pliant.io.arrays import checked_field, checked_positions, plain
from pliant.io.files import atomic_write
from pliant.io.reading import parse_xml, read_bytes, reading
from pliant.io.registry import CLOUDS
from pliant.io.vtu_reader import NUMBERS, read_vtu

_VTK_TYPES = {code: name for name, code in NUMBERS.items()}
_VTK_VERTEX = 1
_BLOCK_BYTES = 1 << 20  # bytes compressed at once; readers hold one such block at a time
_COMPRESSION_LEVEL = 1  # particle data is noise to zlib: higher levels cost time and gain one or two per cent


@dataclass
class _Block:
    """One DataArray: its XML attributes, and the chunks of bytes that stand for it in the appended section."""

    name: str
    data: np.ndarray
    unit: str = ""

    def xml(self, offset: int) -> str:
        components = int(np.prod(self.data.shape[1:], dtype=int))
        # Left out for scalars, where 1 is the default: with it, meshio returns them as (n, 1).
        shape = f'NumberOfComponents="{components}" ' if self.data.ndim > 1 else ""
        kind = _VTK_TYPES[self.data.dtype.str[1:]]
        head = f'<DataArray type="{kind}" Name={quoteattr(self.name)} {shape}format="appended" offset="{offset}"'
        if not self.unit:
            return head + "/>"
        # vtkDataArray::UNITS_LABEL: VTK keeps it with the array, readers that do not know it pass over it.
        unit = f'<InformationKey name="UNITS_LABEL" location="vtkDataArray">{escape(self.unit)}</InformationKey>'
        return f"{head}>{unit}</DataArray>"

    def chunks(self, compress: bool) -> list:
        """The block's bytes behind their UInt64 header: [bytes], or [blocks, block size, last size, sizes...]."""
        raw = self.data.reshape(-1).view(np.uint8).data
        if not compress:
            return [np.uint64(len(raw)).tobytes(), raw]
        starts = range(0, len(raw), _BLOCK_BYTES)
        pieces = [zlib.compress(raw[i : i + _BLOCK_BYTES], _COMPRESSION_LEVEL) for i in starts]
        header = [len(pieces), _BLOCK_BYTES, len(raw) % _BLOCK_BYTES, *map(len, pieces)]
        return [np.array(header, "<u8").tobytes(), *pieces]


def write_vtu(
    path: str | os.PathLike,
    points: np.ndarray,
    fields: Mapping[str, np.ndarray] | None = None,
    units: Mapping[str, str] | None = None,
    compress: bool = False,
) -> None:
    """Write particles at `points` (n, 3) [m] with one array per field: (n,), (n, 3) or (n, 3, 3).

    Number types are kept (half floats become single, booleans bytes). `units` maps field names to a unit such as
    "m/s". `compress` trades about 30 ms per megabyte for a somewhat smaller file.
    """
    points = checked_positions(points)
    n, units, fields = len(points), units or {}, fields or {}
    sections = {
        "Points": [_Block("Points", points, "m")],
        "Cells": [
            _Block("connectivity", np.arange(n, dtype="<i8")),
            _Block("offsets", np.arange(1, n + 1, dtype="<i8")),
            _Block("types", np.full(n, _VTK_VERTEX, "u1")),
        ],
        "PointData": [
            _Block(name, plain(checked_field(name, a, n)), units.get(name, "")) for name, a in fields.items()
        ],
    }
    xml, body = _layout(sections, compress)
    with atomic_write(path) as file:
        file.write((_head(n, compress) + xml).encode())
        file.write(b'\n</Piece>\n</UnstructuredGrid>\n<AppendedData encoding="raw">\n_')
        for chunk in body:
            file.write(chunk)
        file.write(b"\n</AppendedData>\n</VTKFile>\n")


def _layout(sections: dict[str, list[_Block]], compress: bool) -> tuple[str, list]:
    """The XML of the sections and the chunks they point to.

    The chunks stand in the reverse order of the XML. VTK does not mind; meshio rewrites offsets while it still looks
    arrays up by their old ones, and in the usual order it can take an array already rewritten for the one it wants.
    """
    xml, body, offset = [], [], 0
    for section, blocks in reversed(sections.items()):
        xml.append(f"</{section}>")
        for block in reversed(blocks):
            xml.append(block.xml(offset))
            chunks = block.chunks(compress)
            offset += sum(map(len, chunks))
            body += chunks
        xml.append(f"<{section}>")
    return "\n".join(reversed(xml)), body


def _head(n: int, compress: bool) -> str:
    compressor = ' compressor="vtkZLibDataCompressor"' if compress else ""
    return (
        '<?xml version="1.0"?>\n<VTKFile type="UnstructuredGrid" version="1.0" byte_order="LittleEndian" '
        f'header_type="UInt64"{compressor}>\n<UnstructuredGrid>\n<Piece NumberOfPoints="{n}" NumberOfCells="{n}">\n'
    )


def write_pvd(path: str | os.PathLike, entries: Iterable[tuple[float, str | os.PathLike, str]]) -> None:
    """List a series for ParaView: `entries` are (time [s], file relative to `path`, part name), one per body and frame.

    Cheap enough to call again after every frame, so that an interrupted series can be opened up to its last frame.
    """
    parts: dict[str, int] = {}
    lines = ['<?xml version="1.0"?>', '<VTKFile type="Collection" version="1.0" byte_order="LittleEndian">']
    lines.append("<Collection>")
    for time, file, name in entries:
        part = parts.setdefault(name, len(parts))
        file = os.fspath(file).replace(os.sep, "/")
        lines.append(
            f'<DataSet timestep="{float(time)!r}" group="" part="{part}" '
            f"name={quoteattr(name)} file={quoteattr(file)}/>"
        )
    lines += ["</Collection>", "</VTKFile>", ""]
    with atomic_write(path) as out:
        out.write("\n".join(lines).encode())


def read_pvd(path: str | os.PathLike) -> list[tuple[float, str, str]]:
    """The entries of a series as `write_pvd` takes them: (time [s], file relative to `path`, part name)."""
    with reading(path, ".pvd"):
        found = parse_xml(path, read_bytes(path)).iterfind("Collection/DataSet")
        # Other programs leave the name out and tell parts apart by number.
        return [(float(d.attrib["timestep"]), d.attrib["file"], d.get("name") or d.get("part") or "") for d in found]


def write_vtu_cloud(path: str | os.PathLike, cloud: Cloud) -> None:
    """Writes particles, uncompressed."""
    write_vtu(path, cloud.x, cloud.fields, cloud.units)


CLOUDS.register(".vtu", write_vtu_cloud, read_vtu)
