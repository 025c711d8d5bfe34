"""The folder of a run, for whoever writes it and whoever reads it later.

    run.json          scene, options, versions, statistics of each frame: what is needed to repeat the run
    render_scene.npz  what does not change from frame to frame: walls, colours, camera
    frames/           water_0001.vtu ..., particles.pvd, frame_0001.png ...
    checkpoints/      the last states, to resume from
    probes/           what each probe has recorded: <name>.csv, <name>.npz
    video.mp4, log.txt
    pictures/         what `pliant render` draws, with its video; pictures_2/ ... if it draws again
    export/, skin/    what `pliant export` and `pliant skin` write
"""

import contextlib
import itertools
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

from pliant.core.choices import FORMATS, PARTICLE_FORMATS
from pliant.core.data import Snapshot
from pliant.errors import PliantError
from pliant.io import read_cloud
from pliant.io.files import atomic_write
from pliant.io.plain import as_json
from pliant.render.render_scene import RenderScene
from pliant.run.frames import frame_file
from pliant.run.pose_files import NAME as POSES
from pliant.run.pose_files import poses_of
from pliant.sim import checkpoint
from pliant.sim.checkpoint import Checkpoint

RECORD = "run.json"
KEYS: dict[str, Any] = {"scene": str, "given": str, "settings": list, "seconds": (int, float), "fps": (int, float),
                        "formats": list, "asked_formats": list, "size": list, "look": list, "particles": dict,
                        "frames": list}  # fmt: skip
CHECKPOINT = re.compile(r"frame_(\d+)_step_(\d+)\.npz")
TORN = re.compile(r"\..+\.\d+\.part(\.mp4)?")  # half-written files, by the number of the process that wrote them
MADE = re.compile(r"pictures(_\d+)?|export|skin")  # folders of `pliant render`, `export` and `skin`
DONE = ("finished", "ended by the scene")  # what a record says of a run that is complete
KEPT = 2  # checkpoints: the last one, and the one before in case that one is damaged


def cloud_names(record: dict[str, Any]) -> tuple[str, ...]:
    """The names under which a run's frames hold particles, grains and whatever else has points. (Records of the last
    release call what is not particles "grains".)"""
    return (*record["particles"], *record.get("others", record.get("grains", ())))


def numbered(path: Path) -> Iterator[Path]:
    """The path, then the path with _2, _3 ... at its end."""
    yield path
    yield from (path.with_name(f"{path.name}_{k}") for k in itertools.count(2))


def unused(path: Path) -> Path:
    """The first of the numbered paths at which there is nothing, or an empty folder."""
    return next(p for p in numbered(path) if not p.exists() or p.is_dir() and not any(p.iterdir()))


def _matching(folder: Path, pattern: str) -> list[Path]:
    """What is in a folder under names that match."""
    return [path for path in folder.glob("*") if re.fullmatch(pattern, path.name)]


def choose_folder(first: Path, scene: str, existing: bool) -> tuple[Path, Path | None]:
    """The folder for a run of a scene, and the last finished run of the scene that is kept for its sake, if any.

    Finished runs are kept, and so are runs of other scenes whose names end in a number: it is the first of the numbered
    folders without either. With `existing` there must be a run in it, to be resumed or replaced: an unfinished one, or
    else the last one.
    """
    last: Path | None = None
    for path in numbered(first):
        folder = RunFolder(path)
        own, empty = folder.scene() in (scene, None), not folder.holds_something()
        if existing and empty:
            return last or first, None
        if own and not folder.finished():
            return path, None if existing else last
        last = path if own else last
    raise AssertionError("paths are numbered without end")


