"""Features of forms: points, segments and circles with a radius, as rows of a table."""

from typing import Any

import numpy as np

POINT, SEGMENT, CIRCLE = range(3)  # x = p; x = p + s u, 0 <= s <= 1; x = p + cos s u + sin s v
RADIUS, P, U, V, OUT, FLAT_ENDS, RANK, COLUMNS = 1, 2, 5, 8, 11, 14, 15, 16  # of a feature, after its kind
BEGIN, STOP, AROUND_IT, GROUP_COLUMNS = 3, 4, 5, 6  # of a group, after its middle: its features, and its radius
GROUP = 32  # features, at most: one distance tells whether any of them may be near
ZERO = (0.0, 0.0, 0.0)


def feature(kind: int, radius: float, p: Any, u: Any = ZERO, v: Any = ZERO, out: Any = ZERO, flat_ends: bool = False,
            rank: int = 0) -> np.ndarray:  # fmt: skip
    """A row of the table of features. `out` is the mean of the normals of the faces that meet in what is sharp; of a
    circle, by its parts along the radius and along z. An axis with flat ends counts only where its offset is
    perpendicular to it. Of those of one kind, the ones of lower rank come first."""
    length = np.linalg.norm(out)
    return np.array([kind, radius, *p, *u, *v, *(np.asarray(out) / max(float(length), 1e-30)), flat_ends, rank],
                    np.float32)  # fmt: skip


def grouped(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same features with those of a kind that are near to each other next to each other (in the order of Morton
    1966), and groups of them: balls that contain their curves, radius included."""
    table: list[np.ndarray] = []
    groups: list[list[Any]] = []
    for those in np.unique(features[:, [RANK, 0, RADIUS]], axis=0):
        some = features[(features[:, [RANK, 0, RADIUS]] == those).all(axis=1)]
        middle, reach = _balls(some)
        order = np.argsort(_morton(middle), kind="stable") if len(some) > GROUP else np.arange(len(some))
        for lo in range(0, len(some), GROUP):
            members = order[lo : lo + GROUP]
            centre = 0.5 * (middle[members].min(axis=0) + middle[members].max(axis=0))
            around = float((np.linalg.norm(middle[members] - centre, axis=1) + reach[members]).max())
            first = len(table)
            table += list(some[members])
            groups.append([*centre, first, len(table), around])
    return np.array(table, np.float32).reshape(-1, COLUMNS), np.array(groups, float).reshape(-1, GROUP_COLUMNS)


def _balls(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Middles and radii of balls around features."""
    p, u = features[:, P : P + 3].astype(float), features[:, U : U + 3].astype(float)
    length, segment = np.linalg.norm(u, axis=1), features[:, 0] == SEGMENT
    return p + 0.5 * segment[:, None] * u, np.where(segment, 0.5, 1.0) * length + features[:, RADIUS]


def _morton(x: np.ndarray) -> np.ndarray:
    """Numbers of places along a curve that stays near: the bits of three coordinates in turn."""
    cell = ((x - x.min(axis=0)) / max(float(np.ptp(x, axis=0).max()), 1e-30) * 1023).astype(np.int64)
    code = np.zeros(len(x), np.int64)
    for bit in range(10):
        for axis in range(3):
            code |= (cell[:, axis] >> bit & 1) << (3 * bit + axis)
    return code
