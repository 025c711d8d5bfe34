"""Flat patches from which or through which something flows, or on which it presses: a disc, a rectangle, or a flat part
of the surface of a shape."""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pliant.core.options import REQUIRED, Options, param, positive
from pliant.geometry.drawing import SEGMENTS
from pliant.geometry.repair import area_vectors
from pliant.geometry.shapes import Array, Shape, Vector

FLAT = 1e-3  # by how much the normals of triangles in one plane may differ
SAMPLES = 8  # across the share of a point: what `even_points` shares out among them
PLACES = 5  # along each side of a lattice's cell, at which it may begin
ROUNDS = 20  # after which the points of a patch hardly move any more
RELAXED = 3e-3  # by how much the density of layers of such points may exceed that at rest,
MOST_ROUNDS = 300  # or for how long that is tried
EDGES = (0.45, 0.36, 0.27)  # in spacings: how far points keep from the edge, or less far if there are too many
STRIDE = 0.05  # in spacings: how far they move in a round


def _normal() -> Any:
    return param(None, "direction in which it looks; None is that of the flow", kind="vector", optional=True)


class Patch(Options):
    """Base of flat patches. A subclass gives `area`, `inside` and `extent` in its own plane."""

    def middle(self) -> Array:
        """(3,) its centre [m], the origin of its plane."""
        center: Any = self.center  # type: ignore[attr-defined]
        return np.asarray(center, dtype=float)

    def axes(self, flow: Vector) -> Array:
        """(3, 3) two directions in its plane and its normal, as rows; `flow` tells the normal if nothing else does."""
        n = np.asarray(flow if self.normal is None else self.normal, dtype=float)  # type: ignore[attr-defined]
        n = n / np.linalg.norm(n)
        first = np.cross((0.0, 1.0, 0.0), n)  # horizontal, or x where all directions are
        first = first / np.linalg.norm(first) if np.linalg.norm(first) > 1e-6 else np.array([1.0, 0.0, 0.0])
        first = first - first @ n * n
        first /= np.linalg.norm(first)
        return np.stack([first, np.cross(n, first), n])

    def area(self) -> float:
        """Area [m^2]."""
        raise NotImplementedError

    def extent(self) -> Array:
        """(2, 2) lower and upper corner of a rectangle around it, in its plane [m]."""
        raise NotImplementedError

    def inside(self, points: Array) -> NDArray[np.bool_]:
        """(n,) which of these points (n, 2) of its plane it contains."""
        raise NotImplementedError

    def points(self, spacing: float) -> Array:
        """(n, 2) points spread evenly in its plane, each with an area of about spacing^2 [m]; none if it is smaller
        than half of that."""
        if self.area() < 0.5 * spacing**2:
            return np.zeros((0, 2))
        points = even_points(self.inside, self.extent(), spacing)
        return relaxed(points, len(points) * spacing**3 / self.area(), spacing, self.edge())

    def edge(self) -> Array:
        """(m, 2, 2) segments of its outline, in its plane [m]."""
        raise NotImplementedError

    def outline(self, flow: Vector) -> Array:
        """(m, 2, 3) segments of its outline, and an arrow along its normal [m]."""
        axes, size = self.axes(flow), 0.5 * np.sqrt(self.area())
        arrow = np.array([[0, 0, 0], [0, 0, 1], [0.15, 0, 0.75], [0, 0, 1], [-0.15, 0, 0.75], [0, 0, 1]]) * size
        edge = self.edge() @ axes[:2]
        return np.concatenate([edge, (arrow @ axes).reshape(-1, 2, 3)]) + self.middle()


class Disc(Patch):
    """A flat disc: a nozzle, a section, or a patch of a wall."""

    radius: float = positive(REQUIRED, "radius", "m")
    center: Vector = param((0.0, 0.0, 0.0), "position of the centre", "m", kind="vector")
    normal: Vector | None = _normal()

    def problems(self) -> list[str]:
        return super().problems() + _zero_normal(self)

    def area(self) -> float:
        return float(np.pi * self.radius**2)

    def extent(self) -> Array:
        return np.array([[-1.0, -1.0], [1.0, 1.0]]) * self.radius

    def inside(self, points: Array) -> NDArray[np.bool_]:
        return np.hypot(points[:, 0], points[:, 1]) < self.radius

    def edge(self) -> Array:
        angles = np.linspace(0.0, 2.0 * np.pi, SEGMENTS + 1)
        ring = self.radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return np.stack([ring[:-1], ring[1:]], axis=1)


