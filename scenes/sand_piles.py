"""Three sands are poured from pipes, the same volume of each: the rougher the grains, the steeper the pile."""

from collections.abc import Callable

import numpy as np

import pliant as pl

ANGLES = (30, 45, 60)  # friction angles of the sands [degree]
PLACES = (-0.46, 0.02, 0.4)  # of the pipes along x [m]
PIPE, HEIGHT = 0.06, 0.2  # radius of the pipes, height of the pile of 45 degrees [m]
DROP = 0.04  # from the pipe's mouth to the top of the pile [m]
START, FIRST = 0.1, 0.03  # when the sand begins to leave [s], and the share of it for which the pipe has room at first
SECONDS = 6.0
VOLUME = np.pi / 3 * HEIGHT**3  # of sand in each pile [m^3]
TALL = VOLUME / (np.pi * PIPE**2)  # of the sand in each pipe [m]


def mouth(angle: float, share: float) -> float:
    """Height of the pipe's mouth over a cone of this share of the sand [m]; it rises with the cone."""
    full = HEIGHT * np.tan(np.radians(angle)) ** (2 / 3)
    return float(full * np.cbrt(np.clip(share, FIRST, 1.0)) + DROP)


def build(radius: float = 0.006, seconds: float = 4.5, grains: int = 0) -> pl.Scene:
    """The sand in the pipes is led downwards and let go at their mouths, which rise with the piles, so that its fall
    flattens them as little as may be.

    radius: particle radius [m]; seconds: in which it is poured [s]; grains: drawn for each particle, 0 for none.
    """
    scene = pl.Scene(particle_radius=radius)
    scene.add(pl.Plane(), pl.Boundary(), name="floor")
    tall = TALL + 4 * radius
    for angle, x in zip(ANGLES, PLACES, strict=True):
        low = mouth(angle, 0.0)
        rise = rising(angle, seconds)
        pipe = pl.Cylinder(radius=1.15 * PIPE + 2 * radius, height=tall, center=(x, low + tall / 2, 0))
        bore = pl.Cylinder(radius=PIPE + 2 * radius, height=2 * tall, center=(x, low + tall / 2, 0))
        scene.add(pipe - bore, pl.Boundary(friction=0.0), name=f"pipe {angle}").move(lambda t, up=rise: (0, up(t), 0))
        column = pl.Cylinder(radius=PIPE, height=TALL, center=(x, low + TALL / 2, 0))
        sand = pl.Granular(friction_angle=angle, grains=grains)
        held = scene.add(column, sand, name=f"sand of {angle} degrees", colors="sand")
        held.fix()
        held.move(lambda t, up=rise: (0, up(t) - (TALL / seconds if t > START else 0), 0))
    scene.on_step(let_go)
    scene.camera = pl.Camera(position=(0, 0.42, 1.75), target=(0, 0.2, 0), fov=36)
    scene.look = pl.Look(low=-4.0, high=6.0)
    return scene


def rising(angle: float, seconds: float) -> Callable[[float], float]:
    """Velocity of a pipe at time t [m/s]."""

    def speed(t: float, step: float = 1e-3) -> float:
        before, after = (t - step - START) / seconds, (t + step - START) / seconds
        return (mouth(angle, after) - mouth(angle, before)) / (2 * step)

    return speed


def let_go(sim: pl.Simulation) -> None:
    """What has come to the mouth of its pipe is free."""
    for angle in ANGLES:
        sand, pipe = sim[f"sand of {angle} degrees"], sim[f"pipe {angle}"]
        held = sand.fixed
        if held.any():
            low = pipe.position[1] - TALL / 2 - sim.scene.spacing
            sand.release(held & (sand.x[:, 1] < low))


def slope(sim: pl.Simulation, angle: float) -> float:
    """Angle of the cone [degree] that is as wide as the pile and of its volume: R^3 tan(angle) = 3 V / pi. For this
    width take the radius inside which 75 % of a cone's volume lies: r / R = 0.6736, where 3 r^2 - 2 r^3 = 0.75."""
    sand, x = sim[f"sand of {angle} degrees"], PLACES[ANGLES.index(angle)]
    free = ~sand.fixed
    r = np.quantile(np.hypot(sand.x[free, 0] - x, sand.x[free, 2]), 0.75) / 0.6736
    return float(np.degrees(np.arctan(3 * sand.volume[free].sum() / (np.pi * r**3))))


def check(sim: pl.Simulation) -> None:
    """All sand is poured, lies still, and the angles of the piles are in order."""
    found = [slope(sim, angle) for angle in ANGLES]
    for angle in ANGLES:
        sand = sim[f"sand of {angle} degrees"]
        assert not sand.fixed.any(), "some sand is still in its pipe"
        assert (sand.x[:, 1] > 0).all(), "sand has passed the floor"
        assert np.percentile(np.abs(sand.v), 95) < 0.05, "a pile does not rest"
    assert abs(found[0] - 30) < 6, f"the first pile has {found[0]:.1f} degrees, not 30"
    assert found[1] > found[0] + 3 and found[2] > found[1] + 3, f"the angles are {found}, not 30, 45, 60"
