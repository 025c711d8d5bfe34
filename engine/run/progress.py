"""How a run tells of itself: a bar on a terminal, lines elsewhere, JSON for programs, and a log in its folder."""

import contextlib
import dataclasses
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from pliant.core.console import console, say
from pliant.io.plain import as_json
from pliant.sim.stats import Stats

BAR_WIDTH = 10  # characters
OTHERS = ("frames", "checkpoints", "waiting for files", "whole-run files")  # what a run does beside steps
PLAIN_SECONDS = 10.0  # where there is no terminal, a line of progress comes no more often than this


class Teller:
    """Tells of a run of `frames` frames (after the first): in text, or in lines of JSON to a stream."""

    def __init__(self, name: str, frames: int, stream: TextIO | None = None):
        self.name, self.frames, self.as_json = name, frames, stream is not None
        self._stream = stream  # of the lines of JSON
        self.begun = self._last = time.perf_counter()
        self._first_frame, self._first_step = 0.0, 0  # where this part of the run began
        self._bar: tuple[Progress, TaskID] | None = None
        self._log: TextIO | None = None

    @contextlib.contextmanager
    def logging(self, path: Path) -> Iterator[None]:
        """Keeps a log of everything that is said; it goes on where an earlier one ended. A disk that is full costs
        lines of the log and nothing else."""
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError):
                self._log = stack.enter_context(open(path, "a", encoding="utf-8"))
            try:
                yield
            finally:
                self._log = None

    @contextlib.contextmanager
    def showing(self, frame: float, step: int) -> Iterator[None]:
        """Shows progress from a frame and a step on."""
        self._first_frame, self._first_step = frame, step
        self.begun = self._last = time.perf_counter()
        if self.as_json or not console.is_terminal:
            yield
            return
        columns = (TextColumn(self.name, markup=False), BarColumn(BAR_WIDTH), TextColumn("{task.fields[text]}"),
                   TimeRemainingColumn())  # fmt: skip
        with Progress(*columns, console=console, transient=True) as bar:
            self._bar = bar, bar.add_task("", total=self.frames, text="")
            self.advance(frame)
            try:
                yield
            finally:
                self._bar = None

    def say(self, sentence: str, **facts: Any) -> None:
        """A sentence for people; for programs an event with the facts."""
        self.log(sentence)
        if self.as_json:
            self.event("note", text=sentence, **facts)
        else:
            say(sentence)

    def log(self, sentence: str) -> None:
        if self._log is not None:
            with contextlib.suppress(OSError, ValueError):
                self._log.write(f"{time.strftime('%F %T')}  {sentence}\n")
                self._log.flush()

    def event(self, kind: str, **facts: Any) -> None:
        """A line of JSON, if that is wanted. A reader who has left misses the rest, and the run goes on."""
        if not self.as_json or self._stream is None:
            return
        try:
            self._stream.write(as_json({"event": kind, **facts}) + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            self._stream = None

    def advance(self, frame: float) -> None:
        """A step has been made; `frame` need not be whole."""
        if self._bar is not None:
            self._bar[0].update(self._bar[1], completed=frame)

    def frame(self, index: int, stats: Stats, record: dict[str, Any]) -> None:
        """A frame is done."""
        now = time.perf_counter()
        done, wall = index - self._first_frame, now - self.begun
        left = wall * (self.frames - index) / done if done > 0 else 0.0
        text = self._numbers(index, stats, wall)
        self.event("frame", seconds_left=round(left, 1), **record)
        if self._bar is not None:
            self._bar[0].update(self._bar[1], completed=index, text=self._brief(index, stats, wall))
        if now - self._last >= PLAIN_SECONDS:
            self._last = now
            self.log(f"{text}, {left:.0f} s left")
            if self._bar is None and not self.as_json:
                say(f"{text}, {left:.0f} s left")

    def _numbers(self, index: int, stats: Stats, wall: float) -> str:
        return (f"frame {index}/{self.frames}, t {stats.time:.3f} s, dt {1e3 * stats.dt:.2g} ms, "
                f"{_iterations(stats)} iterations, error {stats.mean_density_error:.1e}, "
                f"{stats.particles:,} particles, {self._rate(stats, wall):.2g}/s")  # fmt: skip

    def _brief(self, index: int, stats: Stats, wall: float) -> str:
        """The same beside a bar, where room is scarce."""
        return (f"{index}/{self.frames} t {stats.time:.2f} s dt {1e3 * stats.dt:.2g} ms it {_iterations(stats)} "
                f"err {stats.mean_density_error:.0e} {self._rate(stats, wall):.2g}/s")  # fmt: skip

    def _rate(self, stats: Stats, wall: float) -> float:
        """Particles that are moved on by a step, per second."""
        return stats.particles * (stats.step - self._first_step) / max(wall, 1e-9)


def _iterations(stats: Stats) -> str:
    """Of the two pressure solves, as "5+0"."""
    return "+".join(str(stats.iterations[k]) for k in ("divergence", "density") if k in stats.iterations) or "0"


class Interruption(KeyboardInterrupt):
    """A wish to end now. `status` is the exit status that goes with it."""

    def __init__(self, status: int):
        super().__init__()
        self.status = status


@dataclasses.dataclass
class Wish:
    """What signals have asked for: `status` is the exit status that goes with it, 0 if nothing. If `at_once`, the first
    one raises `Interruption` already."""

    status: int = 0
    at_once: bool = False


@contextlib.contextmanager
def interruptible(tell: Teller, hurry: Callable[[], None] = lambda: None) -> Iterator[Wish]:
    """Ctrl-C, SIGTERM and a closed terminal ask for an end after the step under way, and call `hurry`; a second time
    they insist."""
    wish = Wish()

    def ask(number: int, _: Any) -> None:
        if wish.status or wish.at_once:
            raise Interruption(128 + number)
        wish.status = 128 + number
        hurry()
        tell.say("Ending after this step; press Ctrl-C again to end at once.")

    if threading.current_thread() is not threading.main_thread():  # signals reach the main thread only
        yield wish
        return
    numbers = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup ignores it
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield wish
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stage_table(seconds: dict[str, float], steps: int) -> Table:
    """Seconds by stage, and the mean of a step."""
    table = Table("stage", title=f"{steps:,} steps after the first", title_justify="left")
    for heading in ("seconds", "ms per step", "share"):
        table.add_column(heading, justify="right")
    total = sum(seconds.values())
    for stage, value in sorted(seconds.items(), key=lambda item: OTHERS.index(item[0]) if item[0] in OTHERS else -1):
        table.add_row(stage, f"{value:.2f}", f"{1e3 * value / steps:.2f}", f"{value / max(total, 1e-12):.0%}")
    table.add_section()
    table.add_row("all", f"{total:.2f}", f"{1e3 * total / steps:.2f}", "")
    return table
