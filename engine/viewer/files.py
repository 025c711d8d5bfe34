"""Where a view leaves pictures, films and states, and the thread that writes a film."""

import json
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pliant.errors import PliantError
from pliant.io.files import atomic_write
from pliant.io.video import write_video

RATE = 30.0  # frames a second of a film
BACKLOG = 60  # pictures that may wait for the encoder; then it is left behind, and says so
_NUMBERED = re.compile(r".*_(\d+)\.\w+")


class Folder:
    """Files of a view: `picture_0001.png`, `film_0001.mp4`, `state_0001.npz`, and `view.json`, which says of what."""

    def __init__(self, path: Path, facts: dict[str, Any]):
        self.path, self.facts = path, facts

    def next(self, kind: str, ending: str) -> Path:
        """The first free name of its kind."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with atomic_write(self.path / "view.json") as file:
                file.write(json.dumps(self.facts, indent=2, default=str).encode())
        except OSError as error:
            raise PliantError(f"cannot write into {self.path}: {error.strerror or error}") from error
        taken = [int(m[1]) for p in self.path.glob(f"{kind}_*.*") if (m := _NUMBERED.fullmatch(p.name))]
        return self.path / f"{kind}_{max(taken, default=0) + 1:04d}.{ending}"

    def states(self) -> dict[str, Path]:
        """States that were saved, by name, the last one last."""
        return {path.stem: path for path in sorted(self.path.glob("state_*.npz"))}


class Recorder:
    """Writes a film as it comes, in a thread of its own: one picture each 1/30 s by the clock [s]."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.perf_counter):
        self.path, self.error, self.count, self._clock = path, "", 0, clock
        self.begun = clock()
        self._queue: queue.Queue[np.ndarray | None] = queue.Queue(BACKLOG)
        self._size: tuple[int, ...] | None = None
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    @property
    def seconds(self) -> float:
        return self._clock() - self.begun

    @property
    def due(self) -> bool:
        """Whether it is time for another picture."""
        return self.count < self.seconds * RATE

    def add(self, image: np.ndarray) -> None:
        """A picture (height, width, 3), for as many frames as are due."""
        self._size = self._size or image.shape
        if image.shape != self._size:
            raise PliantError("the window has another size: the film ends here")
        while self.due and not self.error:
            try:
                self._queue.put(image, timeout=1.0)
            except queue.Full:
                raise PliantError("films cannot be written that fast here: the film ends here") from None
            self.count += 1

    def close(self) -> None:
        """Ends the film, and waits until it is written."""
        while self._thread.is_alive():
            try:
                self._queue.put(None, timeout=0.1)
                break
            except queue.Full:
                continue
        self._thread.join()

    def _pictures(self) -> Iterator[np.ndarray]:
        while (picture := self._queue.get()) is not None:
            yield picture

    def _write(self) -> None:
        try:
            write_video(self.path, self._pictures(), RATE)
        except PliantError as error:
            self.error = str(error)
