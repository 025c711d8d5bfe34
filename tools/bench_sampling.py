"""`pliant bench sampling`: how good, how fast and how large the fillings of meshes with particles are.

Meshes of a folder (`--meshes`), a thin sheet and a needle that no lattice fits are filled by our three samplings and by
the three of SPlisHSPlasH, with as many particles, each in a process of its own. Seconds are those of the sampling
itself, without reading the mesh; of several rounds the fastest counts, since only other work on the machine makes one
slower. A star marks a figure in which another filling of the same mesh is better than the fitted one.
"""

import argparse
import dataclasses
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from pliant.core.console import console
from pliant.core.data import TriMesh
from pliant.errors import PliantError
from pliant.geometry import Mesh, Quality
from pliant.geometry.sampling import METHODS, sample
from pliant.io.registry import write_mesh
from pliant.tools import bench, peer_sampling
from pliant.tools.peer_elastic import peak_megabytes

OURS, PEER = "Pliant", "SPlisHSPlasH"
FITTED = "fitted"  # the one that shall be the best
COUNTS = {"armadillo": [10_000], "dragon": [2_000, 8_000, 32_000, 128_000], "bunny": [10_000], "kitten": [10_000],
          "spot": [10_000]}  # particles, by the name of the file  # fmt: skip
FULL = {"armadillo": [240_000]}  # as in Kugelstadt et al. 2021, Section 9
UNIT = 0.02  # spacing [m] of the sheet's and the needle's particles
SHEET, SHEET_THICKNESS = 50.0, 1.5  # sides and thickness, in spacings
NEEDLE, NEEDLE_THICKNESS = 40.0, 2.0  # length and largest thickness, in spacings
NEEDLE_SIDES, NEEDLE_RINGS = 24, 80
TILT = np.radians(30.0)  # about two axes, one after the other
SDF = 20  # cells along each side of the peer's grid: its own default
NEAR, TRIES = 0.01, 4  # how near the peer's count must come, by how many changes of its radius
TIE = 0.01  # figures nearer than this are as good as each other
PLAIN_WIDTH = 175  # of the tables in files and pipes

QUALITY = """Quality (* another is better). Density: mean and deviation of all, of the interior, surface-corrected.
In spacings: nearest neighbor, least and deviation; surface to particles, largest (Hausdorff) and 99.9 %.
Least neighbors, flat neighborhoods, relative radius, particles outside. "their": SPlisHSPlasH."""

# Figures of a filling: header, where it is found in `Quality.as_dict`, what it is, and +1 or -1 if more or less is good
Figure = tuple[str, Callable[[dict[str, Any]], float | None], str, int]
FIGURES: list[Figure] = [
    ("density", lambda q: q["density"]["mean"], ".3f", 0),
    ("dev.", lambda q: q["density"]["deviation"], ".4f", -1),
    ("inner", lambda q: q["interior"]["deviation"], ".4f", -1),
    ("corr.", lambda q: q["corrected"]["deviation"], ".4f", -1),
    ("nn", lambda q: q["nearest"]["least"], ".3f", 1),
    ("nn dev.", lambda q: q["nearest"]["deviation"], ".3f", -1),
    ("nb.", lambda q: q["neighbors"]["least"], ".0f", 1),
    ("flat", lambda q: q["degenerate"], ",.0f", -1),
    ("radius", lambda q: q["relative_radius"], ".3f", 1),
    ("Hausd.", lambda q: q["surface"]["most"], ".3f", -1),
    ("99.9 %", lambda q: q["surface_tail"], ".3f", -1),
    ("out", lambda q: q["outside"], ",.0f", -1),
]


@dataclasses.dataclass(frozen=True)
class Spec:
    """One filling."""

    mesh: str  # file (.obj)
    count: int  # particles, nearly
    method: str  # one of METHODS, or of the peer's modes
    points: str = ""  # where the peer leaves its particles
    radius: float = 0.0  # of the peer's particles [m]
    sdf: int = SDF
    seed: int = 0
    born: float = 0.0  # when the process was started [s since the epoch]

    @property
    def block(self) -> tuple[int]:
        """By which `bench.run_child` names a run that failed."""
        return (self.count,)


