"""The command line. Every mistake gets a sentence and an exit status.

Exit status: 0 done, 1 the simulation or its disk broke down, 2 the request or the scene is wrong, 130 interrupted by
Ctrl-C, 143 by SIGTERM. Tools lie above this layer, so they are found by name at run time.

Each command imports what it needs when it is called, so that help and lists do not wait for Taichi.
"""

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

import pliant
from pliant.core.choices import BACKEND_NAMES, BACKEND_VARIABLE, FORMATS, FPS, LOOK, SEED, SIZE, USUAL_FORMATS
from pliant.core.console import console, say
from pliant.errors import PliantError, SceneError, SimulationError, unknown_name

SHOWCASE = "falling_bodies_in_water"  # what `pliant run` shows when no scene is named
SHOWCASE_SETTINGS: list[str] = []

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=pliant.__doc__)
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}

Folder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")]
Looks = Annotated[
    list[str] | None,
    typer.Option("--look", metavar="NAME=VALUE", help=f"How pictures look ({', '.join(LOOK)}); repeatable."),
]
Backend = Annotated[
    str | None, typer.Option(help=f"What computes: {', '.join(BACKEND_NAMES)} (the GPU there is); cpu if not given.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.")]
Range = Annotated[str, typer.Option("--frames", help="Which: 12, 0:100, 100: or ::10; all if not given.")]


def main() -> None:
    """Entry point of the command `pliant`."""
    try:
        os.getcwd()
    except FileNotFoundError:
        _complain("the current folder does not exist any more; go to another one.")
        sys.exit(2)
    app(prog_name="pliant")


# --- mistakes ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def reporting(quiet: bool = False) -> Iterator[None]:
    """Turns what the engine refuses into sentences and an exit status."""
    before, console.quiet = console.quiet, quiet
    try:
        yield
    except SceneError as error:
        many = len(error.problems)
        _complain(f"the scene cannot be built, for {many} reasons:" if many > 1 else "the scene cannot be built:")
        for problem in error.problems:
            typer.echo(f"  • {_sentence(problem)}", err=True)
        raise typer.Exit(2) from None
    except PliantError as error:
        _complain(_sentence(str(error)))
        raise typer.Exit(1 if isinstance(error, SimulationError) else 2) from None
    except KeyboardInterrupt as interruption:
        _complain("interrupted.")
        raise typer.Exit(getattr(interruption, "status", 130)) from None
    finally:
        console.quiet = before


@contextlib.contextmanager
def computing_on(backend: str | None) -> Iterator[None]:
    """Lets all that is started meanwhile compute there, in other processes as well."""
    if backend is None:
        yield
        return
    if backend not in BACKEND_NAMES:
        raise PliantError(unknown_name("backend", backend, BACKEND_NAMES))
    before = os.environ.get(BACKEND_VARIABLE)
    os.environ[BACKEND_VARIABLE] = backend
    try:
        yield
    finally:
        os.environ.pop(BACKEND_VARIABLE)
        if before is not None:
            os.environ[BACKEND_VARIABLE] = before


