"""What a run is asked to do, and the record that tells of it."""

import dataclasses
import hashlib
import platform
import random
import shlex
import time
from pathlib import Path
from typing import Any

import numpy as np
import taichi as ti

import pliant
from pliant.io.plain import plain
from pliant.run.frames import Frame
from pliant.scene.scene import Scene
from pliant.sim.stats import Stats


@dataclasses.dataclass
class Plan:
    """What a run was asked to do."""

    name: str
    given: str  # how the command line called the scene: its name or its file
    scene: Scene
    settings: list[str]  # options of the scene's build() that were set, as texts name=value
    options: dict[str, Any]  # all of them
    seconds: float
    fps: float
    folder: Path
    formats: tuple[str, ...]
    size: tuple[int, int]  # of the pictures [pixels]
    look: list[str] = dataclasses.field(default_factory=list)  # what differs from the scene's own, as texts name=value
    video: bool = False
    backend: str = "cpu"  # as it was asked for: "gpu" may be another one elsewhere
    seed: int = 0  # of the random numbers that a scene's script may draw
    kept: Path | None = None  # the folder of a finished run that this one would have replaced
    checkpoint_seconds: float = 60.0  # of wall-clock time between two checkpoints; 0 makes one after each frame

    @property
    def frames(self) -> int:
        """How many frames follow the first."""
        return max(round(self.seconds * self.fps), 1)

    @property
    def command(self) -> str:
        """The command that repeats the run, with every choice spelt out but the folder: this one is kept."""
        words = ["pliant", "run", self.given, "--seconds", str(self.seconds), "--fps", str(self.fps)]
        words += ["--format", ",".join(self.formats), "--size", "{}x{}".format(*self.size)]
        words += ["--seed", str(self.seed), "--backend", self.backend] + ["--video"] * self.video
        for setting in self.settings:
            words += ["--set", setting]
        for setting in self.look:
            words += ["--look", setting]
        return shlex.join(words)


def first_record(plan: Plan) -> dict[str, Any]:
    """What run.json says before anything has happened."""
    versions = {"pliant": pliant.__version__, "taichi": ".".join(map(str, ti.__version__)), "numpy": np.__version__,
                "python": platform.python_version()}  # fmt: skip
    return {
        "scene": plan.name, "given": plan.given, "source": plan.scene.source,
        "source_sha256": _hash(plan.scene.source), "settings": plan.settings, "options": plan.options,
        "seconds": plan.seconds, "fps": plan.fps, "seed": plan.seed, "asked_formats": list(plan.formats),
        "formats": list(plan.formats), "size": list(plan.size), "look": plan.look, "video": plan.video,
        "backend": plan.backend,
        "command": plan.command, "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "versions": versions,
        "platform": platform.platform(), "particles": {}, "walls": [], "notes": [], "missing_pictures": [],
        "status": "running", "error": None, "frames": [],
    }  # fmt: skip


def _hash(source: Path | str | None) -> str | None:
    """Of the scene's file, to tell later whether it has changed."""
    try:
        return hashlib.sha256(Path(source).read_bytes()).hexdigest() if source else None
    except OSError:
        return None


def frame_record(frame: Frame, stats: Stats) -> dict[str, Any]:
    """What run.json says of a frame."""
    return {
        "frame": frame.index, "time": frame.time, "step": stats.step, "dt": stats.dt, "iterations": stats.iterations,
        "mean_density_error": float(stats.mean_density_error), "max_density_error": float(stats.max_density_error),
        "max_speed": stats.max_speed, "kinetic_energy": stats.kinetic_energy,
        "potential_energy": stats.potential_energy, "elastic_energy": stats.elastic_energy, "energy": stats.energy,
        "momentum": stats.momentum.tolist(), "angular_momentum": stats.angular_momentum.tolist(),
        "particles": stats.particles, "initial": stats.initial, "emitted": stats.emitted, "drained": stats.drained,
    }  # fmt: skip


def rng_state() -> dict[str, Any]:
    """Where the random numbers of `random` and of NumPy are, which scenes may draw while they run."""
    kind, state, gauss = random.getstate()
    numpy = np.random.get_state(legacy=False)
    return {"python": [kind, list(state), gauss], "numpy": plain(numpy)}


def restore_rng(saved: dict[str, Any]) -> None:
    """Goes on with the random numbers from there."""
    kind, state, gauss = saved["python"]
    random.setstate((kind, tuple(state), gauss))
    numpy = saved["numpy"]
    numpy["state"]["key"] = np.array(numpy["state"]["key"], np.uint32)
    np.random.set_state(numpy)
