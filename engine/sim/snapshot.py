"""A moment of a simulation as plain arrays: the one function that files, pictures and the viewer take it by."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pliant.core.data import Cloud, Snapshot
from pliant.sim import fields
from pliant.skin.skins import SUFFIX

if TYPE_CHECKING:
    from pliant.sim.simulation import Simulation


def take(sim: "Simulation", index: int, shown: Sequence[str] = fields.EXPORTED, skins: bool = True,
         others: bool = True) -> Snapshot:  # fmt: skip
    """The particles of each body, in the order in which they were made, with the fields `shown` (see `fields.values`)
    and their ids; with `others`, what other stores show, grains among them; where moved walls are; and with `skins` the
    surfaces of elastic bodies as meshes `<body>_skin`."""
    particles = sim.world.particles
    known, x = fields.units(sim) | {"velocity": "m/s"}, particles.numpy("x")
    arrays = {name: fields.values(sim, name) for name in shown}
    units = {name: known[name] for name in shown if known.get(name, "1") != "1"}
    clouds = {}
    for body, rows in particles.rows_by_body().items():
        number = {"id": np.arange(len(rows), dtype=np.int32)}
        clouds[body] = Cloud(x[rows], {name: values[rows] for name, values in arrays.items()} | number, units)
    if others:
        for store in sim.world.stores.values():
            if store is not particles:
                clouds |= store.clouds()
    poses = {wall.name: wall.pose() for wall in sim.world.walls.walls if wall.moved}
    snapshot = Snapshot(index, sim.time, clouds, poses)
    if skins:
        for name, source in sim.canvas.skins.items():
            if len(clouds[name].x):  # it is there
                snapshot.meshes[name + SUFFIX] = source.skin.mesh(clouds[name].x)
    return snapshot


def counts(sim: "Simulation") -> dict[str, int]:
    """Points of each body and of what other stores show, by name."""
    found: dict[str, int] = {}
    for store in sim.world.stores.values():
        found |= store.counts()
    return found
