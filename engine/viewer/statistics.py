"""The panel of numbers about the last step, and small plots of how they were."""

import dataclasses
import math
from collections import deque
from collections.abc import Mapping, Sequence

from pliant.core.data import GRAINS
from pliant.viewer.messages import Figures
from pliant.viewer.paint import figure
from pliant.viewer.ui import MARGIN, Ui

STATISTICS = "Statistics"
PLOTS = {"Step": "ms", "Density error": "%", "Iterations": "", "Kinetic energy": "J", "Window": "fps"}  # with units
SAMPLES, EVERY = 120, 0.2  # of a plot, and seconds between them: the last 24 s
CALM = 0.12  # [s] that numbers stay for at least: faster ones cannot be read
MOST_STAGES = 7  # that the bar of times tells apart
LEAST_SHARE = 0.01  # of the time, below which a stage counts among the others


class History:
    """How the numbers of `PLOTS` were lately, oldest first, but for those of the first step, which compiles."""

    def __init__(self) -> None:
        self.series: dict[str, deque[float]] = {name: deque(maxlen=SAMPLES) for name in PLOTS}
        self._last, self._step = -math.inf, -1

    def add(self, figures: Figures, fps: float, now: float) -> None:
        """Takes the numbers of the last step, and the window's frames per second, unless that was done just `now` [s]
        or the simulation stands still. One that was reset starts anew."""
        if figures.step < self._step:
            self.clear()
        if now - self._last < EVERY or figures.step == self._step or figures.step <= 1:
            return
        self._last, self._step = now, figures.step
        values = (1e3 * sum(figures.seconds.values()), 100 * figures.density_error,
                  float(sum(figures.iterations.values())), figures.energy, fps)  # fmt: skip
        for series, value in zip(self.series.values(), values, strict=True):
            series.append(value)

    def clear(self) -> None:
        """Forgets all."""
        for series in self.series.values():
            series.clear()
        self._step = -1


@dataclasses.dataclass
class Shown:
    """What the panel says now, until it is time for newer numbers."""

    tiles: tuple[tuple[str, str], ...] = ()
    stages: tuple[tuple[str, float], ...] = ()  # [ms]
    iterations: tuple[tuple[str, str], ...] = ()
    plots: tuple[tuple[str, tuple[float, ...]], ...] = ()
    at: float = -math.inf  # [s]
    figures: Figures | None = None  # what it was made from
    fps: int = 0

    @classmethod
    def of(cls, figures: Figures, fps: float, counts: Mapping[str, int], history: Mapping[str, Sequence[float]],
           now: float) -> "Shown":  # fmt: skip
        particles = sum(n for name, n in counts.items() if not name.endswith(GRAINS))
        grains = sum(counts.values()) - particles
        tiles = (
            ("Time", f"{figures.time:.3f} s"),
            ("Time step", figure(1e3 * figures.dt, "ms")),
            ("Speed", f"{figures.rate:.3f} x"),
            ("Steps", f"{figures.steps_per_second:.1f} /s"),
            ("Density error", f"{100 * figures.density_error:.3f} %"),
            ("Top speed", figure(figures.max_speed, "m/s")),
            ("Particles", count(particles)),
            *([("Grains", count(grains))] if grains else []),
            ("Window", f"{fps:.0f} fps" if fps else "idle"),
        )
        iterations = tuple((name, str(n)) for name, n in figures.iterations.items())
        plots = tuple((name, tuple(values)) for name, values in history.items())
        return cls(tiles, stages(figures.seconds), iterations, plots, now, figures, round(fps))


def count(number: int) -> str:
    """A number of particles, short."""
    return f"{number:,}" if number < 1e6 else f"{number / 1e6:.2f} M"


def stages(seconds: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """The times of the longest stages [ms] in the order of the step, all others as one."""
    least = sorted(seconds.values(), reverse=True)[min(MOST_STAGES, len(seconds)) - 1] if seconds else 0.0
    least = max(least, LEAST_SHARE * sum(seconds.values()))
    long = tuple((name.replace("_", " "), 1e3 * value) for name, value in seconds.items() if value >= least)
    others = 1e3 * sum(value for value in seconds.values() if value < least)
    return (*long, ("others", others)) if others > 0 else long


class Statistics:
    """Draws the panel along the lower edge of the window."""

    def __init__(self) -> None:
        self._shown = Shown()

    def draw(self, ui: Ui, x: float, width: float, plots: bool, figures: Figures | None, fps: float,
             counts: Mapping[str, int], history: Mapping[str, Sequence[float]]) -> bool:  # fmt: skip
        """Returns whether plots are to be shown."""
        shown = self._shown
        news = figures is not shown.figures or round(fps) != shown.fps
        if figures is not None and news and ui.now - shown.at >= CALM:
            shown = self._shown = Shown.of(figures, fps, counts, history, ui.now)
        with ui.panel(STATISTICS, x, -MARGIN, width, titled=False):
            if not shown.tiles:
                ui.text("Statistics follow with the first step.", dim=True)
                return plots
            with ui.row((*[1.0] * len(shown.tiles), 0.8)):
                for label, value in shown.tiles:
                    ui.tile(label, value)
                plots = ui.fold("Plots", plots)
            ui.stack("Time by stage", dict(shown.stages), "ms")
            if shown.iterations:
                ui.facts("Iterations", dict(shown.iterations))
            if plots:
                ui.space(2)
                with ui.row(len(shown.plots), gap=14.0):
                    for name, values in shown.plots:
                        ui.plot(name, values, PLOTS.get(name, ""))
        return plots
