"""Even points on a surface: for the particles of rigid bodies and shells, and to draw or measure a surface.

A maximal Poisson disk sampling (Cook 1986, Ebeida et al. 2012): no two points are closer than a distance r, and no
place on the surface is farther than about r from a point. Corners come first, then sharp edges, then faces, so that
boxes have their edges. Distances are measured through space: on a sheet thinner than r, the points of one side keep
those of the other away.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pliant.errors import PliantError
from pliant.geometry.exposed import bounds_inside
from pliant.geometry.mesh import Mesh
from pliant.geometry.shapes import Shape
from pliant.geometry.surface import Surface

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# Points per r^2. Discs of diameter r thrown at random until none fits cover 0.547 of a plane (Feder 1980), which makes
# 0.70; the rounds below end a little before that.
THROWN = 0.64
HEXAGONAL = 2.0 / np.sqrt(3.0)  # points per spacing^2 in the densest arrangement
TRIES = 4  # candidates for each point wanted, in each round
EDGE_ROUNDS = 3
ROUNDS, LAST = 12, 1e-3  # of throwing, at most, and the share of new points at which it ends
SEARCHES = 8  # for the distance that gives a wanted number
SURPLUS = 0.02  # points that may be too many, to be taken away one by one
MOST_POINTS = 10**8
BESIDE, STEPS = 1e-3, 2  # part of the spacing by which points may miss the surface, and steps towards it
LIFTED = 1e-5  # of the size of a surface: where it is asked whether a point is inside another shell


def sample_surface(
    shape: Shape, spacing: float | None = None, count: int | None = None, seed: int = 0
) -> tuple[Array, Array]:
    """Even points (n, 3) [m] on the surface of a shape, and the outward unit normals (n, 3) there.

    Give either `spacing` [m], in (0, inf): n is about area / (sqrt(3)/2 spacing^2), the number that a hexagonal lattice
    of this spacing has, and points are at least 0.74 spacing apart; or `count`, in [1, 1e8]: exactly so many points.
    Equal for equal `seed` (a whole number from 0). The points are thrown on `shape.triangles()`, and moved along the
    gradient of the distance where these lie beside the surface, as with the facets of a ball.
    """
    problem = _problem(shape, spacing, count, seed)
    if problem:
        raise PliantError(problem)
    surface = shape.surface if isinstance(shape, Mesh) else Surface(*shape.triangles())
    points, normals = sample_triangles(surface, spacing, count, seed)
    return _pulled(shape, points, np.sqrt(surface.outer_area / len(points))), normals


def _pulled(shape: Shape, points: Array, spacing: float) -> Array:
    """Points moved onto the surface d = 0 by x - d grad d, in which central differences stand for the gradient."""
    for _ in range(STEPS):
        d = shape.signed_distance(points)
        beside = np.flatnonzero(np.abs(d) > BESIDE * spacing)
        if not len(beside):
            break
        step, x = BESIDE * spacing, points[beside]
        change = [shape.signed_distance(x + step * e) - shape.signed_distance(x - step * e) for e in np.eye(3)]
        points[beside] -= d[beside, None] * np.stack(change, axis=1) / (2.0 * step)
    return points


def sample_triangles(surface: Surface, spacing: float | None, count: int | None, seed: int) -> tuple[Array, Array]:
    """The same for a surface; the values have been checked."""
    if spacing is not None:
        if HEXAGONAL * surface.outer_area / spacing**2 > MOST_POINTS:
            raise PliantError(f"an area of {surface.outer_area:g} m^2 takes more than {MOST_POINTS:g} points of "
                              f"spacing {spacing:g} m; use a larger spacing")  # fmt: skip
        return _throw(surface, spacing * np.sqrt(THROWN / HEXAGONAL), seed)
    assert count is not None
    aim = count * (1.0 + 0.5 * SURPLUS) + 0.5
    r = np.sqrt(THROWN * surface.outer_area / aim)
    for _ in range(SEARCHES):
        points, normals = _throw(surface, r, seed)
        if count <= len(points) <= count * (1.0 + SURPLUS) + 1:
            break
        r *= np.clip(np.sqrt(len(points) / aim), 0.5, 2.0)
    while len(points) < count:  # a few points: their number jumps with the distance
        r *= 0.98
        points, normals = _throw(surface, r, seed)
    keep = _thinned(points, count)
    return points[keep], normals[keep]


def _problem(shape: Any, spacing: Any, count: Any, seed: Any) -> str:
    """One sentence if the values of `sample_surface` make no sense."""
    if not isinstance(shape, Shape):
        return f"sample_surface takes a shape, got {type(shape).__name__}"
    if (spacing is None) == (count is None):
        return "give sample_surface either a spacing or a count"
    if spacing is not None and not (_number(spacing) and 0.0 < spacing < np.inf):
        return f"spacing must be in (0, inf) m, got {spacing!r}"
    if count is not None and not (_number(count) and count == int(count) and 1 <= count <= MOST_POINTS):
        return f"count must be a whole number in [1, {MOST_POINTS:g}], got {count!r}"
    if not (isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and seed >= 0):
        return f"seed must be a whole number from 0, got {seed!r}"
    found = shape.problems()
    if found:
        return found[0]
    if not np.isfinite(shape.bounds()).all():
        return f"{type(shape).__name__} is infinite and has no surface to sample; intersect it with a Box"
    return ""


def _number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and bool(np.isfinite(value))


def _throw(surface: Surface, r: float, seed: int) -> tuple[Array, Array]:
    """Points at least r apart, until hardly any more fits."""
    rng = np.random.default_rng(seed)
    sharp, blunt = surface.sharp_edges()
    points = normals = np.zeros((0, 3))
    points, normals = _added(surface, points, normals, *_corners(surface, sharp, blunt), r, rng)
    tries = int(TRIES * THROWN * surface.area / r**2) + 16
    length = float(np.linalg.norm(np.diff(surface.vertices[sharp], axis=1), axis=2).sum())
    for _ in range(EDGE_ROUNDS if len(sharp) else 0):
        new = _on_edges(surface, sharp, blunt, 4 + int(TRIES * length / r), rng)
        points, normals = _added(surface, points, normals, *new, r, rng)
    for _ in range(ROUNDS):
        before = len(points)
        points, normals = _added(surface, points, normals, *_on_faces(surface, tries, rng), r, rng)
        if len(points) - before <= LAST * len(points):
            break
    return points, normals / np.maximum(np.linalg.norm(normals, axis=1), 1e-300)[:, None]


def _corners(surface: Surface, sharp: Integers, blunt: Array) -> tuple[Array, Array]:
    """Vertices where other than two sharp edges meet, and the sums of the normals of these edges."""
    n = len(surface.vertices)
    ends = sharp.T.reshape(-1)
    degree = np.bincount(ends, minlength=n)
    corner = (degree > 0) & (degree != 2)
    normal = np.stack([np.bincount(ends, weights=np.tile(blunt[:, k], 2), minlength=n) for k in range(3)], axis=1)
    return surface.vertices[corner], normal[corner]


def _on_edges(surface: Surface, sharp: Integers, blunt: Array, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    a, b = surface.vertices[sharp[:, 0]], surface.vertices[sharp[:, 1]]
    edge = _strata(np.linalg.norm(b - a, axis=1), n, rng)
    return a[edge] + rng.random((n, 1)) * (b - a)[edge], blunt[edge]


def _on_faces(surface: Surface, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    normals = surface.face_normals
    face = _strata(np.linalg.norm(normals, axis=1), n, rng)
    a, b, c = np.moveaxis(surface.vertices[surface.faces[face]], 1, 0)
    s, t = np.sqrt(rng.random((n, 1))), rng.random((n, 1))  # uniform on a triangle (Osada et al. 2002)
    return (1.0 - s) * a + s * (1.0 - t) * b + s * t * c, normals[face]


def _outer(surface: Surface, points: Array, normals: Array) -> tuple[Array, Array]:
    """Without the points that lie inside the solid, where shells overlap."""
    if surface.overlap == 0.0 or not len(points):
        return points, normals
    unit = normals / np.maximum(np.linalg.norm(normals, axis=1), 1e-300)[:, None]
    lift = LIFTED * float(np.ptp(surface.bounds, axis=0).max()) * unit
    outer = bounds_inside(surface.winding(points + lift), surface.winding(points - lift))
    return points[outer], normals[outer]


def _strata(weights: Array, n: int, rng: np.random.Generator) -> Integers:
    """n indices by weight, one from each n-th part of the total."""
    total = np.cumsum(weights)
    return np.minimum(np.searchsorted(total, (np.arange(n) + rng.random(n)) / n * total[-1]), len(weights) - 1)


def _added(surface: Surface, points: Array, normals: Array, new: Array, new_normals: Array, r: float,
           rng: np.random.Generator) -> tuple[Array, Array]:  # fmt: skip
    """With those of the new points that are r from the old ones and, in random order, from each other."""
    if len(points) and len(new):
        free = np.isinf(cKDTree(points).query(new, distance_upper_bound=r, workers=-1)[0])
        new, new_normals = new[free], new_normals[free]
    new, new_normals = _outer(surface, new, new_normals)
    if len(new):
        order = rng.permutation(len(new))
        new, new_normals = new[order], new_normals[order]
        chosen = _apart(new, r)
        points, normals = np.concatenate([points, new[chosen]]), np.concatenate([normals, new_normals[chosen]])
    return points, normals


def _apart(points: Array, r: float) -> NDArray[np.bool_]:
    """Points in the order given, each taken if no earlier one that is taken is closer than r; in rounds: whoever has no
    undecided earlier neighbor is taken, and decides its later ones."""
    pairs = cKDTree(points).query_pairs(r, output_type="ndarray")  # i < j
    taken, decided = np.zeros(len(points), dtype=bool), np.zeros(len(points), dtype=bool)
    while not decided.all():
        waits = np.zeros(len(points), dtype=bool)
        waits[pairs[:, 1]] = True
        now = ~decided & ~waits
        taken |= now
        decided |= now
        decided[pairs[taken[pairs[:, 0]], 1]] = True
        pairs = pairs[~decided[pairs[:, 0]] & ~decided[pairs[:, 1]]]
    return taken


def _thinned(points: Array, count: int) -> NDArray[np.bool_]:
    """Which points remain if the most crowded ones are taken away until `count` are left."""
    keep = np.ones(len(points), dtype=bool)
    while np.count_nonzero(keep) > count:
        alive = np.flatnonzero(keep)
        distance, near = cKDTree(points[alive]).query(points[alive], k=2)
        order = np.argsort(distance[:, 1], kind="stable")
        spoilt = np.zeros(len(alive), dtype=bool)
        for i in order[: len(alive) - count]:  # few, by the search before
            if not spoilt[i] and not spoilt[near[i, 1]]:
                keep[alive[i]] = False
                spoilt[[i, near[i, 1]]] = True
    return keep
