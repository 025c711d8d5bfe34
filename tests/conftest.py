"""What all tests share: one Taichi start, and the data that comes with the project's workplace."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pliant import Simulation

# Seconds of files that take more than ten, roughly. They are begun in this order, and shorter ones after them, so that
# no worker is left alone with a long one at the end.
SECONDS = {
    "test_scenes": 150, "test_births": 90, "test_viewer_window": 60, "test_probes": 60, "test_sampling": 55,
    "test_run": 50, "test_viewer_web": 45, "test_validation": 40, "test_wall_forces": 40, "test_grains": 38,
    "test_contact": 37, "test_elastic": 37, "test_film": 35, "test_commands": 34, "test_grab": 31,
    "test_mesh_input": 30, "test_cli": 26, "test_skinning": 23, "test_threads": 20, "test_elastic_robust": 19,
    "test_surface_tension": 20, "test_friction": 18, "test_walls": 16, "test_inspect": 15, "test_player": 15,
    "test_stores": 13, "test_drag": 12, "test_tightness": 11, "test_geometry": 11, "test_simulation": 10,
    "test_raster": 10, "test_layers": 10,
}  # fmt: skip

# Two files are tested at a time, so there is one core for each. Most scenes here are so small that waking a second
# thread costs more than it helps; tests/test_threads.py compares numbers of threads.
os.environ.setdefault("TI_CPU_MAX_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of NumPy, whose threads wait in circles and keep the core busy


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: -SECONDS.get(item.path.stem, 0))


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
