"""Bounds on memory and time of processes beside this one: what runs away is ended, and the simulation goes on."""

import math
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pliant.core.memory import GIB, available_memory

MEMORY_SHARE = 0.5  # of the memory available when they start that processes may take together
LEAST_MEMORY = GIB  # that each may take in any case [bytes]: drawing takes half of it
PERIOD = 0.1  # between two looks at a process [s]


def memory_limit(processes: int) -> float:
    """How much memory each of so many processes may take [bytes]; infinite where the system does not tell."""
    return max(LEAST_MEMORY, MEMORY_SHARE * available_memory() / processes)


def resident_memory(pid: int) -> int:
    """The physical memory of a process [bytes], 0 if unknown. What it has reserved says little: graphics drivers and
    Taichi reserve gigabytes that they never touch."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


class Watchdog:
    """Kills a process that takes more than `memory` [bytes], or more time for a task than it was given; `reason` then
    says why. `latest` gives a moment of `time.monotonic` at which any task must be over.

    It looks from a thread of its own, because sending a task to a process that hangs may block, too.
    """

    def __init__(self, process: Any, memory: float, latest: Callable[[], float] = lambda: math.inf):
        self.reason = ""
        self._process, self._memory, self._latest = process, memory, latest
        self._begun, self._seconds = math.inf, math.inf
        self._over = threading.Event()
        threading.Thread(target=self._watch, name="pliant watchdog", daemon=True).start()

    def begin(self, seconds: float) -> None:
        """A task begins and may take that long."""
        self._seconds, self._begun = seconds, time.monotonic()

    def end(self) -> None:
        """The task is done."""
        self._begun = math.inf

    def close(self) -> None:
        """Stops watching."""
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(PERIOD):
            reason = self._complaint()
            if reason:
                self.reason = reason  # first, so that whoever sees the death knows why
                self._process.kill()
                return

    def _complaint(self) -> str:
        if resident_memory(self._process.pid) > self._memory:
            return f"took more than {self._memory / GIB:.2g} GiB of memory"
        now = time.monotonic()
        if now - self._begun > self._seconds:
            return f"took more than {self._seconds:g} s"
        return "was not done in time" if self._begun < math.inf and now >= self._latest() else ""
