"""A rubber beam is wrung ten times round, let go, and untwists."""

import numpy as np

import pliant as pl

SECONDS = 4.0
LENGTH, SIDE, CLAMP = 4.0, 0.4, 0.2  # of the beam between the clamps, of its square section, in each clamp [m]


def build(radius: float = 0.025, turns: float = 10.0, seconds: float = 2.0, young: float = 1e7, dt: float = 1e-3,
          zero_energy: float = 1.0) -> pl.Scene:  # fmt: skip
    """The experiment of Kugelstadt et al. 2021, Fig. 4, without gravity.

    radius: particle radius [m]; turns: of its right end; seconds: which that takes; young: modulus [Pa]; dt: time step
    [s]; zero_energy: stiffness alpha.
    """
    scene = pl.Scene(particle_radius=radius, gravity=(0, 0, 0), dt=dt)
    rubber = pl.Elastic(young=young, poisson=0.2, zero_energy=zero_energy)
    beam = scene.add(pl.Box(size=(LENGTH + 2 * CLAMP, SIDE, SIDE)), rubber, name="beam", colors="honey")
    beam.fix(lambda X: np.abs(X[:, 0]) > LENGTH / 2)

    def wring(sim: pl.Simulation) -> None:
        view = sim[beam]
        right = view.fixed & (view.rest[:, 0] > 0)
        if sim.time < seconds:
            angle = 2 * np.pi * turns * sim.time / seconds
            c, s = np.cos(angle), np.sin(angle)
            x = view.x
            x[right] = view.rest[right] @ np.array([[1, 0, 0], [0, c, s], [0, -s, c]])
            view.x = x
        elif right.any():
            view.release(right)

    scene.on_step(wring)
    scene.camera = pl.Camera(position=(2.0, 2.4, 8.0), target=(0, 0, 0), fov=35)
    scene.look = pl.Look(low=-15.0, high=30.0, ground=False)
    return scene


def check(sim: pl.Simulation) -> None:
    """It was let go, hangs on its left clamp alone, and has its length again and hardly any strain: it may swing."""
    beam = sim["beam"]
    x, X, held, F = beam.x, beam.rest, beam.fixed, beam.F
    assert np.isfinite(x).all()
    assert np.array_equal(held, X[:, 0] < -LENGTH / 2), "it has not been let go"
    assert np.abs(x - X)[held].max() < 1e-5, "the clamp has moved"
    section = np.round((X[:, 0] - X[:, 0].min()) / (4 * sim.scene.spacing)).astype(int)
    middle = np.array([[points[section == k].mean(axis=0) for k in range(section.max() + 1)] for points in (x, X)])
    length, rest = np.linalg.norm(np.diff(middle, axis=1), axis=2).sum(axis=1)
    assert abs(length / rest - 1) < 0.1, f"it is {length / rest:.3g} times as long as it was"
    strain = np.sqrt(((F.transpose(0, 2, 1) @ F - np.eye(3)) ** 2).mean())
    assert strain < 0.1, f"it is still twisted: its strain is {strain:.3g}"
    assert np.linalg.det(F).min() > 0.5, "it is crushed"
