"""`pliant bench contact`: what contact adds to the step of an elastic body.

A cube of rubber (1 MPa) is free in space, drops onto a rough floor from 1 mm and settles, and lies there; and four with
a quarter of its particles each lie on each other. Milliseconds a step, and sweeps of the pressure solve, by steps of
2 ms.
"""

import argparse
import dataclasses
import sys
import time
from pathlib import Path
from statistics import fmean, median
from typing import Any

from rich.table import Table

from pliant.tools import bench

SIDE = 0.1  # of the cube [m]
ROOM = 1e-3  # below each body at the start [m]
SETTLED = 0.4  # when what was dropped is at rest [s]
STATES = ("free", "settling", "lying", "stack of four")


@dataclasses.dataclass(frozen=True)
class Case:
    """So many particles in all, and so many steps are timed in each state."""

    particles: int
    steps: int = 20

    @property
    def block(self) -> tuple[int]:
        """How large it is, for messages."""
        return (self.particles,)


def cubes(particles: int, bodies: int, falling: bool) -> Any:
    """Equal cubes over each other, above a floor that they fall on or in space."""
    import pliant as pl

    d = SIDE / max(round((particles / bodies) ** (1 / 3)), 3)
    scene = pl.Scene(particle_radius=d / 2, dt=2e-3, gravity=(0, -9.81 * falling, 0))
    scene.add(pl.Plane(), pl.Boundary(friction=0.5), name="floor")
    for k in range(bodies):
        bottom = (k + 1) * ROOM + k * SIDE + (not falling) * SIDE
        cube = pl.Box(size=(SIDE,) * 3, center=(0, bottom + SIDE / 2, 0))
        scene.add(cube, pl.Elastic(young=1e6, friction=0.5), name=f"cube{k}")
    return scene


def timed(sim: Any, steps: int) -> dict[str, float]:
    """Medians of the step, its elasticity and its pressure solve [ms], and the mean number of sweeps."""
    rows = []
    for _ in range(steps):
        start = time.perf_counter()
        sim.step()
        rows.append((1e3 * (time.perf_counter() - start), 1e3 * sim.seconds["elasticity"],
                     1e3 * sim.seconds["divergence"], sim.results["divergence"].iterations))  # fmt: skip
    step, elasticity, pressure, sweeps = zip(*rows, strict=True)
    return {"step": median(step), "elasticity": median(elasticity), "pressure": median(pressure),
            "sweeps": fmean(sweeps)}  # fmt: skip


def measure(case: Case) -> dict[str, Any]:
    """All states, in this process."""
    states: dict[str, dict[str, float]] = {}
    free = cubes(case.particles, 1, False).build(quiet=True)
    free.step()
    states["free"] = timed(free, case.steps)
    lone = cubes(case.particles, 1, True).build(quiet=True)
    while not lone["cube0"].contacts:
        lone.step()
    states["settling"] = timed(lone, case.steps)
    stack = cubes(case.particles, 4, True).build(quiet=True)
    for name, sim in (("lying", lone), ("stack of four", stack)):
        while sim.time < SETTLED:
            sim.step()
        states[name] = timed(sim, case.steps)
    return {"particles": free.particles, "states": states}


def table(results: list[dict[str, Any]]) -> Table:
    """A row for each size and state."""
    made = Table(title="Elastic bodies that touch, ms a step (medians)")
    for header in ("particles", "", "step", "over free", "elasticity", "pressure", "sweeps"):
        made.add_column(header, justify="right")
    for r in results:
        for name in STATES:
            state = r["states"][name]
            made.add_row(f"{r['particles']:,}", name, f"{state['step']:.1f}",
                         f"{state['step'] / r['states']['free']['step']:.2f}", f"{state['elasticity']:.1f}",
                         f"{state['pressure']:.1f}", f"{state['sweeps']:.1f}")  # fmt: skip
        made.add_section()
    return made


def parse(argv: list[str]) -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(prog="pliant bench contact", description=__doc__.split("\n\n")[1])
    parser.add_argument("--sizes", default="1000,8000,32000", help="numbers of particles (1000,8000,32000)")
    parser.add_argument("--steps", type=int, default=20, help="steps that are timed in each state (20)")
    parser.add_argument("--threads", type=int, default=2, help="threads (2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers there")
    return bench.checked_sizes(parser, parser.parse_args(argv), 100)


def work(options: argparse.Namespace) -> None:
    """Runs each size in a process of its own, and prints the table."""
    results = []
    for size in options.sizes:
        bench.console.print(f"{size:,} particles ...")
        command = [sys.executable, "-m", "pliant.tools.bench_contact", "--child"]
        results.append(bench.run_child(command, Case(size, options.steps), bench.threaded(options.threads)))
    bench.show(results, (table,), options)


def main(argv: list[str]) -> int:
    """`pliant bench contact [options]`; returns the exit status."""
    return bench.command(argv, lambda given: measure(Case(**given)), lambda: work(parse(argv)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
