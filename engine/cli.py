"""The command line: `pliant run`, `scenes`, `bench`, `validate`. Every mistake gets a sentence and an exit status.

Exit status: 0 done, 1 the simulation broke down, 2 the request or the scene is wrong, 130 interrupted.
Scenes and tools lie above this layer, so they are found by name at run time.
"""

import ast
import contextlib
import dataclasses
import importlib
import inspect
import math
import pkgutil
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

import pliant
from pliant.console import console
from pliant.errors import PliantError, SceneError, SimulationError, unknown_name
from pliant.frames import FORMATS
from pliant.run import Plan, Run
from pliant.scene import Scene

SHOWCASE = "dam_break"  # what `pliant run` shows when no scene is named
SHOWCASE_OPTIONS = {"radius": 0.0125}
DEFAULT_SECONDS = 3.0  # for scenes that do not say SECONDS
SMALLEST, LARGEST = 16, 7680  # sides of a picture [pixels]; 7680 is 8K
TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=pliant.__doc__)
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def main() -> None:
    """Entry point of the command `pliant`."""
    app(prog_name="pliant")


# --- mistakes ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def reporting() -> Iterator[None]:
    """Turns what the engine refuses into sentences and an exit status."""
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
    except KeyboardInterrupt:
        _complain("interrupted.")
        raise typer.Exit(130) from None


def _complain(text: str) -> None:
    typer.secho(f"pliant: {text}", fg="red", err=True)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


# --- scenes -----------------------------------------------------------------------------------------


def scene_names() -> list[str]:
    """Names of the scenes that come with Pliant."""
    folder = importlib.import_module("pliant.scenes").__path__
    return sorted(module.name for module in pkgutil.iter_modules(folder) if not module.name.startswith("_"))


@dataclasses.dataclass
class SceneSource:
    """A module with `build`, and how to speak of it."""

    name: str  # also the name of the output folder
    given: str  # as on the command line
    file: str
    module: types.ModuleType

    @property
    def build(self) -> Callable[..., Any]:
        found = getattr(self.module, "build", None)
        if not callable(found):
            raise PliantError(f"{self.given} has no function build() that returns a pliant.Scene")
        return found

    @property
    def seconds(self) -> float:
        return getattr(self.module, "SECONDS", DEFAULT_SECONDS)

    @contextlib.contextmanager
    def blamed(self, doing: str, status: type[PliantError] = PliantError) -> Iterator[None]:
        """Errors of the user's own code become one sentence with its file and line; the engine's own pass."""
        try:
            yield
        except PliantError:
            raise
        except (Exception, SystemExit) as error:
            lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == self.file]
            if not lines:
                raise
            raise status(f"{self.given} fails in line {lines[-1]} {doing}: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    first = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def find_scene(given: str) -> SceneSource:
    """The scene of that name, or in that file."""
    names = scene_names()
    if given in names:
        module = importlib.import_module(f"pliant.scenes.{given}")
        return SceneSource(given, given, str(module.__file__), module)
    path = Path(given)
    if path.suffix == ".py" or path.exists() or path.name != given:
        return load_file(path)
    raise PliantError(unknown_name("scene", given, names))


def load_file(path: Path) -> SceneSource:
    """Runs a user's scene file. Not by an import: that would leave a __pycache__ beside it."""
    if path.is_dir():
        raise PliantError(f"{path} is a folder; a scene is a .py file with build()")
    if not path.exists():
        raise PliantError(f"there is no file {str(path)!r} (looked in {path.absolute().parent})")
    if path.suffix != ".py":
        raise PliantError(f"{path} is not a .py file; a scene is a .py file with build()")
    file = str(path.absolute())
    module = types.ModuleType(f"pliant_scene_{path.stem}")
    module.__file__ = file
    source = SceneSource(path.stem, str(path), file, module)
    try:
        code = compile(path.read_bytes(), file, "exec")
    except OSError as error:
        raise PliantError(f"{path} cannot be read: {error.strerror}") from error
    except SyntaxError as error:
        line = f" in line {error.lineno}" if error.lineno else ""
        raise PliantError(f"{path} is not valid Python: {error.msg}{line}") from error
    except ValueError as error:  # null bytes, before Python 3.12
        raise PliantError(f"{path} is not valid Python: {error}") from error
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(path.absolute().parent))  # for modules next to the scene, as when Python runs the file
    with source.blamed("while it is read"):
        exec(code, module.__dict__)
    return source


