"""The part of `pliant inspect` that belongs to probes: a picture with one panel for each, and a table."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from pliant.run.probe_files import Recording

PICTURE = "probes.png"
WIDTH, PANEL, DPI = 16.0, 3.4, 100  # [inches], of the picture and the height of a row, and [pixels per inch]
ACROSS = 2  # panels in a row
MOST_LINES = 8  # of a panel; the others are left out, and that is told
MOST_PANELS = 24
MOST_ROWS = 40  # of the table
TOTALS = ("volume", "mass")  # columns of a flow that are no rates


def lines_of(one: Recording) -> tuple[list[tuple[str, np.ndarray]], str, str]:
    """The curves of a recording with their labels, their unit, and what was left out. Of a flow the volume per time."""
    columns = [k for k, name in enumerate(one.columns) if one.quantity != "flow" or name == "volume flow"]
    shown = columns[:MOST_LINES]
    left_out = f"   (first {len(shown)} of {len(columns)} columns)" if len(shown) < len(columns) else ""
    labels = [one.columns[k].removeprefix(one.quantity).strip() for k in shown] if len(shown) > 1 else [""]
    labels = [label.removeprefix("at ") for label in labels]
    return [(label, one.values[:, k]) for label, k in zip(labels, shown, strict=True)], one.units[columns[0]], left_out


def draw_panels(figure: Any, found: list[Recording], plot: Any, colours: list[str]) -> None:
    """One panel for each recording over simulated time."""
    rows = -(-len(found) // ACROSS)
    axes = np.atleast_1d(figure.subplots(rows, min(ACROSS, len(found)), squeeze=False)).ravel()
    for axis, one in zip(axes, found, strict=False):
        lines, unit, left_out = lines_of(one)
        what = one.quantity if one.quantity.casefold() != one.name.casefold() else ""
        title = one.name + (f": {what}" if what else "") + left_out
        plot(axis, title, unit, one.times,
             [(label, values, colours[k % len(colours)]) for k, (label, values) in enumerate(lines)])  # fmt: skip
        axis.set_xlabel("simulated time [s]")
    for axis in axes[len(found) :]:
        axis.set_visible(False)


def table(found: list[Recording]) -> Table:
    """The last value, the least and the largest of each column."""
    made = Table(title="probes", title_justify="left")
    for name in ("probe", "quantity", "samples", "last", "min", "max", "unit"):
        made.add_column(name, justify="right" if name in ("samples", "last", "min", "max") else "left")
    rows = [(one, k) for one in found for k in range(len(one.columns))]
    for one, k in rows[:MOST_ROWS]:
        values = one.values[:, k]
        finite = values[np.isfinite(values)]
        least, most = (finite.min(), finite.max()) if len(finite) else (math.nan, math.nan)
        last = values[-1] if len(values) else math.nan
        cells = [one.name, one.columns[k], str(len(values)), *(f"{v:.5g}" for v in (last, least, most)), one.units[k]]
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
