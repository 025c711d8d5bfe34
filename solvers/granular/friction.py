"""Friction inside matter that stands and flows: Drucker-Prager stresses, found together with the pressures.

A particle of sand bears a shear stress s, symmetric and without trace, of at most (Neder 2024, Eq. 17)

    |s| <= sqrt(2) (tan(theta) p + c)                                                           (Frobenius norm)

and whatever it bears opposes its rate of strain e, without trace as well (maximal dissipation): inside the bound e = 0,
on it s is parallel to e. Together with the pressure (see `system`) this is one complementarity problem for the stress
T = p - s of each particle, which accelerates by

    a_i = -1/rho0_i ( sum_j (T_i + T_j) G_ij + p_i b_i + r_i ),

r being the contact with the nearest wall. Across it a particle comes no closer than CONTACT, along it r opposes sliding
with at most mu times what presses. The adjoint is L_i = sum_j G_ij (v_i - v_j)^T: its trace is the growth of density,
and e = -dt (sym L)'. So all are solved in the same sweeps, each a step along the residuals and a projection:

    p <- max(0, p + step residual / D),   s <- s + step e / E, cut to the bound,   r <- r + step slip / mobility, cut.

The step is the shorter of the two of Barzilai and Borwein 1988, <dT, K dT> / <K dT, K dT>. The longer one, which serves
the pressure alone, stirs up what is rough; sand that is stirred in every step creeps for ever.

Stresses are carried along by the particles. A pile at rest therefore starts every step from its own equilibrium, and
what imbalance the sweeps left in one step is what the next one starts with: it dies away, to speeds of 1e-6 m/s. For
this, what the sweeps leave must be less than what there is: their tolerance is a share of the motion (`tolerance`).

The pressure in the bound is the mean over the neighbourhood, of the sweep before. Among packed particles some bear no
pressure for a while, as grains do between force chains; without this they would be free to slip, and piles would sag.
And it is for single particles at the toe of a pile, which reach rest density nowhere, that contact with walls is a
constraint of its own.

The coefficient. The thesis takes alpha = sqrt(2) sin(theta), at which a Mohr-Coulomb material of that angle in plane
strain yields. But a slope fails by shear along itself. The strain rate is then pure shear, and so is the stress that
opposes it: |s| = sqrt(2) tau and p = sigma_n, and the steepest slope is tau / sigma_n = alpha / sqrt(2). With the sine,
slopes of 45 and 60 degrees would stop at 35 and 41 degrees, with the tangent they stop at 45 and 60, as in the rheology
of dense flows (Jop et al. 2006). At rest, where stresses are free to choose, slopes may stand that are steeper: up to
arcsin(tan(theta)) in plane strain, where from 45 degrees on any bank does. Above 50 degrees the coefficient is that of
the cone around the Mohr-Coulomb pyramid, which is smaller then (`Granular.yield_slope`).

Cohesion c (Alduan and Otaduy 2011) bears shear without pressure, and tension: p >= -c, against parting only.
"""

from typing import Any

import numpy as np
import taichi as ti

from pliant.core.backend import Ints, IntTable, Reals, RealTable, Vectors, vec3
from pliant.core.neighbors import difference
from pliant.core.particles import Field
from pliant.core.reduce import BLOCKS, block
from pliant.core.world import World
from pliant.solvers.forces.force import material_table
from pliant.solvers.pressure import system

FIELDS = (
    Field("stress", "vector", "Pa", "friction: diagonal of the shear stress s", carried=True),
    Field("shear", "vector", "Pa", "friction: its other components yz, zx, xy", carried=True),
    Field("touch", "vector", "Pa/m", "friction: contact with the nearest wall r", carried=True),
    Field("strain", "vector", "1", "friction: diagonal of the strain of this step, without trace"),
    Field("skew", "vector", "1", "friction: its other components yz, zx, xy"),
    Field("stress_change", "vector", "Pa s^2", "friction: diagonal of the last change of dt^2 T"),
    Field("shear_change", "vector", "Pa s^2", "friction: its other components"),
    Field("touch_change", "vector", "Pa s^2/m", "friction: last change of dt^2 r"),
    Field("surrounding", "real", "Pa s^2", "friction: dt^2 times the mean pressure around"),
    Field("E", "real", "1/(Pa s^2)", "friction: how stress acts on its own strain"),
    Field("part", "vector", "", "friction: what a particle adds to the sums over all"),
)
CONTACT = 0.4  # in spacings: as close as a wall lets particles. Pressure alone keeps full layers at 0.5
FIRST_STEP = 0.25  # for which every sweep calms what it meets; replaced by the curvature after one sweep
LEAST_SWEEPS = 5  # fewer leave a jitter from which steep piles do not come to rest
SHARE = 0.02  # of the motion in a step that may be left wrong
CALM = 5e-3  # in sqrt(g d): below this speed nothing moves that one could see
NOISE = 2e-7  # what single precision leaves
TINY = 1e-30
SLIP = system.SUMS  # beyond the sums of the pressure system: the strain that friction has not stopped yet
SPEED = SLIP + 1  # and the speeds
SUMS = SPEED + 1


