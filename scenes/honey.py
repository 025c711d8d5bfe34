"""A press pushes a rope of cold honey through a tube; it lands on a plate, buckles and coils."""

import numpy as np

import pliant as pl

SECONDS = 3.0
TUBE, DROP, ROPE = 0.02, 0.12, 0.5  # inner radius of the tube, height of its mouth, length of the rope [m]


def build(radius: float = 0.003, viscosity: float = 0.3, speed: float = 0.3) -> pl.Scene:
    """The implicit viscosity keeps it stable at the CFL step.

    radius: particle radius [m]; viscosity: kinematic [m^2/s] (warm honey 0.005, cold honey 0.3, tar 1 and more);
    speed: of the press [m/s].
    """
    scene = pl.Scene(particle_radius=radius)
    scene.add(pl.Cylinder(radius=0.12, height=0.02, center=(0, -0.01, 0)), pl.Boundary(), name="plate")
    scene.add(pl.Plane(point=(0, -0.02, 0)), pl.Boundary(), name="table")
    height, middle = ROPE + 0.05, DROP + (ROPE + 0.05) / 2
    bore = pl.Cylinder(radius=TUBE, height=2 * height, center=(0, middle, 0))
    tube = pl.Cylinder(radius=1.6 * TUBE, height=height, center=(0, middle, 0)) - bore
    scene.add(tube, pl.Boundary(no_slip=False), name="tube")
    press = pl.Cylinder(radius=0.95 * TUBE, height=0.05, center=(0, DROP + ROPE + 0.025, 0))
    scene.add(press, pl.Boundary(), name="press").move(lambda t: (0, -speed if t < ROPE / speed else 0, 0))
    rope = pl.Cylinder(radius=TUBE, height=ROPE, center=(0, DROP + ROPE / 2, 0))
    scene.add(rope, pl.Fluid(density=1400, viscosity=viscosity, viscosity_solver="implicit"), name="honey",
              velocity=(0, -speed, 0), colors="honey")  # fmt: skip
    scene.camera = pl.Camera(position=(0.28, 0.24, 0.5), target=(0, 0.09, 0), fov=35)
    return scene


def check(sim: pl.Simulation) -> None:
    """Honey has come out of the tube's mouth and nowhere else, and none has passed plate, table or press."""
    x = sim["honey"].x
    r = np.hypot(x[:, 0], x[:, 2])
    assert np.isfinite(x).all()
    assert (x[:, 1] < DROP).any(), "nothing has come out"
    assert (r[x[:, 1] > DROP + 0.02] < 1.1 * TUBE).all(), "honey has left the tube through its side"
    assert (x[:, 1] < sim["press"].position[1]).all(), "honey has passed the press"
    assert (x[r < 0.11, 1] > 0).all() and (x[:, 1] > -0.02).all(), "honey has passed the plate"
    assert sim.stats.mean_density_error < 2e-3
