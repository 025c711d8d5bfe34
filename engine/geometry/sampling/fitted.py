"""Particles that fit a shape: even inside, and in its edges and thin parts too (Kugelstadt 2021, Section 7).

From places on a lattice (`placing`) particles move by (Eq. 31)

    dx = pressure (Eq. 33, 34) + cohesion (Eq. 35) + adhesion (Eq. 36),    at most 0.1 d a round (Eq. 37),

and are put back where they come too close to the surface. What was changed, because the figures of `Quality` are
better for it on the models of `pliant bench sampling`:

- **Pressure** evens out the density towards 0.96 of its mean, not towards the rest density. The number of particles is
  given, so the mean is what can be had; with a higher target surfaces tear open (largest hole 1.3 to 2 d instead of 1).
  Moves have momentum, so that what is uneven over long distances settles sooner.
- **Cohesion** pushes everywhere, but pulls only on particles whose neighbors lie almost in a plane or on a line (Eq. 8
  nearly singular). Pulling on all acts like surface tension: it empties claws and crowds the inside.
- **Layer.** Particles keep a depth of d/2 as in the paper, but in parts of a thickness T less than 2 d only
  d/2 (T / 2 d)^2. There is room for two layers then, or a zigzag, where one flat layer would be degenerate.
- Eq. 37 divides all moves by the largest, so that they never grow small, and one particle in a claw slows all others
  down. Here it bounds the move of each particle by itself: some 75 rounds do what 160 did. When the density gets no
  more even, steps are made shorter from round to round until all is at rest.

**Confined** particles, a fluid in a container, feel the surface as the walls of the simulation (`boundary`) instead:
the rest density counts them in, and the first layer ends up where the first step of the simulation wants it.
"""

from typing import ClassVar

import taichi as ti

from pliant.boundary.distance_map import Blocks, Directory, DistanceMap
from pliant.boundary.volume_map import REACH, profile, wall_profile
from pliant.core.backend import Ints, Reals, RealTable, Spans, Vectors, mat3, upload, vec3
from pliant.core.neighbors import difference
from pliant.geometry.sampling.placing import CROWDING, depth_at
from pliant.geometry.sampling.relaxation import ADAPTED, CONFINED, Array, Relaxation

COHESION = 4.0  # beta of Eq. 35 (Kugelstadt 2021, Section 9)
ADHESION = 0.2  # gamma of Eq. 36 (the same)
RELAXED = 0.5  # share of the pressure's displacement that is made: Jacobi's method overshoots with more
MOMENTUM = 0.7  # share of the last move that is made again: what is uneven over long distances settles sooner
COMPANY = 0.6  # det / (trace / 3)^3 of Eq. 8 below which a particle is drawn to its neighbors,
DRAWN = 6.5  # and how strongly
EVEN = 0.96  # of the mean density: what pressure aims at


@ti.kernel
def _feel(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
          factor: Reals, density: Reals, spacing: ti.f32, level: ti.f32, confined: ti.template(),
          profiles: RealTable, table: Vectors, directory: Directory, spline: Blocks, depth: Reals, inward: Vectors,
          wall: Vectors, stiffness: Reals):  # fmt: skip
    """Where the surface is, and kappa / rho of Eq. 34 for densities as ratios; walls add to them if confined."""
    for i in range(n):
        z, g = depth_at(x[i], table, directory, spline)
        depth[i], inward[i], wall[i] = z, g, vec3(0.0)
        if ti.static(confined):
            if z < REACH * spacing:
                beta, slope = profile(z / spacing, profiles)
                density[i] += beta
                wall[i] = slope / spacing * g
        total, squares = wall[i], 0.01 / (spacing * spacing)  # for a particle without neighbors
        for k in range(span[i][0], span[i][1]):
            gradient = factor[k] * difference(x[i], x[neighbor[k]], wraps, period)
            total += gradient
            squares += gradient.dot(gradient)
        stiffness[i] = (density[i] - level) / (total.dot(total) + squares)


@ti.kernel
def _displace(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
              factor: Reals, spacing: ti.f32, V: ti.f32, h: ti.f32, sigma: ti.f32, w: ti.template(),
              confined: ti.template(), depth: Reals, inward: Vectors, wall: Vectors, stiffness: Reals,
              dx: Vectors):  # fmt: skip
    """The displacement of Eq. 31."""
    for i in range(n):
        pressure, cohesion = -stiffness[i] * wall[i], vec3(0.0)
        moment, towards, weight = mat3(0.0), vec3(0.0), 1e-9
        for k in range(span[i][0], span[i][1]):
            j = neighbor[k]
            xij = difference(x[i], x[j], wraps, period)
            r = ti.max(xij.norm(), 1e-6 * spacing)
            near = ti.select(j == i, 0.0, w(r / h))
            pressure -= (stiffness[i] + stiffness[j]) * factor[k] * xij
            cohesion += V * sigma * near * ti.max(spacing - r, 0.0) / r * xij
            moment -= factor[k] * xij.outer_product(xij)
            towards -= near * ti.max(1.0 - spacing / r, 0.0) * xij
            weight += near
        dx[i] = MOMENTUM * dx[i] + RELAXED * pressure + COHESION * cohesion
        if ti.static(not confined):
            if depth[i] > 0.0 and depth[i] < h:
                dx[i] -= ADHESION * V * sigma * w(depth[i] / h) * depth[i] * inward[i]
            third = ti.max(moment.trace() / 3.0, 1e-6)
            flatness = 1.0 - moment.determinant() / (COMPANY * third * third * third)
            dx[i] += DRAWN * ti.max(flatness, 0.0) / weight * towards


class Fitted(Relaxation):
    """An elastic body: its surface is free."""

    crowding: ClassVar[float] = CROWDING
    room: ClassVar[int] = ADAPTED
    confined: ClassVar[bool] = False
    least, most = 40, 60  # in more rounds the last of evenness comes at the cost of thin parts

    def __init__(self, depths: DistanceMap, bounds: Array, count: int, spacing: float, seed: int):
        super().__init__(depths, bounds, count, spacing, seed)
        self.profiles = upload(wall_profile(self.smoothing), ti.f32)
        self.depth, self.stiffness = (ti.ndarray(ti.f32, count) for _ in range(2))
        self.inward, self.wall = (ti.ndarray(vec3, count) for _ in range(2))

    def displace(self) -> None:
        p, d, nb = self.particles, self.spacing, self.neighbors
        level = 1.0 if self.confined else EVEN * self.mean
        _feel(p.n, *nb.pairs, p.density, d, level, self.confined, self.profiles, *self.map, self.depth, self.inward,
              self.wall, self.stiffness)  # fmt: skip
        _displace(p.n, *nb.pairs, d, d**3, nb.h, nb.sigma, self.smoothing.w, self.confined, self.depth, self.inward,
                  self.wall, self.stiffness, p.v)  # fmt: skip


class Confined(Fitted):
    """A fluid in a container: its surface is a wall."""

    crowding: ClassVar[float] = 0.0
    room: ClassVar[int] = CONFINED
    confined: ClassVar[bool] = True
    least, most = Relaxation.least, Relaxation.most
