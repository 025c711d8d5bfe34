"""Joints between rigid bodies, or a body and the world: what they are, and their rows for the solver."""

import dataclasses
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from pliant.solvers.rigid import joint_rows as columns
from pliant.solvers.rigid.bodies import Bodies
from pliant.solvers.rigid.joint_rows import (
    BALL,
    DISTANCE,
    FIXED,
    HINGE,
    JOINT,
    JOINT_INTS,
    ROW,
    ROW_INTS,
    SLIDER,
    SPRING,
)

KINDS = {"fixed": FIXED, "ball": BALL, "hinge": HINGE, "slider": SLIDER, "spring": SPRING, "distance": DISTANCE}
_PLACE, _TURN = [(columns.PLACE, k) for k in range(3)], [(columns.TURN, k) for k in range(3)]
# The equations of each kind: roles and axes.
ROLES = {
    FIXED: _PLACE + _TURN,
    BALL: _PLACE,
    HINGE: _PLACE + [(columns.TILT, 1), (columns.TILT, 2)],
    SLIDER: [(columns.SIDE, 1), (columns.SIDE, 2)] + _TURN,
    SPRING: [(columns.SPAN, 0)],
    DISTANCE: [(columns.SPAN, 0)],
}
NO_MOTOR, SPEED, FORCE = 0, 1, 2  # modes of motors
WORLD = -1  # in place of a body


@dataclasses.dataclass
class Joints:
    """Joints, one a row. Bodies and frames of the world (-1) are those of space. The rows of a frame are three axes,
    of which the first is that of a hinge or slider; where both frames agree, a hinge is at angle zero."""

    kind: np.ndarray  # (j,) int32, a value of KINDS
    a: np.ndarray  # (j,) int32 body, or -1
    b: np.ndarray  # (j,) int32 body, or -1
    anchor_a: np.ndarray  # (j, 3) float64 [m] from the centre of a, in its frame
    anchor_b: np.ndarray  # (j, 3) float64 [m] from the centre of b, in its frame
    frame_a: np.ndarray  # (j, 3, 3) float64
    frame_b: np.ndarray  # (j, 3, 3) float64
    low: np.ndarray  # (j,) float64 [rad or m] limits of hinges and sliders, -inf and inf if there are none
    high: np.ndarray  # (j,) float64
    mode: np.ndarray  # (j,) int32 NO_MOTOR, SPEED or FORCE
    target: np.ndarray  # (j,) float64 [rad/s or m/s, N m or N] of b against a
    most: np.ndarray  # (j,) float64 [N m or N] that a motor of the mode SPEED has at most
    stiffness: np.ndarray  # (j,) float64 [N/m] of springs
    damping: np.ndarray  # (j,) float64 [N s/m] of springs
    length: np.ndarray  # (j,) float64 [m] of springs and distances

    def __len__(self) -> int:
        return len(self.kind)


def joint(bodies: Bodies, kind: str, a: int, b: int, at: Any, axis: Any = (1.0, 0.0, 0.0),
          limits: tuple[float, float] = (-np.inf, np.inf), speed: float | None = None, most: float = np.inf,
          force: float | None = None, stiffness: float = 0.0, damping: float = 0.0, length: float | None = None
          ) -> dict[str, Any]:  # fmt: skip
    """A row for `joints`, of bodies as they are now. `at` is a point of the world, or one of each body (2, 3)."""
    points = np.broadcast_to(np.asarray(at, float), (2, 3))
    first = np.asarray(axis, float) / np.linalg.norm(axis)
    second = np.cross(first, np.eye(3)[np.argmin(np.abs(first))])
    second /= np.linalg.norm(second)
    frame = np.array([first, second, np.cross(first, second)])
    row: dict[str, Any] = {"kind": KINDS[kind], "a": a, "b": b, "low": limits[0], "high": limits[1],
                           "mode": SPEED if speed is not None else FORCE if force is not None else NO_MOTOR,
                           "target": speed if speed is not None else force or 0.0, "most": most,
                           "stiffness": stiffness, "damping": damping}  # fmt: skip
    row["length"] = float(np.linalg.norm(points[1] - points[0])) if length is None else length
    for name, body, point in (("a", a, points[0]), ("b", b, points[1])):
        center, R = (np.zeros(3), np.eye(3)) if body == WORLD else (bodies.center[body], bodies.rotation[body])
        row[f"anchor_{name}"], row[f"frame_{name}"] = R.T @ (point - center), frame @ R
    return row


