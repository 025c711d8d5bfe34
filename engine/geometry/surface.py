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

from pliant.geometry.drawing import sections
from pliant.geometry.exposed import exposed, shares
from pliant.geometry.mass import mesh_moments
from pliant.geometry.proxy import simplified
from pliant.geometry.repair import Repairs, area_vectors, clean, edges, frame, mend
from pliant.geometry.volumes import Moments, count_moments

__all__ = ["Surface", "clean", "edges"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

CHUNK = 200_000  # query points at a time: bounds memory
SHARP = np.cos(np.radians(30.0))  # an edge whose faces turn by more is drawn
FLAT = np.cos(np.radians(0.5))  # faces that turn by less lie in one plane
SECTIONS = ((0.5,), (0.25, 0.5, 0.75), (0.5,))  # where a drawing shows them, across x, y and z, in shares of the size
MOST_EDGES = 20_000  # of a drawing
OVERLAP = 1e-3  # part of the area that may lie inside another shell before the signed volume is not trusted
APART = 0.99  # of the distance to the surface: so near to each other points are certainly on one side of it
WORTHWHILE = 200_000  # triangles: a smaller surface answers quickly enough by itself


def chunked(function: Callable[[Array], Any], points: Array) -> NDArray[Any]:
    """function(points), evaluated in pieces."""
    pieces = [function(points[i : i + CHUNK]) for i in range(0, len(points), CHUNK)]
    return np.concatenate(pieces) if pieces else np.zeros(0)


class Surface:
    """Triangles, mended and oriented outward; never changed after construction. `repairs` says what was done. Those of
    a level set (`bare`) are known to overlap nowhere, which takes seconds to find out."""

    repairs: Repairs
    bare = False

    def __init__(self, vertices: Array, faces: Integers, bare: bool = False):
        self.bare = bare
        self._keep(*mend(vertices, faces))

    def _keep(self, vertices: Array, faces: Integers, repairs: Repairs) -> None:
        self.vertices, self.faces, self.repairs = vertices, faces, repairs
        self._proxies: dict[float, Surface] = {}
        for array in (self.vertices, self.faces, self.repairs.turned):
            array.flags.writeable = False

    def __getstate__(self) -> dict[str, Any]:
        # libigl's trees do not pickle; they are rebuilt
        kept = {"vertices": self.vertices, "faces": self.faces, "repairs": self.repairs, "bare": self.bare}
        return {**kept, "_proxies": {}}

    @cached_property
    def _edges(self) -> tuple[Integers, Integers, Integers]:
        return edges(self.faces)

    @cached_property
    def boundary_edges(self) -> int:
        """Edges along which the surface is open, or changes its orientation."""
        return int(np.count_nonzero(self._edges[2]))

    @property
    def closed(self) -> bool:
        return self.boundary_edges == 0

    @cached_property
    def bounds(self) -> Array:
        return np.stack([self.vertices.min(axis=0), self.vertices.max(axis=0)])

    @cached_property
    def face_normals(self) -> Array:
        """(f, 3) area vectors: normal times area."""
        return area_vectors(self.vertices, self.faces)

    @cached_property
    def area(self) -> float:
        """Of all triangles [m^2]."""
        return float(np.linalg.norm(self.face_normals, axis=1).sum())

    @cached_property
    def _frame(self) -> tuple[Array, float]:
        return frame(self.vertices)

    @cached_property
    def _tree(self) -> tuple[Any, Array, Integers]:
        """libigl's tree and the triangles in it, in coordinates around 1."""
        middle, size = self._frame
        vertices, faces = self.vertices, self.faces
        if not self.bare and self.overlap > 0.0:
            vertices, faces = exposed(vertices, faces, self.winding, size)
        local, tree = np.ascontiguousarray((vertices - middle) / size), igl.AABB()
        tree.init(local, faces)
        return tree, local, faces

    @cached_property
    def _hierarchy(self) -> Any:
        middle, size = self._frame
        hierarchy = igl.FastWindingNumberBVH()
        hierarchy.init((self.vertices - middle) / size, self.faces)
        return hierarchy

    def winding(self, points: Array) -> Array:
        """Generalised winding number (Jacobson 2013), by Barnes-Hut (Barill 2018): 1 inside, 0 outside."""
        middle, size = self._frame
        return chunked(lambda p: self._hierarchy.winding_number((p - middle) / size), points)

    def inside(self, points: Array) -> NDArray[np.bool_]:
        """Where the winding number differs from 0 by more than 1/2."""
        return np.abs(self.winding(points)) > 0.5

    def distance(self, points: Array) -> Array:
        """Unsigned distance [m] to the nearest triangle that bounds the inside."""
        middle, size = self._frame
        tree, vertices, faces = self._tree
        squared = chunked(lambda p: tree.squared_distance(vertices, faces, (p - middle) / size)[0], points)
        return size * np.sqrt(squared)

    def signed_distance(self, points: Array) -> Array:
        """Exact for a closed surface. For an open one distance * (1 - 2 |w|), |w| at most 1: the surface |w| = 1/2
        closes the holes, and the value passes continuously through zero there, as a wall must."""
        distance = self.distance(points)
        if self.closed:
            return np.where(self._inside_by_runs(points, distance), -distance, distance)
        return (1.0 - 2.0 * np.minimum(np.abs(self.winding(points)), 1.0)) * distance

    def _inside_by_runs(self, points: Array, distance: Array) -> NDArray[np.bool_]:
        """Whether points are inside, of which distances are known: a point that is nearer to the one before it than
        either is to the surface lies on the same side, so that one of a run is asked for."""
        if not len(points) or not (self.bare or self.overlap == 0.0):  # surfaces within others count in no distance
            return self.inside(points)
        step = np.linalg.norm(np.diff(points, axis=0), axis=1)
        begins = np.append(True, step > APART * np.maximum(distance[1:], distance[:-1]))
        return self.inside(points[begins])[np.cumsum(begins) - 1]

    @property
    def volume(self) -> float:
        """Enclosed volume [m^3]."""
        return self.moments.volume

    @cached_property
    def moments(self) -> Moments:
        """Signed (divergence theorem) if closed with w = 0 all around, otherwise counted."""
        if self.closed and self._shares[0] < OVERLAP:
            return mesh_moments(self.vertices, self.faces, self.face_normals, self._frame[0])
        return count_moments(self.inside, self.bounds)

    @cached_property
    def _shares(self) -> tuple[float, float]:
        return shares(self.vertices, self.faces, self.winding, self._frame[1])

    @property
    def overlap(self) -> float:
        """Part of the area that bounds no inside: where shells overlap or the surface runs through itself."""
        return self._shares[1]

    @property
    def outer_area(self) -> float:
        """Of the part that bounds the inside [m^2]."""
        return self.area * (1.0 - self.overlap)

    def proxy(self, cell: float, worthwhile: int = WORTHWHILE) -> "Surface":
        """A surface of fewer triangles whose distance differs from that of this one by less than `cell` [m].

        It is this one itself if it has fewer triangles than `worthwhile`, or if not half of them can be saved.
        """
        if len(self.faces) < worthwhile:
            return self
        if cell not in self._proxies:
            vertices, faces = simplified(self.vertices, self.faces, cell)
            other = self
            if 2 * len(faces) <= len(self.faces):
                other = object.__new__(Surface)  # not mended: thin parts are flat now, and would be dropped
                other._keep(vertices, faces, Repairs(np.zeros(len(faces), dtype=bool)))
                if self._shares == (0.0, 0.0):  # folds narrower than the tolerance are no overlaps
                    other.__dict__["_shares"] = self._shares
            self._proxies[cell] = other
        return self._proxies[cell]

    def sample(self, spacing: float, seed: int = 0) -> tuple[Array, Array]:
        """Even points (n, 3) [m] on the surface and its outward normals there; see `surface_sampling.py`."""
        from pliant.geometry.surface_sampling import sample_triangles

        return sample_triangles(self, spacing, None, seed)

    @cached_property
    def _turns(self) -> tuple[Integers, Array, Array]:
        """Of each edge its faces (m, 2), the cosine of the angle by which they turn there (-1 where it is open, or no
        two faces agree on it), and the sum of their normals (m, 3)."""
        _, inverse, net = self._edges
        order = np.argsort(inverse, kind="stable")
        count = np.bincount(inverse)
        start = np.cumsum(count) - count
        faces = order[start[:, None] + np.minimum(count - 1, [[0], [1]]).T] // 3
        unit = self.face_normals / np.maximum(np.linalg.norm(self.face_normals, axis=1), 1e-300)[:, None]
        cosine = np.einsum("ij,ij->i", unit[faces[:, 0]], unit[faces[:, 1]])
        return faces, np.where((count != 2) | (net != 0), -1.0, cosine), unit[faces].sum(axis=1)

    def sharp_edges(self, least: float = SHARP) -> tuple[Integers, Array]:
        """(m, 2) vertices of the edges that are open or where faces turn by more than 30 degrees, or by another angle,
        whose cosine is `least`; and their normals."""
        _, cosine, normals = self._turns
        return self._edges[0][cosine < least], normals[cosine < least]

    def outline(self) -> Array:
        """(m, 2, 3) lines that show its shape, thinned to a drawable number: open or sharp edges, and where curved
        parts meet planes through its middle and at some heights."""
        faces, cosine, _ = self._turns
        curved = np.zeros(len(self.faces), dtype=bool)
        curved[faces[(cosine >= SHARP) & (cosine < FLAT)]] = True
        low, high = self.vertices.min(axis=0), self.vertices.max(axis=0)
        cuts = [sections(self.vertices, self.faces[curved], axis, low[axis] + share * (high - low)[axis])
                for axis, shares in enumerate(SECTIONS) for share in shares]  # fmt: skip
        lines = np.concatenate([self.vertices[self.sharp_edges()[0]], *cuts])
        return lines[:: 1 + len(lines) // MOST_EDGES]