@ti.func
def times(diagonal: vec3, other: vec3, g: vec3):
    """A symmetric matrix, given by its diagonal and its components yz, zx, xy, times a vector."""
    return diagonal * g + vec3(other[2] * g[1] + other[1] * g[2], other[2] * g[0] + other[0] * g[2],
                               other[1] * g[0] + other[0] * g[1])  # fmt: skip


@ti.func
def inner(a: vec3, a_other: vec3, b: vec3, b_other: vec3):
    """Frobenius product of two such matrices."""
    return a.dot(b) + 2.0 * a_other.dot(b_other)


@ti.func
def hold(i: ti.i32, j: ti.i32, mixed: ti.template(), body: ti.template(), grip: ti.template()):
    """1 where friction acts between two particles: everywhere but on fluid."""
    result = 1.0
    if ti.static(mixed):
        result = grip[body[i]] * grip[body[j]]
    return result


@ti.func
def sheared(i: ti.i32, u: ti.template(), q: ti.template(), weight: ti.f32, mixed: ti.template(), body: ti.template(),
            grip: ti.template(), wraps: ti.template(), period: ti.template(), x: ti.template(), count: ti.template(),
            neighbor: ti.template(), factor: ti.template()):  # fmt: skip
    """L = sum_j G_ij (u_i - u_j)^T: its trace, and diagonal and other components of its symmetric part without trace,
    for which only those count that hold on to each other; and the mean of q over these, `weight` being its own."""
    trace, diagonal, other = 0.0, vec3(0.0), vec3(0.0)
    total, weights = weight * q[i], weight
    for k in range(count[i]):
        j = neighbor[i, k]
        G = factor[i, k] * difference(x[i], x[j], wraps, period)
        du, w = u[i] - u[j], -factor[i, k]
        if ti.static(mixed):
            trace += G.dot(du)
            held = hold(i, j, mixed, body, grip)
            du *= held
            w *= held
        total += w * q[j]
        weights += w
        diagonal += G * du
        other += 0.5 * vec3(G[1] * du[2] + G[2] * du[1], G[2] * du[0] + G[0] * du[2], G[0] * du[1] + G[1] * du[0])
    third = diagonal.sum() / 3.0
    if ti.static(not mixed):
        trace = 3.0 * third
    return trace, diagonal - third, other, ti.max(total / weights, 0.0)


@ti.kernel
def _begin(n: ti.i32, mixed: ti.template(), body: Ints, grip: Reals, wraps: ti.template(), period: Vectors, x: Vectors,
           count: Ints, neighbor: IntTable, factor: RealTable, mobility: Reals, dt: ti.f32, stress: Vectors,
           shear: Vectors, touch: Vectors, normal: Vectors, v: Vectors):  # fmt: skip
    """Lets the stresses of the last step act."""
    for i in range(n):
        if normal[i].norm() == 0.0:
            touch[i] = vec3(0.0)  # it has left the wall
        total = vec3(0.0)
        for k in range(count[i]):
            j = neighbor[i, k]
            G = hold(i, j, mixed, body, grip) * factor[i, k] * difference(x[i], x[j], wraps, period)
            total += times(stress[i] + stress[j], shear[i] + shear[j], G)
        v[i] += mobility[i] * dt * (total - touch[i])


@ti.kernel
def _predict(n: ti.i32, mixed: ti.template(), body: Ints, grip: Reals, wraps: ti.template(), period: Vectors,
             x: Vectors, count: Ints, neighbor: IntTable, factor: RealTable, own: ti.f32, V: Reals, dt: ti.f32,
             v: Vectors, q: Reals, surrounding: Reals, strain: Vectors, skew: Vectors, stress: Vectors, shear: Vectors,
             touch: Vectors):  # fmt: skip
    """The strain of this step; stresses times dt^2 until `_finish`."""
    for i in range(n):
        _, diagonal, other, surrounding[i] = sheared(i, v, q, own * V[i], mixed, body, grip, wraps, period, x, count,
                                                     neighbor, factor)  # fmt: skip
        strain[i], skew[i] = -dt * diagonal, -dt * other
        stress[i], shear[i], touch[i] = dt * dt * stress[i], dt * dt * shear[i], dt * dt * touch[i]


