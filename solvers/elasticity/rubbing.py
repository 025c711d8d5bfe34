"""Coulomb friction of elastic bodies: on walls, on each other and on themselves, found together with the pressures.

A particle of a surface that pressure q (times dt^2, as in `pressure.system`) presses on something bears a traction r
along it, a force per volume. On a wall with gradient b

    |r| <= mu q |b|,

and r opposes sliding: below the bound there is none, on it r is parallel to it. Other bodies have a gradient too,
g_i = sum_j G_ij over those of their particles that are near, and a velocity, the mean over these with the weights
k_ij = -W'(r) / r, which are the same for both of a pair. What r takes from a particle it gives to them in these shares:
no momentum is lost. The pressures of both sides press, each with its own gradient, and each side bears friction by what
it presses itself, so that together they bear mu times the whole force.

Tractions are unknowns of the same sweeps as pressures, r <- r + step slip / w and back into the bound, and are carried
from step to step: a block on a slope starts every step from its own equilibrium, and stays there.
"""

import numpy as np
import taichi as ti

from pliant.core.backend import Ints, IntTable, Reals, RealTable, Vectors, upload, vec3
from pliant.core.fields import Field
from pliant.core.neighbors import difference
from pliant.core.reduce import BLOCKS, block
from pliant.core.world import World

FIELDS = (
    Field("wall_rub", "vector", "Pa/m", "friction of an elastic body on walls: traction", carried=True),
    Field("body_rub", "vector", "Pa/m", "friction of an elastic body on others: traction", carried=True),
    Field("wall_rub_change", "vector", "Pa s^2/m", "last change of dt^2 wall_rub"),
    Field("body_rub_change", "vector", "Pa s^2/m", "last change of dt^2 body_rub"),
    Field("grip", "real", "1/m^5", "sum of the weights of the particles that it rubs on"),
)
LENGTH, CURVATURE, ERROR, MEMBERS, SPEED, SUMS = range(6)  # what is summed up over all contacts, and their number
TINY = 1e-30


@ti.func
def along(u: vec3, normal: vec3):
    """What of u lies in the plane of a normal that need not have length one."""
    return u - u.dot(normal) / ti.max(normal.dot(normal), TINY) * normal


@ti.func
def held(r: vec3, bound: ti.f32):
    """A traction, cut to its bound."""
    return r * ti.min(bound / ti.max(r.norm(), TINY), 1.0)


@ti.kernel
def _prepare(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, count: Ints, neighbor: IntTable,
             factor: RealTable, material: Ints, mu: RealTable, slot: Ints, V: Reals, b: Vectors, wall_friction: Reals,
             grip: Reals, wall_rub: Vectors, body_rub: Vectors):  # fmt: skip
    """Who rubs on others; whoever no longer does has no traction."""
    for i in range(n):
        total = 0.0
        if slot[i] >= 0:
            for k in range(count[i]):
                j = neighbor[i, k]
                if mu[material[i], material[j]] > 0.0:
                    total -= factor[i, k] / V[j]
            if total == 0.0:
                body_rub[i] = vec3(0.0)
            if wall_friction[i] * b[i].norm() == 0.0:
                wall_rub[i] = vec3(0.0)
        grip[i] = total


@ti.func
def reaction(i: ti.i32, rub: ti.template(), grip: ti.template(), V: ti.template(), material: ti.template(),
             mu: ti.template(), count: ti.template(), neighbor: ti.template(), factor: ti.template()):  # fmt: skip
    """What a particle gets of the tractions of those that rub on it, per volume of its own."""
    total = vec3(0.0)
    for k in range(count[i]):
        j = neighbor[i, k]
        if grip[j] > 0.0 and mu[material[i], material[j]] > 0.0:
            total -= factor[i, k] / (V[i] * grip[j]) * rub[j]
    return total


@ti.func
def others(i: ti.i32, u: ti.template(), grip: ti.template(), V: ti.template(), material: ti.template(),
           mu: ti.template(), count: ti.template(), neighbor: ti.template(), factor: ti.template()):  # fmt: skip
    """The mean of u over those that a particle rubs on."""
    total = vec3(0.0)
    for k in range(count[i]):
        j = neighbor[i, k]
        if mu[material[i], material[j]] > 0.0:
            total -= factor[i, k] / V[j] * u[j]
    return total / grip[i]


