"""`pliant bench small`: steps of 100 to 5,000 particles, where launches of kernels cost more than the particles.

A dam break (fluid), an elastic ball that falls on a floor (elastic) and a block of sand that collapses (sand). Where
`pysplishsplash` is installed, ours and theirs run turn by turn in fresh processes; it has no sand.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from rich.table import Table

from pliant.core.console import console
from pliant.errors import PliantError
from pliant.tools import bench, bench_elastic, bench_granular

SIZES = "100,500,1000,2000,5000"
LEAST = 27  # particles: fewer make no block
YOUNG, DT = 1e6, 2e-3  # of the ball [Pa], and the step of elastic bodies [s]
SAND_DT = 5e-3  # longest step of sand [s]
NOTHING = -1e3  # height [m] below which particles are held: none are
GAP = 0.5  # between the ball and the floor at the start [spacings]

Sides: TypeAlias = tuple[Any, str, str | None]  # what both sides get, our module, the peer's script


def block_of(count: int) -> tuple[int, int, int]:
    """About so many particles in a block that is nearly a cube."""
    side = round(count ** (1 / 3))
    return side, round(count / side**2), side


def fluid(count: int, options: argparse.Namespace, folder: Path) -> Sides:
    return bench.Spec(block_of(count), options.steps, options.warm, 1e-3), "bench", "peer.py"


def elastic(count: int, options: argparse.Namespace, folder: Path) -> Sides:
    import numpy as np

    from pliant.geometry import sample_regular

    shape = bench_elastic.body_shape(None)
    radius = 0.5 * (shape.volume() / count) ** (1 / 3)
    x, volume = sample_regular(shape, 2 * radius)
    points = folder / f"{count}.npy"
    np.save(points, x)
    floor = -bench_elastic.BALL - GAP * 2 * radius
    spec = bench_elastic.Spec("split", count, None, 1.0, radius, 0.5 * volume ** (1 / 3), NOTHING, str(points), YOUNG,
                              DT, options.steps, options.warm, floor=floor)  # fmt: skip
    return spec, "bench_elastic", "peer_elastic.py"


def sand(count: int, options: argparse.Namespace, folder: Path) -> Sides:
    return bench_granular.Case(block_of(count), 0, SAND_DT, options.steps, options.warm), "bench_granular", None


KINDS: dict[str, Callable[[int, argparse.Namespace, Path], Sides]] = {"fluid": fluid, "elastic": elastic, "sand": sand}


def milliseconds(run: dict[str, Any]) -> float:
    """The median of a step. Sand's `total` is a mean, beside its median."""
    return run.get("median") or run["ms"]["total"]


def compare(kind: str, count: int, options: argparse.Namespace, peer: bench.Peer | None, folder: Path) -> dict:
    """Both sides turn by turn; medians over rounds."""
    spec, module, script = KINDS[kind](count, options, folder)
    own, ours, theirs = [sys.executable, "-m", f"pliant.tools.{module}", "--child"], [], []
    for k in range(options.rounds):
        console.print(f"{kind}, {count:,} particles, round {k + 1} of {options.rounds} ...")
        ours.append(bench.run_child(own, spec, bench.threaded(options.threads)))
        if peer is not None and script is not None:
            there = [peer.command[0], str(Path(__file__).with_name(script))]
            theirs.append(bench.run_child(there, spec, peer.environment))
    run = bench.middle(ours)
    result = {"kind": kind, "particles": run["particles"], "ms": milliseconds(run), "launches": run["launches"],
              "cores": run["cores"]}  # fmt: skip
    if theirs:
        result["peer_ms"] = milliseconds(bench.middle(theirs))
        result["ratio"] = result["peer_ms"] / result["ms"]
    return result


def table(results: list[dict[str, Any]]) -> Table:
    """One line for each kind and size."""
    made = Table("", title="Small scenes: milliseconds per step (medians)")
    for header in ("particles", "ms", "launches", "µs / launch", "peer ms", "peer / ours", "cores"):
        made.add_column(header, justify="right", no_wrap=True)
    for before, r in zip([None, *results], results, strict=False):
        if before and before["kind"] != r["kind"]:
            made.add_section()
        theirs = [f"{r['peer_ms']:.2f}", f"{r['ratio']:.2f}"] if "ratio" in r else ["-", "-"]
        each = f"{1e3 * r['ms'] / r['launches']:.0f}"
        made.add_row(r["kind"], bench.particles(r), f"{r['ms']:.2f}", f"{r['launches']:.0f}", each, *theirs,
                     bench.cores(r))  # fmt: skip
    return made


def parse(argv: list[str]) -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(prog="pliant bench small", description=__doc__.split("\n\n")[1])
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"some of {', '.join(KINDS)}")
    parser.add_argument("--sizes", default=SIZES, help=f"numbers of particles ({SIZES})")
    parser.add_argument("--steps", type=int, default=100, help="measured steps (100)")
    parser.add_argument("--warm", type=int, default=20, help="steps before them (20)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each side (3)")
    parser.add_argument("--threads", type=int, default=2, help="threads of both sides (2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers there")
    bench.add_sides(parser)
    options = bench.checked_sizes(parser, parser.parse_args(argv), LEAST)
    for name in ("warm", "rounds"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be 1 or more, got {getattr(options, name)}")
    options.kinds = bench.checked_kinds(parser, options.kinds, KINDS)
    return options


def work(options: argparse.Namespace) -> None:
    """Runs every kind at every size, prints the table and writes the JSON file. Who fails is named, and left out."""
    peer = None if options.no_peer else bench.find_peer(options.peer, options.threads)
    if peer is None and not options.no_peer:
        console.print(bench.NO_PEER)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.kinds:
            for count in sorted(options.sizes):
                try:
                    results.append(compare(kind, count, options, peer, Path(folder)))
                except PliantError as error:
                    console.print(f"  {kind}: {error}")
    if not results:
        raise PliantError("no run succeeded")
    bench.show(results, (table,), options)


def main(argv: list[str]) -> int:
    """`pliant bench small [options]`; returns the exit status."""
    return bench.command(argv, dict, lambda: work(parse(argv)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
