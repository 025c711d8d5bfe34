"""A row of dominoes falls, one pushing the next, around a bend."""

import numpy as np

import pliant as pl

SECONDS = 3.5
SIZE = (0.02, 0.16, 0.08)  # of a domino [m]


def places(count: int, gap: float) -> list[tuple[float, float, float]]:
    """x, z and direction [degrees] of each: straight on, half a circle, and back."""
    straight, radius = 0.8, 0.4
    whole, found = 2 * straight + np.pi * radius, []
    for k in range(count):
        s = min(k * gap, whole)
        if s < straight:
            found.append((s, -radius, 0.0))
        elif s < straight + np.pi * radius:
            turn = (s - straight) / radius
            found.append((straight + radius * np.sin(turn), -radius * np.cos(turn), np.degrees(turn)))
        else:
            found.append((straight - (s - straight - np.pi * radius), radius, 180.0))
    return found


def build(count: int = 40, gap: float = 0.07, friction: float = 0.3) -> pl.Scene:
    """The first one is given a push.

    count: how many there are; gap: from one to the next [m]; friction: Coulomb coefficient [1].
    """
    scene = pl.Scene(particle_radius=0.01)
    scene.add(pl.Plane(), pl.Boundary(friction=0.6), name="floor")
    for k, (x, z, turn) in enumerate(places(count, gap)):
        shape = pl.Box(size=SIZE, center=(x, SIZE[1] / 2, z)).rotate("y", -turn)
        turning = 4.0 if k == 0 else 0.0  # about its lower edge, towards the next [rad/s]
        scene.add(shape, pl.Rigid(density=700, friction=friction), name=f"domino{k + 1}",
                  velocity=(turning * SIZE[1] / 2, 0, 0), spin=(0, 0, -turning) if turning else None,
                  colors=("plasma", "viridis", "honey", "sand")[k % 4])  # fmt: skip
    scene.camera = pl.Camera(position=(0.5, 1.2, 1.7), target=(0.52, 0, 0.02), fov=40)
    return scene


def check(sim: pl.Simulation) -> None:
    """The wave has come to as many as it can have in that time, all on the floor, and those beyond still stand."""
    names = [body.name for body in sim.scene.bodies[1:]]
    upright = np.array([sim[name].rotation[1, 1] for name in names])
    fallen = int((upright < 0.8).sum())
    assert fallen >= min(len(names), int(4 * sim.time)), f"only {fallen} have fallen"
    assert (upright[:fallen] < 0.95).all(), "one in the middle has been left out"
    assert min(sim[name].position[1] for name in names) > 0.4 * SIZE[0]