def _complain(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody is listening
        typer.secho(f"pliant: {text}", fg="red", err=True)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


# --- commands ---------------------------------------------------------------------------------------


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pliant {pliant.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Version.")] = False,
) -> None:
    pass


_root.__doc__ = pliant.__doc__


@app.command()
def run(
    scene: Annotated[str | None, typer.Argument(help="Name of a scene, or a .py file; the showcase if none.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Simulated seconds; the scene's own if not given.")] = None,
    fps: Annotated[float | None, typer.Option(help=f"Frames per simulated second; {FPS:g} if not given.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the results; out/<scene>, a new one, if none.")] = None,
    formats: Annotated[
        str | None,
        typer.Option("--format", help=f"Some of {', '.join(FORMATS)}; {','.join(USUAL_FORMATS)} if not given."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Option of the scene; may be repeated.")
    ] = None,
    mesh: Annotated[Path | None, typer.Option(help="A mesh for the scene's body: the same as --set mesh=FILE.")] = None,
    size: Annotated[str | None, typer.Option(help=f"Width and height of the pictures; {SIZE} if not given.")] = None,
    look: Looks = None,
    video: Annotated[bool, typer.Option("--video", help="Make video.mp4 of the pictures.")] = False,
    seed: Annotated[int | None, typer.Option(help="Of random numbers that the scene draws; 0 if not given.")] = None,
    backend: Backend = None,
    checkpoint: Annotated[float, typer.Option(help="Seconds of wall-clock time between checkpoints.")] = 60.0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in the folder.")] = False,
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="Tell of the run in lines of JSON.")] = False,
) -> None:
    """Simulates a scene into a folder: particles, pictures, video, and run.json to repeat or resume it by."""
    with reporting(quiet or as_json):
        if mesh is not None:
            settings = [*(settings or []), f"mesh={mesh.absolute()}"]
        given = {"seconds": seconds, "fps": fps, "formats": formats, "settings": settings, "size": size, "look": look,
                 "seed": seed, "video": video or None, "backend": backend}  # fmt: skip
        if resume and overwrite:
            raise PliantError("--resume and --overwrite exclude each other: go on with the run, or throw it away")
        if not 0 <= checkpoint < float("inf"):
            raise PliantError(f"--checkpoint must be a number of seconds, 0 or more, got {checkpoint!r}")
        from pliant.commands.planning import make_plan, own_folder, recorded
        from pliant.run.run import Run
        from pliant.scene.loading import find_scene

        stream = sys.stdout if as_json else None
        with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():  # scenes may print
            if scene is None and not (resume and out):
                scene, given["settings"] = SHOWCASE, [*SHOWCASE_SETTINGS, *(settings or [])]
            source = find_scene(scene) if scene is not None else None
            folder, kept = own_folder(source, resume or overwrite) if out is None else (out, None)
            if resume:
                source, given = recorded(source, folder, given)
            assert source is not None  # only a run to resume tells of its scene itself
            plan = make_plan(source, given, folder)
            plan.checkpoint_seconds, plan.kept = checkpoint, kept
            with source.blamed("during the run", SimulationError):
                status = Run(plan, resume, overwrite, stream)()
    raise typer.Exit(status)


@app.command()
def view(
    scene: Annotated[str | None, typer.Argument(help="Name of a scene, or a .py file; the showcase if none.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Option of the scene; may be repeated.")
    ] = None,
    mesh: Annotated[Path | None, typer.Option(help="A mesh for the scene's body: the same as --set mesh=FILE.")] = None,
    state: Annotated[Path | None, typer.Option("--load", help="A saved state to begin with.")] = None,
    paused: Annotated[bool, typer.Option("--paused", help="Wait for Space before the first step.")] = False,
    size: Annotated[str, typer.Option(help="Width and height of the window.")] = SIZE,
    scale: Annotated[float, typer.Option(help="How large panels and letters are, 0.5 to 3.")] = 1.0,
    out: Annotated[Path | None, typer.Option(help="Folder of its files; out/view/<scene> if not given.")] = None,
    web: Annotated[bool, typer.Option("--web", help="In a browser instead of a window.")] = False,
    port: Annotated[int, typer.Option(help="Of the page, with --web.")] = 8080,
    report: Annotated[Path | None, typer.Option(help="A file for lines of JSON on what is shown.")] = None,
    backend: Backend = None,
) -> None:
    """Opens a window on a scene as it runs: look around, change parameters, grab things."""
    with reporting(), computing_on(backend):
        from pliant.commands.arguments import read_size
        from pliant.io.files import checked_path
        from pliant.scene.loading import find_scene

        given = SHOWCASE if scene is None else scene
        if Path(given).suffix != ".py":
            find_scene(given)  # a file that fails shows its message in the window; a name that nobody knows does not
        settings = [*(settings or []), *([f"mesh={mesh.absolute()}"] if mesh else [])]
        if not 0.5 <= scale <= 3.0:
            raise PliantError(f"--scale must be in [0.5, 3], got {scale!r}")
        saved = None if state is None else str(checked_path(state))
        folder = out or Path("out") / "view" / Path(given).stem
        if web:
            from pliant.viewer.web import serve

            serve(given, settings, port, saved, folder=folder, playing=not paused)
            return
        from pliant.viewer import window

        signalled = window.view(given, settings, folder, read_size(size), scale, saved, not paused, report)
        raise typer.Exit(128 + signalled if signalled else 0)


