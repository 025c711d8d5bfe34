"""Drawing processes: each starts Taichi, owns a window, and turns snapshots into pictures, one at a time."""

import contextlib
import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pliant.core import backend
from pliant.core.data import Snapshot
from pliant.core.processes import ignore_interrupts, start_apart
from pliant.errors import PliantError
from pliant.render.look import Look
from pliant.render.render_scene import RenderScene
from pliant.render.renderer import Renderer
from pliant.run.frames import frame_file
from pliant.skin.skins import without_skins

FRAMES_PER_WORKER = 300  # then another takes over: GGUI loses up to 1 MB a picture (Taichi 1.7.4)

Loader = Callable[[int], Snapshot]


class DeadWorkerError(PliantError):
    """A drawing process is gone, killed or out of memory."""


def picture_file(folder: Path, index: int) -> Path:
    """Where the picture of a frame goes."""
    return folder / frame_file("frame", index, "png")


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass
class Job:
    """What a worker needs to know."""

    stage: RenderScene
    snapshots: Loader | None  # None if snapshots are sent instead of their indices
    folder: Path
    look: Look
    size: tuple[int, int]
    threads: int


@dataclass
class Worker:
    """The parent's side of a worker process: asks for one frame at a time."""

    job: Job
    drawn: int = 0
    frame: int | None = None  # being drawn
    connection: Connection = field(init=False)
    process: Any = field(init=False)

    def __post_init__(self):
        try:
            self.process, self.connection = start_apart(_work, self.job)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise PliantError(f"the snapshots' loader cannot be sent to another process: {error}.") from error

    @property
    def busy(self) -> bool:
        return self.frame is not None

    def ask(self, item: int | Snapshot | None) -> None:
        """Asks for a frame, by its index or by itself; None tells the worker to end."""
        self.frame = item.index if isinstance(item, Snapshot) else item
        with contextlib.suppress(OSError):  # if it has died, the answer will tell
            self.connection.send(item)

    def answer(self) -> None:
        """Takes the answer to the last question, or raises what it says."""
        try:
            sentence = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            raise DeadWorkerError(
                f"a drawing process died at frame {self.frame} (exit status {self.process.exitcode}); if memory ran "
                "out, fewer workers or a smaller size help."
            ) from None
        if sentence is not None:
            raise PliantError(sentence)
        self.drawn += 1

    def finish(self) -> None:
        """Waits for a worker that was told to end."""
        self.process.join()
        self.connection.close()

    def stop(self) -> None:
        """Ends it, whatever it is doing."""
        if self.process.is_alive():
            self.process.terminate()
            self.process.join()
            for torn in self.job.folder.glob(f".*.{self.process.pid}.part"):  # what it was writing
                torn.unlink(missing_ok=True)
        self.connection.close()


class Painter:
    """Draws snapshots as they come, in a process of its own beside the simulation.

    One that dies is replaced once for a frame, so that a stray signal costs nothing.
    """

    def __init__(self, stage: RenderScene, folder: Path, look: Look, size: tuple[int, int]):
        self._job = Job(stage, None, folder.absolute(), look, size, cores())
        self._worker: Worker | None = Worker(self._job)  # at once: it takes seconds to start

    def draw(self, snapshot: Snapshot) -> None:
        """Draws a frame into the folder; returns when the picture is there."""
        if self._worker is not None and self._worker.drawn >= FRAMES_PER_WORKER:
            self.close()
        try:
            self._ask(snapshot)
        except DeadWorkerError:
            self.close()
            self._ask(snapshot)

    def _ask(self, snapshot: Snapshot) -> None:
        self._worker = self._worker or Worker(self._job)
        self._worker.ask(without_skins(snapshot))  # it makes them itself, which is faster than sending them
        self._worker.answer()
        self._worker.frame = None

    def close(self) -> None:
        """Ends the process."""
        worker, self._worker = self._worker, None
        if worker is not None and worker.busy:
            worker.stop()
        elif worker is not None:
            worker.ask(None)
            worker.finish()


def _work(connection: Connection, job: Job) -> None:
    """The worker: draws frames until it is told to end."""
    ignore_interrupts()
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
        picture = job.stage.picture(snapshot, job.look, job.size[0] / job.size[1])
        renderer.save(picture_file(job.folder, index), picture)
    except PliantError as error:
        return f"frame {index}: {error}"
    except Exception as error:  # must reach the parent, whatever it is
        return f"frame {index}: {type(error).__name__}: {error}"
    return None
