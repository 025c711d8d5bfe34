"""Particles whose motion is given: fixed ones, and bodies that a function moves."""

from collections.abc import Callable
from typing import Any

import numpy as np
import taichi as ti
from scipy.spatial.transform import Rotation

from pliant.boundary.walls import rigid_velocity
from pliant.core.backend import Ints, Reals, Vectors, upload, vec3
from pliant.core.world import World


@ti.kernel
def _prescribe(n: ti.i32, body: Ints, mobility: Reals, velocity: Vectors, turn: Vectors, pivot: Vectors, x: Vectors,
               v: Vectors):  # fmt: skip
    for i in range(n):
        if mobility[i] == 0.0:
            b = body[i]
            arm = x[i] - pivot[b]
            v[i] = velocity[b] + vec3(turn[3 * b].dot(arm), turn[3 * b + 1].dot(arm), turn[3 * b + 2].dot(arm))


class Prescribed:
    """Gives particles without mobility the velocity of their body's motion (zero where there is none)."""

    def __init__(self, world: World, motions: list[Callable[[float], Any] | None], pivots: np.ndarray):
        self.world, self.motions, self.pivots = world, motions, np.asarray(pivots, dtype=float)
        self.active = bool((world.particles.numpy("mobility") == 0).any())
        self.last: tuple[float, np.ndarray] | None = None  # time and velocities of the last step

    def lead(self, body: int, motion: Callable[[float], Any] | None, pivot: Any) -> None:
        """Gives a body another motion, about another pivot if one is given."""
        self.motions[body] = motion
        if pivot is not None:
            self.pivots[body] = pivot
            if self.last is not None:  # the next step moves all pivots on since then
                self.pivots[body] -= (self.world.time - self.last[0]) * self.last[1][body]

    def velocities(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        pairs = [rigid_velocity(m(t)) if m else (np.zeros(3), np.zeros(3)) for m in self.motions]
        return np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])

    def apply(self, t: float, dt: float) -> None:
        """Velocities for a step of dt from time t: along the chord of the rotation, (R - 1) r / dt, because steps along
        the tangent would lead outwards."""
        if not self.active:
            return
        p = self.world.particles
        velocity, spin = self.velocities(t)
        if self.last is not None:  # the pivot moves along with its body
            self.pivots = self.pivots + (t - self.last[0]) * self.last[1]
        self.last = (t, velocity)
        turn = (Rotation.from_rotvec(dt * spin).as_matrix() - np.eye(3)) / dt
        _prescribe(p.n, p.body, p.mobility, upload(velocity, vec3), upload(turn.reshape(-1, 3), vec3),
                   upload(self.pivots, vec3), p.x, p.v)  # fmt: skip

    def speed(self, t: float) -> float:
        """Speed of the fastest translation; rotations show in the particles' own speeds."""
        return float(np.linalg.norm(self.velocities(t)[0], axis=1).max()) if self.active else 0.0
