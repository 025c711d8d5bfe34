"""Rigid bodies in a step: contacts with friction and restitution, and joints, in small substeps.

A step is cut into substeps h (Macklin et al. 2019, "Small steps in physics simulation"), and each of these in two
halves, as RATTLE has it (Andersen 1983; Hairer, Lubich and Wanner 2006, VII.1.4):

    v += f h / 2,  impulses until gaps and joints are right at the end of the substep,  x += h v,
    v += f h / 2,  impulses until velocities are right there (bodies that touch do not approach).

So it is of second order, and what moves bodies out of overlaps leaves no velocity behind (Catto's "soft step" of Box2D
3 has the same two halves). Contacts are solved by Gauss-Seidel (`touching`), mostly one sweep in each half, from the
impulses of the last substep; joints directly (`joint_rows`). Everything is in one thread and in a fixed order.

Bodies that nothing touches are not here but in `motion`. All of this is single precision relative to the start of the
step; poses are double precision on the host.
"""

import dataclasses
import math
from typing import Any

import numpy as np
import taichi as ti

from pliant.core.backend import IntTable, Reals, RealTable, threads_for
from pliant.core.speedups import long
from pliant.solvers.rigid import layout as body_columns
from pliant.solvers.rigid import touching
from pliant.solvers.rigid.bodies import Bodies, Contacts
from pliant.solvers.rigid.joint_rows import end_joints, solve_joints, start_joints
from pliant.solvers.rigid.joints import JointRows, Joints
from pliant.solvers.rigid.layout import BODY, IM, J, kick, move, prepare_spin
from pliant.solvers.rigid.motion import orthonormal, principal, rotate_freely
from pliant.solvers.rigid.touching import (
    CHAIN,
    CONTACT,
    IDENTITY,
    MEMORY,
    TOTAL,
    begin_contact,
    end_contact,
    find,
    impacts,
    move_contact,
    prepare_contact,
    recall,  # fmt: skip
    remember,
    solve_contact,
    undo,
)

# [s] at most: 8 substeps in 5 ms. Ten boxes in a pile carry their weights to 1e-4 with 2 to 8 of them (measured), but
# impacts are right to v h, and pendulums to h^2; with many contacts, 4 in 5 ms, which halves the time.
SUBSTEP, LONG_SUBSTEP, MANY_CONTACTS = 6.5e-4, 1.3e-3, 1000
LEAST_SUBSTEPS = 2  # of a step: a single one has no impulses to begin with that are of its own length
SPIN_ANGLE = 0.2  # [rad] that a body turns in a substep, at most...
MOST_SUBSTEPS = 32  # ...but not more of them than these
# One sweep is enough at rest, where the impulses of the last substep are right. An impact needs more: while a sweep
# changes a velocity by more than a share of what acts in a substep, or some round-off [m/s], another follows, as far as
# that takes no longer than a sweep through so many contacts (2 ms).
CALM, LEAST_CALM = 0.1, 1e-6
MOST_SWEEPS, SWEEPS = 10, 20_000
# [s] over which remembered forces are a mean: where steps are shorter, the force of one is mostly noise, and would be a
# blow in a longer step that follows.
MEMORY_TIME = 2e-3
HEAVIEST = 300.0  # times as heavy as what it lies on: so much is carried without a dent (1,000 times sinks in by 1 %)
CLOSED = 0.02  # of the arm of a contact: a gap that counts as none
PILE = 4  # bodies that lie on each other, through which this is handed on
CAPACITY = 64  # rows of a table at first: tables that keep their size are launched faster


