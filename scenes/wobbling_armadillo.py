"""The same creature three times, filled with particles in three ways; its feet are shaken and it wobbles."""

import numpy as np

import pliant as pl

SECONDS = 3.0
HEIGHT = 1.5  # of the creature [m]
APART = 1.7  # distance of the three [m]
SHAKEN, SIDE, PERIOD = 0.8, 0.12, 0.4  # how long its feet go to and fro [s], how far to each side [m], how often [s]
FEET = 0.08  # height up to which its particles are led [m]
SAMPLINGS = ("regular", "blue_noise", "fitted")


def armadillo() -> pl.Shape:
    """A pear of a body with a snout, ears like leaves, claws and a tail that thins out; it looks along z and stands on
    y = 0."""
    parts: list[pl.Shape] = [
        pl.Sphere(radius=0.33, center=(0, 0.62, 0)),
        pl.Sphere(radius=0.26, center=(0, 0.9, 0)),
        pl.Sphere(radius=0.2, center=(0, 1.16, 0.06)),
        pl.Capsule(radius=0.07, height=0.2, center=(0, 1.1, 0.27), axis="z"),
    ]
    for k, radius in enumerate((0.13, 0.105, 0.08, 0.06, 0.04)):  # tail
        parts.append(pl.Sphere(radius=radius, center=(0, 0.42 - 0.05 * k, -0.3 - 0.1 * k)))
    for side in (-1, 1):
        ear = pl.Cylinder(radius=0.13, height=0.045, center=(0.17 * side, 1.38, 0), axis="z")
        thigh = pl.Capsule(radius=0.12, height=0.22, center=(0.2 * side, 0.34, 0.02)).rotate("z", 10 * side)
        arm = pl.Capsule(radius=0.08, height=0.34, center=(0.38 * side, 0.98, 0.05)).rotate("z", 65 * side)
        foot = pl.Capsule(radius=0.09, height=0.2, center=(0.24 * side, 0.08, 0.1), axis="z")
        parts += [ear.rotate("z", -20 * side).rotate("y", 25 * side), thigh, arm, foot]
        for spread in (-1, 0, 1):
            finger = pl.Capsule(radius=0.026, height=0.2, center=((0.64 - 0.03 * abs(spread)) * side, 0.86, 0.05))
            parts.append(finger.rotate("z", 65 * side).translate((0, 0, 0.055 * spread)))
            toe = pl.Capsule(radius=0.028, height=0.12, center=((0.24 + 0.065 * spread) * side, 0.045, 0.27), axis="z")
            parts.append(toe)
    shape = parts[0]
    for part in parts[1:]:
        shape = shape | part
    return shape & pl.Box(size=(2, 2, 2), center=(0, 1, 0))


def path(t: float) -> float:
    """Where the feet are at time t [m]."""
    return SIDE * np.sin(2 * np.pi * min(t, SHAKEN) / PERIOD)


def build(radius: float = 0.018, young: float = 2e6, sampling: str = "all", dt: float = 2e-3,
          mesh: str | None = None, turn: float = 0.0) -> pl.Scene:  # fmt: skip
    """Kugelstadt et al. 2021, the comparison of samplings of their video.

    radius: particle radius [m]; young: its modulus [Pa]; sampling: regular, blue_noise, fitted or all;
    dt: step of the elastic solve [s]; mesh: a file with another creature, which is made 1.5 m tall; turn: by how much
    it is turned about its axis [degrees].
    """
    shape = armadillo()
    if mesh:
        tall = np.ptp(pl.Mesh(mesh).bounds()[:, 1])
        shape = pl.Mesh(mesh, scale=HEIGHT / tall, center=(0, HEIGHT / 2, 0))
    shape = shape.rotate("y", turn)
    scene = pl.Scene(particle_radius=radius, elasticity=pl.Split(dt_elastic=dt))
    chosen = SAMPLINGS if sampling == "all" else (sampling,)
    for k, name in enumerate(chosen):
        place = APART * (k - (len(chosen) - 1) / 2)
        body = scene.add(shape.translate((place, 0, 0)), pl.Elastic(young=young, poisson=0.4), name=name,
                         colors="honey", sampling=name)  # fmt: skip
        body.fix(lambda X: X[:, 1] < max(FEET, 3 * radius))
        body.move(lambda t: ((path(t + 1e-4) - path(t - 1e-4)) / 2e-4, 0, 0))
    scene.camera = pl.Camera(position=(0, 1.3, 3.3 * len(chosen) ** 0.55), target=(0, 0.72, 0), fov=30)
    scene.look = pl.Look(low=-4.0, high=6.0)
    return scene


def check(sim: pl.Simulation) -> None:
    """All feet are in place, and the fitted one is whole; lone particles of the others may fall off."""
    for body in sim.scene.bodies:
        view = sim[body]
        moved, led = view.x - view.rest, view.fixed
        assert np.isfinite(moved).all()
        assert np.abs(moved[led, 0] - path(sim.time)).max() < 0.05 * SIDE, f"{body.name}: its feet are not in place"
        volume = np.linalg.det(view.F)
        assert 0.95 < np.median(volume) < 1.05, f"{body.name}: it is swollen or crushed"
        lag = np.linalg.norm(moved[~led], axis=1).max()
        assert body.name != "fitted" or 0.01 < lag < 0.9, f"its farthest particle is {lag:.3g} m from where it began"
