"""Where the grains of a granular body lie at the start: spread evenly but in no pattern through its own shape.

A periodic tile of points, relaxed by mutual repulsion from random ones (blue noise), is laid over the shape again and
again. Balls of grains around the particles, as in Neder 2024 (Fig. 6), overlap, and their clumps show from the start.
"""

import functools
from collections.abc import Sequence

import numpy as np
from scipy.spatial import cKDTree

from pliant.core.world import BodySamples, wall_distance
from pliant.errors import SceneError

TILE = 16  # grains along the edge of the tile
RELAXING = 40  # rounds of repulsion; the nearest neighbors are then 0.7 grain spacings apart or more
NEIGHBOURS = 12
NEAR = 0.9  # in spacings: how far from the particles of a body its grains may lie; a cube's corner is 0.87 away
CLOSE = 0.25  # in spacings: here they lie whatever the shape says, since some particles stand on its very surface
SURPLUS = 1.04  # so many times more points than wanted are thinned out at random, and no more: thinning makes noise
ROUNDS = 16


@functools.cache
def tile() -> np.ndarray:
    """TILE^3 points in a cube of edge TILE, which may be repeated in all directions."""
    rng = np.random.default_rng(0)
    x = rng.random((TILE**3, 3)) * TILE
    for _ in range(RELAXING):
        r, j = cKDTree(x, boxsize=TILE).query(x, NEIGHBOURS + 1)
        apart = x[:, None] - x[j[:, 1:]]
        apart -= TILE * np.round(apart / TILE)
        r = np.maximum(r[:, 1:, None], 1e-6)
        x = (x + 0.15 * (apart / r * np.clip(1.25 - r, 0.0, None)).sum(axis=1)) % TILE
    return np.where(x < TILE, x, 0.0)  # what the remainder rounds up to the edge belongs to the other side


def sample_grains(body: BodySamples, bodies: Sequence[BodySamples], spacing: float, radius: float) -> np.ndarray:
    """Grains (n, 3) [m] of one body, `material.grains` for each of its particles, whose `spacing` is [m]: in its shape,
    nearer to its own particles than to those of others, `radius` [m] or more away from walls."""
    wanted = body.material.grains * len(body.x)
    others = [b for b in bodies if b.material.has_particles and b is not body]
    own, foreign = cKDTree(body.x), [cKDTree(other.x) for other in others]
    walls = [b for b in bodies if b.material.is_wall]
    apart, best = 2 * radius / SURPLUS ** (1 / 6), np.zeros((0, 3))
    for _ in range(ROUNDS):
        points = _tiled(body.x, apart, spacing)
        points = _inside(points, body, own, foreign, walls, spacing, radius)
        if len(points) >= wanted and (len(best) < wanted or len(points) < len(best)):
            best = points
        if wanted <= len(points) <= SURPLUS * wanted:
            break
        apart *= (max(len(points), 1) / wanted / SURPLUS**0.5) ** (1 / 3)
    if len(best) < wanted:
        raise SceneError([f"{body.name}: walls leave no room for its grains; use larger bodies or grains=0"])
    kept = np.random.default_rng(0).permutation(len(best))[:wanted]
    best = best[np.sort(kept)]
    return best[np.lexsort(np.floor(best / (2 * spacing)).T)]  # neighbors in space are neighbors in memory


def _tiled(x: np.ndarray, apart: float, reach: float) -> np.ndarray:
    """Tiles with points `apart` wherever particles are in reach."""
    edge = TILE * apart
    steps = np.linspace(-reach, reach, int(np.ceil(2 * reach / edge)) + 1)
    around = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(-1, 3)
    cells = np.unique(np.concatenate([np.floor((x + step) / edge) for step in around]).astype(np.int64), axis=0)
    return apart * (TILE * cells[:, None] + tile()[None]).reshape(-1, 3)


def _inside(points: np.ndarray, body: BodySamples, own: cKDTree, foreign: list[cKDTree], walls: list[BodySamples],
            spacing: float, radius: float) -> np.ndarray:  # fmt: skip
    """Those of the points where grains of the body may lie."""
    r = own.query(points, distance_upper_bound=NEAR * spacing, workers=-1)[0]
    points, r = points[r < np.inf], r[r < np.inf]
    kept = (body.shape.signed_distance(points) <= 0.0) | (r < CLOSE * spacing)
    points, r = points[kept], r[kept]
    for wall in walls:
        kept = wall_distance(wall, points) >= radius
        points, r = points[kept], r[kept]
    for tree in foreign:
        kept = tree.query(points, distance_upper_bound=NEAR * spacing, workers=-1)[0] >= r
        points, r = points[kept], r[kept]
    return points
