"""`pliant bench`: how fast the engine is, what its steps are made of, and how it compares with SPlisHSPlasH.

`fluid` runs one dam break at several sizes, here and, where `pysplishsplash` is installed, there, turn by turn in
fresh processes, so that whatever else the machine does meets both sides alike. `scaling` runs ours at a
fixed number of iterations and compares the time per particle. `output` measures what files and pictures cost,
`elastic` the solvers of elastic bodies, `contact` what their contact adds, `sampling` the filling of meshes with
particles, `skin` the surfaces that follow elastic bodies, `granular` sand and its grains, `emission` particles that
come while a scene runs, `view` the window, `small` steps of 100 to 5,000 particles, `rigid` rigid bodies, and `history`
shows how fast earlier versions were.
"""

import argparse
import ctypes.util
import dataclasses
import importlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from pliant.core.console import console
from pliant.errors import PliantError, unknown_name
from pliant.tools.launches import launches_per_step
from pliant.tools.peer import Load

if TYPE_CHECKING:
    import pliant as pl

# Particles along x, y and z of the block of water.
BLOCKS = {"2k": (12, 14, 12), "10k": (20, 25, 20), "50k": (32, 40, 39), "100k": (40, 50, 50), "200k": (50, 64, 62),
          "500k": (68, 86, 86)}  # fmt: skip
OTHERS = ("output", "elastic", "contact", "sampling", "skin", "granular", "emission", "view", "small",
          "rigid", "history")  # each in a file  # fmt: skip
MODES = ("fluid", "scaling", *OTHERS)
SOLVERS = ("DFSPH", "IISPH")
SOLVES = ("density", "divergence")
STAGES = ("neighbors", "walls", "warm start", "divergence", "density")
SCALING_ITERATIONS = 8
UNREACHABLE = 1e-12  # a tolerance that only the bound on iterations ends
LOOSEST = 0.1  # a tolerance that leaves the second solve idle, so that the number of iterations is fixed
GUARD_BYTES = 40  # per particle: the copies of positions, velocities and other numbers that the guard can put back
BUSY = 0.2  # cores that others may use before a run is called disturbed
PLAIN_WIDTH = 120  # of tables in files and pipes
NO_PEER = ("SPlisHSPlasH is not installed here: make an environment of its own, `pip install pysplishsplash` in it, "
           "and name its interpreter with --reference PYTHON.")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Spec:
    """One run of the dam break. Both sides get the same."""

    block: tuple[int, int, int]
    steps: int
    warm: int  # steps before the measurement
    error: float  # mean density error that ends the density solve
    iterations: int | None = None  # exactly so many in both solves, whatever the error
    divergence_error: float = 1e-3
    min_iterations: int = 2
    max_iterations: int = 100
    spacing: float = 0.05  # [m]
    cfl: float = 0.4
    max_dt: float = 5e-3  # [s]
    solver: str = "DFSPH"  # or IISPH
    born: float = 0.0  # when the process was started [s since the epoch]


def dam_break(spec: Spec) -> Any:
    """A block of water at one end of a tank of its width, three times its length and twice its height."""
    import pliant as pl

    length, height, width = (k * spec.spacing for k in spec.block)
    fixed = spec.iterations
    counts = dict(min_iterations=fixed or spec.min_iterations, max_iterations=fixed or spec.max_iterations)
    pressure: Any
    if spec.solver == "IISPH":
        pressure = pl.IISPH(max_density_error=UNREACHABLE if fixed else spec.error, **counts)
    else:
        divergence = UNREACHABLE if fixed else spec.divergence_error
        pressure = pl.DFSPH(max_density_error=LOOSEST if fixed else spec.error, max_divergence_error=divergence,
                            **counts)  # fmt: skip
    scene = pl.Scene(particle_radius=spec.spacing / 2, pressure=pressure, cfl=spec.cfl, max_dt=spec.max_dt)
    tank = (3 * length, 2 * height, width)
    scene.add(pl.Box(size=tank, center=tuple(s / 2 for s in tank)), pl.Boundary(inside_out=True), name="tank")
    water = (length, height, width)
    scene.add(pl.Box(size=water, center=tuple(s / 2 for s in water)), pl.Fluid(viscosity=0.0), name="water")
    return scene


