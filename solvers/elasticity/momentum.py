"""The momenta of free elastic bodies: internal forces change neither momentum nor angular momentum.

A step of elasticity holds rotations fast, and its matrix takes a rotation for a strain. So what moves a body as a whole
is taken out of impulses before they are solved for, and answered as a rigid body would:

    H' = P H P^T + N N^T,        P = 1 - N N^T M,

H being the answer of the matrix, and N the six rigid motions of the body, N^T M N = 1. H' is symmetric where H is,
exact for rigid motions, and changes momenta by what the impulses have of them, whatever the precision of a solve.

Kernels write `u[e] = u[e] - ...` where the index is not that of their loop: `-=` would be atomic, and ten times slower.
"""

import numpy as np
import taichi as ti

from pliant.core.backend import Ints, IntTable, Reals, RealTable, Vectors, mat3, task, turns, upload, vec3
from pliant.core.particles import Particles
from pliant.core.speedups import light

PIECES = 32  # a body's sums are added up in so many pieces, whatever the number of threads
SUMS = 10  # of a piece: m and m x (3), minus m x x^T (6), or momentum and angular momentum (6)
MASS, CENTRE, TURNING, COLUMNS = 0, 1, 4, 13  # of a body: mass, centre (3), inverse inertia (9)
ON_THE_WAY = 0.1  # share of settling that acts on what approaches its equilibrium
PUSH, SPIN, MOTION = 0, 3, 6  # of a rigid motion: velocity of the centre (3), angular velocity (3)


@ti.func
def triple(table: ti.template(), row: ti.i32, k: ti.template()):
    return vec3(table[row, k], table[row, k + 1], table[row, k + 2])


