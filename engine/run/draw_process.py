"""Drawing processes: each starts Taichi, owns a window, and turns snapshots into pictures, one at a time."""

import contextlib
import math
import os
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pliant.core import backend
from pliant.core.data import Snapshot
from pliant.core.processes import first_to_go, ignore_interrupts, start_apart
from pliant.errors import PliantError
from pliant.render.look import Look
from pliant.render.render_scene import RenderScene
from pliant.render.renderer import Renderer
from pliant.run.frames import frame_file
from pliant.run.watchdog import Watchdog, memory_limit
from pliant.skin.skins import without_skins

FRAMES_PER_WORKER = 300  # then another takes over: GGUI loses up to 1 MB a picture (Taichi 1.7.4)
PICTURE_SECONDS = 300.0  # that a picture may take, the start of its process included: far more than any should need
ENDING_SECONDS = 10.0  # that a process may take to end when it is told to

Loader = Callable[[int], Snapshot]


class DeadWorkerError(PliantError):
    """A drawing process is gone, killed or out of memory."""


class RunawayError(DeadWorkerError):
    """A drawing process was ended because it took too much memory or time."""


def picture_file(folder: Path, index: int) -> Path:
    """Where the picture of a frame goes."""
    return folder / frame_file("frame", index, "png")


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass
class Job:
    """What a worker needs to know."""

    render_scene: RenderScene
    snapshots: Loader | None  # None if snapshots are sent instead of their indices
    folder: Path
    look: Look
    size: tuple[int, int]
    threads: int
    workers: int = 1  # that share the memory


@dataclass
class Worker:
    """The parent's side of a worker process: asks for one frame at a time."""

    job: Job
    latest: Callable[[], float] = lambda: math.inf  # the moment at which any picture must be done (time.monotonic)
    drawn: int = 0
    frame: int | None = None  # being drawn
    connection: Connection = field(init=False)
    process: Any = field(init=False)
    watchdog: Watchdog = field(init=False)

    def __post_init__(self):
        try:
            self.process, self.connection = start_apart(_work, self.job)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise PliantError(f"the snapshots' loader cannot be sent to another process: {error}.") from error
        self.watchdog = Watchdog(self.process, memory_limit(self.job.workers), self.latest)

    @property
    def busy(self) -> bool:
        return self.frame is not None

    @property
    def spent(self) -> bool:
        """Whether another has to take over before the next frame."""
        return self.drawn >= FRAMES_PER_WORKER or bool(self.watchdog.reason) or not self.process.is_alive()

    def ask(self, item: int | Snapshot | None) -> None:
        """Asks for a frame, by its index or by itself; None tells the worker to end."""
        self.frame = item.index if isinstance(item, Snapshot) else item
        if self.busy:
            self.watchdog.begin(PICTURE_SECONDS)
        with contextlib.suppress(OSError):  # if it has died, the answer will tell
            self.connection.send(item)

    def answer(self) -> None:
        """Takes the answer to the last question, or raises what it says."""
        try:
            sentence = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            if self.watchdog.reason:
                raise RunawayError(
                    f"the picture of frame {self.frame} {self.watchdog.reason}; a smaller size, fewer workers or "
                    "fluid=spheres help."
                ) from None
            raise DeadWorkerError(
                f"a drawing process died at frame {self.frame} (exit status {self.process.exitcode}); if memory ran "
                "out, fewer workers or a smaller size help."
            ) from None
        self.watchdog.end()
        if sentence is not None:
            raise PliantError(sentence)
        self.drawn += 1

    def finish(self) -> None:
        """Waits for a worker that was told to end."""
        self.process.join(ENDING_SECONDS)
        self.stop()

    def stop(self) -> None:
        """Ends it, whatever it is doing."""
        self.watchdog.close()
        self.process.kill()
        self.process.join()
        for torn in self.job.folder.glob(f".*.{self.process.pid}.part"):  # what it was writing
            torn.unlink(missing_ok=True)
        self.connection.close()


class Painter:
    """Draws snapshots as they come, in a process of its own beside the simulation.

    One that dies is replaced once for a frame, so that a stray signal costs nothing; one that has to be ended because
    it takes too much memory or time would do so again, and is replaced for the next frame.
    """

    def __init__(self, render_scene: RenderScene, folder: Path, look: Look, size: tuple[int, int]):
        self._job = Job(render_scene, None, folder.absolute(), look, size, cores())
        self._latest = math.inf  # no picture is waited for after this moment (time.monotonic)
        self._worker: Worker | None = Worker(self._job, lambda: self._latest)  # at once: it takes seconds to start

    def draw(self, snapshot: Snapshot, again: bool = True) -> bool:
        """Draws a frame into the folder; returns when the picture is there, or False if it is no longer waited for."""
        if time.monotonic() >= self._latest:
            return False
        try:
            self._ask(snapshot)
        except DeadWorkerError as error:
            self.close()
            if self._latest < math.inf:
                return False
            if isinstance(error, RunawayError) or not again:
                raise
            return self.draw(snapshot, again=False)
        return True

    def hurry(self, seconds: float) -> None:
        """Pictures are waited for no longer than so many seconds from now. May be called from any thread."""
        self._latest = min(self._latest, time.monotonic() + seconds)

    def _ask(self, snapshot: Snapshot) -> None:
        if self._worker is not None and self._worker.spent:
            self.close()
        self._worker = self._worker or Worker(self._job, lambda: self._latest)
        self._worker.ask(without_skins(snapshot))  # it makes them itself, which is faster than sending them
        self._worker.answer()
        self._worker.frame = None

    def close(self) -> None:
        """Ends the process."""
        worker, self._worker = self._worker, None
        if worker is not None and (worker.busy or self._latest < math.inf):
            worker.stop()
        elif worker is not None:
            worker.ask(None)
            worker.finish()


def _work(connection: Connection, job: Job) -> None:
    """The worker: draws frames until it is told to end."""
    ignore_interrupts()
    first_to_go()
    for name in ("LP_NUM_THREADS", "TI_CPU_MAX_NUM_THREADS", "RAYON_NUM_THREADS"):  # lavapipe, Taichi, splashsurf
        os.environ[name] = str(job.threads)
    try:
        backend.start("cpu")
        renderer = Renderer(*job.size, supersample=job.look.supersample)
    except PliantError as error:
        connection.send(str(error))
        return
    with contextlib.suppress(EOFError, OSError):  # the parent is gone
        while (item := connection.recv()) is not None:
            connection.send(_drawn(renderer, job, item))
    renderer.close()


def _drawn(renderer: Renderer, job: Job, item: int | Snapshot) -> str | None:
    """Draws a frame; a sentence if that fails."""
    index = item.index if isinstance(item, Snapshot) else item
    try:
        snapshot = item if isinstance(item, Snapshot) else job.snapshots(item)  # type: ignore[misc]
        picture = job.render_scene.picture(snapshot, job.look, job.size[0] / job.size[1])
        renderer.save(picture_file(job.folder, index), picture)
    except PliantError as error:
        return f"frame {index}: {error}"
    except Exception as error:  # must reach the parent, whatever it is
        return f"frame {index}: {type(error).__name__}: {error}"
    return None