@app.command()
def render(
    run: Folder,
    frames: Range = "",
    size: Annotated[str, typer.Option(help="Width and height of the pictures.")] = SIZE,
    look: Looks = None,
    camera: Annotated[
        str | None, typer.Option(help="auto, orbit, orbit:20 (degrees/s) or x,y,z:x,y,z; the scene's if not given.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the results; RUN/pictures, a new one, if none.")] = None,
    video: Annotated[bool, typer.Option(help="Make an mp4 of the pictures.")] = True,
    fps: Annotated[float | None, typer.Option(help="Of the video; real time if not given.")] = None,
    sheet: Annotated[bool, typer.Option("--sheet", help="Make sheet.png too: nine small pictures in one.")] = False,
    workers: Annotated[int | None, typer.Option(help="Processes that draw side by side.")] = None,
    quiet: Quiet = False,
) -> None:
    """Draws pictures and a video from the files of a run, without simulating again. What is there is left as it is."""
    with reporting(quiet):
        from pliant.commands.arguments import read_camera, read_look, read_size
        from pliant.io.video import FASTEST, SLOWEST
        from pliant.run.export import pick_frames
        from pliant.run.folder import RunFolder, unused
        from pliant.run.pictures import SCENES_OWN, contact_sheet, draw_run, film

        view = SCENES_OWN if camera is None else read_camera(camera)
        if fps is not None and not SLOWEST <= fps <= FASTEST:
            raise PliantError(f"--fps must lie between {SLOWEST:g} and {FASTEST:g}, got {fps:g}")
        width_height, changes, folder = read_size(size), read_look(look or []), RunFolder(run)
        record = folder.record()
        indices = pick_frames(frames, record)
        out, failed = out or unused(folder.pictures), dict[int, PliantError]()
        with _counting("drawing", len(indices)) as advance:
            pictures = draw_run(folder, indices, out, changes, width_height, view, workers,
                                lambda done, total: advance(), failed.setdefault)  # fmt: skip
        if len(failed) == len(indices):
            raise failed[indices[0]]
        pictures = [picture for k, picture in zip(indices, pictures, strict=True) if k not in failed]
        say(f"pictures: {pictures[0]}" + (f" to {pictures[-1].name}" if len(pictures) > 1 else ""))
        if sheet:
            path = out / "sheet.png"
            contact_sheet(path, pictures)
            say(f"sheet:    {path}")
        if video and len(pictures) > 1:
            path = out / folder.video.name
            film(path, pictures, record, fps, abs(indices[1] - indices[0]))
            say(f"video:    {path}")
        if failed:
            which = ", ".join(map(str, sorted(failed)))
            raise PliantError(f"{len(failed)} of {len(indices)} pictures are missing, those of frames {which}; "
                              f"{failed[min(failed)]}")  # fmt: skip


