"""Soft ducks are dropped into a basin one after the other. All of them have one matrix, factorised once."""

import numpy as np

import pliant as pl
from pliant.scenes.falling_bodies_in_water import duck

SECONDS = 4.0
BASIN, DEPTH, DROP = (1.0, 0.9, 0.7), 0.25, 0.7  # of the basin and the water in it, and from where they fall [m]
COLORS = ("honey", "plasma", "viridis", "inferno", "sand")


def build(radius: float = 0.0125, ducks: int = 8, every: float = 0.4) -> pl.Scene:
    """radius: particle radius [m]; ducks: how many; every: time between them [s]."""
    scene = pl.Scene(particle_radius=radius)
    width, height, length = BASIN
    scene.add(pl.Box(size=BASIN, center=(0, height / 2, 0)), pl.Boundary(inside_out=True), name="basin")
    scene.add(pl.Box(size=(width, DEPTH, length), center=(0, DEPTH / 2, 0)), pl.Fluid(), name="water")
    rubber = pl.Elastic(density=350, young=2e5)
    for k in range(ducks):
        place = (0.28 * np.cos(2.4 * k), DROP, 0.16 * np.sin(2.4 * k))  # the golden angle
        scene.emit(duck(place), rubber, at=[k * every], name=f"duck{k}_", colors=COLORS[k % len(COLORS)])
    scene.camera = pl.Camera(position=(0.7, 0.95, 1.75), target=(0, 0.24, 0), fov=34)
    scene.look = pl.Look(low=-2.5, high=3.5, fluid="surface")
    return scene


def check(sim: pl.Simulation) -> None:
    """All that are due have come, whole and inside, and float."""
    width, _, length = BASIN
    level = np.percentile(sim["water"].x[:, 1], 99)
    for source in sim.scene.settings.sources:
        x = sim[source.name].x
        if sim.time < source.time + 0.1:
            continue
        assert len(x), f"{source.name} has not come"
        assert np.isfinite(x).all() and (np.abs(x) < (width / 2, np.inf, length / 2)).all() and (x[:, 1] > 0).all()
        if sim.time > source.time + 1.2:
            assert x[:, 1].max() > level, f"{source.name} does not float"
    present = sum(len(sim[body]) for body in sim.scene.bodies if body.material.has_particles)
    assert sum(sim.stats.initial.values()) + sum(sim.stats.emitted.values()) == present
