"""Honey runs from a jar through a hole, falls as a thread onto a plate, coils and piles up."""

import numpy as np

import pliant as pl

SECONDS = 3.0
JAR, HOLE, DROP, FLOOR = 0.08, 0.018, 0.24, 0.02  # inner radius, hole radius, height and thickness of its bottom [m]


def build(radius: float = 0.003, viscosity: float = 0.006, fill: float = 0.16) -> pl.Scene:
    """The implicit viscosity keeps it stable at the CFL step.

    radius: particle radius [m]; viscosity: kinematic [m^2/s] (honey 0.002 to 0.01, tar 1 and more);
    fill: height of the honey in the jar [m].
    """
    scene = pl.Scene(particle_radius=radius)
    scene.add(pl.Cylinder(radius=0.12, height=0.02, center=(0, -0.01, 0)), pl.Boundary(), name="plate")
    scene.add(pl.Plane(point=(0, -0.02, 0)), pl.Boundary(), name="table")
    wall, height = 0.015, fill + 0.04
    outside = pl.Cylinder(radius=JAR + wall, height=height + FLOOR, center=(0, DROP + (height - FLOOR) / 2, 0))
    inside = pl.Cylinder(radius=JAR, height=2 * height, center=(0, DROP + height, 0))
    hole = pl.Cylinder(radius=HOLE, height=4 * FLOOR, center=(0, DROP, 0))
    scene.add(outside - inside - hole, pl.Boundary(), name="jar")
    scene.add(pl.Cylinder(radius=JAR, height=fill, center=(0, DROP + fill / 2, 0)),
              pl.Fluid(density=1400, viscosity=viscosity, viscosity_solver="implicit"), name="honey")  # fmt: skip
    scene.camera = pl.Camera(position=(0.35, 0.32, 0.75), target=(0, 0.18, 0), fov=35)
    return scene


def check(sim: pl.Simulation) -> None:
    """Honey has run out of the jar through the hole and nowhere else, and none has passed plate or table."""
    x = sim["honey"].x
    r = np.hypot(x[:, 0], x[:, 2])
    assert np.isfinite(x).all()
    assert (x[:, 1] < DROP - FLOOR).any(), "nothing has run out"
    within = (x[:, 1] > DROP - FLOOR) & (x[:, 1] < DROP)
    assert (r[within] < HOLE).all(), "honey is inside the jar's bottom"
    assert (x[r < 0.11, 1] > 0).all() and (x[:, 1] > -0.02).all(), "honey has passed the plate"
    assert sim.stats.mean_density_error < 2e-3
