"""Blue noise by particles (Jiang et al. 2015), a baseline to compare with.

Begins with points drawn at random from a grid of half the spacing, and moves them by an explicit pressure, which pushes
only, and by the cohesion of Akinci et al. 2013 with its correction 2 / (rho_i + rho_j) at surfaces. Of the paper only
what Kugelstadt 2021 (Section 7) tells of it was at hand; steps, the end, and that particles touch the surface from
inside are as in the fitted sampling.
"""

import numpy as np
import taichi as ti

from pliant.core.backend import Ints, Reals, Spans, Vectors, vec3
from pliant.core.neighbors import difference
from pliant.geometry.sampling.placing import Lattice
from pliant.geometry.sampling.relaxation import Array, Relaxation

STIFFNESS = 1.0  # of the pressure: what moves a particle by a spacing per unit of its gradient
COHESION = 0.02  # of Akinci's force, in the same unit


@ti.func
def attraction(q: ti.f32):
    """Akinci 2013, Eq. 2, without its norm, scaled to 1 at its largest: q is the distance over the support."""
    bump = 64.0 * (1.0 - q) ** 3 * q**3
    return ti.select(q > 1.0, 0.0, ti.select(q > 0.5, bump, 2.0 * bump - 1.0))


@ti.kernel
def _displace(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
              factor: Reals, density: Reals, spacing: ti.f32, h: ti.f32, dx: Vectors):  # fmt: skip
    for i in range(n):
        push, pull = vec3(0.0), vec3(0.0)
        own = ti.max(density[i] - 1.0, 0.0) / density[i] ** 2
        for k in range(span[i][0], span[i][1]):
            j = neighbor[k]
            xij = difference(x[i], x[j], wraps, period)
            r = xij.norm()
            other = ti.max(density[j] - 1.0, 0.0) / density[j] ** 2
            push -= (own + other) * factor[k] * xij
            pull -= 2.0 / (density[i] + density[j]) * attraction(r / h) / ti.max(r, 1e-6 * spacing) * xij
        dx[i] = STIFFNESS * spacing * spacing * push + COHESION * spacing * pull


class BlueNoise(Relaxation):
    """Points at random, relaxed."""

    def first_places(self, lattice: Lattice, count: int, rng: np.random.Generator) -> Array:
        inside = lattice.inside(0.5 * self.spacing)
        return inside[np.sort(rng.choice(len(inside), count, replace=count > len(inside)))]

    def displace(self) -> None:
        p, nb = self.particles, self.neighbors
        _displace(p.n, *nb.pairs, p.density, self.spacing, nb.h, p.v)
