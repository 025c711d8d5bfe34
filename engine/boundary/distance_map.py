"""Signed distances on the device: a sparse grid around a surface that kernels sample, with its gradient.

Space is cut into blocks of 8^3 nodes. Only those near the surface have values; of the others it is known on which side
they lie. Quadratic B-splines interpolate the values: exact for a plane, whatever the resolution, with a continuous
gradient, whose length falls below one where two sides of a thin part are equally near.
"""

import copy
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import taichi as ti

from pliant.core.backend import ivec3, upload, vec3
from pliant.core.cache import cache_folder, keep, kept

BLOCK = 8  # nodes along a block's edge, beside one more on each side that its splines reach
SIDE = BLOCK + 2
NODES = SIDE**3
CELLS_PER_SPACING = 2
FAR = 4.0  # in spacings: distances are cut off here
OUTSIDE, INSIDE, BEYOND = -1, -2, -3  # directory entries of blocks without nodes
QUERY = 400_000  # points asked for at a time: bounds memory
MAP_VERSION = 8

Directory: TypeAlias = ti.types.ndarray(dtype=ti.i32, ndim=3)
Places: TypeAlias = ti.types.ndarray(dtype=ivec3, ndim=1)
Blocks: TypeAlias = ti.types.ndarray(dtype=ti.f32, ndim=2)


@ti.func
def sample(x: vec3, origin: vec3, cell: ti.f32, far: ti.f32, beyond: ti.f32, directory: ti.template(),
           spline: ti.template()):  # fmt: skip
    """Distance at x and its gradient; constant where there are no values."""
    u = (x - origin) / cell
    b = block_at(u)
    block = BEYOND
    if (b >= 0).all() and b[0] < directory.shape[0] and b[1] < directory.shape[1] and b[2] < directory.shape[2]:
        block = directory[b]
    return interpolate(u, b, block, cell, far, beyond, spline)


@ti.func
def block_at(u: vec3):
    """The block that owns the node nearest to a point, which is given in cells from the first node."""
    return ti.floor(ti.cast(ti.round(u, ti.i32), ti.f32) / BLOCK, ti.i32)


@ti.func
def interpolate(u: vec3, b: ivec3, block: ti.i32, cell: ti.f32, far: ti.f32, beyond: ti.f32, spline: ti.template()):
    """Distance and its gradient in a block, which is the b-th in space, from the 27 spline coefficients around a
    point."""
    value, gradient = beyond, vec3(0.0)
    if block == OUTSIDE:
        value = far
    elif block == INSIDE:
        value = -far
    elif block >= 0:
        nearest = ti.round(u, ti.i32)
        t = u - nearest
        w = (0.5 * (0.5 - t) ** 2, 0.75 - t**2, 0.5 * (0.5 + t) ** 2)
        s = ((t - 0.5) / cell, -2.0 * t / cell, (t + 0.5) / cell)
        base = nearest - b * BLOCK
        first = base[0] + SIDE * (base[1] + SIDE * base[2])
        value = 0.0
        for k in ti.static(range(3)):
            for j in ti.static(range(3)):
                row = first + SIDE * (j + SIDE * k)
                a, c, e = spline[block, row], spline[block, row + 1], spline[block, row + 2]
                along = w[0][0] * a + w[1][0] * c + w[2][0] * e
                value += along * w[j][1] * w[k][2]
                gradient += vec3((s[0][0] * a + s[1][0] * c + s[2][0] * e) * w[j][1] * w[k][2],
                                 along * s[j][1] * w[k][2], along * w[j][1] * s[k][2])  # fmt: skip
    return value, gradient


