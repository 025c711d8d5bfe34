"""Wireframes and triangulations of simple solids, and of any signed distance."""

from collections.abc import Callable
from typing import Any

import igl
import numpy as np
from numpy.typing import NDArray

from pliant.errors import PliantError

Array = NDArray[np.float64]
Triangles = tuple[Array, NDArray[np.int64]]

SEGMENTS = 64  # of a full circle
MARCH_CELLS = 48  # along the longest side
PIECES = 32  # into which each line of a combined shape is cut before its hidden parts are dropped
VISIBLE = 2e-3  # of the diagonal: a piece this close to the surface lies on it (chords of circles stay below)

# corner c of a box has bit k set when it is on the upper side along axis k
BOX_EDGES = [(c, c | 1 << k) for c in range(8) for k in range(3) if not c >> k & 1]
BOX_QUADS = [(0, 4, 6, 2), (1, 3, 7, 5), (0, 1, 5, 4), (2, 6, 7, 3), (0, 2, 3, 1), (4, 5, 7, 6)]


def box_corners(bounds: Array) -> Array:
    return np.array([[bounds[c >> k & 1, k] for k in range(3)] for c in range(8)])


def box_edges(bounds: Array) -> Array:
    return box_corners(bounds)[BOX_EDGES]


def box_triangles(bounds: Array) -> Triangles:
    return box_corners(bounds), np.array([t for a, b, c, d in BOX_QUADS for t in ((a, b, c), (a, c, d))])


def arc(radius: float, start: float, stop: float) -> Array:
    """(n, 2) points (r, h) of a circular arc in the meridian half-plane; angles in degrees from the equator."""
    angles = np.radians(np.linspace(start, stop, 1 + max(4, round(SEGMENTS * (stop - start) / 360))))
    return radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _turn(profile: Array, angles: Array, center: Any, axis: str) -> Array:
    """(angles, profile, 3): the profile (r, h) turned around the axis."""
    r, h = profile[None, :, 0], profile[None, :, 1]
    k = "xyz".index(axis)
    points = np.empty((len(angles), len(profile), 3))
    points[..., k] = h
    points[..., k - 2] = r * np.cos(angles)[:, None]
    points[..., k - 1] = r * np.sin(angles)[:, None]
    return points + np.asarray(center, dtype=float)


def circle(radius: float, height: float, center: Any, axis: str) -> Array:
    """Segments of a circle around the axis, at a height along it."""
    angles = np.linspace(0.0, 2.0 * np.pi, SEGMENTS + 1)
    ring = _turn(np.array([[radius, height]]), angles, center, axis)[:, 0]
    return np.stack([ring[:-1], ring[1:]], axis=1)


def meridians(profile: Array, center: Any, axis: str, count: int = 4) -> Array:
    """Segments of `count` copies of the profile around the axis."""
    lines = _turn(profile, np.arange(count) * 2.0 * np.pi / count, center, axis)
    return np.stack([lines[:, :-1], lines[:, 1:]], axis=2).reshape(-1, 2, 3)


def rails(radius: float, height: float, center: Any, axis: str) -> Array:
    """Four straight lines along a cylinder."""
    return meridians(np.array([[radius, -0.5 * height], [radius, 0.5 * height]]), center, axis)


def revolve(profile: Array, center: Any, axis: str) -> Triangles:
    """Surface of revolution of a profile that runs counter-clockwise in (r, h), so that faces look outward."""
    from pliant.geometry.surface import clean

    n, m = SEGMENTS, len(profile)
    points = _turn(profile, np.arange(n) * 2.0 * np.pi / n, center, axis).reshape(-1, 3)
    i, j = np.meshgrid(np.arange(n), np.arange(m - 1), indexing="ij")
    a, b = (i * m + j).ravel(), ((i + 1) % n * m + j).ravel()
    quads = np.stack([a, b, b + 1, a + 1], axis=1)
    return clean(points, np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]]))


def march(signed_distance: Callable[[Any], Array], bounds: Array) -> Triangles:
    """Marching cubes of d = 0 on a modest grid, one cell wider than the bounds."""
    if not np.isfinite(bounds).all():
        raise PliantError("an infinite shape has no triangulation; intersect it with a Box")
    cell = float((bounds[1] - bounds[0]).max()) / MARCH_CELLS
    counts = np.ceil((bounds[1] - bounds[0]) / cell).astype(int) + 3
    axes = [bounds[0][k] + cell * (np.arange(counts[k]) - 1.0) for k in range(3)]
    z, y, x = np.meshgrid(axes[2], axes[1], axes[0], indexing="ij")  # libigl wants x to run fastest
    grid = np.stack([x, y, z], axis=-1).reshape(-1, 3)
    vertices, faces, _ = igl.marching_cubes(signed_distance(grid), grid, *(int(n) for n in counts))
    return vertices, faces


def visible(segments: Array, signed_distance: Callable[[Any], Array]) -> Array:
    """The parts of the segments that lie on the surface d = 0."""
    if not len(segments):
        return segments
    s = np.linspace(0.0, 1.0, PIECES + 1)[None, :, None]
    nodes = segments[:, None, 0] * (1.0 - s) + segments[:, None, 1] * s
    diagonal = float(np.linalg.norm(np.ptp(segments.reshape(-1, 3), axis=0)))
    on = (np.abs(signed_distance(nodes.reshape(-1, 3))) < VISIBLE * diagonal).reshape(nodes.shape[:2])
    pieces = np.stack([nodes[:, :-1], nodes[:, 1:]], axis=2)
    whole = on.all(axis=1)
    return np.concatenate([segments[whole], pieces[~whole][(on[:, :-1] & on[:, 1:])[~whole]]])