def joints(rows: list[dict[str, Any]]) -> Joints:
    """All of these in arrays."""
    whole = ("kind", "a", "b", "mode")
    shapes = {"anchor_a": (3,), "anchor_b": (3,), "frame_a": (3, 3), "frame_b": (3, 3)}
    names = [field.name for field in dataclasses.fields(Joints)]
    return Joints(**{name: np.array([row[name] for row in rows], np.int32 if name in whole else float)
                     .reshape(len(rows), *shapes.get(name, ())) for name in names})  # fmt: skip


@dataclasses.dataclass
class Places:
    """Joints as they are in space."""

    arm_a: np.ndarray  # (j, 3) [m] from the centre of a to its anchor; for the world, its place
    arm_b: np.ndarray
    frame_a: np.ndarray  # (j, 3, 3), rows are axes
    frame_b: np.ndarray
    apart: np.ndarray  # (j, 3) [m] from the anchor of a to that of b
    position: np.ndarray  # (j,) angle of hinges [rad], within a turn; way of sliders, length of the others [m]


def _of(values: np.ndarray, index: np.ndarray, world: np.ndarray) -> np.ndarray:
    return np.concatenate((values, world[None]))[index]  # -1 is the last


def places(joints: Joints, bodies: Bodies) -> Places:
    found = []
    sides = ((joints.a, joints.anchor_a, joints.frame_a), (joints.b, joints.anchor_b, joints.frame_b))
    for index, anchor, frame in sides:
        center, R = _of(bodies.center, index, np.zeros(3)), _of(bodies.rotation, index, np.eye(3))
        found.append((np.einsum("jik,jk->ji", R, anchor), frame @ np.swapaxes(R, 1, 2), center))
    (arm_a, fa, xa), (arm_b, fb, xb) = found
    apart = (xb - xa) + (arm_b - arm_a)
    angle = np.arctan2((fa[:, 2] * fb[:, 1]).sum(axis=1), (fa[:, 1] * fb[:, 1]).sum(axis=1))
    way, size = (fa[:, 0] * apart).sum(axis=1), np.linalg.norm(apart, axis=1)
    position = np.select([joints.kind == HINGE, joints.kind == SLIDER, joints.kind >= SPRING], [angle, way, size], 0.0)
    return Places(arm_a, arm_b, fa, fb, apart, position)


def speeds(joints: Joints, bodies: Bodies) -> np.ndarray:
    """How fast the positions of joints change [rad/s or m/s]."""
    at = places(joints, bodies)
    va, vb = _of(bodies.velocity, joints.a, np.zeros(3)), _of(bodies.velocity, joints.b, np.zeros(3))
    wa, wb = _of(bodies.spin, joints.a, np.zeros(3)), _of(bodies.spin, joints.b, np.zeros(3))
    u = vb + np.cross(wb, at.arm_b) - va - np.cross(wa, at.arm_a + at.apart)  # as a sees it
    along = at.apart / np.maximum(np.linalg.norm(at.apart, axis=1, keepdims=True), np.finfo(float).tiny)
    turning, sliding = ((wb - wa) * at.frame_a[:, 0]).sum(axis=1), (u * at.frame_a[:, 0]).sum(axis=1)
    return np.select([joints.kind == HINGE, joints.kind == SLIDER, joints.kind >= SPRING],
                     [turning, sliding, (u * along).sum(axis=1)], 0.0)  # fmt: skip


