"""Walls in motion: what particles feel of them each step, and the rule that none ever passes one."""

import dataclasses
from collections.abc import Callable

import numpy as np
import taichi as ti

from pliant.backend import Reals, RealTable, Vectors, mat3, vec3
from pliant.boundary import FAR, REACH, Blocks, Directory, VolumeMap, profile, sample
from pliant.particles import Field, Particles

CLEARANCE = 0.25  # in spacings: half a radius. Closer than this a particle is moved back, whatever pressure says
LEAST_GAP = 0.25  # in spacings: the viscous layer between particle and wall is never thinner
KEEP_OUT_ROUNDS = 2  # where two walls meet, the second round settles what the first pushed across

FIELDS = (
    Field("wall_density", "real", "1", "density ratio that the walls add (Neder 2024, Eq. 37)"),
    Field("wall_gradient", "vector", "1/m", "gradient of wall_density (Eq. 38)"),
    Field("wall_flux", "real", "1/s", "wall_gradient times the velocity of the walls"),
    Field("wall_drag", "real", "1/m^2", "viscous drag on no-slip walls, per kinematic viscosity"),
    Field("wall_friction", "real", "1", "Coulomb coefficient of the walls in reach"),
    Field("wall_velocity", "vector", "m/s", "velocity of the walls in reach"),
)


@ti.func
def wall_at(x: vec3, plane: ti.template(), origin: vec3, cell: ti.f32, spacing: ti.f32, beyond: ti.f32, normal: vec3,
            directory: ti.template(), spline: ti.template()):  # fmt: skip
    """Distance and gradient of one wall at x, in the wall's own frame."""
    distance, gradient = (x - origin).dot(normal), normal
    if not ti.static(plane):
        distance, gradient = sample(x, origin, cell, FAR * spacing, beyond, directory, spline)
    return distance, gradient


@ti.kernel
def _feel(n: ti.i32, x: Vectors, first: ti.i32, plane: ti.template(), origin: vec3, cell: ti.f32, spacing: ti.f32,
          beyond: ti.f32, normal: vec3, directory: Directory, spline: Blocks,
          table: RealTable, pivot: vec3, shift: vec3, R: mat3, velocity: vec3, spin: vec3,
          rubbing: ti.f32, no_slip: ti.f32, density: Reals, gradient: Vectors, flux: Reals, drag: Reals,
          friction: Reals, moving: Vectors):  # fmt: skip
    """Adds one wall. Friction and velocity of several walls are averaged by the push of each."""
    for i in range(n):
        if first == 1:
            density[i], flux[i], drag[i], friction[i] = 0.0, 0.0, 0.0, 0.0
            gradient[i], moving[i] = vec3(0.0), vec3(0.0)
        arm = x[i] - pivot - shift
        distance, m = wall_at(R.transpose() @ arm + pivot, plane, origin, cell, spacing, beyond, normal,
                              directory, spline)  # fmt: skip
        if distance < REACH * spacing:
            beta, slope = profile(distance / spacing, table)
            g = slope / spacing * (R @ m)
            speed = velocity + spin.cross(arm)
            share = g.norm() / ti.max(g.norm() + gradient[i].norm(), 1e-12)
            friction[i] += share * (rubbing - friction[i])
            moving[i] += share * (speed - moving[i])
            density[i] += beta
            gradient[i] += g
            flux[i] += g.dot(speed)
            # the shear (v - v_wall) / phi acts on the particle's share |g| of wall area per volume
            drag[i] += no_slip * g.norm() / ti.max(distance, LEAST_GAP * spacing)


@ti.kernel
def _keep_out(n: ti.i32, x: Vectors, v: Vectors, mobility: Reals, plane: ti.template(), origin: vec3, cell: ti.f32,
              spacing: ti.f32, beyond: ti.f32, normal: vec3, directory: Directory, spline: Blocks, pivot: vec3, shift: vec3, R: mat3, velocity: vec3, spin: vec3):  # fmt: skip
    for i in range(n):
        arm = x[i] - pivot - shift
        distance, m = wall_at(R.transpose() @ arm + pivot, plane, origin, cell, spacing, beyond, normal,
                              directory, spline)  # fmt: skip
        if distance < CLEARANCE * spacing and mobility[i] > 0.0 and m.norm() > 0.0:
            out = (R @ m).normalized()
            x[i] += (CLEARANCE * spacing - distance) * out
            approach = (v[i] - velocity - spin.cross(arm)).dot(out)
            v[i] -= ti.min(approach, 0.0) * out


