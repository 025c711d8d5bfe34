"""`pliant sample`: fills a mesh with particles, writes them, and reports how good the filling is."""

import dataclasses
import hashlib
import math
import platform
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import taichi as ti
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import pliant
from pliant.commands.arguments import read_positive
from pliant.commands.sample_picture import REPORT_PICTURE, draw, effort, missing_plots
from pliant.core import backend
from pliant.core.choices import PARTICLE_FORMATS
from pliant.core.console import console, say
from pliant.core.data import Cloud
from pliant.errors import PliantError, unknown_name
from pliant.geometry import Mesh, Quality
from pliant.geometry.sampling import METHODS, Sampling, sample
from pliant.geometry.sampling.sampler import MOST_PARTICLES
from pliant.io import write_cloud
from pliant.io.files import atomic_write
from pliant.io.plain import as_json
from pliant.run.frames import check_formats

ALL = "all"  # methods of sampling, side by side
USUAL_PARTICLES = 10_000  # if neither their number nor their radius is given
LARGEST_SEED = 2**32 - 1
REPORT = "report.json"
PLAIN_WIDTH = 150  # of the table in files and pipes [characters]
NARROW, COLUMN = 70, 22  # of a terminal: names with their meanings, and the figures of one filling [characters]
UNITS = {"density_ratio": "1", "neighbors": "1", "volume": "m^3"}  # of the fields that are written


@dataclasses.dataclass(frozen=True)
class Request:
    """What was asked for on the command line; None where nothing was."""

    mesh: Path
    radius: float | None = None  # of a particle [m]: half the spacing
    particles: int | None = None  # about how many
    sampling: str = METHODS[0]  # one of METHODS, or "all"
    unit: str | None = None  # of the numbers in the file
    up: str | None = None  # the file's axis that points up
    scale: float = 1.0
    seed: int = 0
    out: Path | None = None  # folder; out/<mesh> if not given
    formats: str = "vtu"
    report: bool = False

    @property
    def folder(self) -> Path:
        return self.out or Path("out") / self.mesh.stem

    @property
    def methods(self) -> tuple[str, ...]:
        return METHODS if self.sampling == ALL else (self.sampling,)

    @property
    def size(self) -> dict[str, Any]:
        """How fine to sample, as the sampler takes it."""
        if self.radius is not None:
            return {"spacing": 2 * self.radius}
        return {"particles": self.particles or USUAL_PARTICLES}

    @property
    def command(self) -> str:
        """The command that repeats it, with every choice spelt out."""
        words = ["pliant", "sample", str(self.mesh), "--sampling", self.sampling, "--scale", str(float(self.scale))]
        words += ["--seed", str(self.seed), "--out", str(self.folder), "--format", self.formats]
        words += ["--radius", str(self.radius)] if self.radius else ["--particles", str(self.size["particles"])]
        for name in ("unit", "up"):
            words += [f"--{name}", str(getattr(self, name))] if getattr(self, name) else []
        return shlex.join(words + ["--report"] * self.report)


@dataclasses.dataclass(frozen=True)
class Result:
    """A filling and how good it is."""

    sampling: Sampling
    quality: Quality
    files: list[Path]


def run(request: Request, to_stdout: bool = False) -> dict[str, Any]:
    """Does what is asked and returns the report; `to_stdout` prints it as JSON instead of a table."""
    formats = _check(request)
    shape = _shape(request)
    backend.start()
    results = {method: _sample(request, shape, method, formats) for method in request.methods}
    report = _report(request, shape, results)
    if to_stdout:
        sys.stdout.write(as_json(report, indent=1) + "\n")
    elif request.report and not console.quiet:
        out = Console(highlight=False)
        out = out if out.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)
        out.print(table(request.mesh.name, {name: r.quality for name, r in results.items()}, out.width))
    if request.report:
        with atomic_write(request.folder / REPORT) as file:
            file.write(as_json(report, indent=1).encode())
        picture = request.folder / REPORT_PICTURE
        draw(picture, request.mesh.name, shape, {name: (r.sampling, r.quality) for name, r in results.items()})
        say(f"report: {picture}")
    return report


def _check(request: Request) -> tuple[str, ...]:
    """The formats; refuses in one sentence what makes no sense, before anything is done."""
    if request.radius is not None and request.particles is not None:
        raise PliantError("--radius and --particles exclude each other: give the size of the particles or their number")
    if request.radius is not None:
        read_positive("--radius", request.radius, "metres")
    if request.particles is not None and not 1 <= request.particles <= MOST_PARTICLES:
        raise PliantError(f"--particles must lie between 1 and {MOST_PARTICLES:,}, got {request.particles:,}")
    read_positive("--scale", request.scale, "times")
    if request.sampling not in (*METHODS, ALL):
        raise PliantError(unknown_name("sampling", request.sampling, (*METHODS, ALL)))
    if not 0 <= request.seed <= LARGEST_SEED:
        raise PliantError(f"--seed must be a whole number from 0 to {LARGEST_SEED}, got {request.seed}")
    if request.report and missing_plots():
        raise PliantError(missing_plots())
    return check_formats(request.formats, PARTICLE_FORMATS)


