"""Four beams in a wall swing under their weight: the stiffness alpha against zero-energy modes from 0 to 1."""

from typing import Any

import numpy as np

import pliant as pl

SECONDS = 4.0
ALPHAS = (0.0, 0.01, 0.1, 1.0)
LENGTH, SIDE, CLAMP = 1.0, 0.1, 0.1  # of a beam outside the wall, of its square section, and inside the wall [m]


def name(alpha: float) -> str:
    """What the beam is called."""
    return f"alpha {alpha:g}"


def build(radius: float = 0.01, young: float = 3e6, poisson: float = 0.33) -> pl.Scene:
    """The experiment of Kugelstadt et al. 2021, Section 9: alpha changes the motion little, and the larger it is, the
    less neighbors move apart in ways that the deformation gradient does not see.

    radius: particle radius [m]; young: modulus [Pa]; poisson: ratio of the beams.
    """
    scene = pl.Scene(particle_radius=radius, elasticity=pl.Split(dt_elastic=2e-3))
    for k, alpha in enumerate(ALPHAS):
        block = pl.Box(size=(LENGTH + CLAMP, SIDE, SIDE), center=((LENGTH - CLAMP) / 2, 0, 0.25 * (1.5 - k)))
        rubber = pl.Elastic(young=young, poisson=poisson, zero_energy=alpha)
        beam = scene.add(block, rubber, name=name(alpha), colors=("inferno", "plasma", "honey", "viridis")[k])
        beam.fix(lambda X: X[:, 0] < 0)
    scene.camera = pl.Camera(position=(1.9, 0.9, 2.3), target=(0.45, -0.2, 0), fov=32)
    scene.look = pl.Look(low=-2.5, high=2.5, ground=False)
    return scene


def roughness(beam: Any, spacing: float) -> float:
    """How far neighbors are from where the deformation gradient expects them: RMS of F X_ij - x_ij, in spacings."""
    X, x, F = beam.rest, beam.x, beam.F
    errors = []
    for i in np.flatnonzero(~beam.fixed)[:: max(len(X) // 500, 1)]:
        near = np.flatnonzero(((X - X[i]) ** 2).sum(axis=1) < (1.5 * spacing) ** 2)
        errors.append(((X[near] - X[i]) @ F[i].T - (x[near] - x[i])).ravel())
    return float(np.sqrt((np.concatenate(errors) ** 2).mean())) / spacing


def check(sim: pl.Simulation) -> None:
    """All beams hang alike, and the one with alpha = 1 more smoothly than the one without."""
    sag, rough = [], []
    for alpha in ALPHAS:
        beam = sim[name(alpha)]
        moved = beam.rest - beam.x
        assert np.isfinite(moved).all() and (moved[beam.fixed] == 0).all()
        sag.append(moved[beam.rest[:, 0] > 0.95 * LENGTH, 1].mean())
        rough.append(roughness(beam, sim.scene.spacing))
    assert min(sag) > 0.1 * LENGTH, f"a beam does not bend: {sag}"
    assert max(sag) < 1.3 * min(sag), f"the beams bend differently: {sag}"
    assert rough[-1] < 0.03, f"alpha = 1 is not smooth: {rough}"
    assert rough[-1] < 0.95 * rough[0], f"alpha = 1 is not smoother than alpha = 0: {rough}"
