"""`pliant bench elastic`: the moving bunny of Kugelstadt et al. 2021 (Tables 1 and 2), here and in SPlisHSPlasH.

An elastic body whose bottom is moved to and fro, at several sizes, stiffnesses and time steps, by methods `split` (one
factorisation), `cg` (as split, with the paper's own volume solve) and `peer` (Peer et al. 2018). Ours and theirs run
turn by turn in fresh processes on the same particles; `cg` and `split` both meet their Kugelstadt2021. `--mesh` gives
the bunny, magnified to half a cubic metre (particle radius 0.0127 m at 32k, as in the paper); without it the body is
a ball of that volume.

Both sides have the same zero-energy control, and iterative solves end at the same residual |r| < error |b|. Nothing
comes from a cache of factors.
"""

import argparse
import dataclasses
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table

from pliant.core.console import console
from pliant.errors import PliantError, unknown_name
from pliant.tools import bench
from pliant.tools.launches import launches_per_step
from pliant.tools.peer import Load
from pliant.tools.peer_elastic import FLOOR, peak_megabytes

if TYPE_CHECKING:
    import pliant as pl

SIZES = {"1k": 1000, "4k": 4000, "8k": 8000, "16k": 16000, "32k": 32000, "64k": 64000}
ALL_SIZES, SWEEP_SIZE = "4k,8k,16k,32k,64k", "32k"
METHODS = {"split": "split", "cg": "split", "peer": "peer"}  # ours, and the peer's that it is measured against
TOLERANCES = ("tolerance", "max_error")  # what an option of ours for the residual may be called
BALL = 0.5  # radius [m] of the ball that has the body's volume
BOTTOM = 0.12  # height [m] of the part that is moved, above the lowest point
PARTS = ("stretch", "triangular", "cg")  # of the elasticity stage, where a side tells them: see peer_elastic.STAGES
STAGES = ("elasticity", *PARTS, "neighbors", "warm start", "divergence", "density")
NEAR = 0.02  # difference of the two sides' particle counts that goes without a word


@dataclasses.dataclass(frozen=True)
class Spec:
    """One run. Both sides get the same."""

    method: str  # one of METHODS; the peer knows split and peer
    count: int  # particles, nearly
    mesh: str | None  # file, or a ball
    scale: float  # of the mesh
    radius: float  # of a particle [m]
    peer_radius: float  # the same for the peer: see peer_elastic
    bottom: float  # particles below are moved [m]
    points: str  # file of the particles, for the peer
    young: float  # [Pa]
    dt: float  # [s]
    steps: int
    warm: int  # steps before the measurement
    error: float = 1e-4  # of the residual, over the right-hand side: the peer's default
    max_iterations: int = 100
    poisson: float = 0.33
    density: float = 1000.0  # [kg/m^3]
    zero_energy: float = 1.0
    speed: float = 0.5  # largest of the bottom [m/s]
    frequency: float = 8.0  # of its motion [rad/s]
    floor: float | None = None  # height [m] of a floor on which the body falls, instead of being moved
    born: float = 0.0  # when the process was started [s since the epoch]

    @property
    def block(self) -> tuple[int]:
        """By which `bench.run_child` names a run that failed."""
        return (self.count,)


def body_shape(mesh: str | None) -> Any:
    """The ball, or the mesh magnified to the ball's volume."""
    from pliant.geometry import Mesh, Sphere

    ball = Sphere(radius=BALL)
    return Mesh(mesh, scale=(ball.volume() / abs(Mesh(mesh).volume())) ** (1 / 3)) if mesh else ball


def elastic_solver(spec: Spec) -> tuple[Any, bool]:
    """Our solver, and whether it takes the tolerance asked for. Its elastic step is the scene's."""
    import pliant as pl

    kind: Any = getattr(pl, "Peer" if spec.method == "peer" else "Split")
    known = {field.name for field in dataclasses.fields(kind)}
    limits = dict.fromkeys(TOLERANCES, spec.error) | {"max_iterations": spec.max_iterations}
    taken = {name: value for name, value in limits.items() if name in known}
    volume = {"volume": "cg"} if spec.method == "cg" else {}
    return kind(**taken, **volume), not known.isdisjoint(TOLERANCES)


