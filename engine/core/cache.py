"""Results that take long, kept on disk from one run to the next. A cache only saves time: it never stops anybody."""

import os
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np


def cache_folder() -> Path:
    """Where it is: PLIANT_CACHE, or the user's cache folder."""
    given = os.environ.get("PLIANT_CACHE")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else home / "pliant"


def kept(path: Path, names: Iterable[str]) -> dict[str, np.ndarray] | None:
    """The arrays of these names in a file; None if it is absent or damaged, and they have to be computed anew."""
    try:
        with np.load(path) as stored:
            return {name: stored[name] for name in names}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def keep(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Writes arrays into a file, whole or not at all; a full or read-only disk is no reason to stop."""
    name = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
            name = file.name
            np.savez(file, **arrays)  # type: ignore[arg-type]
        os.replace(name, path)
    except OSError:
        if name and os.path.exists(name):
            os.remove(name)