@ti.kernel
def _begin(n: ti.i32, material: Ints, mu: RealTable, V: Reals, grip: Reals, count: Ints, neighbor: IntTable,
           factor: RealTable, rubs: Ints, slot: Ints, inverse_density: Reals, dt: ti.f32, wall_rub: Vectors,
           body_rub: Vectors, v: Vectors):  # fmt: skip
    """Lets the tractions of the last step act on velocities; times dt^2 until `_finish`."""
    for i in range(n):
        if rubs[material[i]] != 0:
            total = reaction(i, body_rub, grip, V, material, mu, count, neighbor, factor)
            if slot[i] >= 0:
                total -= wall_rub[i] + body_rub[i]
            v[i] += dt * inverse_density[i] * total
    for i in range(n):
        if slot[i] >= 0:
            wall_rub[i], body_rub[i] = dt * dt * wall_rub[i], dt * dt * body_rub[i]


@ti.kernel
def _rub(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, count: Ints, neighbor: IntTable,
         factor: RealTable, material: Ints, mu: RealTable, V: Reals, grip: Reals, rubs: Ints, slot: Ints,
         inverse_density: Reals, effective: Reals, dt: ti.f32, step: ti.f32, q: Reals, b: Vectors, wall_friction: Reals,
         wall_velocity: Vectors, v: Vectors, wall_rub: Vectors, body_rub: Vectors, wall_rub_change: Vectors,
         body_rub_change: Vectors, a: Vectors):  # fmt: skip
    """One step of tractions along the sliding, back into the bounds, and what they do to the particles."""
    for i in range(n):
        if slot[i] >= 0:
            on_wall, on_body = vec3(0.0), vec3(0.0)
            if inverse_density[i] > 0.0:
                bound = wall_friction[i] * q[i] * b[i].norm()
                if bound > 0.0:
                    on_wall = wall_rub[i] + step * dt / effective[i] * (v[i] - wall_velocity[i])
                    on_wall = held(along(on_wall, b[i]), bound)
                if grip[i] > 0.0:
                    press, normal = vec3(0.0), vec3(0.0)
                    for k in range(count[i]):
                        j = neighbor[i, k]
                        G = factor[i, k] * difference(x[i], x[j], wraps, period)
                        press += mu[material[i], material[j]] * G
                        normal += ti.select(mu[material[i], material[j]] > 0.0, 1.0, 0.0) * G
                    slip = v[i] - others(i, v, grip, V, material, mu, count, neighbor, factor)
                    on_body = body_rub[i] + step * dt / effective[i] * slip
                    on_body = held(along(on_body, normal), q[i] * press.norm())
            wall_rub_change[i], wall_rub[i] = on_wall - wall_rub[i], on_wall
            body_rub_change[i], body_rub[i] = on_body - body_rub[i], on_body
    for i in range(n):
        if rubs[material[i]] != 0:
            total = reaction(i, body_rub_change, grip, V, material, mu, count, neighbor, factor)
            if slot[i] >= 0:
                total -= wall_rub_change[i] + body_rub_change[i]
            a[i] += inverse_density[i] * total


