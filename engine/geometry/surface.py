"""A triangulated surface, closed or not: distance, winding number, volume and edges.

libigl's `signed_distance` with the fast winding number returns distance * (1 - 2 w): away from the exact distance
wherever w is approximate. Distance and winding number are therefore asked for separately here.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import igl
import numpy as np
from numpy.typing import NDArray

from pliant.geometry.volumes import count_volume

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

CHUNK = 200_000  # query points at a time: bounds memory
SAME = 1e-9  # of the diagonal: vertices this close are one
SHARP = np.cos(np.radians(30.0))  # an edge whose faces turn by more is drawn
FEW_EDGES, MOST_EDGES = 24, 20_000  # of a drawing
OVERLAP = 1e-3  # part of the area that may lie inside another shell before the signed volume is not trusted


def clean(vertices: Array, faces: Integers) -> tuple[Array, Integers]:
    """Merges equal vertices, drops triangles that collapse by it and vertices without a triangle; keeps the order."""
    used = np.unique(faces)
    points = vertices[used]
    diagonal = float(np.linalg.norm(np.ptp(points, axis=0))) or 1.0
    cells = np.round((points - points[0]) / (SAME * diagonal)).astype(np.int64)
    _, first, inverse = np.unique(cells, axis=0, return_index=True, return_inverse=True)
    keep = np.sort(first)
    new = np.zeros(len(vertices), dtype=np.int64)
    new[used] = np.searchsorted(keep, first)[inverse.ravel()]
    faces = new[faces]
    whole = (faces != np.roll(faces, 1, axis=1)).all(axis=1)
    return np.ascontiguousarray(points[keep]), np.ascontiguousarray(faces[whole])


def edges(faces: Integers) -> tuple[Integers, Integers, Integers]:
    """Undirected edges (m, 2), the edge of each half-edge (3 f,), and the net direction (m,): 0 where closed."""
    half = faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    low, high = half.min(axis=1), half.max(axis=1)
    base = np.int64(faces.max() + 1)
    codes, inverse = np.unique(low * base + high, return_inverse=True)
    net = np.bincount(inverse, weights=np.where(half[:, 0] < half[:, 1], 1.0, -1.0), minlength=len(codes))
    return np.stack([codes // base, codes % base], axis=1), inverse, np.round(net).astype(np.int64)


def chunked(function: Callable[[Array], Any], points: Array) -> NDArray[Any]:
    """function(points), evaluated in pieces."""
    pieces = [function(points[i : i + CHUNK]) for i in range(0, len(points), CHUNK)]
    return np.concatenate(pieces) if pieces else np.zeros(0)


class Surface:
    """Triangles, cleaned and oriented outward; never changed after construction."""

    def __init__(self, vertices: Array, faces: Integers):
        self.vertices, faces = clean(vertices, faces)
        self.faces = _without_slivers(self.vertices, _oriented(self.vertices, faces)) if len(faces) else faces
        for array in (self.vertices, self.faces):
            array.flags.writeable = False

    def __getstate__(self) -> dict[str, Any]:
        return {"vertices": self.vertices, "faces": self.faces}  # libigl's trees do not pickle; they are rebuilt

    @cached_property
    def boundary_edges(self) -> int:
        """Edges along which the surface is open, or changes its orientation."""
        return int(np.count_nonzero(edges(self.faces)[2]))

    @property
    def closed(self) -> bool:
        return self.boundary_edges == 0

    @cached_property
    def bounds(self) -> Array:
        return np.stack([self.vertices.min(axis=0), self.vertices.max(axis=0)])

    @cached_property
    def _normals(self) -> Array:
        """(f, 3) area vectors: normal times area."""
        a, b, c = np.moveaxis(self.vertices[self.faces], 1, 0)
        return 0.5 * np.cross(b - a, c - a)

    @cached_property
    def area(self) -> float:
        return float(np.linalg.norm(self._normals, axis=1).sum())

    @cached_property
    def _tree(self) -> Any:
        tree = igl.AABB()
        tree.init(self.vertices, self.faces)
        return tree

    @cached_property
    def _hierarchy(self) -> Any:
        hierarchy = igl.FastWindingNumberBVH()
        hierarchy.init(self.vertices, self.faces)
        return hierarchy

    def winding(self, points: Array) -> Array:
        """Generalised winding number (Jacobson 2013), by Barnes-Hut (Barill 2018): 1 inside, 0 outside."""
        return chunked(self._hierarchy.winding_number, points)

    def inside(self, points: Array) -> NDArray[np.bool_]:
        return self.winding(points) > 0.5

    def distance(self, points: Array) -> Array:
        """Unsigned distance [m] to the nearest triangle."""
        squared = chunked(lambda p: self._tree.squared_distance(self.vertices, self.faces, p)[0], points)
        return np.sqrt(squared)

    def signed_distance(self, points: Array) -> Array:
        """Exact for a closed surface. For an open one distance * (1 - 2 w), w in [0, 1]: the surface w = 1/2 closes
        the holes, and the value passes continuously through zero there, as a wall must."""
        w = self.winding(points)
        sign = np.where(w > 0.5, -1.0, 1.0) if self.closed else 1.0 - 2.0 * np.clip(w, 0.0, 1.0)
        return sign * self.distance(points)

    @cached_property
    def volume(self) -> float:
        """Signed volume (divergence theorem) of a closed surface whose shells do not overlap; otherwise counted."""
        if self.closed and self._overlap() < OVERLAP:
            return _signed_volume(self.vertices, self.faces)
        return count_volume(self.inside, self.bounds)

    def _overlap(self) -> float:
        """Part of the area just outside of which w is not 0: there, shells overlap and the divergence counts twice."""
        areas = np.linalg.norm(self._normals, axis=1)
        solid = areas > 0.0
        lift = 1e-3 * self._normals[solid] / np.sqrt(areas[solid])[:, None]
        w = self.winding(self.vertices[self.faces[solid]].mean(axis=1) + lift)
        return float(areas[solid][np.abs(w) > 0.5].sum() / self.area)

    def feature_edges(self) -> Array:
        """(m, 2, 3) open or sharp edges; all edges if there are few of those, thinned to a drawable number."""
        pairs, inverse, net = edges(self.faces)
        order = np.argsort(inverse, kind="stable")
        count = np.bincount(inverse)
        start = np.cumsum(count) - count
        faces = order // 3
        unit = self._normals / np.maximum(np.linalg.norm(self._normals, axis=1), 1e-300)[:, None]
        first, second = faces[start], faces[start + np.minimum(1, count - 1)]
        sharp = (count != 2) | (net != 0) | (np.einsum("ij,ij->i", unit[first], unit[second]) < SHARP)
        chosen = pairs[sharp] if np.count_nonzero(sharp) >= min(FEW_EDGES, len(pairs) // 2) else pairs
        return self.vertices[chosen[:: 1 + len(chosen) // MOST_EDGES]]


def _signed_volume(vertices: Array, faces: Integers) -> float:
    """Sum of a . (b x c) / 6, seen from the middle of the bounds (which matters only for an open surface)."""
    middle = 0.5 * (vertices.min(axis=0) + vertices.max(axis=0))
    a, b, c = np.moveaxis(vertices[faces] - middle, 1, 0)
    return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0)


def _oriented(vertices: Array, faces: Integers) -> Integers:
    """Faces that agree with their neighbours where they can, turned so that the volume is positive."""
    net = np.abs(edges(faces)[2])
    if (net == 2).any():  # two neighbours that run the same way along their edge: one is flipped
        turned, patch = igl.bfs_orient(faces)
        for k in range(int(patch.max()) + 1):
            if _signed_volume(vertices, turned[patch == k]) < 0.0:
                turned[patch == k] = turned[patch == k][:, ::-1]
        if np.count_nonzero(edges(turned)[2]) < np.count_nonzero(net):
            faces = turned
    return np.ascontiguousarray(faces if _signed_volume(vertices, faces) >= 0.0 else faces[:, ::-1])


def _without_slivers(vertices: Array, faces: Integers) -> Integers:
    """Drops triangles without area, unless they stitch a closed surface together."""
    a, b, c = np.moveaxis(vertices[faces], 1, 0)
    longest = np.maximum(((b - a) ** 2).sum(axis=1), np.maximum(((c - b) ** 2).sum(axis=1), ((a - c) ** 2).sum(axis=1)))
    fat = np.linalg.norm(np.cross(b - a, c - a), axis=1) > 1e-12 * longest
    if fat.all() or not fat.any():
        return faces if fat.any() else faces[:0]
    less = np.ascontiguousarray(faces[fat])
    return less if np.count_nonzero(edges(less)[2]) <= np.count_nonzero(edges(faces)[2]) else faces
