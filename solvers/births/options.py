"""What a scene says of how its particles come and go: `scene.emit` and `scene.drain` make these."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from pliant.core.options import REQUIRED, Options, nonnegative, param, positive
from pliant.errors import SimulationError
from pliant.geometry import Shape
from pliant.geometry.patches import Patch

FASTEST = 1e6  # [m/s]
FUNCTION = "a function"  # stands for a velocity that no file can hold


class Source(Options):
    """Base of what brings particles or takes them."""

    name: str = param(REQUIRED, "what it is called, as bodies are", kind="text")

    def functions(self) -> list[str]:
        """What it does by functions of the user's, in words."""
        return []


class Emitter(Source):
    """A nozzle from which a body of fluid or sand flows: `scene.emit` makes it."""

    shape: Patch = param(REQUIRED, "the nozzle: a Disc, a Rectangle or a Face", kind="any")
    body: str = param(REQUIRED, "name of the body that flows out of it", kind="text")
    velocity: Any = param((0.0, -1.0, 0.0), "at which it flows, relative to the nozzle: three numbers, or a function "
                          "of time that returns them", "m/s", kind="any")  # fmt: skip
    start: float = nonnegative(0.0, "when it begins to flow", "s")
    stop: float | None = nonnegative(None, "when it ends; None lets it flow for ever", "s", optional=True)
    volume: float | None = positive(None, "after which it ends, to a particle; None knows no end", "m^3", optional=True)
    moves_with: str | None = param(None, "name of the wall that the nozzle is fixed to, if any", kind="any")

    def values(self) -> dict[str, Any]:
        return super().values() | ({"velocity": FUNCTION} if callable(self.velocity) else {})

    def functions(self) -> list[str]:
        return [f"the velocity of {self.name!r}"] if callable(self.velocity) else []

    def problems(self) -> list[str]:
        found = [sentence.replace("Emitter: ", "") for sentence in super().problems()]
        if isinstance(self.shape, Patch):
            found += self.shape.problems()
        elif self.shape is not REQUIRED:
            found.append(f"a nozzle is a pl.Disc, a pl.Rectangle or a pl.Face, got {self.shape!r}")
        if not found and self.stop is not None and self.stop <= self.start:
            found.append(f"stop must be later than start, got {self.stop!r} and {self.start!r}")
        if not found:
            try:
                self.flow_at(self.start, self.axes()[2])
            except SimulationError as error:
                found.append(str(error).removeprefix(f"{self.name}: "))
        return [f"{self.name}: {sentence}" for sentence in found]

    def axes(self) -> np.ndarray:
        """Two directions in the plane of the nozzle and its normal, as rows. A nozzle that does not tell its own looks
        where the flow goes when it begins."""
        flow = self.velocity_at(self.start)
        if getattr(self.shape, "normal", None) is None and not flow.any():
            raise SimulationError(f"{self.name}: it does not flow when it begins, so its nozzle needs a normal: "
                                  f"pl.{type(self.shape).__name__}(..., normal=(0, -1, 0))")  # fmt: skip
        return self.shape.axes(flow if flow.any() else (0.0, -1.0, 0.0))

    def direction(self) -> np.ndarray:
        """(3,) where it flows, or would if it did."""
        flow = self.velocity_at(self.start)
        return flow / np.linalg.norm(flow) if flow.any() else self.axes()[2]

    def velocity_at(self, t: float) -> np.ndarray:
        """The velocity of the flow at time t [s], relative to the nozzle [m/s]. Whatever a user's function raises, or
        returns that is none, becomes one sentence."""
        function: Callable[[float], Any] = self.velocity if callable(self.velocity) else lambda _: self.velocity
        try:
            found = np.asarray(function(t), dtype=float)
            if found.shape != (3,) or not (np.abs(found) <= FASTEST).all():
                raise ValueError(f"it must be three numbers within {FASTEST:g} m/s, got {found.tolist()!r}")
        except Exception as error:
            raise SimulationError(f"{self.name}: its velocity fails at t = {t:g} s: {error}") from error
        return found

    def flow_at(self, t: float, normal: np.ndarray) -> np.ndarray:
        """The velocity at time t, which must not point into the nozzle."""
        found = self.velocity_at(t)
        if found @ normal < 0:
            looks = ", ".join(f"{a:.3g}" for a in normal)
            raise SimulationError(f"{self.name}: its velocity at t = {t:g} s, {found.tolist()}, points into the "
                                  f"nozzle, which looks along ({looks}); let it be zero to pause")  # fmt: skip
        return found


class Drain(Source):
    """A region in which particles are gone: `scene.drain` makes it."""

    shape: Shape = param(REQUIRED, "the region", kind="any")
    moves_with: str | None = param(None, "name of the wall that the region is fixed to, if any", kind="any")

    def problems(self) -> list[str]:
        found = [sentence.replace("Drain: ", "") for sentence in super().problems()]
        if isinstance(self.shape, Shape):
            found += self.shape.problems()
        elif self.shape is not REQUIRED:
            found.append(f"a drain is a shape such as pl.Box(...), got {self.shape!r}")
        return [f"{self.name}: {sentence}" for sentence in found]


class Arrival(Source):
    """A whole body that appears at a time: `scene.emit(shape, material, at=[...])` makes it, under the body's name."""

    time: float = nonnegative(0.0, "when it appears, or later if its place is not free", "s")

    def problems(self) -> list[str]:
        return [f"{self.name}: {sentence.replace('Arrival: ', '')}" for sentence in super().problems()]


def arriving(sources: Iterable[Source]) -> dict[str, float]:
    """The bodies that are not there at the start, and when they appear [s]."""
    return {source.name: float(source.time) for source in sources if isinstance(source, Arrival)}