class RunFolder:
    """Paths and files of one run."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.frames, self.checkpoints = self.path / "frames", self.path / "checkpoints"
        self.probes = self.path / "probes"
        self.record_file, self.render_scene_file = self.path / RECORD, self.path / "render_scene.npz"
        self.old_render_scene_file = self.path / "stage.npz"  # of runs of earlier versions
        self.video, self.log = self.path / "video.mp4", self.path / "log.txt"
        self.pictures = self.path / "pictures"  # drawn later

    # --- reading ---

    def record(self) -> dict[str, Any]:
        """What run.json holds."""
        try:
            record = json.loads(self.record_file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            what = "has no run.json" if self.path.is_dir() else "is not a folder"
            raise PliantError(f"{self.path} is not a run: it {what}") from None
        except OSError as error:
            raise PliantError(f"cannot read {self.record_file}: {error.strerror or error}") from error
        except ValueError as error:
            raise PliantError(f"{self.record_file} is damaged: {error}") from error
        if not isinstance(record, dict) or "scene" not in record:
            raise PliantError(f"{self.record_file} is not the record of a run of Pliant")
        for name, kind in KEYS.items():
            if not isinstance(record.get(name), kind):
                raise PliantError(f"{self.record_file} is not whole: it lacks a proper {name!r}")
        if not all(isinstance(f, dict) and isinstance(f.get("frame"), int) and "time" in f for f in record["frames"]):
            raise PliantError(f"{self.record_file} is not whole: some of its frames lack their number or time")
        return record

    def scene(self) -> str | None:
        """The name of the scene, None if there is no record that tells."""
        with contextlib.suppress(PliantError):
            return self.record()["scene"]
        return None

    def finished(self) -> bool:
        """Whether there is a complete run."""
        with contextlib.suppress(PliantError):
            return self.record().get("status") in DONE
        return False

    def render_scene(self) -> RenderScene:
        """What all frames share."""
        new, old = self.render_scene_file, self.old_render_scene_file
        return RenderScene.load(old if old.exists() and not new.exists() else new)

    def snapshot(self, index: int, record: dict[str, Any] | None = None) -> Snapshot:
        """One frame, from whichever of its files can be read."""
        record = record or self.record()
        entry = next((frame for frame in record["frames"] if frame["frame"] == index), None)
        if entry is None:
            raise PliantError(f"{self.path} has no frame {index}; it has {len(record['frames'])}")
        formats = [name for name in PARTICLE_FORMATS if name in record["formats"]]
        if not formats:
            raise PliantError(f"{self.path} holds no particles, only {', '.join(record['formats'])}; run it again with "
                              f"--format {PARTICLE_FORMATS[0]}")  # fmt: skip
        bodies = cloud_names(record)
        clouds = {body: read_cloud(self.frames / frame_file(body, index, formats[0])) for body in bodies}
        poses = {name: np.array(pose) for name, pose in entry.get("poses", {}).items()}
        return Snapshot(index, entry["time"], clouds, poses, rigid=poses_of(entry))

    def latest(self) -> tuple[int, Checkpoint] | None:
        """The last whole checkpoint and the last frame before it, or None if there is no checkpoint at all. A damaged
        one is passed over if there is one before it."""
        first: PliantError | None = None
        for path in reversed(self._checkpoints()):
            try:
                return int(path.name.split("_")[1]), checkpoint.read(path)
            except PliantError as error:
                first = first or error
        if first is not None:
            raise first
        return None

    def _checkpoints(self) -> list[Path]:
        """In the order they were made."""
        found = [path for path in self.checkpoints.glob("*.npz") if CHECKPOINT.fullmatch(path.name)]
        return sorted(found, key=lambda path: int(path.stem.rpartition("_")[2]))

    # --- writing ---

    def prepare(self) -> None:
        """Makes the folders; one sentence if nothing can be written there."""
        try:
            for folder in (self.frames, self.checkpoints):
                folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.path):
                pass
        except OSError as error:
            blocked = next((p for p in (self.path, *self.path.parents) if p.exists() and not p.is_dir()), None)
            reason = f"{blocked} is not a folder" if blocked else error.strerror or error
            raise PliantError(f"cannot write into {self.path}: {reason}; choose another folder with --out") from error

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps a second run out of the folder. The lock goes with the process, however that ends."""
        with contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context(open(self.log, "a"))
            except OSError as error:
                raise PliantError(f"cannot write {self.log}: {error.strerror}") from error
            try:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise PliantError(f"another run is writing into {self.path}; wait for it, or choose another folder "
                                  "with --out") from None  # fmt: skip
            yield

    def write_record(self, record: dict[str, Any]) -> None:
        with atomic_write(self.record_file, durable=True) as file:
            file.write((as_json(record, indent=1) + "\n").encode())

    def add_checkpoint(self, frame: int, step: int, save: Any) -> None:
        """Writes a checkpoint and lets go of the oldest ones."""
        os.sync()  # the frames that it stands for, before itself
        save(self.checkpoints / f"frame_{frame:04d}_step_{step:06d}.npz")
        for path in self._checkpoints()[:-KEPT]:
            path.unlink(missing_ok=True)

    def holds_something(self) -> bool:
        """Whether there are traces of a run, be its record lost."""
        return self.record_file.exists() or bool(self._checkpoints())

    def clear(self, names: list[str]) -> None:
        """Removes what an earlier run left here, what was made of it since, and what would mix with bodies and walls of
        these names; nothing of anybody else's."""
        scene, probes = "", []
        with contextlib.suppress(PliantError):
            record = self.record()
            probes = [str(name) for name in record.get("probes", ())]
            names, scene = [*names, *cloud_names(record), *record.get("walls", ())], record["scene"]
        bodies, endings = "|".join(map(re.escape, names)), "|".join(FORMATS)
        ours = rf"frame_\d{{4,}}\.png|({bodies})(_skin|_surface)?(_\d{{4,}})?\.({endings})|particles\.pvd"
        whole = rf"video\.mp4|{re.escape(POSES)}|sheet\.png|inspect\.png|probes\.png|{re.escape(scene)}(_skin)?\.usdc"
        old = [*_matching(self.frames, ours), *self._checkpoints()]
        old += [self.record_file, self.render_scene_file, self.old_render_scene_file]
        made = [path for path in self.path.glob("*") if MADE.fullmatch(path.name) and path.is_dir()] if scene else []
        for folder in made:
            old += _matching(folder, f"{ours}|{whole}")
        if probes:
            old += _matching(self.probes, rf"({'|'.join(map(re.escape, probes))})\.(csv|npz)")
            made.append(self.probes)
        for path in [*old, *(_matching(self.path, whole) if scene else [])]:
            with contextlib.suppress(OSError):
                path.unlink()
        for folder in made:
            with contextlib.suppress(OSError):  # somebody keeps something in it
                folder.rmdir()

    def sweep(self) -> None:
        """Removes half-written files that a killed process left."""
        for folder in (self.path, self.frames, self.checkpoints, self.probes):
            for path in folder.glob(".*.part*"):
                if TORN.fullmatch(path.name):
                    with contextlib.suppress(OSError):
                        path.unlink()

    def free_bytes(self) -> int:
        return shutil.disk_usage(self.path).free