def measure(spec: Spec) -> dict[str, Any]:
    """Runs the dam break in this process. Each stage is a median over steps, so they add up only nearly."""
    from pliant.core import backend
    from pliant.tools import bandwidth

    backend.start()
    before = resident_bytes()
    sim = dam_break(spec).build()
    sim.step()
    startup = time.time() - spec.born
    for _ in range(spec.warm - 1):
        sim.step()
    load = Load()
    rows = [timed_step(sim) for _ in range(spec.steps)]
    cores = load.cores()
    ms = {name: median(row[name] for row in rows) for name in (*STAGES, "rest", "total")}
    p = sim.world.particles
    resident, speed = (resident_bytes() - before) / p.n, bandwidth.triad_bandwidth()  # in this order
    sweeps = {solve: fmean(row[f"{solve} iterations"] for row in rows) for solve in SOLVES}
    least = bandwidth.least_bytes(p.n, p.n * sim.world.neighbors.mean_count, sweeps)
    return {
        "particles": p.n, "ms": ms, "ms_mean": fmean(row["total"] for row in rows), "startup": startup,
        "cores": cores, "time": sim.time,
        "iterations": sweeps, "bandwidth": speed, "memory": bandwidth.memory_shares(least, ms, speed),
        "mean_density_error": fmean(row["error"] for row in rows),
        "compression": float((p.numpy("density") + p.numpy("wall_density") - 1).clip(min=0).mean()),
        "bytes_per_particle": bytes_per_particle(sim), "resident_per_particle": resident,
        "launches": launches_per_step(sim),
    }  # fmt: skip


def timed_step(sim: "pl.Simulation") -> dict[str, float]:
    """One step: milliseconds by stage, iterations and error.

    Asks the step itself, not `sim.stats`, which sums up momentum and energy anew each time.
    """
    start = time.perf_counter()
    sim.step()
    total = 1e3 * (time.perf_counter() - start)
    ms, results = {name: 1e3 * sim.seconds.get(name, 0.0) for name in STAGES}, sim.results
    return {
        **ms, "rest": total - sum(ms.values()), "total": total, "error": results["density"].mean,
        **{f"{solve} iterations": results[solve].iterations if solve in results else 0 for solve in SOLVES},
    }  # fmt: skip


def bytes_per_particle(sim: "pl.Simulation") -> float:
    """All arrays of a running simulation: particles, neighbor lists, wall maps, and the guard's copies."""
    world = sim.world
    walls = sum(wall.map.bytes for wall in world.walls.walls if wall.map is not None)
    own = world.particles.bytes_per_element + world.neighbors.bytes_per_particle
    return own + walls / world.particles.n + GUARD_BYTES


