"""What a view needs to know of a simulation now, and no more than that: it is asked many times a second."""

from collections.abc import Sequence

import numpy as np

from pliant.core.data import Cloud, Snapshot
from pliant.sim import fields
from pliant.sim.simulation import Simulation
from pliant.sim.snapshot import counts, take
from pliant.sim.stats import kinetic_energy, rigid_walls
from pliant.skin.skins import SUFFIX
from pliant.viewer.messages import Figures

USUAL = "speed"  # what colours unless there is the field that is asked for


def snapshot(sim: Simulation, shown: str, grains: bool = True, skins: bool = True) -> Snapshot:
    """Positions, poses, and one field that colours: `shown`; other stores than the particles are there only if that is
    the speed."""
    shown = shown if shown in fields.units(sim) else USUAL
    seen = take(sim, sim.step_count, (shown,), skins=False, others=grains and shown == USUAL)
    for cloud in seen.clouds.values():
        _colour(cloud, shown)
    there = {name for name, cloud in seen.clouds.items() if len(cloud.x)}
    for name, source in [item for item in sim.canvas.skins.items() if skins and item[0] in there]:
        seen.meshes[name + SUFFIX] = source.drawn(seen.clouds[name], seen.clouds[name].fields)
    return seen


def _colour(cloud: Cloud, shown: str) -> None:
    """Keeps of a cloud what colours it."""
    if shown not in cloud.fields:
        v = cloud.fields.get("velocity", np.zeros_like(cloud.x))
        cloud.fields[shown], cloud.units = np.sqrt(np.einsum("ij,ij->i", v, v)), {shown: "m/s"}
    cloud.fields = {shown: cloud.fields[shown]}


def figures(sim: Simulation, lately: Sequence[tuple[float, float]]) -> Figures:
    """Numbers of the last step, and rates by the clock and the simulated time of those that were made `lately`."""
    p, errors = sim.world.particles, sim.pressure.errors(sim.results)
    took = max(lately[-1][0] - lately[0][0], 1e-9) if lately else 1.0
    m, v = p.numpy("m"), p.numpy("v")
    squares = np.einsum("ij,ij->i", v, v)
    return Figures(
        time=sim.time, dt=sim.dt, step=sim.step_count, steps_per_second=max(len(lately) - 1, 0) / took,
        rate=(lately[-1][1] - lately[0][1]) / took if lately else 0.0, seconds=dict(sim.seconds),
        iterations={name: result.iterations for name, result in sim.results.items()},
        density_error=errors["density"].mean, max_speed=float(np.sqrt(squares.max(initial=0.0))),
        energy=float(0.5 * np.einsum("i,i->", m, squares)) + sum(kinetic_energy(wall) for wall in rigid_walls(sim)),
        counts=counts(sim),
    )  # fmt: skip
