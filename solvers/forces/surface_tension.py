"""Surface tension after Akinci et al. 2013: cohesion along pairs, and a term that evens out the surface's normals.

Akinci's coefficient has no fixed unit. Here both terms are scaled by sigma / (rho h^2), so that `surface_tension` is
the sigma [N/m] of the textbooks:

    a_i = -sigma / (rho_i h^2) sum_j K_ij ( COHESION V_j C(r_ij) x^ + CURVATURE (n_i - n_j) )
    K_ij = 2 / (density ratio_i + density ratio_j),    n_i = h sum_j G_ij.

For a continuous liquid the cohesion alone gives sigma_eff = sigma COHESION pi / (8 h^2) int r^4 C dr (the work of
cutting a body in two, Rayleigh 1890), so COHESION = 1 / (4 * 7.457e-4) = 335. Drops of 6 and 9 spacings radius differ
in pressure by 1.09 times the difference of their Laplace pressures 2 sigma / R. Like in a real liquid, cohesion also
presses the whole drop together, by an amount that does not depend on R: pressures inside are that much higher.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import taichi as ti

from pliant.core.backend import Ints, IntTable, Reals, RealTable, Vectors, vec3
from pliant.core.fields import Field
from pliant.core.neighbors import difference
from pliant.core.world import World
from pliant.solvers.stage import Force, material_table

COHESION = 335.0
CURVATURE = COHESION / 1000.0  # Akinci et al. give both terms one coefficient, in units in which water has density 1000
CAPILLARY = 0.4  # share of the capillary time step sqrt(rho d^3 / (2 pi sigma)) (Brackbill et al. 1992)


@ti.func
def cohesion_spline(s: ti.f32):
    """C(r) h^3 for s = r / h (Akinci et al. 2013, Eq. 2): attracts beyond about h / 4, repels below."""
    bump = ((1.0 - s) * s) ** 3
    return 32.0 / ti.math.pi * ti.select(s > 0.5, bump, 2.0 * bump - 1.0 / 64.0)


@ti.kernel
def _normals(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, count: Ints, neighbor: IntTable,
             factor: RealTable, h: ti.f32, normal: Vectors):  # fmt: skip
    for i in range(n):
        total = vec3(0.0)
        for k in range(count[i]):
            total += factor[i, k] * difference(x[i], x[neighbor[i, k]], wraps, period)
        normal[i] = h * total


@ti.kernel
def _pull(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, count: Ints, neighbor: IntTable,
          factor: RealTable, h: ti.f32, dt: ti.f32, material: Ints, sigma: Reals, inverse_density: Reals, V: Reals,
          density: Reals, wall: Reals, normal: Vectors, v: Vectors):  # fmt: skip
    for i in range(n):
        total = vec3(0.0)
        for k in range(count[i]):
            j = neighbor[i, k]
            if factor[i, k] != 0.0:
                dx = difference(x[i], x[j], wraps, period)
                r = dx.norm()
                # the weaker of two tensions acts between liquids: their interface costs what they do not share
                strength = ti.min(sigma[material[i]], sigma[material[j]])
                even = 2.0 / (density[i] + wall[i] + density[j] + wall[j])
                pull = COHESION * V[j] / h**3 * cohesion_spline(r / h) * dx / ti.max(r, 1e-6 * h)
                total += strength * even * (pull + CURVATURE * (normal[i] - normal[j]))
        v[i] -= dt * inverse_density[i] / (h * h) * total


class SurfaceTension(Force):
    """Pulls the surface of a liquid together."""

    name, rank = "surface tension", 20
    fields: ClassVar = (Field("normal", "vector", "1", "surface normal times its sharpness"),)

    @classmethod
    def wanted(cls, materials: Sequence[Any], settings: Any) -> bool:
        return any(getattr(material, "surface_tension", 0.0) > 0.0 for material in materials)

    def __init__(self, world: World, settings: Any):
        super().__init__(world, settings)
        self.sigma = material_table(world, "surface_tension")

    def run(self, dt: float) -> None:
        w, p = self.world, self.world.particles
        _normals(p.n, *w.neighbors.pairs, w.h, p.normal)
        _pull(p.n, *w.neighbors.pairs, w.h, dt, p.material, self.sigma, p.inverse_density, p.V, p.density,
              p.wall_density, p.normal, p.v)  # fmt: skip

    def max_dt(self) -> float:
        tense = [m for m in self.world.materials if getattr(m, "surface_tension", 0.0) > 0.0]
        stiffest = min(m.density / m.surface_tension for m in tense)
        return CAPILLARY * float(stiffest * self.world.spacing**3 / 6.2832) ** 0.5
