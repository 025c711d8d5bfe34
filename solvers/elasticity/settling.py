"""Bodies that lie come to rest: their motion as a whole relative to what carries them decays, once none can see it.

A body that stands on elastic feet rocks, and no damping of its vibrations sees much of that: nearly all of it moves as
a rigid body does. Its feet do not rock. So the rigid motion that the particles which carry it have, each weighted by
the force w >= 0 against gravity that it bears, is what the body does on its own account (it slides, it is carried
along), and the difference of its whole motion from that is vibration:

    k = SETTLING min(sum w / (m g), MOST_LOAD) s (1 - |difference| / calm).

Sliding is no difference. Rolling and toppling are, so they are left alone by s, from 0 to 1: by how wide the contact is
compared with the body. I and I_w being the tensors of inertia by mass and by w,

    q = m |I^-1| / (sum w |I_w^-1|),

which is 0.6 for a block on a floor whatever its height, about 0.05 for a ball, and zero for whatever stands on a point
or an edge, or is about to tip over one, as the rest of its feet then carries nothing.

The load, sum w / (m g), is more than one where a body carries others. It then vibrates with their mass, and damping
that acts on its own has to be as many times stronger.
"""

from typing import Any

import numpy as np
import taichi as ti

from pliant.core.backend import Ints, IntTable, Reals, RealTable, Vectors, mat3, vec3
from pliant.core.particles import Particles
from pliant.solvers.elasticity import momentum
from pliant.solvers.elasticity.momentum import CENTRE, MASS, PUSH, SPIN, TURNING, Momenta, rigid_velocity, triple

CALM = 0.2  # in sqrt(g d): motions slower than this could lift a body by 2 % of a spacing, which cannot be seen...
SETTLING = 40.0  # [1/s] ...and decay at up to this rate in what lies on something
MOST_LOAD = 4.0  # beyond this a body is pressed rather than laden
NARROW, WIDE = 0.15, 0.3  # q from which on a contact is a base to rock on, and from which on surely
TINY = 1e-30


@ti.kernel
def _weigh(n: ti.i32, down_x: ti.f32, down_y: ti.f32, down_z: ti.f32, place: Ints, row: Ints, solid_density: Reals,
           contact_force: Vectors, v_elastic: Vectors, weight: Reals, u: Vectors):  # fmt: skip
    """w of each particle of free bodies, and its velocity."""
    down = vec3(down_x, down_y, down_z)
    for e in range(n):
        i = place[e]
        borne = row[e] >= 0 and solid_density[i] > 0.0
        weight[e] = ti.select(borne, ti.max(-contact_force[i].dot(down), 0.0), 0.0)
        u[e] = v_elastic[i]


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


@ti.kernel
def _settle(bodies: ti.i32, extent: IntTable, place: Ints, m: Reals, x: Vectors, body: RealTable, motion: RealTable,
            support: RealTable, carrying: RealTable, dt: ti.f32, gravity: ti.f32, calm: ti.f32, rate: Reals,
            load: Reals, change: RealTable):  # fmt: skip
    """The load of each body, and the rigid motion that is added to it in a step."""
    for b in range(bodies):
        load[b] = ti.min(support[b, MASS] / ti.max(gravity * body[b, MASS], TINY), MOST_LOAD)
        spin = triple(motion, b, SPIN) - triple(carrying, b, SPIN)
        push = triple(motion, b, PUSH) - rigid_velocity(b, triple(body, b, CENTRE), carrying, support)
        inverse = inverse_inertia(b, body)
        size, square, wide = inverse.norm(), push.norm_sqr(), 0.0
        if size > 0.0 and support[b, MASS] > 0.0:
            square += spin.dot((inverse / size).inverse() @ spin) / (size * body[b, MASS])
            wide = ti.math.clamp((_width(b, body, support) - NARROW) / (WIDE - NARROW), 0.0, 1.0)
        k = SETTLING * load[b] * wide * ti.max(1.0 - ti.sqrt(square) / ti.max(calm, TINY), 0.0)
        share = ti.select(rate[extent[b, 0]] > 0.0, 1.0 - ti.exp(-2.0 * k * dt), 0.0)
        for a in ti.static(range(3)):
            change[b, PUSH + a], change[b, SPIN + a] = -share * push[a], -share * spin[a]


@ti.kernel
def _add(n: ti.i32, place: Ints, row: Ints, x: Vectors, body: RealTable, change: RealTable, v: Vectors,
         v_elastic: Vectors):  # fmt: skip
    for e in range(n):
        if row[e] >= 0:
            i = place[e]
            more = rigid_velocity(row[e], x[i], change, body)
            v[i] += more
            v_elastic[i] += more


class Settling:
    """Of all elastic bodies of a scene. `frames` are their motions as a whole, by all of a free one; `free` tells by
    its `row` which these are."""

    def __init__(self, frames: Momenta, free: Momenta, n: int):
        self.frames, self.free, self.n = frames, free, n
        self.supports = Momenta(frames.spans, n)
        self.weight = ti.ndarray(ti.f32, n)
        self.load = ti.ndarray(ti.f32, max(frames.bodies, 1))
        self.change = ti.ndarray(ti.f32, (max(frames.bodies, 1), momentum.MOTION))
        self.load.fill(0.0)

    def run(self, dt: float, gravity: np.ndarray, calm: float, rate: ti.Ndarray, bodies: Any, p: Particles) -> None:
        """Finds `load`, and lets decay what bodies that touch solids do beside what carries them. `calm` [m/s] is what
        none can see, `rate` is zero in bodies that must not be damped."""
        g = float(np.linalg.norm(gravity))
        _weigh(self.n, *(gravity / g).tolist(), bodies.place, self.free.row, p.solid_density, p.contact_force,
               p.v_elastic, self.weight, bodies.dv)  # fmt: skip
        self.supports.look(p, bodies.place, self.weight)
        self.supports.measure(bodies.dv)
        self.frames.measure(bodies.dv)
        _settle(*self.frames.where, self.frames.body, self.frames.motion, self.supports.body, self.supports.motion, dt,
                g, calm, rate, self.load, self.change)  # fmt: skip
        _add(self.n, bodies.place, self.frames.row, p.x, self.frames.body, self.change, p.v, p.v_elastic)
