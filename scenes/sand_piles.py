"""Three sands are poured from pipes, the same volume of each: the rougher the grains, the steeper the pile."""

import numpy as np

import pliant as pl

ANGLES = (30, 45, 60)  # friction angles of the sands [degree]
PLACES = (-0.46, 0.02, 0.42)  # of the pipes along x [m]
PIPE, HEIGHT = 0.05, 0.2  # radius of the pipes, height of the pile of 45 degrees [m]
DROP = 0.04  # from the pipe's mouth to the top of the pile [m]
SECONDS = 6.0
VOLUME = np.pi / 3 * HEIGHT**3  # of sand in each pile [m^3]
TALL = VOLUME / (np.pi * PIPE**2)  # of the sand in each pipe [m]


def mouth(angle: float) -> float:
    """Height of the pipe's mouth over the floor: the pile stays just below it [m]."""
    return float(HEIGHT * np.tan(np.radians(angle)) ** (2 / 3) + DROP)


def build(radius: float = 0.006, seconds: float = 5.0, grains: int = 0) -> pl.Scene:
    """The sand in the pipes is led downwards and let go at their mouths, slowly, so that its fall does not flatten the
    piles.

    radius: particle radius [m]; seconds: in which it is poured [s]; grains: drawn for each particle, 0 for none.
    """
    scene = pl.Scene(particle_radius=radius)
    scene.add(pl.Plane(), pl.Boundary(), name="floor")
    tall, speed = TALL + 4 * radius, TALL / seconds
    for angle, x in zip(ANGLES, PLACES, strict=True):
        low = mouth(angle)
        pipe = pl.Cylinder(radius=1.15 * PIPE + 2 * radius, height=tall, center=(x, low + tall / 2, 0))
        bore = pl.Cylinder(radius=PIPE + 2 * radius, height=2 * tall, center=(x, low + tall / 2, 0))
        scene.add(pipe - bore, pl.Boundary(friction=0.0), name=f"pipe {angle}")
        column = pl.Cylinder(radius=PIPE, height=TALL, center=(x, low + TALL / 2, 0))
        sand = pl.Granular(friction_angle=angle, grains=grains)
        held = scene.add(column, sand, name=f"sand of {angle} degrees", colors="sand", velocity=(0, -speed, 0))
        held.fix()
        held.move(lambda t: (0, -speed, 0))
    scene.on_step(let_go)
    scene.camera = pl.Camera(position=(0, 0.45, 1.6), target=(0, 0.17, 0), fov=36)
    scene.look = pl.Look(low=-4.0, high=6.0)
    return scene


def let_go(sim: pl.Simulation) -> None:
    """What has come to the mouth of its pipe is free."""
    for angle in ANGLES:
        sand = sim[f"sand of {angle} degrees"]
        free = sand.fixed & (sand.x[:, 1] < mouth(angle))
        if free.any():
            sand.release(free)


def slope(sim: pl.Simulation, angle: float) -> float:
    """Angle of the cone [degree] that is as wide as the pile and of its volume: R^3 tan(angle) = 3 V / pi. For this
    width take the radius inside which 75 % of a cone's volume lies: r / R = 0.6736, where 3 r^2 - 2 r^3 = 0.75."""
    sand, x = sim[f"sand of {angle} degrees"], PLACES[ANGLES.index(angle)]
    free = ~sand.fixed
    r = np.quantile(np.hypot(sand.x[free, 0] - x, sand.x[free, 2]), 0.75) / 0.6736
    return float(np.degrees(np.arctan(3 * sand.volume[free].sum() / (np.pi * r**3))))


def check(sim: pl.Simulation) -> None:
    """All sand is poured and lies still, and the piles of 45 and 60 degrees are steeper than that of 30. Which of the
    two is the steeper one, small piles of large particles leave to chance: towers of 60 degrees topple."""
    found = [slope(sim, angle) for angle in ANGLES]
    for angle in ANGLES:
        sand = sim[f"sand of {angle} degrees"]
        assert not sand.fixed.any(), "some sand is still in its pipe"
        assert (sand.x[:, 1] > 0).all(), "sand has passed the floor"
        assert np.percentile(np.abs(sand.v), 95) < 0.05, "a pile does not rest"
    assert abs(found[0] - 30) < 6, f"the first pile has {found[0]:.1f} degrees, not 30"
    assert min(found[1:]) > found[0] + 6, f"the angles are {found}, not 30, 45, 60"
