"""A tower of ten boxes stands, until a ball comes along."""

import numpy as np

import pliant as pl

SECONDS = 4.0
SIDE = 0.2  # of a box [m]


def build(boxes: int = 10, ball: float = 1.0, friction: float = 0.5) -> pl.Scene:
    """The ball is thrown at the tower after a second.

    boxes: how many there are; ball: after how many seconds it is thrown, 0 leaves it out [s]; friction: Coulomb
    coefficient of everything [1].
    """
    scene = pl.Scene(particle_radius=0.02)
    scene.add(pl.Plane(), pl.Boundary(friction=friction), name="floor")
    for k in range(boxes):
        scene.add(pl.Box(size=(SIDE, SIDE, SIDE), center=(0, (k + 0.5) * SIDE, 0)),
                  pl.Rigid(density=500, friction=friction), name=f"box{k + 1}",
                  colors=("sand", "honey", "plasma")[k % 3])  # fmt: skip
    if ball:
        thrown = scene.add(pl.Sphere(radius=0.12, center=(-2.0, 0.62 * boxes * SIDE, 0.03)),
                           pl.Rigid(density=2000, friction=friction, restitution=0.3), name="ball", colors="grey")
        thrown.fix()

        def throw(sim: pl.Simulation) -> None:
            if sim.time >= ball and sim[thrown].fixed:
                sim[thrown].release()
                sim[thrown].velocity = (8.0, 1.2, 0.0)

        scene.on_step(throw)
    scene.camera = pl.Camera(position=(2.2, 1.6, 4.4), target=(0, 0.9, 0), fov=36)
    return scene


def check(sim: pl.Simulation) -> None:
    """Before the ball comes, nothing moves; afterwards nothing is in the floor."""
    bodies = [body.name for body in sim.scene.bodies if body.name.startswith("box")]
    heights = np.array([sim[name].position[1] for name in bodies])
    assert (heights > 0.45 * SIDE).all()
    if "ball" not in [body.name for body in sim.scene.bodies] or sim["ball"].fixed:
        wanted = (np.arange(len(bodies)) + 0.5) * SIDE
        assert np.abs(heights - wanted).max() < 0.01 * SIDE
        assert max(np.abs(sim[name].velocity).max() for name in bodies) < 0.01
    elif sim.time > 3.0:
        assert heights.max() < 0.75 * len(bodies) * SIDE, "the tower still stands"
