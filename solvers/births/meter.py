"""How much has passed, and how fast lately."""

import numpy as np

LATELY = 0.2  # [s]: rates are means over this time


class Meter:
    """Counts particles and their volume [m^3]."""

    def __init__(self) -> None:
        self.count, self.volume = 0, 0.0
        self._times: list[tuple[float, float]] = []  # time [s] and volume until then, over the last while

    def add(self, t: float, count: int, volume: float) -> None:
        """So many particles of that volume together have passed at time t."""
        if not count:
            return
        if not self._times:
            self._times = [(t, self.volume)]
        self.count, self.volume = self.count + count, self.volume + volume
        self._times.append((t, self.volume))
        while len(self._times) > 2 and self._times[1][0] <= t - LATELY:
            self._times.pop(0)

    def rate(self, t: float) -> float:
        """Volume per time lately, as seen from time t [m^3/s]."""
        before = [one for one in self._times if one[0] <= t - LATELY]
        since, passed = before[-1] if before else (self._times[0] if self._times else (t, self.volume))
        span = LATELY if before else t - since
        return (self.volume - passed) / span if span > 0 else 0.0

    def save(self) -> np.ndarray:
        return np.array([(self.count, self.volume), *self._times])

    def restore(self, saved: np.ndarray) -> None:
        self.count, self.volume = int(saved[0, 0]), float(saved[0, 1])
        self._times = [(float(t), float(v)) for t, v in saved[1:]]
