"""`pliant bench output`: what frames, checkpoints and pictures cost beside the simulation.

Blocks of frames with and without writing take turns in one process (with, without, without, with), and a block with
writing ends only when all its files are written; so whatever the writing takes away, time of the main thread, of the
cores or of the memory, shows in the ratio of the two, and a flow that gets faster or slower does not.
"""

import argparse
import functools
import tempfile
import time
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from pliant.errors import unknown_name
from pliant.render import Renderer, available
from pliant.render.render_scene import RenderScene
from pliant.run.frames import Series, check_formats, write_frame
from pliant.run.writer import Writer
from pliant.sim import checkpoint
from pliant.tools.bench import BLOCKS, Spec, dam_break

if TYPE_CHECKING:
    import pliant as pl

FPS = 30
BLOCK = 3  # frames
WIDTH, HEIGHT = 1280, 720


def main(argv: list[str]) -> int:
    """`pliant bench output [options]`; returns the exit status."""
    parser = argparse.ArgumentParser(prog="pliant bench output", description=__doc__.split("\n\n")[1])
    parser.add_argument("--size", default="100k", help=f"one of {', '.join(BLOCKS)}")
    parser.add_argument("--rounds", type=int, default=3, help="of four blocks (3)")
    parser.add_argument("--format", default="vtu", help="what is written (vtu)")
    options = parser.parse_args(argv)
    if options.size not in BLOCKS:
        parser.error(unknown_name("size", options.size, BLOCKS))
    if options.rounds < 1:
        parser.error(f"--rounds must be 1 or more, got {options.rounds}")
    sim = dam_break(Spec(BLOCKS[options.size], 0, 0, 1e-3)).build()
    sim.run(0.2)
    with tempfile.TemporaryDirectory() as folder:
        rounds = writing(sim, options.rounds, check_formats(options.format), Path(folder))
        state = saving(sim, Path(folder))
        pictures = drawing(sim, Path(folder)) if available() is None else []
    _print(sim, rounds, state, pictures)
    return 0


def writing(sim: "pl.Simulation", rounds: int, formats: tuple[str, ...],
            folder: Path) -> list[tuple[float, float, float]]:  # fmt: skip
    """Seconds per step with and without writing, and the share of the main thread in it, for each round."""
    render_scene, series, found = RenderScene.of(sim), Series(), []
    for _ in range(rounds):
        folders = (folder, None, None, folder)
        timed = [_block(sim, render_scene, series, formats, place) for place in folders]
        on, off = (timed[0], timed[3]), (timed[1], timed[2])
        found.append((mean(t for t, _ in on), mean(t for t, _ in off), mean(share for _, share in on)))
    return found


def _block(
    sim: "pl.Simulation", render_scene: RenderScene, series: Series, formats: tuple[str, ...], folder: Path | None
) -> tuple[float, float]:
    """Seconds per step of a block, and the share of them that the main thread spent on files."""
    writer, captured, steps, start = Writer(), 0.0, sim.step_count, time.perf_counter()
    made = round(sim.time * FPS)  # names are new each time, as in a run: ext4 makes a writer wait who replaces a file
    for frame in sim.frames_between(sim.time - made / FPS, FPS, range(made + 1, made + BLOCK + 1)):
        if folder is not None:
            begun = time.perf_counter()
            snapshot, _ = frame.snapshot(), sim.stats
            writer(functools.partial(write_frame, folder, snapshot, formats, render_scene, series))
            captured += time.perf_counter() - begun
    writer.finish()
    spent = time.perf_counter() - start
    return spent / (sim.step_count - steps), captured / spent


def saving(sim: "pl.Simulation", folder: Path) -> tuple[float, float, float]:
    """Seconds to capture a checkpoint, seconds to write it, and its megabytes."""
    start = time.perf_counter()
    save = checkpoint.capture(sim)
    captured = time.perf_counter() - start
    start = time.perf_counter()
    save(folder / "state.npz")
    return captured, time.perf_counter() - start, (folder / "state.npz").stat().st_size / 1e6


def drawing(sim: "pl.Simulation", folder: Path) -> list[tuple[float, float]]:
    """Seconds to draw a picture, and to draw it into a PNG file, for eight moments, after two to warm up."""
    render_scene, renderer, found = RenderScene.of(sim), Renderer(WIDTH, HEIGHT), []
    snapshots = [frame.snapshot() for frame in sim.frames_between(sim.time, 10 * FPS, range(1, 11))]
    for snapshot in snapshots:
        start = time.perf_counter()
        renderer.render(render_scene.picture(snapshot, aspect=WIDTH / HEIGHT))
        drawn = time.perf_counter() - start
        start = time.perf_counter()
        renderer.save(folder / "frame.png", render_scene.picture(snapshot, aspect=WIDTH / HEIGHT))
        found.append((drawn, time.perf_counter() - start))
    return found[2:]


def _print(sim: "pl.Simulation", rounds: list, state: tuple[float, float, float],
           pictures: list[tuple[float, float]]) -> None:  # fmt: skip
    out = Console(highlight=False)
    table = Table(title=f"{sim.particles:,} particles, blocks of {BLOCK} frames at {FPS} fps")
    for header in ("with files, ms/step", "without", "cost", "main thread"):
        table.add_column(header, justify="right")
    for on, off, captured in rounds:
        table.add_row(f"{1e3 * on:.1f}", f"{1e3 * off:.1f}", f"{on / off - 1:+.1%}", f"{captured:.1%}")
    table.add_section()
    table.add_row("median", "", f"{median(on / off - 1 for on, off, _ in rounds):+.1%}",
                  f"{median(c for *_, c in rounds):.1%}")  # fmt: skip
    out.print(table)
    captured, written, size = state
    out.print(f"A checkpoint: {1e3 * captured:.0f} ms to capture, {1e3 * written:.0f} ms to write {size:.1f} MB.")
    if pictures:
        drawn, saved = (median(column) for column in zip(*pictures, strict=True))
        out.print(f"A picture of {WIDTH}x{HEIGHT}: {drawn:.2f} s to draw, {saved:.2f} s with its PNG file.")
    else:
        out.print(f"No pictures: {available()}")
