"""Sand runs through an hourglass: as fast in the end as in the beginning."""

import numpy as np

import pliant as pl

SECONDS = 5.0
BULB, HALF = 0.1, 0.26  # inner radius and height of each half of the glass [m]
FILL = 0.2  # height over the neck up to which the upper half is filled [m]
SIDES, RINGS = 36, 41  # of the glass


def profile(y: np.ndarray, neck: float) -> np.ndarray:
    """Inner radius of the glass at the heights y over its neck [m]: a funnel that widens to a bulb."""
    t = np.clip(np.abs(y) / (0.65 * HALF), 0, 1)
    return neck + (BULB - neck) * (3 * t**2 - 2 * t**3)


def glass(neck: float) -> pl.Mesh:
    """What the glass holds: a solid of revolution around the y axis, its neck at y = 0."""
    y = np.linspace(-HALF, HALF, RINGS)
    angles = 2 * np.pi * np.arange(SIDES) / SIDES
    r = profile(y, neck)[:, None]
    rings = np.stack([r * np.cos(angles), np.repeat(y[:, None], SIDES, axis=1), r * np.sin(angles)], axis=-1)
    vertices = np.concatenate([rings.reshape(-1, 3), [(0, -HALF, 0), (0, HALF, 0)]])
    ring, turn = np.meshgrid(np.arange(RINGS - 1), np.arange(SIDES), indexing="ij")
    a, b = (ring * SIDES + turn).ravel(), (ring * SIDES + (turn + 1) % SIDES).ravel()
    side, after, last = np.arange(SIDES), (np.arange(SIDES) + 1) % SIDES, (RINGS - 1) * SIDES
    bottom, top = np.full(SIDES, RINGS * SIDES), np.full(SIDES, RINGS * SIDES + 1)
    faces = [(a, a + SIDES, b), (b, a + SIDES, b + SIDES), (bottom, side, after), (top, last + after, last + side)]
    return pl.Mesh((vertices, np.concatenate([np.stack(f, axis=1) for f in faces])))


def build(radius: float = 0.004, neck: float = 0.018, friction_angle: float = 28.0, grains: int = 0) -> pl.Scene:
    """Through a neck of less than some eight particles rough sand does not flow.

    radius: particle radius [m]; neck: inner radius of the neck [m]; friction_angle: of the sand [degree];
    grains: drawn for each particle, 0 for none.
    """
    scene = pl.Scene(particle_radius=radius)
    shape = glass(neck)
    scene.add(shape, pl.Boundary(inside_out=True, friction=0.2), name="glass")
    upper = pl.Box(size=(3 * BULB, FILL, 3 * BULB), center=(0, FILL / 2, 0))
    sand = pl.Granular(friction_angle=friction_angle, grains=grains)
    scene.add(shape & upper, sand, name="sand", colors="sand", sampling="regular")
    scene.camera = pl.Camera(position=(0.3, 0.12, 1.05), target=(0, 0, 0), fov=31)
    scene.look = pl.Look(low=-4.0, high=6.0, containers="glass")
    return scene


def check(sim: pl.Simulation) -> None:
    """Sand has run into the lower half, and none through the glass."""
    x = sim["sand"].x
    assert np.isfinite(x).all()
    assert (sim.scene.bodies[0].shape.signed_distance(x) < 0).all(), "sand has left the glass"
    assert (x[:, 1] < 0).mean() > 0.05, "no sand runs through the neck"
