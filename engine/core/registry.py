"""Classes that take part by being defined: stages and stores register themselves, whoever wrote them.

Those of the engine, those of a user's scene file, and those of installed packages that declare the entry point
`pliant.plugins` (a module to import, or a function to call) are found in the same way.
"""

import importlib
import importlib.metadata
from collections.abc import Iterator
from typing import Generic, TypeVar

from pliant.errors import PliantError

GROUP = "pliant.plugins"
T = TypeVar("T", bound=type)

_loaded = False


class Registry(Generic[T]):
    """The classes of one kind: those of the engine, and of others the newest of each name, so that a scene file that is
    read again, or a copy of it, replaces what it defined before."""

    def __init__(self) -> None:
        self._classes: dict[tuple[str, str], T] = {}

    def add(self, cls: T) -> None:
        key = cls.__module__, cls.__qualname__
        self._classes.pop(key, None)
        self._classes[key] = cls

    def __iter__(self) -> Iterator[T]:
        engine = [cls for cls in self._classes.values() if cls.__module__.startswith("pliant.")]
        others = {getattr(c, "name", c.__qualname__): c for c in self._classes.values() if c not in engine}
        return iter([*engine, *others.values()])


def load_plugins() -> None:
    """Imports what the engine has, whichever of its files was imported, and what installed packages bring, once."""
    global _loaded
    if _loaded:
        return
    importlib.import_module("pliant.api")  # above this layer, so by its name
    for entry in importlib.metadata.entry_points(group=GROUP):
        try:
            found = entry.load()
            if callable(found) and not isinstance(found, type):
                found()
        except Exception as error:  # somebody else's code: whatever it raises is reported
            raise PliantError(f"the plugin {entry.name!r} ({entry.value}) fails: {type(error).__name__}: {error}; "
                              "mend or uninstall its package") from error  # fmt: skip
    _loaded = True
