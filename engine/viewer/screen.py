"""How pictures get into GGUI's window.

GGUI hands them to Vulkan, which has to draw them once more: on a machine without a graphics card 14 ms each. Under X11
the server takes them from memory that it shares with this process, in less than one.
"""

from typing import TYPE_CHECKING

import numpy as np
import taichi as ti
from taichi.ui.utils import get_field_info

from pliant.errors import PliantError
from pliant.render.raster_finish import as_columns
from pliant.viewer.x11 import SharingError, own_window

if TYPE_CHECKING:
    from pliant.viewer.x11_memory import SharedPicture


class Screen:
    """The window's picture, `image` (height, width) uint32: blue, green and red, a byte each from the lowest on."""

    def __init__(self, window: ti.ui.Window, width: int, height: int):
        self._window, self._canvas = window, window.get_canvas()
        self._shared = _shared_picture()
        self.resize(width, height)

    @property
    def shared(self) -> bool:
        """Whether the X server reads it."""
        return self._shared is not None

    def resize(self, width: int, height: int) -> None:
        """Another size [pixels]."""
        if self._shared is not None:
            try:
                self._shared.resize(width, height)
                self.image = self._shared.image
                return
            except SharingError:
                self.close()
        self.image = np.zeros((height, width), np.uint32)
        self._columns = np.zeros((width, height), np.uint32)

    def show(self) -> None:
        """Brings what is in `image` on screen."""
        if self._shared is None:
            as_columns(self.image, self._columns)
            self._canvas.canvas.set_image(get_field_info(self._columns))  # its own `set_image` would copy it first
            self._window.show()
            return
        try:
            self._shared.show()
        except SharingError as error:
            raise PliantError(f"the window is gone: {error}.") from error

    def close(self) -> None:
        if self._shared is not None:
            self._shared.close()
            self._shared = None


def _shared_picture() -> "SharedPicture | None":
    display, window = own_window()
    if window is None:
        return None
    from pliant.viewer.x11_memory import SharedPicture  # there is an X server, so there is python-xlib

    try:
        return SharedPicture(display, window)
    except SharingError:
        display.close()
        return None
