"""Particles for NumPy: `np.load("water.npz")` gives `x`, every field by its name, and `units` as (name, unit) pairs.

An .npz is a zip of .npy files (NumPy, "numpy.lib.format"), stored uncompressed and without pickles. It is the one
particle format that keeps every number type, booleans and half floats included. `np.savez` itself is not used: it
cannot store a field named `file`, and `np.load` allocates whatever an array's header asks for.
"""

import os
import zipfile

import numpy as np

from pliant.core.data import Cloud
from pliant.errors import PliantError
from pliant.io.arrays import checked_field, checked_fields, checked_positions
from pliant.io.files import atomic_write
from pliant.io.reading import finite, foreign, reading, truncated
from pliant.io.registry import CLOUDS

_POSITIONS, _UNITS = "x", "units"
_DATE = (1980, 1, 1, 0, 0, 0)  # the first that zip knows: equal particles make equal files
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def write_npz(path: str | os.PathLike, cloud: Cloud) -> None:
    """Writes particles; no field may be called `x` or `units`, which stand for themselves."""
    for name in (_POSITIONS, _UNITS):
        if name in cloud.fields:
            raise PliantError(f"a field in an .npz file cannot be called {name!r}: rename it.")
    x = checked_positions(cloud.x)
    units = [(name, unit) for name, unit in cloud.units.items() if unit and name in cloud.fields]
    table = np.array(units, str).reshape(-1, 2)
    arrays = {_POSITIONS: x, **checked_fields(cloud, len(x)), _UNITS: table}
    with atomic_write(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, values in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy", _DATE), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values, allow_pickle=False)


def read_npz(path: str | os.PathLike) -> Cloud:
    """The particles in an .npz that holds positions as `x`."""
    with reading(path, ".npz"), zipfile.ZipFile(path) as archive:
        arrays = {info.filename.removesuffix(".npy"): _array(path, archive, info) for info in archive.infolist()}
        if _POSITIONS not in arrays:
            raise foreign(path, ".npz", f"it has no array {_POSITIONS!r}")
        x = finite(path, checked_positions(arrays.pop(_POSITIONS)), "particles")
        units = arrays.pop(_UNITS, np.zeros((0, 2), str))
        fields = {name: checked_field(name, values, len(x)) for name, values in arrays.items()}
        return Cloud(x, fields, {str(name): str(unit) for name, unit in units})


def _array(path: str | os.PathLike, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """One array, its shape believed only as far as the archive holds bytes for it."""
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        if version not in _HEADERS:
            raise foreign(path, ".npz", f"{info.filename} is of version {version[0]}.{version[1]}")
        shape, fortran_order, dtype = _HEADERS[version](member)
        if dtype.hasobject:
            raise foreign(path, ".npz", f"{info.filename} holds Python objects, not numbers")
        data = bytearray(member.read())  # as bytearray, so that the arrays can be written to
    promised = int(np.prod(shape, dtype=object))
    if promised * dtype.itemsize != len(data):
        raise truncated(path, promised, len(data) // max(dtype.itemsize, 1), f"numbers in {info.filename}")
    values = np.frombuffer(data, dtype) if data else np.zeros(promised, dtype)
    return values.reshape(shape, order="F" if fortran_order else "C")


CLOUDS.register(".npz", write_npz, read_npz)