class Rectangle(Patch):
    """A flat rectangle: a nozzle, a section, or a patch of a wall. Its first side is horizontal (along x if all of it
    is)."""

    size: tuple = param(REQUIRED, "lengths of its sides: two numbers", "m", kind="any")
    center: Vector = param((0.0, 0.0, 0.0), "position of the centre", "m", kind="vector")
    normal: Vector | None = _normal()

    def problems(self) -> list[str]:
        found = super().problems() + _zero_normal(self)
        try:
            size = np.asarray(self.size, dtype=float)
            good = size.shape == (2,) and bool((np.isfinite(size) & (size > 0)).all())
        except (TypeError, ValueError):
            good = False
        if not good and self.size is not REQUIRED:
            found.append(f"Rectangle: size must be two positive numbers, got {self.size!r}")
        return found

    def area(self) -> float:
        return float(np.prod(np.asarray(self.size, dtype=float)))

    def extent(self) -> Array:
        half = 0.5 * np.asarray(self.size, dtype=float)
        return np.stack([-half, half])

    def inside(self, points: Array) -> NDArray[np.bool_]:
        return (np.abs(points) < self.extent()[1]).all(axis=1)

    def points(self, spacing: float) -> Array:
        """A grid of its own, which fills it to the edges."""
        size = np.asarray(self.size, dtype=float)
        if self.area() < 0.5 * spacing**2:
            return np.zeros((0, 2))
        near = [{max(int(np.floor(s / spacing)), 1), int(np.ceil(s / spacing))} for s in size]
        counts = min(itertools.product(*near), key=lambda n: abs(np.log(np.prod(n) * spacing**2 / self.area())))
        grid = np.meshgrid(*(s * ((np.arange(n) + 0.5) / n - 0.5) for s, n in zip(size, counts, strict=True)))
        return np.stack(grid, axis=-1).reshape(-1, 2)

    def edge(self) -> Array:
        a, b = self.extent()[1]
        corners = np.array([(-a, -b), (a, -b), (a, b), (-a, b)])
        return np.stack([corners, np.roll(corners, -1, axis=0)], axis=1)