def elastic_scene(spec: Spec) -> Any:
    """The body with its moving bottom, or over its floor, in Pliant."""
    import pliant as pl

    scene = pl.Scene(particle_radius=spec.radius, dt=spec.dt, elasticity=elastic_solver(spec)[0])
    material = pl.Elastic(density=spec.density, young=spec.young, poisson=spec.poisson, zero_energy=spec.zero_energy)
    shape = pl.Mesh(spec.mesh, scale=spec.scale) if spec.mesh else pl.Sphere(radius=BALL)
    body = scene.add(shape, material, name="body")
    if spec.floor is not None:
        floor = pl.Box(size=FLOOR, center=(0.0, spec.floor - FLOOR[1] / 2, 0.0))
        scene.add(floor, pl.Boundary(), name="floor")
        return scene
    body.fix(lambda x: x[:, 1] < spec.bottom)
    body.move(lambda t: (spec.speed * math.sin(spec.frequency * t), 0.0, 0.0))
    return scene


def measure(spec: Spec) -> dict[str, Any]:
    """Runs the body in this process; the same numbers as `peer_elastic.run` returns."""
    from pliant.core import backend

    backend.start()
    before, start = peak_megabytes(), time.time()
    sim = elastic_scene(spec).build()
    p = sim.world.particles
    rest = p.numpy("x").mean(axis=0, dtype=float)
    factor = factor_seconds(sim)
    sim.step()
    first, startup = time.time() - start, time.time() - spec.born
    for _ in range(spec.warm - 1):
        sim.step()
    load = Load()
    rows = [timed_step(sim) for _ in range(spec.steps)]
    cores = load.cores()
    ms = {name: median(row[name] for row in rows) for name in (*STAGES, "total")}
    centre = p.numpy("x").mean(axis=0, dtype=float) - rest
    return {
        "particles": p.n, "held": int((p.numpy("inverse_density") == 0).sum()), "ms": ms,
        "iterations": fmean(row["iterations"] for row in rows), "tolerant": elastic_solver(spec)[1],
        "factor": factor, "setup": first - ms["total"] / 1e3, "startup": startup,
        "megabytes": peak_megabytes(), "megabytes_before": before, "cores": cores,
        "centre": dict(zip("xyz", map(float, centre), strict=True)), "time": sim.time,
        "launches": launches_per_step(sim),
    }  # fmt: skip


def factor_seconds(sim: "pl.Simulation") -> float:
    """Seconds of the factorisations, waiting for them; ordering included, assembly of the matrix not."""
    return sum(factor.seconds for factor in getattr(sim.elasticity, "factors", list)())


def timed_step(sim: "pl.Simulation") -> dict[str, float]:
    """One step: milliseconds by stage, and iterations of the volume solve (or of Peer's)."""
    start = time.perf_counter()
    sim.step()
    total = 1e3 * (time.perf_counter() - start)
    solves = [sim.results[name] for name in ("volume", "elasticity") if name in sim.results]
    iterations = sum(solve.iterations for solve in solves)
    return {**{name: 1e3 * sim.seconds.get(name, 0.0) for name in STAGES}, "total": total, "iterations": iterations}


@dataclasses.dataclass(frozen=True)
class Contestant:
    """One engine with one method."""

    engine: str
    method: str
    command: list[str]
    environment: dict[str, str]

    @property
    def name(self) -> str:
        return f"{self.engine} {self.method}"


def contestants(methods: list[str], threads: int, peer: bench.Peer | None) -> list[Contestant]:
    """Those who take part, in the order of their turns."""
    own, script = [sys.executable, "-m", "pliant.tools.bench_elastic", "--child"], Path(__file__)
    found = [Contestant("Pliant", method, own, bench.threaded(threads)) for method in methods]
    if peer is not None:
        there = [peer.command[0], str(script.with_name("peer_elastic.py"))]
        rivals = dict.fromkeys(METHODS[method] for method in methods)
        found += [Contestant("SPlisHSPlasH", method, there, peer.environment) for method in rivals]
    return sorted(found, key=lambda one: METHODS[one.method] != "split")


def cases(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Spec]]:
    """The name of the size and the settings of each row; particles are sampled once for each size."""
    from pliant.geometry import sample_regular

    shape = body_shape(options.mesh)
    for size in sorted(options.sizes, key=SIZES.__getitem__):
        radius = 0.5 * (shape.volume() / SIZES[size]) ** (1 / 3)
        points = folder / f"{size}.npy"
        x, volume = sample_regular(shape, 2 * radius)
        np.save(points, x)
        bottom = float(shape.bounds()[0][1]) + BOTTOM
        for young in options.young:
            for dt in options.dt:
                yield size, Spec(
                    "split", SIZES[size], options.mesh, float(shape.scale) if options.mesh else 1.0,
                    radius, 0.5 * volume ** (1 / 3), bottom, str(points), young, dt, options.steps, options.warm,
                    options.error,
                )  # fmt: skip


