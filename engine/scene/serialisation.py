"""A scene as plain data, and back: what a checkpoint keeps, so that it can be loaded without the script that made it.

Functions (motions, callbacks) cannot be kept. A scene that has some is told apart by `functions`, and has to be handed
in again when its state is loaded.
"""

import dataclasses
from typing import Any

import numpy as np

import pliant.render as render
from pliant.core.options import Options
from pliant.core.registry import load_plugins
from pliant.errors import PliantError, SceneError
from pliant.scene.scene import Scene

Arrays = dict[str, np.ndarray]
SHOWN = ("camera", "lights", "look")  # of a scene: how it is drawn, which changes nothing that happens in it
BODY = ("name", "shape", "material", "velocity", "colors", "shown", "particle_radius", "sampling", "spin", "pivot",
        "tinted")  # fmt: skip


def describe(scene: Scene) -> tuple[dict[str, Any], Arrays]:
    """The scene as what JSON can hold, and the arrays it refers to."""
    arrays: Arrays = {}
    settings = {name: _plain(value, arrays) for name, value in scene.settings.values().items()}
    bodies = [{name: _plain(getattr(body, name), arrays) for name in BODY} for body in scene.bodies]
    shown = {name: _plain(getattr(scene, name), arrays) for name in SHOWN}
    return {"settings": settings, "bodies": bodies, "functions": functions(scene), "shown": shown}, arrays


def functions(scene: Scene) -> list[str]:
    """What the scene does by functions of its script, in words."""
    moved = [f"the motion of {body.name!r}" for body in scene.bodies if body.motion is not None]
    air = scene.settings.air
    blown = ["the velocity of the air"] * (air is not None and callable(air.velocity))
    flowing = [words for source in scene.settings.sources for words in source.functions()]
    settings = scene.settings
    driven = [words for one in (*settings.joints, *settings.robots) for words in one.functions()]
    return moved + blown + flowing + driven + ["an on_step callback"] * bool(scene.callbacks)


def rebuild(tree: dict[str, Any], arrays: Arrays) -> Scene:
    """The scene that was described."""
    load_plugins()  # which may have made some of it
    settings = {name: _live(value, arrays) for name, value in tree["settings"].items()}
    later = {name: settings.pop(name, ()) for name in ("sources", "probes", "joints", "robots")}  # after their bodies
    scene = Scene(**settings)
    for entry in tree["bodies"]:
        values = {name: _live(entry[name], arrays) for name in BODY if name in entry}
        pivot, tinted = values.pop("pivot"), values.pop("tinted", False)
        body = scene.add(**values)
        body.pivot, body.tinted = pivot, tinted
    scene.settings = scene.settings.replaced(**later)
    for name in SHOWN:
        setattr(scene, name, _live(tree["shown"][name], arrays))
    problems = scene.problems()
    if problems:
        raise SceneError(problems)
    return scene


def differences(old: dict[str, Any], old_arrays: Arrays, new: dict[str, Any], new_arrays: Arrays) -> list[str]:
    """What makes two described scenes behave differently, one phrase each."""
    names = [[entry["name"] for entry in tree["bodies"]] for tree in (old, new)]
    if names[0] != names[1]:
        return [f"its bodies were {', '.join(names[0])} and are {', '.join(names[1])}"]
    unset: dict[str, Any] = {key: [] if value == [] else None for key, value in new["settings"].items()}
    was = unset | old["settings"]  # older files lack newer keys, whose default is nothing
    found = _unlike("", was, new["settings"], old_arrays, new_arrays)
    for name, was, now in zip(names[0], old["bodies"], new["bodies"], strict=True):
        compared = [key for key in BODY if key not in ("colors", "shown", "tinted")]
        was, now = ({key: entry.get(key) for key in compared} for entry in (was, now))  # older files lack newer keys
        found += _unlike(name, was, now, old_arrays, new_arrays)
    return found


def _plain(value: Any, arrays: Arrays) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(value)  # without what a subclass may add
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype != object:
        arrays[name := f"scene/{len(arrays)}"] = value
        return {"array": name}
    if isinstance(value, (tuple, list, np.ndarray)):
        return [_plain(item, arrays) for item in value]
    if isinstance(value, Options):
        values = value.values()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        values = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    else:
        raise PliantError(f"{value!r} cannot be saved; a scene may hold numbers, text, arrays, shapes and materials")
    plain = {name: _plain(v, arrays) for name, v in values.items()}
    return {"class": type(value).__name__, "module": type(value).__module__, "values": plain}


def _live(value: Any, arrays: Arrays) -> Any:
    if isinstance(value, list):
        return tuple(_live(item, arrays) for item in value)
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    made = _class(value["class"], value["module"])
    return made(**{name: _live(v, arrays) for name, v in value["values"].items()})


def _class(name: str, module: str) -> Any:
    waiting: list[Any] = [Options, *(getattr(render, shown) for shown in render.__all__)]
    while waiting:
        known = waiting.pop()
        if getattr(known, "__name__", "") == name and known.__module__ == module:
            return known
        if isinstance(known, type):
            waiting += known.__subclasses__()
    raise PliantError(f"it was saved with a class {name!r} of {module}, which this program does not have; pass the "
                      "scene too: pl.load(path, scene=scene)")  # fmt: skip


def _unlike(where: str, was: Any, now: Any, old_arrays: Arrays, new_arrays: Arrays) -> list[str]:
    """Phrases such as "water.material.viscosity was 1e-06 and is 1e-05"."""
    both = isinstance(was, dict) and isinstance(now, dict) and was.get("class") == now.get("class")
    if both and was.keys() == now.keys():
        if "array" in was:
            same = np.array_equal(old_arrays[was["array"]], new_arrays[now["array"]])
            return [] if same else [f"{where} has other numbers"]
        steps = [(key, where if key == "values" else f"{where}.{key}".strip(".")) for key in was]
        return [p for key, to in steps for p in _unlike(to, was[key], now[key], old_arrays, new_arrays)]
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        if any(isinstance(item, (dict, list)) for item in was):
            pairs = enumerate(zip(was, now, strict=True))
            return [p for k, (a, b) in pairs for p in _unlike(f"{where}[{k}]", a, b, old_arrays, new_arrays)]
    return [] if was == now else [f"{where} was {_brief(was)} and is {_brief(now)}"]


def _brief(value: Any) -> str:
    text = f"a {value['class']}" if isinstance(value, dict) and "class" in value else str(value)
    return text if len(text) <= 60 else text[:57] + "..."
