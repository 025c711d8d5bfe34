"""Water breaks against a dam of dry sand, pushes it along and washes it away."""

import numpy as np

import pliant as pl

SECONDS = 2.5
LENGTH, WIDTH = 2.0, 0.4  # of the tank [m]
WATER = (0.6, 0.55)  # length and height of the water [m]
DAM, CREST, SLOPE = 1.1, 0.17, 32.0  # middle and height of the dam [m], and how steep it is [degree]


def dam(width: float) -> pl.Shape:
    """What lies under two slopes that meet at the crest."""
    slope = np.radians(SLOPE)
    wide = 2 * CREST / np.tan(slope)
    shape: pl.Shape = pl.Box(size=(wide, CREST, width), center=(DAM, CREST / 2, width / 2))
    for side in (-1, 1):
        shape = shape & pl.Plane(normal=(side * np.sin(slope), np.cos(slope), 0), point=(DAM, CREST, 0))
    return shape


def build(radius: float = 0.01, friction_angle: float = 35.0, cohesion: float = 0.0, grains: int = 0) -> pl.Scene:
    """Its grains are so fine that hardly any water seeps in while it is pushed along.

    radius: particle radius [m]; friction_angle: of the sand [degree]; cohesion: of damp sand, some 1000 [Pa];
    grains: drawn for each particle of sand, 0 for none.
    """
    scene = pl.Scene(particle_radius=radius)
    tank = pl.Box(size=(LENGTH, 1.0, WIDTH), center=(LENGTH / 2, 0.5, WIDTH / 2))
    scene.add(tank, pl.Boundary(inside_out=True), name="tank")
    length, height = WATER
    water = pl.Box(size=(length, height, WIDTH), center=(length / 2, height / 2, WIDTH / 2))
    scene.add(water, pl.Fluid(), name="water")
    sand = pl.Granular(friction_angle=friction_angle, cohesion=cohesion, grains=grains)
    scene.add(dam(WIDTH), sand, name="sand", colors="sand")
    scene.camera = pl.Camera(position=(1.35, 0.95, 2.2), target=(1.0, 0.22, 0.2), fov=36)
    scene.look = pl.Look(low=-1.5, high=3.0)
    return scene


def check(sim: pl.Simulation) -> None:
    """The water has reached the dam and moved it; both are in the tank, and the sand, which is heavier, is below."""
    water, sand = sim["water"].x, sim["sand"].x
    for name, x in (("water", water), ("sand", sand)):
        assert np.isfinite(x).all()
        inside = (x[:, 0] > 0) & (x[:, 0] < LENGTH) & (x[:, 1] > 0) & (x[:, 2] > 0) & (x[:, 2] < WIDTH)
        assert inside.all(), f"{name} has left the tank"
    assert water[:, 0].max() > DAM - 0.1, "the water has not reached the dam"
    assert sand[:, 0].mean() > DAM + 0.01, "the water has not moved the dam"
    assert sand[:, 1].max() < 0.5 and sim.stats.mean_density_error < 5e-3
