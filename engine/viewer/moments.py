"""What a view needs to know of a simulation now, and no more than that: it is asked many times a second."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pliant.io.data import GRAINS, Cloud, Snapshot
from pliant.skin.skins import SUFFIX
from pliant.viewer import fields
from pliant.viewer.messages import Figures

USUAL = "speed"  # what colours unless there is the field that is asked for


def snapshot(sim: Any, shown: str, grains: bool = True, skins: bool = True) -> Snapshot:
    """Positions, poses, and one field that colours: `shown`, for grains only if that is the speed."""
    known = fields.units(sim)
    shown = shown if shown in known else USUAL
    x, values, unit = sim.world.particles.by_id("x"), fields.values(sim, shown), {shown: known[shown]}
    clouds = {name: Cloud(x[a:b], {shown: values[a:b]}, unit) for name, (a, b) in sim._ranges.items()}
    if grains and shown == USUAL:
        clouds |= _grains(sim)
    poses = {wall.name: wall.pose() for wall in sim.world.walls.walls}
    sources = sim.canvas.skins if skins else {}
    meshes = {name + SUFFIX: source.drawn(clouds[name], clouds[name].fields) for name, source in sources.items()}
    return Snapshot(sim.step_count, sim.time, clouds, poses, meshes)


def _grains(sim: Any) -> dict[str, Cloud]:
    if sim.grains is None:
        return {}
    x, v = sim.grains.x.to_numpy(), sim.grains.v.to_numpy()
    speed, parts = np.sqrt(np.einsum("ij,ij->i", v, v)), {}
    for body in sim.grains.bodies:
        mine = slice(body.first, body.last)
        parts[sim.world.names[body.number] + GRAINS] = Cloud(x[mine], {USUAL: speed[mine]}, {USUAL: "m/s"})
    return parts


def counts(sim: Any) -> dict[str, int]:
    """Particles of each body, and grains."""
    found = {name: last - first for name, (first, last) in sim._ranges.items()}
    bodies = sim.grains.bodies if sim.grains else ()
    return found | {sim.world.names[body.number] + GRAINS: body.last - body.first for body in bodies}


def figures(sim: Any, lately: Sequence[tuple[float, float]]) -> Figures:
    """Numbers of the last step, and rates by the clock and the simulated time of those that were made `lately`."""
    step, p = sim._step, sim.world.particles
    took = max(lately[-1][0] - lately[0][0], 1e-9) if lately else 1.0
    m, v = p.numpy("m"), p.numpy("v")
    squares = np.einsum("ij,ij->i", v, v)
    numbers = {k.removesuffix(" iterations"): int(n) for k, n in step.numbers.items() if k.endswith("iterations")}
    solves = {"divergence": step.divergence, "density": step.density}
    return Figures(
        time=sim.time, dt=sim.dt, step=sim.step_count, steps_per_second=max(len(lately) - 1, 0) / took,
        rate=(lately[-1][1] - lately[0][1]) / took if lately else 0.0, seconds=dict(step.seconds),
        iterations=numbers | {name: outcome.iterations for name, outcome in solves.items() if outcome},
        density_error=step.density.mean if step.density else 0.0, max_speed=float(np.sqrt(squares.max())),
        energy=float(0.5 * np.einsum("i,i->", m, squares)),
    )  # fmt: skip
