"""Bodies that lie come to rest: their motion as a whole relative to what carries them decays, once none can see it.

A body that stands on elastic feet rocks, and no damping of its vibrations sees much of that: nearly all of it moves as
a rigid body does. Its feet do not rock. So the rigid motion of those particles by which walls carry it, each weighted
by the force w >= 0 against gravity that it bears, is what the body does on its own account (it slides, it is carried
along), and the difference of its whole motion from that is vibration, which decays at the rate

    k = SETTLING min(sum w / (m g), MOST_LOAD) s (1 - |difference| / CALM).

The walls bear what that takes of momentum and angular momentum, P and L: each particle that carries w (P / sum w +
(I_w^-1 L) x r), r from the centre of these, which adds up to both.

Sliding is no difference. Rolling and toppling are, so they are left alone by s, from 0 to 1: by how wide the contact is
compared with the body. I and I_w being the tensors of inertia by mass and by w,

    q = m |I^-1| / (sum w |I_w^-1|),

which is 0.6 for a block on a floor whatever its height, about 0.05 for a ball, and zero for whatever stands on a point
or an edge, or is about to tip over one, as the rest of its feet then carries nothing.

The load, the sum of forces against gravity by solids over m g, is more than one where a body carries others. It then
vibrates with their mass, and damping that acts on its own has to be as many times stronger.
"""

from typing import Any

import numpy as np
import taichi as ti

from pliant.core.backend import Ints, IntTable, Reals, RealTable, Vectors, mat3, vec3
from pliant.core.particles import Particles
from pliant.core.speedups import light
from pliant.solvers.elasticity.momentum import (
    CENTRE,
    MASS,
    MOTION,
    PUSH,
    SPIN,
    TURNING,
    Momenta,
    rigid_velocity,
    triple,  # fmt: skip
)

CALM = 0.2  # in sqrt(g d): motions slower than this could lift a body by 2 % of a spacing, which cannot be seen...
SETTLING = 40.0  # [1/s] ...and decay at up to this rate in what lies on something
MOST_LOAD = 4.0  # beyond this a body is pressed rather than laden
NARROW, WIDE = 0.15, 0.3  # q from which on a contact is a base to rock on, and from which on surely
NOBODY = -1  # pushes: below are the numbers of walls (`balance.FIELDS`)
TINY = 1e-30


@light
@ti.kernel
def _weigh(bodies: ti.i32, extent: IntTable, down_x: ti.f32, down_y: ti.f32, down_z: ti.f32, place: Ints, row: Ints,
           solid_density: Reals, wall_density: Reals, pusher: Ints, contact_force: Vectors, v_elastic: Vectors,
           weight: Reals, u: Vectors, load: Reals):  # fmt: skip
    """w of each particle of free bodies, and its velocity; and what solids bear of each of these bodies [N]."""
    down = vec3(down_x, down_y, down_z)
    for b in range(bodies):
        total = 0.0
        for e in range(extent[b, 0], extent[b, 1]):
            i = place[e]
            borne = ti.select(row[e] >= 0, ti.max(-contact_force[i].dot(down), 0.0), 0.0)
            total += ti.select(solid_density[i] > 0.0, borne, 0.0)
            weight[e] = ti.select(wall_density[i] > 0.0 and pusher[i] < NOBODY, borne, 0.0)
            u[e] = v_elastic[i]
        load[b] = total


@ti.func
def inverse_inertia(b: ti.i32, body: ti.template()):
    inverse = mat3(0.0)
    for a, c in ti.static(ti.ndrange(3, 3)):
        inverse[a, c] = body[b, TURNING + 3 * a + c]
    return inverse


@ti.func
def _width(b: ti.i32, body: ti.template(), support: ti.template()):
    """q."""
    mine, carrying = inverse_inertia(b, body).norm(), inverse_inertia(b, support).norm()
    return body[b, MASS] * mine / ti.max(support[b, MASS] * carrying, TINY)