@ti.func
def piece_of(s: ti.i32, extent: ti.template()):
    """First and one-past-last particle of a piece of a body."""
    first, last = extent[s // PIECES, 0], extent[s // PIECES, 1]
    size = (last - first + PIECES - 1) // PIECES
    k = s % PIECES
    return ti.min(first + k * size, last), ti.min(first + (k + 1) * size, last)


@ti.func
def added_up(b: ti.i32, k: ti.i32, piece: ti.template()):
    total = 0.0
    for s in range(b * PIECES, (b + 1) * PIECES):
        total += piece[s, k]
    return total


@light
@ti.kernel
def _look(bodies: ti.i32, extent: IntTable, place: Ints, m: Reals, x: Vectors, piece: RealTable,
          body: RealTable):  # fmt: skip
    """Masses, centres and inverse inertias."""
    for turn in range(turns(bodies * PIECES)):
        s = task(turn)
        if s < bodies * PIECES:
            lo, hi = piece_of(s, extent)
            mass, first = 0.0, vec3(0.0)
            origin = x[place[extent[s // PIECES, 0]]]
            for e in range(lo, hi):
                mass += m[e]
                first += m[e] * (x[place[e]] - origin)
            piece[s, 0] = mass
            for a in ti.static(range(3)):
                piece[s, 1 + a] = first[a]
    for b in range(bodies):
        mass, origin = added_up(b, 0, piece), x[place[extent[b, 0]]]
        body[b, MASS] = mass
        for a in ti.static(range(3)):
            body[b, CENTRE + a] = origin[a] + added_up(b, 1 + a, piece) / ti.max(mass, 1e-30)
    for turn in range(turns(bodies * PIECES)):
        s = task(turn)
        if s < bodies * PIECES:
            lo, hi = piece_of(s, extent)
            centre, second = triple(body, s // PIECES, CENTRE), mat3(0.0)
            for e in range(lo, hi):
                arm = x[place[e]] - centre
                second -= m[e] * arm.outer_product(arm)
            for a in ti.static(range(3)):
                piece[s, 4 + a], piece[s, 7 + a] = second[a, a], second[a, (a + 1) % 3]
    for b in range(bodies):
        J = mat3(0.0)
        for a in ti.static(range(3)):
            J[a, a] = added_up(b, 4 + a, piece)
            J[a, (a + 1) % 3] = added_up(b, 7 + a, piece)
            J[(a + 1) % 3, a] = J[a, (a + 1) % 3]
        size = -J.trace()
        for a in ti.static(range(3)):
            J[a, a] += size * (1.0 + 1e-6)  # a thread has no inertia about itself
        inverse = mat3(0.0)
        if size > 0.0:
            inverse = (J / size).inverse() / size
        for a, c in ti.static(ti.ndrange(3, 3)):
            body[b, TURNING + 3 * a + c] = inverse[a, c]


@ti.func
def _sum(s: ti.i32, by_mass: ti.template(), extent: ti.template(), place: ti.template(), m: ti.template(),
         x: ti.template(), body: ti.template(), u: ti.template(), piece: ti.template()):  # fmt: skip
    """Momentum and angular momentum of one piece: of velocities u, or of impulses u."""
    lo, hi = piece_of(s, extent)
    centre, push, turn = triple(body, s // PIECES, CENTRE), vec3(0.0), vec3(0.0)
    for e in range(lo, hi):
        given = u[e]
        if ti.static(by_mass):
            given *= m[e]
        push += given
        turn += (x[place[e]] - centre).cross(given)
    for a in ti.static(range(3)):
        piece[s, a], piece[s, 3 + a] = push[a], turn[a]


@ti.func
def answer_turn(b: ti.i32, turn: vec3, body: ti.template()):
    """The angular velocity of a body that has this angular momentum."""
    inverse = mat3(0.0)
    for a, c in ti.static(ti.ndrange(3, 3)):
        inverse[a, c] = body[b, TURNING + 3 * a + c]
    return inverse @ turn


@ti.func
def _motion_of(b: ti.i32, piece: ti.template(), body: ti.template()):
    """Velocity and angular velocity of the rigid motion that has these momenta."""
    push, turn = vec3(0.0), vec3(0.0)
    for a in ti.static(range(3)):
        push[a], turn[a] = added_up(b, a, piece), added_up(b, 3 + a, piece)
    return push / ti.max(body[b, MASS], 1e-30), answer_turn(b, turn, body)


@ti.func
def rigid_velocity(b: ti.i32, x: vec3, motion: ti.template(), body: ti.template()):
    """At a place, of a body that moves as a whole."""
    return triple(motion, b, PUSH) + triple(motion, b, SPIN).cross(x - triple(body, b, CENTRE))


@ti.func
def _keep_motion(b: ti.i32, piece: ti.template(), body: ti.template(), motion: ti.template()):
    push, spin = _motion_of(b, piece, body)
    for a in ti.static(range(3)):
        motion[b, PUSH + a], motion[b, SPIN + a] = push[a], spin[a]


@light
@ti.kernel
def _part(bodies: ti.i32, extent: IntTable, place: Ints, m: Reals, x: Vectors, body: RealTable, impulse: Vectors,
          piece: RealTable, motion: RealTable):  # fmt: skip
    """Takes out of impulses what moves bodies as a whole, which becomes their motion."""
    for turn in range(turns(bodies * PIECES)):
        if task(turn) < bodies * PIECES:
            _sum(task(turn), False, extent, place, m, x, body, impulse, piece)
    for b in range(bodies):
        _keep_motion(b, piece, body, motion)
    for turn in range(turns(bodies * PIECES)):
        s = task(turn)
        if s < bodies * PIECES:
            lo, hi = piece_of(s, extent)
            for e in range(lo, hi):
                impulse[e] = impulse[e] - m[e] * rigid_velocity(s // PIECES, x[place[e]], motion, body)


@light
@ti.kernel
def _keep(bodies: ti.i32, extent: IntTable, place: Ints, m: Reals, x: Vectors, body: RealTable, dv: Vectors,
          piece: RealTable, motion: RealTable, lack: RealTable):  # fmt: skip
    """Puts the motion of bodies as a whole in place of what velocity changes have of it."""
    for turn in range(turns(bodies * PIECES)):
        if task(turn) < bodies * PIECES:
            _sum(task(turn), True, extent, place, m, x, body, dv, piece)
    for b in range(bodies):
        push, spin = _motion_of(b, piece, body)
        for a in ti.static(range(3)):
            lack[b, PUSH + a], lack[b, SPIN + a] = motion[b, PUSH + a] - push[a], motion[b, SPIN + a] - spin[a]
    for turn in range(turns(bodies * PIECES)):
        s = task(turn)
        if s < bodies * PIECES:
            lo, hi = piece_of(s, extent)
            for e in range(lo, hi):
                dv[e] = dv[e] + rigid_velocity(s // PIECES, x[place[e]], lack, body)


@light
@ti.kernel
def _measure(bodies: ti.i32, extent: IntTable, place: Ints, m: Reals, x: Vectors, body: RealTable, u: Vectors,
             piece: RealTable, motion: RealTable):  # fmt: skip
    """The motion of bodies as a whole that velocities u have."""
    for turn in range(turns(bodies * PIECES)):
        if task(turn) < bodies * PIECES:
            _sum(task(turn), True, extent, place, m, x, body, u, piece)
    for b in range(bodies):
        _keep_motion(b, piece, body, motion)


@light
@ti.kernel
def _turn(bodies: ti.i32, extent: IntTable, place: Ints, m: Reals, x: Vectors, body: RealTable, scale: ti.f32, V: Reals,
          couple: Vectors, piece: RealTable, motion: RealTable):  # fmt: skip
    """Adds to the motion of bodies what couples on their particles, per volume, make of it."""
    for turn in range(turns(bodies * PIECES)):
        s = task(turn)
        if s < bodies * PIECES:
            lo, hi = piece_of(s, extent)
            total = vec3(0.0)
            for e in range(lo, hi):
                total += V[place[e]] * couple[place[e]]
            for a in ti.static(range(3)):
                piece[s, a] = total[a]
    for b in range(bodies):
        turn = vec3(0.0)
        for a in ti.static(range(3)):
            turn[a] = scale * added_up(b, a, piece)
        spin = answer_turn(b, turn, body)
        for a in ti.static(range(3)):
            motion[b, SPIN + a] += spin[a]


@light
@ti.kernel
def _slow(bodies: ti.i32, extent: IntTable, place: Ints, m: Reals, x: Vectors, body: RealTable, dt: ti.f32, rate: Reals,
          calm: ti.f32, settling: ti.f32, load: Reals, own_mass: Reals, inverse_density: Reals, solid_density: Reals,
          v: Vectors, v_elastic: Vectors, vibration: Reals, u: Vectors, piece: RealTable, motion: RealTable,
          decay: RealTable):  # fmt: skip
    """u: what velocities have beside the motion of bodies as a whole; it decays. While it grows, a body that
    lies is on its way to equilibrium, and settling would only delay that: a mode slower than the rate of decay would
    creep. What grows in a body that slides is chatter, which friction feeds."""
    for e in range(u.shape[0]):
        u[e] = v_elastic[place[e]]
    for turn in range(turns(bodies * PIECES)):
        if task(turn) < bodies * PIECES:
            _sum(task(turn), True, extent, place, m, x, body, u, piece)
    for b in range(bodies):
        _keep_motion(b, piece, body, motion)
    for turn in range(turns(bodies * PIECES)):
        s = task(turn)
        if s < bodies * PIECES:
            lo, hi = piece_of(s, extent)
            mass, square, touching = 0.0, 0.0, 0.0
            for e in range(lo, hi):
                u[e] = u[e] - rigid_velocity(s // PIECES, x[place[e]], motion, body)
                mass += own_mass[e]
                square += own_mass[e] * u[e].norm_sqr()
                touching += ti.select(solid_density[place[e]] > 0.0, 1.0, 0.0)
            piece[s, 0], piece[s, 1], piece[s, 2] = mass, square, touching
    for b in range(bodies):
        speed = ti.sqrt(added_up(b, 1, piece) / ti.max(added_up(b, 0, piece), 1e-30))
        touching = ti.select(added_up(b, 2, piece) > 0.0, 1.0, 0.0)
        more = settling * ti.max(load[b], touching) * ti.max(1.0 - speed / ti.max(calm, 1e-30), 0.0)
        first = extent[b, 0]
        lies = triple(motion, b, PUSH).norm() < calm
        more *= ti.select(lies and speed > vibration[place[first]], ON_THE_WAY, 1.0)
        decay[b, 0], decay[b, 1] = more, speed * ti.exp(-2.0 * (rate[first] + more) * dt)
    for turn in range(turns(bodies * PIECES)):
        s = task(turn)
        if s < bodies * PIECES:
            lo, hi = piece_of(s, extent)
            for e in range(lo, hi):
                i = place[e]
                vibration[i] = decay[s // PIECES, 1]
                if inverse_density[i] > 0.0:
                    more = ti.select(rate[e] > 0.0, decay[s // PIECES, 0], 0.0)
                    less = (1.0 - ti.exp(-2.0 * (rate[e] + more) * dt)) * u[e]
                    v[i] = v[i] - less
                    v_elastic[i] = v_elastic[i] - less


class Momenta:
    """Of those bodies that nothing holds: `spans` are the first and one-past-last slots of each."""

    def __init__(self, spans: list[tuple[int, int]], n: int):
        """`n` is the number of all slots."""
        self.spans, self.bodies, rows = spans, len(spans), max(len(spans), 1)
        row = np.full(n, -1)
        for b, (first, last) in enumerate(spans):
            row[first:last] = b
        self.row = upload(row, ti.i32)  # of the body that a particle is of, -1 where that is not free
        self.lack, self.spin = ti.ndarray(ti.f32, (rows, MOTION)), ti.ndarray(ti.f32, (rows, MOTION))
        self.extent = upload(np.array(spans or [(0, 0)], np.int32), ti.i32)
        self.piece = ti.ndarray(ti.f32, (rows * PIECES, SUMS))
        self.body, self.motion = ti.ndarray(ti.f32, (rows, COLUMNS)), ti.ndarray(ti.f32, (rows, MOTION))

    def look(self, particles: Particles, place: ti.Ndarray, m: ti.Ndarray) -> None:
        """Takes over where the bodies are."""
        if self.bodies:
            self.where = (self.bodies, self.extent, place, m, particles.x)
            _look(*self.where, self.piece, self.body)

    def part(self, impulse: ti.Ndarray) -> None:
        """Takes out of impulses [N s] what moves bodies as a whole, and keeps that as their `motion`."""
        if self.bodies:
            _part(*self.where, self.body, impulse, self.piece, self.motion)

    def turn(self, particles: Particles, scale: float) -> None:
        """Adds to that `motion` what `particles.couple` times `scale` makes of it."""
        if self.bodies:
            _turn(*self.where, self.body, scale, particles.V, particles.couple, self.piece, self.motion)

    def measure(self, u: ti.Ndarray) -> None:
        """Keeps the motion that velocities u have as the `motion` of bodies."""
        if self.bodies:
            _measure(*self.where, self.body, u, self.piece, self.motion)

    def keep(self, dv: ti.Ndarray) -> None:
        """Changes of velocity get that `motion` of bodies as a whole, in place of what they have of it."""
        if self.bodies:
            _keep(*self.where, self.body, dv, self.piece, self.motion, self.lack)

    def slow(self, dt: float, rate: ti.Ndarray, calm: float, settling: float, load: ti.Ndarray, own_mass: ti.Ndarray,
             u: ti.Ndarray, particles: Particles) -> None:  # fmt: skip
        """Lets velocities decay, as far as they are not the motion of bodies as a whole, as in vibrations whose
        amplitudes fall at these rates [1/s]: and at the rate `settling` besides, times the `load` where that is above
        one, where bodies touch something and their root mean square is far below `calm` [m/s]. Leaves what they were
        in u."""
        if self.bodies:
            p = particles
            _slow(*self.where, self.body, dt, rate, calm, settling, load, own_mass, p.inverse_density,
                  p.solid_density, p.v, p.v_elastic, p.vibration, u, self.piece, self.motion, self.lack)  # fmt: skip
