"""Who touches whom: from poses of bodies to contacts, in two kernels.

Broad phase: bounds of all bodies are swept along one axis. Narrow phase: the pairs whose bounds overlap, each by
itself: boxes by their faces (`boxes.py`), whatever else by features and distances (`surfaces.py`). What a pair finds is
reduced to a few contacts (`candidates.py`), in rows of its own, so that the result does not depend on threads.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import taichi as ti

from pliant.core import backend
from pliant.core.backend import Ints, IntTable, Reals, RealTable, desk_of, mat3, task, turns, vec3
from pliant.core.speedups import long
from pliant.solvers.rigid import candidates as c
from pliant.solvers.rigid.bodies import Bodies, Contacts
from pliant.solvers.rigid.boxes import box_contacts
from pliant.solvers.rigid.distances import FIRST, KIND, PAGE, PARTS, PLANE, SIZES, UNBOUNDED, three
from pliant.solvers.rigid.features import BEGIN, COLUMNS, GROUP_COLUMNS, STOP
from pliant.solvers.rigid.forms import Form, PlacedForm
from pliant.solvers.rigid.overlaps import push_apart
from pliant.solvers.rigid.surfaces import CODES, FEATURES, search

A, B, PART, BOXES = range(4)  # columns of pairs
CELL, FORM = 0, 3  # of whole numbers of bodies
PLACE, TURN, OFFSET, MARGIN = 0, 3, 12, 15  # of reals of bodies
FIRST_GROUP, LAST_GROUP, FIRST_PART = range(3)  # of whole numbers of forms
REACH, THICKNESS = range(2)  # of reals of forms
ARM_A, ARM_B, NORMAL, GAP = 0, 3, 6, 9  # of contacts

NEAR = 0.05  # of the lesser thickness of two bodies: contacts that are nearer to each other are one
DEPTH = 0.02  # of the lesser thickness: how far a rim that is flush with another may lie inside
SLOP = 1e-3  # of the lesser thickness: how far a corner may overhang a face that it stands on; what is no better
ROUNDING = 1e-5  # of the largest coordinate, by which bounds are widened: more than single precision loses
FEATURES_EACH = 8  # which take about as long as a pair of boxes
CELLS = 2.0**30  # of a whole number of 32 bits, whose differences must not run over
MOST_PAIRS = 4  # for each body, at first


@ti.kernel
def sweep(n: ti.i32, axis: ti.i32, order: Ints, low: RealTable, high: RealTable, free: Ints, most: ti.i32,
          pair: IntTable, found: Ints):  # fmt: skip
    """Pairs of bodies whose bounds overlap and of which one at least is free: each body with those that begin, in
    `order`, before it ends (sweep and prune, Cohen et al. 1995). Those beyond the `most` that fit are only counted."""
    ti.loop_config(serialize=True)
    for _ in range(1):
        count, second, third = 0, (axis + 1) % 3, (axis + 2) % 3
        for k in range(n):
            i = order[k]
            l = k + 1
            while l < n and low[order[l], axis] <= high[i, axis]:
                j = order[l]
                if low[i, second] <= high[j, second] and low[j, second] <= high[i, second]:
                    if low[i, third] <= high[j, third] and low[j, third] <= high[i, third] and free[i] + free[j] > 0:
                        if count < most:
                            pair[count, 0], pair[count, 1] = ti.min(i, j), ti.max(i, j)
                        count += 1
                l += 1
        found[0] = count


@ti.func
def rotation_of(body: ti.i32, pose: ti.template()) -> mat3:
    return mat3([[pose[body, TURN + 3 * i + j] for j in range(3)] for i in range(3)])


@ti.func
def _against(desk: ti.i32, found: ti.i32, own: ti.i32, other: ti.i32, part: ti.i32, first_key: ti.i32, X: mat3, Y: mat3,
             x: vec3, y: vec3, sign: ti.f32, margin: ti.f32, thin: ti.f32, form: ti.template(), groups: ti.template(),
             features: ti.template(), parts: ti.template(), grid: ti.template(), real: ti.template(),
             whole: ti.template()) -> ti.i32:  # fmt: skip
    """Features of form `own`, at x and turned by X, against a part of form `other`, at y and turned by Y. The normal
    points out of the other; `sign` makes it that from a to b."""
    Q, shift, row = Y.transpose() @ X, Y.transpose() @ (x - y), form[other, FIRST_PART] + part
    count = found
    if form[own, FIRST_GROUP] < form[own, LAST_GROUP]:  # containers have no features, and others not as many parts
        count = search(desk, found, form[own, FIRST_GROUP], form[own, LAST_GROUP], Q, shift, row, first_key, Y, y, sign,
                       margin, NEAR * thin, DEPTH * thin, groups, features, parts, grid, real, whole)  # fmt: skip
    return count


@long
@ti.kernel
def find_contacts(pairs: ti.i32, pair: IntTable, body: IntTable, pose: RealTable, unit: ti.f32, form: IntTable,
                  size: RealTable, groups: RealTable, features: RealTable, parts: RealTable, grid: Reals,
                  real: RealTable, whole: IntTable, many: Ints, key: Ints, contact: RealTable):  # fmt: skip
    """Contacts of each pair, sorted by key, in rows that belong to it."""
    for turn in range(turns(pairs)):
        p = task(turn)
        if p < pairs:
            desk, a, b = desk_of(turn, p), pair[p, A], pair[p, B]
            f, g = body[a, FORM], body[b, FORM]
            Ra, Rb, between = rotation_of(a, pose), rotation_of(b, pose), three(pose, b, PLACE) - three(pose, a, PLACE)
            for k in ti.static(range(3)):
                between[k] += unit * ti.cast(body[b, CELL + k] - body[a, CELL + k], ti.f32)
            margin, thin = pose[a, MARGIN] + pose[b, MARGIN], ti.min(size[f, THICKNESS], size[g, THICKNESS])
            count, apart = 0, -UNBOUNDED
            if pair[p, BOXES] == 1:
                half, other = three(parts, form[f, FIRST_PART], SIZES), three(parts, form[g, FIRST_PART], SIZES)
                count, apart = box_contacts(desk, Ra, Rb, between, half, other, margin, SLOP * thin, real, whole)
            if count == 0 and apart < margin:
                real[desk, c.MISSED] = 0.0
                for side in range(2):
                    own, opposite, X, Y, x, y, sign = f, g, Ra, Rb, vec3(0.0), between, -1.0
                    if side == 1:
                        own, opposite, X, Y, x, y, sign = g, f, Rb, Ra, between, vec3(0.0), 1.0
                    first_key = CODES * FEATURES * (side + 2 * pair[p, PART])
                    count = _against(desk, count, own, opposite, pair[p, PART], first_key, X, Y, x, y, sign, margin,
                                     thin, form, groups, features, parts, grid, real, whole)  # fmt: skip
                missed = real[desk, c.MISSED]
                if missed < -DEPTH * thin:
                    count = push_apart(desk, count, missed, form[f, FIRST_PART], form[g, FIRST_PART], Ra, Rb, between,
                                       parts, real, whole)  # fmt: skip
            kept = 0
            if count > 0:
                kept = c.reduce(desk, count, NEAR * thin, size[f, REACH], margin, c.TIE * NEAR * thin, real, whole)
            last, written = -1, 0
            to_a, to_b = three(pose, a, OFFSET), three(pose, b, OFFSET) - between
            for _ in range(kept):
                chosen = c.next_chosen(desk, count, last, whole)
                if chosen >= 0:
                    row = c.KEPT * p + written
                    last, first = whole[desk, chosen], chosen * c.EACH
                    key[row], contact[row, GAP] = last, real[desk, first + c.GAP]
                    for i in ti.static(range(3)):
                        at = real[desk, first + c.POINT + i]
                        contact[row, ARM_A + i], contact[row, ARM_B + i] = at + to_a[i], at + to_b[i]
                        contact[row, NORMAL + i] = real[desk, first + c.NORMAL + i]
                    written += 1
            many[p] = written


class Detection:
    """Contacts of bodies with these forms, one a body."""

    def __init__(self, forms: Sequence[PlacedForm]):
        self.n = len(forms)
        self.turn = np.array([p.rotation for p in forms]).reshape(-1, 3, 3)
        self.offset: np.ndarray = np.array([p.offset for p in forms]).reshape(-1, 3)
        kinds = list(dict.fromkeys(p.form for p in forms))
        number = {id(form): k for k, form in enumerate(kinds)}
        self.form = np.array([number[id(p.form)] for p in forms], np.int32)
        self.low, self.high = (np.array([getattr(p.form, name) for p in forms], float).reshape(-1, 3)
                               for name in ("low", "high"))  # fmt: skip
        self.middle, self.half = 0.5 * (self.low + self.high), 0.5 * (self.high - self.low)
        self.unbounded = np.flatnonzero((self.half >= UNBOUNDED).any(axis=1))
        self.bounded = np.setdiff1d(np.arange(self.n), self.unbounded)
        kind_of = np.array([p.form.parts[0, KIND] if len(p.form.parts) == 1 else -1 for p in forms])
        self.planes = np.flatnonzero(kind_of == PLANE)
        normals = [forms[k].form.parts[0, SIZES : SIZES + 3] for k in self.planes.tolist()]
        self.normal = np.array(normals).reshape(-1, 3).astype(float)
        self.parts_of = np.array([len(p.form.parts) for p in forms], np.int32)
        self.is_box = np.array([p.form.is_box for p in forms], bool)
        self.weight = np.array([len(p.form.features) for p in forms]) / FEATURES_EACH
        sizes = np.linalg.norm(self.half[self.bounded], axis=1)
        # Places are kept as whole multiples of a power of two near the size of bodies and what is left, whose
        # differences are exact to single precision of that size, wherever the scene lies.
        self.unit = float(2.0 ** np.ceil(np.log2(np.median(sizes)))) if len(sizes) else 1.0
        self._upload(kinds)
        self.pair: np.ndarray | None = None
        self.pairs: Any = None
        self.body: Any = None
        self.pose: Any = None
        self.contact: Any = None

    def _upload(self, kinds: list[Form]) -> None:
        """Tables of all forms."""
        features, parts, grid = np.zeros((0, COLUMNS)), np.zeros((0, PARTS)), np.zeros(0)
        form, size = np.zeros((len(kinds), 3), np.int32), np.zeros((len(kinds), 2))
        groups = np.zeros((0, GROUP_COLUMNS))
        for k, kind in enumerate(kinds):
            rows, some = kind.parts.copy(), kind.groups.copy()
            rows[:, FIRST], rows[:, FIRST + 1] = divmod(len(grid), PAGE)
            some[:, [BEGIN, STOP]] += len(features)
            form[k] = len(groups), len(groups) + len(some), len(parts)
            size[k, REACH] = min(float(np.linalg.norm(0.5 * (kind.high - kind.low))), UNBOUNDED)
            size[k, THICKNESS] = kind.thickness
            features, parts = np.concatenate([features, kind.features]), np.concatenate([parts, rows])
            groups = np.concatenate([groups, some])
            grid = np.concatenate([grid, kind.grid]) if kind.grid is not None else grid
        reals = (size, groups, features, parts, grid)
        self.tables = [backend.upload(form, ti.i32), *(backend.upload(x, ti.f32) for x in reals)]

    def contacts(self, bodies: Bodies, margin: float | np.ndarray, ignored_pairs: Iterable[tuple[int, int]] = ()
                 ) -> Contacts:  # fmt: skip
        """Contacts with a gap below `margin` [m], of all pairs but those that are ignored (in any order) and those of
        two prescribed bodies; of a pair below the sum of the margins of both, where each body has its own.

        At most eight of a pair, or of a body and each side of a container. Friction and restitution are zero.
        """
        margins = np.broadcast_to(np.asarray(margin, float), self.n) * (0.5 if np.ndim(margin) == 0 else 1.0)
        place, rotation, offset = self._poses(bodies)
        pairs = self._near(place, rotation, bodies.inverse_mass, margins, ignored_pairs)
        return self._narrow(pairs, place, rotation, offset, margins)

    def _poses(self, bodies: Bodies) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Origins of forms, relative to about the middle of the scene, their rotations, and where they are from the
        centres of their bodies."""
        center = bodies.center - bodies.center[self.bounded[0] if len(self.bounded) else 0]
        offset = np.einsum("nij,nj->ni", bodies.rotation, self.offset)
        place, rotation = center + offset, bodies.rotation @ self.turn
        if len(self.planes) and len(self.bounded):  # an infinite plane is taken to where the bodies are: nothing is far
            normal = np.einsum("nij,nj->ni", rotation[self.planes], self.normal)
            away = place[self.bounded].mean(axis=0) - place[self.planes]
            away -= np.einsum("ni,ni->n", away, normal)[:, None] * normal
            place[self.planes] += away
            offset[self.planes] += away
        return place, rotation, offset

    def _near(self, place: np.ndarray, rotation: np.ndarray, inverse_mass: np.ndarray, margins: np.ndarray,
              ignored_pairs: Iterable[tuple[int, int]]) -> np.ndarray:  # fmt: skip
        """(m, 4) pairs whose bounds overlap, sorted, each with one part."""
        middle = place + np.einsum("nij,nj->ni", rotation, self.middle)
        half = np.einsum("nij,nj->ni", np.abs(rotation), self.half) + margins[:, None]
        if len(self.unbounded):
            middle[self.unbounded], half[self.unbounded] = 0.0, UNBOUNDED
        some = middle[self.bounded]
        half += ROUNDING * (np.abs(some).max(initial=0.0) + half[self.bounded].max(initial=0.0))
        low, high = (middle - half).astype(np.float32), (middle + half).astype(np.float32)
        axis = int(np.argmax(np.ptp(some, axis=0))) if len(some) else 0
        order = np.argsort(low[:, axis], kind="stable").astype(np.int32)
        pair = self._swept(axis, order, low, high, (inverse_mass > 0.0).astype(np.int32))
        code = np.sort(pair[:, A].astype(np.int64) * self.n + pair[:, B])
        ignored = [min(p) * self.n + max(p) for p in ignored_pairs]
        if ignored:
            code = code[~np.isin(code, ignored)]
        a, b = np.divmod(code, self.n)
        many = np.maximum(self.parts_of[a], self.parts_of[b])
        rows, first = np.repeat(np.arange(len(code)), many), np.cumsum(many) - many
        part = np.arange(len(rows)) - first[rows]
        boxes = self.is_box[a] & self.is_box[b]
        return np.stack([a[rows], b[rows], part, boxes[rows]], axis=1).astype(np.int32)

    def _swept(self, axis: int, order: np.ndarray, low: np.ndarray, high: np.ndarray, free: np.ndarray) -> np.ndarray:
        """Pairs in the order in which they are found."""
        if self.pair is None:
            self.pair = np.empty((max(MOST_PAIRS * self.n, 64), 2), np.int32)
        found = np.zeros(1, np.int32)
        while True:
            sweep(self.n, axis, order, low, high, free, len(self.pair), self.pair, found)
            if found[0] <= len(self.pair):
                return self.pair[: found[0]]
            self.pair = np.empty((2 * found[0], 2), np.int32)

    def _narrow(self, pair: np.ndarray, place: np.ndarray, rotation: np.ndarray, offset: np.ndarray,
                margins: np.ndarray) -> Contacts:  # fmt: skip
        """Contacts of these pairs."""
        m = len(pair)
        if not m:
            return _packed(pair, np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros((0, GAP + 1), np.float32))
        cell = np.clip(np.floor(place / self.unit), -CELLS, CELLS)
        rest = place - self.unit * cell
        self.body = backend.reupload(self.body, np.column_stack([cell, self.form]).astype(np.int32), ti.i32)
        pose = np.column_stack([rest, rotation.reshape(-1, 9), offset, margins])
        self.pose = backend.reupload(self.pose, pose.astype(np.float32), ti.f32)
        self.pairs = backend.reupload(self.pairs, pair, ti.i32)
        if self.contact is None or self.contact.shape[0] < c.KEPT * m:
            room = 2 * m
            self.contact, self.key = ti.ndarray(ti.f32, (c.KEPT * room, GAP + 1)), ti.ndarray(ti.i32, c.KEPT * room)
            self.many, desks = ti.ndarray(ti.i32, room), backend.desks(room)
            self.real, self.whole = ti.ndarray(ti.f32, (desks, c.REALS)), ti.ndarray(ti.i32, (desks, c.INTS))
        work = np.where(pair[:, BOXES] == 1, 1.0, 1.0 + self.weight[pair[:, A]] + self.weight[pair[:, B]]).sum()
        with backend.threads_for(int(work)):
            find_contacts(m, self.pairs, self.body, self.pose, self.unit, *self.tables, self.real, self.whole,
                           self.many, self.key, self.contact)  # fmt: skip
        many = _host(self.many)[:m]
        rows = np.repeat(c.KEPT * np.arange(m) - (np.cumsum(many) - many), many) + np.arange(many.sum())
        return _packed(pair, many, _host(self.key)[rows], _host(self.contact)[rows])


def _host(array: ti.Ndarray) -> np.ndarray:
    memory = backend.host_view(array)
    return array.to_numpy() if memory is None else memory


def _packed(pair: np.ndarray, many: np.ndarray, key: np.ndarray, contact: np.ndarray) -> Contacts:
    """Arrays of contacts from rows of them."""
    nothing = np.zeros(len(key), np.float32)
    arm_a, arm_b, normal = (np.ascontiguousarray(contact[:, k : k + 3]) for k in (ARM_A, ARM_B, NORMAL))
    gap = np.ascontiguousarray(contact[:, GAP])
    return Contacts(
        a=np.repeat(pair[:, A], many), b=np.repeat(pair[:, B], many), key=key.astype(np.int64),
        arm_a=arm_a, arm_b=arm_b, normal=normal, gap=gap, friction=nothing, restitution=nothing.copy(),
    )  # fmt: skip
