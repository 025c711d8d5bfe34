"""Scenes by name or from a user's file, and the options of their build() from text. Mistakes become one sentence each.

Scenes lie above this layer, so they are found by name at run time.
"""

import ast
import contextlib
import dataclasses
import importlib
import inspect
import math
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pliant.errors import PliantError, unknown_name
from pliant.scene.listing import scene_names
from pliant.scene.scene import Scene

DEFAULT_SECONDS = 3.0  # for scenes that do not say SECONDS
TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")

# --- scenes -----------------------------------------------------------------------------------------


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


def read_options(source: SceneSource, settings: list[str]) -> dict[str, Any]:
    """All options of build() with their values: defaults, then the `name=value` settings."""
    parameters = inspect.signature(source.build).parameters.values()
    known = {p.name: p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    anything = any(p.kind == p.VAR_KEYWORD for p in parameters)
    values = {name: p.default for name, p in known.items() if p.default is not p.empty}
    for setting in settings:
        name, text = split_setting("--set", setting)
        if name not in known and not anything:
            some = unknown_name("option", name, known) if known else f"unknown option {name!r}; it takes none."
            raise PliantError(f"{source.given}: {some}")
        values[name] = parse_value(name, text, _example(known.get(name)))
    missing = [name for name in known if name not in values]
    if missing:
        raise PliantError(f"{source.given} needs a value for {missing[0]!r}; add --set {missing[0]}=...")
    return values


def split_setting(flag: str, setting: str) -> tuple[str, str]:
    """Name and value of a text "name=value" that was given behind `flag`."""
    name, equals, text = setting.partition("=")
    name = name.strip().replace("-", "_")
    if not equals or not name:
        raise PliantError(f"{flag} needs name=value, got {setting!r}")
    return name, text.strip()


def _example(parameter: inspect.Parameter | None) -> Any:
    """A value of the parameter's type: its default, or an instance of a plain annotation."""
    if parameter is None or not (parameter.default is None or parameter.default is parameter.empty):
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
