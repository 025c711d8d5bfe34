"""The whole state of a simulation in one file: a run that is saved, loaded and continued equals one that never paused.

The file is an .npz without pickles: arrays, and a JSON header with the format's version, a checksum over everything
else, the scene as plain data (`description`), and the numbers of the clock, the walls and the last solves.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core.particles import KINDS
from pliant.errors import PliantError, SceneError
from pliant.io.files import atomic_write, checked_path
from pliant.scene import serialisation
from pliant.scene.assembly import Filling
from pliant.scene.scene import Scene
from pliant.solvers.pressure.base import Outcome

FORMAT, VERSION = "pliant checkpoint", 1
HEADER = "header"
ZIP_MAGIC = b"PK\x03\x04"
WALL = ("shift", "rotation", "velocity", "spin")
GRAINS = ("x", "v")


@dataclasses.dataclass
class Checkpoint:
    """What a file holds: `state` and `scene` are trees of plain values, `arrays` are by name. A `fresh` one was never
    in a file; a simulation whose parameters have changed goes on from it, and may have more fields."""

    path: str
    state: dict[str, Any]
    scene: dict[str, Any]
    arrays: dict[str, np.ndarray]
    fresh: bool = False

    def particles(self, name: str) -> np.ndarray:
        """One field of the particles, in the order they had."""
        return self.arrays[f"particles/{name}"]

    def live_scene(self, given: Scene | None) -> Scene:
        """The scene to go on with: the given one if it is the same, else the one in the file."""
        if given is not None and not isinstance(given, Scene):
            raise PliantError(f"scene must be a pl.Scene, got {given!r}")
        if given is None:
            if self.scene["functions"]:
                lost = " and ".join(self.scene["functions"])
                raise PliantError(f"{self.path} cannot hold {lost}, for no file holds functions; make the scene again "
                                  "as it was and pass it: pl.load(path, scene=scene)")  # fmt: skip
            scene = serialisation.rebuild(self.scene, self.arrays)
            for body, mobility in self._parts(scene, "mobility"):
                body.fixed = mobility == 0 if (mobility == 0).any() else None
            return scene
        problems = given.problems()
        if problems:
            raise SceneError(problems)
        changed = serialisation.differences(self.scene, self.arrays, *serialisation.describe(given))
        if changed:
            raise PliantError(f"{self.path} belongs to another scene: {'; '.join(changed)}")
        return given

    def fillings(self, scene: Scene) -> list[Filling]:
        """The bodies of particles, where they were when the state was saved."""
        each = {body.name: self.state["bodies"][body.name]["volume_each"] for body, _ in self._parts(scene, "x")}
        return [Filling(body, x, each[body.name]) for body, x in self._parts(scene, "x")]

    def _parts(self, scene: Scene, name: str) -> Iterator[tuple[Any, np.ndarray]]:
        """Each body of particles with its part of a field, in the order in which the particles were made."""
        values = self.particles(name)[np.argsort(self.particles("id"))]
        first = 0
        for body in scene.bodies:
            if body.material.sampled:
                last = first + self.state["bodies"][body.name]["particles"]
                yield body, values[first:last]
                first = last


# --- file -------------------------------------------------------------------------------------------


def hold(sim: Any, more: dict[str, Any] | None = None) -> Checkpoint:
    """A copy of the state now."""
    tree, arrays = serialisation.describe(sim.scene)
    arrays |= {f"particles/{name}": sim.world.particles.numpy(name) for name in sim.world.particles.saved}
    if sim.grains is not None:
        arrays |= {f"grains/{name}": getattr(sim.grains, name).to_numpy() for name in GRAINS}
    return Checkpoint("memory", _state(sim) | {"more": more or {}}, tree, arrays, fresh=True)


def capture(sim: Any, more: dict[str, Any] | None = None) -> Callable[[str | os.PathLike], None]:
    """Copies the state now; the function returned writes it to a path, at any time and in any thread. `more` are plain
    values for whoever reads the file."""
    held = hold(sim, more)

    def save(path: str | os.PathLike) -> None:
        header = {"format": FORMAT, "version": VERSION, "state": held.state, "scene": held.scene}
        header["checksum"] = _checksum(header, held.arrays)
        text = np.frombuffer(_text(header).encode(), np.uint8)
        with atomic_write(path, durable=True) as file:
            np.savez(file, **{HEADER: text}, **held.arrays)  # type: ignore[arg-type]

    return save


def read(path: str | os.PathLike) -> Checkpoint:
    """The checkpoint in a file; one that is damaged, foreign or newer is refused in a sentence."""
    path = checked_path(path)
    with _refusing(path):
        with np.load(path, allow_pickle=False) as file:
            if HEADER not in file:
                raise PliantError(f"{path} is not a checkpoint of Pliant")
            header = json.loads(file[HEADER].tobytes())
            _check_header(header, path)
            arrays = {name: file[name] for name in file.files if name != HEADER}
        if header.pop("checksum") != _checksum(header, arrays):
            raise PliantError(f"{path} is damaged: its checksum does not fit its contents")
    return Checkpoint(str(path), header["state"], header["scene"], arrays)


def _check_header(header: Any, path: Path) -> None:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise PliantError(f"{path} is not a checkpoint of Pliant")
    version = header.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise PliantError(f"{path} was saved by a newer Pliant: its format is {version!r}, this one reads up to "
                          f"{VERSION}; update Pliant")  # fmt: skip


@contextlib.contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Whatever reading a file may raise, as a sentence."""
    try:
        with open(path, "rb") as file:
            begins_well = file.read(len(ZIP_MAGIC)) == ZIP_MAGIC
        if not begins_well:
            raise PliantError(f"{path} is not a checkpoint of Pliant")
        yield
    except OSError as error:
        raise PliantError(f"cannot read the checkpoint {path}: {error.strerror or error}") from error
    except (zipfile.BadZipFile, ValueError, LookupError, EOFError, MemoryError, RuntimeError) as error:
        raise PliantError(f"{path} is damaged or cut short ({type(error).__name__})") from error


