"""Surfaces as Wavefront .obj: text that every program opens, with normals and texture coordinates as its only fields.

The format is Wavefront's "Object Files (.obj)", Advanced Visualizer manual, appendix B1. A text can be cut anywhere and
still look whole, so the first line says how much there should be.
"""

import os
import re

import numpy as np

from pliant.core.data import TriMesh
from pliant.errors import PliantError
from pliant.io.arrays import UV, checked_faces, checked_fields, checked_positions
from pliant.io.files import atomic_write
from pliant.io.reading import finite, foreign, inside, read_bytes, reading, truncated
from pliant.io.registry import MESHES

_PROMISE = "# Pliant: {} vertices, {} faces, {}, metres, y up\n"
_PROMISED = re.compile(rb"# Pliant: (\d+) vertices, (\d+) faces, (float32|float64)")
_FIELDS = {"vt": (UV, 2), "vn": ("normal", 3)}  # the word, the field it holds and that field's columns
_DIGITS = {"f4": "%.9g", "f8": "%.17g"}  # the fewest that give every float or double back


def write_obj(path: str | os.PathLike, mesh: TriMesh) -> None:
    """Writes a surface; a field `normal` becomes `vn` lines and `uv` becomes `vt` lines, other fields have no place in
    the format."""
    vertices, faces = checked_positions(mesh.vertices, "vertices"), checked_faces(mesh).astype(np.int64) + 1
    fields = checked_fields(mesh, len(vertices))
    parts = {word: fields[name] for word, (name, columns) in _FIELDS.items()
             if fields.get(name, vertices[:0, 0]).shape[1:] == (columns,)}  # fmt: skip
    kind = np.result_type(vertices, np.float32, *parts.values())
    corner = "%d" + ("/%d" if "vt" in parts else "/") * bool(parts) + "/%d" * ("vn" in parts)
    text = [_PROMISE.format(len(vertices), len(faces), kind.name)]
    text += [_lines(word, rows.astype(kind)) for word, rows in ({"v": vertices} | parts).items()]
    text.append(f"f {corner} {corner} {corner}\n" * len(faces)
                % tuple(np.repeat(faces, 1 + len(parts), axis=1).ravel().tolist()))  # fmt: skip
    with atomic_write(path) as file:
        for part in text:
            file.write(part.encode("ascii"))


def _lines(word: str, rows: np.ndarray) -> str:
    numbers = " ".join([_DIGITS[rows.dtype.str[1:]]] * rows.shape[1])
    return f"{word} {numbers}\n" * len(rows) % tuple(rows.ravel().tolist())


def read_obj(path: str | os.PathLike) -> TriMesh:
    """All surfaces in an .obj as one, polygons fanned. Normals and texture coordinates are kept where each vertex has
    one of its own."""
    with reading(path, ".obj"):
        data = read_bytes(path)
        lines = [line.strip() for line in data.split(b"\n")]
        positions = [line[2:] for line in lines if line.startswith((b"v ", b"v\t"))]
        promised = _PROMISED.match(data)
        if not positions and promised is None:
            raise foreign(path, ".obj", "it has no vertices")
        dtype = promised[3].decode() if promised else "float64"
        vertices = _table(positions, dtype)
        corners = _faces(path, [line[2:] for line in lines if line.startswith((b"f ", b"f\t"))])
        faces = corners[:, :, 0]
        if promised:
            _check_promise(path, data, promised, len(vertices), len(faces))
        mesh = TriMesh(finite(path, vertices, "vertices"), inside(path, faces, len(vertices)).astype(np.int32))
        for k, (word, (name, columns)) in enumerate(_FIELDS.items(), start=1):
            starts = (f"{word} ".encode(), f"{word}\t".encode())
            rows = _table([line[3:] for line in lines if line.startswith(starts)], dtype, columns)
            if len(rows) == len(vertices) and np.array_equal(faces, corners[:, :, k]):
                mesh.fields[name] = rows
        return mesh


def _check_promise(path: str | os.PathLike, data: bytes, promised: re.Match, vertices: int, faces: int) -> None:
    for count, held, what in ((promised[1], vertices, "vertices"), (promised[2], faces, "faces")):
        if int(count) != held:
            raise truncated(path, int(count), held, what)
    if not data.endswith(b"\n"):
        raise PliantError(f"{path} is truncated: it ends within a line.")


def _table(lines: list[bytes], dtype: str, columns: int = 3) -> np.ndarray:
    """The first numbers of each line; a colour may follow them."""
    if not lines:
        return np.zeros((0, columns), dtype)
    return np.loadtxt([line.decode("ascii") for line in lines], dtype, usecols=tuple(range(columns)), ndmin=2)


def _faces(path: str | os.PathLike, lines: list[bytes]) -> np.ndarray:
    """The corners (m, 3, 3) of the triangles: vertex, texture coordinates and normal of each, from 0, -1 for none.

    A corner is `v`, `v/vt`, `v//vn` or `v/vt/vn`. Lines alike in corners and slashes are read together.
    """
    alike: dict[tuple[int, int], list[bytes]] = {}
    for line in lines:
        alike.setdefault((len(line.split()), line.count(b"/")), []).append(line)
    found = [np.zeros((0, 3, 3), np.int64)]
    for (corners, slashes), group in alike.items():
        text = b"\n".join(group).replace(b"//", b"/0/").replace(b"/", b" ").decode("ascii")
        if "-" in text:
            raise foreign(path, ".obj", "its faces count their vertices backwards")
        if corners < 3 or slashes % corners:
            raise foreign(path, ".obj", f"it has a face {group[0].decode('ascii')!r}")
        table = np.loadtxt(text.split("\n"), np.int64, ndmin=2).reshape(len(group), corners, 1 + slashes // corners)
        padded = np.zeros((len(group), corners, 3), np.int64)  # 0 for what the corners do not name
        padded[:, :, : table.shape[2]] = table
        found += [padded[:, [0, k, k + 1]] for k in range(1, corners - 1)]
    return np.concatenate(found) - 1


MESHES.register(".obj", write_obj, read_obj)