@ti.kernel
def _finish(n: ti.i32, dt: ti.f32, stress: Vectors, shear: Vectors, touch: Vectors):
    for i in range(n):
        stress[i], shear[i], touch[i] = stress[i] / (dt * dt), shear[i] / (dt * dt), touch[i] / (dt * dt)


@ti.kernel
def _sweep(n: ti.i32, mixed: ti.template(), body: Ints, grip: Reals, wraps: ti.template(), period: Vectors, x: Vectors,
           count: Ints, neighbor: IntTable, factor: RealTable, own: ti.f32, b: Vectors, V: Reals, volume: ti.f32,
           mobility: Reals, density: Reals, wall: Reals, D: Reals, E: Reals, least: ti.f32, dt: ti.f32, step: ti.f32,
           slope: Reals, cohesion: Reals, friction: Reals, wall_v: Vectors, contact: ti.f32, distance: Reals,
           normal: Vectors, q: Reals, change: Reals, surrounding: Reals, stress: Vectors, shear: Vectors,
           touch: Vectors, stress_change: Vectors, shear_change: Vectors, touch_change: Vectors, a: Vectors,
           v: Vectors, answer: Reals, residual: Reals, strain: Vectors, skew: Vectors, part: Vectors,
           partial: RealTable, sums: Reals):  # fmt: skip
    """One step of pressures, stresses and contacts, what it does to velocities and residuals, and the sums of these."""
    for i in range(n):
        old, tension = q[i], -cohesion[body[i]] * dt * dt
        if D[i] > least:
            q[i] = ti.max(old + step * residual[i] / D[i], 0.0)
            if tension < 0.0 and q[i] == 0.0:  # parting counts from here, not from the rest density
                parting = residual[i] - ti.min(density[i] + wall[i] - system.REST, 0.0)
                q[i] = ti.min(ti.max(old + step * parting / D[i], tension), 0.0)
        else:
            q[i] = 0.0
        change[i] = q[i] - old
        s, t = stress[i], shear[i]
        if slope[body[i]] + cohesion[body[i]] > 0.0:
            gain = step / ti.max(E[i], least)
            s, t = stress[i] + gain * strain[i], shear[i] + gain * skew[i]
            bound = ti.sqrt(2.0) * (slope[body[i]] * surrounding[i] + cohesion[body[i]] * dt * dt)
            cut = ti.min(bound / ti.max(ti.sqrt(inner(s, t, s, t)), TINY), 1.0)
            s, t = cut * s, cut * t
        stress_change[i], shear_change[i] = change[i] - (s - stress[i]), shear[i] - t
        stress[i], shear[i] = s, t
        r, away = vec3(0.0), normal[i]
        if mobility[i] > 0.0 and away.dot(away) > 0.0:
            room = ti.max(distance[i] - contact, 0.0)
            r = touch[i] + step / mobility[i] * (dt * (v[i] - wall_v[i]) + room * away)
            press = ti.max(-r.dot(away), 0.0)
            r -= r.dot(away) * away
            r *= ti.min(friction[i] * (ti.max(q[i], 0.0) * b[i].norm() + press) / ti.max(r.norm(), TINY), 1.0)
            r -= press * away
        touch_change[i] = r - touch[i]
        touch[i] = r
    for i in range(n):
        total = vec3(0.0)
        for k in range(count[i]):
            j = neighbor[i, k]
            G = factor[i, k] * difference(x[i], x[j], wraps, period)
            force = times(stress_change[i] + stress_change[j], shear_change[i] + shear_change[j], G)
            if ti.static(mixed):
                held = hold(i, j, mixed, body, grip)
                force = held * force + (1.0 - held) * (change[i] + change[j]) * G
            total += force
        a[i] = -mobility[i] * (total + change[i] * b[i] + touch_change[i])
        v[i] += a[i] / dt
    for i in range(n):
        trace, diagonal, other, surrounding[i] = sheared(i, a, q, own * V[i], mixed, body, grip, wraps, period, x,
                                                         count, neighbor, factor)  # fmt: skip
        strain[i] -= diagonal
        skew[i] -= other
        answer[i] = trace + b[i].dot(a[i])
        stressed, sheared_ = change[i] - stress_change[i], -shear_change[i]
        seen = answer[i] ** 2 / ti.max(D[i], least)
        done = -change[i] * answer[i] + inner(stressed, sheared_, diagonal, other) - touch_change[i].dot(a[i])
        slip = 0.0
        if slope[body[i]] + cohesion[body[i]] > 0.0:
            seen += inner(diagonal, other, diagonal, other) / ti.max(E[i], least)
            slip = E[i] / step * ti.sqrt(inner(stressed, sheared_, stressed, sheared_))
        if touch_change[i].norm() > 0.0:
            seen += a[i].dot(a[i]) / mobility[i]
        part[i] = vec3(V[i] / volume * done, V[i] / volume * seen, slip)
    ti.loop_config(block_dim=1)
    for k in range(BLOCKS):
        lo, hi = block(k, n)
        over, error, worst, speed, total = 0.0, 0.0, 0.0, 0.0, vec3(0.0)
        for i in range(lo, hi):
            r = residual[i] + answer[i]
            residual[i] = r
            if D[i] > least:
                over += ti.max(r, 0.0)
                error += ti.select(q[i] > 0.0, ti.abs(r), ti.max(r, 0.0))
                worst = ti.max(worst, r)
                total += part[i]
                speed += v[i].norm()
        partial[k, system.COMPRESSION], partial[k, system.TWO_SIDED], partial[k, system.LARGEST] = over, error, worst
        partial[k, system.LENGTH], partial[k, system.CURVATURE], partial[k, SLIP] = total[0], total[1], total[2]
        partial[k, SPEED] = speed
    ti.loop_config(serialize=True)
    for k in range(SUMS):
        system.total_up(k, partial, sums)


