"""Two columns of water collapse towards each other and meet around a pillar."""

import numpy as np

import pliant as pl

SECONDS = 3.0


def build(radius: float = 0.02, pillar: bool = True) -> pl.Scene:
    """Two dams at opposite corners of a 2 x 1 m tank.

    radius: particle radius [m]; pillar: the cylinder in the middle.
    """
    scene = pl.Scene(particle_radius=radius)
    scene.add(pl.Box(size=(2.0, 1.2, 1.0), center=(1.0, 0.6, 0.5)), pl.Boundary(inside_out=True), name="tank")
    if pillar:
        scene.add(pl.Cylinder(radius=0.12, height=1.2, center=(1.0, 0.6, 0.5)), pl.Boundary(), name="pillar")
    scene.add(pl.Box(size=(0.4, 0.72, 0.6), center=(0.2, 0.36, 0.3)), pl.Fluid(), name="left")
    scene.add(pl.Box(size=(0.4, 0.72, 0.6), center=(1.8, 0.36, 0.7)), pl.Fluid(), name="right")
    return scene


def check(sim: pl.Simulation) -> None:
    """Both waters have mixed, stayed in the tank and outside the pillar, and are still incompressible."""
    left, right = sim["left"].x, sim["right"].x
    x = np.concatenate([left, right])
    assert (x > 0).all() and (x[:, 0] < 2.0).all() and (x[:, 2] < 1.0).all()
    assert left[:, 0].max() > 1.2 and right[:, 0].min() < 0.8, "the waves have not met"
    assert np.hypot(x[:, 0] - 1.0, x[:, 2] - 0.5).min() > 0.12 or x[:, 1].max() > 1.2
    assert sim.stats.mean_density_error < 2e-3
