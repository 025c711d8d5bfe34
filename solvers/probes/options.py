"""What a scene says of its probes: `scene.probe` makes these."""

import dataclasses
from typing import Any

import numpy as np

from pliant.core.options import REQUIRED, Options, param, positive
from pliant.geometry.patches import Disc, Rectangle

FARTHEST = 1e9  # [m] from the origin
AXES = "xyz"


@dataclasses.dataclass(frozen=True)
class Quantity:
    """What can be measured: its parts, each with its unit, and where: the parameter of `scene.probe` that tells."""

    parts: tuple[tuple[str, str], ...]
    where: tuple[str, ...]


QUANTITIES = {
    "pressure": Quantity((("pressure", "Pa"),), ("at", "on")),
    "velocity": Quantity(tuple((f"velocity {axis}", "m/s") for axis in AXES), ("at",)),
    "density": Quantity((("density", "kg/m^3"),), ("at",)),
    "elevation": Quantity((("elevation", "m"),), ("at",)),
    "force": Quantity(tuple((f"force {axis}", "N") for axis in AXES), ("on",)),
    "flow": Quantity((("volume flow", "m^3/s"), ("mass flow", "kg/s"), ("volume", "m^3"), ("mass", "kg")),
                     ("through",)),
}  # fmt: skip
RATES = 2  # of the parts of a flow: the others are totals
PLACES = {"at": "at points, at=(x, y, z) or a list of these", "on": "on a patch of a wall, on=pl.Disc(...) or "
          "pl.Rectangle(...)", "through": "through a section, through=pl.Disc(...) or pl.Rectangle(...)"}  # fmt: skip


class Probe(Options):
    """A gauge that measures and records one quantity: `scene.probe` makes it."""

    name: str = param(REQUIRED, "what it is called, as bodies are; its files bear the name", kind="text")
    quantity: str = param(REQUIRED, "what is measured", choices=tuple(QUANTITIES))
    at: Any = param(None, "the points (3,) or (n, 3) at which it is measured; elevation: above which", "m", kind="any")
    on: Any = param(None, "the patch of a wall on which it is measured: a Disc or a Rectangle", kind="any")
    through: Any = param(None, "the section through which flow is measured: a Disc or a Rectangle with a normal, the "
                         "direction in which flow is positive", kind="any")  # fmt: skip
    of: str | None = param(None, "name of the body that is measured; None measures all fluids and sand", kind="any")
    every: float | None = positive(None, "time between two samples; None records every step", "s", optional=True)
    window: float | None = positive(None, "each sample is the mean over so much time before it; None records what the "
                                    "last step has", "s", optional=True)  # fmt: skip

    def problems(self) -> list[str]:
        found = [sentence.replace("Probe: ", "").replace("Probe has", "probe has") for sentence in super().problems()]
        if self.quantity in tuple(QUANTITIES):
            found += self._place_problems()
        if self.of is not None and not isinstance(self.of, str):
            found.append(f"of must be a body or its name, got {_brief(self.of)}")
        elif self.of is not None and self.on is not None:
            found.append("a patch takes the force of all that is pressed against it; leave out of=")
        return [f"{self.name}: {sentence}" for sentence in found]

    def _place_problems(self) -> list[str]:
        allowed = QUANTITIES[self.quantity].where
        given = [place for place in PLACES if getattr(self, place) is not None]
        if len(given) != 1 or given[0] not in allowed:
            wanted = " or ".join(PLACES[place] for place in allowed)
            got = " and ".join(f"{place}=" for place in given) or "no place"
            return [f"{self.quantity} is measured {wanted}; got {got}"]
        if given[0] == "at":
            wrong = f"at must be one point (x, y, z) or a list of points, finite and in metres, got {_brief(self.at)}"
            return [wrong] if points_of(self.at) is None else []
        patch = getattr(self, given[0])
        if not isinstance(patch, (Disc, Rectangle)):
            return [f"{given[0]} must be a pl.Disc or a pl.Rectangle, got {_brief(patch)}"]
        found = patch.problems()
        if not found and given[0] == "through" and patch.normal is None:
            found.append(f"a section needs a normal, the direction in which flow counts as positive: "
                         f"pl.{type(patch).__name__}(..., normal=(1, 0, 0))")  # fmt: skip
        return found

    @property
    def points(self) -> np.ndarray:
        """(n, 3) where it measures [m]; none of a patch or a section."""
        found = points_of(self.at)
        return np.zeros((0, 3)) if found is None else found.reshape(-1, 3)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one sample: (n,) for a list of n points, (3,) for a vector, (2,) for the rates of a flow."""
        found = () if self.at is None or np.ndim(self.at) == 1 else (len(self.points),)
        parts = RATES if self.quantity == "flow" else len(QUANTITIES[self.quantity].parts)
        return (*found, parts) if parts > 1 else found

    def columns(self) -> list[tuple[str, str]]:
        """Names and units of the columns of its files, after the time."""
        parts = QUANTITIES[self.quantity].parts
        if self.at is None:
            return list(parts)
        places = [" ".join(f"{c:.10g}" for c in point) for point in self.points]
        return [(f"{part} at ({place})", unit) for place in places for part, unit in parts]


def points_of(at: Any) -> np.ndarray | None:
    """Points (3,) or (n, 3) that a user gave, None if they are none."""
    try:
        found = np.asarray(at)
    except ValueError:  # ragged
        return None
    if found.dtype.kind not in "iuf" or found.ndim not in (1, 2) or found.shape[-1] != 3 or not found.size:
        return None
    return found.astype(float) if (np.abs(found) <= FARTHEST).all() else None


def _brief(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."