class Friction:
    """The stresses of a scene with sand, for the sweeps of a pressure solver."""

    def __init__(self, world: World):
        self.world = world
        self.slope, self.cohesion, self.grip = (material_table(world, k) for k in ("yield_slope", "cohesion", "grips"))
        self.mixed = not all(material.grips for material in world.materials)
        self.own = self._own_weight()

    def _own_weight(self) -> float:
        """-W'(r) / r at r = 0: the weight of a particle itself among its neighbours, per volume."""
        h, r = self.world.h, 1e-3 * self.world.h
        at, beside = self.world.neighbors.smoothing.W(np.array([0.0, r]), h)
        return float(2 * (at - beside) / r**2)

    @property
    def _pairs(self) -> tuple:
        return (self.mixed, self.world.particles.body, self.grip, *self.world.neighbors.pairs)

    def prepare(self, mobility: ti.Ndarray) -> None:
        """E as for an isotropic neighbourhood: a third of what D has from the neighbours, and all of what their
        lopsidedness adds. Walls have no part in it."""
        p = self.world.particles
        p.part.fill(0.0)
        system.prepare(p.n, *self.world.neighbors.pairs, p.part, p.V, mobility, 1.0 / 3.0, p.E)

    def guess(self, dt: float) -> None:
        """Lets the stresses of the last step act."""
        p = self.world.particles
        _begin(p.n, *self._pairs, p.mobility, dt, p.stress, p.shear, p.touch, p.wall_normal, p.v)

    def predict(self, dt: float) -> None:
        """The strain that velocities would cause as they are."""
        p = self.world.particles
        _predict(p.n, *self._pairs, self.own, p.V, dt, p.v, p.q, p.surrounding, p.strain, p.skew, p.stress, p.shear,
                 p.touch)  # fmt: skip

    def sweep(self, dt: float, step: float, mobility: ti.Ndarray, least: float, partial: Any, sums: Any) -> None:
        p, d = self.world.particles, self.world.spacing
        _sweep(p.n, *self._pairs, self.own, p.wall_gradient, p.V, d**3, mobility, p.density, p.wall_density, p.D, p.E,
               least, dt, step, self.slope, self.cohesion, p.wall_friction, p.wall_velocity, CONTACT * d,
               p.wall_distance, p.wall_normal, p.q, p.change, p.surrounding, p.stress, p.shear, p.touch,
               p.stress_change, p.shear_change, p.touch_change, p.a, p.v, p.answer, p.residual, p.strain, p.skew,
               p.part, partial, sums)  # fmt: skip

    def finish(self, dt: float) -> None:
        p = self.world.particles
        _finish(p.n, dt, p.stress, p.shear, p.touch)

    def tolerance(self, dt: float, most: float, speed: float) -> float:
        """How much strain or compression of this step may be left: a share of that which a mean speed [m/s] makes over
        a spacing, or what the user allows. A rush is not held up by it, and what comes to rest does so."""
        calm = CALM * float(np.sqrt(np.linalg.norm(self.world.gravity) * self.world.spacing))
        return min(max(SHARE * max(speed, calm) * dt / self.world.spacing, NOISE), most)
