"""Particles that move inside a shape, round by round, until they are at rest: what all relaxed samplings share."""

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import taichi as ti
from numpy.typing import NDArray

from pliant.boundary.distance_map import Blocks, Directory, DistanceMap
from pliant.core.backend import Reals, RealTable, Vectors, vec3
from pliant.core.neighbors import Neighbors
from pliant.core.particles import Particles
from pliant.core.reduce import BLOCKS, block
from pliant.core.smoothing import SMOOTHINGS
from pliant.geometry.sampling.placing import Lattice, depth_at

Array = NDArray[np.float64]
Progress = Callable[[int, float, float], None]  # of the round, the mean move, and the one at which it ends

LONGEST = 0.25 * 0.4  # in spacings: largest move of a particle in a round, eta = 0.25 (Kugelstadt 2021, Eq. 37)
LAYER = 0.5  # in spacings: depth of the outermost particles, their radius
THIN = 2.0  # in spacings: parts thinner than this have less room for it,
THINNEST = 0.4  # and parts as thin as this or thinner the least
CLEAR = 0.25  # in spacings: the same for confined particles, which walls push farther in
SLOPE = 0.1  # least gradient of the depth that tells the way in
PUT_BACK = 3  # rounds of putting a particle back
PATIENCE, BETTER = 10, 0.99  # it is even when so many rounds have not reduced its deviation to this share
SHORTER = 0.93  # factor of the steps from round to round then,
REST = 5e-4  # in spacings: until the root mean square of a round's moves is less,
SHORTEST = 1e-3  # or steps are this short: in parts too thin for it a particle may be put to and fro for ever
PLAIN, ADAPTED, CONFINED = 0, 1, 2  # kinds of `room`


@ti.func
def room(x: vec3, spacing: ti.f32, kind: ti.template(), table: ti.template(), directory: ti.template(),
         spline: ti.template()):  # fmt: skip
    """Depth, its gradient, and the depth that a particle here should keep."""
    z, g = depth_at(x, table, directory, spline)
    wanted = ti.static(CLEAR if kind == CONFINED else LAYER) * spacing
    if ti.static(kind == ADAPTED):
        length = g.norm()
        if length > 3.0 * SLOPE:
            opposite, _ = depth_at(x + (spacing - z) / length * g, table, directory, spline)
            thickness = ti.min(ti.max(1.0 + opposite / spacing, THINNEST), THIN)
            wanted *= (thickness / THIN) ** 2
    return z, g, wanted


@ti.kernel
def _move(n: ti.i32, share: ti.f32, spacing: ti.f32, kind: ti.template(), table: Vectors, directory: Directory,
          spline: Blocks, x: Vectors, dx: Vectors):  # fmt: skip
    """Moves the particles by that share of dx, none farther than it may, puts them back inside, and leaves in dx how
    far each has come."""
    for i in range(n):
        y = x[i] + share * ti.min(1.0, LONGEST * spacing / ti.max(dx[i].norm(), 1e-30)) * dx[i]
        for _ in range(PUT_BACK):
            z, g, wanted = room(y, spacing, kind, table, directory, spline)
            if z < wanted and g.norm() > SLOPE:
                y += (wanted - z) / ti.max(g.norm(), 1.0) * g
        dx[i], x[i] = y - x[i], y


@ti.kernel
def _totals(n: ti.i32, density: Reals, dx: Vectors, out: RealTable):
    """Of each block: sums of the density, its square and the square of dx."""
    ti.loop_config(block_dim=1)
    for b in range(BLOCKS):
        lo, hi = block(b, n)
        total, square, moved = 0.0, 0.0, 0.0
        for i in range(lo, hi):
            total += density[i]
            square += (density[i] - 1.0) ** 2
            moved += dx[i].dot(dx[i])
        out[b, 0], out[b, 1], out[b, 2] = total, square, moved


class Relaxation:
    """`count` particles in a shape, given by its map of depths and its bounds (2, 3), from first places to rest."""

    crowding: ClassVar[float] = 0.0  # of the first places
    room: ClassVar[int] = PLAIN
    least, most = 60, 150  # rounds before the density may count as even, and after which it does whatever it is

    def __init__(self, depths: DistanceMap, bounds: Array, count: int, spacing: float, seed: int):
        self.spacing, self.smoothing = spacing, SMOOTHINGS["cubic_spline"]
        p = self.particles = Particles(["filling"], count=count)
        lattice = Lattice(depths, bounds, spacing, self.smoothing, self.crowding)
        x = self.first_places(lattice, count, np.random.default_rng(seed))
        p.add(0, {"x": x, "V": np.full(count, spacing**3)})
        self.neighbors = Neighbors(p, self.smoothing, spacing, (None, None, None))
        self.low, self.high = bounds[0] - spacing, bounds[1] + spacing
        self.map = lattice.map
        self.partial = ti.ndarray(ti.f32, (BLOCKS, 3))
        self.iterations, self.mean = 0, 1.0
        _move(p.n, 0.0, spacing, self.room, *self.map, p.x, p.v)
        p.v.fill(0.0)

    def first_places(self, lattice: Lattice, count: int, rng: np.random.Generator) -> Array:
        """Where the particles begin (count, 3) [m]."""
        return lattice.places(count, rng)

    def displace(self) -> None:
        """Puts into the velocities how far [m] each particle wants to move in this round. They hold how far it came in
        the last one; neighbors and densities are those of now."""
        raise NotImplementedError

    def round(self, share: float) -> tuple[float, float]:
        """Moves all particles once, by that share of what they want. Returns the deviation of the density before, and
        the root mean square of the moves, in spacings."""
        p, d = self.particles, self.spacing
        self.neighbors.update(self.low, self.high)
        self.displace()
        self.mean, deviation, _ = self._totals()
        _move(p.n, share, d, self.room, *self.map, p.x, p.v)
        self.iterations += 1
        return deviation, self._totals()[2] / d

    def _totals(self) -> tuple[float, float, float]:
        """Mean and deviation of the density, and root mean square of dx."""
        n = self.particles.n
        _totals(n, self.particles.density, self.particles.v, self.partial)
        rows = self.partial.to_numpy().astype(float)
        mean, square, moved = rows.sum(axis=0) / n
        return mean, math.sqrt(max(square - (mean - 1.0) ** 2, 0.0)), math.sqrt(moved)

    def run(self, progress: Progress | None = None) -> Array:
        """Rounds until the density is as even as it gets, then shorter and shorter ones until all is at rest."""
        share, deviations = 1.0, []
        while True:
            deviation, moved = self.round(share)
            deviations.append(deviation)
            if progress is not None:
                progress(self.iterations, moved, REST)
            even = len(deviations) >= self.most or (
                len(deviations) > self.least and min(deviations[-PATIENCE:]) > BETTER * min(deviations[:-PATIENCE])
            )
            if share < 1.0 or even:
                share *= SHORTER
            if share < SHORTEST or (share < 1.0 and moved < REST):
                return self.particles.by_id("x").astype(float)
