"""Joints of rigid bodies as lines to be drawn: a hinge as its axis with a ring around it, a ball joint as a ball, a
slider as a rail, a spring as a coil, a distance as a rod, and what holds bodies together as a small cube."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.render.picture import Lines
from pliant.solvers.rigid.options import AxisJoint

if TYPE_CHECKING:
    from pliant.sim.simulation import Simulation

JOINT, JOINT_WIDTH = (0.10, 0.22, 0.75), 2.5  # colour, and width as that of lines is
SHARE = 0.6  # of the size of the smaller body: how far an axis reaches to both sides
RING, BALL, CUBE, END, COIL = 0.3, 0.2, 0.15, 0.12, 0.15  # of that: radii and half lengths
SEGMENTS, TURNS, STRAIGHT = 24, 8, 0.15  # of a circle, of a coil; the share of a spring at each end that is straight
LARGEST = 0.5  # of the scene: what a joint between walls without end counts as


@dataclasses.dataclass
class JointMark:
    """A joint as the scene was built: places on the bodies `a` and `b` ("" is the world), an axis of `b`."""

    kind: str
    a: str
    b: str
    at: np.ndarray  # (2, 3) [m]
    axis: np.ndarray  # (3,)
    limits: tuple[float, float]  # [m] of a slider, infinite if there are none
    size: float  # [m]

    def save(self) -> dict[str, Any]:
        """As plain values, which `load` takes."""
        limits = [value if np.isfinite(value) else None for value in self.limits]
        return {"kind": self.kind, "a": self.a, "b": self.b, "at": self.at.tolist(), "axis": self.axis.tolist(),
                "limits": limits, "size": self.size}  # fmt: skip

    @classmethod
    def load(cls, values: dict[str, Any]) -> "JointMark":
        low, high = (value if value is not None else sign * np.inf
                     for value, sign in zip(values["limits"], (-1, 1), strict=True))  # fmt: skip
        arrays = {name: np.array(values[name], float) for name in ("at", "axis")}
        return cls(**(values | arrays | {"limits": (low, high), "size": float(values["size"])}))


def joint_marks(sim: "Simulation", bounds: np.ndarray) -> list[JointMark]:
    """Those of a simulation that has these `bounds` (2, 3) [m]."""
    found, largest = [], LARGEST * float(np.ptp(bounds, axis=0).max())
    for joint in sim.scene.settings.joints:
        walls = [sim.world.walls.find(name) for name in (joint.a, joint.b)]
        size = SHARE * min([largest, *(wall.extent for wall in walls if wall is not None and wall.extent)])
        turns = isinstance(joint, AxisJoint)
        limits = joint.limit_range() if turns and joint.kind == "slider" else (-np.inf, np.inf)
        axis = joint.direction() if turns else np.array([0.0, 1.0, 0.0])
        found.append(JointMark(joint.kind, joint.a, joint.b or "", joint.anchors(), axis, limits, size))
    return found


def joint_lines(marks: list[JointMark], poses: Mapping[str, np.ndarray]) -> list[Lines]:
    """What is to be drawn of them where the bodies are now, over all else."""
    if not marks:
        return []
    segments = np.concatenate([_segments(mark, poses) for mark in marks])
    return [Lines(segments, JOINT, JOINT_WIDTH, over=True)]


def _segments(mark: JointMark, poses: Mapping[str, np.ndarray]) -> np.ndarray:
    """(m, 2, 3) [m]."""
    pose_a, pose_b = (poses.get(name, np.eye(4)) for name in (mark.a, mark.b))
    p, q = (pose[:3, :3] @ at + pose[:3, 3] for pose, at in ((pose_a, mark.at[0]), (pose_b, mark.at[1])))
    frame = _frame(pose_b[:3, :3] @ mark.axis)
    s = mark.size
    if mark.kind == "hinge":
        return np.concatenate([_path(p + np.outer((-s, s), frame[2])), _circle(p, RING * s, frame)])
    if mark.kind == "ball":
        return np.concatenate([_circle(p, BALL * s, np.roll(np.eye(3), k, axis=0)) for k in range(3)])
    if mark.kind == "slider":
        low, high = (limit if np.isfinite(limit) else sign * 2 * s
                     for limit, sign in zip(mark.limits, (-1, 1), strict=True))  # fmt: skip
        ends = [_cross(q + at * frame[2], END * s, frame[:2]) for at in (low, high)]
        return np.concatenate([_path(q + np.outer((low, high), frame[2])), *ends, _cube(p, CUBE * s, frame)])
    if mark.kind == "spring":
        return _path(_coil(p, q, COIL * s))
    if mark.kind == "distance":
        return np.concatenate([_path(np.array([p, q])), *(_cross(x, END * s, np.eye(3)) for x in (p, q))])
    return _cube(p, CUBE * s, pose_b[:3, :3].T)


def _path(points: np.ndarray) -> np.ndarray:
    return np.stack([points[:-1], points[1:]], axis=1)


def _frame(axis: np.ndarray) -> np.ndarray:
    """Three unit vectors at right angles, the last along the axis."""
    first = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    first /= np.linalg.norm(first)
    return np.array([first, np.cross(axis, first), axis])


def _circle(center: np.ndarray, radius: float, frame: np.ndarray) -> np.ndarray:
    angle = np.linspace(0, 2 * np.pi, SEGMENTS + 1)
    return _path(center + radius * (np.outer(np.cos(angle), frame[0]) + np.outer(np.sin(angle), frame[1])))


def _cross(center: np.ndarray, half: float, ways: np.ndarray) -> np.ndarray:
    return center + half * np.stack([-ways, ways], axis=1)


def _cube(center: np.ndarray, half: float, frame: np.ndarray) -> np.ndarray:
    corners = np.array([[2 * (k >> d & 1) - 1 for d in range(3)] for k in range(8)])
    pairs = [(k, k | 1 << d) for k in range(8) for d in range(3) if not k >> d & 1]
    return center + half * (corners[pairs] @ frame)


def _coil(p: np.ndarray, q: np.ndarray, radius: float) -> np.ndarray:
    """Points along a spring."""
    length = float(np.linalg.norm(q - p))
    if length == 0.0:
        return np.array([p, q])
    frame = _frame((q - p) / length)
    t = np.linspace(0, 1, TURNS * SEGMENTS + 1)
    angle = 2 * np.pi * TURNS * t
    wound = radius * (np.outer(np.cos(angle) - 1, frame[0]) + np.outer(np.sin(angle), frame[1]))
    middle = p + np.outer(STRAIGHT + (1 - 2 * STRAIGHT) * t, q - p) + wound
    return np.concatenate([[p], middle, [q]])
