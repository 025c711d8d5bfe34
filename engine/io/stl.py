"""Surfaces as binary .stl, the format of 3D printing: loose triangles in single precision, without fields or units.

The layout is 3D Systems' StereoLithography Interface Specification (1989): 80 bytes of anything, the number of
triangles, then for each its normal, its corners and two bytes that nobody agrees on. Text is read too.
"""

import os
import re

import numpy as np

from pliant.core.data import TriMesh
from pliant.errors import PliantError
from pliant.io.arrays import checked_faces, checked_positions, narrowed
from pliant.io.files import atomic_write
from pliant.io.reading import finite, foreign, read_bytes, reading, truncated
from pliant.io.registry import MESHES

_TITLE = b"Pliant: metres, y up"  # must not begin with "solid", by which readers know the text form
_TITLE_BYTES, _HEADER_BYTES = 80, 84
_TRIANGLE = np.dtype([("normal", "<f4", (3,)), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_CORNER = re.compile(rb"vertex\s+(\S+)\s+(\S+)\s+(\S+)")


def write_stl(path: str | os.PathLike, mesh: TriMesh) -> None:
    """Writes the triangles with their normals, which are zero for triangles without area, as the format asks."""
    vertices = narrowed("vertices", checked_positions(mesh.vertices, "vertices"), "<f4", ".stl")
    rows = np.zeros(len(mesh.faces), _TRIANGLE)
    rows["corners"] = corners = vertices[checked_faces(mesh)]
    a, b, c = corners.astype(np.float64).transpose(1, 0, 2)
    with np.errstate(invalid="ignore"):  # a run that broke down may have vertices at infinity
        normals = np.cross(b - a, c - a)
        lengths = np.linalg.norm(normals, axis=1, keepdims=True)
        rows["normal"] = normals / np.where(lengths > 0, lengths, 1)
    with atomic_write(path) as file:
        file.write(_TITLE.ljust(_TITLE_BYTES) + np.uint32(len(rows)).tobytes())
        file.write(rows.view(np.uint8).data)


def read_stl(path: str | os.PathLike) -> TriMesh:
    """The triangles of an .stl, joined at corners that are equal to the last bit."""
    with reading(path, ".stl"):
        data = read_bytes(path)
        corners = _binary(path, data)
        if corners is None:
            corners = _text(path, data)
        corners = finite(path, corners.reshape(-1, 3), "corners") + np.float32(0)  # -0 becomes 0, which equals it
        vertices, faces = _welded(corners)
        return TriMesh(vertices, faces.reshape(-1, 3).astype(np.int32))


def _binary(path: str | os.PathLike, data: bytes) -> np.ndarray | None:
    """The corners of a binary file, or None for text. Some binary files begin with "solid" too: their size tells."""
    text = data.lstrip().startswith(b"solid")
    if len(data) < _HEADER_BYTES:
        if text:
            return None
        raise PliantError(f"{path} is truncated, or no .stl file: it ends within its header.")
    promised = int(np.frombuffer(data, "<u4", 1, _TITLE_BYTES)[0])
    held = (len(data) - _HEADER_BYTES) // _TRIANGLE.itemsize
    if promised > held:
        if text:
            return None
        raise truncated(path, promised, held, "triangles")
    return np.frombuffer(data, _TRIANGLE, promised, _HEADER_BYTES)["corners"]


def _text(path: str | os.PathLike, data: bytes) -> np.ndarray:
    if b"endsolid" not in data:
        raise PliantError(f"{path} is truncated: it does not end with 'endsolid'.")
    words = np.array(_CORNER.findall(data), bytes).reshape(-1, 3)
    if len(words) % 3:
        raise foreign(path, ".stl", "its number of corners is no multiple of three")
    return words.astype("<f4")


def _welded(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct corners in the order of their first appearance, and for each corner the number of its vertex."""
    keys = np.ascontiguousarray(corners).view(np.dtype((np.void, corners.dtype.itemsize * 3))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return corners[first[order]], rank[inverse]


MESHES.register(".stl", write_stl, read_stl)