class JointRows:
    """The tables of joints for the solver. `turned` is remembered: their positions, with whole turns."""

    def __init__(self) -> None:
        self.turned = np.zeros(0)
        self._key: tuple = ()
        self.count = self.rows = 0
        self.joint_place, self.joint = np.zeros((1, JOINT_INTS), np.int32), np.zeros((1, JOINT), np.float32)
        self.row_place, self.row = np.zeros((1, ROW_INTS), np.int32), np.zeros((1, ROW), np.float32)
        self.skyline = np.zeros(1, np.float32)

    def continuous(self, joints: Joints, position: np.ndarray) -> np.ndarray:
        """Angles with the turns that they have made; new joints begin with none."""
        before = position.copy()
        k = min(len(before), len(self.turned))
        before[:k] = self.turned[:k]
        turns = np.round((before - position) / (2 * np.pi))
        return np.where(joints.kind == HINGE, position + 2 * np.pi * turns, position)

    def take_positions(self, joints: Joints, bodies: Bodies) -> None:
        """Notes where joints are at the end of a step."""
        self.turned = self.continuous(joints, places(joints, bodies).position)

    def fill(self, joints: Joints, bodies: Bodies, place: np.ndarray, h: float) -> None:
        """Tables for a step. `place` are the rows of bodies; the last of it is the world's."""
        self._arrange(joints, bodies)
        at, t, c = places(joints, bodies), self.joint, columns
        self._arms = tuple(np.where((body == WORLD)[:, None], 0.0, arm)
                           for body, arm in ((joints.a, at.arm_a), (joints.b, at.arm_b)))  # fmt: skip
        t[:, c.ARM_A : c.ARM_A + 3], t[:, c.ARM_B : c.ARM_B + 3] = self._arms
        t[:, c.FRAME_A : c.FRAME_A + 9] = at.frame_a.reshape(-1, 9)
        t[:, c.FRAME_B : c.FRAME_B + 9] = at.frame_b.reshape(-1, 9)
        t[:, c.APART : c.APART + 3], t[:, c.AT] = at.apart, self.continuous(joints, at.position)
        given = (joints.low, joints.high, joints.target, joints.most, joints.stiffness, joints.damping, joints.length)
        for k, values in enumerate(given, c.LOW):
            t[:, k] = values
        t[:, c.SUMS : c.NOW] = 0.0
        rows_a, rows_b = place[joints.a], place[joints.b]
        self.joint_place[:, c.A], self.joint_place[:, c.B] = rows_a, rows_b
        self.row_place[:, c.A_OF], self.row_place[:, c.B_OF] = rows_a[self._joint_of], rows_b[self._joint_of]

    def _arrange(self, joints: Joints, bodies: Bodies) -> None:
        """Orders the rows so that the factor of their matrix has little fill, where joints or bodies have changed."""
        limited = (joints.kind == HINGE) | (joints.kind == SLIDER)
        driven = limited & (joints.mode != NO_MOTOR)
        limited &= np.isfinite(joints.low) | np.isfinite(joints.high)
        free = np.append(bodies.inverse_mass > 0, False)
        key = tuple(values.tobytes() for values in (joints.kind, joints.a, joints.b, joints.mode, limited, free))
        if key == self._key:
            return
        self._key, j = key, len(joints)
        size = np.array([len(ROLES[k]) for k in joints.kind.tolist()]) + driven + limited
        side = np.concatenate((joints.a, joints.b))
        number, of = np.tile(np.arange(j), 2)[free[side]], side[free[side]]
        incidence = csr_array((np.ones(len(of)), (number, of)), shape=(j, len(free)))
        near = csr_array(incidence @ incidence.T)
        order = reverse_cuthill_mckee(near.astype(np.float64), symmetric_mode=True).astype(int)
        begin = np.zeros(j, int)
        begin[order] = np.concatenate(([0], np.cumsum(size[order])[:-1]))
        self.count, self.rows = j, int(size.sum())
        c = columns
        self.joint_place, self.joint = np.zeros((j, JOINT_INTS), np.int32), np.zeros((j, JOINT), np.float32)
        self.row_place, self.row = np.zeros((self.rows, ROW_INTS), np.int32), np.zeros((self.rows, ROW), np.float32)
        self._joint_of = np.repeat(order, size[order])
        others = np.split(near.indices, near.indptr[1:-1])
        first = np.array([begin[others[k]].min(initial=begin[k]) for k in range(j)])
        self.row_place[:, c.FIRST] = np.minimum(first, begin)[self._joint_of]
        width = np.arange(self.rows) + 1 - self.row_place[:, c.FIRST]
        self.row_place[:, c.OFFSET] = np.concatenate(([0], np.cumsum(width)[:-1]))
        self.skyline = np.zeros(int(width.sum()), np.float32)
        self.joint_place[:, c.KIND], self.joint_place[:, c.MODE] = joints.kind, joints.mode
        roles = [ROLES[k] + [(c.MOTOR, 0)] * d + [(c.LIMIT, 0)] * e
                 for k, d, e in zip(joints.kind.tolist(), driven.tolist(), limited.tolist(), strict=True)]  # fmt: skip
        self.row_place[:, c.ROLE : c.AXIS + 1] = [role for k in order for role in roles[k]]
        self.row_place[:, c.JOINT_OF] = self._joint_of

    def forces(self, joints: Joints | None, dt: float, total: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Force and torque on the bodies b of joints, and what their motors did; adds the first two to the sums of all
        bodies (n, 6)."""
        if joints is None or not len(joints):
            return np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0)
        c = columns
        sums = self.joint[:, c.SUMS : c.NOW].astype(float) / dt
        force, torque = sums[:, :3], sums[:, 3:6]
        for sign, body, arm in ((-1.0, joints.a, self._arms[0]), (1.0, joints.b, self._arms[1])):
            real = body != WORLD
            np.add.at(total, body[real], sign * np.hstack((force, torque + np.cross(arm, force)))[real])
        return force, torque, sums[:, 6]