@dataclasses.dataclass
class Wall:
    """One boundary body: its map, where it is and how it moves.

    `motion(t)` gives its velocity [m/s], or a pair of velocity and angular velocity [rad/s] about `pivot`.
    """

    name: str
    map: VolumeMap | None
    plane: tuple[np.ndarray, np.ndarray] | None  # point and normal of an infinite half-space
    friction: float
    no_slip: bool
    pivot: np.ndarray
    motion: Callable[[float], object] | None = None
    shift: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(3))
    rotation: np.ndarray = dataclasses.field(default_factory=lambda: np.eye(3))
    velocity: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(3))
    spin: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(3))
    extent: float = 0.0  # largest distance of the surface from the pivot: spin times this bounds the surface speed

    def set_velocity(self, t: float) -> None:
        """Takes the prescribed velocity at time t."""
        if self.motion is not None:
            self.velocity, self.spin = rigid_velocity(self.motion(t))

    def advance(self, dt: float) -> None:
        """Moves by one step: a translation and an exact rotation about the spin axis (Rodrigues)."""
        self.shift = self.shift + dt * self.velocity
        angle = float(np.linalg.norm(self.spin)) * dt
        if angle:
            a = self.spin / np.linalg.norm(self.spin)
            K = np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])
            self.rotation = (np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K) @ self.rotation

    @property
    def speed(self) -> float:
        """Bound on the speed of its surface."""
        return float(np.linalg.norm(self.velocity) + np.linalg.norm(self.spin) * self.extent)

    def placed(self, points: np.ndarray) -> np.ndarray:
        """Points of the wall as it was built, where they are now."""
        return (points - self.pivot) @ self.rotation.T + self.pivot + self.shift


def rigid_velocity(value: object) -> tuple[np.ndarray, np.ndarray]:
    """Velocity and angular velocity from what a user's motion function returned."""
    array = np.asarray(value, dtype=float)
    if array.shape not in ((3,), (2, 3)) or not np.isfinite(array).all():
        raise ValueError(
            f"a motion must return a finite velocity (3 numbers) or a pair (velocity, angular velocity), got {value!r}"
        )
    return (array, np.zeros(3)) if array.shape == (3,) else (array[0], array[1])


class Walls:
    """All walls of a scene, and the kernels that let particles feel them."""

    def __init__(self, particles: Particles, walls: list[Wall], spacing: float, table: np.ndarray):
        self.particles, self.walls, self.spacing = particles, walls, spacing
        self.table = ti.ndarray(ti.f32, table.shape)
        self.table.from_numpy(table.astype(np.float32))
        self._maps = [self._map_arguments(wall) for wall in walls]

    def _map_arguments(self, wall: Wall) -> tuple:
        d = self.spacing
        if wall.map is not None:
            m = wall.map
            return (False, vec3(*m.origin), m.cell, d, m.beyond, vec3(0.0), m.directory, m.spline)
        assert wall.plane is not None
        point, normal = wall.plane
        return (True, vec3(*point), d, d, FAR * d, vec3(*normal), ti.ndarray(ti.i32, (1, 1, 1)),
                ti.ndarray(ti.f32, (1, 1)))  # fmt: skip

    @staticmethod
    def _pose(wall: Wall) -> tuple:
        return (vec3(*wall.pivot), vec3(*wall.shift), mat3(wall.rotation.tolist()), vec3(*wall.velocity),
                vec3(*wall.spin))  # fmt: skip

    def feel(self, t: float) -> None:
        """Samples all walls at the particles (densities, gradients, drag), at the walls' velocities of time t."""
        p = self.particles
        for k, (wall, arguments) in enumerate(zip(self.walls, self._maps, strict=True)):
            wall.set_velocity(t)
            _feel(p.n, p.x, int(k == 0), *arguments, self.table, *self._pose(wall), wall.friction, float(wall.no_slip),
                  p.wall_density, p.wall_gradient, p.wall_flux, p.wall_drag, p.wall_friction, p.wall_velocity)  # fmt: skip

    def advance(self, dt: float) -> None:
        """Moves the walls, then puts back any particle that came closer than CLEARANCE."""
        p = self.particles
        for wall in self.walls:
            wall.advance(dt)
        for _ in range(KEEP_OUT_ROUNDS if len(self.walls) > 1 else 1):
            for wall, arguments in zip(self.walls, self._maps, strict=True):
                _keep_out(p.n, p.x, p.v, p.mobility, *arguments, *self._pose(wall))

    @property
    def rough(self) -> bool:
        return any(wall.friction > 0.0 for wall in self.walls)

    @property
    def speed(self) -> float:
        return max((wall.speed for wall in self.walls), default=0.0)
