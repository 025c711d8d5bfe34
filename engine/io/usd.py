"""A whole run in one USD file, for Blender, Houdini, Omniverse, Unreal: particles, walls and surfaces over time.

Bodies are UsdGeomPoints and surfaces UsdGeomMesh, sampled at each frame, with time code = frame index; walls are
written once and moved by a sampled transform (OpenUSD, "UsdGeom: USD Geometry Schema"). Positions and velocities are
single precision, as the schemas ask; where they are doubles, a primvar beside them keeps them as they are. See
`usd_types.py` for the layout.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from pliant.core.data import Cloud, Snapshot, TriMesh
from pliant.errors import PliantError
from pliant.io.arrays import checked_faces, checked_fields, checked_positions, narrowed
from pliant.io.files import atomic_write
from pliant.io.usd_types import (
    BODIES,
    CLOUD_ATTRIBUTES,
    MESH_ATTRIBUTES,
    POSITION,
    PRIMVARS,
    ROOT,
    SURFACES,
    TIME,
    WALLS,
    check_suffix,
    complaint,
    load_usd,
    packed,
    storage,
)

Radius: TypeAlias = "float | Mapping[str, float] | None"

_FLUSH_BYTES = 1 << 26  # samples held in memory before they go to disk; each flush also rewrites the table of samples


def write_usd(
    path: str | os.PathLike,
    snapshots: Iterable[Snapshot],
    fps: float,
    walls: Mapping[str, TriMesh] | None = None,
    radius: Radius = None,
) -> None:
    """Writes `snapshots`, which may come one by one from a running simulation, with the `walls` as they were built.

    `fps` [1/s] is how fast other programs play the frames; `radius` [m] is that of the particles, of all or by body
    (their fields `radius` go before it). The file appears once it is whole.
    """
    with usd_writer(path, fps, walls, radius) as writer:
        for snapshot in snapshots:
            writer.add(snapshot)


@contextlib.contextmanager
def usd_writer(
    path: str | os.PathLike, fps: float, walls: Mapping[str, TriMesh] | None = None, radius: Radius = None
) -> Iterator["UsdWriter"]:
    """`write_usd` for those who have no iterable: `add` each snapshot inside, and the file appears at the end."""
    check_suffix(path)
    if not fps > 0:
        raise PliantError(f"fps must be positive, got {fps}.")
    tf = load_usd()[2]
    with atomic_write(path) as file:
        file.close()  # OpenUSD writes to the name itself
        try:
            with contextlib.closing(UsdWriter(Path(file.name), fps, radius)) as writer:
                for name, mesh in (walls or {}).items():
                    writer.add_wall(name, mesh)
                yield writer
                writer.save()
        except tf.ErrorException as error:
            raise PliantError(f"cannot write {path}: OpenUSD says {complaint(error)!r}.") from error


class UsdWriter:
    """A stage that grows by one frame at a time; from `usd_writer`."""

    def __init__(self, path: Path, fps: float, radius: Radius):
        self._gf, sdf, self._tf, usd, self._geom, self._vt = load_usd()
        self._sdf, self._radius, self._always = sdf, radius, usd.TimeCode.Default()
        self._layer = sdf.Layer.New(sdf.FileFormat.FindById("usdc"), str(path))
        self._stage = stage = usd.Stage.Open(self._layer)
        self._geom.SetStageUpAxis(stage, self._geom.Tokens.y)
        self._geom.SetStageMetersPerUnit(stage, 1.0)
        stage.SetTimeCodesPerSecond(fps)
        stage.SetFramesPerSecond(fps)
        root = self._geom.Xform.Define(stage, ROOT)
        stage.SetDefaultPrim(root.GetPrim())
        for scope in (BODIES, WALLS, SURFACES):
            self._geom.Scope.Define(stage, f"{ROOT}/{scope}")
        self._time = root.GetPrim().CreateAttribute(TIME, sdf.ValueTypeNames.Double, True)
        self._frames: list[int] = []  # the first and the last
        self._prims: dict[tuple[str, str], Any] = {}  # schema objects by scope and true name
        self._paths: set[str] = set()
        self._shown: dict[tuple[str, str], bool] = {}
        self._faces: dict[str, np.ndarray] = {}  # of each surface as last written
        self._pending = 0

    def add(self, snapshot: Snapshot) -> None:
        """Writes one frame; its index must be above that of the one before."""
        frame = int(snapshot.index)
        if self._frames and frame <= self._frames[-1]:
            raise PliantError(f"frames must come in order, got {frame} after {self._frames[-1]}.")
        self._set(self._time, float(snapshot.time), frame)
        for name, cloud in snapshot.clouds.items():
            self._add_cloud(name, cloud, frame)
        for name, mesh in snapshot.meshes.items():
            self._add_surface(name, mesh, frame)
        self._move_walls(snapshot.poses, frame)
        present = {(BODIES, name) for name in snapshot.clouds} | {(SURFACES, name) for name in snapshot.meshes}
        self._show(present, frame)
        self._frames = [*self._frames[:1], frame]
        if self._pending > _FLUSH_BYTES:
            self.save()

    def save(self) -> None:
        """Appends what is new to the file, after which OpenUSD no longer holds it in memory."""
        if self._frames:
            self._stage.SetStartTimeCode(self._frames[0])
            self._stage.SetEndTimeCode(self._frames[-1])
        self._layer.Save()
        self._pending = 0

    def close(self) -> None:
        """Lets go of the stage: while it lives, OpenUSD refuses another of the same name."""
        self._prims.clear()
        del self._time, self._stage, self._layer

    def add_wall(self, name: str, mesh: TriMesh) -> None:
        """Writes a wall as it was built."""
        prim = self._prim(WALLS, name, self._geom.Mesh)
        self._set_mesh(prim, mesh, None)

    def _add_cloud(self, name: str, cloud: Cloud, frame: int) -> None:
        points = self._prim(BODIES, name, self._geom.Points)
        x = checked_positions(cloud.x)
        fields = checked_fields(cloud, len(x))
        self._set_vectors(points, "points", POSITION, x, frame)
        constant = "radius" not in fields or fields["radius"].ndim != 1
        given = self._radius.get(name) if isinstance(self._radius, Mapping) else self._radius
        radius = np.array([given or 0.0]) if constant else fields["radius"]
        if radius.any():
            points.SetWidthsInterpolation(self._geom.Tokens.constant if constant else self._geom.Tokens.vertex)
            widths = narrowed("radius", 2.0 * radius, "f4", "USD")
            self._set(points.CreateWidthsAttr(), self._vt.FloatArray.FromNumpy(widths), frame, widths.nbytes)
        self._set_extent(points, x, float(radius.max(initial=0.0)), frame)
        self._set_fields(points, fields, cloud.units, CLOUD_ATTRIBUTES, frame)

    def _add_surface(self, name: str, mesh: TriMesh, frame: int) -> None:
        self._set_mesh(self._prim(SURFACES, name, self._geom.Mesh), mesh, frame, name)

    def _set_mesh(self, prim: Any, mesh: TriMesh, frame: int | None, name: str | None = None) -> None:
        vertices, faces = checked_positions(mesh.vertices, "vertices"), checked_faces(mesh)
        self._set_vectors(prim, "points", POSITION, vertices, frame)
        before = self._faces.get(name) if name is not None else None
        if before is None or not np.array_equal(before, faces):
            counts, indices = (self._vt.IntArray.FromNumpy(a) for a in (np.full(len(faces), 3, "i4"), faces.ravel()))
            self._set(prim.CreateFaceVertexCountsAttr(), counts, frame)
            self._set(prim.CreateFaceVertexIndicesAttr(), indices, frame, faces.nbytes)
            prim.CreateSubdivisionSchemeAttr(self._geom.Tokens.none)
        if name is not None:
            self._faces[name] = faces
        self._set_extent(prim, vertices, 0.0, frame)
        fields = checked_fields(mesh, len(vertices))
        if "normal" in fields:
            prim.SetNormalsInterpolation(self._geom.Tokens.vertex)
        self._set_fields(prim, fields, mesh.units, MESH_ATTRIBUTES, frame)

    def _set_fields(self, prim: Any, fields: dict, units: dict, attributes: dict[str, str], frame: int | None) -> None:
        """Each field to its place in the schema if it has one and fits it, or to a primvar."""
        for name, values in fields.items():
            unit = units.get(name, "")
            if name == POSITION:
                raise PliantError(f"a field in a USD file cannot be called {name!r}: rename it.")
            elif name == "id" and name in attributes and values.ndim == 1 and values.dtype.kind in "iu":
                ids = self._vt.Int64Array.FromNumpy(narrowed(name, values, "i8", "USD"))
                attribute = prim.CreateIdsAttr()
                self._set(attribute, ids, frame, 8 * len(values))
                self._label(attribute, name, unit, values)
            elif name in attributes and values.shape[1:] == (3,) and values.dtype.kind == "f":
                self._set_vectors(prim, attributes[name], name, values, frame, unit)
            else:
                self._set_primvar(prim, name, values, frame, unit)

    def _set_vectors(self, prim: Any, place: str, name: str, values: np.ndarray, frame: Any, unit: str = "") -> None:
        """Vectors that the schema wants in single precision; doubles go to a primvar besides, as they are."""
        single = np.ascontiguousarray(narrowed(name, values, "f4", "USD"))
        sink = getattr(prim, f"Create{place.capitalize()}Attr")()
        self._set(sink, self._vt.Vec3fArray.FromNumpy(single), frame, single.nbytes)
        self._label(sink, name, unit, values)
        if values.dtype.itemsize > single.dtype.itemsize:
            self._set_primvar(prim, name, values, frame, unit)

    def _set_primvar(self, prim: Any, name: str, values: np.ndarray, frame: Any, unit: str) -> None:
        kind = storage(values)
        api = self._geom.PrimvarsAPI(prim.GetPrim())
        word = PRIMVARS.get(name) or self._tf.MakeValidIdentifier(name)
        while api.HasPrimvar(word) and api.GetPrimvar(word).GetAttr().GetCustomDataByKey("name") != name:
            word += "_"
        primvar = api.CreatePrimvar(word, getattr(self._sdf.ValueTypeNames, kind.sdf), self._geom.Tokens.vertex)
        self._set(primvar.GetAttr(), packed(self._vt, name, values, kind), frame, values.nbytes)
        self._label(primvar.GetAttr(), name, unit, values)

    def _set_extent(self, prim: Any, x: np.ndarray, margin: float, frame: Any) -> None:
        if len(x):
            extent = np.array([x.min(axis=0) - margin, x.max(axis=0) + margin], np.float32)
            self._set(prim.CreateExtentAttr(), self._vt.Vec3fArray.FromNumpy(extent), frame)

    def _move_walls(self, poses: dict[str, np.ndarray], frame: int) -> None:
        """The pose of every wall that has ever moved: USD would keep, or blend into, what a frame leaves out."""
        for name in poses:
            key = (WALLS, name)
            prim = self._prims.get(key) or self._prim(WALLS, name, self._geom.Xform)
            if not prim.GetOrderedXformOps():
                prim.AddTransformOp()
                if self._frames:
                    self._place(prim, np.eye(4), self._frames[-1])
        for (scope, name), prim in self._prims.items():
            if scope == WALLS and prim.GetOrderedXformOps():
                self._place(prim, poses.get(name, np.eye(4)), frame)

    def _place(self, prim: Any, pose: np.ndarray, frame: int) -> None:
        matrix = np.asarray(pose, np.float64)
        if matrix.shape != (4, 4):
            raise PliantError(f"a pose must have shape (4, 4), got {matrix.shape}.")
        # USD multiplies row vectors from the left, x' = x M: our matrix transposed.
        prim.GetOrderedXformOps()[0].Set(self._gf.Matrix4d(matrix.T.tolist()), frame)

    def _show(self, present: set[tuple[str, str]], frame: int) -> None:
        """Hides what a frame does not have, where USD would go on showing its last, or already its first, sample."""
        for key, prim in self._prims.items():
            before = self._shown.get(key, not self._frames)
            if key[0] != WALLS and (key in present) != before:
                visibility = prim.CreateVisibilityAttr()
                if key not in self._shown:
                    visibility.Set(self._geom.Tokens.invisible, self._frames[0])
                visibility.Set(self._geom.Tokens.inherited if key in present else self._geom.Tokens.invisible, frame)
            self._shown[key] = key in present

    def _prim(self, scope: str, name: str, schema: Any) -> Any:
        """The prim of a body, wall or surface, made when first asked for under an identifier of its own."""
        if (scope, name) not in self._prims:
            path = f"{ROOT}/{scope}/{self._tf.MakeValidIdentifier(name)}"
            while path in self._paths:
                path += "_"
            self._paths.add(path)
            prim = self._prims[scope, name] = schema.Define(self._stage, path)
            prim.GetPrim().SetDisplayName(name)
            prim.GetPrim().SetCustomDataByKey("name", name)
        return self._prims[scope, name]

    def _set(self, attribute: Any, value: Any, frame: int | None, size: int = 0) -> None:
        attribute.Set(value, self._always if frame is None else frame)
        self._pending += size

    def _label(self, attribute: Any, name: str, unit: str, values: np.ndarray) -> None:
        attribute.SetCustomData({"name": name, "unit": unit, "dtype": values.dtype.name})
