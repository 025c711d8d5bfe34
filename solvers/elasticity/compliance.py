"""How particles of elastic bodies that touch something answer impulses: H' of `momentum`, condensed to them.

Within the sweeps of a solve only particles that touch are pushed, and only what these do is asked for. So of the answer
H of the matrix, which never changes, their rows and columns are enough: a dense block for each body, made once for all
around the place where it touches (`linear.condense`). A sweep then costs as much as there are contacts. With impulses
J, places r from the centre and Q = H M r, which is solved for once in a step,

    u_c = sum_k H_ck J_k - w x Q_c - z x r_c + w' x r_c,
    w = I^-1 sum r x J,    z = I^-1 (sum Q x J - T w),    T = sum m ((r . Q) 1 - Q r^T),

w' being w with what couples add to it. Translations cancel, as H M 1 = 1. Once the sweeps have ended, all of their
impulses go through the whole body at once.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import taichi as ti
from scipy.spatial import KDTree

from pliant.core.backend import Ints, IntTable, Reals, RealTable, Vectors, mat3, reupload, threads_for, upload, vec3
from pliant.core.particles import Particles
from pliant.core.speedups import light
from pliant.solvers.elasticity.body import ElasticBodies
from pliant.solvers.elasticity.momentum import CENTRE, MASS, PUSH, SPIN, Momenta, answer_turn, triple

SMALL = 1000  # unknowns of a factor up to which all of them are taken at once
AROUND = 3.0  # in spacings: how far around a contact particles of the surface are taken along, for it will move
SHELL = 1.5  # in spacings from the surface: what can touch something
STALE = 3  # times as many as are wanted now: then those of the past are forgotten
MOST_ENTRIES = 1 << 26  # numbers that all blocks may take together
ENTRIES = 64  # of the blocks that take as long as an element of other kernels
FEW_ENTRIES = 1 << 20  # a product with a block of so many costs less than the launches of a solve

# Columns of the tables of contacts, and of bodies
SLOT, LOCAL, BASE, START, SIZE, ROW, KINDS = range(7)  # its particle, column and row in the store, its body's contacts
FROM_IMPULSES, FROM_MATRIX, TABLE = 0, 3, 6  # w and z


@ti.kernel
def _gather_blocks(count: ti.i32, contact: IntTable, offset: Ints, store: Reals, matrix: Reals):
    for c in range(count):
        for k in range(contact[c, SIZE]):
            matrix[offset[c] + k] = store[contact[c, BASE] + contact[contact[c, START] + k, LOCAL]]


@light
@ti.kernel
def _add_levers(n: ti.i32, row: Ints, place: Ints, m: Reals, x: Vectors, body: RealTable, force: Vectors,
                both: Vectors):  # fmt: skip
    """Forces, and after them M r."""
    for e in range(n):
        both[e], both[n + e] = force[e], vec3(0.0)
        if row[e] >= 0:
            both[n + e] = m[e] * (x[place[e]] - triple(body, row[e], CENTRE))


@light
@ti.kernel
def _part_answers(n: ti.i32, both: Vectors, correction: Vectors, Q: Vectors):
    for e in range(n):
        correction[e], Q[e] = both[e], both[n + e]


@light
@ti.kernel
def _second_moments(bodies: ti.i32, extent: IntTable, place: Ints, m: Reals, x: Vectors, body: RealTable, Q: Vectors,
                    T: RealTable):  # fmt: skip
    for b in range(bodies):
        total, centre = mat3(0.0), triple(body, b, CENTRE)
        for e in range(extent[b, 0], extent[b, 1]):
            r = x[place[e]] - centre
            total += m[e] * (r.dot(Q[e]) * mat3([[1, 0, 0], [0, 1, 0], [0, 0, 1]]) - Q[e].outer_product(r))
        for a, c in ti.static(ti.ndrange(3, 3)):
            T[b, 3 * a + c] = total[a, c]


@ti.func
def _turn_body(b: ti.i32, count: ti.i32, contact: ti.template(), extent: ti.template(), place: ti.template(),
               x: ti.template(), V: ti.template(), turned: ti.i32, couple: ti.template(), body: ti.template(),
               Q: ti.template(), T: ti.template(), J: ti.template(), spins: ti.template(), extra: ti.template(),
               motion: ti.template()):  # fmt: skip
    """w and z of a body, and its motion as a whole."""
    centre = triple(body, b, CENTRE)
    push, turn, by_matrix, coupled = vec3(0.0), vec3(0.0), vec3(0.0), vec3(0.0)
    for c in range(extent[b, 0], extent[b, 1]):
        e = contact[c, SLOT]
        i = place[e]
        given = vec3(J[c], J[count + c], J[2 * count + c])
        push += given
        turn += (x[i] - centre).cross(given)
        by_matrix += Q[e].cross(given)
        if turned != 0:
            coupled += V[i] * couple[i]
    w = answer_turn(b, turn, body)
    more = answer_turn(b, coupled, body)
    moment = mat3(0.0)
    for a, k in ti.static(ti.ndrange(3, 3)):
        moment[a, k] = T[b, 3 * a + k]
    z = answer_turn(b, by_matrix - moment @ w, body)
    push /= ti.max(body[b, MASS], 1e-30)
    for a in ti.static(range(3)):
        spins[b, FROM_IMPULSES + a], spins[b, FROM_MATRIX + a] = w[a], z[a]
        motion[b, PUSH + a], motion[b, SPIN + a] = push[a], w[a] + more[a]
        extra[b, a] += more[a]


@ti.kernel
def _answer(bodies: ti.i32, count: ti.i32, contact: IntTable, extent: IntTable, offset: Ints, matrix: Reals,
            place: Ints, m: Reals, inverse_density: Reals, x: Vectors, V: Reals, turned: ti.i32, couple: Vectors,
            body: RealTable, Q: Vectors, T: RealTable, total: Vectors, J: Reals, spins: RealTable, extra: RealTable,
            motion: RealTable, a: Vectors):  # fmt: skip
    """The impulses of a sweep, which add up in `total`, and the answers to them in place of accelerations."""
    for c in range(count):
        e = contact[c, SLOT]
        i = place[e]
        push = ti.select(inverse_density[i] > 0.0, m[e] * a[i], vec3(0.0))
        total[e] = total[e] + push
        for k in ti.static(range(3)):
            J[k * count + c] = push[k]
    for b in range(bodies):
        _turn_body(b, count, contact, extent, place, x, V, turned, couple, body, Q, T, J, spins, extra, motion)
    for c in range(count):
        first, at = contact[c, START], offset[c]
        u0, u1, u2 = 0.0, 0.0, 0.0
        for k in range(contact[c, SIZE]):
            h = matrix[at + k]
            u0 += h * J[first + k]
            u1 += h * J[count + first + k]
            u2 += h * J[2 * count + first + k]
        u, e, b = vec3(u0, u1, u2), contact[c, SLOT], contact[c, ROW]
        i = place[e]
        if b >= 0:
            r = x[i] - triple(body, b, CENTRE)
            u -= triple(spins, b, FROM_IMPULSES).cross(Q[e])
            u += (triple(motion, b, SPIN) - triple(spins, b, FROM_MATRIX)).cross(r)
        a[i] = ti.select(inverse_density[i] > 0.0, u, vec3(0.0))


@light
@ti.kernel
def _add_spins(bodies: ti.i32, extra: RealTable, motion: RealTable):
    for b in range(bodies):
        for a in ti.static(range(3)):
            motion[b, SPIN + a] += extra[b, a]


@light
@ti.kernel
def _set_velocities(n: ti.i32, rate: ti.f32, place: Ints, inverse_density: Reals, correction: Vectors,
                    v_elastic: Vectors, v: Vectors):  # fmt: skip
    for e in range(n):
        i = place[e]
        if inverse_density[i] > 0.0:
            v[i] = v_elastic[i] + rate * correction[e]


class Condensed:
    """The inverse of one factor, condensed to those of its unknowns that touch something or soon may."""

    def __init__(self, factor: Any, share: Any, spacing: float):
        """`share` are the bodies that have this factor (`split.Share`)."""
        self.factor, self.n, self.spacing = factor, len(share.free), spacing
        self.X = share.rest.X[share.free]
        surface = share.rest.X[share.rest.normals.any(axis=1)]
        self.shell = np.ones(self.n, bool)
        if self.n > SMALL and len(surface):
            self.shell = KDTree(surface).query(self.X)[0] < SHELL * spacing
        self.take(np.zeros(0, int))

    def take(self, members: np.ndarray) -> None:
        """Condenses to these unknowns."""
        self.members, self.index = members, np.full(self.n, -1)
        self.index[members] = np.arange(len(members))
        self.inverse = self.factor.condense(members) if len(members) else np.zeros((0, 0), np.float32)

    def include(self, wanted: np.ndarray) -> bool:
        """Sees to it that these are among the members; whether there are new ones."""
        if (self.index[wanted] >= 0).all():
            return False
        members = np.arange(self.n)
        if self.n > SMALL:
            around = KDTree(self.X[wanted]).query(self.X, distance_upper_bound=AROUND * self.spacing)[0] < np.inf
            near = np.union1d(wanted, np.flatnonzero(around & self.shell))
            members = np.union1d(self.members, near)
            if len(members) > STALE * len(near):
                members = near
        self.take(members)
        return True

    def is_worth_it(self, size: int) -> bool:
        """Whether so many contacts of one body cost less condensed than the whole of it in each sweep."""
        return size**2 <= max(self.factor.nnz, FEW_ENTRIES)


class Compliance:
    """The contacts of a step, and how they answer."""

    def __init__(self, shares: Sequence[tuple[Any, Any]], momenta: Momenta, bodies: ElasticBodies, spacing: float):
        """`shares` are the factors and their bodies (`split.Share`)."""
        n = bodies.n
        self.momenta, self.bodies, self.n = momenta, bodies, n
        self.shares = [Condensed(factor, share, spacing) for factor, share in shares]
        self.local, self.share = np.full(n, -1), np.full(n, -1)
        for k, (_, share) in enumerate(shares):
            for start in share.starts:
                self.local[start + share.free], self.share[start + share.free] = np.arange(len(share.free)), k
        self.Q, self.total = ti.ndarray(vec3, n), ti.ndarray(vec3, n)
        rows = max(momenta.bodies, 1)
        self.T, self.spins, self.extra = (ti.ndarray(ti.f32, (rows, k)) for k in (9, TABLE, 3))
        self.slots, self.fits = np.zeros(0, int), False
        self._places = [np.array([start + share.free for start in share.starts]) for _, share in shares]
        self._doubles: list[Any] = []  # solvers for two right-hand sides at once
        self._found = False  # whether Q is that of this step
        self._row, self._spans = momenta.row.to_numpy(), momenta.extent.to_numpy()
        self._body = np.searchsorted(bodies.starts, np.arange(n), side="right")
        self._stored = False
        self.contact: ti.Ndarray | None = None
        self.offset: ti.Ndarray | None = None
        self.extent = ti.ndarray(ti.i32, (rows, 2))
        self.matrix, self.J = ti.ndarray(ti.f32, 1), ti.ndarray(ti.f32, 1)

    @property
    def members(self) -> list[list[int]]:
        """Which unknowns of each factor it is condensed to: results depend on it, if only by what is rounded."""
        return [one.members.tolist() for one in self.shares]

    def take(self, members: list[list[int]]) -> None:
        """Takes back what `members` was."""
        for one, known in zip(self.shares, members, strict=True):
            if not np.array_equal(one.members, known):
                one.take(np.array(known, int))
                self._stored, self.slots = False, np.zeros(0, int)

    def find_contacts(self) -> bool:
        """Takes over who touches. False if they are too many: then the whole body has to answer."""
        self._found = False
        slots = np.flatnonzero(self.bodies.pushed.to_numpy())
        if not np.array_equal(slots, self.slots):
            self.slots, self.fits = slots, self._condense(slots[self.local[slots] >= 0])
        return self.fits

    def _condense(self, free: np.ndarray) -> bool:
        """Makes the blocks of the free particles that touch."""
        if not len(free):
            return False
        body, share, local = self._body[free], self.share[free], self.local[free]
        first, size, kinds = np.searchsorted(body, body), np.bincount(body)[body], np.unique(share)
        if size.sum() > MOST_ENTRIES or not all(self.shares[k].is_worth_it(size[share == k].max()) for k in kinds):
            return False
        if any([self.shares[k].include(np.unique(local[share == k])) for k in kinds]) or not self._stored:
            if sum(one.inverse.size for one in self.shares) > MOST_ENTRIES:
                return False
            self._store()
        self.count, self.entries = len(free), int(size.sum())
        table = np.zeros((self.count, KINDS), np.int64)
        table[:, SLOT], table[:, START], table[:, SIZE], table[:, ROW] = free, first, size, self._row[free]
        for k in kinds:
            mine, one = share == k, self.shares[k]
            table[mine, LOCAL] = one.index[local[mine]]
            table[mine, BASE] = self._begin[k] + len(one.members) * table[mine, LOCAL]
        self.contact = reupload(self.contact, table, ti.i32)
        self.offset = reupload(self.offset, np.cumsum(size) - size, ti.i32)
        self.extent.from_numpy(np.searchsorted(free, self._spans).astype(np.int32))
        if self.entries > self.matrix.shape[0]:
            self.matrix = ti.ndarray(ti.f32, 2 * self.entries)
        if 3 * self.count > self.J.shape[0]:
            self.J = ti.ndarray(ti.f32, 6 * self.count)
        with threads_for(self.entries // ENTRIES):
            _gather_blocks(self.count, self.contact, self.offset, self.store, self.matrix)
        return True

    def _store(self) -> None:
        """Puts all condensed inverses one after the other."""
        self._begin = np.cumsum([0] + [one.inverse.size for one in self.shares])
        self.store = upload(np.concatenate([one.inverse.ravel() for one in self.shares]), ti.f32)
        self._stored = True

    def find_response(self, particles: Particles) -> None:
        """As `Elasticity.find_response`, and Q for bodies where they are now: a solve for both at once takes little
        longer than one, for it reads the factor once."""
        b, n, momenta = self.bodies, self.n, self.momenta
        if not self._doubles:
            self._doubles = [one.factor.bind(np.concatenate([places, places + n]))
                             for one, places in zip(self.shares, self._places, strict=True)]  # fmt: skip
            self._both, self._answers = ti.ndarray(vec3, 2 * n), ti.ndarray(vec3, 2 * n)
            self._answers.fill(0.0)  # held particles have none
        _add_levers(n, momenta.row, b.place, b.mass, particles.x, momenta.body, b.force, self._both)
        for solver in self._doubles:
            solver.solve(self._both, self._answers)
        _part_answers(n, self._answers, b.correction, self.Q)
        self._found = True

    def begin(self, particles: Particles) -> None:
        """No impulses yet; and what follows from Q."""
        b, momenta = self.bodies, self.momenta
        self.total.fill(0.0)
        self.extra.fill(0.0)
        if momenta.bodies:
            if not self._found:
                self.find_response(particles)
            where = (b.place, b.mass, particles.x, momenta.body)
            _second_moments(momenta.bodies, momenta.extent, *where, self.Q, self.T)

    def answer(self, particles: Particles, a: ti.Ndarray, turned: bool) -> None:
        """Replaces accelerations of those who touch by what they do in their bodies."""
        p, b, momenta = particles, self.bodies, self.momenta
        with threads_for(self.entries // ENTRIES):
            _answer(momenta.bodies, self.count, self.contact, self.extent, self.offset, self.matrix, b.place, b.mass,
                    p.inverse_density, p.x, p.V, int(turned), p.couple, momenta.body, self.Q, self.T, self.total,
                    self.J, self.spins, self.extra, momenta.motion, a)  # fmt: skip

    def spread(self, particles: Particles, dt: float, find_response: Callable[[], int]) -> None:
        """Lets the impulses of all sweeps go through the whole bodies: their velocities."""
        p, b, momenta = particles, self.bodies, self.momenta
        b.force.copy_from(self.total)
        momenta.part(b.force)
        _add_spins(momenta.bodies, self.extra, momenta.motion)
        b.correction.fill(0.0)
        find_response()
        momenta.keep(b.correction)
        _set_velocities(self.n, 1.0 / dt, b.place, p.inverse_density, b.correction, p.v_elastic, p.v)
