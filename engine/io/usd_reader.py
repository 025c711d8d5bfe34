"""Reads the USD files that Pliant writes, one frame at a time. See `usd_types.py` for what stands where."""

import contextlib
import os
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from pliant.core.data import Cloud, Snapshot, TriMesh
from pliant.errors import PliantError
from pliant.io.reading import finite, foreign, inside, reading
from pliant.io.usd_types import (
    BODIES,
    CLOUD_ATTRIBUTES,
    MESH_ATTRIBUTES,
    POSITION,
    ROOT,
    SURFACES,
    TIME,
    WALLS,
    complaint,
    load_usd,
)

_MAGIC = b"PXR-USDC"
_BOOTSTRAP = struct.Struct("<8s8xq64x")  # magic, version, where the table of contents is, reserved (crateFile.h)
_SECTION = struct.Struct("<16sqq")  # name, start, size


def read_usd(path: str | os.PathLike) -> "UsdSeries":
    """The frames and walls of a run: `for snapshot in read_usd("run.usd")` reads each frame when its turn comes."""
    with reading(path, "USD"):
        _check_whole(path)
    return UsdSeries(path)


class UsdSeries:
    """A run in a USD file: `walls` as they were built, `fps`, `times` [s], and the frames by position, `series[-1]`."""

    def __init__(self, path: str | os.PathLike):
        _, sdf, self._tf, usd, self._geom, _ = load_usd()
        self.path = path
        with self._reading():
            # Anonymous, because OpenUSD hands out its copy in memory of a file that has been written anew since.
            self._stage = usd.Stage.Open(sdf.Layer.OpenAsAnonymous(os.fspath(path)))
            time = self._stage.GetPrimAtPath(ROOT).GetAttribute(TIME) if self._stage.GetPrimAtPath(ROOT) else None
            if not time:
                raise foreign(path, "USD", f"it has no {ROOT}.{TIME}, which Pliant's own have")
            self.fps = float(self._stage.GetTimeCodesPerSecond())
            self._frames = [int(code) for code in time.GetTimeSamples()]
            self.times = [float(time.Get(frame)) for frame in self._frames]
            meshes = {name: self._geom.Mesh(prim) for name, prim in self._prims(WALLS) if prim.IsA(self._geom.Mesh)}
            self.walls = {name: self._mesh(mesh, None) for name, mesh in meshes.items()}

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        with reading(self.path, "USD"):
            try:
                yield
            except self._tf.ErrorException as error:
                raise PliantError(f"{self.path} is damaged: OpenUSD says {complaint(error)!r}.") from error

    def __len__(self) -> int:
        return len(self._frames)

    def __iter__(self) -> Iterator[Snapshot]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, position: int) -> Snapshot:
        frame = self._frames[position]
        with self._reading():
            return self._snapshot(frame, self.times[position])

    def _snapshot(self, frame: int, time: float) -> Snapshot:
        snapshot = Snapshot(frame, time)
        for name, prim in self._prims(BODIES):
            points = self._geom.Points(prim)
            if _sampled(points.GetPointsAttr(), frame):
                x, fields, units = self._fields(prim, CLOUD_ATTRIBUTES, frame)
                snapshot.clouds[name] = Cloud(finite(self.path, x, f"particles of {name!r}"), fields, units)
        for name, prim in self._prims(SURFACES):
            mesh = self._geom.Mesh(prim)
            if _sampled(mesh.GetPointsAttr(), frame):
                snapshot.meshes[name] = self._mesh(mesh, frame)
        for name, prim in self._prims(WALLS):
            for op in self._geom.Xformable(prim).GetOrderedXformOps():
                pose = np.array(op.Get(frame), np.float64).T
                if not np.array_equal(pose, np.eye(4)):
                    snapshot.poses[name] = pose
        return snapshot

    def _prims(self, scope: str) -> Iterator[tuple[str, Any]]:
        parent = self._stage.GetPrimAtPath(f"{ROOT}/{scope}")
        return ((_label(prim, "name", prim.GetName()), prim) for prim in (parent.GetChildren() if parent else ()))

    def _mesh(self, mesh: Any, frame: int | None) -> TriMesh:
        x, fields, units = self._fields(mesh.GetPrim(), MESH_ATTRIBUTES, frame)
        faces = _value(mesh.GetFaceVertexIndicesAttr(), frame, np.dtype(np.int32)).reshape(-1, 3)
        return TriMesh(finite(self.path, x, "vertices"), inside(self.path, faces, len(x)), fields, units)

    def _fields(self, prim: Any, attributes: dict[str, str], frame: int | None) -> tuple[np.ndarray, dict, dict]:
        """Positions, fields and units. A primvar goes before the schema's own attribute: it is the more precise."""
        sources = [prim.GetAttribute(name) for name in ("points", *attributes.values())]
        sources += [primvar.GetAttr() for primvar in self._geom.PrimvarsAPI(prim).GetAuthoredPrimvars()]
        fields: dict[str, np.ndarray] = {}
        units: dict[str, str] = {}
        for source in sources:
            name = _label(source, "name", "")
            if name and (source.HasAuthoredValue() if frame is None else _sampled(source, frame)):
                fields[name] = _value(source, frame, np.dtype(_label(source, "dtype", "float32")))
                if unit := _label(source, "unit", ""):
                    units[name] = unit
        return fields.pop(POSITION), fields, units


def _sampled(attribute: Any, frame: int) -> bool:
    """Whether the attribute has a sample of this very frame, and not one that lasts since an earlier."""
    bracket: tuple[float, ...] = attribute.GetBracketingTimeSamples(frame) if attribute else ()
    return len(bracket) > 0 and bracket[0] == frame


def _value(attribute: Any, frame: int | None, dtype: np.dtype) -> np.ndarray:
    return np.array(attribute.Get() if frame is None else attribute.Get(frame)).astype(dtype, copy=False)


def _label(thing: Any, key: str, default: str) -> str:
    value = thing.GetCustomDataByKey(key) if thing else None
    return value if isinstance(value, str) else default


def _check_whole(path: str | os.PathLike) -> None:
    """A crate file ends with its table of contents, so one that was cut anywhere has lost it."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        head = file.read(_BOOTSTRAP.size)
        if not head:
            raise PliantError(f"{path} is empty.")
        if not head.startswith(_MAGIC):
            raise foreign(path, "USD", "it is not a binary (crate) file")
        cut = PliantError(f"{path} is truncated: its table of contents is missing.")
        contents = _BOOTSTRAP.unpack(head)[1] if len(head) == _BOOTSTRAP.size else size
        if not _BOOTSTRAP.size <= contents <= size - 8:
            raise cut
        file.seek(contents)
        (sections,) = struct.unpack("<Q", file.read(8))
        if sections > (size - contents - 8) // _SECTION.size:
            raise cut
        for _, start, length in _SECTION.iter_unpack(file.read(sections * _SECTION.size)):
            if min(start, length) < 0 or start + length > size:
                raise cut
