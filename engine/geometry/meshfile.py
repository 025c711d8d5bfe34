"""Surfaces from files and arrays. Whatever is wrong with them becomes one sentence, never a traceback."""

import contextlib
import io
import logging
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.errors import PliantError
from pliant.geometry.repair import unique_rows

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

ENDINGS = ("obj", "ply", "stl", "off", "glb", "gltf", "vtu", "vtk")
FIELDS = {"uv": 2, "normal": 3}  # what is kept of a file beside its triangles, with the width of each


class MeshData(NamedTuple):
    """A surface as its file has it: vertices (n, 3), triangles (m, 3), and per vertex uv (n, 2) and normals (n, 3).

    Vertices of different uv or normal are different vertices, in one place. What a file lacks is None.
    """

    vertices: Array
    faces: Integers
    uv: Array | None = None
    normal: Array | None = None


def describe(source: Any) -> str:
    """How sentences call the mesh: its file name, or "the mesh"."""
    return Path(source).name if isinstance(source, (str, os.PathLike)) else "the mesh"


def read_mesh(source: Any) -> MeshData:
    """The checked surface of a file name, of a pair (vertices, faces), or of (vertices, faces, uv, normal)."""
    if isinstance(source, (str, os.PathLike)):
        data = _read_file(Path(source))
    elif isinstance(source, (tuple, list)) and len(source) in (2, 4):
        data = _read_arrays(*source)
    else:
        given = f"{len(source)} things" if isinstance(source, (tuple, list)) else type(source).__name__
        raise PliantError(f"source must be a file name or a pair (vertices, faces), got {given}")
    return _checked(data, describe(source))


def _read_file(path: Path) -> MeshData:
    ending = path.suffix.lower().lstrip(".")
    if os.path.isdir(path):  # unlike Path.is_dir, never raises on an impossible name
        raise PliantError(f"{path} is a folder, not a mesh file")
    if not os.path.isfile(path):
        raise PliantError(f"there is no file {str(path)!r} (looked in {path.absolute().parent})")
    if ending not in ENDINGS:
        raise PliantError(f"{path.name} has the unsupported ending {ending!r}; use one of {', '.join(ENDINGS)}")
    try:
        if path.stat().st_size == 0:
            raise PliantError(f"{path.name} is an empty file")
        if _foreign(path, ending):
            raise PliantError(f"{path.name} cannot be read as {ending}, it seems to be damaged")
        noise = io.StringIO()  # meshio prints beside raising
        with contextlib.redirect_stdout(noise), contextlib.redirect_stderr(noise):
            return _READERS.get(ending, _read_scene)(path, ending)
    except PliantError:
        raise
    except PermissionError:
        raise PliantError(f"{path.name} may not be read: permission denied") from None
    except Exception as error:  # parsers fail on damaged files in every possible way
        raise PliantError(f"{path.name} cannot be read as {ending}, it seems to be damaged{_reason(error)}") from None


def _read_scene(path: Path, ending: str) -> MeshData:
    """All surfaces of a file that trimesh reads, each in the place its node of the scene gives it, as one."""
    import trimesh

    logging.getLogger("trimesh").setLevel(logging.CRITICAL)  # its warnings repeat our sentence
    text = _absolute_indices(path.read_bytes()) if ending == "obj" else None
    source: Any = path if text is None else io.BytesIO(text)
    scene: Any = trimesh.load(source, file_type=ending, process=False, force="scene")
    parts = []
    for node in sorted(scene.graph.nodes_geometry):
        transform, name = scene.graph[node]
        if hasattr(scene.geometry[name], "faces"):  # a file may also hold lines and points
            parts.append(_part(scene.geometry[name], np.asarray(transform, dtype=np.float64)))
    if not parts:
        return MeshData(np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int64))
    return _merge_equal(_joined(parts)) if ending == "stl" else _joined(parts)


