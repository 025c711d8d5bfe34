"""What a scene says of its joints: `scene.hinge`, `ball`, `join`, `slider`, `spring` and `distance` make these.

A joint holds a body `a` to a body `b`, or to the world if that is None. Places and axes are those of the world when the
scene is built; angles, displacements and speeds are those of `a` relative to `b`, right-handed about the axis or along
it, and 0 when the scene is built. Angles of limits are in degrees, as everywhere in scenes; speeds of motors are in
rad/s, as spins are.
"""

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pliant.core.options import REQUIRED, Options, nonnegative, param, positive
from pliant.errors import SimulationError
from pliant.geometry.shapes import AXES

FASTEST = 1e6  # [rad/s] or [m/s]
STRONGEST = 1e15  # [N m] or [N]
STIFFEST = 1e15  # [N/m]
FARTHEST = 1e9  # [m] from the origin
FUNCTION = "a function"  # stands for a function of time, which no file can hold


def _at() -> Any:
    return param(REQUIRED, "where the joint is", "m", kind="vector", low=-FARTHEST, high=FARTHEST)


def _axis() -> Any:
    return param(REQUIRED, "direction of the axis, right-handed: x, y, z or a vector", kind="any")


def _points() -> Any:
    return param(REQUIRED, "where it is fixed to the two: a pair of points, or one point for both", "m", kind="any")


class Joint(Options):
    """Base of all joints."""

    kind: ClassVar[str]

    name: str = param(REQUIRED, "what it is called, as bodies are", kind="text")
    a: str = param(REQUIRED, "name of the body that is held", kind="any")
    b: str | None = param(None, "name of the body that it is held to; None is the world", kind="any")
    contact: bool = param(False, "whether the two touch each other beside the joint")

    if TYPE_CHECKING:  # which every kind declares by itself
        at: Any

    def functions(self) -> list[str]:
        """What it does by functions of the user's, in words."""
        return []

    def problems(self) -> list[str]:
        found = [self._plain(sentence) for sentence in super().problems()]
        if self.a is not REQUIRED and not isinstance(self.a, str):
            found.append(f"its first body must be a body or its name, got {self.a!r}; None, the world, stands second")
        if not (self.b is None or isinstance(self.b, str)):
            found.append(f"its second body must be a body, its name or None, the world, got {self.b!r}")
        if not found and self.a == self.b:
            found.append(f"it joins {self.a} to itself; a joint needs two bodies, or a body and None, the world")
        found += self._own_problems() if not found else []
        return [f"{self.name}: {sentence}" for sentence in found]

    def _plain(self, sentence: str) -> str:
        """A sentence of the options' without the name of their class."""
        own = type(self).__name__
        return sentence.replace(f"{own}: ", "").replace(f"{own} has", f"{self.kind} has")

    def _own_problems(self) -> list[str]:
        """What is wrong with what only this kind of joint has."""
        return []

    def anchors(self) -> np.ndarray:
        """(2, 3) where it is fixed to `a` and to `b` when the scene is built [m]."""
        return np.array([self.at, self.at], dtype=float)


class FixedJoint(Joint):
    """Holds two bodies together as if they were one: `scene.join` makes it."""

    kind: ClassVar[str] = "fixed"
    at: Any = _at()


class BallJoint(Joint):
    """Holds two bodies together in a point, about which they turn freely: `scene.ball` makes it."""

    kind: ClassVar[str] = "ball"
    at: Any = _at()


