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

from typing import TypeAlias

import numpy as np
import taichi as ti

from pliant.core.backend import Ints, Reals, RealTable, Spans, Vectors, upload, vec3
from pliant.core.fields import Field
from pliant.core.neighbors import difference
from pliant.core.speedups import light
from pliant.core.world import BodyGroup, World
from pliant.solvers.elasticity.momentum import SPIN, Momenta, triple

FIELDS = (
    Field("wall_rub", "vector", "Pa/m", "friction of an elastic body on walls: traction", carried=True),
    Field("body_rub", "vector", "Pa/m", "friction of an elastic body on others: traction", carried=True),
    Field("wall_rub_change", "vector", "Pa s^2/m", "last change of dt^2 wall_rub"),
    Field("body_rub_change", "vector", "Pa s^2/m", "last change of dt^2 body_rub"),
    Field("grip", "real", "1/m^5", "sum of the weights of the particles that it rubs on"),
    Field("arm", "vector", "m", "from it to the place where it rubs on them"),
    Field("couple", "vector", "Pa", "of tractions, as they act at the surface; times dt^2 in the last sweep"),
)
# What kernels read and write, beside the arrays that change places when particles are sorted.
Scratch: TypeAlias = ti.types.argpack(
    mu=RealTable, rubs=Ints, grip=Reals, arm=Vectors, row=Ints, q=Reals, D=Reals, residual=Reals, a=Vectors, b=Vectors,
    wall_friction=Reals, wall_velocity=Vectors, wall_distance=Reals, wall_normal=Vectors, wall_change=Vectors,
    body_change=Vectors,
)  # fmt: skip
TINY = 1e-30


@ti.func
def along(u: vec3, normal: vec3):
    """What of u lies in the plane of a normal that need not have length one."""
    return u - u.dot(normal) / ti.max(normal.dot(normal), TINY) * normal


@ti.func
def held(r: vec3, bound: ti.f32):
    """A traction, cut to its bound."""
    return r * ti.min(bound / ti.max(r.norm(), TINY), 1.0)


@light
@ti.kernel
def _prepare(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
             factor: Reals, material: Ints, mu: RealTable, slot: Ints, V: Reals, b: Vectors, wall_friction: Reals,
             D: Reals, grip: Reals, arm: Vectors, wall_rub: Vectors, body_rub: Vectors, wall_change: Vectors,
             body_change: Vectors):  # fmt: skip
    """Who rubs on others, and where; whoever no longer does has no traction. Where D is zero nothing touches, and no
    sweep has to look."""
    for i in range(n):
        total, middle = 0.0, vec3(0.0)
        if slot[i] >= 0:
            for k in range(span[i][0], ti.select(D[i] > 0.0, span[i][1], 0)):
                j = neighbor[k]
                if mu[material[i], material[j]] > 0.0:
                    total -= factor[k] / V[j]
                    middle += factor[k] / V[j] * difference(x[i], x[j], wraps, period)
            if total == 0.0:
                body_rub[i] = vec3(0.0)
            if D[i] == 0.0 or wall_friction[i] * b[i].norm() == 0.0:
                wall_rub[i] = vec3(0.0)
            if D[i] == 0.0:
                wall_change[i], body_change[i] = vec3(0.0), vec3(0.0)
        grip[i], arm[i] = total, 0.5 * middle / ti.max(total, TINY)


@ti.func
def turning(i: ti.i32, slot: ti.template(), row: ti.template(), motion: ti.template()):
    """The angular velocity of the body that a particle is of, if that is free."""
    spin = vec3(0.0)
    if slot[i] >= 0:
        if row[slot[i]] >= 0:
            spin = triple(motion, row[slot[i]], SPIN)
    return spin


