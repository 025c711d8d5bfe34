"""Drag of the air on what flows and on elastic bodies (Gissler et al. 2017, in the form of Neder 2024, Section 5.6).

    F_i = 1/2 rho_air |v_rel| v_rel C_D Omega_i A_i,    v_rel = v_air,i - v_i                          (Eq. 6, 7)

on a ball of the particle's volume V, so F_i / m_i = 3/4 rho_air C_D Omega_i |v_rel| v_rel / (rho0 D) with D = (6 V /
pi)^(1/3). The speed relative to the air decays as 1 / (1 + k |v_rel| t) under this force alone. A step takes this exact
solution, hence never overshoots the air, however light the particle or long the step.

Omega is the share of the particle that oncoming air finds: one minus the largest cosine between the direction from
which it comes and those to the neighbors, a wall being one of them. Even in the middle of a packing the nearest of
these directions is some degrees off, and about 0.04 would be left. There no air flows: Omega counts as far as a
particle is free or at the surface, 1 - bulk (1 - surface), where

    surface  grows from 0 to 1 with the gradient of the colour field, c = sum_j V_j W_ij + wall        (Eq. 8, 9)
    bulk     grows from 0 for a lone particle to 1 where two thirds of its neighbors are there.

Air that blows into the surface of the bulk flows along it:  v_air,i = v_air - (v_air . n) n           (Eq. 10).

A particle may stand for many grains, of diameter `grain`: then D is theirs. The wind that moves a grain moves an
exposed particle, though of a packing with all its layers of grains at once.

On elastic bodies the air presses on what faces it: a particle of the surface has the area d^2 across its normal n, and
feels 1/2 rho_air C_D |v_rel| v_rel d^2 max(-n . v_rel / |v_rel|, 0). Summed up over a convex body that is the drag on
its cross-section, for a ball 1/2 rho_air C_D pi R^2 v^2. Normals and areas come from the gradient of the colour field,
which is flat / d at a plane surface; where water or another body lies against it there is none, and no air.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import taichi as ti

from pliant.boundary.volume_map import STEEP
from pliant.core.backend import Ints, Reals, Spans, Vectors, upload, vec3
from pliant.core.fields import Field
from pliant.core.neighbors import difference
from pliant.core.smoothing import SPACINGS_PER_SUPPORT
from pliant.core.store import ArrayStore
from pliant.core.world import World
from pliant.materials.air import Air, WindGrid
from pliant.solvers.stage import Force, material_table

HIDDEN, SHOWN = 0.35, 0.65  # of the gradient at a flat surface: where `surface` begins, and where it is 1
FULL = 2 / 3  # share of a full neighborhood that makes up the bulk (Gissler et al. 2017)
STILL = 0.5 / STEEP  # of a wall's gradient, whose mirror image moves along: what stands still adds half as much
LOW, SCALE = 0, 1  # rows of a grid's table: its first node, and nodes per metre


@ti.func
def ramp(value: ti.f32, low: ti.f32, high: ti.f32):
    """From 0 at `low` to 1 at `high`."""
    return ti.min(ti.max((value - low) / (high - low), 0.0), 1.0)


@ti.kernel
def _blow(n: ti.i32, x: Vectors, place: Vectors, shape: Ints, nodes: Vectors, air: Vectors):
    """Reads the wind off a grid, at the nearest place of the grid for what is outside."""
    for i in range(n):
        q, base, more = (x[i] - place[LOW]) * place[SCALE], ti.Vector([0, 0, 0]), ti.Vector([0, 0, 0])
        for k in ti.static(range(3)):
            q[k] = ti.min(ti.max(q[k], 0.0), shape[k] - 1.0)
            base[k] = ti.floor(q[k], ti.i32)
            more[k] = ti.min(base[k] + 1, shape[k] - 1)
        t, wind = q - base, vec3(0.0)
        for corner in ti.static(ti.ndrange(2, 2, 2)):
            weight, c = 1.0, base
            for k in ti.static(range(3)):
                weight *= t[k] if ti.static(corner[k] == 1) else 1.0 - t[k]
                c[k] = more[k] if ti.static(corner[k] == 1) else base[k]
            wind += weight * nodes[(c[0] * shape[1] + c[1]) * shape[2] + c[2]]
        air[i] = wind


@ti.kernel
def _expose(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
            factor: Reals, d: ti.f32, flat: ti.f32, material: Ints, elastic: Reals, wall: Vectors,
            exposed: Vectors):  # fmt: skip
    """Minus the normal of elastic particles times their share of the surface, in d^2; zero inside."""
    for i in range(n):
        exposed[i] = vec3(0.0)
        if elastic[material[i]] > 0.0:
            gradient = STILL * wall[i]
            for k in range(span[i][0], span[i][1]):
                gradient += factor[k] * difference(x[i], x[neighbor[k]], wraps, period)
            exposed[i] = ti.select(d * gradient.norm() > HIDDEN * flat, d / flat * gradient, vec3(0.0))


@ti.kernel
def _press(n: ti.i32, d: ti.f32, strength: ti.f32, material: Ints, elastic: Reals, inverse_density: Reals, V: Reals,
           exposed: Vectors, air: Vectors, v: Vectors):  # fmt: skip
    """Air on what faces it of elastic bodies; `strength` is dt 1/2 rho_air C_D."""
    for i in range(n):
        if elastic[material[i]] * inverse_density[i] > 0.0:
            w = air[i] - v[i]
            c = strength * inverse_density[i] * d * d / V[i] * ti.max(exposed[i].dot(w), 0.0)
            v[i] += c / (1.0 + c) * w


@ti.kernel
def _drag(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
          factor: Reals, d: ti.f32, flat: ti.f32, alone: ti.f32, strength: ti.f32, finer: ti.f32, material: Ints,
          flows: Reals, inverse_density: Reals, V: Reals, density: Reals, wall: Vectors, air: Vectors,
          v: Vectors):  # fmt: skip
    """`strength` is dt 3/4 rho_air C_D; `finer` is 1 / D of the grains, or 0 where these are the particles."""
    for i in range(n):
        if flows[material[i]] * inverse_density[i] > 0.0:
            gradient = STILL * wall[i]
            for k in range(span[i][0], span[i][1]):
                gradient += factor[k] * difference(x[i], x[neighbor[k]], wraps, period)
            steep = gradient.norm()
            bulk = ramp(density[i], alone, alone + FULL * (1.0 - alone))
            surface = ramp(d * steep, HIDDEN * flat, SHOWN * flat)
            n_i = -gradient / ti.max(steep, 1e-6 / d)
            w = air[i] - bulk * surface * ti.min(air[i].dot(n_i), 0.0) * n_i - v[i]
            free, speed = 1.0 - bulk * (1.0 - surface), w.norm()
            if free * speed > 0.0:
                nearest = 0.0
                if wall[i].norm() > 0.0:  # the wall lies where its gradient points
                    nearest = ti.max(-wall[i].normalized().dot(w), 0.0)
                for k in range(span[i][0], span[i][1]):
                    dx = difference(x[i], x[neighbor[k]], wraps, period)
                    nearest = ti.max(nearest, dx.dot(w) / ti.max(dx.norm(), 1e-6 * d))
                omega = free * (1.0 - ti.min(nearest / speed, 1.0))
                own = (ti.math.pi / (6.0 * V[i])) ** (1.0 / 3.0)
                c = strength * omega * inverse_density[i] * ti.max(own, finer) * speed
                v[i] += c / (1.0 + c) * w


class Wind:
    """The velocity of the air at points."""

    def __init__(self, air: Air):
        self.air, self.speed = air, 0.0  # of the fastest air [m/s]; of a function's, when it was last asked
        grid = air.velocity
        if not callable(grid):
            if not isinstance(grid, WindGrid):
                grid = WindGrid(np.reshape(grid, (1, 1, 1, 3)), low=(0, 0, 0), high=(1, 1, 1))
            self._grid = self._upload(grid)
            self.speed = _fastest(np.asarray(grid.velocities))

    @staticmethod
    def _upload(grid: WindGrid) -> tuple:
        """What `_blow` takes of a grid."""
        nodes = np.asarray(grid.velocities, dtype=float)
        low, shape = np.asarray(grid.low, dtype=float), np.array(nodes.shape[:3])
        place = np.array([low, (shape - 1) / (np.asarray(grid.high, dtype=float) - low)])
        return upload(place, vec3), upload(shape, ti.i32), upload(nodes.reshape(-1, 3), vec3)

    def blow(self, store: ArrayStore, time: float) -> None:
        """Finds `air` at the points of a store. A user's function may fail."""
        if callable(self.air.velocity):
            wind = self.air.blowing(store.numpy("x").astype(float), time)
            self.speed = _fastest(wind)
            store.set("air", wind)
        else:
            _blow(store.n, store.x, *self._grid, store.air)


