"""A moment of a simulation as plain arrays: the one function that files, pictures and the viewer take it by."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.transform import Rotation

from pliant.boundary.wall import Wall
from pliant.core.data import Cloud, Pose, Snapshot
from pliant.sim import fields
from pliant.skin.skins import SUFFIX

if TYPE_CHECKING:
    from pliant.sim.simulation import Simulation


def take(sim: "Simulation", index: int, shown: Sequence[str] = fields.EXPORTED, skins: bool = True,
         others: bool = True) -> Snapshot:  # fmt: skip
    """The particles of each body, in the order in which they were made, with the fields `shown` (see `fields.values`)
    and their ids; with `others`, what other stores show, grains among them; where moved walls and rigid bodies are; and
    with `skins` the surfaces of elastic bodies as meshes `<body>_skin`."""
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
    walls = sim.world.walls.walls
    rigid = {wall.name: pose_of(wall) for wall in walls if np.isfinite(wall.mass)}
    poses = {wall.name: wall.pose() for wall in walls if wall.moved or wall.name in rigid}
    snapshot = Snapshot(index, sim.time, clouds, poses, rigid=rigid)
    if skins:
        for name, source in sim.canvas.skins.items():
            if len(clouds[name].x):  # it is there
                snapshot.meshes[name + SUFFIX] = source.skin.mesh(clouds[name].x)
    return snapshot


def pose_of(wall: Wall) -> Pose:
    """Where a rigid body is and how it moves, as a copy."""
    quaternion = Rotation.from_matrix(wall.rotation).as_quat()
    return Pose(wall.pivot + wall.shift, quaternion, wall.velocity.copy(), wall.spin.copy())


def counts(sim: "Simulation") -> dict[str, int]:
    """Points of each body and of what other stores show, by name."""
    found: dict[str, int] = {}
    for store in sim.world.stores.values():
        found |= store.counts()
    return found