def make_scene(source: SceneSource, options: dict[str, Any]) -> Scene:
    """Calls the scene's build(), and checks what comes back."""
    with source.blamed("in build()"):
        scene = source.build(**options)
    if not isinstance(scene, Scene):
        raise PliantError(f"build() of {source.given} must return a pliant.Scene, got {type(scene).__name__}")
    scene.source = source.file
    return scene


# --- options of scenes ------------------------------------------------------------------------------


def read_options(source: SceneSource, settings: list[str], preset: dict[str, Any]) -> dict[str, Any]:
    """All options of build() with their values: defaults, then `preset`, then the `name=value` settings."""
    parameters = inspect.signature(source.build).parameters.values()
    known = {p.name: p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    anything = any(p.kind == p.VAR_KEYWORD for p in parameters)
    values = {name: p.default for name, p in known.items() if p.default is not p.empty} | preset
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise PliantError(f"--set needs name=value, got {setting!r}")
        if name not in known and not anything:
            some = unknown_name("option", name, known) if known else f"unknown option {name!r}; it takes none."
            raise PliantError(f"{source.given}: {some}")
        values[name] = parse_value(name, text.strip(), _example(known.get(name)))
    missing = [name for name in known if name not in values]
    if missing:
        raise PliantError(f"{source.given} needs a value for {missing[0]!r}; add --set {missing[0]}=...")
    return values


def _example(parameter: inspect.Parameter | None) -> Any:
    """A value of the parameter's type: its default, or an instance of a plain annotation."""
    if parameter is None or parameter.default not in (None, inspect.Parameter.empty):
        return parameter and parameter.default
    return parameter.annotation() if parameter.annotation in (bool, int, float, str) else None


def parse_value(name: str, text: str, example: Any) -> Any:
    """The value that `text` stands for, of the type of `example`."""
    if isinstance(example, bool):
        if text.lower() not in TRUE + FALSE:
            raise PliantError(f"option {name!r} must be true or false, got {text!r}")
        return text.lower() in TRUE
    if isinstance(example, (int, float)):
        return _parse_number(name, text, type(example))
    if isinstance(example, str):
        return text
    value = _literal(text)
    if isinstance(example, (tuple, list)):
        many = value if isinstance(value, (tuple, list)) else (value,)
        if example and (len(many) != len(example) or not _alike(many, example)):
            shown = ",".join(map(str, example))
            raise PliantError(f"option {name!r} must be {len(example)} values such as {shown}, got {text!r}")
        return type(example)(many)
    return value


def _parse_number(name: str, text: str, kind: type) -> Any:
    wanted = "a whole number" if kind is int else "a finite number"
    try:
        value = float(text)
        if not math.isfinite(value) or (kind is int and value != round(value)):
            raise ValueError
        return int(text) if kind is int and text.lstrip("+-").isdigit() else kind(value)
    except ValueError:
        raise PliantError(f"option {name!r} must be {wanted}, got {text!r}") from None


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _alike(values: Any, examples: Any) -> bool:
    """Whether numbers stand where numbers do; ints and floats may stand for each other."""
    numbers = [isinstance(e, (int, float)) for e in examples]
    return all(isinstance(v, (int, float)) and math.isfinite(v) for v, n in zip(values, numbers, strict=True) if n)


# --- other arguments --------------------------------------------------------------------------------


def _positive(name: str, value: Any, unit: str) -> float:
    if not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        raise PliantError(f"{name} must be a positive number of {unit}, got {value!r}")
    return float(value)


def read_size(text: str) -> tuple[int, int]:
    """Width and height from "1280x720"."""
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise PliantError(f"--size must be width x height in pixels such as 1280x720, got {text!r}")
    width, height = map(int, parts)
    if not SMALLEST <= min(width, height) <= max(width, height) <= LARGEST:
        raise PliantError(f"--size must lie between {SMALLEST} and {LARGEST} pixels each way, got {text!r}")
    return width, height


def read_formats(text: str) -> tuple[str, ...]:
    """Names of formats from "vtu,png"."""
    names = tuple(dict.fromkeys(name.strip().lower() for name in text.split(",") if name.strip()))
    if not names:
        raise PliantError(f"--format must name one or more of {', '.join(FORMATS)}, got {text!r}")
    for name in names:
        if name not in FORMATS:
            raise PliantError(unknown_name("format", name, FORMATS))
    return names


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
    seconds: Annotated[float | None, typer.Option(help="Simulated time [s]; the scene's own if not given.")] = None,
    fps: Annotated[float, typer.Option(help="Frames per simulated second.")] = 30.0,
    out: Annotated[Path | None, typer.Option(help="Folder of the results; out/<scene> if not given.")] = None,
    formats: Annotated[str, typer.Option("--format", help="What to write for each frame.")] = ",".join(FORMATS),
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Option of the scene; may be repeated.")
    ] = None,
    size: Annotated[str, typer.Option(help="Width and height of the pictures.")] = "1280x720",
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.")] = False,
) -> None:
    """Simulates a scene into a folder: particles for ParaView, pictures, and run.json to repeat it by."""
    before, console.quiet = console.quiet, quiet
    try:
        with reporting():
            source = find_scene(scene or SHOWCASE)
            options = read_options(source, settings or [], {} if scene else SHOWCASE_OPTIONS)
            length = _positive("--seconds", source.seconds if seconds is None else seconds, "seconds")
            rate = max(_positive("--fps", fps, "frames per second"), 1 / length)  # at least a first and a last frame
            plan = Plan(
                name=source.name, given=source.given, scene=make_scene(source, options), options=options,
                seconds=length, fps=rate, folder=out or Path("out") / source.name, formats=read_formats(formats),
                size=read_size(size),
            )  # fmt: skip
            with source.blamed("during the run", SimulationError):
                status = Run(plan)()
    finally:
        console.quiet = before
    raise typer.Exit(status)