@ti.func
def of_others(i: ti.i32, u: ti.template(), motion: ti.template(), c: ti.template(), x: ti.template(),
              slot: ti.template(), material: ti.template(), V: ti.template(), wraps: ti.template(),
              period: ti.template(), span: ti.template(), neighbor: ti.template(),
              factor: ti.template()):  # fmt: skip
    """The mean of u over those that a particle rubs on, where it rubs on them."""
    total = vec3(0.0)
    for k in range(span[i][0], span[i][1]):
        j = neighbor[k]
        if c.mu[material[i], material[j]] > 0.0:
            arm = difference(x[i], x[j], wraps, period) + c.arm[i]
            total -= factor[k] / V[j] * (u[j] + turning(j, slot, c.row, motion).cross(arm))
    return total / c.grip[i]


@ti.func
def received(i: ti.i32, wall_rub: ti.template(), body_rub: ti.template(), c: ti.template(), x: ti.template(),
             slot: ti.template(), material: ti.template(), V: ti.template(), wraps: ti.template(),
             period: ti.template(), span: ti.template(), neighbor: ti.template(), factor: ti.template()):  # fmt: skip
    """What tractions do to a particle, per volume: the force, by its own and by those of who rubs on it, and the couple
    that it has because they act at the surface."""
    force, couple = vec3(0.0), vec3(0.0)
    for k in range(span[i][0], ti.select(c.D[i] > 0.0, span[i][1], 0)):
        j = neighbor[k]
        if c.grip[j] > 0.0 and c.mu[material[i], material[j]] > 0.0:
            got = -factor[k] / (V[i] * c.grip[j]) * body_rub[j]
            force += got
            couple += (c.arm[j] - difference(x[i], x[j], wraps, period)).cross(got)
    if slot[i] >= 0:
        force -= wall_rub[i] + body_rub[i]
        couple += c.wall_distance[i] * c.wall_normal[i].cross(wall_rub[i]) - c.arm[i].cross(body_rub[i])
    return force, couple


@light
@ti.kernel
def _begin(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
           factor: Reals, material: Ints, slot: Ints, V: Reals, inverse_density: Reals, dt: ti.f32,
           wall_rub: Vectors, body_rub: Vectors, v: Vectors, couple: Vectors, c: Scratch):  # fmt: skip
    """Lets the tractions of the last step act on velocities; times dt^2 until `_finish`."""
    for i in range(n):
        if c.rubs[material[i]] != 0:
            force, couple[i] = received(i, wall_rub, body_rub, c, x, slot, material, V, wraps, period, span, neighbor,
                                        factor)  # fmt: skip
            v[i] += dt * inverse_density[i] * force
    for i in range(n):
        if slot[i] >= 0:
            wall_rub[i], body_rub[i] = dt * dt * wall_rub[i], dt * dt * body_rub[i]


@light
@ti.kernel
def _rub(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
         factor: Reals, material: Ints, slot: Ints, V: Reals, inverse_density: Reals, effective: Reals, dt: ti.f32,
         step: ti.f32, v: Vectors, spin: RealTable, wall_rub: Vectors, body_rub: Vectors, couple: Vectors,
         c: Scratch):  # fmt: skip
    """One step of tractions along the sliding, back into the bounds, and what they do to the particles."""
    for i in range(n):
        if slot[i] >= 0 and c.D[i] > 0.0:
            on_wall, on_body = vec3(0.0), vec3(0.0)
            if inverse_density[i] > 0.0:
                turn, slope = turning(i, slot, c.row, spin), c.b[i]
                bound = c.wall_friction[i] * c.q[i] * slope.norm()
                if bound > 0.0:
                    slip = v[i] - c.wall_distance[i] * turn.cross(c.wall_normal[i]) - c.wall_velocity[i]
                    on_wall = held(along(wall_rub[i] + step * dt / effective[i] * slip, slope), bound)
                if c.grip[i] > 0.0:
                    press, normal = vec3(0.0), vec3(0.0)
                    for k in range(span[i][0], span[i][1]):
                        j = neighbor[k]
                        G = factor[k] * difference(x[i], x[j], wraps, period)
                        press += c.mu[material[i], material[j]] * G
                        normal += ti.select(c.mu[material[i], material[j]] > 0.0, 1.0, 0.0) * G
                    slip = v[i] + turn.cross(c.arm[i]) - of_others(i, v, spin, c, x, slot, material, V, wraps, period,
                                                                   span, neighbor, factor)  # fmt: skip
                    on_body = held(along(body_rub[i] + step * dt / effective[i] * slip, normal), c.q[i] * press.norm())
            c.wall_change[i], wall_rub[i] = on_wall - wall_rub[i], on_wall
            c.body_change[i], body_rub[i] = on_body - body_rub[i], on_body
    for i in range(n):
        if c.rubs[material[i]] != 0 and c.D[i] > 0.0:
            force, couple[i] = received(i, c.wall_change, c.body_change, c, x, slot, material, V, wraps, period, span,
                                        neighbor, factor)  # fmt: skip
            c.a[i] += inverse_density[i] * force


