"""Whole files only: whoever reads a folder while a run is writing to it, or after it died, finds no torn file."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from pliant.errors import PliantError


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike, durable: bool = False) -> Iterator[BinaryIO]:
    """Open `path` for writing bytes; the name appears only once everything has been written.

    The bytes go to a hidden file in the same folder (a rename is atomic only inside one file system), which then
    takes the place of `path`. Missing folders are created. On any failure the hidden file is removed, an older file
    at `path` stays as it was, and a system error becomes one `PliantError` sentence. `durable` also waits until the
    bytes are on the disk, so that not even a power cut can leave the new name without its contents.
    """
    path = Path(os.path.realpath(checked_path(path)))  # what a link points to is replaced, not the link
    if path.exists() and not path.is_file():
        raise PliantError(f"cannot write {path}: it is {'a folder' if path.is_dir() else 'not an ordinary file'}.")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        _remove(temporary)
        raise PliantError(f"cannot write {path}: {error.strerror or error}.") from error
    except BaseException:
        _remove(temporary)
        raise


def checked_path(path: Any) -> Path:
    """A path that was given by a user; one sentence if it is none."""
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path) or "\0" in str(path):
        raise PliantError(f"a file name is needed, got {path!r}.")
    return Path(path)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
