"""`pliant bench view`: how fast the window is.

A viewer runs on a virtual screen (Xvfb), and keys hold its camera in motion: what is counted are the pictures that it
draws each second, while the simulation pauses and while it runs, and the steps that are made meanwhile, beside those
that are made when nobody touches it and those of the same scene without a window. Nothing is skipped because it looks
the same: a flying camera makes every picture new.
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from pliant.errors import PliantError, unknown_name
from pliant.scenes import dam_break
from pliant.tools.desk import Desk, Line

RADII = {"10k": 0.02, "60k": 0.011, "100k": 0.0094, "200k": 0.0075}  # [m], of dam_break
TURN = 0.4  # [s] that the camera flies one way before it flies back


def main(argv: list[str]) -> int:
    """`pliant bench view [options]`; returns the exit status."""
    parser = argparse.ArgumentParser(prog="pliant bench view", description=__doc__.split("\n\n")[1])
    parser.add_argument("--sizes", default="10k,100k", help=f"some of {', '.join(RADII)} (10k,100k)")
    parser.add_argument("--seconds", type=float, default=6.0, help="of each measurement (6)")
    options = parser.parse_args(argv)
    sizes = options.sizes.split(",")
    for size in sizes:
        if size not in RADII:
            parser.error(unknown_name("size", size, RADII))
    table = Table("particles", title="pliant view dam_break, 1280 x 720", title_justify="left")
    for heading in ("first s", "paused fps", "flying fps", "steps/s", "still fps", "steps/s", "alone"):
        table.add_column(heading, justify="right")
    for size in sizes:
        try:
            table.add_row(*measured(RADII[size], options.seconds))
        except PliantError as error:
            parser.exit(1, f"{error}\n")
    Console().print(table)
    return 0


def measured(radius: float, seconds: float) -> tuple[str, ...]:
    """A row of the table."""
    sim = dam_break.build(radius=radius).build()
    sim.step()
    begun, steps = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        sim.step()
        steps += 1
    alone, count = steps / (time.perf_counter() - begun), sim.particles
    del sim
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder), "dam_break", "--set", f"radius={radius}", "--paused")
        try:
            first = desk.until(lambda line: True)["clock"] - desk.begun
            desk.focus()
            paused = _rate(desk, seconds)
            desk.key("space")
            desk.until(lambda line: line["step"] > 2)
            before = desk.now()
            running = _rate(desk, seconds)
            after = desk.now()
            time.sleep(seconds)
            last = desk.now()
            still = median(line["fps"] for line in desk.lines() if line["clock"] > after["clock"] + 1.0)
        finally:
            desk.close()
    return (f"{count:,}", f"{first:.1f}", f"{paused:.0f}", f"{running:.0f}", f"{_speed(before, after):.1f}",
            f"{still:.0f}", f"{_speed(after, last):.1f}", f"{alone:.1f}")  # fmt: skip


def _speed(before: Line, after: Line) -> float:
    """Steps each second between two lines of the report."""
    return (after["step"] - before["step"]) / (after["clock"] - before["clock"])


def _rate(desk: Desk, seconds: float) -> float:
    """Pictures each second, while the camera flies to and fro."""
    begun, way = time.time(), "d"
    while time.time() - begun < seconds:
        desk.do("keydown", way)
        time.sleep(TURN)
        desk.do("keyup", way)
        way = "a" if way == "d" else "d"
    return median(line["fps"] for line in desk.lines() if line["clock"] > begun + 1.0)
