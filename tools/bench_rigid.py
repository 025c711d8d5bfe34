"""`pliant bench rigid`: rigid bodies by themselves and in water.

`columns` are stacks of ten boxes that stand, `heap` boxes that fall into a bin and come to rest, `water` boxes of five
densities that are dropped into a pool: how long a step takes, and which share of it is due to rigid bodies. Where
`pysplishsplash` is installed, its rigid bodies (which it couples weakly) are dropped into the same pool, turn by turn.
"""

import argparse
import dataclasses
import functools
import sys
import time
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from rich.table import Table

from pliant.core.console import console
from pliant.errors import PliantError
from pliant.tools import bench
from pliant.tools.peer import Load

if TYPE_CHECKING:
    import pliant as pl

SIDE = 0.1  # of a box [m]
HIGH = 10  # boxes in a column
DT = 5e-3  # step of what has no particles [s]
PHASES = 8  # parts of a run of a heap that are told of one by one
DENSITIES = (300.0, 500.0, 700.0, 900.0, 2000.0)  # of what falls into water [kg/m^3]
FRICTION = 0.5
POOL = (48, 32, 32)  # particles along the water of `water`: 49,152
SPACING = 0.04  # of these [m]
CROWD = (10, 2, 10)  # boxes above it
SIZES = {"columns": 1000, "heap": 1000, "water": 200}  # bodies
STEPS = {"columns": 100, "heap": 500, "water": 60}  # that are measured...
WARM = {"columns": 20, "heap": 2, "water": 100}  # ...after so many


@dataclasses.dataclass(frozen=True)
class Spec:
    """One run. Both sides get the same."""

    kind: str
    bodies: int
    steps: int
    warm: int
    born: float = 0.0  # when the process was started [s since the epoch]
    block: tuple[int, int, int] = POOL
    spacing: float = SPACING
    side: float = SIDE
    densities: tuple[float, ...] = DENSITIES

    @property
    def label(self) -> str:
        return f"{self.kind} of {self.bodies:,} bodies"


def places(spec: Spec) -> list[tuple[float, float, float]]:
    """Middles of the boxes of `water`: a lattice above the pool, which peers get as well."""
    length, height, width = (k * spec.spacing for k in spec.block)
    across = max(round((spec.bodies / CROWD[1]) ** 0.5), 1)
    found = []
    for k in range(spec.bodies):
        layer, (i, j) = k // across**2, divmod(k % across**2, across)
        found.append((length * ((i + 0.5) / across - 0.5), height + spec.side * (1.2 + 1.5 * layer),
                      width * ((j + 0.5) / across - 0.5)))  # fmt: skip
    return found


def columns(spec: Spec) -> "pl.Scene":
    """Stacks of ten boxes on a floor."""
    import pliant as pl

    scene = pl.Scene(particle_radius=SPACING / 2, dt=DT)
    scene.add(pl.Plane(), pl.Boundary(friction=FRICTION), name="floor")
    across = max(round((spec.bodies / HIGH) ** 0.5), 1)
    for k in range(spec.bodies):
        column, level = divmod(k, HIGH)
        x, z = (2.0 * SIDE * i for i in divmod(column, across))
        scene.add(pl.Box(size=(SIDE,) * 3, center=(x, (level + 0.5) * SIDE, z)), pl.Rigid(friction=FRICTION))
    return scene