@contextlib.contextmanager
def _counting(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar of progress on a terminal; yields what advances it by one."""
    from rich.progress import Progress

    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


@app.command()
def export(
    run: Folder,
    formats: Annotated[str, typer.Option("--format", help="vtu, npz, ply, bgeo, obj, stl, usd.")],
    frames: Range = "",
    surface: Annotated[bool, typer.Option("--surface", help="Fluids as meshes.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder of the files; RUN/export if not given.")] = None,
    quiet: Quiet = False,
) -> None:
    """Writes the frames of a run in other formats, and fluids as surfaces."""
    with reporting(quiet):
        from pliant.run import export as exporting
        from pliant.run.folder import RunFolder
        from pliant.run.frames import check_formats

        folder, wanted = RunFolder(run), check_formats(formats, exporting.FORMATS)
        indices = exporting.pick_frames(frames, folder.record())
        with _counting("exporting", len(indices)) as advance:
            done = exporting.export(folder, wanted, indices, out or run / "export", surface, lambda _: advance())
        for path in done:
            say(str(path))


@app.command()
def skin(
    run: Folder,
    mesh: Annotated[Path | None, typer.Option(help="Another surface for the body, where that is at rest.")] = None,
    body: Annotated[str | None, typer.Option(help="One elastic body; all of them if not given.")] = None,
    frames: Range = "",
    formats: Annotated[str, typer.Option("--format", help="Some of obj, stl, ply, usd.")] = "obj",
    fit: Annotated[bool, typer.Option("--fit", help="Magnify and move the mesh to where the body is at rest.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder of the files; RUN/skin if not given.")] = None,
    quiet: Quiet = False,
) -> None:
    """Writes the surfaces of elastic bodies of a run as meshes, its own or another one."""
    with reporting(quiet):
        from pliant.run.export import pick_frames
        from pliant.run.folder import RunFolder
        from pliant.run.frames import check_formats
        from pliant.skin import skin_run

        folder, wanted = RunFolder(run), check_formats(formats, skin_run.FORMATS)
        if fit and mesh is None:
            raise PliantError("--fit is for a mesh that is given with --mesh")
        indices = pick_frames(frames, folder.record())
        with _counting("skinning", len(indices)) as advance:
            done = skin_run.skin_run(folder, wanted, indices, out or run / "skin", body, mesh, fit, lambda _: advance())
        for path in done:
            say(str(path))


@app.command("inspect")
def inspect_(
    run: Folder,
    out: Annotated[Path | None, typer.Option(help="The picture; RUN/inspect.png if not given.")] = None,
) -> None:
    """Plots energy, momentum, density error, iterations and dt of a run over time, and what its probes recorded."""
    with reporting():
        from pliant.run.inspect import inspect as draw

        say(str(draw(run, out)))


@app.command()
def sample(
    mesh: Annotated[Path, typer.Argument(help="File of a surface: obj, ply, stl, off, glb, gltf, vtu or vtk.")],
    radius: Annotated[float | None, typer.Option(help="Of a particle in metres: half the spacing.")] = None,
    particles: Annotated[int | None, typer.Option(help="About how many, instead of --radius; 10000 usually.")] = None,
    sampling: Annotated[str, typer.Option(help="fitted, regular, blue_noise, or all to compare them.")] = "fitted",
    unit: Annotated[str | None, typer.Option(help="Of the file's numbers: m, cm, mm, km, in or ft; m usually.")] = None,
    up: Annotated[str | None, typer.Option(help="The file's axis that points up: y, z, -z, ...; y usually.")] = None,
    scale: Annotated[float, typer.Option(help="Magnification.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Of the random numbers that the sampling draws.")] = SEED,
    out: Annotated[Path | None, typer.Option(help="Folder of the results; out/<mesh> if not given.")] = None,
    formats: Annotated[str, typer.Option("--format", help="Some of vtu, npz, ply, bgeo.")] = "vtu",
    report: Annotated[bool, typer.Option("--report", help="Print how good it is; report.json, report.png.")] = False,
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    backend: Backend = None,
) -> None:
    """Fills a mesh with particles, and tells how good the filling is."""
    with reporting(quiet or as_json), computing_on(backend):
        from pliant.commands.sample import Request, run

        run(Request(mesh, radius, particles, sampling, unit, up, scale, seed, out, formats, report), as_json)


@app.command()
def doctor(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """Checks what this machine has, and says what to do about the rest."""
    with reporting():
        from pliant.commands.doctor import main as check

        status = check(as_json)
    raise typer.Exit(status)


@app.command()
def scenes() -> None:
    """Lists the scenes with their options and defaults."""
    with reporting():
        from rich.console import Console
        from rich.table import Table

        from pliant.scene.listing import list_scenes

        table = Table("scene", "what it shows", "options (--set name=value)")
        for scene in list_scenes():
            table.add_row(scene.name, scene.about, "\n".join(f"{k}={value}" for k, value in scene.options.items()))
        Console(highlight=False).print(table)


def _pass_on(tool: str, arguments: list[str], backend: str | None) -> None:
    """Calls `main(arguments)` of a tool, which lies above this layer."""
    with reporting(), computing_on(backend):
        try:
            module = importlib.import_module(f"pliant.tools.{tool}")
        except ModuleNotFoundError as error:
            raise PliantError(f"pliant {tool} needs the module {error.name}, which is not installed") from None
        status = module.main(arguments)
    raise typer.Exit(status or 0)


@app.command(context_settings=PASS_ON)
def bench(context: typer.Context, backend: Backend = None) -> None:
    """Measures the engine; `pliant bench --help` tells more."""
    _pass_on("bench", context.args, backend)


@app.command(context_settings=PASS_ON)
def validate(context: typer.Context, backend: Backend = None) -> None:
    """Compares results with closed forms and measurements; `pliant validate --help` tells more."""
    _pass_on("validate", context.args, backend)
