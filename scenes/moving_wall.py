"""A wave maker: a paddle swings at one end of a flume and sends waves up a beach."""

import numpy as np

import pliant as pl

SECONDS = 6.0


def build(radius: float = 0.02, stroke: float = 0.18, period: float = 1.4, depth: float = 0.36) -> pl.Scene:
    """A flume 4 m long with a sloping beach at the far end.

    radius: particle radius [m]; stroke: amplitude of the paddle [m]; period: of its swing [s]; depth: of the water [m].
    """
    scene = pl.Scene(particle_radius=radius)
    scene.add(pl.Box(size=(4.4, 1.2, 0.6), center=(1.8, 0.6, 0.3)), pl.Boundary(inside_out=True), name="flume")
    beach = pl.Box(size=(2.4, 0.6, 0.6), center=(0, 0, 0)).rotate("z", 18).translate((3.3, -0.02, 0.3))
    scene.add(beach, pl.Boundary(), name="beach")
    plate = pl.Box(size=(0.12, 1.0, 0.6), center=(-0.06, 0.5, 0.3))
    paddle = scene.add(plate, pl.Boundary(no_slip=False), name="paddle")
    omega = 2 * np.pi / period
    paddle.move(lambda t: (stroke * omega * np.sin(omega * t) * min(t / period, 1.0), 0, 0))
    scene.add(pl.Box(size=(4.0, depth, 0.6), center=(2.0, depth / 2, 0.3)), pl.Fluid(), name="water")
    return scene


def check(sim: pl.Simulation) -> None:
    """No water is behind the paddle or under the beach, and the waves have run up the beach."""
    x = sim["water"].x
    face = sim["paddle"].position[0] + 0.06
    low = x[:, 1] < 0.9
    assert (x[low, 0] > face - 1e-3).all(), "water has passed the paddle"
    assert (x[:, 1] > 0).all() and (x[:, 0] < 4.0).all()
    assert sim.stats.mean_density_error < 2e-3
