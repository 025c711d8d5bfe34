"""What the mouse does outside the panels: it leads the camera, or takes hold of things."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import taichi as ti

from pliant.viewer.navigation import Navigator
from pliant.viewer.ui import Pointer

BUTTONS = {"orbit": (ti.ui.LMB,), "grab": (ti.ui.LMB,), "pan": (ti.ui.LMB, ti.ui.MMB), "zoom": (ti.ui.RMB,)}
FLYING = {"w": (1, 0, 0), "s": (-1, 0, 0), "d": (0, 1, 0), "a": (0, -1, 0), "e": (0, 0, 1), "q": (0, 0, -1)}
GRABBING = "g"  # held, the left button grabs; Ctrl does the same

Pick = Callable[[Pointer], "tuple[str, np.ndarray] | None"]


class Steering:
    """`pressed` tells whether one of some keys is held, `pick` what is seen at a pointer; `send` tells the player."""

    def __init__(self, pressed: Callable[..., bool], pick: Pick, send: Callable[..., Any]):
        self._pressed, self._pick, self._send = pressed, pick, send
        self.navigator: Navigator | None = None
        self._doing = ""  # one of BUTTONS
        self._point = np.zeros(3)  # where something is held [m]

    def follow(self, before: Pointer, pointer: Pointer, keys: Sequence[str], captured: bool, size: tuple[int, int],
               seconds: float) -> bool:  # fmt: skip
        """The mouse has moved, and `keys` (mouse buttons among them) were pressed; if it is `captured`, that was meant
        for a panel. Whether the camera or the hand has moved."""
        if self.navigator is None:
            return False
        if not captured:
            self._begin(pointer, keys)
        moved = bool(pointer.wheel) and not captured
        if moved:
            self.navigator.zoom(pointer.wheel)
        if self._doing and not self._pressed(*BUTTONS[self._doing]):
            if self._doing == "grab":
                self._send("release")
            self._doing = ""
        if self._doing and (before.x, before.y) != (pointer.x, pointer.y):
            self._drag(pointer, pointer.x - before.x, pointer.y - before.y, size)
            moved = True
        return self._fly(seconds) or moved

    def _begin(self, pointer: Pointer, keys: Sequence[str]) -> None:
        if ti.ui.LMB in keys:
            if self._pressed(ti.ui.CTRL, GRABBING):
                self._grab(pointer)
            else:
                self._doing = "pan" if self._pressed(ti.ui.SHIFT) else "orbit"
        elif ti.ui.MMB in keys:
            self._doing = "pan"
        elif ti.ui.RMB in keys:
            self._doing = "zoom"

    def _grab(self, pointer: Pointer) -> None:
        found = self._pick(pointer)
        if found is not None:
            name, self._point = found
            self._doing = "grab"
            self._send("grab", name, tuple(map(float, self._point)))

    def _drag(self, pointer: Pointer, dx: float, dy: float, size: tuple[int, int]) -> None:
        assert self.navigator is not None
        if self._doing == "orbit":
            self.navigator.orbit(dx, dy, size[1])
        elif self._doing == "pan":
            self.navigator.pan(dx, dy, size[1])
        elif self._doing == "zoom":
            self.navigator.zoom_drag(dy, size[1])
        else:
            hand = self.navigator.under(pointer.x, pointer.y, *size, self._point)
            self._send("drag", tuple(map(float, hand)))

    def _fly(self, seconds: float) -> bool:
        assert self.navigator is not None
        ways = [way for key, way in FLYING.items() if self._pressed(key)]
        forward, right, up = np.sum(ways or [(0, 0, 0)], axis=0).tolist()
        if not (forward or right or up):
            return False
        self.navigator.fly(forward, right, up, seconds)
        return True