def tilted(points: np.ndarray) -> np.ndarray:
    """Turned about x and then about y, so that no lattice along the axes fits."""
    c, s = np.cos(TILT), np.sin(TILT)
    about_x, about_y = np.array([[1, 0, 0], [0, c, -s], [0, s, c]]), np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    return points @ (about_y @ about_x).T


def sheet() -> TriMesh:
    """A square sheet one and a half spacings thick."""
    corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = np.array([triangle for a, b, c, d in quads for triangle in ((a, b, c), (a, c, d))])
    return TriMesh(tilted(corners * (SHEET * UNIT, SHEET_THICKNESS * UNIT, SHEET * UNIT)), faces)


def needle() -> TriMesh:
    """A spindle, r = (1 - (2 z / length)^2) thickness / 2."""
    z = np.linspace(-1, 1, NEEDLE_RINGS + 1)[1:-1]
    angle = 2 * np.pi * np.arange(NEEDLE_SIDES) / NEEDLE_SIDES
    r = 0.5 * NEEDLE_THICKNESS * (1 - z**2)
    rings = np.stack([r[:, None] * np.cos(angle), r[:, None] * np.sin(angle),
                      np.repeat(0.5 * NEEDLE * z[:, None], NEEDLE_SIDES, axis=1)], axis=-1)  # fmt: skip
    tips = np.array([[0, 0, -0.5 * NEEDLE], [0, 0, 0.5 * NEEDLE]])
    n, faces, last = NEEDLE_SIDES, [], len(z) - 1
    for k in range(n):
        other = (k + 1) % n
        for ring in range(last):
            a, b = ring * n, (ring + 1) * n
            faces += [(a + k, a + other, b + other), (a + k, b + other, b + k)]
        first, second = (last + 1) * n, (last + 1) * n + 1
        faces += [(first, other, k), (second, last * n + k, last * n + other)]
    return TriMesh(tilted(UNIT * np.concatenate([rings.reshape(-1, 3), tips])), np.array(faces))


def measure(spec: Spec) -> dict[str, Any]:
    """One of our fillings in this process: seconds, memory and figures."""
    from pliant.core import backend

    backend.start()
    shape = Mesh(spec.mesh)
    shape.volume()  # reads the file
    before, start = peak_megabytes(), time.perf_counter()
    found = sample(shape, particles=spec.count, method=spec.method, seed=spec.seed)
    seconds, peak = time.perf_counter() - start, peak_megabytes()
    quality = Quality.of(found.x, found.volume_each, found.spacing, shape)
    return {"particles": len(found.x), "seconds": seconds, "megabytes": peak, "megabytes_before": before,
            "iterations": found.iterations, "quality": quality.as_dict()}  # fmt: skip


def measure_peer(spec: Spec, peer: bench.Peer, shape: Mesh, folder: Path) -> dict[str, Any]:
    """One of the peer's, with a radius for which it makes about as many particles as asked for."""
    command = [peer.command[0], str(Path(__file__).with_name("peer_sampling.py"))]
    radius = 0.5 * (shape.volume() / spec.count) ** (1 / 3)
    for _ in range(TRIES):
        asked = dataclasses.replace(spec, radius=radius, points=str(folder / "peer.npy"))
        result = bench.run_child(command, asked, peer.environment)  # type: ignore[arg-type]
        if not result["particles"]:
            raise PliantError(f"{PEER} {spec.method} made no particles")
        if abs(result["particles"] / spec.count - 1) < NEAR:
            break
        radius *= (result["particles"] / spec.count) ** (1 / 3)
    points = np.load(folder / "peer.npy").astype(float)
    each = shape.volume() / len(points)
    return result | {"quality": Quality.of(points, each, each ** (1 / 3), shape).as_dict()}


