"""Water runs over a dam of fine sand, and cuts it down."""

import numpy as np

import pliant as pl

SECONDS = 4.0
LENGTH, WIDTH = 2.2, 0.4  # of the tank [m]
LEVEL, RESERVOIR = 0.34, 0.7  # height of the water, and length of what stands in front of the dam [m]
CREST, NOTCH = 0.3, 0.14  # height of the dam, and width of the notch in it [m]
SLOPE = 30.0  # [degree]


def dam(width: float) -> pl.Shape:
    """Two slopes that meet at the crest, with a notch in the middle."""
    angle = np.radians(SLOPE)
    foot = CREST / np.tan(angle)
    middle = RESERVOIR + foot
    shape: pl.Shape = pl.Box(size=(2 * foot, CREST, width), center=(middle, CREST / 2, width / 2))
    for side in (-1, 1):
        shape = shape & pl.Plane(normal=(side * np.sin(angle), np.cos(angle), 0), point=(middle, CREST, 0))
    return shape - pl.Box(size=(3 * foot, CREST, NOTCH), center=(middle, 1.3 * CREST, width / 2))


def build(radius: float = 0.01, grain_diameter: float = 1e-3, friction_angle: float = 34.0) -> pl.Scene:
    """The dam is wet, as one that stands in water is.

    radius: particle radius [m]; grain_diameter, friction_angle: of the sand [m, degree].
    """
    scene = pl.Scene(particle_radius=radius)
    tank = pl.Box(size=(LENGTH, 1.0, WIDTH), center=(LENGTH / 2, 0.5, WIDTH / 2))
    scene.add(tank, pl.Boundary(inside_out=True), name="tank")
    sand = pl.Granular(friction_angle=friction_angle, grain_diameter=grain_diameter, saturation=0.9)
    scene.add(dam(WIDTH), sand, name="sand", colors="sand")
    reach = RESERVOIR + CREST / np.tan(np.radians(SLOPE)) - 0.04
    water = pl.Box(size=(reach, LEVEL, WIDTH), center=(reach / 2, LEVEL / 2, WIDTH / 2))
    scene.add(water, pl.Fluid(), name="water")
    scene.camera = pl.Camera(position=(2.1, 1.2, 2.0), target=(1.2, 0.12, 0.2), fov=36)
    return scene


def check(sim: pl.Simulation) -> None:
    """Water has passed the dam and taken sand along; both are in the tank."""
    water, sand = sim["water"].x, sim["sand"].x
    foot = RESERVOIR + 2 * CREST / np.tan(np.radians(SLOPE))
    for x in (water, sand):
        assert np.isfinite(x).all()
        assert ((x > 0) & (x < (LENGTH, 1e9, WIDTH))).all()
    assert (water[:, 0] > foot).mean() > 0.02, "no water runs over the dam"
    assert (sand[:, 0] > foot).mean() > 0.005, "no sand is carried away"
