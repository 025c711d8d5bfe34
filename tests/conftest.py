"""What all tests share: one Taichi start, and the data that comes with the project's workplace."""

import subprocess
import sys
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


THREADS = """
import sys, taichi as ti
init = ti.init
ti.init = lambda **options: init(**options, cpu_max_num_threads=int(sys.argv[1]))
import pliant as pl
sim = pl.load(sys.argv[2])
sim.run(float(sys.argv[3]))
sim.save(sys.argv[4])
"""


@pytest.fixture(scope="session")
def with_threads() -> Callable[[int, Path, float, Path], None]:
    """Goes on from a saved state for some seconds in a process with so many threads, and saves how it ends."""

    def go_on(threads: int, state: Path, seconds: float, end: Path) -> None:
        arguments = [str(word) for word in (threads, state, seconds, end)]
        subprocess.run([sys.executable, "-c", THREADS, *arguments], check=True, timeout=300)

    return go_on


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
