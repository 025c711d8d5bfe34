"""How particles of elastic bodies that touch something answer impulses: H' of `momentum`, condensed to them.

Within the sweeps of a solve only particles that touch are pushed, and only what these do is asked for. So of the answer
H of the matrix, which never changes, their rows and columns are enough: a dense block for each body. A column costs a
solve, once; a sweep then costs as much as there are contacts. With impulses J, places r from the centre and Q = H M r,
which is solved for once in a step,

    u_c = sum_k H_ck J_k - w x Q_c - z x r_c + w' x r_c,
    w = I^-1 sum r x J,    z = I^-1 (sum Q x J - T w),    T = sum m ((r . Q) 1 - Q r^T),

w' being w with what couples add to it. Translations cancel, as H M 1 = 1. Once the sweeps have ended, all of their
impulses go through the whole body at once.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import taichi as ti

from pliant.core.backend import Ints, IntTable, Reals, RealTable, Vectors, mat3, upload, vec3
from pliant.core.particles import Particles
from pliant.solvers.elasticity.body import ElasticBodies
from pliant.solvers.elasticity.momentum import CENTRE, MASS, PUSH, SPIN, Momenta, answer_turn, triple

BATCH = 4  # copies of a body, of three columns each, that are solved for at a time
MOST_COLUMNS = 1 << 28  # numbers that all columns may take together: a gibibyte
MOST_ENTRIES = 1 << 26  # numbers that the blocks of a step may take
MOST_WORK = 1.5e10  # contacts times entries of the factor: what takes longer, some seconds, is not worth its time
LEAST_ROOM = 1 << 20

# Columns of the tables of contacts, and of bodies
SLOT, LOCAL, BASE, START, SIZE, ROW, KINDS = range(7)  # its particle, where in columns, its column, its body's contacts
FROM_IMPULSES, FROM_MATRIX, TABLE = 0, 3, 6  # w and z


@ti.kernel
def _flag(n: ti.i32, slot: Ints, D: Reals, touching: Ints):
    for i in range(n):
        if slot[i] >= 0:
            touching[slot[i]] = ti.cast(D[i] > 0.0, ti.i32)


@ti.kernel
def _unit(columns: ti.i32, n: ti.i32, wanted: Ints, rhs: Vectors):
    """Right-hand sides for columns: three in each copy."""
    for k in range(rhs.shape[0]):
        rhs[k] = vec3(0.0)
    for k in range(columns):
        at = k // 3 * n + wanted[k]
        for a in ti.static(range(3)):
            if k % 3 == a:
                rhs[at][a] = 1.0


@ti.kernel
def _keep_columns(columns: ti.i32, n: ti.i32, begin: ti.i32, solved: Vectors, store: Reals):
    for j in range(n):
        for k in range(columns):
            store[begin + k * n + j] = solved[k // 3 * n + j][k % 3]


@ti.kernel
def _gather_blocks(count: ti.i32, contact: IntTable, offset: Ints, store: Reals, matrix: Reals):
    for c in range(count):
        for k in range(contact[c, SIZE]):
            matrix[offset[c] + k] = store[contact[contact[c, START] + k, BASE] + contact[c, LOCAL]]


@ti.kernel
def _levers(n: ti.i32, row: Ints, place: Ints, m: Reals, x: Vectors, body: RealTable, force: Vectors):
    """M r."""
    for e in range(n):
        force[e] = vec3(0.0)
        if row[e] >= 0:
            force[e] = m[e] * (x[place[e]] - triple(body, row[e], CENTRE))


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


@ti.kernel
def _take(count: ti.i32, contact: IntTable, place: Ints, m: Reals, inverse_density: Reals, a: Vectors, total: Vectors,
          J: Reals):  # fmt: skip
    """The impulses of a sweep, and of all sweeps."""
    for c in range(count):
        e = contact[c, SLOT]
        i = place[e]
        push = ti.select(inverse_density[i] > 0.0, m[e] * a[i], vec3(0.0))
        total[e] += push
        for k in ti.static(range(3)):
            J[k * count + c] = push[k]


@ti.kernel
def _turn_bodies(bodies: ti.i32, count: ti.i32, contact: IntTable, extent: IntTable, place: Ints, x: Vectors, V: Reals,
                 turned: ti.i32, couple: Vectors, body: RealTable, Q: Vectors, T: RealTable, J: Reals,
                 spins: RealTable, extra: RealTable, motion: RealTable):  # fmt: skip
    """w and z of each body, and its motion as a whole."""
    for b in range(bodies):
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
def _answer(count: ti.i32, contact: IntTable, offset: Ints, matrix: Reals, place: Ints, inverse_density: Reals,
            x: Vectors, body: RealTable, Q: Vectors, J: Reals, spins: RealTable, motion: RealTable,
            a: Vectors):  # fmt: skip
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


@ti.kernel
def _add_spins(bodies: ti.i32, extra: RealTable, motion: RealTable):
    for b in range(bodies):
        for a in ti.static(range(3)):
            motion[b, SPIN + a] += extra[b, a]


@ti.kernel
def _set_velocities(n: ti.i32, rate: ti.f32, place: Ints, inverse_density: Reals, correction: Vectors,
                    v_elastic: Vectors, v: Vectors):  # fmt: skip
    for e in range(n):
        i = place[e]
        if inverse_density[i] > 0.0:
            v[i] = v_elastic[i] + rate * correction[e]


class Columns:
    """Columns of the answers of all factors, made when they are needed."""

    def __init__(self, shares: Sequence[tuple[Any, Any]], n: int):
        """`shares` are the factors and their bodies (`split.Share`), `n` is the number of all slots."""
        self.local, self.share = np.full(n, -1), np.full(n, -1)
        self.size = [len(share.free) for _, share in shares]
        self._solvers: list[Any] = [None] * len(shares)
        self._factors = [factor for factor, _ in shares]
        for k, (_, share) in enumerate(shares):
            for start in share.starts:
                self.local[start + share.free], self.share[start + share.free] = np.arange(self.size[k]), k
        self.base: dict[tuple[int, int], int] = {}  # of a share's column in the store
        self.store, self.used = ti.ndarray(ti.f32, LEAST_ROOM), 0

    def work(self, slots: np.ndarray) -> float:
        """Entries of factors that are passed for the columns of these particles, were there none yet."""
        counts = np.bincount(self.share[slots], minlength=len(self._factors))
        return float(sum(count * factor.nnz for count, factor in zip(counts, self._factors, strict=True)))

    def fetch(self, slots: np.ndarray) -> np.ndarray | None:
        """Where the columns of these particles begin in the store, -1 for held ones; None if they are too many."""
        keys = list(zip(self.share[slots].tolist(), self.local[slots].tolist(), strict=True))
        wanted = set(keys) - {(-1, -1)}
        if sum(self.size[k] for k, _ in wanted) > MOST_COLUMNS:
            return None
        missing = sorted(wanted - self.base.keys())
        need = sum(self.size[k] for k, _ in missing)
        if self.used + need > MOST_COLUMNS:  # those of the past make room
            self.base, self.used, missing = {}, 0, sorted(wanted)
            need = sum(self.size[k] for k, _ in missing)
        self._reserve(self.used + need)
        for k in {k for k, _ in missing}:
            self._make(k, [local for share, local in missing if share == k])
        return np.array([self.base.get(key, -1) for key in keys])

    def _reserve(self, room: int) -> None:
        if room > self.store.shape[0]:
            larger = ti.ndarray(ti.f32, min(max(room, 2 * self.store.shape[0]), MOST_COLUMNS))
            values = np.zeros(larger.shape[0], np.float32)
            values[: self.used] = self.store.to_numpy()[: self.used]
            larger.from_numpy(values)
            self.store = larger

    def _make(self, k: int, wanted: list[int]) -> None:
        n = self.size[k]
        if self._solvers[k] is None:
            solver = self._factors[k].bind(np.arange(BATCH * n).reshape(BATCH, n))
            self._solvers[k] = solver, ti.ndarray(vec3, BATCH * n), ti.ndarray(ti.i32, 3 * BATCH)
        solver, array, index = self._solvers[k]
        for first in range(0, len(wanted), 3 * BATCH):
            some = wanted[first : first + 3 * BATCH]
            index.from_numpy(np.array(some + [0] * (3 * BATCH - len(some)), np.int32))
            _unit(len(some), n, index, array)
            solver.solve(array, array)
            _keep_columns(len(some), n, self.used, array, self.store)
            for local in some:
                self.base[k, local] = self.used
                self.used += n


class Compliance:
    """The contacts of a step, and how they answer."""

    def __init__(self, columns: Columns, momenta: Momenta, bodies: ElasticBodies):
        n = bodies.n
        self.columns, self.momenta, self.bodies, self.n = columns, momenta, bodies, n
        self.flags = ti.ndarray(ti.i32, n)
        self.Q, self.total = ti.ndarray(vec3, n), ti.ndarray(vec3, n)
        rows = max(momenta.bodies, 1)
        self.T, self.spins, self.extra = (ti.ndarray(ti.f32, (rows, k)) for k in (9, TABLE, 3))
        self.slots, self.fits = np.zeros(0, int), False
        self._row = momenta.row.to_numpy()
        self._body = np.searchsorted(bodies.starts, np.arange(n), side="right")

    def find_contacts(self, particles: Particles) -> bool:
        """Takes over who touches. False if they are too many: then the whole body has to answer."""
        p = particles
        _flag(p.n, p.slot, p.D, self.flags)
        slots = np.flatnonzero(self.flags.to_numpy()[: self.n])
        if not np.array_equal(slots, self.slots):
            self.slots, self.fits = slots, self._condense(slots)
        return self.fits

    def _condense(self, slots: np.ndarray) -> bool:
        free = slots[self.columns.local[slots] >= 0]
        body = self._body[free]
        if not len(free):
            return False
        first, size = np.searchsorted(body, body), np.bincount(body)[body]
        if int(size.sum()) > MOST_ENTRIES or self.columns.work(free) > MOST_WORK:
            return False
        base = self.columns.fetch(free)
        if base is None:
            return False
        self.count = len(free)
        table = np.zeros((self.count, KINDS), np.int64)
        table[:, SLOT], table[:, LOCAL], table[:, BASE] = free, self.columns.local[free], base
        table[:, START], table[:, SIZE], table[:, ROW] = first, size, self._row[free]
        self.contact, self.offset = upload(table, ti.i32), upload(np.cumsum(size) - size, ti.i32)
        rows = np.arange(max(self.momenta.bodies, 1))
        row = self._row[free]
        begin = np.array([np.flatnonzero(row == b)[:1].sum() for b in rows])
        self.extent = upload(np.stack([begin, begin + np.array([(row == b).sum() for b in rows])], axis=1), ti.i32)
        self.matrix, self.J = ti.ndarray(ti.f32, int(size.sum())), ti.ndarray(ti.f32, 3 * self.count)
        _gather_blocks(self.count, self.contact, self.offset, self.columns.store, self.matrix)
        return True

    def begin(self, particles: Particles, find_response: Callable[[], int]) -> None:
        """No impulses yet; and Q, for bodies where they are now."""
        b, momenta = self.bodies, self.momenta
        self.total.fill(0.0)
        self.extra.fill(0.0)
        if momenta.bodies:
            where = (b.place, b.mass, particles.x, momenta.body)
            _levers(self.n, momenta.row, *where, b.force)
            b.correction.fill(0.0)
            find_response()
            self.Q.copy_from(b.correction)
            _second_moments(momenta.bodies, momenta.extent, *where, self.Q, self.T)

    def answer(self, particles: Particles, a: ti.Ndarray, turned: bool) -> None:
        """Replaces accelerations of those who touch by what they do in their bodies."""
        p, b, momenta = particles, self.bodies, self.momenta
        _take(self.count, self.contact, b.place, b.mass, p.inverse_density, a, self.total, self.J)
        if momenta.bodies:
            _turn_bodies(momenta.bodies, self.count, self.contact, self.extent, b.place, p.x, p.V, int(turned),
                         p.couple, momenta.body, self.Q, self.T, self.J, self.spins, self.extra,
                         momenta.motion)  # fmt: skip
        _answer(self.count, self.contact, self.offset, self.matrix, b.place, p.inverse_density, p.x, momenta.body,
                self.Q, self.J, self.spins, momenta.motion, a)  # fmt: skip

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
