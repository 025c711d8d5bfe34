"""Features of forms: points, segments and circles with a radius, as rows of a table."""

from typing import Any

import numpy as np

POINT, SEGMENT, CIRCLE = range(3)  # x = p; x = p + s u, 0 <= s <= 1; x = p + cos s u + sin s v
RADIUS, P, U, V, OUT, FLAT_ENDS, COLUMNS = 1, 2, 5, 8, 11, 14, 15  # of a feature, after its kind
ZERO = (0.0, 0.0, 0.0)


def feature(kind: int, radius: float, p: Any, u: Any = ZERO, v: Any = ZERO, out: Any = ZERO, flat_ends: bool = False
            ) -> np.ndarray:  # fmt: skip
    """A row of the table of features. `out` is the mean of the normals of the faces that meet in what is sharp; of a
    circle, by its parts along the radius and along z. An axis with flat ends counts only where its offset is
    perpendicular to it."""
    length = np.linalg.norm(out)
    return np.array([kind, radius, *p, *u, *v, *(np.asarray(out) / max(float(length), 1e-30)), flat_ends], np.float32)
