"""What a probe has recorded: samples by time, and moving averages that are exact for steps of any length."""

from collections.abc import Mapping

import numpy as np

from pliant.solvers.probes.options import RATES, Probe

ON_TIME = 1e-6  # of `every`: a sample that is due within this of the end of a step is not late


class Series:
    """Rows of numbers, of which there will be more."""

    def __init__(self, width: int):
        self._rows = np.zeros((16, width))
        self.count = 0

    @property
    def rows(self) -> np.ndarray:
        return self._rows[: self.count]

    def append(self, *parts: object) -> None:
        if self.count == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._rows[self.count] = np.concatenate([np.atleast_1d(np.asarray(part, dtype=float)) for part in parts])
        self.count += 1

    def set(self, rows: np.ndarray) -> None:
        """Takes these rows in place of its own."""
        self._rows = np.concatenate([rows, np.zeros((16, self._rows.shape[1]))])
        self.count = len(rows)


class Recorder:
    """The samples of one probe. `samples` has rows of time and values, `recent` of time, step and values for the
    moving average.

    A sample is taken after the first step that ends at a multiple of `every` or later, at its own time: steps are
    not cut short for it. With a `window` T it is the mean of what steps have measured,

        sum of |(t_k - dt_k, t_k] & (t - T, t]| y_k / sum of the same lengths,

    over the steps k in which there was something to measure.
    """

    def __init__(self, probe: Probe):
        self.probe = probe
        self.columns = probe.columns()
        self.measured = RATES if probe.quantity == "flow" else len(self.columns)  # in each step; the rest are totals
        self.total = np.zeros(len(self.columns) - self.measured)
        self.samples, self.recent = Series(1 + len(self.columns)), Series(2 + self.measured)
        self.due = 1  # number of the next sample, in multiples of `every`
        self._good = self._counts()

    def is_due(self, t: float) -> bool:
        every = self.probe.every
        return every is None or t >= (self.due - ON_TIME) * every

    def wants(self, t: float) -> bool:
        """Whether it has to know what there is at time t [s]."""
        return self.probe.window is not None or self.is_due(t)

    def take(self, t: float, dt: float, values: np.ndarray) -> None:
        """Hears what was measured in the step of dt [s] that ends at time t."""
        if self.probe.window is not None:
            self.recent.append(t, dt, values)
        if not self.is_due(t):
            return
        self.samples.append(t, self._mean(t) if self.probe.window is not None else values, self.total)
        if self.probe.every is not None:
            self.due = int(t / self.probe.every + ON_TIME) + 1

    def _mean(self, t: float) -> np.ndarray:
        assert self.probe.window is not None
        rows = self.recent.rows[self.recent.rows[:, 0] > t - self.probe.window]
        end, dt, values = rows[:, 0], rows[:, 1], rows[:, 2:]
        known = ~np.isnan(values)
        weight = (end - np.maximum(end - dt, t - self.probe.window))[:, None] * known
        total = weight.sum(axis=0)
        sums = (weight * np.where(known, values, 0.0)).sum(axis=0)
        return np.divide(sums, total, out=np.full(len(sums), np.nan), where=total > 0)

    # --- its state --------------------------------------------------------------------------------------

    def _counts(self) -> tuple[int, int, int, np.ndarray]:
        return self.samples.count, self.recent.count, self.due, self.total.copy()

    def backup(self) -> None:
        """The step is sound: what was recorded in it stays, and what no window reaches any more goes."""
        rows = self.recent.rows
        if len(rows) and self.probe.window is not None:
            first = int(np.searchsorted(rows[:, 0], rows[-1, 0] - self.probe.window, side="right"))
            if first > len(rows) // 2:  # seldom, for it copies the rest
                self.recent.set(rows[first:].copy())
        self._good = self._counts()

    def rollback(self) -> None:
        self.samples.count, self.recent.count, self.due, self.total = self._good
        self.total = self.total.copy()

    def save(self) -> dict[str, np.ndarray]:
        return {"samples": self.samples.rows.copy(), "recent": self.recent.rows.copy(),
                "total": np.array([self.due, *self.total])}  # fmt: skip

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        for series, name in ((self.samples, "samples"), (self.recent, "recent")):
            if arrays[name].ndim != 2 or arrays[name].shape[1] != series.rows.shape[1]:
                raise ValueError(f"{self.probe.name} has other columns")
            series.set(arrays[name])
        self.due, self.total = int(arrays["total"][0]), arrays["total"][1:].copy()
        self._good = self._counts()
