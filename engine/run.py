"""One run of a scene into a folder: frames, progress, a record to repeat it by, and a clean end whatever happens."""

import contextlib
import dataclasses
import json
import platform
import re
import shlex
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import taichi as ti
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import pliant
from pliant.console import console
from pliant.errors import PliantError
from pliant.frames import Frame
from pliant.io.files import atomic_write
from pliant.render import available
from pliant.scene import Scene
from pliant.stats import Stats

RECORD = "run.json"
BAR_WIDTH = 20  # characters
PLAIN_SECONDS = 10.0  # where there is no terminal, a line of progress comes no more often than this


@dataclasses.dataclass
class Plan:
    """What a run was asked to do."""

    name: str
    given: str  # how the command line called the scene: its name or its file
    scene: Scene
    options: dict[str, Any]  # of the scene's build()
    seconds: float
    fps: float
    folder: Path
    formats: tuple[str, ...]
    size: tuple[int, int]  # of the pictures [pixels]

    @property
    def frames(self) -> int:
        """How many frames follow the first."""
        return max(round(self.seconds * self.fps), 1)

    @property
    def command(self) -> str:
        """The command that repeats the run, with every choice spelt out."""
        words = ["pliant", "run", self.given, "--seconds", str(self.seconds), "--fps", str(self.fps)]
        words += ["--out", str(self.folder), "--format", ",".join(self.formats), "--size", "{}x{}".format(*self.size)]
        for name, value in self.options.items():
            words += ["--set", f"{name}={_as_text(value)}"] if value is not None else []
        return shlex.join(words)


