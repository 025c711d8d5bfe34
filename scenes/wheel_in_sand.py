"""A driven wheel with lugs digs itself through a bed of sand and throws some of it behind."""

import numpy as np

import pliant as pl

SECONDS = 3.0
LENGTH, WIDTH, DEPTH = 1.3, 0.36, 0.14  # of the bed [m]
WHEEL, BROAD, LUGS, LUG = 0.13, 0.12, 12, 0.03  # radius and width of the wheel, number and height of its lugs [m]
START, SINKAGE = 0.25, 0.05  # where its axle is at first, from the end of the bed, and how deep its rim sinks in [m]
SETTLE = 0.4  # in which it is lowered [s]


def wheel(center: tuple[float, float, float]) -> pl.Shape:
    """A disc around the z axis, with lugs across its rim."""
    shape: pl.Shape = pl.Cylinder(radius=WHEEL, height=BROAD, center=center, axis="z")
    x, y, z = center
    for k in range(LUGS):
        lug = pl.Box(size=(0.024, 2 * LUG, BROAD), center=(x, y + WHEEL, z))
        shape = shape | lug.rotate("z", 360 * k / LUGS, about=center)
    return shape


def build(radius: float = 0.008, spin: float = 5.0, slip: float = 0.5, friction_angle: float = 35.0,
          grains: int = 0) -> pl.Scene:  # fmt: skip
    """The wheel is lowered onto the bed, then it rolls along x, faster than it moves forward.

    radius: particle radius [m]; spin: its angular velocity [rad/s]; slip: share of its turning that is not forward
    motion, 0 to 1; friction_angle: of the sand [degree]; grains: drawn for each particle, 0 for none.
    """
    scene = pl.Scene(particle_radius=radius)
    box = pl.Box(size=(LENGTH, 0.6, WIDTH), center=(LENGTH / 2, 0.3, WIDTH / 2))
    scene.add(box, pl.Boundary(inside_out=True), name="box")
    high = DEPTH + WHEEL + LUG + radius
    down, forward = (LUG + SINKAGE + radius) / SETTLE, (1 - slip) * spin * WHEEL

    def motion(t: float) -> tuple:
        return ((0, -down, 0), (0, 0, 0)) if t < SETTLE else ((forward, 0, 0), (0, 0, -spin))

    center = (START, high, WIDTH / 2)
    scene.add(wheel(center), pl.Boundary(friction=0.5), name="wheel").move(motion, pivot=center)
    bed = pl.Box(size=(LENGTH, DEPTH, WIDTH), center=(LENGTH / 2, DEPTH / 2, WIDTH / 2))
    scene.add(bed, pl.Granular(friction_angle=friction_angle, grains=grains), name="sand", colors="sand")
    scene.camera = pl.Camera(position=(0.9, 0.62, 1.45), target=(0.6, 0.12, 0.15), fov=36)
    scene.look = pl.Look(low=-3.0, high=4.5)
    return scene


def check(sim: pl.Simulation) -> None:
    """The wheel has left a rut, all sand is in the box, and none in the wheel."""
    x, d = sim["sand"].x, sim.scene.spacing
    here = sim["wheel"].position
    assert np.isfinite(x).all() and (x[:, 1] > 0).all()
    assert ((x[:, 0] > 0) & (x[:, 0] < LENGTH) & (x[:, 2] > 0) & (x[:, 2] < WIDTH)).all(), "sand has left the box"
    near = np.abs(x[:, 2] - WIDTH / 2) < BROAD / 2
    inside = near & (np.hypot(x[:, 0] - here[0], x[:, 1] - here[1]) < WHEEL - d / 2)
    assert not inside.any(), "sand is inside the wheel"
    rut = near & (np.abs(x[:, 2] - WIDTH / 2) < BROAD / 3) & (np.abs(x[:, 0] - START - 0.05) < 2 * d)
    assert x[rut, 1].max() < DEPTH - d / 2, "the wheel has left no rut"