def fillings(mesh: str, count: int, options: argparse.Namespace, peer: bench.Peer | None,
             folder: Path) -> dict[str, dict[str, Any]]:  # fmt: skip
    """All fillings of a mesh, by engine and method. Who fails is named, and left out."""
    own = [sys.executable, "-m", "pliant.tools.bench_sampling", "--child"]
    shape, found = Mesh(mesh), {}
    for engine, methods in ((OURS, METHODS), (PEER, peer_sampling.MODES if peer else ())):
        for method in methods:
            spec = Spec(mesh, count, method, sdf=options.sdf, seed=options.seed)
            try:
                if engine == OURS:
                    runs = [_uncached(own, spec, options.threads) for _ in range(options.rounds)]
                else:
                    assert peer is not None
                    runs = [measure_peer(spec, peer, shape, folder) for _ in range(options.rounds)]
            except PliantError as error:
                console.print(f"  {engine} {method}: {error}")
                continue
            found[f"{engine} {method}"] = runs[0] | {"seconds": min(run["seconds"] for run in runs)}
    return found


def _uncached(command: list[str], spec: Spec, threads: int) -> dict[str, Any]:
    """A run of ours that finds nothing of earlier ones."""
    with tempfile.TemporaryDirectory() as empty:
        environment = bench.threaded(threads) | {"PLIANT_CACHE": empty}
        return bench.run_child(command, spec, environment)  # type: ignore[arg-type]


def cases(options: argparse.Namespace, folder: Path) -> list[tuple[str, str, int]]:
    """Name, file and number of particles of each mesh. Files that are missing are named, and left out."""
    found = []
    for name, mesh in (("sheet", sheet()), ("needle", needle())):
        path = folder / f"{name}.obj"
        write_mesh(path, mesh)
        found.append((name, str(path), round(Mesh(path).volume() / UNIT**3)))
    for name, counts in COUNTS.items():
        file = options.meshes / f"{name}.obj" if options.meshes else None
        if file is not None and file.is_file():
            wanted = [*counts, *(FULL.get(name, []) if options.full else [])]
            found += [(name, str(file), count) for count in wanted]
        else:
            where = f"{options.meshes} has no {name}.obj" if options.meshes else f"{name}.obj needs --meshes FOLDER"
            console.print(f"{where}; it is left out.")
    return [case for case in found if not options.only or case[0] in options.only]


def beaten(fitted: dict[str, Any], others: list[dict[str, Any]], figure: Figure) -> bool:
    """Whether one of the others is better in that figure, by more than a tie."""
    _, value, _, good = figure
    mine, theirs = value(fitted), [other for other in map(value, others) if other is not None]
    if not good or mine is None or not theirs:
        return False
    best = good * max(good * other for other in theirs)
    return good * (best - mine) > TIE * max(abs(best), abs(mine))


def quality_table(results: list[dict[str, Any]]) -> Table:
    """Figures of all fillings; a star where the fitted one is beaten."""
    table = Table(title=QUALITY)
    for header in ("mesh", "", "particles", *(header for header, *_ in FIGURES)):
        table.add_column(header, justify="right" if header not in ("mesh", "") else "left", no_wrap=True)
    for result in results:
        runs = result["runs"]
        for k, (name, run) in enumerate(runs.items()):
            others = [other["quality"] for rival, other in runs.items() if rival != name]
            cells = []
            for figure in FIGURES:
                value = figure[1](run["quality"])
                star = name == f"{OURS} {FITTED}" and beaten(run["quality"], others, figure)
                cells.append(("-" if value is None else f"{value:{figure[2]}}") + ("*" if star else ""))
            table.add_row("" if k else result["mesh"], _short(name), bench.particles(run), *cells)
        table.add_section()
    return table


