"""Which wall a patch lies on, and how."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pliant.boundary.wall_patches import ON_WALL, WallPatch
from pliant.core.world import wall_distance
from pliant.geometry.patches import Disc, Rectangle

LEVEL = 0.7  # cosine: how much a patch may be tilted against its wall
STEP = 0.05  # in spacings: over which the direction of a wall is found by differences


def find_wall(walls: Sequence[Any], patch: Disc | Rectangle) -> tuple[int, float]:
    """The nearest of some walls to the centre of a patch, by its number, and how far it is [m]."""
    distances = [float(wall_distance(wall, patch.middle()[None])[0]) for wall in walls]
    nearest = int(np.argmin(np.abs(distances)))
    return nearest, distances[nearest]


def wall_normal(wall: Any, point: np.ndarray, spacing: float) -> np.ndarray:
    """(3,) the direction away from a wall at a point of its surface; zero where it has none."""
    step = STEP * spacing * np.eye(3)
    way = wall_distance(wall, point + step) - wall_distance(wall, point - step)
    size = float(np.linalg.norm(way))
    return way / size if size > 0 else np.zeros(3)


def patch_problems(walls: Sequence[Any], patch: Disc | Rectangle, spacing: float) -> list[str]:
    """What is wrong with where a patch lies, one sentence each."""
    if not walls:
        return ["a patch lies on a wall, and the scene has none; add a pl.Boundary"]
    number, distance = find_wall(walls, patch)
    wall, kind = walls[number], type(patch).__name__
    if abs(distance) > ON_WALL * spacing:
        return [f"its {kind} lies on no wall: the nearest, {wall.name!r}, is {abs(distance):.3g} m away from its "
                f"centre (at most {ON_WALL * spacing:.3g} m)"]  # fmt: skip
    n = wall_normal(wall, patch.middle(), spacing)
    given = None if patch.normal is None else patch.axes(patch.normal)[2]
    if not n.any() or given is not None and abs(given @ n) < LEVEL:
        way = ", ".join(f"{a:.2g}" for a in n)
        return [f"its {kind} does not lie flat on {wall.name!r}, which faces ({way}) there; leave out its normal"]
    return []


def wall_patch(wall: Any, patch: Disc | Rectangle, spacing: float) -> WallPatch:
    """A patch on its wall: its normal points away from the wall, and its centre lies on the surface."""
    n = wall_normal(wall, patch.middle(), spacing)
    axes = patch.axes(n)
    if axes[2] @ n < 0:
        axes = axes * np.array([[-1.0], [1.0], [-1.0]])
    center = patch.middle() - float(wall_distance(wall, patch.middle()[None])[0]) * n
    half = patch.extent()[1]
    radius = float(patch.radius) if isinstance(patch, Disc) else 0.0
    return WallPatch(center, axes, (float(half[0]), float(half[1])), radius, patch.area())