@light
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
        table = np.array([[world.frictions.between(a.name, b.name) if self._rubs(a, b) else 0.0 for b in world.bodies]
                          for a in world.bodies])  # fmt: skip
        self.mu = upload(table, ti.f32)
        elastic = np.array([m.elastic for m in world.materials])
        self.rubs = upload((elastic | table.any(axis=1)).astype(np.int32), ti.i32)
        self.acts = bool(table.any() or world.walls.friction[:, elastic].any())
        self._scratch: tuple = (None, None)

    def _rubs(self, a: BodyGroup, b: BodyGroup) -> bool:
        return bool(self.world.materials[a.material].elastic and self.world.materials[b.material].elastic)

    def scratch(self, momenta: Momenta) -> Scratch:
        """What kernels take as one; made anew when the particles' arrays have grown."""
        p, key = self.world.particles, (self.world.particles.capacity, momenta)
        if self._scratch[0] != key:
            made = Scratch(mu=self.mu, rubs=self.rubs, grip=p.grip, arm=p.arm, row=momenta.row, q=p.q, D=p.D,
                           residual=p.residual, a=p.a, b=p.wall_gradient, wall_friction=p.wall_friction,
                           wall_velocity=p.wall_velocity, wall_distance=p.wall_distance, wall_normal=p.wall_normal,
                           wall_change=p.wall_rub_change, body_change=p.body_rub_change)  # fmt: skip
            self._scratch = key, made
        return self._scratch[1]

    @property
    def pairs(self) -> tuple:
        """What kernels take of all particles, in the order in which they do."""
        p = self.world.particles
        return (*self.world.neighbors.pairs, p.material, p.slot, p.V, p.inverse_density)

    def prepare(self, solid: bool) -> None:
        """Finds who rubs on whom, if elastic bodies touch solids; where they do not, nothing bears a traction."""
        p, w = self.world.particles, self.world
        if solid and self.acts:
            _prepare(p.n, *w.neighbors.pairs, p.material, self.mu, p.slot, p.V, p.wall_gradient, p.wall_friction,
                     p.D, p.grip, p.arm, p.wall_rub, p.body_rub, p.wall_rub_change, p.body_rub_change)  # fmt: skip
        if not solid:
            p.wall_rub.fill(0.0)
            p.body_rub.fill(0.0)

    def warm_start(self, dt: float, momenta: Momenta) -> None:
        p = self.world.particles
        _begin(p.n, *self.pairs, dt, p.wall_rub, p.body_rub, p.v, p.couple, self.scratch(momenta))

    def push(self, dt: float, step: float, momenta: Momenta) -> None:
        """One step of the tractions; adds to `particles.a` what it does to free particles."""
        p = self.world.particles
        _rub(p.n, *self.pairs, p.effective_inverse_density, dt, step, p.v, momenta.spin, p.wall_rub, p.body_rub,
             p.couple, self.scratch(momenta))  # fmt: skip

    def finish(self, dt: float) -> None:
        p = self.world.particles
        _finish(p.n, p.slot, dt, p.inverse_density, p.wall_rub, p.body_rub, p.wall_slide)
