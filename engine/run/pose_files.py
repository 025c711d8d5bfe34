"""Where the rigid bodies of a run were, as one file for NumPy: `rigid.npz`.

It holds `times` (n,) [s] of the frames and, for each body, `<body>/position` (n, 3) [m] of its centre of mass,
`<body>/quaternion` (n, 4) as (x, y, z, w), `<body>/velocity` (n, 3) [m/s] and `<body>/spin` (n, 3) [rad/s]. It is made
of what `run.json` tells of the frames, whole and anew each time.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core.data import Pose
from pliant.io.files import atomic_write

NAME = "rigid.npz"


def poses_of(entry: dict[str, Any]) -> dict[str, Pose]:
    """The rigid bodies of a frame, by what the record says of it."""
    return {name: Pose(**{key: np.array(numbers) for key, numbers in values.items()})
            for name, values in entry.get("rigid", {}).items()}  # fmt: skip


def write_poses(folder: Path, entries: Sequence[dict[str, Any]]) -> None:
    """Writes the file, if there are rigid bodies."""
    names = list(entries[0].get("rigid", {})) if entries else []
    if not names:
        return
    arrays = {f"{name}/{key}": np.array([entry["rigid"][name][key] for entry in entries])
              for name in names for key in entries[0]["rigid"][name]}  # fmt: skip
    with atomic_write(folder / NAME) as file:
        np.savez(file, times=np.array([entry["time"] for entry in entries]), **arrays)  # type: ignore[arg-type]
