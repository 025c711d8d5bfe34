"""What contacts of elastic bodies still lack in a sweep, and the forces that they bear in the end."""

import numpy as np
import taichi as ti

from pliant.core.backend import Ints, Points, Reals, RealTable, Spans, Vectors
from pliant.core.fields import Field
from pliant.core.neighbors import difference
from pliant.core.reduce import BLOCKS, add_up, block
from pliant.core.speedups import light
from pliant.core.world import World
from pliant.solvers.elasticity.momentum import SPIN, Momenta
from pliant.solvers.elasticity.rubbing import Rubbing, Scratch, of_others, received, turning
from pliant.solvers.pressure.system import CORRECTED, xyz

FIELDS = (
    Field("contact_force", "vector", "N", "on a particle of an elastic body by all that touches it", carried=True),
    Field("pusher", "int", "", "who pushes it most: a body, or -2 less the number of a wall; -1 nobody", carried=True,
          initial=-1),
)  # fmt: skip
LENGTH, CURVATURE, ERROR, MEMBERS, SPEED, SUMS = range(6)  # what is summed up over all contacts, and their number


@light
@ti.kernel
def _tally(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
           factor: Reals, material: Ints, slot: Ints, V: Reals, inverse_density: Reals, effective: Reals,
           step: ti.f32, spacing: ti.f32, least: ti.f32, v: Vectors, solid_density: Reals, motion: RealTable,
           c: Scratch, bodies: ti.i32, rate: ti.f32, spin: RealTable, partial: RealTable, sums: Reals):  # fmt: skip
    """Sums over contacts: w dr dr, dr K dr, the error that is left of each, how many there are, and their speeds. What
    the sweep has made of the motion of bodies goes into their spins."""
    ti.loop_config(block_dim=1)
    for s in range(BLOCKS):
        lo, hi = block(s, n)
        length, curvature, error, members, speed = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(lo, hi):
            if slot[i] >= 0 and c.D[i] > least and inverse_density[i] > 0.0 and solid_density[i] > 0.0:
                on_wall, on_body, volume = c.wall_change[i], c.body_change[i], V[i] / spacing**3
                change = on_wall.dot(on_wall) + on_body.dot(on_body)
                if change > 0.0:
                    turn = turning(i, slot, c.row, motion)
                    length += volume * effective[i] * change
                    curvature -= volume * on_wall.dot(c.a[i] - c.wall_distance[i] * turn.cross(c.wall_normal[i]))
                    if c.grip[i] > 0.0:
                        others = of_others(i, c.a, motion, c, x, slot, material, V, wraps, period, span, neighbor,
                                           factor)  # fmt: skip
                        curvature -= volume * on_body.dot(c.a[i] + turn.cross(c.arm[i]) - others)
                r = c.residual[i]
                if c.q[i] > 0.0 or r > 0.0:
                    error += ti.abs(r) + effective[i] * ti.sqrt(change) / (step * spacing)
                    members += 1.0
                    speed += v[i].norm()
        partial[s, LENGTH], partial[s, CURVATURE], partial[s, ERROR] = length, curvature, error
        partial[s, MEMBERS], partial[s, SPEED] = members, speed
    ti.loop_config(serialize=True)
    for k in range(SUMS):
        add_up(k, partial, sums)
    for b in range(bodies):
        for a in ti.static(range(3)):
            spin[b, SPIN + a] += rate * motion[b, SPIN + a]


@light
@ti.kernel
def _forces(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
            factor: Reals, material: Ints, slot: Ints, V: Reals, rubbed: ti.template(), p: Reals,
            special: Ints, Lx: Points, Ly: Points, Lz: Points, body: Ints, wall_number: Ints, wall_rub: Vectors,
            body_rub: Vectors, m: Reals, wall_slide: Vectors, c: Scratch, force: Vectors,
            pusher: Ints):  # fmt: skip
    """What contacts do to each elastic particle, and who pushes it most: a body, or -2 less the number of a wall. Rows
    of L are those of liquids whose gradients are corrected (`pressure.correction`); elsewhere it is one. What has slid
    along walls by more than friction has settled on them (`settling`)."""
    for i in range(n):
        if slot[i] >= 0:
            total, who = p[i] * c.b[i], -1
            most = total.norm()
            if most > 0.0:
                who = -2 - wall_number[i]
            for k in range(span[i][0], ti.select(c.D[i] > 0.0, span[i][1], 0)):
                j = neighbor[k]
                G = factor[k] * difference(x[i], x[j], wraps, period)
                push = p[i] * G
                if special[j] & CORRECTED:
                    push += p[j] * xyz(G[0] * Lx[j] + G[1] * Ly[j] + G[2] * Lz[j])
                else:
                    push += p[j] * G
                total += push
                if push.norm() > most:
                    most, who = push.norm(), body[j]
            if ti.static(rubbed):
                got, _ = received(i, wall_rub, body_rub, c, x, slot, material, V, wraps, period, span, neighbor,
                                  factor)  # fmt: skip
                total -= got
            force[i], pusher[i] = m[i] * wall_slide[i] - V[i] * (total - wall_rub[i]), who


class Balance:
    """The balance of all contacts of elastic bodies: `sums` of a sweep, and forces once they are found."""

    def __init__(self, world: World, rubbing: Rubbing):
        self.world, self.rubbing = world, rubbing
        self.partial = ti.ndarray(ti.f32, (BLOCKS, SUMS))
        self.sums = np.zeros(SUMS, np.float32)  # of NumPy, so that the host reads them at no cost

    def prepare(self, pushed: bool) -> None:
        """No sums yet; and where nothing pushes on elastic bodies, no forces."""
        self.sums[:] = 0.0
        if not pushed:
            self.world.particles.contact_force.fill(0.0)
            self.world.particles.pusher.fill(-1)

    def tally(self, dt: float, step: float, least: float, momenta: Momenta) -> None:
        """Sums up what a sweep has made of `particles.a`."""
        p, rubbing = self.world.particles, self.rubbing
        _tally(p.n, *rubbing.pairs, p.effective_inverse_density, step, self.world.spacing, least, p.v,
               p.solid_density, momenta.motion, rubbing.scratch(momenta), momenta.bodies, 1.0 / dt, momenta.spin,
               self.partial, self.sums)  # fmt: skip

    def mean(self, k: int) -> float:
        """One of the sums over contacts, by their number."""
        return float(self.sums[k] / max(self.sums[MEMBERS], 1.0))

    def find_forces(self, rubbed: bool, momenta: Momenta) -> None:
        """Finds `particles.contact_force`, with friction or without, while particles are where they were."""
        p = self.world.particles
        _forces(p.n, *self.rubbing.pairs[:-1], rubbed, p.p, p.special, p.Lx, p.Ly, p.Lz, p.body, p.wall_number,
                p.wall_rub, p.body_rub, p.m, p.wall_slide, self.rubbing.scratch(momenta), p.contact_force,
                p.pusher)  # fmt: skip