def resident_bytes() -> float:
    """Memory that this process holds now; not a number where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * float(os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError, AttributeError):
        return math.nan


def run_child(command: list[str], spec: Any, environment: dict[str, str]) -> dict[str, Any]:
    """Runs one measurement in a process of its own and reads the JSON object on its last line."""
    born = {"born": time.time()} if hasattr(spec, "born") else {}
    asked = json.dumps(dataclasses.asdict(spec) | born)
    done = subprocess.run([*command, asked], capture_output=True, text=True, env=environment, check=False)
    answers = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not answers:
        last = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()[-1]
        label = getattr(spec, "label", None) or f"{math.prod(spec.block):,} particles"
        raise PliantError(f"a run of {label} failed: {last}")
    return json.loads(answers[-1])


def threaded(threads: int) -> dict[str, str]:
    """An environment in which OpenMP and Taichi use that many threads."""
    return {**os.environ, "OMP_NUM_THREADS": str(threads), "TI_CPU_MAX_NUM_THREADS": str(threads)}


@dataclasses.dataclass(frozen=True)
class Peer:
    """A Python interpreter that can import pysplishsplash, and the environment it needs for that."""

    command: list[str]
    environment: dict[str, str]


def find_peer(python: str | None, threads: int) -> Peer | None:
    """The interpreter asked for, or the running one if it has the peer. Some of the peer's wheels bring a copy of
    libGLdispatch that crashes on import; loading the system's first helps."""
    plain = threaded(threads)
    library = ctypes.util.find_library("GLdispatch") or "libGLdispatch.so.0"
    for environment in (plain, {**plain, "LD_PRELOAD": library}):
        command = [python or sys.executable, "-c", "import pysplishsplash"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        except OSError as error:
            sentence = f"--reference must name a Python interpreter, got {python!r}: {error.strerror}"
            raise PliantError(sentence) from error
        if done.returncode == 0:
            script = Path(__file__).with_name("peer.py")
            return Peer([command[0], str(script)], environment)
    if python:
        raise PliantError(f"{python!r} cannot import pysplishsplash; install it there or leave --reference out")
    return None


def middle(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians over rounds, number by number."""
    return {
        key: middle([r[key] for r in results]) if isinstance(value, dict) else median(r[key] for r in results)
        for key, value in results[0].items()
    }


def compare(spec: Spec, rounds: int, threads: int, peer: Peer | None) -> dict[str, Any]:
    """Runs both sides turn by turn and returns the medians of each."""
    ours: list[dict[str, Any]] = []
    theirs: list[dict[str, Any]] = []
    for k in range(rounds):
        console.print(f"{math.prod(spec.block):,} particles, round {k + 1} of {rounds} ...")
        ours.append(run_child([sys.executable, "-m", "pliant.tools.bench", "--child"], spec, threaded(threads)))
        if peer is not None:
            theirs.append(run_child(peer.command, spec, peer.environment))
        for name, runs in (("Pliant", ours), ("the peer", theirs)):
            others = runs[-1]["cores"]["others"] if runs else 0.0
            if others > BUSY:
                console.print(f"  while {name} ran, other processes kept {others:.1f} cores busy")
    result: dict[str, Any] = {"ours": middle(ours), "totals": [r["ms"]["total"] for r in ours]}
    if theirs:
        result |= {"peer": middle(theirs), "peer_totals": [r["ms"]["total"] for r in theirs]}
        result["ratio"] = result["peer"]["ms"]["total"] / result["ours"]["ms"]["total"]
    return result


def time_table(results: list[dict[str, Any]]) -> Table:
    """Milliseconds by stage, and the peer's beside."""
    with_peer = "peer" in results[0]
    table = Table(title="Milliseconds per step (medians)")
    headers = ["particles", *STAGES, "rest", "total"]
    headers += ["peer total", "neighb.", "peer / ours"] if with_peer else []
    for header in headers:
        table.add_column(header, justify="right")
    for result in results:
        ms = result["ours"]["ms"]
        row = [particles(result["ours"]), *(f"{ms[name]:.2f}" for name in (*STAGES, "rest", "total"))]
        if with_peer:
            theirs = result["peer"]["ms"]
            row += [f"{theirs['total']:.2f}", f"{theirs['neighbors']:.2f}", f"{result['ratio']:.2f}"]
        table.add_row(*row)
    return table


def work_table(results: list[dict[str, Any]]) -> Table:
    """Iterations (density / divergence), error left, speed and memory."""
    with_peer = "peer" in results[0]
    table = Table(title="Work and memory (iterations: density / divergence; cores: own + others'; RSS: growth)")
    headers = ["particles", "iterations", "error", "particles/s", "B/part.", "RSS/part.", "start s", "cores"]
    headers += ["peer iter.", "peer cores"] if with_peer else []
    for header in headers:
        table.add_column(header, justify="right", no_wrap=True)
    for result in results:
        r = result["ours"]
        memory = [f"{r[key]:.0f}" for key in ("bytes_per_particle", "resident_per_particle")]
        speed = 1e3 * r["particles"] / r["ms"]["total"]
        row = [particles(r), iterations(r), f"{r['mean_density_error']:.1e}", f"{speed:,.0f}", *memory]
        row += [f"{r['startup']:.1f}", cores(r)]
        if with_peer:
            row += [iterations(result["peer"]), cores(result["peer"])]
        table.add_row(*row)
    return table


def memory_table(results: list[dict[str, Any]]) -> Table:
    """How much of the time of each stage memory alone would take (`bandwidth.least_bytes`), in percent."""
    speed = max(result["ours"]["bandwidth"] for result in results)
    table = Table(title=f"Least time for memory, in percent of the time taken (triad: {speed / 1e9:.1f} GB/s)")
    for header in ("particles", *STAGES, "total"):
        table.add_column(header, justify="right")
    for result in results:
        shares = result["ours"]["memory"]
        table.add_row(particles(result["ours"]), *(f"{100 * shares.get(name, 0):.0f}" for name in (*STAGES, "total")))
    return table


def scaling_table(results: list[dict[str, Any]]) -> Table:
    """Time per particle, against that of the smallest run."""
    table = Table(title="Time per particle and step")
    for header in ("particles", "ns", "of the smallest", "iterations"):
        table.add_column(header, justify="right")
    for result in results:
        ns, least = (nanoseconds(r["ours"]) for r in (result, results[0]))
        table.add_row(particles(result["ours"]), f"{ns:.0f}", f"{ns / least:.2f}", iterations(result["ours"]))
    return table


def particles(side: dict[str, Any]) -> str:
    return f"{side['particles']:,.0f}"


def iterations(side: dict[str, Any]) -> str:
    return f"{side['iterations']['density']:.1f} / {side['iterations']['divergence']:.1f}"


def cores(side: dict[str, Any]) -> str:
    """Cores busy with the run, and with anything else: more than a little of that spoils the measurement."""
    return f"{side['cores']['own']:.1f} + {side['cores']['others']:.1f}"


def nanoseconds(side: dict[str, Any]) -> float:
    """Time per particle and step."""
    return 1e6 * side["ms"]["total"] / side["particles"]


def parse(argv: list[str]) -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(prog="pliant bench", description=__doc__.split("\n\n")[1])
    parser.add_argument("mode", nargs="?", choices=MODES, default="fluid")
    parser.add_argument("--sizes", default="10k,50k,100k,200k,500k", help=f"some of {', '.join(BLOCKS)}")
    parser.add_argument("--solver", choices=SOLVERS, default="DFSPH", help="pressure solver of both sides (DFSPH)")
    parser.add_argument("--steps", type=int, default=60, help="measured steps (60)")
    parser.add_argument("--warm", type=int, default=10, help="steps before them (10)")
    parser.add_argument("--error", type=float, default=1e-3, help="mean density error of both solvers (1e-3)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each side (3)")
    parser.add_argument("--threads", type=int, default=2, help="threads of both sides (2)")
    parser.add_argument("--iterations", type=int, help="exactly so many iterations in each solve, for both sides")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers there")
    add_sides(parser)
    options = parser.parse_args(argv)
    for name in ("steps", "warm", "error", "rounds", "threads", "iterations"):
        value = getattr(options, name)
        if value is not None and value <= 0:
            parser.error(f"--{name} must be positive, got {value}")
    if options.mode == "scaling" and options.peer:
        parser.error("--reference belongs to fluid; scaling runs ours alone")
    options.sizes = options.sizes.split(",")
    for size in options.sizes:
        if size not in BLOCKS:
            parser.error(unknown_name("size", size, BLOCKS))
    return options


def bench(options: argparse.Namespace) -> None:
    """Runs all sizes, prints the tables and writes the JSON file."""
    scaling = options.mode == "scaling"
    peer = None
    if not scaling and not options.no_peer:
        peer = find_peer(options.peer, options.threads)
        if peer is None:
            console.print(NO_PEER)
    count = options.iterations or (SCALING_ITERATIONS if scaling else None)
    results = []
    for size in sorted(options.sizes, key=lambda size: math.prod(BLOCKS[size])):
        spec = Spec(BLOCKS[size], options.steps, options.warm, options.error, count,
                    solver=options.solver)  # fmt: skip
        results.append({"size": size, **compare(spec, options.rounds, options.threads, peer)})
    show(results, (scaling_table, growth) if scaling else (time_table, memory_table, work_table), options)


def growth(results: list[dict[str, Any]]) -> str:
    """How well it scales, in a sentence."""
    times = nanoseconds(results[-1]["ours"]) / nanoseconds(results[0]["ours"])
    return f"A particle of the largest run takes {times:.2f} times as long as one of the smallest."


def show(results: list[dict[str, Any]], parts: Iterable[Callable[[list[dict[str, Any]]], Any]], options: Any,
         width: int = PLAIN_WIDTH) -> None:  # fmt: skip
    """Prints what each part makes of the results, and writes them into the file that was asked for."""
    out = Console(highlight=False)
    if not out.is_terminal:
        out = Console(highlight=False, width=width)
    for part in parts:
        out.print(part(results))
    if options.json:
        settings = {key: value for key, value in vars(options).items() if key not in ("json", "peer", "no_peer")}
        text = json.dumps({"settings": settings, "results": results}, indent=1, default=str)
        options.json.write_text(text + "\n")


def add_sides(parser: argparse.ArgumentParser) -> None:
    """Whether SPlisHSPlasH runs as well, and where it is."""
    sides = parser.add_mutually_exclusive_group()
    sides.add_argument("--reference", "--peer", dest="peer", metavar="PYTHON",
                       help="interpreter of the environment that has pysplishsplash")  # fmt: skip
    sides.add_argument("--no-reference", "--no-peer", dest="no_peer", action="store_true", help="run ours alone")


def checked_kinds(parser: argparse.ArgumentParser, given: str, kinds: Iterable[str]) -> list[str]:
    """Names that are given with commas between, all of them known."""
    found, known = given.split(","), list(kinds)
    for kind in found:
        if kind not in known:
            parser.error(unknown_name("kind", kind, known))
    return found


def checked_sizes(parser: argparse.ArgumentParser, options: argparse.Namespace, least: int) -> argparse.Namespace:
    """Options with numbers of particles, none below the least, that are given with commas between."""
    try:
        options.sizes = [int(size) for size in options.sizes.split(",")]
    except ValueError:
        parser.error(f"--sizes must be whole numbers such as 2000,20000, got {options.sizes!r}")
    for name, lowest, values in (("sizes", least, options.sizes), ("steps", 1, [options.steps]),
                                 ("threads", 1, [options.threads])):  # fmt: skip
        if min(values) < lowest:
            parser.error(f"--{name} must be {lowest} or more, got {min(values)}")
    return options


def command(argv: list[str], child: Callable[[dict[str, Any]], Any], work: Callable[[], None]) -> int:
    """What every benchmark does with its arguments: measures in this process what `--child` describes, or works."""
    if argv[:1] == ["--child"]:
        print(json.dumps(child(json.loads(argv[1]))), flush=True)
        return 0
    try:
        work()
    except PliantError as error:
        console.print(str(error))
        return 1
    return 0


def main(argv: list[str]) -> int:
    """`pliant bench [one of MODES] [options]`; returns the exit status."""
    if argv and argv[0] in OTHERS:
        return importlib.import_module(f"pliant.tools.bench_{argv[0]}").main(argv[1:])
    return command(argv, lambda given: measure(Spec(**given | {"block": tuple(given["block"])})),
                   lambda: bench(parse(argv)))  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
