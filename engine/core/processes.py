"""Processes beside this one, each with a Taichi of its own."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any

NICENESS = 5  # of processes that give way to others


def start_apart(work: Callable[..., None], *args: Any) -> tuple[Any, Connection]:
    """Starts `work(connection, *args)` in a new process; returns that and the other end of its connection. Whatever
    pickling raises passes."""
    context = multiprocessing.get_context("spawn")  # a fork would share Taichi's threads, which it cannot
    mine, other = context.Pipe()
    process = context.Process(target=work, args=(other, *args), daemon=True)
    try:
        with _no_main(), _deaf():
            process.start()
    except BaseException:
        mine.close()
        raise
    finally:
        other.close()  # so that the death of the process shows as the end of the file
    return process, mine


def status_at_end(process: Any) -> int:
    """Waits for the end of such a process, its exit status. Several threads may: the system tells only one of them, and
    `multiprocessing` lets the others believe for a moment that it still runs."""
    while process.exitcode is None:
        process.join()
        time.sleep(0.001)
    return process.exitcode


def give_way() -> None:
    """In such a process: what a user is looking at gets a core when it needs one."""
    with contextlib.suppress(OSError, AttributeError):
        os.nice(NICENESS)


def first_to_go() -> None:
    """In such a process: if memory runs out, the system ends this one and not the simulation (Linux)."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("500")  # of 1000: ahead of its parent, behind what asks to be ended first


def ignore_interrupts() -> None:
    """In such a process: Ctrl-C reaches the parent, which ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextlib.contextmanager
def asked_to_end(act: Callable[[int], Any]) -> Iterator[None]:
    """Ctrl-C, SIGTERM and a closed terminal call `act` with their number; signals reach the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, lambda n, _: act(n)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _no_main() -> Iterator[None]:
    """Hides the main script: a new process would run it again, simulation and all, unless it is written with care."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Processes that are started here never hear of Ctrl-C, not even while they import: their parent ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # or the first process would start it, and with it hear signals again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