@app.command()
def scenes() -> None:
    """Lists the scenes with their options and defaults."""
    with reporting():
        table = Table("scene", "what it shows", "options (--set name=value)")
        for name in scene_names():
            source = find_scene(name)
            about = (source.module.__doc__ or "").strip().partition("\n")[0]
            options = inspect.signature(source.build).parameters.values()
            table.add_row(name, about, "\n".join(f"{p.name}={p.default}" for p in options))
        Console(highlight=False).print(table)


def _pass_on(tool: str, arguments: list[str]) -> None:
    """Calls `main(arguments)` of a tool, which lies above this layer."""
    with reporting():
        try:
            module = importlib.import_module(f"pliant.tools.{tool}")
        except ModuleNotFoundError as error:
            raise PliantError(f"pliant {tool} needs the module {error.name}, which is not installed") from None
        status = module.main(arguments)
    raise typer.Exit(status or 0)


@app.command(context_settings=PASS_ON)
def bench(context: typer.Context) -> None:
    """Measures the engine; `pliant bench --help` tells more."""
    _pass_on("bench", context.args)


@app.command(context_settings=PASS_ON)
def validate(context: typer.Context) -> None:
    """Compares results with closed forms and measurements; `pliant validate --help` tells more."""
    _pass_on("validate", context.args)
