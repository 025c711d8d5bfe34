"""Forms of shapes whose distance has no closed form on the device (meshes, combinations): a grid of distances, kept on
disk like the maps of walls, and features of the surface."""

import hashlib
from typing import Any, NamedTuple

import numpy as np

from pliant.core.cache import cache_folder, keep, kept
from pliant.errors import PliantError
from pliant.geometry.mesh import Mesh
from pliant.geometry.shapes import Array, Shape
from pliant.geometry.surface import Surface
from pliant.geometry.surface_sampling import sample_surface
from pliant.solvers.rigid.distances import spline_coefficients

CELLS = 64  # along the longest side, ...
FEWEST_CELLS = 12  # ...and across the shortest one, so that plates have room for both of their faces
PADDING = 4  # cells beside the shape: beyond them a distance is extrapolated
QUERY = 200_000  # points asked for at a time: bounds memory
MOST_EDGES, MOST_VERTICES = 1024, 8192  # of a surface that has more they are thinned out
FACE_POINTS, SMOOTH_POINTS = 200, 4000  # on faces beside vertices; on a smooth surface
BENT = np.cos(np.radians(1.0))  # edges whose faces turn by more are features, if they are few
ON_EDGE = 1e-4  # of the size of a surface: what is nearer to an edge lies on it
GRID_VERSION = 1


class DistanceGrid(NamedTuple):
    """Spline coefficients at nodes, x fastest."""

    values: np.ndarray  # (nodes,) float32
    dims: np.ndarray  # (3,)
    origin: np.ndarray  # (3,) [m] of the first node
    cell: np.ndarray  # (3,) [m]
    thickness: float  # [m] diameter of the largest ball inside


def distance_grid(shape: Shape) -> DistanceGrid:
    """In the frame of the shape."""
    bounds = shape.bounds()
    if not np.isfinite(bounds).all():
        raise PliantError(f"{type(shape).__name__} is infinite, so that nothing can be in contact with it; "
                          "intersect it with a Box, or take a Plane.")  # fmt: skip
    name = f"contact grid {GRID_VERSION} {CELLS} {FEWEST_CELLS} {PADDING} {shape.key()}"
    path = cache_folder() / "maps" / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.npz"
    stored: Any = kept(path, DistanceGrid._fields)
    if stored is None:
        stored = _sampled(shape, bounds)._asdict()
        keep(path, {name: np.asarray(value) for name, value in stored.items()})
    return DistanceGrid(**(stored | {"thickness": float(stored["thickness"])}))


def _sampled(shape: Shape, bounds: Array) -> DistanceGrid:
    extent = np.maximum(bounds[1] - bounds[0], 1e-9)
    cells = np.clip(np.ceil(CELLS * extent / extent.max()), FEWEST_CELLS, CELLS).astype(int)
    cell = extent / cells
    dims = cells + 1 + 2 * PADDING
    origin = bounds[0] - PADDING * cell
    index = np.stack(np.meshgrid(*[np.arange(k) for k in dims], indexing="ij"), -1).reshape(-1, 3)
    phi = np.concatenate([shape.exact_distance(origin + index[lo : lo + QUERY] * cell)
                          for lo in range(0, len(index), QUERY)]).reshape(dims)  # fmt: skip
    values = spline_coefficients(phi).transpose(2, 1, 0).reshape(-1).astype(np.float32)
    return DistanceGrid(values, dims, origin, cell, 2.0 * max(-float(phi.min()), 1e-6 * extent.max()))


def surface_features(shape: Shape) -> tuple[tuple[Array, Array], ...]:
    """Vertices, ends (m, 2, 3) of edges, and points on faces, each with the directions out of the solid: of a surface
    of many pieces the edges that are sharp, and as many vertices and points as a contact needs to stand on."""
    surface = shape.surface if isinstance(shape, Mesh) else Surface(*shape.triangles())
    edges, outs = surface.sharp_edges(BENT)
    if len(edges) > MOST_EDGES:
        edges, outs = surface.sharp_edges()
    if len(edges) > MOST_EDGES:  # short pieces of curves, which their ends stand for
        length = np.linalg.norm(np.diff(surface.vertices[edges], axis=1)[:, 0], axis=1)
        longest = np.sort(np.argsort(-length, kind="stable")[:MOST_EDGES])
        edges, outs = edges[longest], outs[longest]
    few = len(surface.vertices) <= MOST_VERTICES
    vertices = np.unique(surface.faces if few else surface.sharp_edges()[0])
    vertices = vertices[:: 1 + len(vertices) // MOST_VERTICES]
    points, normals = sample_surface(shape, count=FACE_POINTS if few else SMOOTH_POINTS)
    inner = _beside(points, surface.vertices[edges], ON_EDGE * float(np.ptp(surface.bounds, axis=0).max()))
    on_faces = points[inner], normals[inner]
    corners = surface.vertices[vertices], _vertex_normals(surface)[vertices]
    return corners, (surface.vertices[edges], outs), on_faces


def _beside(points: Array, edges: Array, near: float) -> Array:
    """Which points are farther than `near` from all edges (m, 2, 3), which stand for them."""
    beside = np.ones(len(points), bool)
    for a, b in edges:
        along = b - a
        share = np.clip((points - a) @ along / max(float(along @ along), 1e-300), 0.0, 1.0)
        beside &= np.linalg.norm(points - a - share[:, None] * along, axis=1) > near
    return beside


def _vertex_normals(surface: Surface) -> Array:
    """Sums of the unit normals of the faces around, by their angles (Thürmer and Wüthrich 1998)."""
    corners = surface.vertices[surface.faces]
    area = surface.face_normals
    unit = area / np.maximum(np.linalg.norm(area, axis=1), 1e-300)[:, None]
    result = np.zeros_like(surface.vertices)
    for k in range(3):
        a, b = corners[:, k - 2] - corners[:, k], corners[:, k - 1] - corners[:, k]
        angle = np.arctan2(np.linalg.norm(np.cross(a, b), axis=1), np.einsum("fk,fk->f", a, b))
        np.add.at(result, surface.faces[:, k], angle[:, None] * unit)
    return result
