"""What a window shows and how fast, as lines of JSON: for tests and measurements."""

import json
import time
from pathlib import Path
from typing import Any

from pliant.errors import PliantError

EVERY = 0.1  # [s] from one line on how things are to the next


class Report:
    """Without a file, it says nothing."""

    def __init__(self, path: Path | None):
        try:
            self._file = open(path, "w", encoding="utf-8") if path is not None else None  # noqa: SIM115
        except OSError as error:
            raise PliantError(f"cannot write {path}: {error.strerror or error}") from error
        self._last = 0.0

    def due(self, now: float) -> bool:
        """Whether it is time for another line on how things are."""
        if self._file is None or now - self._last < EVERY:
            return False
        self._last = now
        return True

    def line(self, **facts: Any) -> None:
        if self._file is not None:
            self._file.write(json.dumps({"clock": time.time(), **facts}) + "\n")
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