@long
@ti.kernel
def _step(n: ti.i32, m: ti.i32, known_contacts: ti.i32, substeps: ti.i32, h: ti.f32, bouncy: ti.i32, sweeps: ti.i32,
          calm: ti.f32, fresh: ti.f32, body: RealTable, pair: IntTable, identity: IntTable, contact: RealTable,
          known: IntTable, memory: RealTable, later: RealTable, jointed: ti.template(), joint_count: ti.i32,
          rows: ti.i32, joint_place: IntTable, joint: RealTable, row_place: IntTable, row: RealTable,
          skyline: Reals):  # fmt: skip
    """All of it. `later` gets what the next step remembers of the contacts, `memory` is what this one does."""
    ti.loop_config(serialize=True)
    for once in range(ti.min(m, 1)):
        k = once
        for c in range(m):
            prepare_contact(c, pair[c, 0], pair[c, 1], h, contact, body)
            k = find(c, k, known_contacts, identity, known)
            recall(c, k, known_contacts, h, identity, known, contact, memory)
    ti.loop_config(serialize=True)
    for half in range(2 * substeps):
        moving = 1 - half % 2
        for i in range(n):
            if body[i, IM] > 0.0:
                kick(body, i, 0.5 / substeps)
                if moving == 1:
                    prepare_spin(body, i, h)
        for c in range(m):
            begin_contact(c, pair[c, 0], pair[c, 1], moving, contact, body)
        if ti.static(jointed):
            start_joints(joint_count, rows, moving, h, joint_place, joint, row_place, row, body)
        collided = moving * bouncy
        for _ in range(CHAIN):
            if collided > 0:
                collided = impacts(m, h, 0.5 / substeps, pair, contact, body)
        for turn in range(2):
            if ti.static(jointed):
                if turn == 0 or m > 0:
                    solve_joints(rows, turn, row_place, row, skyline, body)
            if turn == 0:
                change = 2.0 * calm
                for sweep in range(sweeps):
                    if change > calm:
                        change = 0.0
                        for e in range(m):
                            # there and back, so that no direction is favoured
                            c = ti.select((moving + sweep) % 2 == 1, e, m - 1 - e)
                            change = ti.max(change, solve_contact(c, pair[c, 0], pair[c, 1], moving, h, contact, body))
        if ti.static(jointed):
            end_joints(joint_count, rows, moving, h, joint_place, joint, row_place, row, body)
        if moving == 1:  # in one place: Taichi 1.7.4 joins conditions that are the same, and fails
            for c in range(m):
                undo(c, pair[c, 0], pair[c, 1], h, contact, body)
            for c in range(m):
                move_contact(c, pair[c, 0], pair[c, 1], h, contact, body)
            for i in range(n):
                move(body, i, h)
        else:
            for c in range(m):
                end_contact(c, contact)
    ti.loop_config(serialize=True)
    for c in range(m):
        remember(c, h, fresh, contact, later)


@dataclasses.dataclass
class Forces:
    """What contacts and joints did in a step, as means over it."""

    force: np.ndarray  # (n, 3) float64 [N] on each body
    torque: np.ndarray  # (n, 3) float64 [N m] about its centre
    contact: np.ndarray  # (m, 3) float64 [N] on body b of each contact; a gets the opposite
    joint_force: np.ndarray  # (j, 3) float64 [N] on body b of each joint, at its anchor
    joint_torque: np.ndarray  # (j, 3) float64 [N m] on body b
    drive: np.ndarray  # (j,) float64 [N m or N] of motors, by which b is turned or pushed against a


def _table(old: np.ndarray | None, rows: int, columns: int, kind: type = np.float32) -> np.ndarray:
    """The table from the last step, or a larger one."""
    if old is None or len(old) < rows:
        old = np.zeros((max(2 * rows, CAPACITY), columns), kind)
    return old