def compare(spec: Spec, rounds: int, tries: int, everyone: list[Contestant]) -> dict[str, dict[str, Any]]:
    """Medians of each contestant, by name. Who fails is named, and left out."""
    runs: dict[str, list[dict[str, Any]]] = {one.name: [] for one in everyone}
    for k in range(rounds):
        console.print(f"{spec.count:,} particles, {setting(spec)}, round {k + 1} of {rounds} ...")
        for one in everyone:
            if k and not runs[one.name]:
                continue
            try:
                result = quietest(dataclasses.replace(spec, method=one.method), tries, one)
            except PliantError as error:
                console.print(f"  {one.name}: {error}")
                continue
            runs[one.name].append(result)
            if result["iterations"] and not result["tolerant"]:
                console.print(f"  {one.name} has no option for its tolerance")
            others = result["cores"]["others"]
            if others > bench.BUSY:
                console.print(f"  while {one.name} ran, other processes kept {others:.1f} cores busy")
    counts = [found[0]["particles"] for found in runs.values() if found]
    if counts and max(counts) > (1 + NEAR) * min(counts):
        console.print(f"  the sides differ: {min(counts):,} to {max(counts):,} particles")
    return {name: bench.middle(found) for name, found in runs.items() if found}


def quietest(spec: Spec, tries: int, one: Contestant) -> dict[str, Any]:
    """The first run that other processes did not disturb, or of so many tries the least disturbed one."""
    found: list[dict[str, Any]] = []
    while len(found) < tries and (not found or found[-1]["cores"]["others"] > bench.BUSY):
        with tempfile.TemporaryDirectory() as empty:  # no factors of earlier runs
            environment = one.environment | {"PLIANT_CACHE": empty}
            found.append(bench.run_child(one.command, spec, environment))  # type: ignore[arg-type]
    return min(found, key=lambda result: result["cores"]["others"])


def ratios(runs: dict[str, dict[str, Any]], method: str) -> dict[str, float]:
    """Time of ours over theirs, of the elasticity stage and of the whole step; empty if one of them is missing."""
    ours, theirs = runs.get(f"Pliant {method}"), runs.get(f"SPlisHSPlasH {METHODS[method]}")
    if not ours or not theirs:
        return {}
    return {stage: ours["ms"][stage] / theirs["ms"][stage] for stage in ("elasticity", "total")}


def time_table(results: list[dict[str, Any]]) -> Table:
    """Milliseconds of the elasticity stage, of its parts and of the whole step; ratios stand on our lines."""
    headers = ("elasticity", *PARTS, "iter.", "step", "ratio", "of step")
    table = _table("Milliseconds per step (medians; ratio: Pliant / SPlisHSPlasH, ? disturbed)", results, headers)
    for result, name, run in _lines(table, results):
        ratio = result["ratios"].get(name.split()[1], {}) if name.startswith("Pliant") else {}
        doubt = "?" if any(run["cores"]["others"] > bench.BUSY for run in result["runs"].values()) else ""
        table.add_row(
            _case(results, result, run), name, f"{run['ms']['elasticity']:.2f}",
            *(_or_dash(run["ms"].get(part, 0.0), ".2f") for part in PARTS), _or_dash(run["iterations"], ".1f"),
            f"{run['ms']['total']:.2f}",
            *(f"{ratio[stage]:.2f}{doubt}" if ratio else "-" for stage in ("elasticity", "total")),
        )  # fmt: skip
    return table


def work_table(results: list[dict[str, Any]]) -> Table:
    """What is done once, memory, and how far the centre of mass went: both sides shall agree on that."""
    headers = ("factor s", "setup s", "peak MB", "before", "held", "dx mm", "dy mm", "cores")
    table = _table("Preparation, memory (VmHWM), way of the centre, cores (own + others')", results, headers)
    for result, name, run in _lines(table, results):
        table.add_row(
            _case(results, result, run), name, _or_dash(run["factor"], ".2f"), f"{run['setup']:.2f}",
            f"{run['megabytes']:.0f}", f"{run['megabytes_before']:.0f}", f"{run['held']:,.0f}",
            *(f"{1e3 * run['centre'][axis]:.2f}" for axis in "xy"), bench.cores(run),
        )  # fmt: skip
    return table


def _table(title: str, results: list[dict[str, Any]], headers: tuple[str, ...]) -> Table:
    sizes, settings = ({result[key] for result in results} for key in ("size", "setting"))
    sweep = len(settings) > 1
    fixed = (sizes if len(sizes) == 1 else set()) if sweep else settings
    table = Table(title=", ".join([title, *fixed]))
    for header in ("setting" if sweep else "particles", "", *headers):
        table.add_column(header, justify="right" if header else "left", no_wrap=True)
    return table


