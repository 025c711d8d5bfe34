"""Many frames drawn at once: worker processes, each with a window of its own, turn snapshots into pictures.

Nothing is simulated: all a worker needs is the stage, a look and a way to load snapshots.
"""

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from pliant import backend
from pliant.errors import PliantError
from pliant.io.data import Snapshot
from pliant.render.compose import settled
from pliant.render.look import Look
from pliant.render.renderer import Renderer
from pliant.render.vulkan import available
from pliant.stage import Stage

FRAMES_PER_WORKER = 300  # then another takes over: GGUI loses up to 1 MB a picture (Taichi 1.7.4)
RANGE_FRAMES = 8  # snapshots that are looked at to find the colours' range
MOST_WORKERS, ENOUGH_WORKERS = 64, 16  # that may be asked for, that are started unasked: each takes 0.5 GB or so
LARGEST = 16384  # side of a picture [pixels]: what Vulkan drivers offer

Loader = Callable[[int], Snapshot]


def draw_frames(
    stage: Stage,
    snapshots: Loader,
    indices: Iterable[int],
    folder: str | os.PathLike,
    look: Look | None = None,
    size: tuple[int, int] = (1280, 720),
    workers: int | None = None,
    keep: bool = False,
    progress: Callable[[int, int], Any] | None = None,
) -> list[Path]:
    """Draws the frames `indices` into `folder` as frame_0000.png and so on, and returns the files in that order.

    `snapshots(k)` loads frame k. It is sent to the workers, so it must be picklable: a method of a small object of an
    importable class that opens its files by name will do. `size` is width and height [pixels]; `workers` the number of
    processes, None for as many as pay off here; `keep` leaves pictures that are there as they are; `progress(done,
    total)` is called after each picture. Whatever goes wrong in a worker is raised here as one sentence.
    """
    look, indices, folder = look or stage.look or Look(), list(indices), Path(folder).absolute()
    _check(look, size, workers)
    files = [picture_file(folder, k) for k in indices]
    todo = deque(k for k, file in zip(indices, files, strict=True) if not (keep and file.exists()))
    total, done = len(todo), 0
    if not total:
        return files
    count = min(workers or _worth_while(), total)
    job = Job(stage, snapshots, folder, settle(stage, snapshots, indices, look), size, max(1, _cores() // count))
    crew: list[Worker] = []
    try:
        crew += [Worker(job) for _ in range(count)]
        for worker in crew:
            worker.ask(todo.popleft() if todo else None)
        while any(worker.busy for worker in crew):
            for worker in _answering(crew):
                worker.answer()
                done += 1
                if progress is not None:
                    progress(done, total)
                if worker.drawn >= FRAMES_PER_WORKER and todo:
                    worker.ask(None)
                    worker.finish()
                    crew[crew.index(worker)] = worker = Worker(job)
                worker.ask(todo.popleft() if todo else None)
        for worker in crew:
            worker.finish()
    finally:
        for worker in crew:
            worker.stop()
    return files


def settle(stage: Stage, snapshots: Loader, indices: Sequence[int], look: Look) -> Look:
    """The look with a colour range that is good for all the frames, found from a few of them."""
    step = max(1, -(-len(indices) // RANGE_FRAMES))
    return settled(stage, (snapshots(k) for k in indices[::step]), look)


def picture_file(folder: Path, index: int) -> Path:
    """Where the picture of a frame goes."""
    return folder / f"frame_{index:04d}.png"


def _check(look: Look, size: tuple[int, int], workers: int | None) -> None:
    problems = look.problems()
    if not all(isinstance(n, int) and 1 <= n * look.supersample <= LARGEST for n in size) or len(size) != 2:
        problems.append(f"size must be two whole numbers up to {LARGEST // look.supersample}, got {size!r}")
    if workers is not None and (not isinstance(workers, int) or not 1 <= workers <= MOST_WORKERS):
        problems.append(f"workers must be a whole number in [1, {MOST_WORKERS}] or None, got {workers!r}")
    if problems:
        raise PliantError("\n".join(problems))
    missing = available()
    if missing:
        raise PliantError(f"cannot draw pictures: {missing}")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _worth_while() -> int:
    """A worker for each core: half of a picture's time goes into steps that use only one."""
    return min(_cores(), ENOUGH_WORKERS)


@dataclass
class Job:
    """What a worker needs to know."""

    stage: Stage
    snapshots: Loader
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
        context = multiprocessing.get_context("spawn")  # a fork would share Taichi's threads, which it cannot
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other, self.job), daemon=True)
        try:
            with _no_main():
                self.process.start()
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            self.connection.close()
            raise PliantError(f"the snapshots' loader cannot be sent to another process: {error}.") from error
        finally:
            other.close()  # so that the death of the worker shows as the end of the file

    @property
    def busy(self) -> bool:
        return self.frame is not None

    def ask(self, index: int | None) -> None:
        """Asks for a frame; None tells the worker to end."""
        self.frame = index
        with contextlib.suppress(OSError):  # if it has died, the answer will tell
            self.connection.send(index)

    def answer(self) -> None:
        """Takes the answer to the last question, or raises what it says."""
        try:
            sentence = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            raise PliantError(f"a drawing process died at frame {self.frame} (exit status {self.process.exitcode}); if "
                              "memory ran out, fewer workers or a smaller size help.") from None  # fmt: skip
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


def _answering(crew: Sequence[Worker]) -> list[Worker]:
    ready = wait([worker.connection for worker in crew if worker.busy])
    return [worker for worker in crew if worker.busy and worker.connection in ready]


@contextlib.contextmanager
def _no_main() -> Iterator[None]:
    """Hides the main script: a new process would run it again, simulation and all, unless it is written with care."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _work(connection: Connection, job: Job) -> None:
    """The worker: draws frames until it is told to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends its workers
    for name in ("LP_NUM_THREADS", "TI_CPU_MAX_NUM_THREADS", "RAYON_NUM_THREADS"):  # lavapipe, Taichi, splashsurf
        os.environ[name] = str(job.threads)
    try:
        backend.start("cpu")
        renderer = Renderer(*job.size, supersample=job.look.supersample)
    except PliantError as error:
        connection.send(str(error))
        return
    with contextlib.suppress(EOFError, OSError):  # the parent is gone
        while (index := connection.recv()) is not None:
            connection.send(_drawn(renderer, job, index))
    renderer.close()


def _drawn(renderer: Renderer, job: Job, index: int) -> str | None:
    """Draws a frame; a sentence if that fails."""
    try:
        picture = job.stage.picture(job.snapshots(index), job.look, job.size[0] / job.size[1])
        renderer.save(picture_file(job.folder, index), picture)
    except PliantError as error:
        return f"frame {index}: {error}"
    except Exception as error:  # must reach the parent, whatever it is
        return f"frame {index}: {type(error).__name__}: {error}"
    return None
