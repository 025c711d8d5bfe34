"""Surface tension: a skin of springs along the surface, whose pull is handed on to the liquid below.

A surface of tension sigma [N/m] bears the stress sigma (1 - n n^T) per area, and does the work -sigma dA/dt. Here the
particles at the surface bear it. Each stands for an area A_i of it, and is drawn to its neighbors in the surface by

    f_ij = -(t_i k_i + t_j k_j) A_i A_j w(r_ij) x_ij,    k_i = 2 / sum_j A_j w(r_ij) r_ij^2,    w = 1 - (r / h)^12,

with the tension t_i there. The trace of the stress of pair forces is sum_ij f_ij . x_ij / 2, so this k_i makes it
2 t_i A_i for each particle: that of sigma (1 - n n^T), however the neighbors lie. Forces along x_ij keep momentum and
angular momentum. That they grow with the distance matters: a pull that gets weaker with the distance draws particles
together in pairs (the tensile instability). Where little of a surface is in reach, in spray and at tips, k_i is bounded
by what a plane surface would have, FEWEST of sum A w r^2 = full.

**Surface and area.** A particle is at the surface of its liquid by the measure of `pressure.correction`, (trace M) / 3
- d |g_i| with g_i = sum_j G_ij over its own liquid: 1 inside, 0.24 at a plane surface; the share s_i goes from 1 to 0
between SURFACE and INSIDE. Its normal is the mean of s g around it. The area is what it has for itself, counted in the
plane across the normal by a kernel that has the integral one there:

    A_i = s_i / sum_j s_j W2(rho_ij),    W2 = 3 / (pi h^2) (1 - (rho / h)^2)^2,

so that the areas add up to that of the surface however many particles share it, and no constant needs calibration.

**Spreading.** Springs between single particles pull with sigma / d, ten times and more what matters in the end, the
pressure 2 sigma H of a mean curvature H. They would pack the outermost layer like a crystal, with a stiffness against
shear (frequencies 14 % high, half of an amplitude lost in a period). So each force is spread over the liquid around, by
f~_i = sum_j V_i w_ij f_j / sum_k V_k w_kj: what balances between neighbors cancels, momentum does not change, and what
is left is a smooth inward force, two thirds of it on the outermost layer and one third on the next, which is just about
how pressure pushes back on these.

**Damping.** The areas vary as particles come and go, so the springs do not conserve energy: they would keep the surface
seething at 0.1 m/s. A dashpot beside each spring, of a relaxation time DAMPING sqrt(rho d^3 / sigma), takes that out
where it arises. For an oscillation of a drop of radius R it is of the order (d / R)^1.5.

**Liquids that touch.** By t_i = |sum_j (sigma_i + sigma_j) G_ij| / (2 |g_i|) a surface against air has sigma_i. Between
two liquids either side has |sigma_i - sigma_j| / 2, together |sigma_i - sigma_j| (Antonow's rule).

**Walls.** In front of a wall the liquid goes on as its mirror image (in g_i and M), so that it has no surface there.
The wetted wall has the energy -sigma cos(angle) per area (Young): it is a skin like the other, of tension -sigma
cos(angle), on the particles of the layer at the wall. It pushes the edge of a drop outwards if the angle is below 90
degrees. What pulls an edge off the wall, sigma sin(angle) in the end, the wall holds, and feels.

A particle alone has no tension, a pair hardly any, a sheet of a single layer none.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import taichi as ti

from pliant.boundary.volume_map import REACH
from pliant.core.backend import Ints, Reals, Spans, Vectors, upload, vec3
from pliant.core.fields import Field
from pliant.core.neighbors import difference
from pliant.core.world import World
from pliant.solvers.stage import Force, material_table

CAPILLARY = 0.4  # share of the capillary time step sqrt(rho d^3 / (2 pi sigma)) (Brackbill et al. 1992)
SURFACE, INSIDE = 0.4, 0.7  # of the measure above
FEWEST = 0.5  # share of a plane surface's sum A w r^2 below which springs get no stiffer
LARGEST = 2.0  # area of a particle at most, in d^2
DAMPING = 0.25  # relaxation time of the dashpots, in sqrt(rho d^3 / sigma)
WET, DRY = 0.75, REACH  # distances from a wall, in d, between which a particle's share in the wetted wall ends


@ti.func
def smooth(t: ti.f32):
    """From 0 to 1 as t does."""
    s = ti.min(ti.max(t, 0.0), 1.0)
    return s * s * (3.0 - 2.0 * s)


@ti.func
def spring(r2: ti.f32, h: ti.f32):
    """w: nearly constant, and zero at the support."""
    return 1.0 - ti.min(r2 / (h * h), 1.0) ** 6


@ti.func
def bump(r2: ti.f32, h: ti.f32):
    """(1 - (r / h)^2)^2, by which areas are counted and forces are spread."""
    return ti.max(1.0 - r2 / (h * h), 0.0) ** 2


@ti.func
def reach(tension: ti.f32, r2: ti.f32, h: ti.f32):
    """How springs get weaker: those that push by `bump`, since a push that grows with the distance is as unstable as a
    pull that does not."""
    return ti.select(tension < 0.0, bump(r2, h), spring(r2, h))


@ti.kernel
def _find_surface(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
                  factor: Reals, f: ti.template(), scale: ti.f32, h: ti.f32, V: Reals, material: Ints,
                  liquid: Reals, sigma: Reals, most: ti.f32, distance: Reals, wall: Vectors, share: Reals,
                  tension: Reals, lopsided: Vectors):  # fmt: skip
    """Who is at a surface, which tension it has there, and g. Solids count as the liquid itself."""
    for i in range(n):
        share[i], tension[i], lopsided[i] = 0.0, 0.0, vec3(0.0)
        if liquid[material[i]] > 0.0:
            own, total, trace, s = vec3(0.0), vec3(0.0), 0.0, sigma[material[i]]
            at_wall = wall[i].norm_sqr() > 0.0
            if at_wall:  # its own image
                image = 2.0 * distance[i] * wall[i]
                G = scale * V[i] * f(image.norm() / h) * image
                own, total, trace = G, 2.0 * s * G, -G.dot(image)
            for k in range(span[i][0], span[i][1]):
                j = neighbor[k]
                dx = difference(x[i], x[j], wraps, period)
                G, moment = factor[k] * dx, factor[k] * dx.dot(dx)
                above = distance[i] - dx.dot(wall[i])
                if at_wall and above > 0.0 and j != i:
                    image = dx + 2.0 * above * wall[i]
                    mirrored = scale * V[j] * f(ti.min(image.norm() / h, 1.0))
                    G += mirrored * image
                    moment += mirrored * image.dot(image)
                other = ti.select(liquid[material[j]] > 0.0, sigma[material[j]], s)
                total += (s + other) * G
                if other == s:
                    own += G
                    trace -= moment
            share[i] = smooth((INSIDE - trace / 3.0 + 0.5 * h * own.norm()) / (INSIDE - SURFACE))
            tension[i] = ti.min(total.norm() / ti.max(2.0 * own.norm(), 1e-6 / h), most)
            lopsided[i] = own


@ti.kernel
def _find_normals(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
                  factor: Reals, h: ti.f32, V: Reals, share: Reals, tension: Reals, lopsided: Vectors,
                  normal: Vectors):  # fmt: skip
    """Inward normals at the surface."""
    for i in range(n):
        normal[i] = vec3(0.0)
        if share[i] * tension[i] > 0.0:
            mean = V[i] * share[i] * lopsided[i]
            for k in range(span[i][0], span[i][1]):
                j = neighbor[k]
                if j != i:
                    dx = difference(x[i], x[j], wraps, period)
                    mean += bump(dx.dot(dx), h) * V[j] * share[j] * lopsided[j]
            normal[i] = mean / ti.max(mean.norm(), 1e-20)


@ti.kernel
def _find_wetted(n: ti.i32, d: ti.f32, material: Ints, liquid: Reals, sigma: Reals, wetting: Reals, number: Ints,
                 distance: Reals, share: Reals, tension: Reals):  # fmt: skip
    """Shares in the wetted walls, and the tension -sigma cos(angle) there."""
    for i in range(n):
        share[i], tension[i] = 0.0, 0.0
        if number[i] >= 0 and liquid[material[i]] > 0.0:
            share[i] = smooth((DRY - distance[i] / d) / (DRY - WET))
            tension[i] = -sigma[material[i]] * wetting[number[i]]


@ti.kernel
def _find_skin(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
               factor: Reals, h: ti.f32, share: Reals, normal: Vectors, tension: Reals, area: Reals,
               stiffness: Reals):  # fmt: skip
    """Areas A, and t k."""
    for i in range(n):
        area[i] = 0.0
        if share[i] > 0.0 and normal[i].norm_sqr() > 0.0:
            crowd = share[i]
            for k in range(span[i][0], span[i][1]):
                j = neighbor[k]
                if j != i and share[j] > 0.0:
                    dx = difference(x[i], x[j], wraps, period)
                    across = dx.dot(dx) - dx.dot(normal[i]) ** 2
                    crowd += share[j] * ti.max(normal[i].dot(normal[j]), 0.0) * bump(across, h)
            area[i] = ti.min(share[i] * ti.math.pi * h * h / (3.0 * crowd), 0.25 * LARGEST * h * h)
    for i in range(n):
        stiffness[i] = 0.0
        if area[i] > 0.0:
            moment = 0.0
            for k in range(span[i][0], span[i][1]):
                j = neighbor[k]
                if area[j] > 0.0:
                    dx = difference(x[i], x[j], wraps, period)
                    r2 = dx.dot(dx)
                    moment += ti.max(normal[i].dot(normal[j]), 0.0) * area[j] * reach(tension[i], r2, h) * r2
            full = ti.math.pi * h**4 * ti.select(tension[i] < 0.0, 1.0 / 12.0, 3.0 / 8.0)  # for a plane surface
            stiffness[i] = 2.0 * tension[i] / ti.max(moment, FEWEST * full)


@ti.kernel
def _pull(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
          factor: Reals, h: ti.f32, time: ti.f32, first: ti.i32, V: Reals, normal: Vectors, area: Reals,
          stiffness: Reals, v: Vectors, pull: Vectors, drag: Vectors, around: Reals):  # fmt: skip
    """Forces of the springs and of their dashpots [N], in addition unless it is the `first` skin; and the sums by which
    they are spread."""
    for i in range(n):
        if first == 1:
            pull[i], drag[i], around[i] = vec3(0.0), vec3(0.0), 1.0
        if area[i] > 0.0:
            total, slow, sum_of_volumes = vec3(0.0), vec3(0.0), V[i]
            for k in range(span[i][0], span[i][1]):
                j = neighbor[k]
                if j != i:
                    dx = difference(x[i], x[j], wraps, period)
                    r2 = dx.dot(dx)
                    sum_of_volumes += V[j] * bump(r2, h)
                    if area[j] > 0.0:
                        stiff = stiffness[i] * reach(stiffness[i], r2, h) + stiffness[j] * reach(stiffness[j], r2, h)
                        stiff *= ti.max(normal[i].dot(normal[j]), 0.0) * area[i] * area[j]
                        total -= stiff * dx
                        slow -= ti.abs(stiff) * time * (v[i] - v[j]).dot(dx) / ti.max(r2, 1e-6 * h * h) * dx
            pull[i] += total
            drag[i] += slow
            around[i] = sum_of_volumes


@ti.kernel
def _accelerate(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
                factor: Reals, h: ti.f32, dt: ti.f32, V: Reals, inverse_density: Reals, wall: Vectors,
                pull: Vectors, drag: Vectors, around: Reals, slide: Vectors, v: Vectors):  # fmt: skip
    """Spreads the forces of the springs. What pulls a particle off a wall the wall holds."""
    for i in range(n):
        off = ti.max(pull[i].dot(wall[i]), 0.0) * wall[i]
        slide[i] -= inverse_density[i] / V[i] * off
        pull[i] = (pull[i] - off) / around[i]
    for i in range(n):
        total = pull[i] + drag[i] / V[i]
        for k in range(span[i][0], span[i][1]):
            j = neighbor[k]
            if j != i:
                dx = difference(x[i], x[j], wraps, period)
                total += bump(dx.dot(dx), h) * pull[j]
        v[i] += dt * inverse_density[i] * total


class SurfaceTension(Force):
    """Pulls the surface of a liquid together, and wets walls."""

    name, rank = "surface tension", 20
    fields: ClassVar = (
        Field("lopsided_liquid", "vector", "1/m", "sum_j G_ij over its own liquid"),
        Field("surface_normal", "vector", "1", "inward normal of the surface"),
        Field("surface_share", "real", "1", "1 at a surface, 0 inside"),
        Field("surface_area", "real", "m^2", "area of the surface it stands for"),
        Field("surface_pull", "real", "N/m", "tension of the surface there"),
        Field("surface_stiffness", "real", "N/m^5", "t k of its springs"),
        Field("spring_force", "vector", "N", "force of the springs"),
        Field("dashpot_force", "vector", "N", "force of their dashpots"),
        Field("around", "real", "m^3", "volume of the particles around, weighted"),
    )

    @classmethod
    def wanted(cls, materials: Sequence[Any], settings: Any) -> bool:
        return any(getattr(material, "surface_tension", 0.0) > 0.0 for material in materials)

    def __init__(self, world: World, settings: Any):
        super().__init__(world, settings)
        self.sigma, self._liquid = material_table(world, "surface_tension"), material_table(world, "liquid")
        wetting = np.array([wall.wetting for wall in world.walls.walls])
        self._wets, self._wetting = bool(np.any(wetting)), upload(np.append(wetting, 0.0), ti.f32)
        self.most = float(self.sigma.to_numpy().max())
        self.time = self._capillary_time()

    def _capillary_time(self) -> float:
        """sqrt(rho d^3 / sigma) [s], the least of all liquids."""
        tense = [m for m in self.world.materials if getattr(m, "surface_tension", 0.0) > 0.0]
        return float(min(m.density / m.surface_tension for m in tense) * self.world.spacing**3) ** 0.5

    def run(self, dt: float) -> None:
        w, p, pairs = self.world, self.world.particles, self.world.neighbors.pairs
        scale = w.neighbors.sigma / w.h**2
        _find_surface(p.n, *pairs, w.neighbors.smoothing.f, scale, w.h, p.V, p.material, self._liquid, self.sigma,
                      self.most, p.wall_distance, p.wall_normal, p.surface_share, p.surface_pull,
                      p.lopsided_liquid)  # fmt: skip
        _find_normals(p.n, *pairs, w.h, p.V, p.surface_share, p.surface_pull, p.lopsided_liquid, p.surface_normal)
        self._add_skin(p.surface_normal, first=True)
        if self._wets:
            _find_wetted(p.n, w.spacing, p.material, self._liquid, self.sigma, self._wetting, p.wall_number,
                         p.wall_distance, p.surface_share, p.surface_pull)  # fmt: skip
            self._add_skin(p.wall_normal, first=False)
        _accelerate(p.n, *pairs, w.h, dt, p.V, p.inverse_density, p.wall_normal, p.spring_force, p.dashpot_force,
                    p.around, p.wall_slide, p.v)  # fmt: skip

    def _add_skin(self, normal: ti.Ndarray, first: bool) -> None:
        """The forces of one skin: that of the liquid, or that of the wetted walls."""
        w, p, pairs = self.world, self.world.particles, self.world.neighbors.pairs
        _find_skin(p.n, *pairs, w.h, p.surface_share, normal, p.surface_pull, p.surface_area,
                   p.surface_stiffness)  # fmt: skip
        _pull(p.n, *pairs, w.h, DAMPING * self.time, int(first), p.V, normal, p.surface_area, p.surface_stiffness,
              p.v, p.spring_force, p.dashpot_force, p.around)  # fmt: skip

    def max_dt(self) -> float:
        return CAPILLARY * self.time / (2 * np.pi) ** 0.5