def heap(spec: Spec) -> "pl.Scene":
    """Boxes, each turned in another way, fall into a bin."""
    import numpy as np

    import pliant as pl

    scene = pl.Scene(particle_radius=SPACING / 2, dt=DT)
    apart, rng = 1.9 * SIDE, np.random.default_rng(1)
    across = max(round((spec.bodies / 2) ** (1 / 3)), 1)
    bin_side, levels = (across + 1) * apart, -(-spec.bodies // across**2)
    height = (levels + 4) * apart
    hollow = pl.Box(size=(bin_side, height, bin_side), center=(0, height / 2, 0))
    scene.add(hollow, pl.Boundary(inside_out=True, friction=FRICTION), name="bin")
    for k in range(spec.bodies):
        level, (i, j) = k // across**2, divmod(k % across**2, across)
        center = apart * np.array([i - (across - 1) / 2, level + 1.0, j - (across - 1) / 2])
        box = pl.Box(size=(SIDE,) * 3, center=tuple(center))
        scene.add(box.rotate(tuple(rng.normal(size=3)), float(rng.uniform(0, 90))), pl.Rigid(friction=FRICTION))
    return scene


def water(spec: Spec) -> "pl.Scene":
    """Boxes of several densities are dropped into a pool."""
    import pliant as pl

    scene = pl.Scene(particle_radius=spec.spacing / 2)
    length, height, width = (k * spec.spacing for k in spec.block)
    tank = (length, 2 * height, width)
    scene.add(pl.Box(size=tank, center=(0, height, 0)), pl.Boundary(inside_out=True, friction=FRICTION), name="tank")
    scene.add(pl.Box(size=(length, height, width), center=(0, height / 2, 0)), pl.Fluid(viscosity=0.0), name="water")
    for k, center in enumerate(places(spec)):
        scene.add(pl.Box(size=(spec.side,) * 3, center=center),
                  pl.Rigid(density=spec.densities[k % len(spec.densities)], friction=FRICTION))  # fmt: skip
    return scene


KINDS = {"columns": columns, "heap": heap, "water": water}


class CouplingClock:
    """Adds up how long a step spends on what rigid bodies have to do within the pressure solve."""

    METHODS = ("prepare", "warm_start", "tell_motion", "foresee", "constrain", "tally", "finish")

    def __init__(self, coupling: Any):
        self.seconds = 0.0
        for name in self.METHODS:
            setattr(coupling, name, self._timed(getattr(coupling, name)))

    def _timed(self, method: Any) -> Any:
        @functools.wraps(method)
        def run(*args: Any, **more: Any) -> Any:
            start = time.perf_counter()
            try:
                return method(*args, **more)
            finally:
                self.seconds += time.perf_counter() - start

        return run


def measure(spec: Spec) -> dict[str, Any]:
    """Runs a scene in this process."""
    from pliant.core import backend

    backend.start()
    sim = KINDS[spec.kind](spec).build(quiet=True)
    motion: Any = sim.stage("rigid")
    for _ in range(spec.warm):
        sim.step()
    clock, load, rows, start = CouplingClock(motion.coupling), Load(), [], sim.time
    for _ in range(spec.steps):
        clock.seconds, before = 0.0, time.perf_counter()
        sim.step()
        total = time.perf_counter() - before
        parts = {name: seconds for name, seconds in sim.seconds.items() if name.startswith("rigid")}
        rows.append({"total": total, "rigid": sum(parts.values()), "coupling": clock.seconds,
                     "walls": sim.seconds.get("walls", 0.0) if sim.world.particles.n else 0.0})  # fmt: skip
    ms = {name: 1e3 * median(row[name] for row in rows) for name in rows[0]}
    each = -(-spec.steps // PHASES)
    phases = {str(1 + k // each): 1e3 * fmean(row["total"] for row in rows[k : k + each])
              for k in range(0, spec.steps, each)}  # fmt: skip
    wall_time = sum(row["total"] for row in rows)
    return {
        "particles": sim.world.particles.n, "bodies": spec.bodies, "ms": ms, "phases": phases,
        "ms_mean": 1e3 * wall_time / spec.steps, "real_time": (sim.time - start) / wall_time,
        "share": (ms["rigid"] + ms["coupling"]) / ms["total"], "energy": sim.stats.kinetic_energy,
        "cores": load.cores(), "time": sim.time,
    }  # fmt: skip


def measure_given(given: dict[str, Any]) -> dict[str, Any]:
    """Runs what another process describes."""
    return measure(Spec(**given | {name: tuple(given[name]) for name in ("block", "densities")}))


def compare(kind: str, options: argparse.Namespace, peer: bench.Peer | None) -> dict[str, Any]:
    """Both sides turn by turn; medians over rounds."""
    bodies = options.bodies or SIZES[kind]
    spec = Spec(kind, bodies, options.steps or STEPS[kind], WARM[kind])
    own, ours, theirs = [sys.executable, "-m", "pliant.tools.bench_rigid", "--child"], [], []
    for k in range(options.rounds):
        console.print(f"{kind}, {bodies:,} bodies, round {k + 1} of {options.rounds} ...")
        ours.append(bench.run_child(own, spec, bench.threaded(options.threads)))
        if peer is not None and kind == "water":
            there = [peer.command[0], str(Path(__file__).with_name("peer_rigid.py"))]
            theirs.append(bench.run_child(there, spec, peer.environment))
    result = {"kind": kind} | bench.middle(ours)
    if theirs:
        result["peer"] = bench.middle(theirs)
        result["ratio"] = result["peer"]["ms"]["total"] / result["ms"]["total"]
    return result


def table(results: list[dict[str, Any]]) -> Table:
    """One line for each kind."""
    made = Table("", title="Rigid bodies: milliseconds per step")
    for header in ("bodies", "particles", "median", "mean", "simulated / real", "rigid share", "walls", "peer ms",
                   "peer / ours"):  # fmt: skip
        made.add_column(header, justify="right", no_wrap=True)
    for r in results:
        ms, theirs = r["ms"], ("-", "-")
        if "peer" in r:
            theirs = f"{r['peer']['ms']['total']:.1f}", f"{r['ratio']:.2f}"
        made.add_row(r["kind"], f"{r['bodies']:,.0f}", f"{r['particles']:,.0f}", f"{ms['total']:.2f}",
                     f"{r['ms_mean']:.2f}", f"{r['real_time']:.2f}", f"{100 * r['share']:.0f} %", f"{ms['walls']:.1f}",
                     *theirs)  # fmt: skip
    return made


def phase_table(results: list[dict[str, Any]]) -> Table:
    """How the time of a step changes while bodies fall, collide and come to rest."""
    made = Table("", title="Mean milliseconds per step in each eighth of the run")
    for k in range(PHASES):
        made.add_column(f"{k + 1}", justify="right")
    for r in results:
        made.add_row(r["kind"], *(f"{ms:.2f}" for ms in r["phases"].values()))
    return made


def parse(argv: list[str]) -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(prog="pliant bench rigid", description=__doc__.split("\n\n")[1])
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"some of {', '.join(KINDS)}")
    parser.add_argument("--bodies", type=int, help=f"how many ({', '.join(f'{k}: {n}' for k, n in SIZES.items())})")
    parser.add_argument("--steps", type=int, help="measured steps")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each side (2)")
    parser.add_argument("--threads", type=int, default=2, help="threads of both sides (2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers there")
    bench.add_sides(parser)
    options = parser.parse_args(argv)
    for name in ("bodies", "steps", "rounds", "threads"):
        value = getattr(options, name)
        if value is not None and value < 1:
            parser.error(f"--{name} must be 1 or more, got {value}")
    options.kinds = bench.checked_kinds(parser, options.kinds, KINDS)
    return options


def work(options: argparse.Namespace) -> None:
    """Runs every kind, prints the tables and writes the JSON file."""
    peer = None if options.no_peer else bench.find_peer(options.peer, options.threads)
    if peer is None and not options.no_peer:
        console.print(bench.NO_PEER)
    results = []
    for kind in options.kinds:
        try:
            results.append(compare(kind, options, peer))
        except PliantError as error:
            console.print(f"  {kind}: {error}")
    if not results:
        raise PliantError("no run succeeded")
    bench.show(results, (table, phase_table), options)


def main(argv: list[str]) -> int:
    """`pliant bench rigid [options]`; returns the exit status."""
    return bench.command(argv, measure_given, lambda: work(parse(argv)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
