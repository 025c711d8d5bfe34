"""Where the probes of a scene are, as lines to be drawn: crosses at points, outlines of patches and sections."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pliant.sim.simulation import Simulation

FIXED = ""  # the name under which markers are kept that move with no wall


def probe_markers(sim: "Simulation") -> dict[str, np.ndarray]:
    """Segments (m, 2, 3) [m], where walls were built, by the name of the wall that they move with."""
    found: dict[str, list[np.ndarray]] = {}
    store, walls = sim.world.stores.get("probes"), sim.world.walls.walls
    cross = sim.scene.spacing * np.stack([-np.eye(3), np.eye(3)], axis=1)
    for probe in sim.scene.settings.probes:
        if probe.on is not None:
            one = store.on_walls[probe.name]  # type: ignore[union-attr]
            edge = probe.on.edge() @ one.patch.axes[:2] + one.patch.center
            found.setdefault(walls[one.wall].name, []).append(edge)
        elif probe.through is not None:
            found.setdefault(FIXED, []).append(probe.through.outline(probe.through.normal))
        else:
            found.setdefault(FIXED, []).append((probe.points[:, None, None] + cross).reshape(-1, 2, 3))
    return {name: np.concatenate(parts) for name, parts in found.items()}
