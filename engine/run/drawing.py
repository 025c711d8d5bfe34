"""Many frames drawn at once: worker processes, each with a window of its own, turn snapshots into pictures.

Nothing is simulated: all a worker needs is the `RenderScene`, a look and a way to load snapshots.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from pliant.core.data import Snapshot
from pliant.errors import PliantError
from pliant.render.compose import settled
from pliant.render.look import Look
from pliant.render.render_scene import RenderScene
from pliant.render.vulkan import available
from pliant.run.draw_process import Job, Loader, Worker, cores, picture_file

RANGE_FRAMES = 8  # snapshots that are looked at to find the colours' range
MOST_WORKERS, ENOUGH_WORKERS = 64, 16  # that may be asked for, that are started unasked: each takes 0.5 GB or so
PERIOD = 0.2  # of waiting at a time [s]: a signal just before a wait does not end it, and is heard after this
LARGEST = 16384  # side of a picture [pixels]: what Vulkan drivers offer


def draw_frames(
    render_scene: RenderScene,
    snapshots: Loader,
    indices: Iterable[int],
    folder: str | os.PathLike,
    look: Look | None = None,
    size: tuple[int, int] = (1280, 720),
    workers: int | None = None,
    keep: bool = False,
    progress: Callable[[int, int], Any] | None = None,
    failed: Callable[[int, PliantError], Any] | None = None,
) -> list[Path]:
    """Draws the frames `indices` into `folder` as frame_0000.png and so on, and returns the files in that order.

    `snapshots(k)` loads frame k. It is sent to the workers, so it must be picklable: a method of a small object of an
    importable class that opens its files by name will do. `size` is width and height [pixels]; `workers` the number of
    processes, None for as many as pay off here; `keep` leaves pictures that are there as they are; `progress(done,
    total)` is called after each picture. Whatever goes wrong in a worker is raised here as one sentence, unless
    `failed(k, error)` is given: it is told why there is no picture of frame k, and the others are drawn.
    """
    look, indices, folder = look or render_scene.look or Look(), list(indices), Path(folder).absolute()
    _check(look, size, workers)
    files = [picture_file(folder, k) for k in indices]
    todo = deque(k for k, file in zip(indices, files, strict=True) if not (keep and file.exists()))
    total, done = len(todo), 0
    if not total:
        return files
    count = min(workers or _worth_while(), total)
    look = settle(render_scene, snapshots, indices, look, some=failed is not None)
    job = Job(render_scene, snapshots, folder, look, size, max(1, cores() // count), count)
    crew: list[Worker] = []
    try:
        crew += [Worker(job) for _ in range(count)]
        for worker in crew:
            worker.ask(todo.popleft() if todo else None)
        while any(worker.busy for worker in crew):
            for worker in _answering(crew):
                _take(worker, failed)
                done += 1
                if progress is not None:
                    progress(done, total)
                if worker.spent and todo:
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


def _take(worker: Worker, failed: Callable[[int, PliantError], Any] | None) -> None:
    """Takes a worker's answer, and passes on what went wrong."""
    try:
        worker.answer()
    except PliantError as error:
        if failed is None or worker.frame is None:
            raise
        failed(worker.frame, error)


def settle(render_scene: RenderScene, snapshots: Loader, indices: Sequence[int], look: Look,
           some: bool = False) -> Look:  # fmt: skip
    """The look with a colour range that is good for all the frames, found from a few of them; `some` lets `snapshots`
    fail at others."""
    chosen = indices[:: max(1, -(-len(indices) // RANGE_FRAMES))]
    return settled(render_scene, _readable(snapshots, chosen) if some else map(snapshots, chosen), look)


def _readable(snapshots: Loader, indices: Sequence[int]) -> Iterator[Snapshot]:
    """Those that can be loaded. It is an error if there is none."""
    failures: list[PliantError] = []
    for k in indices:
        try:
            snapshot = snapshots(k)
        except PliantError as error:
            failures.append(error)
        else:
            yield snapshot
    if failures and len(failures) == len(indices):
        raise failures[0]


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


def _worth_while() -> int:
    """A worker for each core: half of a picture's time goes into steps that use only one."""
    return min(cores(), ENOUGH_WORKERS)


def _answering(crew: Sequence[Worker]) -> list[Worker]:
    ready = wait([worker.connection for worker in crew if worker.busy], PERIOD)
    return [worker for worker in crew if worker.busy and worker.connection in ready]
