"""What probes have recorded, as files in the folder of a run: `probes/<name>.csv`, and `.npz` for NumPy.

The csv file has a line of column names with their units, then a line for each sample, in digits that bring the numbers
back. The npz file holds `times` (n,), `values` (n, columns), `columns` and `units`, `quantity`, and `points` (k, 3) if
it was measured at points. Both are written whole and anew each time: what was recorded is part of the state, so that a
run that was killed and resumed ends with the same files as one left alone.
"""

import dataclasses
import io
import os
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pliant.errors import PliantError
from pliant.io.files import atomic_write

if TYPE_CHECKING:
    from pliant.sim.simulation import Simulation

DIGITS = "%.12g"  # more than measurements in single precision have


@dataclasses.dataclass(frozen=True)
class Recording:
    """The samples of one probe."""

    name: str
    quantity: str
    columns: list[str]
    units: list[str]
    points: np.ndarray  # (k, 3) [m]
    rows: np.ndarray  # (n, 1 + columns): times [s] and values

    @property
    def times(self) -> np.ndarray:
        return self.rows[:, 0]

    @property
    def values(self) -> np.ndarray:
        return self.rows[:, 1:]


def recordings(sim: "Simulation") -> list[Recording]:
    """Copies of what the probes of a simulation have recorded so far."""
    store = sim.world.stores.get("probes")
    return [Recording(name, one.probe.quantity, [c for c, _ in one.columns], [u for _, u in one.columns],
                      one.probe.points, one.samples.rows.copy())
            for name, one in getattr(store, "recorders", {}).items()]  # fmt: skip


def writing(sim: "Simulation", folder: Path) -> Callable[[], None]:
    """Copies what there is now; the function returned writes it into the folder, at any time and in any thread."""
    found = recordings(sim)

    def write() -> None:
        for one in found:
            write_recording(folder, one)

    return write


def write_recording(folder: Path, one: Recording) -> None:
    """Both files of a probe."""
    text = io.StringIO()
    head = ["time [s]", *(f"{name} [{unit}]" for name, unit in zip(one.columns, one.units, strict=True))]
    np.savetxt(text, one.rows, fmt=DIGITS, delimiter=",", header=",".join(head), comments="")
    with atomic_write(folder / f"{one.name}.csv") as file:
        file.write(text.getvalue().encode())
    with atomic_write(folder / f"{one.name}.npz") as file:
        np.savez(file, times=one.times, values=one.values, columns=np.array(one.columns, str),
                 units=np.array(one.units, str), quantity=np.array(one.quantity), points=one.points)  # fmt: skip


def read_recording(path: str | os.PathLike) -> Recording:
    """What an npz file of a probe holds; one sentence if it is none."""
    path = Path(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            rows = np.column_stack([file["times"], file["values"]]).astype(float)
            columns, units = file["columns"].astype(str).tolist(), file["units"].astype(str).tolist()
            if len(columns) != rows.shape[1] - 1 or len(units) != len(columns):
                raise ValueError("its columns do not fit its values")
            return Recording(path.stem, str(file["quantity"]), columns, units, file["points"], rows)
    except OSError as error:
        raise PliantError(f"cannot read {path}: {error.strerror or error}") from error
    except (zipfile.BadZipFile, ValueError, LookupError, EOFError, TypeError) as error:
        raise PliantError(f"{path} is not what a probe has recorded, or is damaged ({error})") from error


def read_all(folder: Path, names: Iterable[str]) -> tuple[list[Recording], list[str]]:
    """The recordings of these probes in the folder, and a sentence for each that cannot be read."""
    found, lost = [], []
    for name in names:
        try:
            found.append(read_recording(folder / f"{name}.npz"))
        except PliantError as error:
            lost.append(str(error))
    return found, lost
