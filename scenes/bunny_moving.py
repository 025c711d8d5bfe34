"""A rubber bunny whose feet are led to and fro and up and down; its ears and tail swing after it."""

import numpy as np

import pliant as pl

SECONDS = 4.0
HEIGHT = 1.5  # of the bunny [m]
SIDE, LIFT, PERIOD = 0.25, 0.1, 1.1  # how far its feet go to each side and up [m], and how often [s]
FEET = 0.07  # height up to which its particles are led [m]


def bunny() -> pl.Shape:
    """Body, chest, head with two ears, four paws and a tail; it looks along x and stands on y = 0."""
    parts: list[pl.Shape] = [
        pl.Sphere(radius=0.37, center=(-0.14, 0.36, 0)),
        pl.Sphere(radius=0.29, center=(0.17, 0.46, 0)),
        pl.Sphere(radius=0.24, center=(0.37, 0.86, 0)),
        pl.Sphere(radius=0.13, center=(0.56, 0.79, 0)),
        pl.Sphere(radius=0.13, center=(-0.55, 0.36, 0)),
    ]
    for side in (-1, 1):
        ear = pl.Capsule(radius=0.075, height=0.36, center=(0.26, 1.24, 0.13 * side))
        parts += [
            ear.rotate("z", 14).rotate("x", 8 * side),
            pl.Capsule(radius=0.12, height=0.34, center=(0.02, 0.11, 0.27 * side), axis="x"),
            pl.Capsule(radius=0.09, height=0.2, center=(0.33, 0.08, 0.14 * side), axis="x"),
        ]
    shape = parts[0]
    for part in parts[1:]:
        shape = shape | part
    return shape & pl.Box(size=(2, 2, 2), center=(0, 1, 0))


def path(t: float) -> np.ndarray:
    """Where the feet are at time t [m]; they set off gently."""
    phase, gently = 2 * np.pi * t / PERIOD, 1 - np.exp(-((2 * t / PERIOD) ** 2))
    return gently * np.array([SIDE * np.sin(phase), LIFT * np.sin(phase) ** 2, 0])


def build(radius: float = 0.0185, young: float = 1e6, poisson: float = 0.33, zero_energy: float = 1.0,
          dt: float = 2e-3, mesh: str | None = None) -> pl.Scene:  # fmt: skip
    """The benchmark of Kugelstadt et al. 2021, Table 1, of 8,000 particles; radius 0.0117 is their 32,000.

    radius: particle radius [m]; young: its modulus [Pa]; poisson: its ratio; zero_energy: stiffness alpha;
    dt: step of the elastic solve [s]; mesh: a file with another animal, which is made 1.5 m tall.
    """
    shape = bunny()
    if mesh:
        tall = np.ptp(pl.Mesh(mesh).bounds()[:, 1])
        shape = pl.Mesh(mesh, scale=HEIGHT / tall, center=(0, HEIGHT / 2, 0))
    scene = pl.Scene(particle_radius=radius, elasticity=pl.Split(dt_elastic=dt))
    rubber = pl.Elastic(young=young, poisson=poisson, zero_energy=zero_energy)
    body = scene.add(shape, rubber, name="bunny", colors="honey")
    body.fix(lambda X: X[:, 1] < max(FEET, 2.5 * radius))
    body.move(lambda t: (path(t + 1e-4) - path(t - 1e-4)) / 2e-4)
    scene.camera = pl.Camera(position=(2.1, 1.5, 3.3), target=(0, 0.72, 0), fov=30)
    scene.look = pl.Look(low=-4.0, high=6.0)
    return scene


def check(sim: pl.Simulation) -> None:
    """The feet are where they were led to; the rest has followed them, bent and not broken."""
    bunny = sim["bunny"]
    moved, led = bunny.x - bunny.rest, bunny.fixed
    assert np.isfinite(moved).all()
    assert np.abs(moved[led] - path(sim.time)).max() < 0.05 * SIDE, "the feet are not where they should be"
    lag = np.linalg.norm(moved[~led] - path(sim.time), axis=1)
    assert 0.01 < lag.max() < 0.8, f"its farthest particle is {lag.max():.3g} m from where the feet would take it"
    volume = np.linalg.det(bunny.F)
    volume = volume[np.abs(volume) > 1e-6]  # sheets and threads have none
    assert 0.95 < volume.mean() < 1.05 and volume.min() > 0.3, "it is torn or crushed"