class AxisJoint(Joint):
    """Base of joints with an axis, limits and a motor."""

    effort: ClassVar[str]  # what its motor gives: "torque" or "force"

    if TYPE_CHECKING:
        axis: Any
        limits: Any
        speed: Any

    def limit_range(self) -> tuple[float, float]:
        """Bounds of the angle [rad] or the displacement [m], infinite where there are none."""
        low, high = (-math.inf, math.inf) if self.limits is None else map(float, self.limits)
        return low, high

    def direction(self) -> np.ndarray:
        """(3,) unit vector along the axis when the scene is built."""
        axis: np.ndarray = np.asarray(_axis_of(self.axis), dtype=float)
        return axis / float(np.linalg.norm(axis))

    def motor(self, t: float) -> tuple[float | None, float | None]:
        """Speed [rad/s, m/s] that its motor keeps at time t [s], and torque [N m] or force [N] that it gives: None
        where it has none. A motor with a speed gives up to `strongest` for it."""
        return self._value("speed", t, FASTEST), self._value(self.effort, t, STRONGEST)

    @property
    def strongest(self) -> float:
        """Largest torque [N m] or force [N] of a motor that keeps a speed."""
        most = getattr(self, f"max_{self.effort}")
        return math.inf if most is None else float(most)

    def values(self) -> dict[str, Any]:
        found = super().values()
        return found | {name: FUNCTION for name in ("speed", self.effort) if callable(found[name])}

    def functions(self) -> list[str]:
        return [f"the {name} of {self.name!r}" for name in ("speed", self.effort) if callable(getattr(self, name))]

    def _value(self, name: str, t: float, limit: float) -> float | None:
        """A number, or what a function of the user's says at time t. Whatever that raises, or returns that is none,
        becomes one sentence."""
        given = getattr(self, name)
        if given is None:
            return None
        try:
            found = float(given(t) if callable(given) else given)
            if not abs(found) <= limit:
                raise ValueError(f"it must be a number within {limit:g}, got {found!r}")
        except Exception as error:
            raise SimulationError(f"{self.name}: its {name} fails at t = {t:g} s: {error}") from error
        return found

    def _own_problems(self) -> list[str]:
        found = _axis_problems(self.axis) + _limit_problems(self.limits)
        effort, most = self.effort, getattr(self, f"max_{self.effort}")
        speed, given = self.speed, getattr(self, effort)
        if speed is not None and given is not None:
            found.append(f"a motor keeps a speed or gives a {effort}; leave out one of them, or give max_{effort} with "
                         "the speed")  # fmt: skip
        if most is not None and speed is None:
            found.append(f"max_{effort} belongs to a motor that keeps a speed; give it a speed= as well")
        for name, value in (("speed", speed), (effort, given)):
            if isinstance(value, bool) or not (value is None or callable(value) or isinstance(value, _NUMBERS)):
                found.append(f"{name} must be a number or a function of time that returns one, got {value!r}")
        if not found:
            try:
                self.motor(0.0)
            except SimulationError as error:
                found.append(str(error).removeprefix(f"{self.name}: "))
        return found


class HingeJoint(AxisJoint):
    """Lets a body turn about an axis: `scene.hinge` makes it."""

    kind: ClassVar[str] = "hinge"
    effort: ClassVar[str] = "torque"

    at: Any = _at()
    axis: Any = _axis()
    limits: Any = param(None, "smallest and largest angle; None turns freely", "degrees", kind="any")
    speed: Any = param(None, "at which a motor turns it, a number or a function of time; None has no such motor",
                       "rad/s", kind="any")  # fmt: skip
    torque: Any = param(None, "that a motor gives, a number or a function of time", "N m", kind="any")
    max_torque: float | None = positive(None, "the most that a motor gives to keep its speed; None is as much as it "
                                        "takes", "N m", high=STRONGEST, optional=True)  # fmt: skip

    def limit_range(self) -> tuple[float, float]:
        low, high = super().limit_range()
        return math.radians(low), math.radians(high)


class SliderJoint(AxisJoint):
    """Lets a body move along an axis without turning: `scene.slider` makes it."""

    kind: ClassVar[str] = "slider"
    effort: ClassVar[str] = "force"

    at: Any = _at()
    axis: Any = _axis()
    limits: Any = param(None, "smallest and largest displacement; None slides freely", "m", kind="any")
    speed: Any = param(None, "at which a motor moves it, a number or a function of time; None has no such motor", "m/s",
                       kind="any")  # fmt: skip
    force: Any = param(None, "that a motor gives, a number or a function of time", "N", kind="any")
    max_force: float | None = positive(None, "the most that a motor gives to keep its speed; None is as much as it "
                                       "takes", "N", high=STRONGEST, optional=True)  # fmt: skip


