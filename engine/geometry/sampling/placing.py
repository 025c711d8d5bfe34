"""First places for a given number of particles: a lattice in the inside of a shape, shares of it at the surface.

A cell of the lattice whose inside is whole gets one particle. Where the surface cuts cells, each is due a share of one,
and the shares are added up along a Hilbert curve, which visits neighbors one after the other: whenever the sum passes
a whole number, the cell it has come to gets a particle. So the number comes out exactly, no part of the shape is
forgotten because it lies between two planes of the lattice, and nothing is left to chance.

A share is the cell's part of the volume, and more where the shape is thin: divided by (kernel integral)^CROWDING. The
integral of the smoothing kernel over the shape is 1 deep inside, 0.8 below a flat surface and 0.3 in a claw as thick as
a particle. Particles that are to have the density of the inside must stand closer there. (Kugelstadt 2021 begins with a
grid of half the spacing, which has eight times too many nodes, and does not say how the surplus is removed.)
"""

from collections.abc import Iterator

import numpy as np
import taichi as ti
from numpy.typing import NDArray

from pliant.boundary.distance_map import Blocks, Directory, DistanceMap, sample
from pliant.core.backend import Reals, Vectors, upload, vec3
from pliant.core.smoothing import SPACINGS_PER_SUPPORT, Smoothing
from pliant.errors import PliantError

Array = NDArray[np.float64]

CROWDING = 0.9  # power of the kernel integral; 1 makes densities even at once, but crowds spikes
FAINT, FIRM = 0.04, 0.16  # kernel integrals below and above: a hair thinner than half a spacing gets no particle
LEAST_INTEGRAL = 0.05
DEEP = 2.5  # in spacings: below, a cell and all that its kernel reaches are inside
PARTS = 2  # along the edge of a cell
STENCIL = 0.5  # in spacings: between the points at which the kernel integral looks
ROUNDS = 4  # of fitting the cell size to the number
CLOSE = 1e-3  # relative error of the number that is close enough for the surface to make up for
SLAB = 400_000  # cells looked at at a time: bounds memory


def map_table(distances: DistanceMap) -> ti.Ndarray:
    """The numbers of a map as kernels take them: vectors as arguments cost more to pass than arrays."""
    return upload(np.array([distances.origin, [distances.cell, distances.far, distances.beyond]]), vec3)


@ti.func
def depth_at(x: vec3, table: ti.template(), directory: ti.template(), spline: ti.template()):
    """Depth below the surface and its gradient."""
    return sample(x, table[0], table[1][0], table[1][1], table[1][2], directory, spline)


@ti.kernel
def _depths(n: ti.i32, x: Vectors, table: Vectors, directory: Directory, spline: Blocks, depth: Reals):
    for i in range(n):
        depth[i] = depth_at(x[i], table, directory, spline)[0]


@ti.func
def filled(depth: ti.f32, width: ti.f32):
    """Share of a small cell that is inside, from the depth of its middle."""
    return ti.min(ti.max(0.5 + depth / width, 0.0), 1.0)


