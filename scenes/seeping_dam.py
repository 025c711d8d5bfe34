"""Water seeps through a dam of gravel and comes out at its foot."""

import numpy as np

import pliant as pl

SECONDS = 6.0
LENGTH, WIDTH = 2.4, 0.3  # of the tank [m]
LEVEL, RESERVOIR = 0.36, 0.75  # height of the water, and length of what stands in front of the dam [m]
CREST, TOP = 0.42, 0.16  # height of the dam, and length of its crest [m]


def dam(slope: float) -> pl.Shape:
    """What lies between two slopes of so many degrees."""
    angle = np.radians(slope)
    foot = CREST / np.tan(angle)
    wide = 2 * foot + TOP
    shape: pl.Shape = pl.Box(size=(wide, CREST, WIDTH), center=(RESERVOIR + wide / 2, CREST / 2, WIDTH / 2))
    for side, x in ((-1, RESERVOIR), (1, RESERVOIR + wide)):
        shape = shape & pl.Plane(normal=(side * np.sin(angle), np.cos(angle), 0), point=(x, 0, 0))
    return shape


def build(radius: float = 0.01, grain_diameter: float = 0.01, slope: float = 33.0,
          friction_angle: float = 42.0) -> pl.Scene:  # fmt: skip
    """The dam is dry at first. The finer its grains are, the longer it takes.

    radius: particle radius [m]; grain_diameter: of the gravel [m]; slope: of both sides of the dam [degree];
    friction_angle: of the gravel [degree].
    """
    scene = pl.Scene(particle_radius=radius)
    tank = pl.Box(size=(LENGTH, 1.0, WIDTH), center=(LENGTH / 2, 0.5, WIDTH / 2))
    scene.add(tank, pl.Boundary(inside_out=True), name="tank")
    gravel = pl.Granular(density=1600, friction_angle=friction_angle, grain_diameter=grain_diameter, saturation=0.0)
    scene.add(dam(slope), gravel, name="dam", colors="sand")
    reach = RESERVOIR + LEVEL / np.tan(np.radians(slope))
    water = pl.Box(size=(reach, LEVEL, WIDTH), center=(reach / 2, LEVEL / 2, WIDTH / 2))
    scene.add(water, pl.Fluid(), name="water")
    scene.camera = pl.Camera(position=(1.5, 1.0, 2.6), target=(1.15, 0.17, 0.15), fov=36)
    return scene


def check(sim: pl.Simulation) -> None:
    """The dam stands and is wet, and no water is lost."""
    dam, water, d = sim["dam"], sim["water"], sim.scene.spacing
    assert np.quantile(dam.x[:, 1], 0.999) > 0.85 * CREST - d, "the dam has slumped"
    assert dam.saturation.mean() > 0.1, "no water seeps into the dam"
    wet = dam.x[dam.saturation > 0.5, 0]
    assert wet.max() > RESERVOIR + 0.2, "the water does not come through"
    held = (dam.saturation * dam.material.porosity * dam.volume).sum() + water.volume.sum()
    first = sim.stats.initial["water"] * np.median(water.volume)  # most of it is as it was
    assert abs(held / first - 1) < 2e-3, f"{held / first:.4f} of the water is left"
