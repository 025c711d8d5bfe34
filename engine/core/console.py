"""Where Pliant speaks: the terminal, on standard error, so that standard output belongs to results."""

import contextlib
import io
import sys
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


console = Console(file=_Voice(), highlight=False)  # type: ignore[arg-type]


def say(sentence: str) -> None:
    """A sentence on the terminal as it is: no wrapping, no markup in the user's names."""
    console.print(sentence, markup=False, soft_wrap=True)
