"""PNG pictures with the standard library alone, so that drawing a frame needs no imaging package."""

import os
import struct
import zlib

import numpy as np

from pliant.errors import PliantError
from pliant.io.files import atomic_write

_COLOUR_TYPES = {3: 2, 4: 6}  # channels -> PNG colour type (RGB, RGBA); PNG specification, table 11.1
_FILTER_UP = 2  # each row is stored as its difference from the row above: half the size of raw rows on smooth shading


def write_png(path: str | os.PathLike, image: np.ndarray, level: int = 6) -> None:
    """Write an (h, w, 3) or (h, w, 4) uint8 picture, first row on top. `level` is zlib's, 0 (fast) to 9 (small)."""
    image = np.asarray(image)
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] not in _COLOUR_TYPES or image.size == 0:
        raise PliantError(f"a picture must be uint8 of shape (h, w, 3) or (h, w, 4), got {image.dtype} {image.shape}.")
    height, width, channels = image.shape
    rows = np.empty((height, 1 + width * channels), np.uint8)
    rows[:, 0] = _FILTER_UP
    rows[:, 1:] = image.reshape(height, -1)
    rows[1:, 1:] -= image.reshape(height, -1)[:-1]  # uint8 wraps around, as the format asks
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPES[channels], 0, 0, 0)
    with atomic_write(path) as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for kind, data in ((b"IHDR", header), (b"IDAT", zlib.compress(rows.data, level)), (b"IEND", b"")):
            file.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)))