def _text(header: dict[str, Any]) -> str:
    """JSON, the same before writing and after reading: keys in order, floats in as many digits as bring them back."""
    return json.dumps(header, sort_keys=True, default=lambda number: number.item())


def _checksum(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.blake2b(_text(header).encode(), digest_size=16)
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"|{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


# --- state ------------------------------------------------------------------------------------------


def _state(sim: Any) -> dict[str, Any]:
    """The numbers of a simulation beside the particles."""
    walls = {wall.name: {name: getattr(wall, name).tolist() for name in WALL} for wall in sim.world.walls.walls}
    outcomes = {name: getattr(sim._step, name) for name in ("density", "divergence")}
    last = sim.prescribed.last
    return {
        "time": sim.time, "step": sim.step_count, "dt": sim.dt, "free_dt": sim._free_dt,
        "given_speed": sim._given_speed, "notes": sim.notes, "walls": walls,
        "bodies": {f.body.name: {"particles": len(f.x), "volume_each": f.volume_each} for f in sim.fillings},
        "pivots": sim.prescribed.pivots.tolist(), "led": last and [last[0], last[1].tolist()],
        "outcomes": {name: o and dataclasses.asdict(o) for name, o in outcomes.items()}, "numbers": sim._step.numbers,
    }  # fmt: skip


def fill(saved: Checkpoint, particles: Any) -> None:
    """Puts the particles back, in the order they had."""
    for name in particles.saved:
        _, kind, shape = KINDS[particles.schema[name].kind]
        array = saved.arrays.get(f"particles/{name}")
        if array is None and saved.fresh:
            continue
        if array is None or array.dtype != kind or array.shape != (particles.n, *shape):
            raise PliantError(f"{saved.path} does not hold the field {name!r} as this version of Pliant keeps it")
        particles.set(name, array)


def _restore_grains(saved: Checkpoint, grains: Any) -> None:
    arrays = [saved.arrays.get(f"grains/{name}") for name in GRAINS]
    if any(a is None or a.dtype != np.float32 or a.shape != (grains.n, 3) for a in arrays):
        raise PliantError(f"{saved.path} does not hold the {grains.n:,} grains of its bodies")
    grains.set(*arrays)


def restore(saved: Checkpoint, sim: Any) -> None:
    """Puts everything back beside the particles."""
    if sim.grains is not None:
        _restore_grains(saved, sim.grains)
    state = saved.state
    sim.world.time, sim.step_count, sim.dt, sim._free_dt = (state[k] for k in ("time", "step", "dt", "free_dt"))
    sim.notes[:] = state["notes"]
    for wall in sim.world.walls.walls:
        for name in WALL:
            setattr(wall, name, np.array(state["walls"][wall.name][name]))
    sim.prescribed.pivots = np.array(state["pivots"])
    sim.prescribed.last = state["led"] and (state["led"][0], np.array(state["led"][1]))
    for name, outcome in state["outcomes"].items():
        setattr(sim._step, name, outcome and Outcome(**outcome))
    sim._step.numbers.update(state["numbers"])
    sim.measure()
    sim._given_speed = state["given_speed"]