class PairJoint(Joint):
    """Base of joints between two points, whose bodies need not be close to each other."""

    contact: bool = param(True, "whether the two touch each other beside the joint")

    if TYPE_CHECKING:
        length: Any

    def anchors(self) -> np.ndarray:
        found = points_of(self.at)
        assert found is not None
        return found

    def rest_length(self) -> float:
        """The length that it keeps or goes back to [m]: the given one, or that when the scene is built."""
        p, q = self.anchors()
        given = self.length
        return float(np.linalg.norm(q - p)) if given is None else float(given)

    def _own_problems(self) -> list[str]:
        if points_of(self.at) is None:
            return [f"at must be a pair of points (p, q), or one point for both, finite and in metres, got "
                    f"{self.at!r}"]  # fmt: skip
        return []


class SpringJoint(PairJoint):
    """A spring between two points, with a damper beside it: `scene.spring` makes it."""

    kind: ClassVar[str] = "spring"

    at: Any = _points()
    stiffness: float = positive(REQUIRED, "force per extension", "N/m", high=STIFFEST)
    damping: float = nonnegative(0.0, "force per speed of extension", "N s/m", high=STIFFEST)
    length: float | None = nonnegative(None, "length at rest; None is that when the scene is built", "m", high=FARTHEST,
                                       optional=True)  # fmt: skip


class DistanceJoint(PairJoint):
    """A rod between two points, which turns freely at its ends: `scene.distance` makes it."""

    kind: ClassVar[str] = "distance"

    at: Any = _points()
    length: float | None = positive(None, "the length that it keeps; None is that when the scene is built", "m",
                                    high=FARTHEST, optional=True)  # fmt: skip

    def _own_problems(self) -> list[str]:
        found = super()._own_problems()
        if not found and self.rest_length() == 0.0:
            found.append("its two points are one, so that it has no length; use a ball joint to hold them together")
        return found


_NUMBERS = (int, float, np.number)


def points_of(at: Any) -> np.ndarray | None:
    """(2, 3) the points of a pair joint, from a pair or from one point for both; None if they are none."""
    try:
        found = np.asarray(at)
    except ValueError:  # ragged
        return None
    if found.dtype.kind not in "iuf" or found.shape not in ((3,), (2, 3)):
        return None
    pair = np.broadcast_to(found.astype(float), (2, 3))
    return pair.copy() if (np.abs(pair) <= FARTHEST).all() else None


def _axis_of(axis: Any) -> Any:
    """Three numbers, also of "x", "y" and "z"."""
    return AXES.get(axis, axis) if isinstance(axis, str) else axis


def _axis_problems(axis: Any) -> list[str]:
    try:
        found = np.asarray(_axis_of(axis))
    except ValueError:  # ragged
        found = np.zeros(0)
    if found.shape != (3,) or found.dtype.kind not in "iuf" or not np.isfinite(found).all():
        return [f"axis must be 'x', 'y', 'z' or three finite numbers, got {axis!r}"]
    return [] if np.any(found) else [f"axis must not be zero, got {axis!r}"]


def _limit_problems(limits: Any) -> list[str]:
    if limits is None:
        return []
    try:
        found = np.asarray(limits)
    except ValueError:  # ragged
        found = np.zeros(0)
    if found.shape != (2,) or found.dtype.kind not in "iuf" or np.isnan(found).any():
        return [f"limits must be a pair of numbers (low, high), got {limits!r}"]
    if found[0] > found[1]:
        return [f"limits must be (low, high), got {limits!r}; swap them"]
    return []
