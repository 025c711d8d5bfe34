"""Pliant: one particle engine for soft solids, fluids, sand, shells and rigid bodies. `import pliant as pl`."""

import importlib
import os
from typing import TYPE_CHECKING, Any

if __name__ != "pliant":
    raise ImportError("engine/ installs as the package pliant; write `import pliant` instead of `import engine`.")

os.environ.setdefault("ENABLE_TAICHI_HEADER_PRINT", "0")  # before Taichi is imported: nobody asked for its banner

os.environ.setdefault("HOME", os.path.expanduser("~"))  # Taichi's cache aborts without one; services often have none

__version__ = "0.1.0"

if TYPE_CHECKING:
    from pliant.api import *  # noqa: F403

else:  # a type checker that saw this would take any name for public

    def __getattr__(name: str) -> Any:
        """A public name, when first used: from then on all of them are here, as if they had been imported at the start.

        All at once, so that every stage, store and material is registered before any of them is used.
        """
        if name.startswith("__") and name != "__all__":  # what Python and its tools look for in any module
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        api = importlib.import_module("pliant.api")
        found = {"__all__": api.__all__, **{public: getattr(api, public) for public in api.__all__}}
        globals().update(found)
        if name in globals():  # or a folder, such as pliant.render, that came with them
            return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
