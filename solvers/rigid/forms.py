"""Collision forms: what a rigid body's shape is for contacts.

A form has a signed distance (its `parts`, see `distances.py`) and features: points, segments and circles with a radius,
whose offset is its surface. Two bodies touch where a feature of one comes near the surface of the other, both ways: for
a convex polyhedron vertices and edges are enough, a ball is its centre with a radius, a capsule its axis, a cylinder
its two rims and its axis, a torus its ring. Planes and containers have distances only; a container that has corners is
as many parts as it has smooth sides, for a body in a corner touches each of them.
"""

import dataclasses
from typing import Any

import numpy as np

from pliant.geometry.moved import Moved
from pliant.geometry.primitives import Box, Capsule, Cylinder, Plane, Sphere, Torus
from pliant.geometry.shapes import Array, Shape
from pliant.solvers.rigid import distances as d
from pliant.solvers.rigid.features import CIRCLE, COLUMNS, POINT, SEGMENT, feature, grouped
from pliant.solvers.rigid.grids import distance_grid, surface_features

RIM_SHARE = 1e-3  # of the least thickness of a form by which points may overhang its faces
CORNERS = np.array([[2 * (k >> axis & 1) - 1 for axis in range(3)] for k in range(8)], float)  # by the bits of k
EDGES = np.array([[axis, first, first | 1 << axis] for axis in range(3) for first in range(8) if not first >> axis & 1])


@dataclasses.dataclass(frozen=True, eq=False)
class Form:
    """A shape in its own frame, shared by all bodies that have it."""

    parts: np.ndarray  # (k, PARTS) float32, rows of the table of distances
    features: np.ndarray  # (f, COLUMNS) float32
    groups: np.ndarray  # (g, GROUP_COLUMNS) of features that are near to each other
    low: np.ndarray  # (3,) [m] bounds
    high: np.ndarray
    thickness: float  # [m] the least there is: what is small beside it does not matter
    grid: np.ndarray | None = None  # nodes of a distance that has no closed form

    @property
    def is_box(self) -> bool:
        return len(self.parts) == 1 and self.parts[0, d.KIND] == d.BOX and self.parts[0, d.SIGN] > 0.0


@dataclasses.dataclass(frozen=True, eq=False)
class PlacedForm:
    """A form in the frame of a body: x_body = rotation x_form + offset."""

    form: Form
    rotation: np.ndarray  # (3, 3)
    offset: np.ndarray  # (3,) [m]


_forms: dict[tuple, Form] = {}


def form_of(shape: Shape, pivot: Any = (0.0, 0.0, 0.0), inside_out: bool = False) -> PlacedForm:
    """The form of a body that has this shape and turns about `pivot` [m]; of a container that is solid around the shape
    if `inside_out`."""
    scale, rotation, offset = 1.0, np.eye(3), np.zeros(3)
    while isinstance(shape, Moved):
        s, R, t = shape.placement()
        scale, rotation, offset = scale * s, rotation @ R, scale * rotation @ t + offset
        shape = shape.shape
    own_rotation, own_offset = _frame(shape)
    offset = offset + scale * rotation @ own_offset - np.asarray(pivot, float)
    key = (shape.key(), float(scale), inside_out)
    if key not in _forms:
        _forms[key] = _made(shape, float(scale), inside_out, own_offset)
    return PlacedForm(_forms[key], rotation @ own_rotation, offset)


def _frame(shape: Shape) -> tuple[Array, Array]:
    """Rotation and origin of the frame of a form: the centre of the shape, and z along its axis or normal."""
    rotation = np.eye(3)
    if isinstance(shape, (Cylinder, Capsule, Torus)):
        axis = "xyz".index(shape.axis)
        rotation = np.eye(3)[:, [(axis + 1) % 3, (axis + 2) % 3, axis]]
    if isinstance(shape, Plane):  # in double precision, for a plane is large
        normal = np.asarray(shape.normal, float) / np.linalg.norm(shape.normal)
        first = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
        first /= np.linalg.norm(first)
        return np.stack([first, np.cross(normal, first), normal], axis=1), np.asarray(shape.point, float)
    if isinstance(shape, (Box, Sphere, Cylinder, Capsule, Torus)):
        return rotation, np.asarray(shape.center, float)
    return rotation, shape.middle()


def _made(shape: Shape, scale: float, inside_out: bool, middle: Array) -> Form:
    makers: dict[type, Any] = {Box: _box, Sphere: _ball, Cylinder: _cylinder, Capsule: _capsule, Torus: _torus,
                               Plane: _plane}  # fmt: skip
    form = makers[type(shape)](shape, scale) if type(shape) in makers else _gridded(shape, scale, middle)
    return _turned_inside_out(form) if inside_out else form


def part(kind: int, sizes: Any, extent: Any, thickness: float, detail: float = d.UNBOUNDED) -> np.ndarray:
    """A row of the table of distances. What is not convex is sampled every `detail` [m] along curves."""
    row = np.zeros((1, d.PARTS), np.float32)
    row[0, d.KIND], row[0, d.SIGN] = kind, 1.0
    row[0, d.SIZES : d.SIZES + len(sizes)] = sizes
    row[0, d.RIM], row[0, d.DETAIL] = RIM_SHARE * thickness, detail
    row[0, d.LOW : d.LOW + 3], row[0, d.HIGH : d.HIGH + 3] = -np.asarray(extent), extent
    return row


def _form(parts: np.ndarray, features: list[Array], extent: Any, thickness: float) -> Form:
    table = grouped(np.array(features, np.float32).reshape(-1, COLUMNS))
    return Form(parts, *table, -np.asarray(extent, float), np.asarray(extent, float), thickness)


