"""Where Pliant speaks: the terminal, on standard error, so that standard output belongs to results."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console


class _Voice(io.TextIOBase):
    """Standard error, whichever it is by then. A terminal that was closed or a pipe that nobody reads costs what would
    have been said, and never the run that says it."""

    @property
    def _stream(self) -> Any:
        return getattr(sys.stderr, "rich_proxied_file", sys.stderr)  # rich puts itself in between for a bar

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            self._stream.flush()

    def isatty(self) -> bool:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            return bool(self._stream.isatty())
        return False

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(self._stream, "encoding", None) or "utf-8"


@contextlib.contextmanager
def native_silence() -> Iterator[None]:
    """Keeps quiet what native code writes to standard error ("RHI Error: Can not create Vulkan instance")."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
    try:
        kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    except OSError:  # there is no standard error
        yield
        return
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


console = Console(file=_Voice(), highlight=False)  # type: ignore[arg-type]


def say(sentence: str) -> None:
    """A sentence on the terminal as it is: no wrapping, no markup in the user's names."""
    console.print(sentence, markup=False, soft_wrap=True)
