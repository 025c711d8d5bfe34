"""The air around everything: still, a steady wind, a wind read off a grid, or a function of place and time."""

from typing import Any

import numpy as np

from pliant.core.options import REQUIRED, Options, nonnegative, param, positive
from pliant.errors import SimulationError

FASTEST = 1e4  # [m/s]: no wind blows faster
FUNCTION = "a function"  # stands for a velocity that no file can hold


class WindGrid(Options):
    """Wind on a regular grid of nodes. Between them it is interpolated linearly; outside, it blows as at the nearest
    place of the grid."""

    velocities: Any = param(REQUIRED, "velocity at each node: an array of shape (nx, ny, nz, 3); an axis of one node "
                            "means no change along it", "m/s", kind="any")  # fmt: skip
    low: tuple = param(REQUIRED, "place of the first node", "m", kind="vector")
    high: tuple = param(REQUIRED, "place of the last node", "m", kind="vector")

    def problems(self) -> list[str]:
        found = super().problems()
        if not found and not np.less(self.low, self.high).all():
            found.append(f"WindGrid: low must lie below high along each axis, got {self.low!r} and {self.high!r}")
        if self.velocities is REQUIRED:
            return found
        array = _array(self.velocities)
        if array.ndim != 4 or array.shape[3] != 3 or not array.size:
            found.append(f"WindGrid: velocities must be an array of shape (nx, ny, nz, 3), got {_shape(array)}")
        elif not _winds(array):
            found.append(f"WindGrid: velocities must be finite numbers within {FASTEST:g} m/s")
        return found


class Air(Options):
    """Air that drags on fluids, granular matter and elastic bodies: Scene(air=pl.Air(velocity=(5, 0, 0))). It is not
    moved itself.

    A wind that depends on place and time is a function of the positions (n, 3) [m] and the time [s], called once or
    twice a step, which returns the velocities (n, 3) [m/s], or three numbers for the same wind everywhere.
    """

    velocity: Any = param((0.0, 0.0, 0.0), "of the air: three numbers, a WindGrid, or a function velocity(x, t)", "m/s",
                          kind="any")  # fmt: skip
    density: float = positive(1.2, "density of the air, or of another thin medium", "kg/m^3", high=1e4,
                              source="air at 20 C and sea level")  # fmt: skip
    drag: float = nonnegative(
        0.47, "drag coefficient C_D of a grain or droplet", "1", high=100.0, source="a ball at Reynolds numbers from "
        "1e3 to 1e5: 0.47, Hoerner 1965; droplets that the wind flattens: up to 1.1, Gissler et al. 2017",
    )  # fmt: skip
    grain: float | None = positive(
        None, "diameter of the grains or droplets for which a particle stands, at most its own: the finer they are, "
        "the more easily the air carries it; None takes the particle for one of them", "m", high=10.0, optional=True,
    )  # fmt: skip

    def problems(self) -> list[str]:
        found = super().problems()
        if isinstance(self.velocity, WindGrid):
            return found + self.velocity.problems()
        array = _array(self.velocity)
        if not callable(self.velocity) and (array.shape != (3,) or not _winds(array)):
            found.append(f"Air: velocity must be three numbers within {FASTEST:g} m/s, a WindGrid or a function of "
                         f"positions and time, got {self.velocity!r}")  # fmt: skip
        return found

    def values(self) -> dict[str, Any]:
        return super().values() | ({"velocity": FUNCTION} if callable(self.velocity) else {})

    def blowing(self, x: np.ndarray, t: float) -> np.ndarray:
        """What the user's own function gives at positions x (n, 3) and time t: whatever it raises, or returns that is
        no wind, becomes one sentence."""
        try:
            wind = _array(self.velocity(x, t))
            if wind.shape not in ((3,), x.shape):
                raise ValueError(f"it must return an array of shape {x.shape} or three numbers, got {_shape(wind)}")
            if not _winds(wind):
                raise ValueError(f"it must return finite numbers within {FASTEST:g} m/s")
        except Exception as error:
            raise SimulationError(f"Air: its velocity fails at t = {t:g} s: {error}") from error
        return np.broadcast_to(wind, x.shape)


def _array(given: Any) -> np.ndarray:
    """What was given, as an array of numbers if it is one."""
    try:
        return np.asarray(given)
    except ValueError:  # ragged
        return np.asarray(given, dtype=object)


def _winds(array: np.ndarray) -> bool:
    return array.dtype.kind in "iuf" and bool((np.abs(array) <= FASTEST).all())


def _shape(array: np.ndarray) -> str:
    return f"an array of {array.dtype} of shape {array.shape}"
