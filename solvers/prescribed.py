"""Particles whose motion is given: fixed ones, and bodies that a function moves."""

from collections.abc import Callable
from typing import Any

import numpy as np
import taichi as ti
from scipy.spatial.transform import Rotation

from pliant.boundary.wall import rigid_velocity
from pliant.core.backend import Ints, Reals, Vectors, vec3
from pliant.core.speedups import light
from pliant.core.world import World
from pliant.solvers.stage import Stage


@light
@ti.kernel
def _prescribe(n: ti.i32, body: Ints, inverse_density: Reals, velocity: Vectors, turn: Vectors, pivot: Vectors,
               x: Vectors, v: Vectors):  # fmt: skip
    for i in range(n):
        if inverse_density[i] == 0.0:
            b = body[i]
            arm = x[i] - pivot[b]
            v[i] = velocity[b] + vec3(turn[3 * b].dot(arm), turn[3 * b + 1].dot(arm), turn[3 * b + 2].dot(arm))


class Prescribed(Stage):
    """Gives particles without inverse density the velocity of their body's motion (zero where there is none)."""

    name = place = "prescribed"

    def __init__(self, world: World, motions: list[Callable[[float], Any] | None], pivots: np.ndarray):
        super().__init__(world, None)
        self.motions, self.pivots = motions, np.asarray(pivots, dtype=float)
        self._last: tuple[float, np.ndarray] | None = None  # time and velocities of the last step
        self._velocity, self._pivot = (ti.ndarray(vec3, max(len(motions), 1)) for _ in range(2))
        self._turn = ti.ndarray(vec3, max(3 * len(motions), 1))
        self.refresh()

    def refresh(self) -> None:
        """Looks for such particles."""
        self.active = bool((self.world.particles.numpy("inverse_density") == 0).any())

    def members_changed(self) -> None:
        self.refresh()

    def lead(self, body: int, motion: Callable[[float], Any] | None, pivot: Any) -> None:
        """Gives a body another motion, about another pivot if one is given."""
        self.motions[body] = motion
        if pivot is not None:
            self.pivots[body] = pivot
            if self._last is not None:  # the next step moves all pivots on since then
                self.pivots[body] -= (self.world.time - self._last[0]) * self._last[1][body]

    def velocities(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        pairs = [rigid_velocity(m(t)) if m else (np.zeros(3), np.zeros(3)) for m in self.motions]
        return np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])

    def run(self, dt: float) -> None:
        """Velocities for a step of dt: along the chord of the rotation, (R - 1) r / dt, because steps along the tangent
        would lead outwards."""
        if not self.active:
            return
        p, t = self.world.particles, self.world.time
        velocity, spin = self.velocities(t)
        if self._last is not None:  # the pivot moves along with its body
            self.pivots = self.pivots + (t - self._last[0]) * self._last[1]
        self._last = (t, velocity)
        turn = np.zeros((len(spin), 3, 3))
        if spin.any():
            turn = (Rotation.from_rotvec(dt * spin).as_matrix() - np.eye(3)) / dt
        for array, values in ((self._velocity, velocity), (self._turn, turn.reshape(-1, 3)),
                              (self._pivot, self.pivots)):  # fmt: skip
            array.from_numpy(values.astype(np.float32))
        _prescribe(p.n, p.body, p.inverse_density, self._velocity, self._turn, self._pivot, p.x, p.v)

    def fastest(self, t: float) -> float:
        """Speed of the fastest translation; rotations show in the particles' own speeds."""
        return float(np.linalg.norm(self.velocities(t)[0], axis=1).max()) if self.active else 0.0

    def save(self) -> dict[str, Any]:
        last = self._last
        return {"pivots": self.pivots.tolist(), "last": last and [last[0], last[1].tolist()]}

    def restore(self, state: dict[str, Any]) -> None:
        self.pivots, last = np.array(state["pivots"]), state["last"]
        self._last = last and (last[0], np.array(last[1]))
