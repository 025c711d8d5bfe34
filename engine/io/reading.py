"""How readers speak of files that are not what they say: one sentence, never a traceback or a promise believed."""

import contextlib
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from pliant.errors import PliantError

# What the parsers of the standard library and NumPy raise on bytes that make no sense.
_NONSENSE = (
    ValueError, KeyError, IndexError, TypeError, EOFError, OverflowError, MemoryError, NotImplementedError,
    struct.error, zlib.error, zipfile.BadZipFile, ElementTree.ParseError,
)  # fmt: skip


@contextlib.contextmanager
def reading(path: str | os.PathLike, kind: str) -> Iterator[None]:
    """Turns whatever goes wrong while a `kind` of file is read into one sentence that names it."""
    try:
        yield
    except OSError as error:
        if error.strerror is None:  # gzip's "Not a gzipped file" and the like
            raise PliantError(f"{path} is not a readable {kind} file: {_words(error)}.") from error
        raise PliantError(f"cannot read {path}: {error.strerror}.") from error
    except _NONSENSE as error:
        raise PliantError(f"{path} is not a readable {kind} file: {_words(error)}.") from error


def _words(error: BaseException) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing or unknown"
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


def read_bytes(path: str | os.PathLike) -> bytes:
    """The whole file; an empty one is refused here, as no format has it."""
    data = Path(path).read_bytes()
    if not data:
        raise PliantError(f"{path} is empty.")
    return data


def foreign(path: str | os.PathLike, kind: str, why: str) -> PliantError:
    """The file is something else, or of a flavour that Pliant does not read."""
    return PliantError(f"{path} is not a {kind} file that Pliant reads: {why}.")


def truncated(path: str | os.PathLike, promised: int, held: int, what: str) -> PliantError:
    """The file ends before its own header says."""
    return PliantError(f"{path} is truncated: it promises {promised} {what} and holds {held}.")


def finite(path: str | os.PathLike, x: np.ndarray, what: str) -> np.ndarray:
    """`x`, unless a position is NaN or infinite: nothing can be placed there, while a field may well be NaN."""
    good = np.isfinite(x).all(axis=1)
    if not good.all():
        first = int(good.argmin())
        raise PliantError(f"{path} holds {what} that are nowhere: number {first} is at {x[first]}.")
    return x


def inside(path: str | os.PathLike, faces: np.ndarray, n: int) -> np.ndarray:
    """`faces`, unless one points to a vertex that is not there."""
    if faces.size and not 0 <= int(faces.min()) <= int(faces.max()) < n:
        raise PliantError(f"{path} is damaged: a face points to a vertex that is not among its {n}.")
    return faces


def parse_xml(path: str | os.PathLike, text: bytes) -> ElementTree.Element:
    """The root of an XML text. VTK writes no entities, and refusing them refuses texts that unfold without end."""
    if b"<!ENTITY" in text:
        raise foreign(path, "VTK", "it defines XML entities")
    return ElementTree.fromstring(text)