class Face(Patch):
    """The flat part of a shape's surface that is nearest to a point: the end of a pipe that is a mesh, one side of a
    box. Something flows along its outward normal, or against it if the velocity says so."""

    shape: Shape = param(REQUIRED, "the shape, such as a Mesh", kind="any")
    at: Vector = param(REQUIRED, "a point near that part", "m", kind="vector")

    def problems(self) -> list[str]:
        found = super().problems()
        if not isinstance(self.shape, Shape):
            found += [] if self.shape is REQUIRED else [f"Face: shape must be a shape, got {self.shape!r}"]
        else:
            found += self.shape.problems()
            if not found and not np.isfinite(self.shape.bounds()).all():
                found.append(f"Face: {type(self.shape).__name__} is infinite; use a Disc or a Rectangle")
        return found

    @functools.cached_property
    def _triangles(self) -> Array:
        """(m, 3, 3) the triangles of that part."""
        vertices, faces = self.shape.triangles()
        corners, areas = vertices[faces], area_vectors(vertices, faces)
        sizes = np.linalg.norm(areas, axis=1)
        corners, normals = corners[sizes > 0], areas[sizes > 0] / sizes[sizes > 0, None]
        first = int(np.argmin(_distances(np.asarray(self.at, dtype=float), corners)))
        size = float(np.ptp(corners.reshape(-1, 3), axis=0).max())
        level = np.abs((corners - corners[first, 0]) @ normals[first]).max(axis=1) < FLAT * size
        same = level & (normals @ normals[first] > 1 - FLAT)
        return corners[_connected(corners, same, first, FLAT * size)]

    @property
    def normal(self) -> Array:
        """(3,) the outward normal."""
        a, b, c = self._triangles[0]
        n = np.cross(b - a, c - a)
        return n / np.linalg.norm(n)

    def axes(self, flow: Vector) -> Array:
        axes = super().axes(flow)
        return axes if axes[2] @ np.asarray(flow, dtype=float) >= 0 else np.stack([axes[0], axes[1], -axes[2]])

    def middle(self) -> Array:
        corners = self._triangles
        weights = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
        return np.average(corners.mean(axis=1), axis=0, weights=weights)

    def area(self) -> float:
        corners = self._triangles
        sides = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        return float(0.5 * np.linalg.norm(sides, axis=1).sum())

    def _flat(self) -> Array:
        """(m, 3, 2) the triangles in their plane."""
        return (self._triangles - self.middle()) @ self.axes(self.normal)[:2].T

    def extent(self) -> Array:
        flat = self._flat().reshape(-1, 2)
        return np.stack([flat.min(axis=0), flat.max(axis=0)])

    def inside(self, points: Array) -> NDArray[np.bool_]:
        found = np.zeros(len(points), bool)
        for a, b, c in self._flat():
            sides = [_cross(q - p, points - p) for p, q in ((a, b), (b, c), (c, a))]
            found |= (np.min(sides, axis=0) >= 0) | (np.max(sides, axis=0) <= 0)
        return found

    def edge(self) -> Array:
        flat = self._flat()
        sides = np.concatenate([flat[:, [0, 1]], flat[:, [1, 2]], flat[:, [2, 0]]])
        keys = np.sort(np.round(sides / (FLAT * np.ptp(self.extent(), axis=0).max())).astype(np.int64) @ (1, 1 << 20))
        _, first, count = np.unique(keys, axis=0, return_index=True, return_counts=True)
        return sides[first[count == 1]]  # sides between two triangles are inside


def _zero_normal(patch: Any) -> list[str]:
    zero = patch.normal is not None and np.shape(patch.normal) == (3,) and not np.any(patch.normal)
    return [f"{type(patch).__name__}: normal must not be zero, got {patch.normal!r}"] if zero else []


def _cross(a: Array, b: Array) -> Array:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _distances(point: Array, corners: Array) -> Array:
    """Distances of a point from triangles (m, 3, 3), by points spread over each."""
    weights = np.array([(i, j, 6 - i - j) for i in range(7) for j in range(7 - i)]) / 6.0
    return np.linalg.norm(np.einsum("wk,mkc->mwc", weights, corners) - point, axis=2).min(axis=1)


def _connected(corners: Array, allowed: NDArray[np.bool_], first: int, tolerance: float) -> NDArray[np.int64]:
    """The allowed triangles that hang together with the first one by shared corners."""
    keys = np.round(corners / tolerance).astype(np.int64)
    found, edge = {first}, {first}
    owners: dict[tuple, list[int]] = {}
    for k in np.flatnonzero(allowed).tolist():
        for corner in keys[k]:
            owners.setdefault(tuple(corner.tolist()), []).append(k)
    while edge:
        near = {k for e in edge for corner in keys[e] for k in owners.get(tuple(corner.tolist()), ())}
        edge = near - found
        found |= edge
    return np.array(sorted(found))


def even_points(inside: Callable[[Array], NDArray[np.bool_]], extent: Array, spacing: float) -> Array:
    """(n, 2) points of a flat region, from the middle outwards, each with about the same share spacing^2 of it: those
    of a hexagonal lattice, moved towards the centres of their Voronoi cells (Lloyd 1982). The same every time."""
    samples = _lattice(inside, extent, spacing / SAMPLES * np.eye(2), np.zeros(2))
    count = len(samples) / SAMPLES**2
    cell = spacing * np.sqrt(2 / np.sqrt(3)) * np.array([[1.0, 0.0], [0.5, np.sqrt(3) / 2]])
    places = [np.array((i, j)) / PLACES @ cell for i in range(PLACES) for j in range(PLACES)]
    points = min((_lattice(inside, extent, cell, at) for at in places), key=lambda found: abs(len(found) - count))
    if not len(points):
        points = samples.mean(axis=0, keepdims=True)
    for _ in range(ROUNDS):
        owner = cKDTree(points).query(samples)[1]
        members = np.maximum(np.bincount(owner, minlength=len(points)), 1)
        points = np.stack([np.bincount(owner, samples[:, k], len(points)) / members for k in range(2)], axis=1)
    return points[np.argsort(np.hypot(*(points - points.mean(axis=0)).T), kind="stable")]


