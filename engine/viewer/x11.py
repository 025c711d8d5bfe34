"""Keys and the wheel that GGUI does not tell of (Taichi 1.7.4: no digits, no punctuation, no wheel), under X11.

A second connection to the X server grabs just these on the window, which takes them from nobody. Elsewhere there are
other keys and buttons for the same: see `notices.KEYS`.
"""

import os
from typing import Any

KEYS = {"period": ".", "plus": "+", "equal": "+", "KP_Add": "+", "KP_Decimal": "."}
KEYS |= {str(k): str(k) for k in range(10)}
WHEEL = {4: 1.0, 5: -1.0}  # buttons, and notches up
LOCKS = (0, 2, 16, 18)  # Caps Lock and Num Lock, on or not
SHIFT = 1


class SharingError(Exception):
    """The X server cannot take pictures from this process's memory, for a reason."""


def missing_display() -> str | None:
    """None if a window can be opened here as far as X11 knows, otherwise one sentence."""
    if os.environ.get("WAYLAND_DISPLAY") and not os.environ.get("DISPLAY"):
        return "there is no X display; the window needs X11, or Xwayland in a Wayland session."
    if not os.environ.get("DISPLAY"):
        return "there is no display (DISPLAY is not set)."
    try:
        from Xlib import display
        from Xlib.error import ConnectionClosedError, DisplayError, XauthError

        display.Display().close()
    except (DisplayError, ConnectionClosedError, XauthError, OSError):
        return f"the display {os.environ['DISPLAY']!r} cannot be opened."
    except ImportError:
        return None  # then GGUI has to find out
    return None


class Ears:
    """Hears keys and the wheel over the window of this process; without python-xlib or an X server, nothing."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._display, window = own_window()
        if window is not None:
            self._grab(window)

    def _grab(self, window: Any) -> None:
        from Xlib import XK, X

        self._display.set_error_handler(lambda *_: None)  # a key that somebody else has grabbed is theirs
        for name, key in KEYS.items():
            code = self._display.keysym_to_keycode(XK.string_to_keysym(name))
            if code:
                self._names.setdefault(code, key)
                for state in (s | shift for s in LOCKS for shift in (0, SHIFT)):
                    window.grab_key(code, state, True, X.GrabModeAsync, X.GrabModeAsync)
        for button in WHEEL:
            window.grab_button(button, X.AnyModifier, True, X.ButtonPressMask, X.GrabModeAsync, X.GrabModeAsync, 0, 0)
        self._display.sync()

    def listen(self) -> tuple[list[str], float]:
        """Keys that were pressed, and notches that the wheel went up, since the last time."""
        keys: list[str] = []
        wheel = 0.0
        if self._display is None:
            return keys, wheel
        from Xlib import X
        from Xlib.error import ConnectionClosedError

        try:
            while self._display.pending_events():
                event = self._display.next_event()
                if event.type == X.KeyPress and event.detail in self._names:
                    keys.append(self._names[event.detail])
                elif event.type == X.ButtonPress:
                    wheel += WHEEL.get(event.detail, 0.0)
        except (ConnectionClosedError, OSError):
            self._display = None
        return keys, wheel

    def close(self) -> None:
        if self._display is not None:
            self._display.close()
            self._display = None


def own_window() -> tuple[Any, Any]:
    """A new connection to the X server, and the window of this process; None for both without python-xlib, server or
    window."""
    try:
        from Xlib import display
        from Xlib.error import ConnectionClosedError, DisplayError
    except ImportError:
        return None, None
    try:
        connection = display.Display()
        window = _find_window(connection, connection.screen().root)
    except (DisplayError, ConnectionClosedError, OSError):
        return None, None
    if window is None:
        connection.close()
        return None, None
    return connection, window


def _find_window(display: Any, root: Any) -> Any:
    """The window of this process below `root`, however deep a window manager has put it."""
    from Xlib.error import XError

    owner = display.intern_atom("_NET_WM_PID")
    todo = [root]
    while todo:
        window = todo.pop()
        try:
            found = window.get_full_property(owner, 0)
            if found is not None and list(found.value) == [os.getpid()]:
                return window
            todo += window.query_tree().children
        except XError:
            continue  # it closed meanwhile
    return None
