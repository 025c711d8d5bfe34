"""`pliant inspect`: a run's record as curves over simulated time in one picture, and a table of what they come to."""

import contextlib
import itertools
import json
import math
import os
import warnings
from collections.abc import Iterator
from importlib import import_module
from inspect import signature
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pliant.errors import PliantError
from pliant.io.files import atomic_write
from pliant.run import inspect_probes, probe_files
from pliant.run.folder import RECORD, RunFolder

PICTURE = "inspect.png"
SIZE, DPI = (16.0, 11.0), 100  # [inches] and [pixels per inch]: 1600 x 1100 pixels
HEADING = 0.91  # the panels end here, as a share of the height; title and facts stand above
LARGEST = 1e100  # beyond, a number is as good as infinite: no run means it, and axes cannot show it
SPREAD = 20.0  # values of which the largest is this many times the smallest get a logarithmic axis
FEW = 60  # up to this many frames, each is marked by a dot
LINE = 150  # characters of a line of text
TROUBLE = ("error", "caution")  # rows of the summary in red

INK, GREY = "#222222", "#8a8a8a"
BLUE, ORANGE, GREEN, PURPLE, RED = "#0072b2", "#e07b00", "#009e73", "#a0559a", "#c0392b"  # apart for the colour-blind
CYCLE = [BLUE, ORANGE, GREEN, PURPLE, RED, GREY]
NUMBERS = ("time", "step", "dt", "mean_density_error", "max_density_error", "max_speed", "kinetic_energy",
           "potential_energy", "energy", "wall_seconds")  # of a frame in the record  # fmt: skip
STYLE: Any = {
    "font.size": 12, "axes.titlesize": 14, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.titlepad": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": GREY,
    "axes.grid": True, "axes.axisbelow": True, "grid.color": "#e6e6e6", "lines.linewidth": 1.8, "lines.markersize": 4,
    "legend.frameon": False, "legend.columnspacing": 1.2, "text.color": INK, "text.parse_math": False,  # $ means $
}  # fmt: skip

Record = dict[str, Any]
Curves = dict[str, np.ndarray]  # values over the frames, NaN where there is none
Lines = list[tuple[str, np.ndarray, str]]  # label, values, colour


def inspect(folder: Path, out: Path | None = None) -> Path:
    """Draws the run in `folder` (or in a `run.json`) into a PNG file, prints a summary, and returns the file's path."""
    file, record = read(Path(folder))
    out = Path(file.parent if out is None else out)
    out = out / PICTURE if os.path.isdir(out) else out
    if out.suffix.lower() != ".png":
        raise PliantError(f"the picture is a PNG file, so its name has to end with .png, got {out}")
    curves = read_curves(record)
    draw(record, curves, out)
    console = Console(highlight=False)
    console.print(summary(record, curves))
    inspect_recordings(file.parent, record, out, console)
    return out


def inspect_recordings(folder: Path, record: Record, out: Path, console: Console) -> None:
    """Draws what the probes of a run have recorded, beside its picture, and prints a table of it."""
    names = record.get("probes")
    names = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    found, lost = probe_files.read_all(RunFolder(folder).probes, names)
    for sentence in lost:
        console.print(Text(sentence, style="red"))
    if not found:
        return
    console.print(inspect_probes.table(found))
    shown, path = found[: inspect_probes.MOST_PANELS], inspect_probes.picture_beside(out)
    with _figure(inspect_probes.size_of(shown), path) as figure:
        inspect_probes.draw_panels(figure, shown, _plot, CYCLE)
    console.print(Text(str(path)))


# --- the record -------------------------------------------------------------------------------------


