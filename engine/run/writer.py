"""Files written beside the simulation, so that it does not wait for the disk."""

import queue
import threading
import time
from collections.abc import Callable

PERIOD = 0.2  # of waiting at a time [s]: a signal just before a wait does not end it, and is heard after this
WAITING = 3  # jobs that may wait: each holds the arrays of a frame or a checkpoint


class Writer:
    """Does jobs one after another, in the order given, in a thread of its own.

    Once a job has failed, no later one is done, and its error is raised wherever the next job is handed in: a
    checkpoint never stands for frames that were not written. `waited` is the time the simulation lost here [s].
    """

    def __init__(self) -> None:
        self.waited = 0.0
        self._jobs: queue.Queue[Callable[[], None] | None] = queue.Queue(WAITING)
        self._error: BaseException | None = None
        self._done = threading.Event()  # a join that a signal interrupts takes a thread for dead (before Python 3.13)
        threading.Thread(target=self._work, name="pliant writer", daemon=True).start()

    def __call__(self, job: Callable[[], None]) -> None:
        """Hands in a job; waits if too many are waiting already."""
        self.check()
        start = time.perf_counter()
        self._put(job)
        self.waited += time.perf_counter() - start

    def check(self) -> None:
        """Raises what a job has raised."""
        if self._error is not None:
            raise self._error

    def finish(self) -> None:
        """Waits until everything has been done. May be called again."""
        start = time.perf_counter()
        if not self._done.is_set():
            self._put(None)
            while not self._done.wait(PERIOD):
                pass
        self.waited += time.perf_counter() - start
        self.check()

    def _put(self, job: Callable[[], None] | None) -> None:
        while True:
            try:
                return self._jobs.put(job, timeout=PERIOD)
            except queue.Full:
                pass

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            if self._error is None:
                try:
                    job()
                except BaseException as error:  # raised again in the thread that hands in the next job
                    self._error = error
        self._done.set()
