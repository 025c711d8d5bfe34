"""Triangles from files and arrays. Whatever is wrong with them becomes one sentence, never a traceback."""

import contextlib
import io
import logging
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.errors import PliantError

Triangles = tuple[NDArray[np.float64], NDArray[np.int64]]

ENDINGS = ("obj", "ply", "stl", "off", "glb", "gltf", "vtu", "vtk")


def describe(source: Any) -> str:
    """How sentences call the mesh: its file name, or "the mesh"."""
    return Path(source).name if isinstance(source, (str, os.PathLike)) else "the mesh"


def read_triangles(source: Any) -> Triangles:
    """Checked vertices and triangles of a file name or of a pair (vertices, faces)."""
    if isinstance(source, (str, os.PathLike)):
        vertices, faces = _read_file(Path(source))
    elif isinstance(source, (tuple, list)) and len(source) == 2:
        vertices, faces = _read_arrays(*source)
    else:
        raise PliantError(f"source must be a file name or a pair (vertices, faces), got {type(source).__name__}")
    return _checked(vertices, faces, describe(source))


def _read_file(path: Path) -> Triangles:
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
        import trimesh

        logging.getLogger("trimesh").setLevel(logging.CRITICAL)  # its warnings repeat the sentence below
        noise = io.StringIO()  # meshio, which trimesh asks for some formats, prints beside raising
        with contextlib.redirect_stdout(noise), contextlib.redirect_stderr(noise):
            mesh = trimesh.load_mesh(path, process=False)
        return np.array(mesh.vertices, dtype=np.float64), np.array(mesh.faces, dtype=np.int64).reshape(-1, 3)
    except PliantError:
        raise
    except PermissionError:
        raise PliantError(f"{path.name} may not be read: permission denied") from None
    except Exception as error:  # parsers fail on damaged files in every possible way
        raise PliantError(f"{path.name} cannot be read as {ending}, it seems to be damaged{_reason(error)}") from None


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


def _read_arrays(vertices: Any, faces: Any) -> Triangles:
    try:
        points = np.array(vertices, dtype=np.float64)
    except (TypeError, ValueError):
        raise PliantError("the vertices of the mesh must be numbers in an array (n, 3)") from None
    if points.size and (points.ndim != 2 or points.shape[1] != 3):
        raise PliantError(f"the vertices of the mesh must be an array (n, 3), got shape {points.shape}")
    return points.reshape(-1, 3), _fan(faces)


def _fan(faces: Any) -> NDArray[np.int64]:
    """(m, 3) triangles; a polygon (a, b, c, d, ...) becomes the fan (a, b, c), (a, c, d), ..."""
    try:
        polygons = [np.asarray(faces)] if isinstance(faces, np.ndarray) else [np.atleast_2d(f) for f in faces]
        if any(p.size and (p.ndim != 2 or p.shape[1] < 3 or not np.all(p == np.round(p))) for p in polygons):
            raise ValueError
        fans = [p[:, [0, k, k + 1]] for p in polygons if p.size for k in range(1, p.shape[1] - 1)]
        return np.concatenate(fans).astype(np.int64) if fans else np.zeros((0, 3), dtype=np.int64)
    except (TypeError, ValueError):
        raise PliantError("the faces of the mesh must be whole numbers, three or more in each face") from None


def _checked(vertices: NDArray[np.float64], faces: NDArray[np.int64], name: str) -> Triangles:
    if not len(faces):
        raise PliantError(f"{name} has no faces; a surface of triangles or polygons is needed")
    if faces.min() < 0 or faces.max() >= len(vertices):
        wrong = int(np.count_nonzero((faces < 0) | (faces >= len(vertices)), axis=None))
        raise PliantError(f"{name} has {wrong} face corners that name a vertex outside 0 to {len(vertices) - 1}")
    wrong = int(np.count_nonzero(~np.isfinite(vertices[faces]).all(axis=(1, 2))))
    if wrong:
        raise PliantError(f"{name} has {wrong} faces with vertices that are not finite numbers")
    return vertices, faces
