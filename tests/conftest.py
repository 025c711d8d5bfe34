"""What all tests share: one Taichi start, and the data that comes with the project's workplace."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pliant import Simulation


@pytest.fixture(scope="session", autouse=True)
def _taichi() -> None:
    from pliant.core import backend  # here, so that collecting tests does not import Taichi

    backend.start("cpu")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of meshes and reference data next to the project."""
    folder = Path(__file__).parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip(f"the reference data folder {folder.name}/ is not next to the project")
    return folder


@pytest.fixture(scope="session")
def assert_same_state() -> "Callable[[Simulation, Simulation], None]":
    """Fails unless everything that a checkpoint holds, of all stores and stages, is the same in both, bit for bit."""
    from pliant.sim.checkpoint import capture_state

    def compare(one: "Simulation", other: "Simulation") -> None:
        first, second = capture_state(one), capture_state(other)
        assert first.state == second.state
        assert set(first.arrays) == set(second.arrays)
        assert [n for n, values in first.arrays.items() if values.tobytes() != second.arrays[n].tobytes()] == []

    return compare
