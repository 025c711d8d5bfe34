"""A wave maker: a paddle swings at one end of a flume and sends waves up a beach."""

import numpy as np

import pliant as pl

SECONDS = 6.0
LENGTH, WIDTH = 4.0, 0.6  # of the flume in front of the paddle [m]
FOOT, SLOPE = 2.2, 0.32  # where the beach begins [m] and how steep it is


def wedge(x0: float, x1: float, height: float, width: float, more: float) -> pl.Mesh:
    """A triangular prism that rises from nothing at x0 to `height` at x1; it reaches by `more` into floor and walls."""
    sides = [-more, width + more]
    profile = [(x0 - more / SLOPE, -more), (x1 + more, -more), (x1 + more, height + more * SLOPE)]
    vertices = [(x, y, z) for z in sides for x, y in profile]
    faces = [(0, 2, 1), (3, 4, 5), (0, 1, 4), (0, 4, 3), (1, 2, 5), (1, 5, 4), (2, 0, 3), (2, 3, 5)]
    return pl.Mesh((np.array(vertices), np.array(faces)))


def build(radius: float = 0.02, stroke: float = 0.18, period: float = 1.4, depth: float = 0.36) -> pl.Scene:
    """A flume 4 m long with a sloping beach at the far end.

    radius: particle radius [m]; stroke: amplitude of the paddle [m]; period: of its swing [s]; depth: of the water [m].
    """
    scene = pl.Scene(particle_radius=radius)
    tank = pl.Box(size=(LENGTH + 0.4, 1.0, WIDTH), center=(LENGTH / 2 - 0.2, 0.5, WIDTH / 2))
    scene.add(tank, pl.Boundary(inside_out=True), name="flume")
    beach = (FOOT, LENGTH, SLOPE * (LENGTH - FOOT), WIDTH)
    scene.add(wedge(*beach, more=0.1), pl.Boundary(), name="beach", shown=wedge(*beach, more=0.0))
    plate = pl.Box(size=(0.1, 0.9, WIDTH), center=(-0.05, 0.45, WIDTH / 2))
    omega = 2 * np.pi / period
    paddle = scene.add(plate, pl.Boundary(no_slip=False), name="paddle")
    paddle.move(lambda t: (stroke * omega * np.sin(omega * t) * min(t / period, 1.0), 0, 0))
    water = pl.Box(size=(LENGTH, depth, WIDTH), center=(LENGTH / 2, depth / 2, WIDTH / 2))
    scene.add(water, pl.Fluid(), name="water")
    scene.camera = pl.Camera(position=(2.6, 1.9, 4.9), target=(1.9, 0.35, 0.3), fov=35)
    return scene


def check(sim: pl.Simulation) -> None:
    """No water is behind the paddle or inside the beach, and waves have run up the beach."""
    x = sim["water"].x
    face = sim["paddle"].position[0] + 0.05
    assert (x[x[:, 1] < 0.85, 0] > face - 1e-3).all(), "water has passed the paddle"
    assert (x[:, 1] > 0).all() and (x[:, 0] < LENGTH).all()
    assert (x[:, 1] > SLOPE * (x[:, 0] - FOOT)).all(), "water is inside the beach"
    assert sim.stats.mean_density_error < 2e-3
