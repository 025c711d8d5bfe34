"""A soft bunny falls into a bed of sand and leaves a hollow."""

import numpy as np

import pliant as pl
from pliant.scenes.bunny_moving import bunny

SECONDS = 1.5
LENGTH, DEPTH = 1.0, 0.16  # side and depth of the bed [m]
HEIGHT = 0.42  # of the bunny [m]
TALL = 1.5  # of the bunny of the other scene [m]


def build(radius: float = 0.01, drop: float = 0.35, density: float = 2500.0, young: float = 3e5,
          friction_angle: float = 35.0, mesh: str | None = None, grains: int = 0) -> pl.Scene:  # fmt: skip
    """The sand holds the bunny by friction: heavier than the sand, it does not sink.

    radius: particle radius [m]; drop: from which it falls [m]; density: of the bunny [kg/m^3]; young: its modulus [Pa];
    friction_angle: of the sand [degree]; mesh: a file with another animal, made as tall; grains: drawn for each
    particle of sand, 0 for none.
    """
    shape = bunny().scale(HEIGHT / TALL, about=(0, 0, 0))  # it stays on its feet
    if mesh:
        tall = np.ptp(pl.Mesh(mesh).bounds()[:, 1])
        shape = pl.Mesh(mesh, scale=HEIGHT / tall, center=(0, HEIGHT / 2, 0))
    scene = pl.Scene(particle_radius=radius, elasticity=pl.Split(dt_elastic=3e-3))
    box = pl.Box(size=(LENGTH, 1.2, LENGTH), center=(0, 0.6, 0))
    scene.add(box, pl.Boundary(inside_out=True), name="box")
    bed = pl.Box(size=(LENGTH, DEPTH, LENGTH), center=(0, DEPTH / 2, 0))
    scene.add(bed, pl.Granular(friction_angle=friction_angle, grains=grains), name="sand", colors="sand")
    fall = shape.translate((0, DEPTH + drop, 0)).rotate("z", 20, about=(0, DEPTH + drop, 0))
    scene.add(fall, pl.Elastic(density=density, young=young), name="bunny", colors="plasma")
    scene.camera = pl.Camera(position=(0.8, 1.0, 2.0), target=(0, 0.45, 0), fov=40)
    scene.look = pl.Look(low=-4.0, high=6.0)
    return scene


def check(sim: pl.Simulation) -> None:
    """The bunny lies in a hollow it has made, not at the bottom of the box; all sand is in the box."""
    sand, x = sim["sand"].x, sim["bunny"].x
    d = sim.scene.spacing
    assert np.isfinite(sand).all() and np.isfinite(x).all()
    assert (np.abs(sand[:, [0, 2]]) < LENGTH / 2).all() and (sand[:, 1] > 0).all(), "sand has left the box"
    assert 0 < x[:, 1].min() < DEPTH, "it does not lie in the sand"
    assert x[:, 1].mean() > DEPTH, "it has sunk"
    assert np.abs(sim["bunny"].v.mean(axis=0)).max() < 0.3, "it does not come to rest"
    assert sand[:, 1].max() > DEPTH + d / 4, "it has thrown up no sand"
