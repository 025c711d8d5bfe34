"""`pliant bench output`: what frames, checkpoints and pictures cost beside the simulation.

Blocks of frames with and without writing take turns in one process (with, without, without, with, ...), and a block
with writing ends only when all its files are on the disk; so whatever the writing takes away, time of the main thread,
of the cores or of the memory, shows in the ratio of the two.
"""

import argparse
import functools
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from pliant import checkpoint
from pliant.errors import unknown_name
from pliant.frames import Series, check_formats, write_frame
from pliant.render import Renderer, available
from pliant.stage import Stage
from pliant.tools.bench import BLOCKS, Spec, dam_break
from pliant.writer import Writer

FPS = 30
BLOCK = 3  # frames
WIDTH, HEIGHT = 1280, 720


def main(argv: list[str]) -> int:
    """`pliant bench output [options]`; returns the exit status."""
    parser = argparse.ArgumentParser(prog="pliant bench output", description=__doc__.split("\n\n")[1])
    parser.add_argument("--size", default="100k", help=f"one of {', '.join(BLOCKS)}")
    parser.add_argument("--blocks", type=int, default=4, help="pairs of blocks (4)")
    parser.add_argument("--format", default="vtu", help="what is written (vtu)")
    options = parser.parse_args(argv)
    if options.size not in BLOCKS:
        parser.error(unknown_name("size", options.size, BLOCKS))
    if options.blocks < 1:
        parser.error(f"--blocks must be 1 or more, got {options.blocks}")
    sim = dam_break(Spec(BLOCKS[options.size], 0, 0, 1e-3)).build()
    sim.run(0.2)
    with tempfile.TemporaryDirectory() as folder:
        pairs = writing(sim, options.blocks, check_formats(options.format), Path(folder))
        pictures = drawing(sim, Path(folder)) if available() is None else []
    _print(sim, pairs, pictures)
    return 0


def writing(sim: Any, blocks: int, formats: tuple[str, ...], folder: Path) -> list[tuple[float, float, float]]:
    """Seconds per step with and without writing, and of the main thread in capturing, for each pair of blocks."""
    stage, series, pairs = Stage.of(sim), Series(), []
    for k in range(blocks):
        timed: dict[bool, tuple[float, float]] = {}
        for writes in (True, False) if k % 2 == 0 else (False, True):
            timed[writes] = _block(sim, stage, series, formats, folder if writes else None)
        pairs.append((timed[True][0], timed[False][0], timed[True][1]))
    return pairs


def _block(
    sim: Any, stage: Stage, series: Series, formats: tuple[str, ...], folder: Path | None
) -> tuple[float, float]:
    """Seconds per step of a block, and the share of them that the main thread spent on files."""
    writer, captured, steps, start = Writer(), 0.0, sim.step_count, time.perf_counter()
    for frame in sim.frames_between(sim.time, FPS, range(1, BLOCK + 1)):
        if folder is not None:
            begun = time.perf_counter()
            snapshot, _ = frame.snapshot(), sim.stats
            writer(functools.partial(write_frame, folder, snapshot, formats, stage, series))
            captured += time.perf_counter() - begun
    if folder is not None:
        save = checkpoint.capture(sim)
        writer(lambda: save(folder / "state.npz"))
    writer.finish()
    each = (time.perf_counter() - start) / (sim.step_count - steps)
    return each, captured / (time.perf_counter() - start)


def drawing(sim: Any, folder: Path) -> list[tuple[float, float]]:
    """Seconds to describe and draw a picture, and to write it, for eight pictures after the first."""
    stage, renderer, found = Stage.of(sim), Renderer(WIDTH, HEIGHT), []
    for frame in sim.frames_between(sim.time, 10 * FPS, range(1, 10)):
        snapshot = frame.snapshot()
        start = time.perf_counter()
        renderer.render(stage.picture(snapshot, aspect=WIDTH / HEIGHT))
        drawn = time.perf_counter() - start
        start = time.perf_counter()
        renderer.save(folder / "frame.png", stage.picture(snapshot, aspect=WIDTH / HEIGHT))
        found.append((drawn, time.perf_counter() - start))
    return found[1:]


def _print(sim: Any, pairs: list[tuple[float, float, float]], pictures: list[tuple[float, float]]) -> None:
    out = Console(highlight=False)
    table = Table(title=f"{sim.particles:,} particles, blocks of {BLOCK} frames at {FPS} fps and a checkpoint")
    for header in ("with files, ms/step", "without", "cost", "main thread"):
        table.add_column(header, justify="right")
    for on, off, captured in pairs:
        table.add_row(f"{1e3 * on:.1f}", f"{1e3 * off:.1f}", f"{on / off - 1:+.1%}", f"{captured:.1%}")
    table.add_section()
    table.add_row("median", "", f"{median(on / off - 1 for on, off, _ in pairs):+.1%}",
                  f"{median(c for *_, c in pairs):.1%}")  # fmt: skip
    out.print(table)
    if pictures:
        drawn, saved = (median(column) for column in zip(*pictures, strict=True))
        out.print(f"A picture of {WIDTH}x{HEIGHT}: {drawn:.2f} s to draw, {saved:.2f} s with its PNG file.")
    else:
        out.print(f"No pictures: {available()}")