def _lines(table: Table, results: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str, dict[str, Any]]]:
    """Results one contestant at a time, with a rule between cases."""
    for result in results:
        for name, run in result["runs"].items():
            yield result, name, run
        table.add_section()


def _case(results: list[dict[str, Any]], result: dict[str, Any], run: dict[str, Any]) -> str:
    """What sets one case apart: its size, its setting or both."""
    sizes, settings = ({other[key] for other in results} for key in ("size", "setting"))
    if len(settings) == 1:
        return bench.particles(run)
    return result["setting"] if len(sizes) == 1 else f"{bench.particles(run)}, {result['setting']}"


def _or_dash(value: float, form: str) -> str:
    return f"{value:{form}}" if value else "-"


def setting(spec: Spec) -> str:
    return f"{spec.young:.0e} Pa, {1e3 * spec.dt:g} ms".replace("e+0", "e")


def parse(argv: list[str]) -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(prog="pliant bench elastic", description=__doc__.split("\n\n")[1])
    parser.add_argument("--sizes", help=f"some of {', '.join(SIZES)} ({ALL_SIZES}; {SWEEP_SIZE} for a sweep)")
    parser.add_argument("--methods", default="split,peer", help="some of split, cg, peer (split,peer)")
    parser.add_argument("--mesh", metavar="FILE", help="the bunny, or any other body (a ball)")
    parser.add_argument("--young", default="1e6", metavar="PA,...", help="Young's moduli (1e6)")
    parser.add_argument("--dt", default="2e-3", metavar="S,...", help="time steps (2e-3)")
    parser.add_argument("--steps", type=int, default=40, help="measured steps (40)")
    parser.add_argument("--warm", type=int, default=10, help="steps before them (10)")
    parser.add_argument("--error", type=float, default=1e-4, help="relative residual of both sides (1e-4)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each contestant (3)")
    parser.add_argument("--tries", type=int, default=1, help="for each run, while other processes disturb it (1)")
    parser.add_argument("--threads", type=int, default=2, help="threads of both sides (2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers there")
    sides = parser.add_mutually_exclusive_group()
    sides.add_argument("--reference", "--peer", dest="peer", metavar="PYTHON",
                       help="interpreter of the environment that has pysplishsplash")  # fmt: skip
    sides.add_argument("--no-reference", "--no-peer", dest="no_peer", action="store_true", help="run ours alone")
    options = parser.parse_args(argv)
    for name in ("steps", "warm", "error", "rounds", "tries", "threads"):
        if getattr(options, name) <= 0:
            parser.error(f"--{name} must be positive, got {getattr(options, name)}")
    for name in ("young", "dt"):
        try:
            values = [float(word) for word in getattr(options, name).split(",")]
        except ValueError:
            parser.error(f"--{name} must be numbers with commas between, got {getattr(options, name)!r}")
        if not all(0 < value < math.inf for value in values):
            parser.error(f"--{name} must be positive, got {getattr(options, name)}")
        setattr(options, name, values)
    sweep = len(options.young) * len(options.dt) > 1
    options.sizes = (options.sizes or (SWEEP_SIZE if sweep else ALL_SIZES)).split(",")
    options.methods = options.methods.split(",")
    for kind, names, known in (("size", options.sizes, SIZES), ("method", options.methods, METHODS)):
        for name in names:
            if name not in known:
                parser.error(unknown_name(kind, name, known))
    if options.mesh:
        options.mesh = str(Path(options.mesh).absolute())
    return options


def run(options: argparse.Namespace) -> None:
    """Runs all cases, prints the tables and writes the JSON file."""
    peer = None if options.no_peer else bench.find_peer(options.peer, options.threads)
    if peer is None and not options.no_peer:
        console.print(bench.NO_PEER)
    everyone, results = contestants(options.methods, options.threads, peer), []
    with tempfile.TemporaryDirectory() as folder:
        for size, spec in cases(options, Path(folder)):
            runs = compare(spec, options.rounds, options.tries, everyone)
            results.append({
                "size": size, "setting": setting(spec), "radius": spec.radius, "young": spec.young, "dt": spec.dt,
                "runs": runs, "ratios": {method: ratios(runs, method) for method in options.methods},
            })  # fmt: skip
    if not any(result["runs"] for result in results):
        raise PliantError("no run succeeded")
    bench.show(results, (time_table, work_table), options)


def main(argv: list[str]) -> int:
    """`pliant bench elastic [options]`; returns the exit status."""
    return bench.command(argv, lambda given: measure(Spec(**given)), lambda: run(parse(argv)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
