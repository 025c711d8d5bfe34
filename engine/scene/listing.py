"""The scenes that come with Pliant, as their files tell of them: read, not run, so that Taichi is not imported.

Scenes lie above this layer, so they are found by name at run time.
"""

import ast
import dataclasses
import importlib
import pkgutil
from pathlib import Path
from typing import Any


@dataclasses.dataclass(frozen=True)
class SceneSummary:
    """What `pliant scenes` tells: the first line of the file, and the options of build() with their defaults."""

    name: str
    about: str
    options: dict[str, Any]


def scene_names() -> list[str]:
    """Names of the scenes that come with Pliant."""
    return sorted(module.name for module in pkgutil.iter_modules(_folders()) if not module.name.startswith("_"))


def list_scenes() -> list[SceneSummary]:
    """What there is to tell of each of them."""
    folder = Path(next(iter(_folders())))
    return [summarise(name, (folder / f"{name}.py").read_text(encoding="utf-8")) for name in scene_names()]


def _folders() -> Any:
    return importlib.import_module("pliant.scenes").__path__


def summarise(name: str, text: str) -> SceneSummary:
    """What the text of a scene file says of it."""
    tree = ast.parse(text)
    about = (ast.get_docstring(tree) or "").partition("\n")[0]
    builds = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "build"]
    given = builds[-1].args if builds else ast.arguments([], [], None, [], [], None, [])
    named = given.args[len(given.args) - len(given.defaults) :]
    defaults = [*zip(named, given.defaults, strict=True), *zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    constants = dict(_constants(tree))
    options = {argument.arg: _value(default, constants) for argument, default in defaults if default is not None}
    return SceneSummary(name, about, options)


def _constants(tree: ast.Module) -> Any:
    """Names that a file sets at its top, and the expressions they are set to."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.value
                elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    yield from ((getattr(t, "id", ""), v) for t, v in zip(target.elts, node.value.elts, strict=False))


def _value(default: ast.expr, constants: dict[str, ast.expr]) -> Any:
    """The default itself, or its expression where that is no plain value."""
    if isinstance(default, ast.Name):
        default = constants.get(default.id, default)
    try:
        return ast.literal_eval(default)
    except ValueError:
        return ast.unparse(default)