@light
@ti.kernel
def _settle(bodies: ti.i32, extent: IntTable, place: Ints, m: Reals, x: Vectors, body: RealTable, motion: RealTable,
            support: RealTable, carrying: RealTable, dt: ti.f32, gravity: ti.f32, calm: ti.f32, rate: Reals,
            load: Reals, change: RealTable, reaction: RealTable):  # fmt: skip
    """The load of each body, the rigid motion that is added to it in a step, and that by which walls bear it."""
    for b in range(bodies):
        load[b] = ti.min(load[b] / ti.max(gravity * body[b, MASS], TINY), MOST_LOAD)
        spin = triple(motion, b, SPIN) - triple(carrying, b, SPIN)
        push = triple(motion, b, PUSH) - rigid_velocity(b, triple(body, b, CENTRE), carrying, support)
        inverse, turn, wide, speed = inverse_inertia(b, body), vec3(0.0), 0.0, 0.0
        size, borne = inverse.norm(), support[b, MASS]
        if size > 0.0 and borne > 0.0:
            turn = (inverse / size).inverse() @ spin / size
            speed = ti.sqrt(push.norm_sqr() + ti.max(spin.dot(turn), 0.0) / body[b, MASS])
            wide = ti.math.clamp((_width(b, body, support) - NARROW) / (WIDE - NARROW), 0.0, 1.0)
        k = SETTLING * load[b] * wide * ti.max(1.0 - speed / ti.max(calm, TINY), 0.0)
        share = ti.select(rate[extent[b, 0]] > 0.0, 1.0 - ti.exp(-2.0 * k * dt), 0.0)
        arm, lost = triple(body, b, CENTRE) - triple(support, b, CENTRE), share * body[b, MASS] * push
        turned = inverse_inertia(b, support) @ (share * turn + arm.cross(lost))
        for a in ti.static(range(3)):
            change[b, PUSH + a], change[b, SPIN + a] = -share * push[a], -share * spin[a]
            reaction[b, PUSH + a], reaction[b, SPIN + a] = -lost[a] / ti.max(borne, TINY), -turned[a]


@light
@ti.kernel
def _add(n: ti.i32, dt: ti.f32, place: Ints, row: Ints, x: Vectors, m: Reals, body: RealTable, change: RealTable,
         support: RealTable, reaction: RealTable, weight: Reals, v: Vectors, v_elastic: Vectors,
         wall_slide: Vectors):  # fmt: skip
    for e in range(n):
        i, b = place[e], row[e]
        more = rigid_velocity(b, x[i], change, body)
        v[i] = v[i] + more
        v_elastic[i] = v_elastic[i] + more
        wall_slide[i] = wall_slide[i] + weight[e] / (m[e] * dt) * rigid_velocity(b, x[i], reaction, support)


class Settling:
    """Of all elastic bodies of a scene. `frames` are the motions of each as a whole, `free` are the bodies that nothing
    holds; no others settle."""

    def __init__(self, frames: Momenta, free: Momenta, n: int):
        self.frames, self.free, self.n = frames, free, n
        self.supports, rows = Momenta(frames.spans, n), max(frames.bodies, 1)
        self.weight, self.load = ti.ndarray(ti.f32, n), ti.ndarray(ti.f32, rows)
        self.change, self.reaction = (ti.ndarray(ti.f32, (rows, MOTION)) for _ in range(2))

    def run(self, dt: float, gravity: np.ndarray, calm: float, rate: ti.Ndarray, bodies: Any, p: Particles) -> None:
        """Finds `load`, and lets decay what bodies do beside what carries them. `calm` [m/s] is what none can see,
        `rate` is zero in bodies that must not be damped."""
        frames, supports, g = self.frames, self.supports, float(np.linalg.norm(gravity))
        _weigh(frames.bodies, frames.extent, *(gravity / g).tolist(), bodies.place, self.free.row, p.solid_density,
               p.wall_density, p.pusher, p.contact_force, p.v_elastic, self.weight, bodies.dv, self.load)  # fmt: skip
        supports.look(p, bodies.place, self.weight)
        supports.measure(bodies.dv)
        frames.measure(bodies.dv)
        _settle(*frames.where, frames.body, frames.motion, supports.body, supports.motion, dt, g, calm, rate, self.load,
                self.change, self.reaction)  # fmt: skip
        _add(self.n, dt, bodies.place, frames.row, p.x, bodies.mass, frames.body, self.change, supports.body,
             self.reaction, self.weight, p.v, p.v_elastic, p.wall_slide)  # fmt: skip