@ti.kernel
def _shares(n: ti.i32, middle: Vectors, cell: ti.f32, spacing: ti.f32, crowding: ti.f32, offset: Vectors,
            weight: Reals, table: Vectors, directory: Directory, spline: Blocks, share: Reals,
            centre: Vectors):  # fmt: skip
    """How many particles each cell is due, and the centre of its inside."""
    part = cell / PARTS
    for i in range(n):
        share[i], centre[i] = 1.0, middle[i]
        if depth_at(middle[i], table, directory, spline)[0] < DEEP * spacing:
            total, place = 0.0, vec3(0.0)
            for k in range(PARTS**3):
                corner = vec3(k % PARTS, k // PARTS % PARTS, k // PARTS**2)
                x = middle[i] + part * (corner + 0.5 - 0.5 * PARTS)
                own = filled(depth_at(x, table, directory, spline)[0], part)
                if own > 0.0:
                    integral = 0.0
                    for l in range(offset.shape[0]):
                        there = depth_at(x + offset[l], table, directory, spline)[0]
                        integral += weight[l] * filled(there, STENCIL * spacing)
                    own *= ti.pow(ti.max(integral, LEAST_INTEGRAL), -crowding)
                    own *= ti.min(ti.max((integral - FAINT) / (FIRM - FAINT), 0.0), 1.0)
                total += own
                place += own * x
            share[i] = total / PARTS**3
            centre[i] = ti.select(total > 0.0, place / ti.max(total, 1e-9), middle[i])


class Lattice:
    """The cells of a shape, given by its map of depths and its bounds (2, 3)."""

    def __init__(self, depths: DistanceMap, bounds: Array, spacing: float, smoothing: Smoothing, crowding: float):
        self.bounds, self.spacing, self.crowding = bounds, spacing, crowding
        self.map = (map_table(depths), depths.directory, depths.spline)
        k = np.arange(-SPACINGS_PER_SUPPORT, SPACINGS_PER_SUPPORT + STENCIL, STENCIL)
        offset = np.stack(np.meshgrid(k, k, k, indexing="ij"), -1).reshape(-1, 3)
        weight = smoothing.profile(np.linalg.norm(offset, axis=1) / SPACINGS_PER_SUPPORT)
        near = weight > 1e-3 * weight.max()
        self.stencil = upload(offset[near] * spacing, vec3), upload(weight[near] / weight[near].sum(), ti.f32)

    def places(self, count: int, rng: np.random.Generator) -> Array:
        """`count` places (count, 3) [m]."""
        shift, cell = rng.random(3), self.spacing
        for _ in range(ROUNDS):
            index, share, centre = self._cells(cell, shift)
            self._check_some(share.any())
            if abs(share.sum() / count - 1) < CLOSE:
                break
            cell *= float((share.sum() / count) ** (1 / 3))
        share = _made_whole(share, count)
        order = hilbert_order(index)
        sums = np.floor(np.cumsum(share[order]) + 0.5).astype(np.int64)
        sums[-1] = count
        times = np.diff(sums, prepend=0)
        chosen = np.repeat(order, times)
        crowded = np.repeat(times > 1, times)
        scatter = rng.uniform(-0.25, 0.25, (len(chosen), 3)) * cell
        return np.where(crowded[:, None], centre[chosen] + scatter, centre[chosen])

    def inside(self, cell: float) -> Array:
        """The points inside (n, 3) [m] of a grid with cells of that size."""
        counts = np.ceil(np.ptp(self.bounds, axis=0) / cell).astype(np.int64)
        points = (self.bounds[0] + (index + 0.5) * cell for index in _slabs(counts))
        found = np.concatenate([x[self.depths(x) > 0.0] for x in points])
        self._check_some(len(found))
        return found

    def _check_some(self, found: object) -> None:
        if not found:
            raise PliantError(f"the shape is thinner than one particle of spacing {self.spacing:.3g} m; use a smaller "
                              "particle_radius")  # fmt: skip

    def _cells(self, cell: float, shift: Array) -> tuple[NDArray[np.int64], Array, Array]:
        """Indices, shares and centres of the cells that the shape reaches."""
        lower, upper = self.bounds
        counts = np.ceil((upper - lower) / cell).astype(np.int64) + 2
        origin = 0.5 * (lower + upper) - 0.5 * counts * cell + (shift - 0.5) * cell
        found = [self._slab(index, origin + (index + 0.5) * cell, cell) for index in _slabs(counts)]
        index, share, centre = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return index, share, centre

    def _slab(self, index: NDArray, middle: Array, cell: float) -> tuple[NDArray, Array, Array]:
        inside = self.depths(middle) > -np.sqrt(3) / 2 * cell
        index, n = index[inside], int(inside.sum())
        share, centre = ti.ndarray(ti.f32, max(n, 1)), ti.ndarray(vec3, max(n, 1))
        _shares(n, upload(middle[inside], vec3), cell, self.spacing, self.crowding, *self.stencil, *self.map, share,
                centre)  # fmt: skip
        return index, share.to_numpy()[:n].astype(float), centre.to_numpy()[:n].astype(float)

    def depths(self, x: Array) -> Array:
        """Depths (n,) [m] of points (n, 3) below the surface."""
        depth = ti.ndarray(ti.f32, max(len(x), 1))
        _depths(len(x), upload(x, vec3), *self.map, depth)
        return depth.to_numpy()[: len(x)].astype(float)


def _slabs(counts: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Indices (n, 3) of all cells, so many at a time."""
    thick = max(1, int(SLAB // (counts[1] * counts[2])))
    for first in range(0, int(counts[0]), thick):
        x = np.arange(first, min(first + thick, counts[0]))
        yield np.stack(np.meshgrid(x, np.arange(counts[1]), np.arange(counts[2]), indexing="ij"), -1).reshape(-1, 3)


def _made_whole(share: Array, count: int) -> Array:
    """Shares that add up to `count`: whole cells keep their one particle if the others can make up for the rest."""
    whole = np.abs(share - 1.0) < 0.02
    rest, cut = count - int(whole.sum()), float(share[~whole].sum())
    if cut > 0 and 0.5 < rest / cut < 2.0:
        return np.where(whole, 1.0, share * rest / cut)
    return share * count / share.sum()


def hilbert_order(index: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order in which a Hilbert curve visits cells with these indices (n, 3) (Skilling 2004)."""
    bits = max(int(index.max(initial=0)).bit_length(), 1)
    x = [index[:, k].copy() for k in range(3)]
    for b in range(bits - 1, 0, -1):
        low = (1 << b) - 1
        for k in range(3):
            turned = (x[k] >> b & 1).astype(bool)
            swap = np.where(turned, 0, (x[0] ^ x[k]) & low)
            x[0] ^= np.where(turned, low, swap)
            x[k] ^= swap
    x[1] ^= x[0]
    x[2] ^= x[1]
    flip = np.zeros_like(x[0])
    for b in range(bits - 1, 0, -1):
        flip ^= np.where(x[2] >> b & 1, (1 << b) - 1, 0)
    code = np.zeros_like(x[0])
    for b in range(bits - 1, -1, -1):
        for k in range(3):
            code = code << 1 | ((x[k] ^ flip) >> b & 1)
    return np.argsort(code, kind="stable")
