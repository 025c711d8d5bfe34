"""Water from a flume turns a wheel against a brake."""

import numpy as np

import pliant as pl

SECONDS = 6.0
RADIUS, WIDTH, PADDLES = 0.5, 0.24, 8  # of the wheel [m]
FLUME, BOTTOM = 0.62, -0.65  # height of the flume, and of the bottom of the box [m]


def wheel() -> pl.Shape:
    """A drum with paddles."""
    shape: pl.Shape = pl.Cylinder(radius=0.2, height=WIDTH, axis="z")
    for k in range(PADDLES):
        paddle = pl.Box(size=(RADIUS, 0.05, WIDTH), center=(RADIUS / 2, 0, 0))
        shape = shape | paddle.rotate("z", 360 / PADDLES * k, about=(0, 0, 0))
    return shape


def build(radius: float = 0.0125, brake: float = 4.0, flow: float = 2.2) -> pl.Scene:
    """The wheel turns on a hinge; a brake holds against it.

    radius: particle radius [m]; brake: its largest torque [N m]; flow: speed of the water [m/s].
    """
    scene = pl.Scene(particle_radius=radius)
    scene.add(pl.Box(size=(2.4, 1.6, WIDTH + 0.06), center=(0.1, 0.15, 0)), pl.Boundary(inside_out=True), name="box")
    turning = scene.add(wheel(), pl.Rigid(density=400), name="wheel", colors="sand")
    water = scene.add(None, pl.Fluid(), name="water")
    scene.emit(pl.Rectangle(size=(0.08, WIDTH - 0.04), center=(-0.9, FLUME, 0), normal=(1, 0, 0)), water,
               velocity=(flow, 0, 0), name="flume")  # fmt: skip
    scene.drain(pl.Box(size=(3, 0.1, 1), center=(0, -0.62, 0)), name="tail")
    scene.hinge(turning, None, at=(0, 0, 0), axis="z", speed=0.0, max_torque=brake, name="axle")
    scene.camera = pl.Camera(position=(0.6, 0.5, 3.4), target=(0.05, 0.05, 0), fov=34)
    scene.look = pl.Look(fluid="surface")
    return scene


def check(sim: pl.Simulation) -> None:
    """The wheel stays on its axle. Water turns it against the brake, with less than its own power: that of its flow,
    and of its fall to the bottom of the box."""
    assert np.linalg.norm(sim["wheel"].position) < 0.01
    if sim.time > 2.0:
        axle, flume = sim.scene.settings.joints[0], sim.scene.settings.sources[0]
        speed = sim["axle"].speed
        assert speed > 0.3, "the wheel does not turn"
        flow = float(np.linalg.norm(flume.velocity))
        power = 1000 * sim["flume"].rate * (0.5 * flow**2 + 9.81 * (FLUME - BOTTOM))
        assert speed * axle.max_torque < power, "the brake takes more than the water brings"
