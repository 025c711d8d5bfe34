"""Numbers about the last step."""

import dataclasses
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Stats:
    """Numbers about the last step, and momentum and energy of the state it led to."""

    step: int
    time: float  # [s]
    dt: float  # [s]
    particles: int
    seconds: dict[str, float]  # wall-clock time by stage [s]
    iterations: dict[str, int]  # of the "density" and "divergence" solves, and of forces that iterate
    mean_density_error: float  # compression left, mean over particles, as a share of the rest density
    max_density_error: float
    mean_divergence_error: float  # compression that the velocity would still cause in a step
    max_speed: float  # [m/s]
    neighbours: float  # mean number
    momentum: np.ndarray  # [kg m/s]
    angular_momentum: np.ndarray  # about the origin [kg m^2/s]
    kinetic_energy: float  # [J]
    potential_energy: float  # of gravity, zero at the origin [J]

    @property
    def energy(self) -> float:
        """Kinetic and potential energy [J]."""
        return self.kinetic_energy + self.potential_energy

    @classmethod
    def of(cls, sim: Any) -> "Stats":
        p, step = sim.world.particles, sim._step
        m = p.numpy("m").astype(float)
        x, v = p.numpy("x").astype(float), p.numpy("v").astype(float)
        density, divergence = step.density, step.divergence
        iterations = {k: int(n) for k, n in step.numbers.items() if k.endswith("iterations")}
        iterations = {k.removesuffix(" iterations"): n for k, n in iterations.items()}
        if density is not None and divergence is not None:
            iterations |= {"density": density.iterations, "divergence": divergence.iterations}
        return cls(
            step=sim.step_count, time=sim.time, dt=sim.dt, particles=p.n,
            seconds=dict(step.seconds), iterations=iterations,
            mean_density_error=density.mean if density else 0.0,
            max_density_error=density.largest if density else 0.0,
            mean_divergence_error=divergence.mean if divergence else 0.0,
            max_speed=float(np.sqrt((v**2).sum(axis=1).max())),
            neighbours=sim.world.neighbors.mean_count if density else 0.0,
            momentum=(m[:, None] * v).sum(axis=0),
            angular_momentum=(m[:, None] * np.cross(x, v)).sum(axis=0),
            kinetic_energy=float(0.5 * (m * (v**2).sum(axis=1)).sum()),
            potential_energy=float(-(m * (x @ sim.world.gravity)).sum()),
        )  # fmt: skip