def _part(mesh: Any, transform: Array) -> MeshData:
    """One surface of a trimesh scene, x' = A x + t; normals turn with the inverse transpose of A."""
    A, t = transform[:3, :3], transform[:3, 3]
    vertices = np.array(mesh.vertices, dtype=np.float64).reshape(-1, 3)
    faces = np.array(mesh.faces, dtype=np.int64).reshape(-1, 3)
    uv, normal = getattr(mesh.visual, "uv", None), None
    if "vertex_normals" in mesh._cache.cache:  # the file has them; asking the mesh would compute some
        normal = np.array(mesh.vertex_normals, dtype=np.float64)
    if not np.array_equal(transform, np.eye(4)):
        vertices = vertices @ A.T + t
        normal = None if normal is None else normal @ np.linalg.pinv(A)
        faces = faces[:, ::-1] if np.linalg.det(A) < 0.0 else faces  # a mirror turns them inside out
    return MeshData(vertices, faces, None if uv is None else np.array(uv, dtype=np.float64), normal)


def _joined(parts: list[MeshData]) -> MeshData:
    """One surface of several; a field that some lack is dropped."""
    first = np.cumsum([0] + [len(part.vertices) for part in parts[:-1]])
    faces = np.concatenate([part.faces + start for part, start in zip(parts, first, strict=True)])
    fields = {}
    for name, width in FIELDS.items():
        columns = [getattr(part, name) for part in parts]
        whole = all(c is not None and c.shape == (len(p.vertices), width) and np.isfinite(c).all()
                    for c, p in zip(columns, parts, strict=True))  # fmt: skip
        fields[name] = np.concatenate(columns) if whole else None
    return MeshData(np.concatenate([part.vertices for part in parts]), faces, **fields)


def _merge_equal(data: MeshData) -> MeshData:
    """An stl file writes a vertex once for each of its faces; here it becomes one again."""
    first, inverse = unique_rows((data.vertices + 0.0).view(np.int64))  # + 0.0 turns -0.0 into 0.0
    keep = np.sort(first)
    return MeshData(data.vertices[keep], np.searchsorted(keep, first)[inverse][data.faces])


def _absolute_indices(text: bytes) -> bytes | None:
    """An obj whose faces count vertices backwards from where they stand, rewritten; None if none do.

    trimesh 5.2 counts them from the end of the file instead.
    """
    if not re.search(rb"^\s*f\s[^\n]*[\s/]-", text, re.MULTILINE):
        return None
    seen, lines = [0, 0, 0], []
    kinds = {b"v": 0, b"vt": 1, b"vn": 2}
    for line in text.replace(b"\\\n", b" ").splitlines():
        words = line.split(b"#")[0].split()
        if words and words[0] in kinds:
            seen[kinds[words[0]]] += 1
        elif words and words[0] == b"f":
            corners = [[int(number) if number else 0 for number in word.split(b"/")] for word in words[1:]]
            absolute = [[i + 1 + seen[k] if i < 0 else i for k, i in enumerate(corner)] for corner in corners]
            line = b"f " + b" ".join(b"/".join(b"%d" % i if i else b"" for i in corner) for corner in absolute)
        lines.append(line)
    return b"\n".join(lines)


def _read_off(path: Path, ending: str) -> MeshData:
    """An off text file, with polygons of any size; colours and normals are left out. (trimesh takes triangles only.)"""
    lines = [line.split("#")[0].split() for line in path.read_text().splitlines()]
    lines = [words for words in lines if words]
    head = lines.pop(0)
    if not head[0].upper().endswith("OFF"):
        raise ValueError("it does not start with OFF")
    counts = head[1:] or lines.pop(0)
    n, m = int(counts[0]), int(counts[1])
    if len(lines) < n + m:
        raise ValueError(f"it promises {n} vertices and {m} faces and has {len(lines)} lines")
    vertices = np.array([words[:3] for words in lines[:n]], dtype=np.float64).reshape(-1, 3)
    return MeshData(vertices, _fan([words[1 : 1 + int(words[0])] for words in lines[n : n + m]]))


