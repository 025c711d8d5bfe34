"""Water from a flume turns a wheel, which has to lift the brake's torque."""

import numpy as np

import pliant as pl

SECONDS = 6.0
RADIUS, WIDTH, PADDLES = 0.5, 0.24, 8  # of the wheel [m]


def wheel() -> pl.Shape:
    """A drum with paddles."""
    shape: pl.Shape = pl.Cylinder(radius=0.2, height=WIDTH, axis="z")
    for k in range(PADDLES):
        paddle = pl.Box(size=(RADIUS, 0.05, WIDTH), center=(RADIUS / 2, 0, 0))
        shape = shape | paddle.rotate("z", 360 / PADDLES * k, about=(0, 0, 0))
    return shape


def build(radius: float = 0.0125, brake: float = 4.0, flow: float = 2.2) -> pl.Scene:
    """The wheel turns on a hinge; a brake holds against it.

    radius: particle radius [m]; brake: its torque [N m]; flow: speed of the water [m/s].
    """
    scene = pl.Scene(particle_radius=radius)
    scene.add(pl.Box(size=(2.4, 1.6, WIDTH + 0.06), center=(0.1, 0.15, 0)), pl.Boundary(inside_out=True), name="box")
    turning = scene.add(wheel(), pl.Rigid(density=400), name="wheel", colors="sand")
    water = scene.add(None, pl.Fluid(), name="water")
    scene.emit(pl.Rectangle(size=(0.08, WIDTH - 0.04), center=(-0.9, 0.62, 0), normal=(1, 0, 0)), water,
               velocity=(flow, 0, 0), name="flume")  # fmt: skip
    scene.drain(pl.Box(size=(3, 0.1, 1), center=(0, -0.62, 0)), name="tail")
    scene.hinge(turning, None, at=(0, 0, 0), axis="z", torque=brake, name="axle")
    scene.camera = pl.Camera(position=(0.6, 0.5, 3.4), target=(0.05, 0.05, 0), fov=34)
    scene.look = pl.Look(fluid="surface")
    return scene


def check(sim: pl.Simulation) -> None:
    """The wheel stays on its axle, and water turns it clockwise against the brake."""
    assert np.linalg.norm(sim["wheel"].position) < 0.01
    if sim.time > 2.0:
        assert sim["axle"].speed < -0.3, "the wheel does not turn"
