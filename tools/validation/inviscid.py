"""Liquids whose pressure is all that shapes their flow: a strained patch, a spinning square, and rest."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import pliant as pl
from pliant.tools.validation import GRAVITY, WATER, Result, case, relative

DEPTH = 6  # of a slab in spacings, periodic along z: what a scene asks of a period
RADIUS, RATE = 0.03, 100.0  # of the patch [m], and of its strain [1/s]
EARLY, END = (1e-3, 3e-3), 7.6e-3  # [s]: over which pressures are averaged, and when the shape is judged
SIDE, SPIN = 1.0, 1.0  # of the square [m], [rad/s]
MIDDLE = -0.14734  # pressure in the middle of a square that begins to spin, over rho spin^2 side^2


def slab(shape: Any, d: float, velocity: Callable[[np.ndarray], np.ndarray], **more: Any) -> pl.Simulation:
    """Water without gravity, periodic along z, that begins with a velocity for each place."""
    scene = pl.Scene(particle_radius=d / 2, gravity=(0, 0, 0), periodic=(None, None, DEPTH * d), **more)
    scene.add(shape, pl.Fluid(), name="water")
    sim = scene.build(quiet=True)
    sim["water"].v = velocity(sim["water"].x.astype(float))
    return sim


def ellipse(t: float) -> tuple[float, float, float]:
    """Half axes a, b [m] of the patch and its rate of strain A [1/s] at time t: a' = -A a, b' = A b,
    A' = A^2 (a^2 - b^2) / (a^2 + b^2) (Monaghan 1994). The pressure in the middle is rho A^2 / (1 / a^2 + 1 / b^2)."""

    def rates(_: float, s: np.ndarray) -> tuple[float, float, float]:
        a, b, A = s
        return -A * a, A * b, A**2 * (a**2 - b**2) / (a**2 + b**2)

    return tuple(solve_ivp(rates, (0.0, t), (RADIUS, RADIUS, RATE), rtol=1e-8).y[:, -1])  # type: ignore[return-value]


def pressure_in_the_middle(t: float) -> float:
    a, b, A = ellipse(t)
    return WATER * A**2 / (1 / a**2 + 1 / b**2)


@case
def elliptical_patch(quick: bool) -> list[Result]:
    """Monaghan 1994: a round patch of 3 cm radius with velocities (-A x, A y), A = 100/s, no gravity; 40 particles a
    radius (quick: 16), a slab. Pressure in the middle, mean from 1 to 3 ms (where the lattice is still whole: once it
    breaks up, at a strain of 0.7, pressures scatter by their own size for a while); axes, density and kinetic energy
    at 7.6 ms, which stays what it was."""
    across = 16 if quick else 40
    d = RADIUS / across
    shape = pl.Cylinder(radius=RADIUS, height=DEPTH * d, axis="z", center=(0, 0, DEPTH * d / 2))
    sim = slab(shape, d, lambda x: np.stack([-RATE * x[:, 0], RATE * x[:, 1], 0 * x[:, 2]], axis=1))
    first, impulse, exact = sim.stats.kinetic_energy, 0.0, 0.0
    while sim.time < END:
        sim.step()
        if EARLY[0] < sim.time < EARLY[1]:
            x = sim["water"].x
            middle = np.hypot(x[:, 0], x[:, 1]) < 0.15 * RADIUS
            impulse += sim.dt * float(sim["water"].pressure[middle].mean())
            exact += sim.dt * pressure_in_the_middle(sim.time)
    x, (a, b, _) = sim["water"].x.astype(float), ellipse(sim.time)
    within = np.hypot(x[:, 0] / a, x[:, 1] / b) < 0.6
    span = EARLY[1] - EARLY[0]
    return [
        relative("pressure in the middle, 1 to 3 ms", impulse / span, exact / span, 0.05, "Pa"),
        relative("minor axis at 7.6 ms", 4 * np.sqrt((x[:, 0] ** 2).mean()), 2 * a, 0.05, "m"),
        relative("major axis at 7.6 ms", 4 * np.sqrt((x[:, 1] ** 2).mean()), 2 * b, 0.05, "m"),
        relative("density inside at 7.6 ms", float(sim["water"].density[within].mean()), WATER, 0.01, "kg/m^3"),
        relative("kinetic energy over the first", sim.stats.kinetic_energy / first, 1.0, 0.05),
    ]  # fmt: skip


