"""Particles and surfaces for Blender, MeshLab, CloudCompare and splashsurf: the Stanford .ply, binary little-endian.

The format is Greg Turk's "The PLY polygon file format" (1994). It only has scalar properties, so vectors and tensors go
by component: `velocity_x velocity_y velocity_z`, `F_xx` ... `F_zz`, and by convention normals as `nx ny nz`, texture
coordinates as `s t`. Blender (4.1 and later) turns each other property into a point attribute of the same name, MeshLab
and CloudCompare into scalar fields. What the format has no place for stands in comments:

    comment unit velocity "m/s"
    comment name fixed___held "fixed & held"

The second appears where a name is not one printable ASCII word; both hold the text as a JSON string. There are no
64-bit whole numbers: those become 32-bit ones, or a sentence where they do not fit.
"""

import json
import os
import re

import numpy as np

from pliant.core.data import Cloud, TriMesh
from pliant.errors import PliantError
from pliant.io.arrays import SUFFIXES, UV, checked_faces, checked_fields, checked_positions, narrowed, plain
from pliant.io.files import atomic_write
from pliant.io.ply_reader import ALIASES, TYPES, PlyFile
from pliant.io.reading import finite, foreign, inside, reading
from pliant.io.registry import CLOUDS, MESHES

_NAMES = {code: name for name, code in TYPES.items()}  # of one type's two names the older one, which comes last
_SMALLER = {"i8": "<i4", "u8": "<u4"}
_UNPRINTABLE = re.compile(r"[^\x21-\x7e]")
_FACE = np.dtype([("corners", "u1"), ("vertices", "<i4", (3,))])


def write_ply_cloud(path: str | os.PathLike, cloud: Cloud) -> None:
    """Writes particles as vertices without faces."""
    _write(path, cloud, checked_positions(cloud.x), None)


def write_ply_mesh(path: str | os.PathLike, mesh: TriMesh) -> None:
    """Writes a surface with its fields; a field `normal` becomes `nx ny nz`, `uv` becomes `s t`."""
    faces = np.empty(len(mesh.faces), _FACE)
    faces["corners"], faces["vertices"] = 3, checked_faces(mesh)
    _write(path, mesh, checked_positions(mesh.vertices, "vertices"), faces)


def _write(path: str | os.PathLike, data: Cloud | TriMesh, x: np.ndarray, faces: np.ndarray | None) -> None:
    header = ["ply", "format binary_little_endian 1.0", "comment Pliant: metres, y up"]
    properties = [(_NAMES[x.dtype.str[1:]], axis) for axis in "xyz"]
    columns, words = {"position": x}, []
    for name, values in checked_fields(data, len(x)).items():
        values = plain(values)
        values = narrowed(name, values, _SMALLER.get(values.dtype.str[1:], values.dtype.str), ".ply")
        words.append(word := _UNPRINTABLE.sub("_", name) or "_")
        parts = tuple(word + suffix for suffix in SUFFIXES[values.shape[1:]])
        if len(ALIASES.get(name, ())) == len(parts):
            parts = ALIASES[name]
        properties += [(_NAMES[values.dtype.str[1:]], part) for part in parts]
        if word != name:
            header.append(f"comment name {word} {json.dumps(name)}")
        if unit := data.units.get(name):
            header.append(f"comment unit {word} {json.dumps(unit)}")
        columns[f"field {name}"] = values
    _refuse_duplicates(words)
    _refuse_duplicates([part for _, part in properties])
    header += [f"element vertex {len(x)}", *(f"property {kind} {part}" for kind, part in properties)]
    if faces is not None:
        header += [f"element face {len(faces)}", "property list uchar int vertex_indices"]
    rows = np.empty(len(x), [(key, values.dtype, values.shape[1:]) for key, values in columns.items()])
    for key, values in columns.items():
        rows[key] = values
    with atomic_write(path) as file:
        file.write("\n".join([*header, "end_header", ""]).encode("ascii"))
        file.write(rows.view(np.uint8).data)
        if faces is not None:
            file.write(faces.view(np.uint8).data)


def _refuse_duplicates(names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise PliantError(f"two fields would both be called {name!r} in a .ply file: rename one.")


def read_ply_cloud(path: str | os.PathLike) -> Cloud:
    """The vertices of a .ply, binary or text, as particles; faces are passed over."""
    with reading(path, ".ply"):
        ply = PlyFile(path)
        x, fields = ply.vertices("particles")
        return Cloud(finite(path, x, "particles"), fields, ply.units(fields))


def read_ply_mesh(path: str | os.PathLike) -> TriMesh:
    """The surface in a .ply, binary or text; faces must all have the same number of corners, which are fanned."""
    with reading(path, ".ply"):
        ply = PlyFile(path)
        vertices, fields = ply.vertices("vertices", UV)
        polygons = ply.faces()
        if polygons is None:
            raise foreign(path, "mesh .ply", "it has no faces, only points: read it as particles")
        inside(path, polygons, len(vertices))
        corners = polygons.shape[1]
        fans = [polygons[:, [0, i, i + 1]] for i in range(1, corners - 1)] or [np.zeros((0, 3), np.int32)]
        faces = np.stack(fans, axis=1).reshape(-1, 3).astype(np.int32)
        return TriMesh(finite(path, vertices, "vertices"), faces, fields, ply.units(fields))


CLOUDS.register(".ply", write_ply_cloud, read_ply_cloud)
MESHES.register(".ply", write_ply_mesh, read_ply_mesh)
