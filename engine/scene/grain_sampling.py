"""Where the grains of a granular body lie at the start: spread evenly but in no pattern through its own shape.

A periodic tile of points, relaxed by mutual repulsion from random ones (blue noise), is laid over the shape again and
again. Balls of grains around the particles, as in Neder 2024 (Fig. 6), overlap, and their clumps show from the start.
"""

import functools

import numpy as np
from scipy.spatial import cKDTree

from pliant.core.world import World
from pliant.errors import SceneError
from pliant.scene.assembly import Filling, wall_distance
from pliant.scene.scene import Body
from pliant.solvers.granular.grains import GrainBody, Grains

TILE = 16  # grains along the edge of the tile
RELAXING = 40  # rounds of repulsion; the nearest neighbours are then 0.7 grain spacings apart or more
NEIGHBOURS = 12
NEAR = 0.9  # in spacings: how far from the particles of a body its grains may lie; a cube's corner is 0.87 away
CLOSE = 0.25  # in spacings: here they lie whatever the shape says, since some particles stand on its very surface
SURPLUS = 1.04  # so many times more points than wanted are thinned out at random, and no more: thinning makes noise
ROUNDS = 16


def make_grains(world: World, fillings: list[Filling], walls: list[Body], sown: bool) -> Grains | None:
    """The grains of a scene, if there are any: where they lie at the start if they are to be `sown`."""
    bodies: list[GrainBody] = []
    for number, filling in enumerate(fillings):
        material = filling.body.material
        each, first = int(getattr(material, "grains", 0)), bodies[-1].last if bodies else 0
        if each:
            last = first + each * len(filling.x)
            bodies.append(GrainBody(number, first, last, each, filling.volume_each, material.roughness))
    if not bodies:
        return None
    grains = Grains(world, bodies, [_distances(wall, world.spacing) for wall in walls])
    if sown:
        own = [fillings[body.number] for body in bodies]
        x = [sow(f, fillings, walls, world.spacing, b.radius) for f, b in zip(own, bodies, strict=True)]
        v = [np.broadcast_to(np.asarray(f.body.velocity, float), part.shape) for f, part in zip(own, x, strict=True)]
        grains.set(np.concatenate(x), np.concatenate(v))
    return grains


def _distances(wall: Body, spacing: float) -> tuple:
    """A wall as `Grains` takes it."""
    key = f"{wall.shape.key()} {wall.material.inside_out} {spacing!r}"
    return functools.partial(wall_distance, wall), wall.shape.bounds(), bool(wall.material.inside_out), key


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


def sow(filling: Filling, others: list[Filling], walls: list[Body], spacing: float, radius: float) -> np.ndarray:
    """Grains (n, 3) [m] of one body, `material.grains` for each of its particles, whose `spacing` is [m]: in its shape,
    nearer to its own particles than to those of others, `radius` [m] or more away from walls."""
    wanted = filling.body.material.grains * len(filling.x)
    own, foreign = cKDTree(filling.x), [cKDTree(other.x) for other in others if other is not filling]
    apart, best = 2 * radius / SURPLUS ** (1 / 6), np.zeros((0, 3))
    for _ in range(ROUNDS):
        points = _tiled(filling.x, apart, spacing)
        points = _inside(points, filling.body, own, foreign, walls, spacing, radius)
        if len(points) >= wanted and (len(best) < wanted or len(points) < len(best)):
            best = points
        if wanted <= len(points) <= SURPLUS * wanted:
            break
        apart *= (max(len(points), 1) / wanted / SURPLUS**0.5) ** (1 / 3)
    if len(best) < wanted:
        raise SceneError([f"{filling.body.name}: walls leave no room for its grains; use larger bodies or grains=0"])
    kept = np.random.default_rng(0).permutation(len(best))[:wanted]
    best = best[np.sort(kept)]
    return best[np.lexsort(np.floor(best / (2 * spacing)).T)]  # neighbours in space are neighbours in memory


def _tiled(x: np.ndarray, apart: float, reach: float) -> np.ndarray:
    """Tiles with points `apart` wherever particles are in reach."""
    edge = TILE * apart
    steps = np.linspace(-reach, reach, int(np.ceil(2 * reach / edge)) + 1)
    around = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(-1, 3)
    cells = np.unique(np.concatenate([np.floor((x + step) / edge) for step in around]).astype(np.int64), axis=0)
    return apart * (TILE * cells[:, None] + tile()[None]).reshape(-1, 3)


def _inside(points: np.ndarray, body: Body, own: cKDTree, foreign: list[cKDTree], walls: list[Body], spacing: float,
            radius: float) -> np.ndarray:  # fmt: skip
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
