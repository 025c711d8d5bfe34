"""What all tests share: one Taichi start, and the data that comes with the project's workplace."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pliant import Simulation

# Seconds of the longer files, roughly. They are begun in this order, and shorter ones after them, so that
# no worker is left alone with a long one at the end.
SECONDS = {
    "test_scenes": 120, "test_viewer_window": 70, "test_validation": 55, "test_threads": 50, "test_run": 45,
    "test_births": 45, "test_cli": 35, "test_grains": 30, "test_film": 30, "test_sampling": 30, "test_contact": 29,
    "test_gpu": 28, "test_commands": 28, "test_elastic": 28, "test_probes": 28, "test_rigid_contacts": 27,
    "test_grab": 25, "test_wall_forces": 24, "test_skinning": 24, "test_mesh_input": 22, "test_elastic_robust": 20,
    "test_viewer_web": 20, "test_friction": 17, "test_stores": 16, "test_player": 15, "test_start": 15,
    "test_walls": 14, "test_drag": 13, "test_inspect": 10, "test_tightness": 9, "test_simulation": 7,
    "test_rigid_soft": 22, "test_rigid_joints": 20,
    "test_rigid_solver": 15, "test_rigid_motion": 6, "test_geometry": 7, "test_rigid_scene": 7,
    "test_mass": 5,
    "test_layers": 5, "test_backend": 5, "test_raster": 5, "test_surface_tension": 4,
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
