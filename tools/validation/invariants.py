"""What must hold exactly: momentum without outer forces, and the same bits whatever the order or the threads."""

import hashlib
import os
import subprocess
import sys
from typing import Any

import numpy as np

import pliant as pl
from pliant.tools.validation import Result, case

SPACING = 0.05  # [m]
MOMENTUM_STEPS = 100
PERMUTATION_STEPS = 20
THREADS = (1, 2)
LIQUIDS = (("water", 1e-6, "explicit", 1e-5), ("syrup, implicit", 0.1, "implicit", 1e-3))  # and target of the drift


def blobs(radius: float, viscosity: float, solver: str = "auto") -> Any:
    """Two balls that collide off centre at 2 m/s, with random velocities on top; no walls, no gravity."""
    scene = pl.Scene(particle_radius=SPACING / 2, gravity=(0, 0, 0))
    for name, side in (("left", -1.0), ("right", 1.0)):
        ball = pl.Sphere(radius=radius, center=(1.05 * side * radius, 0.2 * side * radius, 0.0))
        scene.add(ball, pl.Fluid(viscosity=viscosity, viscosity_solver=solver), name=name)
    sim = scene.build()
    random = np.random.default_rng(2)
    for name, side in (("left", -1.0), ("right", 1.0)):
        sim[name].v = np.array([-side, 0.0, 0.0]) + random.normal(0.0, 0.3, (len(sim[name]), 3))
    return sim


def moments(sim: pl.Simulation) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Linear and angular momentum, and the sums of |m v| and |m x cross v| that they are measured against."""
    bodies = [sim[name] for name in sim.world.particles.bodies]
    m, x, v = (np.concatenate([getattr(b, k) for b in bodies]).astype(float) for k in ("mass", "x", "v"))
    linear, angular = m[:, None] * v, m[:, None] * np.cross(x, v)
    sizes = [float(np.linalg.norm(a, axis=1).sum()) for a in (linear, angular)]
    return linear.sum(axis=0), angular.sum(axis=0), sizes[0], sizes[1]


@case
def momentum(quick: bool) -> list[Result]:
    """Two balls of water, 20 particles across (quick: 10), collide off centre without walls or gravity, 100 steps.

    Linear momentum may drift by round-off only: 1e-5 of the sum of |m v|. The drift of angular momentum is reported
    over the sum of |m x cross v|. With the explicit viscosity of water, and with the implicit one of a syrup, which
    keeps momentum only as well as its conjugate gradients converge (relative residual 1e-3).
    """
    results = []
    for name, viscosity, solver, target in LIQUIDS:
        sim = blobs((5 if quick else 10) * SPACING, viscosity, solver)
        linear, angular, size, turning = moments(sim)
        for _ in range(MOMENTUM_STEPS):
            sim.step()
        after = moments(sim)
        drift = float(np.linalg.norm(after[0] - linear)) / size
        turn = float(np.linalg.norm(after[1] - angular)) / turning
        results.append(Result(f"{name}: drift of momentum over sum |m v|", drift, 0.0, drift, target))
        results.append(Result(f"{name}: drift of angular momentum", turn, 0.0, turn))
    return results


def splash(order: np.ndarray | None = None, cells: int = 10) -> np.ndarray:
    """Positions after some steps of a shaken block in a tank, its particles given in that order."""
    size = cells * SPACING
    scene = pl.Scene(particle_radius=SPACING / 2)
    tank = pl.Box(size=(2 * size, 2 * size, size), center=(size, size, size / 2))
    scene.add(tank, pl.Boundary(inside_out=True), name="tank")
    water = scene.add(pl.Box(size=(size,) * 3, center=(size / 2,) * 3), pl.Fluid(), name="water")
    sim = scene.build()
    x = sim[water].x
    v = np.random.default_rng(3).normal(0.0, 1.0, x.shape)
    if order is not None:
        x, v = x[order], v[order]
    sim[water].x, sim[water].v = x, v
    for _ in range(PERMUTATION_STEPS):
        sim.step()
    return sim[water].x


def digest_with(threads: int) -> str:
    """The digest of `splash` in a process of its own with that many threads."""
    environment = {**os.environ, "TI_CPU_MAX_NUM_THREADS": str(threads)}
    command = [sys.executable, "-m", "pliant.tools.validation.invariants"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return done.stdout.split()[-1]


@case
def permutation(quick: bool) -> list[Result]:
    """The order in which particles are given must not matter: a shaken block of 10^3 particles in a tank, the same
    block in a random order, 20 steps; the number of coordinates that differ in any bit. Not with --quick: the same
    with 1 and 2 threads, in processes of their own."""
    plain = splash()
    order = np.random.default_rng(4).permutation(len(plain))
    differing = int((splash(order) != plain[order]).sum())
    results = [Result("coordinates changed by a permutation", differing, 0, differing, 0.0)]
    if not quick:
        different = len({digest_with(threads) for threads in THREADS}) - 1
        results.append(Result("results that differ between 1 and 2 threads", different, 0, different, 0.0))
    return results


if __name__ == "__main__":
    print(hashlib.sha256(np.ascontiguousarray(splash()).tobytes()).hexdigest())