def _read_cells(path: Path, ending: str) -> MeshData:
    from pliant.geometry.cells import read_cells

    return MeshData(*read_cells(path))


_READERS = {"off": _read_off, "vtu": _read_cells, "vtk": _read_cells}


def _foreign(path: Path, ending: str) -> bool:
    """Whether a file is plainly not what its ending says; parsers of text guess at a meaning in any noise."""
    with open(path, "rb") as file:
        head = file.read(4096)
    if ending == "stl":
        promised = 84 + 50 * int.from_bytes(head[80:84], "little")  # bytes of a binary file: header, count, triangles
        return path.stat().st_size != promised and not head.lstrip().startswith(b"solid")
    return ending in ("obj", "off") and b"\0" in head


def _reason(error: Exception) -> str:
    """What a parser says, where that helps; some only tell of their own troubles (a module or a second file)."""
    first = next(iter(str(error).splitlines()), "")
    helps = first and not isinstance(error, (ImportError, OSError)) and not first.startswith("Failed to load")
    return f" ({type(error).__name__}: {first})" if helps else ""


def _read_arrays(vertices: Any, faces: Any, uv: Any = None, normal: Any = None) -> MeshData:
    points = _numbers("vertices", vertices, 3)
    fields = {"uv": uv, "normal": normal}
    given = {k: None if v is None else _numbers(k, v, FIELDS[k]) for k, v in fields.items()}
    for name, values in given.items():
        if values is not None and len(values) != len(points):
            raise PliantError(f"the {name} of the mesh has {len(values)} rows, and there are {len(points)} vertices")
    return MeshData(points, _fan(faces), **given)


def _numbers(name: str, values: Any, width: int) -> Array:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise PliantError(f"the {name} of the mesh must be numbers in an array (n, {width})") from None
    if array.size and (array.ndim != 2 or array.shape[1] != width):
        raise PliantError(f"the {name} of the mesh must be an array (n, {width}), got shape {array.shape}")
    return array.reshape(-1, width)


def _fan(faces: Any) -> Integers:
    """(m, 3) triangles; a polygon (a, b, c, d, ...) becomes the fan (a, b, c), (a, c, d), ..."""
    try:
        polygons = [np.asarray(faces)] if isinstance(faces, np.ndarray) else _by_size(faces)
        if any(p.size and (p.ndim != 2 or p.shape[1] < 3 or not np.all(p == np.round(p))) for p in polygons):
            raise ValueError
        fans = [p[:, [0, k, k + 1]] for p in polygons if p.size for k in range(1, p.shape[1] - 1)]
        return np.concatenate(fans).astype(np.int64) if fans else np.zeros((0, 3), dtype=np.int64)
    except (TypeError, ValueError):
        raise PliantError("the faces of the mesh must be whole numbers, three or more in each face") from None


def _by_size(faces: Any) -> list[NDArray[Any]]:
    """Polygons in arrays of equal length, in the order in which the lengths first occur."""
    groups: dict[int, list[Any]] = {}
    for face in faces:
        groups.setdefault(len(face), []).append(face)
    return [np.asarray(group).astype(np.float64) for group in groups.values()]


def _checked(data: MeshData, name: str) -> MeshData:
    vertices, faces = data.vertices, data.faces
    if not len(faces):
        raise PliantError(f"{name} has no faces; a surface of triangles or polygons is needed")
    if faces.min() < 0 or faces.max() >= len(vertices):
        wrong = int(np.count_nonzero((faces < 0) | (faces >= len(vertices)), axis=None))
        raise PliantError(f"{name} has {wrong} face corners that name a vertex outside 0 to {len(vertices) - 1}")
    wrong = int(np.count_nonzero(~np.isfinite(vertices[faces]).all(axis=(1, 2))))
    if wrong:
        raise PliantError(f"{name} has {wrong} faces with vertices that are not finite numbers; "
                          "delete these faces in a modelling program")  # fmt: skip
    return data
