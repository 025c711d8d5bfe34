"""The momenta of free elastic bodies: internal forces change neither momentum nor angular momentum."""

import numpy as np
import taichi as ti

from pliant.core.backend import ROUNDS, Ints, IntTable, Reals, RealTable, Vectors, mat3, upload, vec3
from pliant.core.particles import Particles

PIECES = 32  # a body's sums are added up in so many pieces, whatever the number of threads
SUMS = 16  # of a piece: m, m x (3), m v (3), m x cross v (3), inertia (6)


@ti.kernel
def _keep(bodies: ti.i32, extent: IntTable, place: Ints, m: Reals, x: Vectors, dv_external: Vectors, piece: RealTable,
          motion: RealTable, dv: Vectors):  # fmt: skip
    """Takes out of the velocity changes of each free body what changes its momentum or angular momentum by other than
    what acts from outside: elastic forces are internal, whatever the rotations that a step holds fast and the precision
    of a solve make of it."""
    ti.loop_config(block_dim=ROUNDS)
    for round in range(bodies * PIECES * ROUNDS):
        if round % ROUNDS == 0:
            sum_mass(round // ROUNDS, extent, place, m, x, piece)
    for b in range(bodies):
        for k in range(4):
            motion[b, k] = added_up(b, k, piece)
        origin = x[place[extent[b, 0]]]
        for a in ti.static(range(3)):
            motion[b, 1 + a] = origin[a] + motion[b, 1 + a] / ti.max(motion[b, 0], 1e-30)
    ti.loop_config(block_dim=ROUNDS)
    for round in range(bodies * PIECES * ROUNDS):
        if round % ROUNDS == 0:
            sum_momenta(round // ROUNDS, extent, place, m, x, dv_external, dv, motion, piece)
    for b in range(bodies):
        find_motion(b, piece, motion)
    ti.loop_config(block_dim=ROUNDS)
    for round in range(bodies * PIECES * ROUNDS):
        if round % ROUNDS == 0:
            s = round // ROUNDS
            b = s // PIECES
            lo, hi = piece_of(s, extent)
            push, spin = triple(motion, b, 4), triple(motion, b, 7)
            for e in range(lo, hi):
                dv[e] -= push + spin.cross(x[place[e]] - triple(motion, b, 1))


@ti.func
def triple(table: ti.template(), row: ti.i32, k: ti.template()):
    return vec3(table[row, k], table[row, k + 1], table[row, k + 2])


@ti.func
def sum_mass(s: ti.i32, extent: ti.template(), place: ti.template(), m: ti.template(), x: ti.template(),
             piece: ti.template()):  # fmt: skip
    """Mass and centre of one piece of a body."""
    lo, hi = piece_of(s, extent)
    mass, centre = 0.0, vec3(0.0)
    origin = x[place[extent[s // PIECES, 0]]]
    for e in range(lo, hi):
        i = place[e]
        mass += m[i]
        centre += m[i] * (x[i] - origin)
    piece[s, 0] = mass
    for a in ti.static(range(3)):
        piece[s, 1 + a] = centre[a]


@ti.func
def sum_momenta(s: ti.i32, extent: ti.template(), place: ti.template(), m: ti.template(), x: ti.template(),
                dv_external: ti.template(), dv: ti.template(), motion: ti.template(),
                piece: ti.template()):  # fmt: skip
    """What a piece of a body gains in momentum and angular momentum by itself, and minus sum m r r^T."""
    lo, hi = piece_of(s, extent)
    centre = triple(motion, s // PIECES, 1)
    push, turn, inertia = vec3(0.0), vec3(0.0), mat3(0.0)
    for e in range(lo, hi):
        i = place[e]
        arm = x[i] - centre
        push += m[i] * (dv[e] - dv_external[e])
        turn += m[i] * arm.cross(dv[e] - dv_external[e])
        inertia -= m[i] * arm.outer_product(arm)
    for a in ti.static(range(3)):
        piece[s, 4 + a], piece[s, 7 + a] = push[a], turn[a]
        piece[s, 10 + a], piece[s, 13 + a] = inertia[a, a], inertia[a, (a + 1) % 3]


@ti.func
def find_motion(b: ti.i32, piece: ti.template(), motion: ti.template()):
    """The rigid motion that has these momenta: velocity of the centre, and angular velocity."""
    push, turn, J = vec3(0.0), vec3(0.0), mat3(0.0)
    for a in ti.static(range(3)):
        push[a], turn[a] = added_up(b, 4 + a, piece), added_up(b, 7 + a, piece)
        J[a, a] = added_up(b, 10 + a, piece)
        J[a, (a + 1) % 3] = added_up(b, 13 + a, piece)
        J[(a + 1) % 3, a] = J[a, (a + 1) % 3]
    size = -J.trace()
    for a in ti.static(range(3)):
        J[a, a] += size * (1.0 + 1e-6)  # a thread has no inertia about itself
    spin = vec3(0.0)
    if size > 0.0:
        spin = (J / size).inverse() @ turn / size
    for a in ti.static(range(3)):
        motion[b, 4 + a], motion[b, 7 + a] = push[a] / ti.max(motion[b, 0], 1e-30), spin[a]


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


class Momenta:
    """Of those bodies that nothing holds: `spans` are the first and one-past-last slots of each."""

    def __init__(self, spans: list[tuple[int, int]]):
        self.bodies, rows = len(spans), max(len(spans), 1)
        self.extent = upload(np.array(spans or [(0, 0)], np.int32), ti.i32)
        self.piece, self.motion = ti.ndarray(ti.f32, (rows * PIECES, SUMS)), ti.ndarray(ti.f32, (rows, SUMS))

    def keep(self, particles: Particles, place: ti.Ndarray, dv_external: ti.Ndarray, dv: ti.Ndarray) -> None:
        """Takes out of the changes of velocity `dv` what changes momenta by other than `dv_external` does."""
        if self.bodies:
            p = particles
            _keep(self.bodies, self.extent, place, p.m, p.x, dv_external, self.piece, self.motion, dv)
