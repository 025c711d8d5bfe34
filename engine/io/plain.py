"""JSON of anything, in the strict form that every reader takes."""

import json
import math
from typing import Any

import numpy as np


def as_json(value: Any, **layout: Any) -> str:
    """JSON of anything: NumPy numbers and arrays as numbers and lists, what JSON does not know as its text."""
    return json.dumps(plain(value), allow_nan=False, **layout)


def plain(value: Any) -> Any:
    """As what JSON knows; numbers that are not finite become their text."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
