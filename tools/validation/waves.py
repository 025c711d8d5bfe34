"""Waves in a tank: their frequency, and how much of them is left after a period."""

from typing import Any

import numpy as np
from scipy.optimize import curve_fit

import pliant as pl
from pliant.tools.validation import GRAVITY, Result, case, relative

WAVELENGTH = 1.0  # [m]
DEPTH = 0.5  # [m]
AMPLITUDE = 1.5  # in spacings
LEAST_PERIOD = 6  # in spacings: of the slab, across the waves
PERIODS = 2.0  # that are watched
k = 2 * np.pi / WAVELENGTH
OMEGA = float(np.sqrt(GRAVITY * k * np.tanh(k * DEPTH)))  # [rad/s]


def wave_tank(d: float, walled: bool) -> Any:
    """Water with particles d apart, periodic along z, whose surface is a cosine: half a wavelength between walls, where
    its crest and its trough are, or a whole one that is periodic. It is displaced as a potential flow would do it."""
    length, wide = WAVELENGTH / (2 if walled else 1), LEAST_PERIOD * d
    scene = pl.Scene(particle_radius=d / 2, periodic=(None if walled else length, None, wide))
    planes = {"floor": ((0, 1, 0), 0.0), "left": ((1, 0, 0), 0.0), "right": ((-1, 0, 0), length)}
    for name, (normal, x) in planes.items():
        if walled or name == "floor":
            scene.add(pl.Plane(normal=normal, point=(x, 0, 0)), pl.Boundary(no_slip=False), name=name)
    scene.add(pl.Box(size=(length, DEPTH, wide), center=(length / 2, DEPTH / 2, wide / 2)), pl.Fluid(), name="water")
    sim = scene.build(quiet=True)
    x = sim["water"].x.astype(float)
    a = AMPLITUDE * d / np.sinh(k * DEPTH)
    along, up = -np.sin(k * x[:, 0]) * np.cosh(k * x[:, 1]), np.cos(k * x[:, 0]) * np.sinh(k * x[:, 1])
    sim["water"].x = x + a * np.stack([along, up, 0 * up], axis=1)
    return sim


def watch(sim: pl.Simulation) -> tuple[float, float]:
    """Frequency [rad/s] and the share of the amplitude that a period leaves, by a damped oscillation that is fitted to
    the amplitude of the cosine, 2 <y cos kx>, over PERIODS periods."""
    t, A = [], []
    while sim.time < PERIODS * 2 * np.pi / OMEGA:
        x = sim["water"].x.astype(float)
        t.append(sim.time)
        A.append(2 * float(np.mean(x[:, 1] * np.cos(k * x[:, 0]))))
        sim.step()

    def damped(t: np.ndarray, a: float, rate: float, omega: float, phase: float, offset: float) -> np.ndarray:
        return a * np.exp(-rate * t) * np.cos(omega * t + phase) + offset

    (_, rate, omega, _, _), _ = curve_fit(damped, np.array(t), np.array(A), (A[0], 0.05 * OMEGA, OMEGA, 0.0, 0.0))
    return float(omega), float(np.exp(-2 * np.pi * rate / omega))


@case
def standing_wave(quick: bool) -> list[Result]:
    """A standing wave of 1 m in water 0.5 m deep, 1.5 spacings high at first: omega^2 = g k tanh(k h), and its
    amplitude after a period over that before, which in water would be 0.999. 32 particles a wavelength, a slab that is
    periodic along z: half a wave between slip walls, and a whole one that is periodic (full: 48 as well)."""
    results = []
    for across in (32,) if quick else (32, 48):
        for name, walled in (("walls", True), ("periodic", False)):
            omega, left = watch(wave_tank(WAVELENGTH / across, walled))
            label = f"{name}, {across} a wavelength"
            results.append(relative(f"{label}: frequency", omega, OMEGA, 0.02, "rad/s"))
            results.append(relative(f"{label}: amplitude left by a period", left, 1.0, 0.1))
    return results