def relaxed(points: Array, layer: float, spacing: float, edge: Array) -> Array:
    """The points moved apart until layers of them, that far apart [m], have no more than the density at rest: steps
    along the gradients of what is too much (Macklin and Mueller 2013). They keep their distance from the edge."""
    from pliant.core.smoothing import SMOOTHINGS  # here, so that shapes do without Taichi

    h, volume = 2 * spacing, spacing**3
    r = np.linspace(0, h, 200)
    heights = layer * np.arange(-3, 4)[:, None]
    towers = volume * SMOOTHINGS["cubic_spline"].W(np.hypot(r, heights), h).sum(axis=0)  # of particles over each other
    slopes = np.gradient(towers, r)
    for k in range(len(EDGES) * MOST_ROUNDS):
        i, j = cKDTree(points).query_pairs(h, output_type="ndarray").T
        way = points[i] - points[j]
        apart = np.maximum(np.linalg.norm(way, axis=1), 1e-9 * h)
        density = towers[0] + _sums(i, j, np.interp(apart, r, towers), len(points))
        excess = np.maximum(density - 1.0, 0.0)
        if excess.max() < RELAXED:
            break
        gradient = (np.interp(apart, r, slopes) / apart)[:, None] * way
        total, squares = _vector_sums(i, j, gradient, len(points)), (gradient**2).sum(axis=1)
        share = excess / ((total**2).sum(axis=1) + _sums(i, j, squares, len(points)) + 1e-30)
        move = -_vector_sums(i, j, (share[i] + share[j])[:, None] * gradient, len(points))
        length = np.maximum(np.linalg.norm(move, axis=1, keepdims=True), 1e-30)
        points = points + move * np.minimum(1.0, STRIDE * spacing / length)
        points = _off_the_edge(points, edge, EDGES[k // MOST_ROUNDS] * spacing)
    return points


def _sums(i: NDArray[np.int64], j: NDArray[np.int64], values: Array, count: int) -> Array:
    """(count,) sums over pairs (i, j), which count for both."""
    return (np.bincount(i, values, count) + np.bincount(j, values, count)).astype(float)


def _vector_sums(i: NDArray[np.int64], j: NDArray[np.int64], values: Array, count: int) -> Array:
    """(count, 2) sums over pairs of what is opposite for the two."""
    return np.stack([np.bincount(i, v, count) - np.bincount(j, v, count) for v in values.T], axis=1)


def _off_the_edge(points: Array, edge: Array, least: float) -> Array:
    """Points that are closer to a segment of the edge than `least`, moved away from it."""
    start, along = edge[:, 0], edge[:, 1] - edge[:, 0]
    at = np.einsum("nmk,mk->nm", points[:, None] - start, along) / np.maximum((along**2).sum(axis=1), 1e-300)
    foot = start + np.clip(at, 0, 1)[..., None] * along
    away = np.linalg.norm(points[:, None] - foot, axis=2)
    nearest, rows = np.argmin(away, axis=1), np.arange(len(points))
    distance, foot = away[rows, nearest], foot[rows, nearest]
    out = (points - foot) / np.maximum(distance, 1e-300)[:, None]
    return points + np.where(distance < least, least - distance, 0.0)[:, None] * out


def _lattice(inside: Callable[[Array], NDArray[np.bool_]], extent: Array, cell: Array, offset: Array) -> Array:
    """The points inside of a lattice whose cells have these sides, as rows, about the middle of the region."""
    reach = int(np.ceil(2 * np.linalg.norm(extent[1] - extent[0]) / np.sqrt(np.linalg.det(cell)))) // 2 + 2
    k = np.arange(-reach, reach + 1)
    points = extent.mean(axis=0) + offset + np.stack(np.meshgrid(k, k), axis=-1).reshape(-1, 2) @ cell
    points = points[((points > extent[0]) & (points < extent[1])).all(axis=1)]
    return points[inside(points)]