def _box(shape: Box, scale: float) -> Form:
    half = 0.5 * scale * np.asarray(shape.size, float)
    corners, thickness = half * CORNERS, 2.0 * float(half.min())
    features = [feature(POINT, 0.0, half * x, out=x) for x in CORNERS]
    features += [feature(SEGMENT, 0.0, corners[i], corners[j] - corners[i], out=CORNERS[i] + CORNERS[j])
                 for _, i, j in EDGES]  # fmt: skip
    return _form(part(d.BOX, half, half, thickness), features, half, thickness)


def _ball(shape: Sphere, scale: float) -> Form:
    r = scale * shape.radius
    return _form(part(d.BALL, [r], np.full(3, r), 2 * r), [feature(POINT, r, (0, 0, 0))], np.full(3, r), 2 * r)


def _cylinder(shape: Cylinder, scale: float) -> Form:
    r, half = scale * shape.radius, 0.5 * scale * shape.height
    thickness, extent = 2.0 * min(r, half), np.array([r, r, half])
    features = [feature(CIRCLE, 0.0, (0, 0, z), (r, 0, 0), (0, r, 0), (1, 0, np.sign(z))) for z in (-half, half)]
    features.append(feature(SEGMENT, r, (0, 0, -half), (0, 0, 2 * half), flat_ends=True))
    return _form(part(d.CYLINDER, [r, half], extent, thickness), features, extent, thickness)


def _capsule(shape: Capsule, scale: float) -> Form:
    r, half = scale * shape.radius, 0.5 * scale * shape.height
    features = [feature(POINT, r, (0, 0, z)) for z in (-half, half)]
    features.append(feature(SEGMENT, r, (0, 0, -half), (0, 0, 2 * half)))
    extent = np.array([r, r, half + r])
    return _form(part(d.CAPSULE, [r, half], extent, 2 * r), features, extent, 2 * r)


def _torus(shape: Torus, scale: float) -> Form:
    ring, tube = scale * shape.radius, scale * shape.tube
    features = [feature(CIRCLE, tube, (0, 0, 0), (ring, 0, 0), (0, ring, 0))]
    extent = np.array([ring + tube, ring + tube, tube])
    return _form(part(d.TORUS, [ring, tube], extent, 2 * tube, detail=tube), features, extent, 2 * tube)


def _plane(shape: Plane, scale: float) -> Form:
    extent = np.full(3, d.UNBOUNDED)
    return _form(part(d.PLANE, (0.0, 0.0, 1.0), extent, d.UNBOUNDED), [], extent, d.UNBOUNDED)


def _gridded(shape: Shape, scale: float, middle: Array) -> Form:
    """Of whatever has a distance and a surface."""
    grid = distance_grid(shape)
    (corners, corner_outs), (ends, edge_outs), (points, normals) = surface_features(shape)
    features = [feature(POINT, 0.0, x, out=n) for x, n in zip(scale * (corners - middle), corner_outs, strict=True)]
    features += [feature(SEGMENT, 0.0, x, y - x, out=n)
                 for (x, y), n in zip(scale * (ends - middle), edge_outs, strict=True)]  # fmt: skip
    features += [feature(POINT, 0.0, x, out=n, rank=1) for x, n in zip(scale * (points - middle), normals, strict=True)]
    cell, last = scale * grid.cell, grid.dims - 1
    origin, thickness = scale * (grid.origin - middle), scale * grid.thickness
    row = part(d.GRID, (), np.zeros(3), thickness, detail=d.NODES_READ * float(cell.min()))
    for column, values in ((d.LOW, origin + cell), (d.HIGH, origin + (last - 1) * cell), (d.ORIGIN, origin),
                           (d.PER_CELL, 1.0 / cell), (d.DIMS, grid.dims)):  # fmt: skip
        row[0, column : column + 3] = values
    low, high = scale * (shape.bounds() - middle)
    return Form(row, *grouped(np.array(features, np.float32)), low, high, thickness, scale * grid.values)


def _turned_inside_out(form: Form) -> Form:
    """All of space but the form, cut into its smooth sides."""
    row, sides = form.parts[0], []
    kind, sizes = int(row[d.KIND]), row[d.SIZES : d.SIZES + 3]
    if kind == d.BOX:
        sides = [(axis, sign, sizes[axis]) for axis in range(3) for sign in (-1, 1)]
    elif kind == d.CYLINDER:
        sides = [(2, sign, sizes[1]) for sign in (-1, 1)]
    elif kind == d.PLANE:
        return _form(part(d.PLANE, -sizes, form.high, d.UNBOUNDED), [], form.high, d.UNBOUNDED)
    extent = np.full(3, d.UNBOUNDED)
    planes = [part(d.PLANE, -sign * np.eye(3)[axis], extent, d.UNBOUNDED) for axis, sign, _ in sides]
    for plane, (_, _, half) in zip(planes, sides, strict=True):
        plane[0, d.OFFSET] = -half
    curved = form.parts.copy()
    curved[0, d.KIND], curved[0, d.SIGN] = d.TUBE if kind == d.CYLINDER else kind, -1.0
    if kind != d.GRID:
        curved[0, d.LOW : d.LOW + 3], curved[0, d.HIGH : d.HIGH + 3] = -extent, extent
    parts = np.concatenate(planes if kind == d.BOX else [curved, *planes])
    return Form(parts, *grouped(np.zeros((0, COLUMNS), np.float32)), -extent, extent, d.UNBOUNDED, form.grid)
