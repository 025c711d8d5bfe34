"""Pictures for a window under X11, in memory that this process and the X server share (the extension MIT-SHM)."""

import contextlib
import ctypes
import os
from typing import Any

import numpy as np
from Xlib import X
from Xlib.display import Display
from Xlib.error import CatchError, ConnectionClosedError, XError
from Xlib.protocol import rq

from pliant.viewer.x11 import SharingError

EXTENSION = "MIT-SHM"
MASKS = (0xFF0000, 0xFF00, 0xFF)  # of red, green and blue in a pixel
PROBE = 64  # pixels that are sent and read back at first
PRIVATE, CREATE, REMOVE, FAILED = 0, 0o1600, 0, -1  # of <sys/ipc.h> and <sys/shm.h>


class _Attach(rq.Request):
    _request = rq.Struct(rq.Card8("opcode"), rq.Opcode(1), rq.RequestLength(), rq.Card32("segment"),
                         rq.Card32("memory"), rq.Bool("read_only"), rq.Pad(3))  # fmt: skip


class _Detach(rq.Request):
    _request = rq.Struct(rq.Card8("opcode"), rq.Opcode(2), rq.RequestLength(), rq.Card32("segment"))


class _Put(rq.Request):
    _request = rq.Struct(
        rq.Card8("opcode"), rq.Opcode(3), rq.RequestLength(), rq.Drawable("drawable"), rq.GC("gc"),
        rq.Card16("width"), rq.Card16("height"), rq.Card16("left"), rq.Card16("top"), rq.Card16("wide"),
        rq.Card16("high"), rq.Int16("x"), rq.Int16("y"), rq.Card8("depth"), rq.Card8("format"), rq.Bool("answer"),
        rq.Pad(1), rq.Card32("segment"), rq.Card32("offset"),
    )  # fmt: skip


class SharedPicture:
    """A picture of a window, `image` (height, width) uint32: blue, green and red, a byte each from the lowest on."""

    def __init__(self, display: Display, window: Any):
        self._display, self._window = display, window
        extension = display.query_extension(EXTENSION)
        if extension is None or not extension.present:
            raise SharingError(f"the X server does not know {EXTENSION}")
        if not _fits(display, window):
            raise SharingError("its pixels have another form")
        self._opcode, self._depth = extension.major_opcode, window.get_geometry().depth
        self._gc = window.create_gc()
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.shmat.restype, self._libc.shmdt.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
        self._segment = display.display.allocate_resource_id()
        self._address: int | None = None
        self.resize(PROBE, 1)
        if not self._arrives():
            self._release()
            raise SharingError("the X server does not see what is written")

    def resize(self, width: int, height: int) -> None:
        """Another size [pixels], with nothing in it yet."""
        self._release()
        memory = self._libc.shmget(PRIVATE, ctypes.c_size_t(4 * width * height), CREATE)
        if memory == FAILED:
            raise SharingError(os.strerror(ctypes.get_errno()))
        try:
            address = self._libc.shmat(memory, None, 0)
            if address in (None, ctypes.c_void_p(FAILED).value):
                raise SharingError(os.strerror(ctypes.get_errno()))
            self._address = address
            refused = CatchError()
            self._ask(_Attach, refused, segment=self._segment, memory=memory, read_only=True)
            self._display.sync()
            if refused.get_error():
                self._release()
                raise SharingError("the X server must not read the memory of this process")
        finally:
            self._libc.shmctl(memory, REMOVE, None)  # once both have let go of it, even if this process is killed
        pixels = (ctypes.c_uint32 * (width * height)).from_address(address)
        self.image = np.ctypeslib.as_array(pixels).reshape(height, width)

    def show(self) -> None:
        """Has the X server copy the picture into the window, and waits until it has."""
        try:
            self._put(self._window)
            self._display.sync()
        except (ConnectionClosedError, OSError) as error:
            raise SharingError(str(error)) from error

    def close(self) -> None:
        """Lets go of the memory and of the server."""
        self._release()
        self._display.close()

    def _ask(self, request: Any, onerror: Any = None, **what: Any) -> None:
        request(display=self._display.display, onerror=onerror, opcode=self._opcode, **what)

    def _put(self, target: Any) -> None:
        height, width = self.image.shape
        self._ask(
            _Put, lambda *_: None, drawable=target.id, gc=self._gc, width=width, height=height, left=0, top=0,
            wide=width, high=height, x=0, y=0, depth=self._depth, format=X.ZPixmap, answer=False,
            segment=self._segment, offset=0,
        )  # fmt: skip

    def _arrives(self) -> bool:
        """Whether the server sees what is written here: in a container, memory may have other numbers."""
        self.image[:] = np.random.default_rng().integers(0, 1 << 24, self.image.shape)
        pixmap = self._window.create_pixmap(PROBE, 1, self._depth)
        self._put(pixmap)
        try:
            data = pixmap.get_image(0, 0, PROBE, 1, X.ZPixmap, 0xFFFFFFFF).data
        except XError:
            return False
        finally:
            pixmap.free()
        return bool((np.frombuffer(data, "<u4", PROBE) & 0xFFFFFF == self.image[0]).all())

    def _release(self) -> None:
        if self._address is None:
            return
        address, self._address = self._address, None
        self.image = np.zeros((0, 0), np.uint32)
        with contextlib.suppress(ConnectionClosedError, OSError):  # then it has let go already
            self._ask(_Detach, lambda *_: None, segment=self._segment)
            self._display.sync()
        self._libc.shmdt(address)


def _fits(display: Display, window: Any) -> bool:
    """Whether a pixel of the window is blue, green, red and a byte that does not matter, in this order."""
    number, depth = window.get_attributes().visual, window.get_geometry().depth
    kinds = [kind for each in display.screen().allowed_depths for kind in each.visuals if kind.visual_id == number]
    masks = [(kind.red_mask, kind.green_mask, kind.blue_mask) for kind in kinds]
    bits = [form.bits_per_pixel for form in display.display.info.pixmap_formats if form.depth == depth]
    return masks == [MASKS] and bits == [32] and display.display.info.image_byte_order == X.LSBFirst
