"""Numbers about the last step."""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from pliant.boundary.wall import Wall
from pliant.core.particles import ACCOUNTS

if TYPE_CHECKING:
    from pliant.sim.simulation import Simulation


def rigid_walls(sim: "Simulation") -> list[Wall]:
    """The rigid bodies of a simulation, held ones too."""
    return [wall for wall in sim.world.walls.walls if np.isfinite(wall.mass)]


def world_inertia(wall: Wall) -> np.ndarray:
    """Inertia (3, 3) of a rigid body about its centre of mass, along the world's axes, as it lies now [kg m^2]."""
    return wall.rotation @ wall.inertia @ wall.rotation.T


def kinetic_energy(wall: Wall) -> float:
    """Of a rigid body: m v^2 / 2 + w I w / 2 [J]."""
    turning = wall.spin @ world_inertia(wall) @ wall.spin
    return float(0.5 * (wall.mass * (wall.velocity @ wall.velocity) + turning))


def angular_momentum(wall: Wall) -> np.ndarray:
    """Of a rigid body about the origin [kg m^2/s]."""
    orbit = wall.mass * np.cross(wall.pivot + wall.shift, wall.velocity)
    return world_inertia(wall) @ wall.spin + orbit


@dataclasses.dataclass(frozen=True)
class Stats:
    """Numbers about the last step, and momentum and energy of the state it led to: particles and rigid bodies."""

    step: int
    time: float  # [s]
    dt: float  # [s]
    particles: int
    seconds: dict[str, float]  # wall-clock time by stage [s]
    iterations: dict[str, int]  # of all solves, by name: those of the pressure solver, and of others that iterate
    mean_density_error: float  # compression left, mean over particles, as a share of the rest density
    max_density_error: float
    mean_divergence_error: float  # compression that the velocity would still cause in a step
    max_speed: float  # [m/s]
    neighbors: float  # mean number
    momentum: np.ndarray  # [kg m/s]
    angular_momentum: np.ndarray  # about the origin [kg m^2/s]
    kinetic_energy: float  # [J]
    potential_energy: float  # of gravity, zero at the origin [J]
    elastic_energy: float  # of elastic bodies, zero at rest [J]
    # Particles of each body that were there at the start, have come and have gone since: initial + emitted = present +
    # drained. What a script adds and removes is among them.
    initial: dict[str, int]
    emitted: dict[str, int]
    drained: dict[str, int]

    @property
    def energy(self) -> float:
        """Kinetic, potential and elastic energy [J]."""
        return self.kinetic_energy + self.potential_energy + self.elastic_energy

    @property
    def neighbours(self) -> float:
        """The name of `neighbors` in the last release."""
        return self.neighbors

    @classmethod
    def of(cls, sim: "Simulation") -> "Stats":
        p, results, errors = sim.world.particles, sim.results, sim.pressure.errors(sim.results)
        m, x, v = (p.numpy(name).astype(float) for name in ("m", "x", "v"))
        # einsum: ten times faster on (n, 3) than sums along rows, and unlike BLAS the same for any number of threads
        mv = np.einsum("i,ij->ij", m, v)
        turning = np.einsum("ij,ik->jk", x, mv)
        rigid = rigid_walls(sim)
        spun = sum((angular_momentum(wall) for wall in rigid), np.zeros(3))
        return cls(
            step=sim.step_count, time=sim.time, dt=sim.dt, particles=p.n,
            seconds=dict(sim.seconds), iterations={name: result.iterations for name, result in results.items()},
            mean_density_error=errors["density"].mean, max_density_error=errors["density"].largest,
            mean_divergence_error=errors["divergence"].mean,
            max_speed=float(np.sqrt(np.einsum("ij,ij->i", v, v).max(initial=0.0))),
            neighbors=sim.world.neighbors.mean_count if results else 0.0,
            momentum=np.einsum("ij->j", mv) + sum(wall.mass * wall.velocity for wall in rigid),
            angular_momentum=np.array([turning[j, k] - turning[k, j] for j, k in ((1, 2), (2, 0), (0, 1))]) + spun,
            kinetic_energy=float(0.5 * np.einsum("ij,ij->", v, mv)) + sum(kinetic_energy(wall) for wall in rigid),
            potential_energy=float(-np.einsum("i,ij,j->", m, x, sim.world.gravity))
            - sum(wall.mass * float(sim.world.gravity @ (wall.pivot + wall.shift)) for wall in rigid),
            elastic_energy=sim.elasticity.energy() if sim.elasticity else 0.0,
            **{name: dict(zip(p.bodies, row.tolist(), strict=False))
               for name, row in zip(ACCOUNTS, p.accounts, strict=True)},
        )  # fmt: skip