@case
def rotating_square(quick: bool) -> list[Result]:
    """A square of 1 m that spins at 1 rad/s without gravity, 40 particles a side (quick: 20), a slab: at first its
    middle is under a tension of 0.147 rho (spin side)^2 (Le Touzé et al. 2013), which holds it together. Pressure in
    the middle, mean of the first 0.1 s; density there, energy and angular momentum after 0.5 s."""
    across = 20 if quick else 40
    d = SIDE / across
    shape = pl.Box(size=(SIDE, SIDE, DEPTH * d), center=(0, 0, DEPTH * d / 2))
    sim = slab(shape, d, lambda x: np.stack([SPIN * x[:, 1], -SPIN * x[:, 0], 0 * x[:, 2]], axis=1))
    first, impulse = sim.stats, 0.0

    def in_the_middle(values: np.ndarray) -> float:
        return float(values[np.hypot(*sim["water"].x[:, :2].T) < 0.15 * SIDE].mean())

    while sim.time < 0.5:
        sim.step()
        if sim.time < 0.1:
            impulse += sim.dt * in_the_middle(sim["water"].pressure)
    now = sim.stats
    turning = float(now.angular_momentum[2] / first.angular_momentum[2])
    return [
        relative("pressure in the middle", impulse / 0.1, MIDDLE * WATER * (SPIN * SIDE) ** 2, 0.2, "Pa"),
        relative("density in the middle", in_the_middle(sim["water"].density), WATER, 0.02, "kg/m^3"),
        relative("kinetic energy over the first", now.kinetic_energy / first.kinetic_energy, 1.0, 0.02),
        relative("angular momentum over the first", turning, 1.0, 0.02),
    ]


def at_rest(pressure: Any, vessel: str, seconds: float) -> float:
    """Kinetic energy over m g d of water that was shaken (0.5 m/s) in a vessel of 8 spacings, so much later."""
    d, wide, tilt = 0.05, 0.4, 0.3 if vessel == "tilted box" else 0.0
    gravity = (GRAVITY * np.sin(tilt), -GRAVITY * np.cos(tilt), 0.0)
    scene = pl.Scene(particle_radius=d / 2, pressure=pressure, gravity=gravity)

    def filled(high: float) -> Any:
        if vessel == "cylinder":
            return pl.Cylinder(radius=wide / 2, height=high, center=(0, high / 2, 0))
        return pl.Box(size=(wide, high, wide), center=(0, high / 2, 0))

    scene.add(filled(2 * wide), pl.Boundary(inside_out=True), name="vessel")
    scene.add(filled(wide), pl.Fluid(), name="water")
    sim = scene.build(quiet=True)
    sim["water"].v = np.random.default_rng(1).normal(0.0, 0.5, (len(sim["water"]), 3))
    sim.run(seconds)
    return sim.stats.kinetic_energy / (float(sim["water"].mass.sum(dtype=float)) * GRAVITY * d)


@case
def rest(quick: bool) -> list[Result]:
    """Water that was shaken comes to rest: 8 spacings of 5 cm wide and deep, in a box, a cylinder and a box tilted by
    17 degrees, by DFSPH and IISPH, after 60 s (quick: box alone, 4 s): kinetic energy below 1e-3 m g d."""
    vessels = ("box",) if quick else ("box", "cylinder", "tilted box")
    results = []
    for pressure in (pl.DFSPH(), pl.IISPH()):
        for vessel in vessels:
            found = at_rest(pressure, vessel, 4.0 if quick else 60.0)
            label = f"{vessel}, {type(pressure).__name__}: kinetic energy over m g d"
            results.append(Result(label, found, 0.0, found, 1e-3))
    return results
