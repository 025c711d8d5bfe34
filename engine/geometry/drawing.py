"""Wireframes and triangulations of simple solids, and of any signed distance."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.errors import PliantError

Array = NDArray[np.float64]
Triangles = tuple[Array, NDArray[np.int64]]

SEGMENTS = 64  # of a full circle
FEWEST_CELLS, MOST_CELLS = 48, 192  # along the longest side of a grid,
GRID_NODES = 100_000  # which has about so many nodes
HALVINGS = 12  # of an edge, to find where the surface crosses it
SHARP = 0.05  # of the largest eigenvalue: planes that differ by less leave a direction free
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


def march_cell(bounds: Array) -> float:
    """Size of the cells of the grid that `march` uses [m]."""
    size = bounds[1] - bounds[0]
    return float(np.clip(np.cbrt(size.prod() / GRID_NODES), size.max() / MOST_CELLS, size.max() / FEWEST_CELLS))


def march(signed_distance: Callable[[Any], Array], bounds: Array) -> Triangles:
    """The surface d = 0 by dual contouring (Ju et al. 2002) on a modest grid, one cell wider than the bounds.

    Every cell that the surface passes gets a vertex where the tangent planes at its crossings of the cell's edges meet
    best, so that edges and corners of the shape come out sharp; four of them make a face around every crossing.
    """
    if not np.isfinite(bounds).all():
        raise PliantError("an infinite shape has no triangulation; intersect it with a Box")
    size, cell = bounds[1] - bounds[0], march_cell(bounds)
    counts = np.ceil(size / cell).astype(np.int64) + 3
    origin = bounds[0] - cell
    nodes = np.stack(np.meshgrid(*[np.arange(n) for n in counts], indexing="ij"), axis=-1)
    inside = signed_distance((origin + cell * nodes).reshape(-1, 3)).reshape(counts) < 0.0
    crossings, around = [], []
    for k in range(3):
        low = np.moveaxis(inside, k, 0)[:-1]
        first = np.argwhere(np.moveaxis(low != np.moveaxis(inside, k, 0)[1:], 0, k))  # nodes where the edges begin
        outward = inside[tuple(first.T)]
        crossings.append(_crossings(signed_distance, origin + cell * first, cell * np.eye(3)[k]))
        turn = np.array([np.eye(3, dtype=np.int64)[(k + i) % 3] for i in (1, 2)])
        corners = first[:, None] - np.array([(1, 1), (0, 1), (0, 0), (1, 0)]) @ turn  # four cells around each edge
        around.append(np.where(outward[:, None, None], corners, corners[:, ::-1]))
    points, quads = np.concatenate(crossings), np.concatenate(around)
    used, index = np.unique(quads.reshape(-1, 3) @ [counts[1] * counts[2], counts[2], 1], return_inverse=True)
    middle = origin + cell * (np.stack(np.unravel_index(used, counts), axis=1) + 0.5)
    normals = slopes(signed_distance, points, 1e-3 * cell)
    vertices = _meeting_points(np.repeat(points, 4, axis=0), np.repeat(normals, 4, axis=0), index.ravel(), middle, cell)
    quads = index.reshape(-1, 4)
    vertices = np.clip(vertices, bounds[0], bounds[1])  # where planes of a sharp edge meet just beyond
    return vertices, np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])


def _crossings(signed_distance: Callable[[Any], Array], start: Array, step: Array) -> Array:
    """Where the edges from `start` to `start + step` (n, 3) cross d = 0, by halving."""
    low, high, below = np.zeros(len(start)), np.ones(len(start)), signed_distance(start) < 0.0
    for _ in range(HALVINGS):
        t = 0.5 * (low + high)
        same = (signed_distance(start + t[:, None] * step) < 0.0) == below
        low, high = np.where(same, t, low), np.where(same, high, t)
    return start + (0.5 * (low + high))[:, None] * step


def slopes(signed_distance: Callable[[Any], Array], x: Array, step: float) -> Array:
    """Unit gradients (n, 3) of a signed distance at x (n, 3), from its values at the corners of small tetrahedra."""
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    slope = signed_distance((x[:, None] + step * corners).reshape(-1, 3)).reshape(-1, 4) @ corners
    return slope / np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1e-300)


def _meeting_points(points: Array, normals: Array, cells: NDArray[np.int64], middle: Array, size: float) -> Array:
    """For each cell the point nearest to the planes through its points, in the sense of least squares; along directions
    that these leave free, their mean. Never outside the cell."""
    n = len(middle)
    count = np.bincount(cells, minlength=n)[:, None]
    mean = np.stack([np.bincount(cells, points[:, k], n) for k in range(3)], axis=1) / count
    offset = np.einsum("ij,ij->i", normals, points - mean[cells])
    right = np.stack([np.bincount(cells, normals[:, k] * offset, n) for k in range(3)], axis=1)
    products = (normals[:, :, None] * normals[:, None, :]).reshape(-1, 9)
    matrix = np.stack([np.bincount(cells, products[:, k], n) for k in range(9)], axis=1)
    values, axes = np.linalg.eigh(matrix.reshape(n, 3, 3))
    inverse = np.where(values > SHARP * values[:, -1:], 1.0 / np.maximum(values, 1e-300), 0.0)
    move = np.einsum("nak,nk,nbk,nb->na", axes, inverse, axes, right)
    return np.clip(mean + move, middle - 0.5 * size, middle + 0.5 * size)


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


def sections(vertices: Array, faces: NDArray[np.int64], axis: int, place: float) -> Array:
    """(m, 2, 3) lines where triangles meet the plane across an axis [m]."""
    height = vertices[:, axis] - place
    above = height[faces] >= 0.0
    crossed = above.any(axis=1) & ~above.all(axis=1)
    cut, above = faces[crossed], above[crossed]
    alone = np.argmax(above == (above.sum(axis=1) == 1)[:, None], axis=1)
    turned = np.take_along_axis(cut, (alone[:, None] + [0, 1, 2]) % 3, axis=1)  # first the corner on a side of its own
    first, others = turned[:, :1], turned[:, 1:]
    share = (height[first] / (height[first] - height[others]))[..., None]
    lines = vertices[first] + share * (vertices[others] - vertices[first])
    return lines[(lines[:, 0] != lines[:, 1]).any(axis=1)]
