"""A weight lies on wet sand, until water that rises through it makes it flow."""

import numpy as np

import pliant as pl

SECONDS = 2.5
BASIN, SHAFT, WIDTH = 0.5, 0.16, 0.3  # length of the basin and of the shaft beside it, and width of both [m]
FILTER, BED, SCREEN = 0.08, 0.2, 0.03  # height of the gravel and of the sand, thickness of the screen [m]
WEIGHT = 0.07  # radius of the weight [m]


def build(radius: float = 0.01, level: float = 0.9, grain_diameter: float = 2e-3, friction_angle: float = 33.0,
          density: float = 3500.0) -> pl.Scene:  # fmt: skip
    """Water stands in a shaft and flows through a filter of gravel under the sand, and up through it.

    radius: particle radius [m]; level: of the water in the shaft [m]: below 0.3 the weight stays where it is;
    grain_diameter, friction_angle: of the sand [m, degree]; density: of the weight [kg/m^3].
    """
    scene = pl.Scene(particle_radius=radius)
    length = SHAFT + SCREEN + BASIN
    middle = SHAFT + SCREEN + BASIN / 2
    tank = pl.Box(size=(length, 1.2, WIDTH), center=(length / 2, 0.6, WIDTH / 2))
    scene.add(tank, pl.Boundary(inside_out=True), name="tank")
    screen = pl.Box(size=(SCREEN, 1.2, 3 * WIDTH), center=(SHAFT + SCREEN / 2, 0.6 + FILTER, WIDTH / 2))
    shown = pl.Box(size=(SCREEN, 0.9, WIDTH), center=(SHAFT + SCREEN / 2, 0.45 + FILTER, WIDTH / 2))
    scene.add(screen, pl.Boundary(), name="screen", shown=shown)
    layer = pl.Box(size=(length, FILTER, WIDTH), center=(length / 2, FILTER / 2, WIDTH / 2))
    gravel = scene.add(layer, pl.Granular(grain_diameter=0.03, saturation=1.0), name="gravel", colors="grey")
    gravel.fix()
    bed = pl.Box(size=(BASIN, BED, WIDTH), center=(middle, FILTER + BED / 2, WIDTH / 2))
    sand = pl.Granular(friction_angle=friction_angle, grain_diameter=grain_diameter, saturation=1.0)
    scene.add(bed, sand, name="sand", colors="sand")
    column = pl.Box(size=(SHAFT, level - FILTER, WIDTH), center=(SHAFT / 2, (level + FILTER) / 2, WIDTH / 2))
    scene.add(column, pl.Fluid(), name="water")
    ball = pl.Sphere(radius=WEIGHT, center=(middle, FILTER + BED + WEIGHT, WIDTH / 2))
    scene.add(ball, pl.Elastic(density=density, young=1e6), name="weight", colors="inferno")
    scene.camera = pl.Camera(position=(0.75, 0.85, 1.7), target=(0.34, 0.3, 0.15), fov=36)
    return scene


def check(sim: pl.Simulation) -> None:
    """Everything is in the tank, the sand is quick at its base, and the weight sinks in."""
    sand, weight = sim["sand"], sim["weight"]
    for body in (sand, weight, sim["water"]):
        assert np.isfinite(body.x).all() and (body.x[:, 1] > 0).all()
    low = sand.x[:, 1] < FILTER + 0.4 * BED
    assert sand.effective_pressure[low].mean() < 0.5 * sand.pressure[low].mean(), "the sand is firm"
    assert weight.x[:, 1].mean() < FILTER + BED + 0.5 * WEIGHT, "the weight has not sunk"
