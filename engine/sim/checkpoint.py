"""The whole state of a simulation in one file: a run that is saved, loaded and continued equals one that never paused.

The file is an .npz without pickles: the arrays of all stores, and a JSON header with the format's version, a checksum
over everything else, the scene as plain data (`serialisation`), the numbers of the clock, and what stages remember.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.boundary.wall import Wall
from pliant.core.world import BodySamples
from pliant.errors import PliantError, SceneError
from pliant.io.files import atomic_write, checked_path
from pliant.scene import serialisation
from pliant.scene.assembly import samples_of
from pliant.scene.scene import Body, Scene
from pliant.sim.stats import rigid_walls
from pliant.solvers.stage import SolveResult

if TYPE_CHECKING:
    from pliant.sim.simulation import Simulation

FORMAT, VERSION = "pliant checkpoint", 2
HEADER = "header"
ZIP_MAGIC = b"PK\x03\x04"


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
            for body, fixed in self._fixed(scene):
                body.fixed = fixed if fixed.any() else None
            return scene
        problems = given.problems()
        if problems:
            raise SceneError(problems)
        changed = serialisation.differences(self.scene, self.arrays, *serialisation.describe(given))
        if changed:
            raise PliantError(f"{self.path} belongs to another scene: {'; '.join(changed)}")
        return given

    def samples(self, scene: Scene) -> list[BodySamples]:
        """The bodies of the scene as they are to be made again: without points, which the stores hold."""
        each = self.state["volumes"]
        return [samples_of(scene, body, np.zeros((0, 3)), each[body.name]) for body in scene.bodies]

    def store(self, name: str) -> dict[str, np.ndarray]:
        """The arrays of one store."""
        return {key.partition("/")[2]: array for key, array in self.arrays.items() if key.startswith(f"{name}/")}

    def _fixed(self, scene: Scene) -> Iterator[tuple[Body, np.ndarray]]:
        """Which particles of each body have a prescribed motion, in the order in which they were made."""
        order = np.argsort(self.particles("id"))
        fixed, body = self.particles("inverse_density")[order] == 0, self.particles("body")[order]
        for number, one in enumerate(b for b in scene.bodies if b.material.has_particles):
            yield one, fixed[body == number]


# --- file -------------------------------------------------------------------------------------------


def capture_state(sim: "Simulation", more: dict[str, Any] | None = None) -> Checkpoint:
    """A copy of the state now."""
    tree, arrays = serialisation.describe(sim.scene)
    for store in sim.world.stores.values():
        arrays |= {f"{store.name}/{name}": np.array(values) for name, values in store.save().items()}
    stages = {stage.name: kept for stage in sim.stages if (kept := stage.save())}
    results = {name: dataclasses.asdict(result) for name, result in sim.results.items()}
    state = {"clock": sim.clock, "notes": sim.notes, "volumes": sim.volumes, "stages": stages, "results": results,
             "held": [wall.name for wall in rigid_walls(sim) if not wall.free and wall.motion is None],
             "free": [wall.name for wall in rigid_walls(sim) if wall.free]}  # fmt: skip
    return Checkpoint("memory", state | {"more": more or {}}, tree, arrays, fresh=True)


def capture(sim: "Simulation", more: dict[str, Any] | None = None) -> Callable[[str | os.PathLike], None]:
    """Copies the state now; the function returned writes it to a path, at any time and in any thread. `more` are plain
    values for whoever reads the file."""
    held = capture_state(sim, more)

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
    if version < VERSION:
        raise PliantError(f"{path} was saved by an older Pliant, in the format {version}, which this one does not "
                          "read; go on with that version, or run the scene again")  # fmt: skip


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


def restore(saved: Checkpoint, sim: "Simulation") -> None:
    """Puts the state back into a simulation that was made for it."""
    try:
        for store in sim.world.stores.values():
            arrays = saved.store(store.name)
            if arrays or not saved.fresh:
                store.restore(arrays, partly=saved.fresh)
    except PliantError as error:
        raise PliantError(f"{saved.path} cannot be gone on from: {error}") from error
    for wall in rigid_walls(sim):
        _let_go_or_hold(sim, wall, saved)
    sim.notes[:] = saved.state["notes"]


def _let_go_or_hold(sim: "Simulation", wall: Wall, saved: Checkpoint) -> None:
    """Frees or holds a rigid body, if a script had done so before the state was saved. One that a motion led is led by
    that of its scene. Where the state never left the simulation, what is as it was stays, a hand that holds it too."""
    free, held = (wall.name in saved.state[name] for name in ("free", "held"))
    if (free or held) and not (saved.fresh and wall.free == free):
        body = sim.scene.body(wall.name)
        wall.free, wall.motion, body.motion, body.fixed = free, None, None, None if free else True


def restore_stages(saved: Checkpoint, sim: "Simulation") -> None:
    """Lets the stages remember what they knew, and sets the clock."""
    for stage in sim.stages:
        if stage.name in saved.state["stages"]:
            stage.restore(saved.state["stages"][stage.name])
    sim.results = {name: SolveResult(**values) for name, values in saved.state["results"].items()}
    sim.clock = saved.state["clock"]
