"""A walrus whose particles are thrown about at random finds back to its shape."""

import numpy as np

import pliant as pl

SECONDS = 2.0


def walrus() -> pl.Shape:
    """A body that thins out to the tail, head, muzzle, two tusks and flippers; it looks along x."""
    parts: list[pl.Shape] = [
        pl.Sphere(radius=0.62, center=(0.35, 0.62, 0)),
        pl.Sphere(radius=0.60, center=(0.0, 0.58, 0)),
        pl.Sphere(radius=0.53, center=(-0.4, 0.50, 0)),
        pl.Sphere(radius=0.43, center=(-0.8, 0.41, 0)),
        pl.Sphere(radius=0.32, center=(-1.15, 0.31, 0)),
        pl.Sphere(radius=0.22, center=(-1.42, 0.22, 0)),
        pl.Sphere(radius=0.42, center=(0.85, 1.05, 0)),
    ]
    for side in (-1, 1):
        flipper = pl.Box(size=(0.42, 0.27, 0.6), center=(0.45, 0.13, 0.68 * side)).rotate("y", 25 * side)
        fluke = pl.Box(size=(0.5, 0.27, 0.28), center=(-1.62, 0.135, 0.18 * side)).rotate("y", 25 * side)
        parts += [
            flipper,
            fluke,
            pl.Sphere(radius=0.2, center=(1.16, 0.95, 0.14 * side)),
            pl.Capsule(radius=0.1, height=0.4, center=(1.2, 0.62, 0.17 * side)),
        ]
    shape = parts[0]
    for part in parts[1:]:
        shape = shape | part
    return shape


def build(radius: float = 0.04, zero_energy: float = 1.0, scatter: float = 0.5, seed: int = 0, dt: float = 1e-3,
          mesh: str | None = None) -> pl.Scene:  # fmt: skip
    """The experiment of Kugelstadt et al. 2021, Fig. 3, without gravity; with zero_energy = 0 it stays a cloud.

    radius: particle radius [m]; zero_energy: stiffness alpha; scatter: how far its particles are thrown each way [m];
    seed: of where to; dt: time step [s]; mesh: a file with another animal, which is made 3 m long.
    """
    shape = walrus()
    if mesh:
        size = np.ptp(pl.Mesh(mesh).bounds(), axis=0).max()
        shape = pl.Mesh(mesh, scale=3.0 / size, center=(0, 0.8, 0))
    scene = pl.Scene(particle_radius=radius, gravity=(0, 0, 0), dt=dt)
    rubber = pl.Elastic(young=2.5e6, poisson=0.33, zero_energy=zero_energy)
    body = scene.add(shape, rubber, name="walrus", colors="sand")

    def throw(sim: pl.Simulation) -> None:
        if sim.step_count == 1:
            X = sim[body].rest
            sim[body].x = X + np.random.default_rng(seed).uniform(-scatter, scatter, X.shape)
            sim[body].v = np.zeros_like(X)

    scene.on_step(throw)
    scene.camera = pl.Camera(position=(4.4, 1.8, 3.2), target=(-0.2, 0.6, 0), fov=33)
    scene.look = pl.Look(low=-15.0, high=30.0)
    return scene


def check(sim: pl.Simulation) -> None:
    """It has its shape back: within one percent of its size, wherever it has drifted."""
    view = sim["walrus"]
    size = np.ptp(view.rest, axis=0).max()
    assert np.isfinite(view.x).all()
    assert view.misfit < 0.01 * size, "it has not found back to its shape"
