"""What the USD writer and reader agree on: where things stand on the stage, and how numbers are stored.

The stage: `/scene` (an Xform whose `pliant:time` is the time in seconds, sampled at every frame) with the scopes
`bodies` (Points), `walls` (Mesh, or Xform for walls without one) and `surfaces` (Mesh). Prims and primvars carry their
true name in the custom data `name`, as USD's own names are ASCII identifiers; primvars also `unit` and `dtype`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pliant.errors import PliantError
from pliant.io.arrays import UV, narrowed

ROOT, BODIES, WALLS, SURFACES = "/scene", "bodies", "walls", "surfaces"
TIME = "pliant:time"
POSITION = "x"  # what positions are called among the fields
SUFFIXES = (".usd", ".usdc")  # binary "crate" files: text (.usda) cannot be written frame by frame
# Fields that have a place of their own in the schemas (UsdGeomPoints, UsdGeomMesh), which renderers know.
CLOUD_ATTRIBUTES = {"velocity": "velocities", "id": "ids"}
MESH_ATTRIBUTES = {"velocity": "velocities", "normal": "normals"}
PRIMVARS = {UV: "st"}  # fields whose primvar has a name that renderers know
_EXACT_DOUBLE = 1 << 53  # whole numbers up to here are doubles too


@dataclass(frozen=True)
class Storage:
    """How an array is stored: the name of its type in `Sdf.ValueTypeNames` and of its `Vt` array, and the numbers."""

    sdf: str
    vt: str
    dtype: str


_SCALARS = {
    "f2": Storage("HalfArray", "HalfArray", "f2"), "f4": Storage("FloatArray", "FloatArray", "f4"),
    "f8": Storage("DoubleArray", "DoubleArray", "f8"), "b1": Storage("BoolArray", "BoolArray", "b1"),
    "u1": Storage("UCharArray", "UCharArray", "u1"), "u4": Storage("UIntArray", "UIntArray", "u4"),
    "i8": Storage("Int64Array", "Int64Array", "i8"), "u8": Storage("UInt64Array", "UInt64Array", "u8"),
}  # fmt: skip
_INT = Storage("IntArray", "IntArray", "i4")
_INTS = Storage("Int3Array", "Vec3iArray", "i4")
_VECTORS = {
    "f2": Storage("Vector3hArray", "Vec3hArray", "f2"), "f4": Storage("Vector3fArray", "Vec3fArray", "f4"),
    "f8": Storage("Vector3dArray", "Vec3dArray", "f8"),
}  # fmt: skip
_PAIRS = {
    "f4": Storage("TexCoord2fArray", "Vec2fArray", "f4"), "f8": Storage("TexCoord2dArray", "Vec2dArray", "f8"),
}  # fmt: skip
_TENSORS = Storage("Matrix3dArray", "Matrix3dArray", "f8")


def storage(values: np.ndarray) -> Storage:
    """The smallest type that holds such numbers: all scalars and float vectors as they are, tensors as doubles."""
    code = values.dtype.str[1:]
    if values.ndim == 1:
        return _SCALARS.get(code, _INT)
    if values.shape[1] == 2:
        return _PAIRS.get(code, _PAIRS["f8"])
    return _VECTORS.get(code, _INTS) if values.ndim == 2 else _TENSORS


def packed(vt: Any, name: str, values: np.ndarray, kind: Storage) -> Any:
    """`values` as a `Vt` array, or a sentence where the type cannot hold them."""
    if kind.dtype == "f8" and values.dtype.kind in "iu" and values.size:
        if max(-int(values.min()), int(values.max())) > _EXACT_DOUBLE:
            raise PliantError(f"USD stores field {name!r} as doubles, which cannot hold numbers as large as its.")
    return getattr(vt, kind.vt).FromNumpy(np.ascontiguousarray(narrowed(name, values, kind.dtype, "USD")))


def load_usd() -> tuple[Any, Any, Any, Any, Any, Any]:
    """The modules (Gf, Sdf, Tf, Usd, UsdGeom, Vt) of OpenUSD, which is optional."""
    try:
        from pxr import Gf, Sdf, Tf, Usd, UsdGeom, Vt
    except ImportError as error:
        raise PliantError('USD files need OpenUSD, which is not installed: pip install "pliant[usd]".') from error
    return Gf, Sdf, Tf, Usd, UsdGeom, Vt


def missing_usd() -> str | None:
    """None if USD files can be written and read here, otherwise one sentence on what is missing."""
    try:
        load_usd()
    except PliantError as error:
        return str(error)
    return None


def complaint(error: Any) -> str:
    """What OpenUSD's first error says, without the place in its source."""
    first = error.args[0] if error.args else error
    return " ".join(str(getattr(first, "commentary", first)).split()).rstrip(".")


def check_suffix(path: Any) -> None:
    """Refuses a name by which other programs would not know the file."""
    if not str(path).lower().endswith(SUFFIXES):
        raise PliantError(f"a USD file must end with one of {', '.join(SUFFIXES)}, got {path}.")