def verdict(results: list[dict[str, Any]]) -> str:
    """In how many of the cases the fitted filling is beaten, figure by figure."""
    lost: dict[str, int] = {}
    cases = [result["runs"] for result in results if f"{OURS} {FITTED}" in result["runs"]]
    for runs in cases:
        others = [run["quality"] for name, run in runs.items() if name != f"{OURS} {FITTED}"]
        for figure in FIGURES:
            if beaten(runs[f"{OURS} {FITTED}"]["quality"], others, figure):
                lost[figure[0]] = lost.get(figure[0], 0) + 1
    told = ", ".join(f"{name} {count}" for name, count in lost.items())
    return f"Of {len(cases)} cases, another filling is better than the fitted one in: {told or 'none'}."


def time_table(results: list[dict[str, Any]]) -> Table:
    """Seconds and the most memory of each filling."""
    table = Table(title="Seconds of the sampling and peak memory of its process (\"their\": SPlisHSPlasH)")
    for header in ("mesh", "", "particles", "iterations", "seconds", "particles/s", "peak MB", "before"):
        table.add_column(header, justify="right" if header not in ("mesh", "") else "left", no_wrap=True)
    for result in results:
        for k, (name, run) in enumerate(result["runs"].items()):
            table.add_row(
                "" if k else result["mesh"], _short(name), bench.particles(run), f"{run['iterations'] or '-'}",
                f"{run['seconds']:.2f}", f"{run['particles'] / run['seconds']:,.0f}", f"{run['megabytes']:.0f}",
                f"{run['megabytes_before']:.0f}",
            )  # fmt: skip
        table.add_section()
    return table


def _short(name: str) -> str:
    """Ours by the method alone."""
    return name.removeprefix(f"{OURS} ").replace(PEER, "their").replace("_", " ")


def parse(argv: list[str]) -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(prog="pliant bench sampling", description=__doc__.split("\n\n")[1])
    parser.add_argument("--meshes", type=Path, metavar="FOLDER", help=f"of {', '.join(COUNTS)} (.obj)")
    parser.add_argument("--only", metavar="NAME,...", help="these meshes alone; also sheet, needle")
    parser.add_argument("--full", action="store_true", help="also the armadillo with 240,000 particles")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each filling; the fastest counts (1)")
    parser.add_argument("--threads", type=int, default=2, help="threads of both sides (2)")
    parser.add_argument("--sdf", type=int, default=SDF, help=f"cells along the peer's grid of distances ({SDF})")
    parser.add_argument("--seed", type=int, default=0, help="of our samplings (0)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers there")
    sides = parser.add_mutually_exclusive_group()
    sides.add_argument("--reference", "--peer", dest="peer", metavar="PYTHON",
                       help="interpreter of the environment that has pysplishsplash")  # fmt: skip
    sides.add_argument("--no-reference", "--no-peer", dest="no_peer", action="store_true", help="run ours alone")
    options = parser.parse_args(argv)
    for name in ("rounds", "threads", "sdf"):
        if getattr(options, name) <= 0:
            parser.error(f"--{name} must be positive, got {getattr(options, name)}")
    options.only = options.only.split(",") if options.only else []
    for name in options.only:
        if name not in (*COUNTS, "sheet", "needle"):
            parser.error(f"--only knows sheet, needle, {', '.join(COUNTS)}, got {name!r}")
    return options


def run(options: argparse.Namespace) -> None:
    """Runs all cases, prints the tables and writes the JSON file."""
    peer = None if options.no_peer else bench.find_peer(options.peer, options.threads)
    if peer is None and not options.no_peer:
        console.print(bench.NO_PEER)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for name, mesh, count in cases(options, Path(folder)):
            console.print(f"{name}, {count:,} particles ...")
            results.append({"mesh": name, "count": count, "runs": fillings(mesh, count, options, peer, Path(folder))})
    if not any(result["runs"] for result in results):
        raise PliantError("no sampling succeeded")
    bench.show(results, (quality_table, verdict, time_table), options, PLAIN_WIDTH)


def main(argv: list[str]) -> int:
    """`pliant bench sampling [options]`; returns the exit status."""
    return bench.command(argv, lambda given: measure(Spec(**given)), lambda: run(parse(argv)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