@ti.func
def node_at(node: ti.i32):
    """Coordinates of a stored node relative to its block's first own node."""
    return ti.Vector([node % SIDE - 1, node // SIDE % SIDE - 1, node // SIDE**2 - 1])


@ti.kernel
def spline_coefficients(place: Places, directory: Directory, values: Blocks, spline: Blocks):
    """c = phi - (second differences of phi) / 8: with these the spline passes through phi up to fourth order.
    Where a difference would need a node of a missing block it is left out; nobody samples there."""
    for b, node in ti.ndrange(place.shape[0], NODES):
        o = node_at(node)
        own = values[b, node]
        correction = 0.0
        for axis in ti.static(range(3)):
            total, found = -2.0 * own, 0
            for side in ti.static((-1, 1)):
                q = place[b] * BLOCK + o
                q[axis] += side
                c = ti.floor(ti.cast(q, ti.f32) / BLOCK, ti.i32)
                if ((c >= 0).all() and c[0] < directory.shape[0] and c[1] < directory.shape[1]
                        and c[2] < directory.shape[2]):  # fmt: skip
                    if directory[c] >= 0:
                        l = q - c * BLOCK + 1
                        total += values[directory[c], l[0] + SIDE * (l[1] + SIDE * l[2])]
                        found += 1
            correction += ti.select(found == 2, total, 0.0)
        spline[b, node] = own - correction / 8.0


Map = TypeVar("Map", bound="DistanceMap")


class DistanceMap:
    """A distance function on the device, good from `depth` below zero to `reach` above (both in spacings).

    `bounds` is the box that contains the surface; beyond the map the distance is far, and negative if `solid_beyond`.
    Maps are cached on disk under `key`.
    """

    def __init__(self, signed_distance: Callable[[np.ndarray], np.ndarray], bounds: np.ndarray, spacing: float,
                 reach: float, depth: float, solid_beyond: bool, key: str = ""):  # fmt: skip
        self.spacing, self.cell, self.far = spacing, spacing / CELLS_PER_SPACING, FAR * spacing
        self.reach, self.depth = reach * spacing, depth * spacing
        self.beyond = -self.far if solid_beyond else self.far
        stored = kept(self._path(key), ("origin", "directory", "spline")) if key else None
        if stored is None:
            stored = self._compute(signed_distance, bounds)
            if key:
                keep(self._path(key), stored)
        self.origin, self.blocks = stored["origin"], len(stored["spline"])
        self.directory, self.spline = upload(stored["directory"], ti.i32), upload(stored["spline"], ti.f32)

    def moved(self: Map, offset: np.ndarray) -> Map:
        """The map of a copy of the wall, elsewhere. Both share what is on the device."""
        other = copy.copy(self)
        other.origin = self.origin + offset
        return other

    def _compute(self, signed_distance: Any, bounds: np.ndarray) -> dict[str, np.ndarray]:
        margin = self.reach + self.depth
        origin = np.asarray(bounds[0], dtype=float) - margin
        dims = np.ceil((bounds[1] + margin - origin) / (BLOCK * self.cell)).astype(int) + 1
        near, blocks = self._directory(signed_distance, origin, dims)
        distances = self._distances(signed_distance, origin, blocks)
        place, directory = upload(blocks, ivec3), upload(near, ti.i32)
        values, spline = upload(distances, ti.f32), upload(distances, ti.f32)
        if len(blocks):
            spline_coefficients(place, directory, values, spline)
            self._refine(origin, place, directory, values, spline)
        return {"origin": origin, "directory": near, "spline": spline.to_numpy()[: len(blocks)]}

    def _refine(self, origin: np.ndarray, place: Any, directory: Any, values: Any, spline: Any) -> None:
        """What a kind of map makes of the distances."""

    def _directory(self, signed_distance: Any, origin: np.ndarray, dims: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which blocks come near the surface, and the places of those that do."""
        place = np.stack(np.meshgrid(*[np.arange(k) for k in dims], indexing="ij"), -1).reshape(-1, 3)
        middle = (BLOCK - 1) / 2  # a block owns what is nearest to its nodes
        phi = signed_distance(origin + (place * BLOCK + middle) * self.cell)
        half_diagonal = np.sqrt(3) / 2 * BLOCK * self.cell
        near = (phi < self.reach + half_diagonal) & (phi > -self.depth - half_diagonal)
        directory = np.where(phi > 0, OUTSIDE, INSIDE).astype(np.int32)
        directory[near] = np.arange(near.sum())
        return directory.reshape(dims), place[near]

    def _distances(self, signed_distance: Any, origin: np.ndarray, blocks: np.ndarray) -> np.ndarray:
        """At the nodes of the blocks; what several blocks share is asked for once."""
        k = np.arange(-1, BLOCK + 1)
        z, y, x = np.meshgrid(k, k, k, indexing="ij")  # x runs fastest in a block
        nodes = (blocks[:, None, :] * BLOCK + np.stack([x, y, z], -1).reshape(1, -1, 3) + 1).reshape(-1, 3)
        side = np.int64(nodes.max(initial=0) + 1)
        codes, where = np.unique((nodes[:, 0] * side + nodes[:, 1]) * side + nodes[:, 2], return_inverse=True)
        phi = np.empty(len(codes), np.float32)
        for lo in range(0, len(codes), QUERY):
            some = codes[lo : lo + QUERY]
            at = np.stack([some // side**2, some // side % side, some % side], axis=1) - 1
            phi[lo : lo + QUERY] = np.clip(signed_distance(origin + at * self.cell), -self.far, self.far)
        return phi[where].reshape(-1, NODES)

    def _path(self, key: str) -> Path:
        name = f"{type(self).__name__} {MAP_VERSION} {self.reach!r} {self.depth!r} {self.beyond!r} {key}"
        return cache_folder() / "maps" / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.npz"

    @property
    def bytes(self) -> int:
        return 4 * (self.blocks * NODES + int(np.prod(self.directory.shape)))
