"""A weight lies on wet sand, until water that rises through it makes it flow."""

import numpy as np

import pliant as pl

SECONDS = 3.0
BASIN, SHAFT, WIDTH = 0.5, 0.16, 0.3  # length of the basin and of the shaft beside it, and width of both [m]
BED, GAP, SCREEN = 0.2, 0.08, 0.03  # height of the sand, of the gap under the screen between both, its thickness [m]
WEIGHT = 0.07  # radius of the weight [m]


def build(radius: float = 0.01, level: float = 0.9, grain_diameter: float = 4e-3, friction_angle: float = 33.0,
          density: float = 3500.0) -> pl.Scene:  # fmt: skip
    """Water stands in the shaft and flows under the screen into the basin, up through the sand.

    radius: particle radius [m]; level: of the water in the shaft [m], 0.3 and the weight stays where it is;
    grain_diameter, friction_angle: of the sand [m, degree]; density: of the weight [kg/m^3].
    """
    scene = pl.Scene(particle_radius=radius)
    length = SHAFT + SCREEN + BASIN
    tank = pl.Box(size=(length, 1.2, WIDTH), center=(length / 2, 0.6, WIDTH / 2))
    scene.add(tank, pl.Boundary(inside_out=True), name="tank")
    screen = pl.Box(size=(SCREEN, 1.2, 3 * WIDTH), center=(SHAFT + SCREEN / 2, 0.6 + GAP, WIDTH / 2))
    shown = pl.Box(size=(SCREEN, 0.9, WIDTH), center=(SHAFT + SCREEN / 2, 0.45 + GAP, WIDTH / 2))
    scene.add(screen, pl.Boundary(), name="screen", shown=shown)
    sand = pl.Granular(friction_angle=friction_angle, grain_diameter=grain_diameter, saturation=1.0)
    bed = pl.Box(size=(BASIN, BED, WIDTH), center=(SHAFT + SCREEN + BASIN / 2, BED / 2, WIDTH / 2))
    plug = pl.Box(size=(SHAFT + SCREEN, GAP, WIDTH), center=((SHAFT + SCREEN) / 2, GAP / 2, WIDTH / 2))
    scene.add(bed | plug, sand, name="sand", colors="sand")
    column = pl.Box(size=(SHAFT, level - GAP, WIDTH), center=(SHAFT / 2, (level + GAP) / 2, WIDTH / 2))
    scene.add(column, pl.Fluid(), name="water")
    ball = pl.Sphere(radius=WEIGHT, center=(SHAFT + SCREEN + BASIN / 2, BED + WEIGHT, WIDTH / 2))
    scene.add(ball, pl.Elastic(density=density, young=1e6), name="weight", colors="inferno")
    scene.camera = pl.Camera(position=(0.75, 0.85, 1.7), target=(0.34, 0.3, 0.15), fov=36)
    return scene


def check(sim: pl.Simulation) -> None:
    """Everything is in the tank, and the weight has sunk in."""
    sand, weight = sim["sand"], sim["weight"]
    for body in (sand, weight, sim["water"]):
        assert np.isfinite(body.x).all() and (body.x[:, 1] > 0).all()
    assert sand.saturation.min() > 0.2
    assert weight.x[:, 1].mean() < BED + 0.8 * WEIGHT, "the weight has not sunk"
