"""Rings and balls roll into a bowl and come to rest in a heap."""

import numpy as np

import pliant as pl

SECONDS = 4.0
RADIUS, WALL = 0.6, 0.04  # of the bowl [m]


def build(count: int = 12, friction: float = 0.4) -> pl.Scene:
    """They are let go above the bowl, one over the other, each turned in another way.

    count: how many there are; friction: Coulomb coefficient [1].
    """
    scene = pl.Scene(particle_radius=0.02)
    outside, inside = pl.Sphere(radius=RADIUS + WALL), pl.Sphere(radius=RADIUS)
    lower = pl.Box(size=(3, 1, 3), center=(0, -0.5 + 0.1, 0))
    scene.add((outside - inside) & lower, pl.Boundary(friction=friction), name="bowl", colors="grey")
    rng = np.random.default_rng(1)
    for k in range(count):
        place = (*rng.uniform(-0.22, 0.22, 2), 0.25 + 0.16 * k)
        center = (place[0], place[2], place[1])
        shape: pl.Shape = pl.Torus(radius=0.13, tube=0.045, center=center)
        if k % 4 == 3:
            shape = pl.Sphere(radius=0.09, center=center)
        scene.add(shape.rotate(tuple(rng.normal(size=3)), float(rng.uniform(0, 90))),
                  pl.Rigid(density=600, friction=friction, restitution=0.2), name=f"ring{k + 1}",
                  colors=("plasma", "viridis", "honey", "grey")[k % 4])  # fmt: skip
    scene.camera = pl.Camera(position=(1.1, 2.7, 2.5), target=(0, 0.3, 0), fov=40)
    return scene


def check(sim: pl.Simulation) -> None:
    """All are in the bowl, none in its wall, and in the end they lie still."""
    for body in sim.scene.bodies[1:]:
        place, low = sim[body].position, 0.12
        assert np.isfinite(place).all()
        if sim.time > 2.5:
            assert np.linalg.norm(place) < RADIUS, f"{body.name} is not in the bowl"
        assert np.linalg.norm(place) < RADIUS - 0.03 or place[1] > low, f"{body.name} is in the wall of the bowl"
