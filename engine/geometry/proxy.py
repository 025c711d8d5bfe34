"""A surface of fewer triangles near a given one, by clustering its vertices (Rossignac and Borrel 1993, adaptive).

The vertices in a cell of an octree become one, at the place that is nearest to the planes of their triangles in the
sense of least squares (Lindstrom 2000), within the cell. A cell whose planes do not meet well enough is divided.
Triangles with two corners in one cell vanish. This maps the surface continuously, so that a closed one stays closed,
and the winding number of a point that the surface is not moved across stays the same.
"""

import igl
import numpy as np
from numpy.typing import NDArray

from pliant.geometry.repair import area_vectors, edges, frame, unique_rows

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

LEVELS = 6  # cells are up to 2^6 times as large as the smallest ones
MISFIT = 0.2  # of the tolerance: root mean square distance of planes at which a cell is divided
PULL = 1e-3  # weight of the mean of the vertices against the planes: decides where these leave a place free
CHECKED = 50_000  # vertices whose distance to the result is measured


def simplified(vertices: Array, faces: Integers, tolerance: float) -> tuple[Array, Integers]:
    """Vertices and faces within `tolerance` [m] of the given ones: measured, or with the smallest cells, whose diagonal
    is the tolerance, by construction."""
    middle, size = frame(vertices)
    points, limit = (vertices - middle) / size, tolerance / size
    quadrics, rim = _quadrics(points, faces), np.zeros(len(points), dtype=bool)
    pairs, _, net = edges(faces)
    rim[pairs[net != 0]] = True  # planes do not hold the rim of a hole in its place
    probes = np.ascontiguousarray(points[:: 1 + len(points) // CHECKED])
    for levels in range(min(LEVELS, int(np.log2(max(2.0, 1.0 / limit)))), -1, -2):
        places, index = _clusters(points, quadrics, rim, limit, levels)
        less = index[faces]
        less = less[(less[:, 0] != less[:, 1]) & (less[:, 1] != less[:, 2]) & (less[:, 2] != less[:, 0])]
        less = less[np.linalg.norm(area_vectors(places, less), axis=1) > 0.0] if len(less) else less
        if levels == 0 or (len(less) and _distance(places, less, probes).max() <= limit):
            break
    return np.ascontiguousarray(places * size + middle), np.ascontiguousarray(less)


def _quadrics(points: Array, faces: Integers) -> Array:
    """(n, 11) sums over the triangles at each vertex v of n n^T (six of nine), n (n . v), (n . v)^2 and 1, by area."""
    normal = area_vectors(points, faces)
    area = np.maximum(np.linalg.norm(normal, axis=1), 1e-300)
    unit = normal / area[:, None]
    x, y, z = unit.T
    square = np.stack([x * x, x * y, x * z, y * y, y * z, z * z], axis=1)
    sums = np.zeros((11, len(points)))
    d = np.einsum("ij,ij->i", points[faces[:, 0]], unit)  # the same for all corners
    columns = np.concatenate([square, d[:, None] * unit, (d * d)[:, None], np.ones((len(faces), 1))], axis=1)
    corners = faces.T.reshape(-1)
    for k in range(11):
        sums[k] = np.bincount(corners, weights=np.tile(area * columns[:, k], 3), minlength=len(points))
    return sums.T


def _clusters(
    points: Array, quadrics: Array, rim: NDArray[np.bool_], limit: float, levels: int
) -> tuple[Array, Integers]:
    """Places of the clusters, and the cluster of each vertex."""
    index, places, count = np.full(len(points), -1, dtype=np.int64), [], 0
    lower = points.min(axis=0)
    for level in range(levels, -1, -1):
        width = limit / np.sqrt(3.0) * 2.0**level
        waiting = np.flatnonzero((index < 0) & ~rim if level else index < 0)
        if not len(waiting):
            continue
        cells = np.floor((points[waiting] - lower) / width).astype(np.int64)
        first, cluster = unique_rows(cells)
        place, misfit = _best(points[waiting], quadrics[waiting], cluster, lower + cells[first] * width, width)
        good = misfit <= MISFIT * limit if level else np.ones(len(first), dtype=bool)
        number = np.where(good, count + np.cumsum(good) - 1, -1)
        index[waiting] = number[cluster]
        places.append(place[good])
        count += int(np.count_nonzero(good))
    return np.concatenate(places), index


def _best(points: Array, quadrics: Array, cluster: Integers, corner: Array, width: float) -> tuple[Array, Array]:
    """The place nearest to all planes of each cluster, within its cell, and the root mean square distance to them."""
    n = len(corner)
    number = np.bincount(cluster, minlength=n)
    mean = np.stack([np.bincount(cluster, weights=points[:, k], minlength=n) / number for k in range(3)], axis=1)
    sums = np.stack([np.bincount(cluster, weights=quadrics[:, k], minlength=n) for k in range(11)], axis=1)
    q = sums / np.maximum(sums[:, 10:], 1e-300)
    A, b = q[:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(n, 3, 3), q[:, 6:9]
    place = np.linalg.solve(A + PULL * np.eye(3), (b + PULL * mean)[:, :, None])[:, :, 0]
    place = np.clip(place, corner, corner + width)
    squared = np.einsum("ni,nij,nj->n", place, A, place) - 2.0 * np.einsum("ni,ni->n", b, place) + q[:, 9]
    return place, np.sqrt(np.maximum(squared, 0.0))


def _distance(vertices: Array, faces: Integers, points: Array) -> Array:
    tree = igl.AABB()
    tree.init(np.ascontiguousarray(vertices), np.ascontiguousarray(faces))
    return np.sqrt(tree.squared_distance(vertices, faces, points)[0])
