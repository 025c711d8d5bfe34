"""A gusty wind blows over a heap of sand, lifts grains off its crest and carries them away."""

import numpy as np

import pliant as pl

SECONDS = 3.0
LENGTH, WIDTH = 3.0, 1.2  # of the ground, which goes on for ever: what leaves it downwind comes back upwind [m]
HEAP, SLOPE, PLACE = 0.45, 30.0, (0.9, 0.6)  # radius [m] and slope [degrees] of the heap, and where it lies: x, z [m]
ROUGHNESS, MAST = 1e-3, 1.0  # height at which the wind is zero, and at which it is measured [m]
GUSTS = 0.8  # between two gusts [s]


def cone(sides: int = 16) -> pl.Shape:
    """A heap as it is poured: what lies under all of its sides."""
    height, slope = HEAP * np.tan(np.radians(SLOPE)), np.radians(SLOPE)
    shape: pl.Shape = pl.Box(size=(2 * HEAP, height, 2 * HEAP), center=(PLACE[0], height / 2, PLACE[1]))
    for angle in 2 * np.pi * np.arange(sides) / sides:
        normal = (np.sin(slope) * np.cos(angle), np.cos(slope), np.sin(slope) * np.sin(angle))
        shape = shape & pl.Plane(normal=normal, point=(PLACE[0], height, PLACE[1]))
    return shape


def build(radius: float = 0.01, wind: float = 17.0, grain: float = 2e-4, friction_angle: float = 35.0) -> pl.Scene:
    """A gale. In a wind of 10 m/s the first grains fly; real sand of this size begins at 5 to 6 m/s (Bagnold 1941).

    radius: particle radius [m]; wind: its mean speed 1 m above the ground [m/s]; grain: diameter of the grains that a
    particle stands for [m]; friction_angle: of the sand [degrees].
    """

    def velocity(x: np.ndarray, t: float) -> np.ndarray:
        """The logarithmic profile of wind over the ground, and eddies that travel along and push it up and down."""
        speed = wind * np.log1p(np.maximum(x[:, 1], 0) / ROUGHNESS) / np.log1p(MAST / ROUGHNESS)
        phase = 2 * np.pi * (t - x[:, 0] / wind) / GUSTS
        eddies = [1 + 0.3 * np.sin(phase), 0.3 * np.cos(phase), 0.15 * np.sin(0.7 * phase + 4 * x[:, 2])]
        return speed[:, None] * np.stack(eddies, axis=1)

    scene = pl.Scene(particle_radius=radius, periodic=(LENGTH, None, WIDTH), air=pl.Air(velocity, grain=grain))
    scene.add(pl.Plane(), pl.Boundary(), name="ground")
    scene.add(cone(), pl.Granular(friction_angle=friction_angle), name="sand", colors="sand")
    scene.camera = pl.Camera(position=(1.75, 0.42, 2.5), target=(1.4, 0.2, 0.6), fov=38)
    scene.look = pl.Look(low=-5.0, high=wind)
    return scene


def check(sim: pl.Simulation) -> None:
    """Grains fly downwind of the heap, most of which still lies where it was poured, and none is under the ground."""
    x, v = sim["sand"].x, sim["sand"].v
    away = np.hypot(x[:, 0] - PLACE[0], x[:, 2] - PLACE[1])
    flying = v[:, 0] > 2.0
    assert np.isfinite(x).all() and (x[:, 1] > 0).all()
    assert (x[flying, 0] > PLACE[0] + HEAP).any(), "no sand flies downwind of the heap"
    assert (away < 1.1 * HEAP).mean() > 0.5, "the wind has carried the heap away"
