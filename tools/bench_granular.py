"""`pliant bench granular`: what a step of sand is made of, and what its grains cost.

A block of sand collapses in a tank, with as many grains for each particle as asked for. `thesis` is the set-up of
Neder 2024, Section 6: 8,192 particles, 500,000 grains and a step of 16 ms, where grains took half of the time.
`bulldozer` has the numbers of Ihmsen et al. 2012: 38,000 particles and 1.4 million grains, which took 2.5 s a frame.
"""

import argparse
import dataclasses
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

from rich.table import Table

from pliant.tools import bench
from pliant.tools.launches import launches_per_step
from pliant.tools.peer import Load

STAGES = ("neighbors", "walls", "warm start", "divergence", "density", "advance", "grains")
FRAMES_PER_SECOND = 60  # of a film, for the time of a frame


@dataclasses.dataclass(frozen=True)
class Case:
    """One block of sand: particles along x, y and z, grains for each, and the longest step [s]."""

    block: tuple[int, int, int]
    grains: int
    dt: float
    steps: int = 60
    warm: int = 20
    spacing: float = 0.08  # [m]


CASES = {"thesis": Case((32, 16, 16), 61, 16e-3), "bulldozer": Case((38, 25, 40), 37, 1 / FRAMES_PER_SECOND)}


def block_of_sand(case: Case) -> Any:
    """It stands against one end of a tank of its width, and falls into the rest of it."""
    import pliant as pl

    size = [k * case.spacing for k in case.block]
    tank = (3 * size[0], 2 * size[1], size[2])
    scene = pl.Scene(particle_radius=case.spacing / 2, max_dt=case.dt)
    scene.add(pl.Box(size=tank, center=tuple(s / 2 for s in tank)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Box(size=tuple(size), center=tuple(s / 2 for s in size)), pl.Granular(grains=case.grains), name="sand")
    return scene


def measure(case: Case) -> dict[str, Any]:
    """Runs one case in this process: milliseconds of each stage, means over the measured steps."""
    sim = block_of_sand(case).build()
    for _ in range(case.warm):
        sim.step()
    load, rows, totals, begun = Load(), [], [], sim.time
    iterations, errors = [], []
    for _ in range(case.steps):
        start = time.perf_counter()
        sim.step()
        totals.append(1e3 * (time.perf_counter() - start))
        rows.append({name: 1e3 * sim.seconds.get(name, 0.0) for name in STAGES})
        iterations.append(sum(result.iterations for result in sim.results.values()))
        errors.append(sim.results["density"].mean)
    ms = {name: fmean(row[name] for row in rows) for name in STAGES}
    total = fmean(totals)
    ms["rest"] = total - sum(ms.values())
    return {
        "particles": sim.particles, "grains": case.grains * sim.particles, "ms": ms, "total": total,
        "median": median(totals), "iterations": fmean(iterations), "mean_density_error": fmean(errors),
        "dt": 1e3 * (sim.time - begun) / case.steps, "share": ms["grains"] / total,
        "factor": 1e-3 * sum(totals) / (sim.time - begun),
        "frame": sum(totals) / (sim.time - begun) / FRAMES_PER_SECOND, "cores": load.cores(),
        "launches": launches_per_step(sim),
    }  # fmt: skip


def milliseconds(stage: str, result: dict[str, Any]) -> str:
    return f"{result['ms'][stage]:.1f}"


def table(results: list[dict[str, Any]]) -> Table:
    """A column for each case."""
    made = Table(title="Sand: milliseconds per step (means)")
    made.add_column("")
    for result in results:
        made.add_column(result["case"], justify="right")
    rows: dict[str, Callable[[dict[str, Any]], str]] = {
        "particles": lambda r: f"{r['particles']:,}", "number of grains": lambda r: f"{r['grains']:,}",
        **{name: partial(milliseconds, name) for name in (*STAGES, "rest")},
        "step": lambda r: f"{r['total']:.1f}", "iterations": lambda r: f"{r['iterations']:.1f}",
        "mean density error": lambda r: f"{r['mean_density_error']:.1e}",
        "length of a step, ms": lambda r: f"{r['dt']:.1f}", "share of grains": lambda r: f"{r['share']:.0%}",
        "time on the clock / simulated": lambda r: f"{r['factor']:.1f}",
        "ms for 1/60 s": lambda r: f"{r['frame']:.0f}", "cores": bench.cores,
    }  # fmt: skip
    for name, text in rows.items():
        made.add_row(name, *(text(result) for result in results))
    return made


def parse(argv: list[str]) -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(prog="pliant bench granular", description=__doc__.split("\n\n")[1])
    parser.add_argument("--cases", default=",".join(CASES), help=f"some of {', '.join(CASES)}")
    parser.add_argument("--steps", type=int, default=60, help="measured steps (60)")
    parser.add_argument("--warm", type=int, default=20, help="steps before them (20)")
    parser.add_argument("--threads", type=int, default=2, help="threads (2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers there")
    options = parser.parse_args(argv)
    for name in ("steps", "warm", "threads"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be 1 or more, got {getattr(options, name)}")
    options.cases = options.cases.split(",")
    for name in options.cases:
        if name not in CASES:
            parser.error(bench.unknown_name("case", name, CASES))
    return options


def work(options: argparse.Namespace) -> None:
    """Runs each case in a process of its own, and prints the table."""
    results = []
    for name in options.cases:
        bench.console.print(f"{name} ...")
        case = dataclasses.replace(CASES[name], steps=options.steps, warm=options.warm)
        command = [sys.executable, "-m", "pliant.tools.bench_granular", "--child"]
        results.append({"case": name, **bench.run_child(command, case, bench.threaded(options.threads))})
    bench.show(results, (table,), options)


def main(argv: list[str]) -> int:
    """`pliant bench granular [options]`; returns the exit status."""
    return bench.command(argv, lambda given: measure(Case(**given | {"block": tuple(given["block"])})),
                         lambda: work(parse(argv)))  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