class Drag(Force):
    """v approaches the velocity of the air."""

    name, rank = "drag", 30
    fields: ClassVar = (
        Field("air", "vector", "m/s", "velocity of the air"),
        Field("exposed", "vector", "1", "minus the normal of a surface that air reaches, times its area over d^2"),
    )

    @classmethod
    def wanted(cls, materials: Sequence[Any], settings: Any) -> bool:
        return settings.air is not None and any(m.has_particles for m in materials)

    def __init__(self, world: World, settings: Any):
        super().__init__(world, settings)
        self.air: Air = settings.air
        self.wind, self.asked = Wind(self.air), -1.0  # and when a function was asked for it [s]
        self.fluid_like, self.elastic = material_table(world, "fluid_like"), material_table(world, "elastic")
        self.solids = any(m.elastic for m in world.materials)
        smoothing, d = world.neighbors.smoothing, world.spacing
        step = 1e-3
        beside = smoothing.plane_sum(np.array([1.0 - step, 1.0 + step]))
        self.flat = float(beside[0] - beside[1]) / (2 * step)  # d |gradient| of the colour field at a flat surface
        self.alone = float(d**3 * smoothing.W(np.zeros(1), SPACINGS_PER_SUPPORT * d)[0])
        self.cfl, self.pull = settings.cfl, self._pull()

    def _pull(self) -> float:
        """Largest F / (m |v_rel|^2) of any particle [1/m]."""
        own = (np.pi / 6) ** (1 / 3) / self.world.spacing
        lightest = min(material.density for material in self.world.materials)
        return float(0.75 * self.air.density * self.air.drag * max(own, self.finer) / lightest)

    @property
    def finer(self) -> float:
        """1 / D of the grains [1/m], or 0 where these are the particles."""
        return 0.0 if self.air.grain is None else 1.0 / self.air.grain

    def after_neighbors(self) -> None:
        """Finds the air around each particle, and what of elastic bodies it reaches, while their pairs are known."""
        w, p = self.world, self.world.particles
        self.wind.blow(p, w.time)
        self.asked = w.time
        if self.solids:
            _expose(p.n, *w.neighbors.pairs, w.spacing, self.flat, p.material, self.elastic, p.wall_gradient, p.exposed)

    def run(self, dt: float) -> None:
        w, p = self.world, self.world.particles
        strength = 0.75 * dt * self.air.density * self.air.drag
        _drag(p.n, *w.neighbors.pairs, w.spacing, self.flat, self.alone, strength, self.finer, p.material,
              self.fluid_like, p.inverse_density, p.V, p.density, p.wall_gradient, p.air, p.v)  # fmt: skip
        if self.solids:
            _press(p.n, w.spacing, 2.0 / 3.0 * strength, p.material, self.elastic, p.inverse_density, p.V, p.exposed,
                   p.air, p.v)  # fmt: skip

    def max_dt(self) -> float:
        """Stable at any step, but what the wind picks up must not skip what is in its way: in a step it gets as far as
        the CFL condition lets it, because it is not faster yet or because the wind is not."""
        if callable(self.air.velocity) and self.asked != self.world.time:
            self.wind.blow(self.world.particles, self.world.time)
            self.asked = self.world.time
        if self.wind.speed * self.pull == 0.0:
            return float("inf")
        far = self.cfl * self.world.spacing
        return max(far, float(np.sqrt(far / self.pull))) / self.wind.speed


def _fastest(wind: np.ndarray) -> float:
    return float(np.linalg.norm(wind, axis=-1).max())
