"""From the name of a field to numbers and colours."""

import difflib
import re
from collections.abc import Iterable, Mapping

import numpy as np

from pliant.errors import PliantError
from pliant.render.colors import DIVERGING

DERIVED = {"speed": "velocity"}  # names for the magnitude of a field
OUTLIERS = 1.0  # percent at either end that an automatic range leaves out: one wild particle must not bleach the rest
_COMPONENT = re.compile(r"(.+)[._]([xyz]{1,2})")


def scalar(fields: Mapping[str, np.ndarray], name: str) -> np.ndarray | None:
    """The field called `name` as one number each (n,), or None if there is none.

    A vector or tensor counts by its magnitude; `velocity.x` or `velocity_x` is one component, `stress.xy` another.
    """
    if name in fields:
        values = np.asarray(fields[name])
        return values if values.ndim == 1 else np.linalg.norm(values.reshape(len(values), -1), axis=1)
    if name in DERIVED:
        return scalar(fields, DERIVED[name])
    match = _COMPONENT.fullmatch(name)
    if match and match[1] in fields:
        values = np.asarray(fields[match[1]])
        if values.ndim == 1 + len(match[2]):
            for axis in reversed(match[2]):
                values = values[..., "xyz".index(axis)]
            return values
    return None


def unit(units: Mapping[str, str], name: str) -> str:
    """The unit of the field that `scalar` would take."""
    match = _COMPONENT.fullmatch(name)
    for candidate in (name, DERIVED.get(name, name), match[1] if match else name):
        if candidate in units:
            return units[candidate]
    return ""


def label(name: str, given_unit: str) -> str:
    """What stands over a colour bar: "velocity x [m/s]"."""
    words = _COMPONENT.sub(r"\1 \2", name).replace("_", " ")
    return f"{words} [{given_unit}]" if given_unit and given_unit != "1" else words


def no_such_field(name: str, fields: Iterable[str]) -> PliantError:
    """One sentence about a field that nothing in a picture has."""
    known = set(fields)
    known |= {name for name, origin in DERIVED.items() if origin in known}
    close = difflib.get_close_matches(name, sorted(known), n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return PliantError(f"no particles have a field {name!r} to colour by{hint}; there are: "
                       f"{', '.join(sorted(known)) or 'none'}.")  # fmt: skip


def robust_range(samples: Iterable[np.ndarray], diverging: bool = False) -> tuple[float, float]:
    """A range that holds all but the outliers, symmetric around zero where a diverging map crosses it."""
    finite = [values[np.isfinite(values)] for values in samples]
    values = np.concatenate([v.astype(np.float64) for v in finite if len(v)] or [np.zeros(1)])
    low, high = (float(v) for v in np.percentile(values, (OUTLIERS, 100.0 - OUTLIERS)))
    if low == high:
        low, high = float(values.min()), float(values.max())
    if low == high:  # a field that is the same everywhere still needs a range to be drawn in
        spread = abs(low) or 1.0
        low, high = low - 0.5 * spread, high + 0.5 * spread
    if diverging and low < 0 < high:
        high = max(-low, high)
        low = -high
    return low, high


def diverges(names: Iterable[str]) -> bool:
    """Whether one of these colour maps has a neutral middle."""
    return any(name in DIVERGING for name in names)
