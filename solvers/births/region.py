"""Which particles are in a region: a box on the device, and whatever shape on those few that are in its box."""

from collections.abc import Callable, Sequence

import numpy as np
import taichi as ti
from scipy.spatial import cKDTree

from pliant.core.backend import Ints, Vectors, vec3
from pliant.core.particles import Particles
from pliant.core.reduce import BLOCKS, block
from pliant.core.world import BodySamples, World, wall_distance

FAR = 1e30  # [m]: what single precision has for infinity here


@ti.kernel
def _count(n: ti.i32, box: Vectors, x: Vectors, count: Ints):
    ti.loop_config(block_dim=1)
    for b in range(BLOCKS):
        lo, hi = block(b, n)
        total = 0
        for i in range(lo, hi):
            total += ti.cast((x[i] >= box[0]).all() and (x[i] <= box[1]).all(), ti.i32)
        count[b] = total


@ti.kernel
def _list(n: ti.i32, box: Vectors, x: Vectors, first: Ints, found: Ints):
    ti.loop_config(block_dim=1)
    for b in range(BLOCKS):
        lo, hi = block(b, n)
        k = first[b]
        for i in range(lo, hi):
            if (x[i] >= box[0]).all() and (x[i] <= box[1]).all():
                found[k] = i
                k += 1


class Region:
    """Finds particles in boxes, and tells where there is room. `walls` are those of the scene as they were built."""

    def __init__(self, world: World, walls: Sequence[BodySamples]) -> None:
        self.world, self._walls = world, walls
        self._box, self._count = ti.ndarray(vec3, 2), np.zeros(BLOCKS, np.int32)

    def rows_in_box(self, particles: Particles, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The rows of the particles between two corners [m]."""
        if not particles.n:
            return np.zeros(0, np.int32)
        self._box.from_numpy(np.clip([low, high], -FAR, FAR).astype(np.float32))
        _count(particles.n, self._box, particles.x, self._count)
        total = int(self._count.sum())
        found = np.zeros(total, np.int32)
        if total:
            _list(particles.n, self._box, particles.x, (np.cumsum(self._count) - self._count).astype(np.int32), found)
        return found

    def rows_in(self, particles: Particles, bounds: np.ndarray, pose: np.ndarray | None,
                inside: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:  # fmt: skip
        """The rows of the particles inside of a shape with these bounds (2, 3), which a (4, 4) `pose` has moved."""
        low, high = bounds if pose is None else _box_around(bounds, pose)
        rows = self.rows_in_box(particles, low, high)
        if not len(rows):
            return rows
        x = particles.read("x", rows).astype(float)
        if pose is not None:
            x = (x - pose[:3, 3]) @ pose[:3, :3]
        return rows[inside(x)]

    def is_free_of_particles(self, x: np.ndarray, gap: float) -> bool:
        """Whether no particle is nearer to points x (n, 3) [m] than `gap` [m]."""
        p = self.world.particles
        rows = self.rows_in_box(p, x.min(axis=0) - gap, x.max(axis=0) + gap)
        return not len(rows) or not (cKDTree(p.read("x", rows)).query(x)[0] < gap).any()

    def is_free_of_walls(self, x: np.ndarray, gap: float, moved: bool = False) -> bool:
        """The same for walls, or for those alone that have moved."""
        walls = [pair for pair in zip(self.world.walls.walls, self._walls, strict=True) if pair[0].moved or not moved]
        return all((wall_distance(samples, wall.unplaced(x)) >= gap).all() for wall, samples in walls)


def _box_around(bounds: np.ndarray, pose: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners of a box around a box that was moved."""
    if not np.isfinite(bounds).all():
        return np.full(3, -FAR), np.full(3, FAR)
    corners = np.array([[bounds[c >> k & 1, k] for k in range(3)] for c in range(8)]) @ pose[:3, :3].T + pose[:3, 3]
    return corners.min(axis=0), corners.max(axis=0)