@ti.kernel
def _tally(n: ti.i32, count: Ints, neighbor: IntTable, factor: RealTable, material: Ints, mu: RealTable, V: Reals,
           grip: Reals, slot: Ints, inverse_density: Reals, effective: Reals, step: ti.f32, spacing: ti.f32, D: Reals,
           least: ti.f32, q: Reals, residual: Reals, v: Vectors, wall_rub_change: Vectors, body_rub_change: Vectors,
           a: Vectors, partial: RealTable):  # fmt: skip
    """Sums over contacts: w dr dr, dr K dr, the error that is left of each, how many there are, and their speeds."""
    ti.loop_config(block_dim=1)
    for s in range(BLOCKS):
        lo, hi = block(s, n)
        length, curvature, error, members, speed = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(lo, hi):
            if slot[i] >= 0 and D[i] > least and inverse_density[i] > 0.0:
                on_wall, on_body, volume = wall_rub_change[i], body_rub_change[i], V[i] / spacing**3
                change = on_wall.dot(on_wall) + on_body.dot(on_body)
                length += volume * effective[i] * change
                curvature -= volume * (on_wall + on_body).dot(a[i])
                if grip[i] > 0.0:
                    curvature += volume * on_body.dot(others(i, a, grip, V, material, mu, count, neighbor, factor))
                r = residual[i]
                if q[i] > 0.0 or r > 0.0:
                    error += ti.abs(r) + effective[i] * ti.sqrt(change) / (step * spacing)
                    members += 1.0
                    speed += v[i].norm()
        partial[s, LENGTH], partial[s, CURVATURE], partial[s, ERROR] = length, curvature, error
        partial[s, MEMBERS], partial[s, SPEED] = members, speed


@ti.kernel
def _finish(n: ti.i32, slot: Ints, dt: ti.f32, inverse_density: Reals, wall_rub: Vectors, body_rub: Vectors,
            wall_slide: Vectors):  # fmt: skip
    """Tractions as such again, and what they have done to walls."""
    for i in range(n):
        if slot[i] >= 0:
            wall_rub[i], body_rub[i] = wall_rub[i] / (dt * dt), body_rub[i] / (dt * dt)
            wall_slide[i] -= inverse_density[i] * wall_rub[i]


class Rubbing:
    """The friction of all elastic bodies of a scene."""

    def __init__(self, world: World):
        self.world = world
        table = np.array([[world.frictions.between(world.bodies[k].name, world.bodies[j].name) if a.elastic or b.elastic else 0.0
                           for j, b in enumerate(world.materials)] for k, a in enumerate(world.materials)])  # fmt: skip
        self.mu = upload(table, ti.f32)
        elastic = np.array([m.elastic for m in world.materials])
        self.rubs = upload((elastic | table.any(axis=1)).astype(np.int32), ti.i32)
        self.partial = np.zeros((BLOCKS, SUMS), np.float32)
        self.sums = np.zeros(SUMS)
        self.acts = bool(table.any()) or world.walls.rough

    def prepare(self) -> None:
        p, w = self.world.particles, self.world
        _prepare(p.n, *w.neighbors.pairs, p.material, self.mu, p.slot, p.V, p.wall_gradient, p.wall_friction, p.grip,
                 p.wall_rub, p.body_rub)  # fmt: skip

    @property
    def _weights(self) -> tuple:
        p, pairs = self.world.particles, self.world.neighbors.pairs
        return (p.material, self.mu, p.V, p.grip, *pairs[3:])

    def warm_start(self, dt: float) -> None:
        p = self.world.particles
        _begin(p.n, *self._weights, self.rubs, p.slot, p.inverse_density, dt, p.wall_rub, p.body_rub, p.v)

    def push(self, dt: float, step: float) -> None:
        """One step of the tractions; adds to `particles.a` what it does to free particles."""
        p, w = self.world.particles, self.world
        _rub(p.n, *w.neighbors.pairs, p.material, self.mu, p.V, p.grip, self.rubs, p.slot, p.inverse_density,
             p.effective_inverse_density, dt, step, p.q, p.wall_gradient, p.wall_friction, p.wall_velocity, p.v,
             p.wall_rub, p.body_rub, p.wall_rub_change, p.body_rub_change, p.a)  # fmt: skip

    def tally(self, step: float, least: float) -> None:
        """Sums up what `particles.a` has made of it."""
        p = self.world.particles
        _tally(p.n, *self.world.neighbors.pairs[3:], p.material, self.mu, p.V, p.grip, p.slot, p.inverse_density,
               p.effective_inverse_density, step, self.world.spacing, p.D, least, p.q, p.residual, p.v,
               p.wall_rub_change, p.body_rub_change, p.a, self.partial)  # fmt: skip
        self.sums = self.partial.sum(axis=0, dtype=float)

    def finish(self, dt: float) -> None:
        p = self.world.particles
        _finish(p.n, p.slot, dt, p.inverse_density, p.wall_rub, p.body_rub, p.wall_slide)
