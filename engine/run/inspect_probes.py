"""The part of `pliant inspect` that belongs to probes: a picture with one panel for each, and a table."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from pliant.run.probe_files import Recording

PICTURE = "probes.png"
WIDTH, PANEL = 16.0, 3.4  # of the picture, and the height of a row of panels [inches]
ACROSS = 2  # panels in a row
MOST_LINES = 8  # of a panel; the others are left out, and that is told
MOST_PANELS = 24
NUMBERS = ("samples", "last", "min", "max")  # columns of the table
MOST_ROWS = 40  # of the table
TITLE_LINE = 70  # characters that title and legend may have beside each other


def lines_of(one: Recording) -> tuple[list[tuple[str, np.ndarray]], str, str]:
    """The curves of a recording with their labels, their unit, and a title. Of a flow the volume per time."""
    columns = [k for k, name in enumerate(one.columns) if one.quantity != "flow" or name == "volume flow"]
    shown = columns[:MOST_LINES]
    parts = max(len(one.columns) // max(len(one.points), 1), 1)
    places = _places(one.points)
    labels = []
    for k in shown:
        part = one.columns[k].partition(" at (")[0].removeprefix(one.quantity).strip() if parts > 1 else ""
        labels.append(" ".join(word for word in (part, places[k // parts] if places else "") if word))
    title = one.name if one.quantity == one.name else f"{one.name}: {one.quantity}"
    if len(one.points) == 1:
        title += " at ({:.4g}, {:.4g}, {:.4g})".format(*one.points[0])
    if len(shown) < len(columns):
        title += f" (first {len(shown)} of {len(columns)} curves)"
    labels = labels if len(shown) > 1 else [""]
    return [(label, one.values[:, k]) for label, k in zip(labels, shown, strict=True)], one.units[columns[0]], title


def _places(points: np.ndarray) -> list[str]:
    """How several points are told apart: by the coordinates in which they differ."""
    if len(points) < 2:
        return []
    differ = [a for a in range(3) if np.ptp(points[:, a]) > 0]
    if len(differ) == 1:
        return [f"{'xyz'[differ[0]]} = {point[differ[0]]:.4g}" for point in points]
    return ["({:.4g}, {:.4g}, {:.4g})".format(*point) for point in points]


def draw_panels(figure: Any, found: list[Recording], plot: Any, colours: list[str]) -> None:
    """One panel for each recording over simulated time."""
    rows, ends = -(-len(found) // ACROSS), [one.times[-1] for one in found if len(one.times)]
    axes = figure.subplots(rows, ACROSS, squeeze=False).ravel()
    for axis, one in zip(axes, found, strict=False):
        lines, unit, title = lines_of(one)
        plot(axis, title, unit, one.times,
             [(label, values, colours[k % len(colours)]) for k, (label, values) in enumerate(lines)])  # fmt: skip
        axis.set_xlabel("simulated time [s]")
        if ends:
            axis.set_xlim(-0.03 * max(ends), 1.03 * max(ends))
        if axis.get_legend() is not None and len(title) + sum(len(label) + 5 for label, _ in lines) > TITLE_LINE:
            axis.legend(loc="best", ncols=2, fontsize=9, frameon=True, framealpha=0.8, edgecolor="none")
    for axis in axes[len(found) :]:
        axis.set_visible(False)


def table(found: list[Recording]) -> Table:
    """The last value, the least and the largest of each column."""
    made = Table(title="probes", title_justify="left")
    for name in ("probe", "quantity", *NUMBERS, "unit"):
        made.add_column(name, justify="right" if name in NUMBERS else "left", no_wrap=name != "quantity")
    rows = [(one, k) for one in found for k in range(len(one.columns))]
    for one, k in rows[:MOST_ROWS]:
        values = one.values[:, k]
        finite = values[np.isfinite(values)]
        least, most = (finite.min(), finite.max()) if len(finite) else (math.nan, math.nan)
        last = values[-1] if len(values) else math.nan
        cells = [one.name, one.columns[k], str(len(values)), *(f"{v:.4g}" for v in (last, least, most)), one.units[k]]
        made.add_row(*map(Text, cells))
    if len(rows) > MOST_ROWS:
        made.caption = f"and {len(rows) - MOST_ROWS} more columns"
    return made


def size_of(found: list[Recording]) -> tuple[float, float]:
    """Of the picture [inches]."""
    return WIDTH, 0.6 + PANEL * -(-len(found) // ACROSS)


def picture_beside(out: Path) -> Path:
    """Where the picture of the probes goes, beside that of the run."""
    return out.with_name(PICTURE if out.name == "inspect.png" else f"{out.stem}_probes.png")