def read(path: Path) -> tuple[Path, Record]:
    """The record's file and what is in it; one sentence if it is not the record of a run with frames."""
    file = path / RECORD if os.path.isdir(path) else path
    try:
        record = json.loads(file.read_bytes())
    except FileNotFoundError:
        there = f"{path} has no {RECORD}" if os.path.isdir(path) else f"there is no folder or file {path}"
        raise PliantError(f"{there}; give the folder that `pliant run` wrote into") from None
    except OSError as error:
        raise PliantError(f"{file} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise PliantError(f"{file} is not a whole JSON file ({_line(error)}); repeat the run") from error
    frames = record.get("frames") if isinstance(record, dict) else None
    if not isinstance(frames, list) or not all(isinstance(frame, dict) for frame in frames):
        raise PliantError(f"{file} is not the record of a Pliant run: it has no list of frames")
    if not frames:
        status = ": ".join(_line(record[key]) for key in ("status", "error") if record.get(key)) or "unknown"
        raise PliantError(f"{file} has no frames; the run's status is {status}")
    return file, record


def _line(value: Any) -> str:
    """Any value as one line of text."""
    return shorten(str(value), LINE, placeholder=" ...")


def _table(value: Any) -> Record:
    return value if isinstance(value, dict) else {}


def number(value: Any) -> float:
    """A finite number, or NaN for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < LARGEST:
        return math.nan
    return float(value)


def read_curves(record: Record) -> Curves:
    """The frames' values by their names in the record, and "momentum/x", "iterations/<solve>", "wall" [ms]."""
    frames = record["frames"]
    curves = {name: np.array([number(frame.get(name)) for frame in frames]) for name in NUMBERS}
    vectors = [v if isinstance(v, list) and len(v) == 3 else [None] * 3 for v in (f.get("momentum") for f in frames)]
    curves |= {f"momentum/{axis}": np.array([number(v[k]) for v in vectors]) for k, axis in enumerate("xyz")}
    solves = [_table(frame.get("iterations")) for frame in frames]
    for name in sorted(set().union(*solves)):
        curves[f"iterations/{name}"] = np.array([number(solve.get(name)) for solve in solves])
    if not np.isfinite(curves["time"]).any():
        fps = number(record.get("fps"))
        curves["time"] = np.arange(len(frames)) / (fps if fps > 0 else 1.0)
    if not np.isfinite(curves["energy"]).any():
        curves["energy"] = curves["kinetic_energy"] + curves["potential_energy"]
    for name in ("dt", "mean_density_error", "max_density_error"):
        curves[name][curves["step"] == 0] = np.nan  # before the first step nothing has been measured
    curves["wall"] = _wall(curves)
    return curves


def _wall(curves: Curves) -> np.ndarray:
    """Wall-clock time of a step on the way to each frame, or of the frame where steps are not counted [ms]."""
    steps = np.diff(curves["step"], prepend=np.nan)
    each = np.where(steps > 0, steps, np.nan) if np.isfinite(curves["step"]).any() else 1.0
    return 1e3 * np.diff(curves["wall_seconds"], prepend=np.nan) / each


def zero_of_energy(curves: Curves) -> float:
    """The lowest potential energy of the run [J]: what lies above it is there to be turned into motion."""
    return _reduce(np.nanmin, curves["potential_energy"], 0.0)


def _reduce(function: Any, values: np.ndarray, otherwise: float = math.nan) -> float:
    """A statistic of the finite values."""
    finite = values[np.isfinite(values)]
    return float(function(finite)) if len(finite) else otherwise


def tolerance(record: Record) -> float:
    """The mean density error that the solver was asked for, if the record tells; otherwise NaN."""
    places = (record, _table(record.get("solver")), _table(record.get("options")))
    given = [number(place.get(key)) for place in places for key in ("tolerance", "max_density_error")]
    return next((value for value in given if value > 0), math.nan)


def changed_options(record: Record) -> str:
    """The options that are not the scene's own defaults; all of them where the scene is not one of Pliant's."""
    options, scene = _table(record.get("options")), str(record.get("scene"))
    defaults: Any = {}
    with contextlib.suppress(ImportError, AttributeError, TypeError, ValueError):
        defaults = signature(import_module(f"pliant.scenes.{scene}").build).parameters
    own = {k: list(p.default) if isinstance(p.default, tuple) else p.default for k, p in defaults.items()}
    return _line(", ".join(f"{k}={v}" for k, v in options.items() if k not in own or own[k] != v))


def particles(record: Record) -> str:
    counts = [number(count) for count in _table(record.get("particles")).values()]
    return f"{np.nansum(counts):,.0f} particles" if counts else ""


def gaps(record: Record) -> str:
    """Says which frames have numbers that are not finite, as when a run blows up; empty if there are none."""
    bad = [f for f in record["frames"] if any(isinstance(v, float) and math.isnan(number(v)) for v in f.values())]
    first = f", first in frame {_line(bad[0].get('frame', '?'))}" if bad else ""
    return f"{len(bad)} of {len(record['frames'])} frames have values that are not finite{first}" if bad else ""


# --- the picture ------------------------------------------------------------------------------------


def draw(record: Record, curves: Curves, out: Path) -> None:
    """Six panels over simulated time."""
    with _figure(SIZE, out) as figure:
        layout: Any = figure.get_layout_engine()
        layout.set(rect=(0.005, 0.005, 0.99, _heading(figure, record)), h_pad=0.12, w_pad=0.12)
        _panels(figure.subplots(3, 2, sharex=True), record, curves)


@contextlib.contextmanager
def _figure(size: tuple[float, float], out: Path) -> Iterator[Any]:
    """A figure of that size [inches] to draw into, which then becomes a PNG file."""
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # without pyplot: no window, no global state
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PliantError(f"pliant inspect draws with matplotlib, which cannot be imported ({error}); "
                          "pip install matplotlib") from error  # fmt: skip
    with mpl.rc_context(STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # letters that the font does not have become boxes
        figure = Figure(figsize=size, dpi=DPI, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure
        with atomic_write(out) as file:
            figure.savefig(file, format="png")


def _heading(figure: Any, record: Record) -> float:
    """Scene, facts and trouble at the top; returns what height is left below them, as a share of the whole."""
    left, facts = 0.012, [changed_options(record), particles(record), f"{len(record['frames'])} frames"]
    facts.append(_line(record.get("status", "unknown status")))
    trouble = [text for text in (_line(record.get("error") or ""), gaps(record)) if text]
    figure.text(left, 0.985, _line(record.get("scene", "a run")), size=20, weight="bold", va="top")
    figure.text(left, 0.948, "   ·   ".join(fact for fact in facts if fact), size=13, color="#555555", va="top")
    figure.text(left, 0.921, "\n".join(trouble), size=13, color=RED, va="top", linespacing=1.4)
    return HEADING - 0.025 * len(trouble)


def _panels(axes: Any, record: Record, curves: Curves) -> None:
    (energy, momentum), (density, iterations), (step, speed) = axes
    t, zero, p = curves["time"], zero_of_energy(curves), [curves[f"momentum/{axis}"] for axis in "xyz"]
    solves = {name.partition("/")[2]: values for name, values in curves.items() if name.startswith("iterations/")}
    _plot(energy, "Energy", "J above the lowest potential", t, [
        ("kinetic", curves["kinetic_energy"], ORANGE), ("potential", curves["potential_energy"] - zero, BLUE),
        ("total", curves["energy"] - zero, INK)])  # fmt: skip
    _plot(momentum, "Momentum", "kg m/s", t, [
        ("x", p[0], BLUE), ("y", p[1], ORANGE), ("z", p[2], GREEN), ("magnitude", np.hypot(np.hypot(*p[:2]), p[2]), INK)
    ])  # fmt: skip
    _plot(density, "Density error", "% of the rest density", t, [
        ("mean", 100 * curves["mean_density_error"], BLUE), ("max", 100 * curves["max_density_error"], ORANGE),
        ("tolerance of the mean", np.full(len(t), 100 * tolerance(record)), GREY)], may_be_log=True)  # fmt: skip
    colours = itertools.cycle(CYCLE)
    _plot(iterations, "Iterations", "per solve", t, [(name, values, next(colours)) for name, values in solves.items()])
    iterations.yaxis.get_major_locator().set_params(integer=True)
    _plot(step, "Time step", "simulated ms", t, [("", 1e3 * curves["dt"], BLUE)])
    _plot(speed, "Largest speed", "m/s", t, [("", curves["max_speed"], BLUE)])
    if np.isfinite(curves["wall"]).any():
        cost, each = step.twinx(), "step" if np.isfinite(curves["step"]).any() else "frame"
        _plot(cost, "", f"wall-clock ms per {each}", t, [("", curves["wall"], ORANGE)])
        cost.grid(False)
        cost.yaxis.label.set_color(ORANGE)
        step.yaxis.label.set_color(BLUE)
        step.set_title("Time step and its cost")
    step.set_xlabel("simulated time [s]")
    speed.set_xlabel("simulated time [s]")


def _plot(axis: Any, title: str, unit: str, t: np.ndarray, lines: Lines, may_be_log: bool = False) -> None:
    """Lines with their legend beside the title, where it hides nothing; or the remark that there are none."""
    axis.set_title(title)
    shown = [(label, values, colour) for label, values, colour in lines if np.isfinite(values).any()]
    if not shown:
        axis.text(0.5, 0.5, "not recorded", transform=axis.transAxes, ha="center", va="center", color=GREY)
        axis.tick_params(left=False, labelleft=False)
        return
    axis.set_ylabel(unit)
    everything = np.concatenate([values for _, values, _ in shown])
    positive = everything[everything > 0]
    log = may_be_log and len(positive) > 0 and positive.max() > SPREAD * positive.min()
    for label, values, colour in shown:
        constant = label.startswith("tolerance")
        axis.plot(t, np.where(values > 0, values, np.nan) if log else values, color=colour, label=label,
                  ls="--" if constant else "-", marker="o" if len(t) <= FEW and not constant else None)  # fmt: skip
    if log:
        axis.set_yscale("log")
        axis.yaxis.set_minor_formatter("")
    elif _reduce(np.min, everything) >= 0:
        most = _reduce(np.max, everything) or 1.0
        axis.set_ylim(-0.03 * most, 1.08 * most)  # against zero, with lines at zero in full view
    axis.yaxis.set_major_formatter("{x:,.10g}")  # matplotlib's own would put powers of ten in the title's way
    if shown[0][0]:
        axis.legend(loc="lower right", bbox_to_anchor=(1.01, 0.98), ncols=len(shown), handlelength=1.2,
                    fontsize=12 if len(shown) <= 4 else 9)  # fmt: skip


# --- the summary ------------------------------------------------------------------------------------


def summary(record: Record, curves: Curves) -> Table:
    """What the curves come to. Rows whose numbers the record does not have are left out."""
    table = Table(title=Text(_line(record.get("scene", "a run"))), title_justify="left", show_header=False)
    planned = number(record.get("seconds")) * number(record.get("fps"))
    of = f" of {max(round(planned), 1) + 1}" if math.isfinite(planned) else ""
    timed = {_line(stage): number(ms) for stage, ms in _table(record.get("milliseconds_per_step")).items()}
    stages = {stage: ms for stage, ms in timed.items() if ms > 0}
    slowest, all_stages = max(stages, key=stages.__getitem__, default=""), sum(stages.values())
    mean, largest = _reduce(np.mean, curves["mean_density_error"]), _reduce(np.max, curves["max_density_error"])
    rows = {
        "options": changed_options(record),
        "particles": particles(record).removesuffix(" particles"),
        "frames": f"{len(record['frames'])}{of}",
        "simulated": f"{_reduce(np.max, curves['time']):.4g} s",
        "steps": f"{number(record.get('steps')):,.0f}",
        "wall time": f"{number(record.get('wall_seconds')):,.1f} s",
        "slowest stage": f"{slowest}, {stages[slowest]:.3g} of {all_stages:.3g} ms per step" if slowest else "",
        "density error": f"mean {100 * mean:.2g} %, max {100 * largest:.2g} %",
        "energy drift": _drift(curves),
        "status": _line(record.get("status", "unknown")),
        "error": _line(record.get("error") or ""),
        "caution": gaps(record),
    }
    for name, text in rows.items():
        if text and (name in TROUBLE or "nan" not in text.split()):
            table.add_row(name, Text(text, style="red" if name in TROUBLE else ""))
    return table


def _drift(curves: Curves) -> str:
    """Change of the total energy over the run, and as a share of the most that there was above the lowest potential."""
    energy = curves["energy"][np.isfinite(curves["energy"])]
    if len(energy) < 2:
        return ""
    change, most = energy[-1] - energy[0], energy.max() - zero_of_energy(curves)
    return f"{change:+.3g} J" + (f" ({100 * change / most:+.2f} % of the largest)" if most > 0 else "")
