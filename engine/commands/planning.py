"""What `pliant run` was asked for, from the words on the command line or from the record of the run to resume."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pliant.commands.arguments import read_look, read_positive, read_size
from pliant.core import backend
from pliant.core.choices import FPS, SEED, SIZE, USUAL_FORMATS
from pliant.errors import PliantError
from pliant.render import Look
from pliant.run.folder import RunFolder, choose_folder
from pliant.run.frames import check_formats
from pliant.run.plan import Plan
from pliant.scene.loading import SceneSource, find_scene, make_scene, read_options

SHORTEST, LONGEST, MOST_FRAMES = 1e-6, 1e6, 10**7  # of a run, in seconds and frames


def own_folder(source: SceneSource | None, existing: bool) -> tuple[Path, Path | None]:
    """Where a run goes if no folder was named, and the finished run that is kept for its sake."""
    assert source is not None
    return choose_folder(Path("out") / source.name, source.name, existing)


def make_plan(source: SceneSource, given: dict[str, Any], folder: Path) -> Plan:
    """What to do, from what was given on the command line (None where nothing was)."""
    chosen: dict[str, Any] = {
        "fps": FPS, "formats": ",".join(USUAL_FORMATS), "settings": [], "size": SIZE, "look": [], "seed": SEED,
        "seconds": source.seconds, "video": False, "backend": backend.usual(),
    }  # fmt: skip
    chosen |= {name: value for name, value in given.items() if value is not None}
    options = read_options(source, chosen["settings"])
    length = read_positive("--seconds", chosen["seconds"], "seconds")
    if not SHORTEST <= length <= LONGEST:
        raise PliantError(f"--seconds must lie between {SHORTEST:g} and {LONGEST:g}, got {length:g}")
    rate = read_positive("--fps", chosen["fps"], "frames per second")
    rate = max(rate, 1 / length)  # at least a first and a last frame
    if length * rate > MOST_FRAMES:
        raise PliantError(f"{length * rate:.3g} frames are too many; choose a lower --fps or fewer --seconds")
    formats = _formats(chosen["formats"], chosen["video"])
    if not 0 <= chosen["seed"] < 2**32:
        raise PliantError(f"--seed must be a whole number from 0 to {2**32 - 1}, got {chosen['seed']}")
    backend.check_name(chosen["backend"])
    size, look = read_size(chosen["size"]), read_look(chosen["look"])
    random.seed(chosen["seed"])
    np.random.seed(chosen["seed"])
    scene = make_scene(source, options)
    if look:
        base = scene.look.values() if isinstance(scene.look, Look) else {}
        scene.look = Look(**(base | look))
    return Plan(name=source.name, given=source.given, scene=scene, settings=chosen["settings"], options=options,
                seconds=length, fps=rate, folder=folder, formats=formats, size=size, look=chosen["look"],
                video=chosen["video"], seed=chosen["seed"], backend=chosen["backend"])  # fmt: skip


def _formats(text: str, video: bool) -> tuple[str, ...]:
    """The formats named, and pictures if a video is to be made of them."""
    return tuple(dict.fromkeys((*check_formats(text), *(["png"] if video else []))))


def recorded(source: SceneSource | None, path: Path, given: dict[str, Any]) -> tuple[SceneSource, dict[str, Any]]:
    """The scene and the choices of the run to resume. Only its length may be chosen anew."""
    folder = RunFolder(path)
    if source and not folder.record_file.exists():
        return source, given  # it was stopped before it wrote anything
    record = folder.record()
    if source and source.name != record["scene"]:
        raise PliantError(f"{folder.path} holds a run of {record['scene']}, not of {source.name}")
    source = source or _recorded_scene(record)
    kept = {"seconds": record["seconds"], "fps": record["fps"], "formats": ",".join(record["asked_formats"]),
            "settings": record["settings"], "size": "{}x{}".format(*record["size"]),
            "look": record["look"], "seed": record.get("seed", SEED), "video": bool(record.get("video")),
            "backend": record.get("backend", "cpu")}  # fmt: skip
    meant: dict[str, Callable[[Any], Any]] = {
        "fps": lambda rate: max(rate, 1 / record["seconds"]),
        "formats": lambda text: set(_formats(text, kept["video"])), "size": read_size, "look": read_look,
        "settings": lambda texts: repr(read_options(source, texts)),
    }  # fmt: skip
    for name, value in given.items():
        meaning = meant.get(name, lambda same: same)
        if value is not None and name != "seconds" and meaning(value) != meaning(kept[name]):
            raise PliantError(f"a resumed run keeps its choices: {name} was {kept[name]!r} and cannot become "
                              f"{value!r}; leave it out, or start a new run in another folder")  # fmt: skip
    if given["seconds"] is not None:
        kept["seconds"] = given["seconds"]
    return source, kept


def _recorded_scene(record: dict[str, Any]) -> SceneSource:
    """The scene of a run: its file, wherever the command is given, or its name."""
    file = str(record.get("source"))
    return find_scene(file if record["given"].endswith(".py") and Path(file).is_file() else record["given"])