def _shape(request: Request) -> Mesh:
    """The mesh, whose size has to fit that of the particles."""
    given = {name: getattr(request, name) for name in ("unit", "up") if getattr(request, name) is not None}
    shape = Mesh(request.mesh, scale=request.scale, **given)
    problems = shape.problems()
    if problems:
        raise PliantError("; ".join(problems))
    for warning in shape.warnings():
        say(warning)
    if request.radius is not None:
        many = shape.volume() / (2 * request.radius) ** 3
        extent = " x ".join(f"{side:.3g}" for side in np.ptp(shape.bounds(), axis=0))
        if many < 1:
            raise PliantError(f"a particle of --radius {request.radius:g} m is larger than {request.mesh.name}, which "
                              f"is {extent} m; choose a smaller one, or --particles")  # fmt: skip
        if many > MOST_PARTICLES:
            raise PliantError(f"--radius {request.radius:g} m would make {many:.2g} particles in {request.mesh.name}, "
                              f"which is {extent} m; choose a larger one, or --particles")  # fmt: skip
    return shape


def _sample(request: Request, shape: Mesh, method: str, formats: tuple[str, ...]) -> Result:
    """One filling, measured and written."""
    with _progress(method) as tell:
        sampling = sample(shape, method=method, seed=request.seed, progress=tell, **request.size)
    quality = Quality.of(sampling.x, sampling.volume_each, sampling.spacing, shape)
    fields: dict[str, np.ndarray] = {
        "density_ratio": quality.values["density"], "neighbors": quality.values["neighbors"].astype(np.int32),
        "volume": np.full(quality.particles, sampling.volume_each),
    }  # fmt: skip
    files = [request.folder / f"{request.mesh.stem}_{method}.{ending}" for ending in formats]
    for file in files:
        write_cloud(file, Cloud(sampling.x, fields, UNITS))
    say(f"{method}: {len(sampling.x):,} particles of radius {sampling.spacing / 2:.4g} m ({effort(sampling)}): "
        f"{', '.join(map(str, files))}")  # fmt: skip
    return Result(sampling, quality, files)


@contextmanager
def _progress(method: str) -> Iterator[Callable[[int, float, float], None]]:
    """A bar on a terminal while a sampling settles: full once what still changes has fallen to its limit, which it does
    by about the same factor in each iteration."""
    columns = (TextColumn(method), BarColumn(20), TextColumn("{task.fields[text]}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task, first = bar.add_task("", total=1.0, text=""), 0.0

        def tell(iteration: int, change: float, limit: float) -> None:
            nonlocal first
            first = max(first, change)
            way = math.log(first / limit) if first > limit > 0 else 0.0
            done = min(math.log(first / max(change, limit)) / way, 1.0) if way else 0.0
            bar.update(task, completed=done, text=f"iteration {iteration}, change {change:.2g} (ends at {limit:.2g})")

        yield tell


def table(name: str, qualities: dict[str, Quality], width: int) -> Table:
    """The figures of all fillings side by side; what they mean where a terminal of that `width` has room for it."""
    found = Table(title=name, title_justify="left")
    for header in ("", *qualities):
        found.add_column(header, justify="right" if header else "left", no_wrap=True)
    roomy = width >= NARROW + COLUMN * len(qualities)
    if roomy:
        found.add_column("", style="dim")
    for same in zip(*(quality.rows() for quality in qualities.values()), strict=True):
        found.add_row(same[0][0], *(value for _, value, _ in same), *([same[0][2]] if roomy else []))
    return found


def _report(request: Request, shape: Mesh, results: dict[str, Result]) -> dict[str, Any]:
    """Everything that is needed to repeat it, and what came out."""
    versions = {"pliant": pliant.__version__, "taichi": ".".join(map(str, ti.__version__)), "numpy": np.__version__,
                "python": platform.python_version()}  # fmt: skip
    vertices, faces = shape.triangles()
    return {
        "command": request.command, "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "versions": versions,
        "platform": platform.platform(), "arguments": dataclasses.asdict(request),
        "mesh": {
            "file": request.mesh.absolute(), "sha256": hashlib.sha256(request.mesh.read_bytes()).hexdigest(),
            "key": shape.key(), "vertices": len(vertices), "triangles": len(faces), "closed": shape.surface.closed,
            "volume": shape.volume(), "bounds": shape.bounds(),
        },
        "samplings": {
            method: {
                "particles": len(r.sampling.x), "spacing": r.sampling.spacing, "radius": r.sampling.spacing / 2,
                "volume_each": r.sampling.volume_each, "iterations": r.sampling.iterations,
                "seconds": r.sampling.seconds, "files": r.files,
                "quality": r.quality.as_dict(),
            }
            for method, r in results.items()
        },
    }  # fmt: skip