def symmetric(A: np.ndarray) -> np.ndarray:
    """Matrices (n, 3, 3) as rows of six: diagonal, then yz, zx, xy."""
    return A.reshape(-1, 9)[:, (0, 4, 8, 5, 2, 1)]


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of rows; `np.cross` takes 70 us for a few of them."""
    (x, y, z), (u, v, w) = a.T, b.T
    return np.array([y * w - z * v, z * u - x * w, x * v - y * u]).T


def rotation_of(q: np.ndarray) -> np.ndarray:
    """Rotations (n, 3, 3) of quaternions w, x, y, z."""
    w, x, y, z = (q / np.linalg.norm(q, axis=1, keepdims=True)).T
    R = np.array([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
                  2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                  2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)])  # fmt: skip
    return R.T.reshape(-1, 3, 3)


def rotation_by(turn: np.ndarray) -> np.ndarray:
    """Rotations about these vectors (n, 3), by their lengths [rad]."""
    angle = np.linalg.norm(turn, axis=1, keepdims=True)
    return rotation_of(np.hstack((np.cos(0.5 * angle), 0.5 * np.sinc(0.5 * angle / np.pi) * turn)))


def squeezed(bodies: Bodies, contacts: Contacts) -> np.ndarray:
    """(n,) how many times heavier than they are bodies count in a step. Those that lie between others of which one has
    more than `HEAVIEST` times their mass count as that share of it: a sweep hands on no more than the momentum of the
    lighter of two bodies, and a weight on a feather would take a million of them. The forces stay those of balance."""
    mass = np.where(bodies.inverse_mass > 0, 1.0 / np.where(bodies.inverse_mass > 0, bodies.inverse_mass, 1.0), 0.0)
    counted, a, b = mass.copy(), contacts.a, contacts.b
    uneven = (mass[a] > HEAVIEST * mass[b]) | (mass[b] > HEAVIEST * mass[a])
    if (uneven & (mass[a] > 0) & (mass[b] > 0)).any():
        arm = np.minimum(np.linalg.norm(contacts.arm_a, axis=1), np.linalg.norm(contacts.arm_b, axis=1))
        pairs = np.unique(np.stack([a, b], axis=1)[contacts.gap <= CLOSED * arm], axis=0)
        between = np.bincount(pairs.ravel(), minlength=len(mass)) > 1
        ends = np.concatenate([pairs, pairs[:, ::-1]])
        ends = ends[between[ends[:, 0]] & (mass[ends[:, 0]] > 0)]
        for _ in range(PILE):
            np.maximum.at(counted, ends[:, 0], counted[ends[:, 1]] / HEAVIEST)
    return np.where(mass > 0, counted / np.where(mass > 0, mass, 1.0), 1.0)


class RigidSolver:
    """Moves rigid bodies through a step. What it remembers from one step to the next are the impulses and slips of
    contacts and the turns of joints: `save` and `restore` them for an exact restart."""

    def __init__(self) -> None:
        self._inertia: np.ndarray | None = None
        self._body: Any = None  # tables: as long as the largest step so far has needed
        self._contact: Any = None
        self._later: Any = None
        self._pair: Any = None
        self._identity: Any = None
        self._known, self._memory = np.zeros((CAPACITY, IDENTITY), np.int32), np.zeros((CAPACITY, MEMORY), np.float32)
        self._known_contacts = 0
        self.rows = JointRows()

    def save(self) -> dict[str, np.ndarray]:
        """All that the next step depends on beside its arguments."""
        k = self._known_contacts
        return {"known": self._known[:k].copy(), "memory": self._memory[:k].copy(), "turned": self.rows.turned.copy()}

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        self._known_contacts = k = len(saved["known"])
        self._known, self._memory = _table(None, k, IDENTITY, np.int32), _table(None, k, MEMORY)
        self._known[:k], self._memory[:k] = saved["known"], saved["memory"]
        self.rows.turned = np.array(saved["turned"], float)

    def step(self, bodies: Bodies, contacts: Contacts, joints: Joints | None, dt: float, dv: np.ndarray,
             dw: np.ndarray, steady: np.ndarray | None = None) -> Forces:  # fmt: skip
        """Moves the bodies, in place, and tells what acted between them.

        `dv`, `dw` (n, 3) are what all else has added to their velocities in this step. Of that, `steady` (n, 6) acts
        all through the step: gravity, which is exact where nothing touches, or what contacts and joints are about to
        take out again. The rest acts at its start, as in the symplectic Euler method, for an oscillator would gain
        energy otherwise. All of both is taken for steady if that is not given.
        """
        self._look(bodies)
        if steady is not None:
            bodies.velocity += dv - steady[:, :3]
            bodies.spin += dw - steady[:, 3:]
            dv, dw = steady[:, :3], steady[:, 3:]
        used = np.zeros(len(bodies.center), bool)
        used[contacts.a] = used[contacts.b] = True
        if joints is not None and len(joints):
            used[joints.a[joints.a >= 0]] = used[joints.b[joints.b >= 0]] = True
        active = np.flatnonzero(used)
        m = len(contacts.a)
        if not len(active):
            self._known_contacts = 0
        place = np.full(len(used) + 1, len(active), np.int32)  # the world is the last row: it is no body's
        place[active] = np.arange(len(active), dtype=np.int32)
        start = (bodies.center.copy(), bodies.rotation.copy()) if joints is not None and len(joints) else None
        if len(active):
            substeps = self._substeps(bodies, active, m, dt)
            self._fill_bodies(bodies, active, dv, dw, squeezed(bodies, contacts))
            self._fill_contacts(contacts, place)
            self._run(bodies, contacts, joints, active, place, m, substeps, dt)
        rest = ~used
        if rest.any():
            self._fly(bodies, np.flatnonzero(rest), dt, dv, dw)
        if len(active):
            self._take(bodies, active, dt)
        if start is not None and joints is not None:
            self.rows.take_positions(joints, bodies)
        return self._forces(bodies, contacts, joints, dt)

    def _look(self, bodies: Bodies) -> None:
        """What follows from the inertia, which seldom changes."""
        if self._inertia is not None and np.array_equal(self._inertia, bodies.inertia):
            return
        self._inertia = bodies.inertia.copy()
        self._moments, self._axes = principal(self._inertia)
        free = bodies.inverse_mass > 0
        inverse = np.where(free[:, None], 1 / self._moments, 0.0)
        self._inverse = np.einsum("nij,nj,nkj->nik", self._axes, inverse, self._axes)
        self._slimness = np.where(free, inverse.max(axis=1) / np.where(free, bodies.inverse_mass, 1.0), 0.0)

    def _substeps(self, bodies: Bodies, active: np.ndarray, m: int, dt: float) -> int:
        """How many: by time, and by how far free bodies turn."""
        longest = SUBSTEP if m <= MANY_CONTACTS else LONG_SUBSTEP
        free = active[bodies.inverse_mass[active] > 0]
        turn = dt * float(np.sqrt(np.square(bodies.spin[free]).sum(axis=1).max(initial=0.0)))
        by_turn = min(math.ceil(turn / SPIN_ANGLE), MOST_SUBSTEPS)
        return max(math.ceil(dt / longest - 1e-6), by_turn, LEAST_SUBSTEPS)

    def _fill_bodies(self, bodies: Bodies, active: np.ndarray, dv: np.ndarray, dw: np.ndarray,
                     heavier: np.ndarray) -> None:  # fmt: skip
        n, c = len(active), body_columns
        self._body = table = _table(self._body, n + 1, BODY)
        table[: n + 1] = 0.0
        R, free, more = bodies.rotation[active], (bodies.inverse_mass[active] > 0)[:, None], heavier[active, None]
        inertia = more[..., None] * (R @ bodies.inertia[active] @ np.swapaxes(R, 1, 2))
        t = table[:n]
        t[:, c.V : c.V + 3], t[:, c.W : c.W + 3] = bodies.velocity[active], bodies.spin[active]
        t[:, IM] = bodies.inverse_mass[active] / more[:, 0]
        t[:, c.SLIM] = self._slimness[active]
        t[:, c.J0 : c.J0 + 6] = t[:, J : J + 6] = symmetric(R @ self._inverse[active] @ np.swapaxes(R, 1, 2)) / more
        t[:, c.I0 : c.I0 + 6] = symmetric(inertia)
        table[: n + 1, c.Q] = 1.0
        t[:, c.KICK : c.KICK + 3] = np.where(free, dv[active], 0.0)
        t[:, c.TWIST : c.TWIST + 3] = np.where(free, np.einsum("nij,nj->ni", inertia, dw[active]), 0.0)

    def _fill_contacts(self, contacts: Contacts, place: np.ndarray) -> None:
        m, c = len(contacts.a), touching
        self._contact = t = _table(self._contact, m, CONTACT)
        self._pair = _table(self._pair, m, 2, np.int32)
        self._identity = _table(self._identity, m, IDENTITY, np.int32)
        self._later = _table(self._later, m, MEMORY)
        if not m:
            return
        self._pair[:m, 0], self._pair[:m, 1] = place[contacts.a], place[contacts.b]
        halves = np.ascontiguousarray(contacts.key, "<i8").view(np.int32).reshape(-1, 2)
        ident = self._identity[:m]
        ident[:, 0], ident[:, 1], ident[:, 2] = contacts.a, contacts.b, halves[:, 1]
        ident[:, 3] = halves[:, 0] ^ np.int32(-(2**31))  # the order of what has no sign
        t[:m, c.N : c.N + 3], t[:m, c.ARM_A : c.ARM_A + 3] = contacts.normal, contacts.arm_a
        t[:m, c.ARM_B : c.ARM_B + 3], t[:m, c.GAP] = contacts.arm_b, contacts.gap
        t[:m, c.MU], t[:m, c.BOUNCE] = contacts.friction, contacts.restitution

    def _run(self, bodies: Bodies, contacts: Contacts, joints: Joints | None, active: np.ndarray, place: np.ndarray,
             m: int, substeps: int, dt: float) -> None:  # fmt: skip
        h, rows = dt / substeps, self.rows
        jointed = joints is not None and len(joints) > 0
        if joints is not None and jointed:
            rows.fill(joints, bodies, place, h)
        bouncy = int(m > 0 and bool((contacts.restitution > 0).any()))
        sweeps = min(max(SWEEPS // max(m, 1), 1), MOST_SWEEPS)
        kick = np.abs(self._body[: len(active), body_columns.KICK : body_columns.KICK + 3]).max(initial=0.0)
        calm, fresh = max(CALM * float(kick) / substeps, LEAST_CALM), min(dt / MEMORY_TIME, 1.0)
        with threads_for(0):  # in the calling thread: there is nothing to share
            _step(len(active), m, self._known_contacts, substeps, h, bouncy, sweeps, calm, fresh, self._body,
                  self._pair, self._identity, self._contact, self._known, self._memory, self._later, jointed,
                  rows.count, rows.rows, rows.joint_place, rows.joint, rows.row_place, rows.row,
                  rows.skyline)  # fmt: skip
        self._known, self._identity = self._identity, self._known
        self._memory, self._later = self._later, self._memory
        self._known_contacts = m

    def _fly(self, bodies: Bodies, free: np.ndarray, dt: float, dv: np.ndarray, dw: np.ndarray) -> None:
        """What nothing touches, and what moves as it is told."""
        told = free[bodies.inverse_mass[free] == 0]
        free = free[bodies.inverse_mass[free] > 0]
        if len(told):
            bodies.center[told] += dt * bodies.velocity[told]
            turning = told[(bodies.spin[told] != 0).any(axis=1)]
            if len(turning):
                R = rotation_by(dt * bodies.spin[turning]) @ bodies.rotation[turning]
                bodies.rotation[turning] = orthonormal(R)
        if len(free):
            bodies.center[free] += dt * (bodies.velocity[free] + 0.5 * dv[free])
            bodies.velocity[free] += dv[free]
            turning = free[((bodies.spin[free] != 0) | (dw[free] != 0)).any(axis=1)]
            if len(turning):
                bodies.rotation[turning], bodies.spin[turning] = rotate_freely(
                    bodies.rotation[turning], bodies.spin[turning], self._moments[turning], self._axes[turning], dt,
                    dw[turning])  # fmt: skip

    def _take(self, bodies: Bodies, active: np.ndarray, dt: float) -> None:
        """Poses and velocities out of the table; what is told how to move does so exactly."""
        told = active[bodies.inverse_mass[active] == 0]
        rows = np.flatnonzero(bodies.inverse_mass[active] > 0)
        free, t, c = active[rows], self._body, body_columns
        if len(told):
            none = np.zeros((0, 3))
            self._fly(bodies, told, dt, none, none)
        bodies.center[free] += t[rows, c.X : c.X + 3]
        bodies.rotation[free] = orthonormal(rotation_of(t[rows, c.Q : c.Q + 4].astype(float)) @ bodies.rotation[free])
        bodies.velocity[free], bodies.spin[free] = t[rows, c.V : c.V + 3], t[rows, c.W : c.W + 3]

    def _forces(self, bodies: Bodies, contacts: Contacts, joints: Joints | None, dt: float) -> Forces:
        n, m = len(bodies.center), len(contacts.a)
        contact = self._contact[:m, TOTAL : TOTAL + 3].astype(float) / dt if m else np.zeros((0, 3))
        total = np.zeros((n, 6))
        if m:
            for body, arm, sign in ((contacts.b, contacts.arm_b, 1.0), (contacts.a, contacts.arm_a, -1.0)):
                turn = cross(arm, contact)
                for k in range(3):
                    total[:, k] += sign * np.bincount(body, contact[:, k], n)
                    total[:, 3 + k] += sign * np.bincount(body, turn[:, k], n)
        force, torque, drive = self.rows.forces(joints, dt, total)
        return Forces(total[:, :3], total[:, 3:], contact, force, torque, drive)
