"""`pliant bench emission`: what it costs that particles come while a scene runs.

A broad nozzle fills a tank until it holds the wanted number of particles. Then its steps are timed against those of a
simulation that was loaded from the same state, and so was built with all of them: in turn, both with the flow shut.
"""

import argparse
import dataclasses
import sys
import tempfile
import time
from pathlib import Path
from statistics import fmean, median
from typing import Any

from rich.table import Table

from pliant.tools import bench

SPACING = 0.02  # [m]
SPEED = 2.0  # of the flow [m/s]
LAYERS = 60  # of particles in the tank when it is full


@dataclasses.dataclass(frozen=True)
class Case:
    """So many particles are to come, and so many steps are then compared."""

    particles: int
    steps: int = 10

    @property
    def block(self) -> tuple[int]:
        """How large it is, for messages."""
        return (self.particles,)


def tank(particles: int) -> Any:
    """A tank with a nozzle of most of its width over it."""
    import pliant as pl

    across = max(round((particles / LAYERS) ** 0.5), 4) * SPACING
    scene = pl.Scene(particle_radius=SPACING / 2)
    high = 2 * LAYERS * SPACING
    scene.add(pl.Box(size=(across, high, across), center=(0, high / 2, 0)), pl.Boundary(inside_out=True), name="tank")
    nozzle = pl.Rectangle(size=(0.8 * across, 0.8 * across), center=(0, 0.95 * high, 0))
    scene.emit(nozzle, pl.Fluid(), velocity=(0, -SPEED, 0), name="nozzle")
    return scene


def measure(case: Case) -> dict[str, Any]:
    """Grows a scene in this process, and compares it with one that was built as large."""
    import pliant as pl
    from pliant.solvers.pressure import sweeps

    sim, compiled = tank(case.particles).build(quiet=True), 0
    births, all_steps, capacities = [], [], set()
    while sim.particles < case.particles:
        start = time.perf_counter()
        sim.step()
        all_steps.append(time.perf_counter() - start)
        births.append(sim.seconds["births"])
        capacities.add(sim.world.particles.capacity)
        if sim.step_count == 5:
            compiled = len(sweeps.sweep_together._primal.compiled_kernels)
    sim.change("nozzle", velocity=(0, 0, 0))
    with tempfile.TemporaryDirectory() as folder:
        sim.save(Path(folder) / "state.npz")
        built = pl.load(Path(folder) / "state.npz")
    grown_ms: list[float] = []
    built_ms: list[float] = []
    for _ in range(case.steps):
        for one, times in ((sim, grown_ms), (built, built_ms)):
            start = time.perf_counter()
            one.step()
            times.append(1e3 * (time.perf_counter() - start))
    return {
        "particles": sim.particles, "steps": len(all_steps), "growth_seconds": sum(all_steps),
        "births_share": sum(births) / sum(all_steps), "births_ms": 1e3 * fmean(births),
        "doublings": len(capacities) - 1,
        "compiled_anew": len(sweeps.sweep_together._primal.compiled_kernels) - compiled, "grown_ms": median(grown_ms),
        "built_ms": median(built_ms), "ratio": median(grown_ms) / median(built_ms),
    }  # fmt: skip


def table(results: list[dict[str, Any]]) -> Table:
    """A row for each size."""
    made = Table(title="Particles that come while a scene runs")
    headers = ("particles", "steps to grow", "births, ms a step", "share of growth", "doublings", "compiled anew",
               "grown, ms a step", "built as large", "ratio")  # fmt: skip
    for header in headers:
        made.add_column(header, justify="right")
    for r in results:
        made.add_row(f"{r['particles']:,}", f"{r['steps']:,}", f"{r['births_ms']:.2f}", f"{r['births_share']:.1%}",
                     str(r["doublings"]), str(r["compiled_anew"]), f"{r['grown_ms']:.1f}", f"{r['built_ms']:.1f}",
                     f"{r['ratio']:.3f}")  # fmt: skip
    return made


def parse(argv: list[str]) -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(prog="pliant bench emission", description=__doc__.split("\n\n")[1])
    parser.add_argument("--sizes", default="2000,20000,200000", help="numbers of particles (2000,20000,200000)")
    parser.add_argument("--steps", type=int, default=10, help="steps that are compared (10)")
    parser.add_argument("--threads", type=int, default=2, help="threads (2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers there")
    return bench.checked_sizes(parser, parser.parse_args(argv), 500)


def work(options: argparse.Namespace) -> None:
    """Runs each size in a process of its own, and prints the table."""
    results = []
    for size in options.sizes:
        bench.console.print(f"{size:,} particles ...")
        command = [sys.executable, "-m", "pliant.tools.bench_emission", "--child"]
        results.append(bench.run_child(command, Case(size, options.steps), bench.threaded(options.threads)))
    bench.show(results, (table,), options)


def main(argv: list[str]) -> int:
    """`pliant bench emission [options]`; returns the exit status."""
    return bench.command(argv, lambda given: measure(Case(**given)), lambda: work(parse(argv)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
