"""A virtual screen with one viewer on it, driven as a user would: for tests and measurements of the window.

Xvfb is the screen, xdotool the hand, and the report that `pliant view --report` writes is what the eye sees.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pliant.errors import PliantError
from pliant.render import available

PATIENCE = 300.0  # [s] for anything to happen: machines may be busy
GLANCE = 0.05  # [s] between looks at the report
SCREEN = "1500x900x24"

Line = dict[str, Any]


def missing() -> str | None:
    """None if there can be a desk here, otherwise what is missing."""
    tools = [name for name in ("Xvfb", "xdotool") if shutil.which(name) is None]
    return f"{' and '.join(tools)} not found" if tools else available()


def virtual_screen(*arguments: str) -> tuple[subprocess.Popen, dict[str, str]]:
    """Starts Xvfb with more arguments: its process, and the environment of programs that are to be seen on it."""
    lacking = missing()
    if lacking:
        raise PliantError(f"there is no virtual screen: {lacking}")
    read, write = os.pipe()
    command = ["Xvfb", "-displayfd", str(write), "-screen", "0", SCREEN, "-nolisten", "tcp", *arguments]
    server = subprocess.Popen(command, pass_fds=[write], stderr=subprocess.DEVNULL)
    os.close(write)
    with os.fdopen(read) as answer:
        return server, os.environ | {"DISPLAY": f":{answer.readline().strip()}"}


class Desk:
    """Starts `pliant view SCENE` with more arguments; its files go into `folder`."""

    def __init__(self, folder: Path, scene: str | Path, *arguments: str):
        self.server, self.env = virtual_screen()
        self.out, self.report, self.log = folder / "out", folder / "report.json", folder / "log"
        command = [sys.executable, "-m", "pliant", "view", str(scene), "--out", str(self.out), "--report",
                   str(self.report), *arguments]  # fmt: skip
        self.begun = time.time()
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, env=self.env, stdout=log, stderr=log, cwd=folder)
        self._window = ""
        self._read, self._lines = 0, dict[str, list[Line]]()  # bytes of the report, and what they say by event

    def lines(self, event: str = "frame") -> list[Line]:
        """What the report says of an event so far."""
        if self.report.exists():
            with open(self.report, "rb") as file:
                file.seek(self._read)
                new = file.read()
            whole = new[: new.rfind(b"\n") + 1]
            self._read += len(whole)
            for line in map(json.loads, whole.splitlines()):
                self._lines.setdefault(line["event"], []).append(line)
        return self._lines.get(event, [])

    def until(self, wanted: Callable[[Line], bool], event: str = "frame") -> Line:
        """The newest line of the report, once `wanted` holds for it."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            lines = self.lines(event)
            if lines and wanted(lines[-1]):
                return lines[-1]
            if self.process.poll() is not None:
                raise PliantError(f"the viewer has ended: {self.log.read_text(encoding='utf-8')}")
            time.sleep(GLANCE)
        raise PliantError(f"it did not happen within {PATIENCE:g} s; last {(self.lines(event) or [{}])[-1]}")

    def now(self) -> Line:
        """A line that was written after this was asked."""
        asked = time.time()
        return self.until(lambda line: line["clock"] > asked)

    def do(self, *words: Any) -> None:
        """One command of xdotool."""
        subprocess.run(["xdotool", *map(str, words)], env=self.env, check=True, timeout=PATIENCE, capture_output=True)

    @property
    def window(self) -> str:
        """The window's number."""
        if not self._window:
            found = subprocess.run(["xdotool", "search", "--name", "Pliant:"], env=self.env, capture_output=True,
                                   text=True, check=True)  # fmt: skip
            self._window = found.stdout.split()[-1]
        return self._window

    def focus(self) -> None:
        """Keys go to the window from now on: there is no window manager."""
        self.do("windowfocus", self.window)

    def key(self, name: str) -> None:
        self.do("key", name)

    def point(self, x: float, y: float) -> None:
        """Moves the pointer to a pixel of the window."""
        self.do("mousemove", "--window", self.window, round(x), round(y))

    def press(self, x: float, y: float) -> None:
        """A click at a pixel of the window."""
        self.point(x, y)
        self.now()  # so that the window has seen where the pointer is
        self.do("click", 1)

    def click(self, place: str) -> None:
        """A click on a widget, as `Ui.places` calls it."""
        x, y, w, h = self.until(lambda line: place in line["places"])["places"][place]
        self.press(x + w / 2, y + h / 2)

    def picture(self, path: Path) -> None:
        """What the window shows, panels and all, as a PNG."""
        from PIL import ImageGrab

        ImageGrab.grab(xdisplay=self.env["DISPLAY"]).save(path)

    def close(self) -> None:
        """Ends the viewer and the screen."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.server.terminate()
            self.server.wait()
