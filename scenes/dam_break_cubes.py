"""A flood meets stacked cubes, as in the experiments of Canelas et al. 2016, and carries them away."""

import numpy as np

import pliant as pl

SECONDS = 1.8
CUBE, GAP, DENSITY = 0.15, 0.05, 800.0  # [m], between the cubes of a layer [m], [kg/m^3]
WIDTH, LENGTH, HEIGHT = 0.7, 8.0, 1.0  # of the channel, of which the first 3.5 m are the reservoir [m]
RESERVOIR, DEPTH, DISTANCE = 3.5, 0.4, 1.7  # of the water, and from the gate to the cubes [m]


def places(cubes: int) -> list[tuple[int, float]]:
    """Layer, and place across the channel [m], of each cube: one on the other, or three, two and one, a third of a cube
    apart; the last is the uppermost."""
    if cubes == 3:
        return [(level, 0.0) for level in range(3)]
    pitch = CUBE + GAP
    return [(level, pitch * (k - (2 - level) / 2)) for level in range(3) for k in range(3 - level)]


def build(radius: float = 0.0125, cubes: int = 3, friction: float = 0.45) -> pl.Scene:
    """Three cubes one on the other, or six in a pyramid across the channel.

    radius: particle radius [m]; cubes: 3 or 6; friction: Coulomb coefficient of the cubes [1].
    """
    scene = pl.Scene(particle_radius=radius)
    scene.add(pl.Box(size=(LENGTH, HEIGHT, WIDTH), center=(LENGTH / 2 - RESERVOIR, HEIGHT / 2, 0)),
              pl.Boundary(inside_out=True), name="channel")  # fmt: skip
    scene.add(pl.Box(size=(RESERVOIR, DEPTH, WIDTH), center=(-RESERVOIR / 2, DEPTH / 2, 0)), pl.Fluid(), name="water")
    for k, (level, z) in enumerate(places(cubes)):
        scene.add(pl.Box(size=(CUBE, CUBE, CUBE), center=(DISTANCE + CUBE / 2, (level + 0.5) * CUBE, z)),
                  pl.Rigid(density=DENSITY, friction=friction), name=f"cube{k + 1}",
                  colors=("honey", "plasma", "sand")[level])  # fmt: skip
    for body in scene.bodies[2:]:
        scene.friction(body, "channel", friction)
    scene.camera = pl.Camera(position=(2.6, 1.5, 3.4), target=(1.2, 0.2, 0), fov=36)
    scene.look = pl.Look(fluid="surface")
    return scene


def check(sim: pl.Simulation) -> None:
    """The stack stands until the flood is there, and is carried away by it."""
    names = [body.name for body in sim.scene.bodies[2:]]
    x = np.array([sim[name].position for name in names])
    start = DISTANCE + CUBE / 2
    assert (x[:, 1] > 0.4 * CUBE).all() and (np.abs(x[:, 2]) < WIDTH / 2).all()
    if sim.time < 0.5:
        assert np.abs(x[:, 0] - start).max() < 0.02 * CUBE
    if sim.time > 1.5:
        assert x[:, 0].mean() > start + CUBE, "the flood does not carry the cubes"
