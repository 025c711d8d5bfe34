"""What all formats ask of the arrays they write, and how formats without vectors name the parts of one.

A format that only knows scalars stores `velocity` (n, 3) as `velocity_x velocity_y velocity_z` and `F` (n, 3, 3) as
`F_xx F_xy ... F_zz`; `grouped` finds such neighbors again.
"""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from pliant.core.data import Cloud, TriMesh
from pliant.errors import PliantError

ITEM_SHAPES = ((), (3,), (3, 3))
UV = "uv"  # texture coordinates (n, 2) of a surface: the one field of pairs
SUFFIXES = {
    (): ("",),
    (2,): ("_u", "_v"),
    (3,): tuple("_" + a for a in "xyz"),
    (3, 3): tuple("_" + a + b for a in "xyz" for b in "xyz"),
}
KNOWN_UNITS = {"velocity": "m/s", "density": "kg/m^3", "pressure": "Pa", "mass": "kg"}  # for formats that hold none

Layout = list[tuple[str, str, tuple[int, ...]]]  # (field name, number type, shape of one item) in the file's order


def little(values: np.ndarray) -> np.ndarray:
    """Contiguous and little-endian."""
    values = np.asarray(values)
    return np.ascontiguousarray(values, values.dtype.newbyteorder("<"))


def plain(values: np.ndarray) -> np.ndarray:
    """`little`, with half floats as single and booleans as bytes, for formats that have neither."""
    values = np.asarray(values)
    if values.dtype == np.float16:
        values = values.astype(np.float32)
    elif values.dtype == bool:
        values = values.astype(np.uint8)
    return little(values)


def checked_positions(x: np.ndarray, what: str = "points") -> np.ndarray:
    """`x` as a plain float32 or float64 array of shape (n, 3)."""
    x = plain(x)
    if x.ndim != 2 or x.shape[1] != 3 or x.dtype.str[1:] not in ("f4", "f8"):
        raise PliantError(f"{what} must be floats of shape (n, 3), got {x.dtype} {x.shape}.")
    return x


def checked_field(name: str, values: np.ndarray, n: int) -> np.ndarray:
    """A field as a little-endian array, after a look at its type and shape."""
    values = little(values)
    if values.dtype.kind not in "biuf" or values.dtype.itemsize > 8:
        raise PliantError(f"field {name!r} must hold real numbers, got {values.dtype}.")
    if values.shape[:1] != (n,) or values.shape[1:] not in ITEM_SHAPES:
        raise PliantError(f"field {name!r} must have shape ({n},), ({n}, 3) or ({n}, 3, 3), got {values.shape}.")
    return values


def checked_fields(data: Cloud | TriMesh, n: int) -> dict[str, np.ndarray]:
    """All fields of `n` particles or vertices, each after `checked_field`."""
    return {name: _checked_pairs(values, n) if name == UV and isinstance(data, TriMesh) and np.ndim(values) == 2
            else checked_field(name, values, n) for name, values in data.fields.items()}  # fmt: skip


def _checked_pairs(values: np.ndarray, n: int) -> np.ndarray:
    """Texture coordinates, after `checked_field` of each."""
    values = np.asarray(values)
    if values.shape[1] != 2:
        raise PliantError(f"field {UV!r} must have shape ({n}, 2), got {values.shape}.")
    return np.stack([checked_field(UV, column, n) for column in values.T], axis=1)


def checked_faces(mesh: TriMesh) -> np.ndarray:
    """The faces as int32 of shape (m, 3), after a look that they point to vertices."""
    faces = np.asarray(mesh.faces)
    if faces.ndim != 2 or faces.shape[1] != 3 or faces.dtype.kind not in "iu":
        raise PliantError(f"faces must be whole numbers of shape (m, 3), got {faces.dtype} {faces.shape}.")
    if faces.size and not 0 <= int(faces.min()) <= int(faces.max()) < len(mesh.vertices):
        raise PliantError(f"faces must point to vertices 0 to {len(mesh.vertices) - 1}, got {_span(faces)}.")
    return np.ascontiguousarray(faces, "<i4")


def narrowed(name: str, values: np.ndarray, dtype: str, file_format: str) -> np.ndarray:
    """`values` in a smaller number type: doubles are rounded, but a number that does not fit at all is refused."""
    wanted = np.dtype(dtype)
    if wanted.kind in "iu":
        low, high = np.iinfo(wanted).min, np.iinfo(wanted).max
        if values.size and not low <= int(values.min()) <= int(values.max()) <= high:
            raise _misfit(name, values, f"whole numbers from {low} to {high}", file_format)
        return values.astype(wanted, copy=False)
    with np.errstate(over="ignore"):
        result = values.astype(wanted, copy=False)
    if values.dtype.itemsize > wanted.itemsize and np.any(np.isinf(result) & np.isfinite(values)):
        raise _misfit(name, values, f"{wanted.name}, up to {np.finfo(wanted).max:.3g}", file_format)
    return result


def _misfit(name: str, values: np.ndarray, kind: str, file_format: str) -> PliantError:
    given = _span(values)
    return PliantError(f"{file_format} stores {name!r} as {kind}, got {given}; .vtu and .npz have room for these.")


def _span(values: np.ndarray) -> str:
    return f"{values.min()} to {values.max()}"


def item_fields(name: str, values: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """A file's (n, k) array as fields: scalar, vector or tensor by its `k`, or `name_0`, `name_1`... for any other."""
    n, k = values.shape
    shape = {1: (), 3: (3,), 9: (3, 3)}.get(k)
    if shape is None:
        yield from ((f"{name}_{i}", values[:, i]) for i in range(k))
    else:
        yield name, values.reshape(n, *shape)


def grouped(columns: Iterable[tuple[str, str]], aliases: Mapping[str, tuple[str, ...]]) -> Layout:
    """Columns (name, number type) as fields: `a_x a_y a_z` of one type in a row is the vector `a`, and so on.

    `aliases` names vectors whose columns follow another convention, such as normal: (nx, ny, nz).
    """
    columns, fields, i = list(columns), [], 0
    while i < len(columns):
        name, dtype = columns[i]
        found: tuple[str, tuple[int, ...]] = (name, ())
        for field, parts in aliases.items():
            if columns[i : i + len(parts)] == [(part, dtype) for part in parts]:
                found = (field, (len(parts),))
        for shape in ((3, 3), (3,)):
            base = name.removesuffix(SUFFIXES[shape][0])
            if base and columns[i : i + len(SUFFIXES[shape])] == [(base + s, dtype) for s in SUFFIXES[shape]]:
                found = (base, shape)
                break
        fields.append((found[0], dtype, found[1]))
        i += int(np.prod(found[1], dtype=int))
    return fields
