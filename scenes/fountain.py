"""A jet rises from a pipe in the middle of a round basin, which runs over its edge."""

import numpy as np

import pliant as pl

SECONDS = 4.0
BASIN, RIM = 0.4, 0.1  # inner radius and height of the basin [m]
PIPE, TOP = 0.04, 0.16  # inner radius of the pipe and its height over the bottom [m]
SPEED = 3.0  # at which water leaves the pipe [m/s]


def build(radius: float = 0.01, speed: float = SPEED, pulse: float = 0.0) -> pl.Scene:
    """radius: particle radius [m]; speed: at which water leaves the pipe [m/s]; pulse: share of it by which it rises
    and falls, twice in a second."""
    scene = pl.Scene(particle_radius=radius)
    wall = 3 * radius
    bottom = pl.Cylinder(radius=BASIN + wall, height=wall, center=(0, -wall / 2, 0))
    ring = pl.Cylinder(radius=BASIN + wall, height=RIM, center=(0, RIM / 2, 0))
    basin = bottom | (ring - pl.Cylinder(radius=BASIN, height=2 * RIM, center=(0, RIM / 2, 0)))
    hollow = pl.Cylinder(radius=PIPE, height=3 * TOP, center=(0, TOP / 2, 0))
    pipe = pl.Cylinder(radius=PIPE + wall, height=TOP, center=(0, TOP / 2, 0)) - hollow
    scene.add(basin, pl.Boundary(), name="basin")
    scene.add(pipe, pl.Boundary(), name="pipe")
    full = pl.Cylinder(radius=BASIN, height=0.8 * RIM, center=(0, 0.4 * RIM, 0))
    water = scene.add(full - pl.Cylinder(radius=PIPE + wall, height=1, center=(0, 0, 0)), pl.Fluid(), name="water")

    def rising(t: float) -> tuple[float, float, float]:
        return 0.0, speed * (1 + pulse * float(np.sin(4 * np.pi * t))), 0.0

    jet = rising if pulse else (0.0, speed, 0.0)
    scene.emit(pl.Disc(radius=PIPE, center=(0, radius, 0), normal=(0, 1, 0)), water, velocity=jet, name="jet")
    scene.drain(pl.Box(size=(6, 2, 6), center=(0, -1 - 2 * wall, 0)), name="gully")
    scene.camera = pl.Camera(position=(0.9, 0.85, 1.5), target=(0, 0.25, 0), fov=34)
    scene.look = pl.Look(low=-2.0, high=3.5)
    return scene


def check(sim: pl.Simulation) -> None:
    """The jet rises, the flow is right, every particle is accounted for."""
    stats, x = sim.stats, sim["water"].x
    assert np.isfinite(x).all()
    assert stats.initial["water"] + sim["jet"].count == len(x) + sim["gully"].count, "particles are missing"
    assert x[:, 1].max() > TOP + 0.15, "there is no jet"
    assert not sim["jet"].waiting, "the jet is blocked"
    for name in ("basin", "pipe"):
        assert not sim.scene.body(name).shape.inside(x).any(), f"water is inside of the {name}"