def _as_text(value: Any) -> str:
    """An option's value as `--set` reads it."""
    if isinstance(value, (tuple, list)) and len(value) > 1:
        return ",".join(map(repr, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def say(sentence: str) -> None:
    """A sentence on the terminal as it is: no wrapping, no markup in the user's names."""
    console.print(sentence, markup=False, soft_wrap=True)


class Run:
    """Carries out a plan. `record` is what `run.json` holds; `status` is the exit status of the command."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.status = 0
        self.milliseconds: dict[str, float] = {}  # by stage, summed over all steps but the first
        self.record = _first_record(plan)
        self.formats = plan.formats
        self.sim: Any = None

    def __call__(self) -> int:
        """Builds, simulates and writes; returns the exit status."""
        check_folder(self.plan.folder)
        self.formats = _drawable(self.plan.formats)
        self.sim = self.plan.scene.build()
        counts = {filling.body.name: len(filling.x) for filling in self.sim.fillings}
        self.record |= {"particles": counts, "notes": list(self.sim.notes), "formats": list(self.formats)}
        for note in self.sim.notes:
            say(note)
        say(f"{self.plan.name}: {sum(counts.values()):,} particles, {self.plan.seconds:g} s at {self.plan.fps:g} fps "
            f"into {self.plan.folder}")  # fmt: skip
        remove_old_frames(self.plan.folder)
        self._save("running")
        start = time.perf_counter()
        try:
            self._simulate()
        except KeyboardInterrupt:  # a second Ctrl-C
            self.status = 130
            self.record["status"] = "interrupted"
        except BaseException as error:
            text = str(error) if isinstance(error, PliantError) else f"{type(error).__name__}: {error}"
            self.record |= {"status": "failed", "error": text}
            raise
        finally:
            self._finish(time.perf_counter() - start)
        return self.status

    def _simulate(self) -> None:
        plan, sim = self.plan, self.sim
        with interruptible() as asked, progress(plan) as show:
            sim.scene.on_step(lambda _: self._after_step(show) and not asked())
            for frame in sim.frames(plan.seconds, plan.fps):
                frame.write(plan.folder, self.formats, *plan.size)
                stats = sim.stats
                self.record["frames"].append(_frame_record(frame, stats))
                show(frame.index, stats)
                if asked():
                    break
        done = len(self.record["frames"]) > plan.frames
        self.record["status"] = "finished" if done else "interrupted" if asked() else "ended by the scene"
        self.status = 130 if asked() and not done else 0

    def _after_step(self, show: "Show") -> bool:
        if self.sim.step_count > 1:  # the first step loads or compiles the kernels
            for stage, seconds in self.sim._step.seconds.items():
                self.milliseconds[stage] = self.milliseconds.get(stage, 0.0) + 1e3 * seconds
        show(self.sim.time * self.plan.fps)
        return True

    def _finish(self, wall: float) -> None:
        """Writes the record's last version and says what there is now."""
        mean = {stage: total / (self.sim.step_count - 1) for stage, total in self.milliseconds.items()}
        self.record |= {"wall_seconds": wall, "steps": self.sim.step_count, "milliseconds_per_step": mean}
        with contextlib.suppress(PliantError):  # a full disk has been reported already
            self._save(self.record["status"])
        if self.milliseconds:
            console.print(_stage_table(mean, self.sim.step_count - 1))
        for sentence in self._results(wall):
            say(sentence)

    def _results(self, wall: float) -> Iterator[str]:
        plan, frames = self.plan, self.record["frames"]
        ends = {"finished": "Finished", "interrupted": "Interrupted", "failed": "Stopped",
                "ended by the scene": "Ended by the scene's on_step"}  # fmt: skip
        yield (f"{ends[self.record['status']]} at t = {self.sim.time:.4g} s after {wall:.1f} s: {len(frames)} of "
               f"{plan.frames + 1} frames are in {plan.folder}")  # fmt: skip
        if frames and "vtu" in self.formats:
            yield f"  ParaView: {plan.folder / 'particles.pvd'}"
        if frames and "png" in self.formats:
            last = f" to frame_{len(frames) - 1:04d}.png" if len(frames) > 1 else ""
            yield f"  pictures: {plan.folder / 'frame_0000.png'}{last}"
        yield f"  numbers:  {plan.folder / RECORD}"

    def _save(self, status: str) -> None:
        self.record["status"] = status
        with atomic_write(self.plan.folder / RECORD) as file:
            file.write((json.dumps(self.record, indent=1, default=_plain) + "\n").encode())


def _first_record(plan: Plan) -> dict[str, Any]:
    versions = {"pliant": pliant.__version__, "taichi": ".".join(map(str, ti.__version__)), "numpy": np.__version__,
                "python": platform.python_version()}  # fmt: skip
    return {
        "scene": plan.name, "options": plan.options, "seconds": plan.seconds, "fps": plan.fps,
        "formats": list(plan.formats), "size": list(plan.size), "command": plan.command,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "versions": versions, "platform": platform.platform(),
        "particles": {}, "notes": [], "status": "running", "error": None, "frames": [],
    }  # fmt: skip


def _frame_record(frame: Frame, stats: Stats) -> dict[str, Any]:
    return {
        "frame": frame.index, "time": frame.time, "step": stats.step, "dt": stats.dt, "iterations": stats.iterations,
        "mean_density_error": float(stats.mean_density_error), "max_density_error": float(stats.max_density_error),
        "max_speed": stats.max_speed, "kinetic_energy": stats.kinetic_energy,
        "potential_energy": stats.potential_energy, "energy": stats.energy,
    }  # fmt: skip


def _plain(value: Any) -> Any:
    """What JSON does not know: NumPy numbers and arrays as numbers and lists, anything else as its text."""
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else str(value)


def check_folder(folder: Path) -> None:
    """Makes the folder if need be; one sentence if nothing can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = "it is not a folder" if folder.exists() and not folder.is_dir() else error.strerror or error
        raise PliantError(f"cannot write into {folder}: {reason}; choose another folder with --out") from error


def remove_old_frames(folder: Path) -> None:
    """Removes frames of an earlier run in the same folder: left in place, the two would mix into one film."""
    try:
        bodies = json.loads((folder / RECORD).read_text())["particles"]
    except (OSError, ValueError, KeyError, TypeError):
        return  # no earlier run here, so whatever is here is somebody else's
    names = "|".join(re.escape(f"{name}_") for name in bodies)
    ours = re.compile(rf"frame_\d{{4,}}\.png|({names})\d{{4,}}\.vtu|particles\.pvd" if names else r"frame_\d{4,}\.png")
    for path in folder.iterdir():
        if ours.fullmatch(path.name):
            with contextlib.suppress(OSError):
                path.unlink()


def _drawable(formats: tuple[str, ...]) -> tuple[str, ...]:
    """The formats that this machine can write; pictures need a graphics driver."""
    missing = available() if "png" in formats else None
    if missing is None:
        return formats
    say(f"No pictures are drawn: {missing}")
    return tuple(name for name in formats if name != "png")


@contextlib.contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Ctrl-C asks for an end after the step under way, so that no frame is left half written; a second one insists."""
    times: list[float] = []

    def ask(*_: Any) -> None:
        if times:
            raise KeyboardInterrupt
        times.append(time.time())
        say("Ending after this step; press Ctrl-C again to end at once.")

    if threading.current_thread() is not threading.main_thread():  # signals reach the main thread only
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: bool(times)
    finally:
        signal.signal(signal.SIGINT, before)


Show = Callable[..., None]


@contextlib.contextmanager
def progress(plan: Plan) -> Iterator[Show]:
    """Yields `show(frames done, stats of a new frame or None)`: a bar on a terminal, now and then a line elsewhere."""
    if not console.is_terminal:
        yield _plain_progress(plan)
        return
    columns = (TextColumn(plan.name, markup=False), BarColumn(BAR_WIDTH), TextColumn("{task.fields[text]}"),
               TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=plan.frames, text="")
        begun = time.perf_counter()

        def show(done: float, stats: Stats | None = None) -> None:
            bar.update(task, completed=done)
            if stats is not None:
                bar.update(task, text=_numbers(int(done), plan, stats, time.perf_counter() - begun))

        yield show


def _plain_progress(plan: Plan) -> Show:
    begun = time.perf_counter()
    last = [begun]

    def show(done: float, stats: Stats | None = None) -> None:
        now = time.perf_counter()
        if stats is None or now - last[0] < PLAIN_SECONDS:
            return
        last[0] = now
        left = (now - begun) * (plan.frames - done) / done if done else 0.0
        say(f"{_numbers(int(done), plan, stats, now - begun)}, {left:.0f} s left")

    return show


def _numbers(done: int, plan: Plan, stats: Stats, wall: float) -> str:
    iterations = "+".join(str(stats.iterations[k]) for k in ("divergence", "density") if k in stats.iterations)
    rate = stats.particles * stats.step / max(wall, 1e-9)
    return (f"frame {done}/{plan.frames}, t {stats.time:.3f} s, dt {1e3 * stats.dt:.2g} ms, "
            f"{iterations or 0} iterations, {stats.particles:,} particles, {rate:.2g}/s")  # fmt: skip


def _stage_table(mean: dict[str, float], steps: int) -> Table:
    """Mean milliseconds per step by stage."""
    table = Table("stage", title=f"mean of {steps:,} steps after the first", title_justify="left")
    table.add_column("ms per step", justify="right")
    table.add_column("share", justify="right")
    total = sum(mean.values())
    for stage, value in mean.items():
        table.add_row(stage, f"{value:.2f}", f"{value / max(total, 1e-12):.0%}")
    table.add_section()
    table.add_row("all", f"{total:.2f}", "")
    return table
