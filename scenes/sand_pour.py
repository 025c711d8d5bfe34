"""Sand runs from a spout and builds a pile on a round plate, over whose edge the rest is lost."""

import numpy as np

import pliant as pl

SECONDS = 4.0
PLATE, SPOUT, DROP = 0.16, 0.025, 0.2  # radius of the plate and of the spout, and how high this is over it [m]
SPEED = 0.6  # at which sand leaves the spout [m/s]


def build(radius: float = 0.004, friction_angle: float = 33.0, grains: int = 0) -> pl.Scene:
    """radius: particle radius [m]; friction_angle: of the sand [degree]; grains: drawn for each particle, or 0."""
    scene = pl.Scene(particle_radius=radius)
    plate = pl.Cylinder(radius=PLATE, height=0.03, center=(0, -0.015, 0))
    scene.add(plate, pl.Boundary(), name="plate")
    sand = scene.add(None, pl.Granular(friction_angle=friction_angle, grains=grains), name="sand")
    scene.emit(pl.Disc(radius=SPOUT, center=(0, DROP, 0)), sand, velocity=(0, -SPEED, 0), name="spout")
    scene.drain(pl.Box(size=(3, 0.5, 3), center=(0, -0.32, 0)), name="floor")
    scene.camera = pl.Camera(position=(0.22, 0.26, 0.62), target=(0, 0.05, 0), fov=34)
    scene.look = pl.Look(low=-2.0, high=3.0)
    return scene


def slope(x: np.ndarray, d: float) -> float:
    """Angle of the flank of a pile [degree]: a line through its highest particles, ring by ring."""
    r = np.hypot(x[:, 0], x[:, 2])
    rings = np.arange(SPOUT + d, r[x[:, 1] < d].max(initial=SPOUT + 4 * d) - 2 * d, d)
    tops = [x[np.abs(r - at) < d / 2, 1].max(initial=0.0) for at in rings]
    return float(np.degrees(np.arctan(-np.polyfit(rings, tops, 1)[0]))) if len(rings) > 2 else 0.0


def check(sim: pl.Simulation) -> None:
    """There is a pile under the spout, and every particle is accounted for."""
    stats, x = sim.stats, sim["sand"].x
    assert np.isfinite(x).all()
    assert stats.initial["sand"] + sim["spout"].count == len(x) + sim["floor"].count, "particles are missing"
    resting = x[(x[:, 1] < 0.6 * DROP) & (sim["sand"].v[:, 1] > -0.5)]
    assert resting[:, 1].max() > 3 * sim.scene.spacing, "there is no pile"
    angle = sim.scene.body("sand").material.friction_angle
    assert 0.5 * angle < slope(resting, sim.scene.spacing) < 1.3 * angle, "the pile has another slope"
