"""What all tests share: one Taichi start, and the data that comes with the project's workplace."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def _taichi() -> None:
    from pliant import backend  # here, so that collecting tests does not import Taichi

    backend.start("cpu")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of meshes and reference data next to the project."""
    folder = Path(__file__).parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip(f"the reference data folder {folder.name}/ is not next to the project")
    return folder
