"""Which format a file's suffix means. Each format registers itself at the end of its own file."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from pliant.core.data import Cloud, TriMesh
from pliant.errors import PliantError, unknown_name

PathLike = str | os.PathLike
T = TypeVar("T", Cloud, TriMesh)


@dataclass
class Registry(Generic[T]):
    """The formats that hold one kind of thing, by suffix; every error about a suffix lists what this table holds."""

    kind: str
    formats: dict[str, tuple[Callable[[Any, T], None], Callable[[Any], T]]] = field(default_factory=dict)

    def register(self, suffix: str, write: Callable[[Any, T], None], read: Callable[[Any], T]) -> None:
        """Makes `write(path, data)` and `read(path)` answer for files that end with `suffix`."""
        self.formats[suffix] = (write, read)

    def of(self, path: PathLike) -> tuple[Callable[[Any, T], None], Callable[[Any], T]]:
        """The writer and the reader for `path`."""
        suffix = Path(path).suffix.lower()
        if suffix not in self.formats:
            known = ", ".join(sorted(self.formats))
            if not suffix:
                raise PliantError(f"{path} has no suffix that names a {self.kind} format; known: {known}.")
            raise PliantError(unknown_name(f"{self.kind} format", suffix, self.formats))
        return self.formats[suffix]


CLOUDS: Registry[Cloud] = Registry("particle")
MESHES: Registry[TriMesh] = Registry("mesh")


def write_cloud(path: PathLike, cloud: Cloud) -> None:
    """Writes particles in the format that the suffix of `path` names."""
    CLOUDS.of(path)[0](path, cloud)


def read_cloud(path: PathLike) -> Cloud:
    """The particles in a file, by its suffix; positions that are not finite are refused."""
    return CLOUDS.of(path)[1](path)


def write_mesh(path: PathLike, mesh: TriMesh) -> None:
    """Writes a surface in the format that the suffix of `path` names."""
    MESHES.of(path)[0](path, mesh)


def read_mesh(path: PathLike) -> TriMesh:
    """The surface in a file, by its suffix."""
    return MESHES.of(path)[1](path)
