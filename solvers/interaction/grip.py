"""What grips of all kinds share: how a hand follows its target, and how strong and fast it is.

The hand follows a target x_t as a critically damped spring of frequency w; for a body of mass M, with the point x where
it holds on and the velocity u of that,

    F = k e - c u,    k = M w^2,  c = 2 M w,    e = x_t - x.                                              (1)

A body then comes to 2 % of a new place after 5.8 / w, whatever its mass, and hangs lower by M g / k = g / w^2. w is
`FOLLOW`, or more for what is small, so that it hangs lower by no more than `SAG` of its size. Far targets count as near
ones, |e| <= 2 u_max / w, so that nothing is led faster than u_max, the speed that a force of `STRENGTH` times the
weight keeps up at w = `FOLLOW`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pliant.core.world import World
from pliant.errors import PliantError
from pliant.solvers.elasticity.base import Elasticity
from pliant.solvers.stage import Force

FOLLOW = 20.0  # [1/s]: w. 2 % of the way are left after 0.29 s, and a body hangs 25 mm lower on earth
SAG = 0.1  # of its size is the most that a small body hangs lower
STRENGTH = 10.0  # times the weight of a body is the most that the hand pulls with
EARTH = 9.81  # [m/s^2]: the least gravity by which strength is measured, for there may be none


class Grip(Force):
    """What `sim.grab` returns. `point` is where the hand holds on now [m]; `target` is where it is to go [m], to be
    assigned at will; `release()` lets go."""

    name, rank = "grab", -100  # before all other forces

    def __init__(self, world: World, settings: Any, point: np.ndarray, size: float, let_go: Callable[["Grip"], None]):
        """`size` [m] is that of what is taken, `let_go` is told of the release."""
        super().__init__(world, settings)
        self.size, self.held, self._let_go, self._target = size, True, let_go, point

    def bind(self, world: World, settings: Any, elasticity: Elasticity | None) -> None:
        """Goes on in a world that was made anew, maybe with other parameters."""
        self.world, self._cfl = world, settings.cfl
        g = float(np.linalg.norm(world.gravity))
        self.w = max(FOLLOW, math.sqrt(g / (SAG * self.size)))  # [1/s]
        self.gravity = max(g, EARTH)
        self.speed = STRENGTH * self.gravity / (2 * FOLLOW)  # u_max [m/s]

    @property
    def target(self) -> np.ndarray:
        """Where the hand is to go [m]."""
        return self._target.copy()

    @target.setter
    def target(self, point: Any) -> None:
        if not self.held:
            raise PliantError("this grip was released; sim.grab takes hold again")
        self._target = checked_point("target", point)

    @property
    def point(self) -> np.ndarray:
        """Where the hand holds on now [m]."""
        raise NotImplementedError

    def release(self) -> None:
        """Lets go; a second time does nothing."""
        if self.held:
            self.held = False
            self._let_go(self)

    def within(self, way: np.ndarray) -> np.ndarray:
        """The way to the target, no longer than the spring may become."""
        return bounded(way, 2 * self.speed / self.w)

    def led(self, velocity: np.ndarray, way: np.ndarray, dt: float) -> np.ndarray:
        """Velocity of a hand that nothing resists, after a step of dt [s]."""
        return (velocity + dt * self.w**2 * self.within(way)) / (1 + dt * self.w) ** 2

    def run(self, dt: float) -> None:
        """Changes the velocities of what is held."""

    def step_at(self, speed: float) -> float:
        """The step in which what moves at that speed goes as far as the CFL condition lets it [s]."""
        return self._cfl * self.world.spacing / speed if speed > 0 else math.inf


def bounded(vector: np.ndarray, length: float) -> np.ndarray:
    """A vector, or the one of that length in its direction if it is longer."""
    return vector * min(1.0, length / max(float(np.linalg.norm(vector)), 1e-300))


def checked_point(name: str, value: Any) -> np.ndarray:
    """Three finite numbers, or an error that says so."""
    try:
        point = np.asarray(value)
    except ValueError:  # ragged
        point = np.asarray(None)
    if point.shape != (3,) or point.dtype.kind not in "iuf" or not (np.abs(point) <= np.finfo(np.float32).max).all():
        raise PliantError(f"{name} must be three finite numbers [m], got {value!r}")
    return point.astype(float)
