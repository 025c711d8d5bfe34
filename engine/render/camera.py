"""Where a picture is seen from: a fixed `Camera`, one that circles (`Orbit`), one that follows keys (`CameraPath`).

All three answer `at(time, bounds, aspect)` with the camera of that moment, and `problems()` with a sentence for each
thing that is wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from pliant.core.options import Options, param, positive

Triple: TypeAlias = Sequence[float]
Bounds: TypeAlias = Any  # (lowest corner, highest corner) [m]

NARROWEST, WIDEST = 1.0, 150.0  # opening angles [degrees] between which a perspective picture makes sense
STEEPEST = 89.0  # elevation [degrees]: straight above, "up" would have no direction in the picture
AZIMUTHS = 36  # directions for which an orbit checks that the scene fits
SMALLEST = 1e-3  # distance [m] that keeps a box of no size in view


@dataclass(frozen=True)
class Camera:
    """A perspective camera at `position` looking at `target` [m]; `fov` is the vertical opening angle [degrees]."""

    position: Triple
    target: Triple
    up: Triple = (0.0, 1.0, 0.0)
    fov: float = 45.0

    @property
    def distance(self) -> float:
        """From the camera to its target [m]: the scale of the picture."""
        return float(np.linalg.norm(np.subtract(self.target, self.position)))

    def axes(self) -> np.ndarray:
        """Rows: unit vectors to the right, up and forward, as the camera sees them."""
        forward = np.subtract(self.target, self.position) / self.distance
        right = np.cross(forward, self.up)
        right /= np.linalg.norm(right)
        return np.array([right, np.cross(right, forward), forward])

    def at(self, time: float, bounds: Bounds, aspect: float) -> "Camera":
        """The camera at any time: itself."""
        return self

    def problems(self) -> list[str]:
        """One sentence for each thing that is wrong with this camera."""
        found = []
        for name in ("position", "target", "up"):
            if not _is_triple(getattr(self, name)):
                found.append(f"Camera: {name} must be three finite numbers, got {getattr(self, name)!r}")
        if not _is_number(self.fov) or not NARROWEST <= self.fov <= WIDEST:
            found.append(f"Camera: fov must be in [{NARROWEST:g}, {WIDEST:g}] degrees, got {self.fov!r}")
        if not found and self.distance == 0:
            found.append(f"Camera: position and target must differ, got {tuple(self.position)!r} for both")
        elif not found and np.linalg.norm(np.cross(np.subtract(self.target, self.position), self.up)) == 0:
            found.append(f"Camera: up must not point along the view, got {tuple(self.up)!r}")
        return found

    @classmethod
    def framing(
        cls,
        bounds: Bounds,
        direction: Triple = (1.0, 0.6, 1.6),
        aspect: float = 16 / 9,
        fov: float = 35.0,
        margin: float = 1.12,
    ) -> "Camera":
        """Look from `direction` at the box `bounds` = (lowest corner, highest corner), just filling the picture.

        `aspect` is width over height, `margin` how much larger than the box the view is.
        """
        corners = _corners(bounds)
        target, towards = (corners[0] + corners[-1]) / 2, np.asarray(direction, float)
        axes = cls(target + towards, target).axes()
        slope = np.tan(np.radians(fov) / 2) * np.array([aspect, 1.0]) / margin
        for _ in range(4):  # the box's outline is not centred in perspective: shift, fit, and again
            distance = _fitting(corners, target, axes, slope)
            local = (corners - target) @ axes.T
            seen = local[:, :2] / (distance + local[:, 2:])
            target = target + (seen.max(axis=0) + seen.min(axis=0)) / 2 * distance @ axes[:2]
        distance = _fitting(corners, target, axes, slope)
        return cls(tuple(target - distance * axes[2]), tuple(target), fov=fov)


class Orbit(Options):
    """A camera that circles the scene at a steady height and always looks at its target."""

    speed: float = param(12.0, "how fast it circles, counter-clockwise seen from above", "degrees/s", low=-720.0,
                         high=720.0)  # fmt: skip
    start: float = param(25.0, "where it is at time 0: 0 is in front (+z), 90 on the right (+x)", "degrees",
                         low=-3600.0, high=3600.0)  # fmt: skip
    elevation: float = param(18.0, "height above the target as an angle", "degrees", low=-STEEPEST, high=STEEPEST)
    target: Any = param(None, "what it looks at; None is the middle of the scene", "m", kind="vector", optional=True)
    radius: Any = positive(None, "distance from the target; None is far enough to see the scene all the way round",
                           "m", optional=True)  # fmt: skip
    fov: float = param(35.0, "vertical opening angle", "degrees", low=NARROWEST, high=WIDEST)
    margin: float = param(1.08, "how much larger than the scene the view is, where radius is None", "1", low=0.1,
                          high=10.0)  # fmt: skip

    def at(self, time: float, bounds: Bounds, aspect: float) -> Camera:
        """The camera at `time` [s], of a scene within `bounds` and a picture of that width over height."""
        corners = _corners(bounds)
        target = (corners[0] + corners[-1]) / 2 if self.target is None else np.asarray(self.target, float)
        radius = self.radius
        if radius is None:
            slope = np.tan(np.radians(self.fov) / 2) * np.array([aspect, 1.0]) / self.margin
            eyes = [target + self._direction(360.0 * k / AZIMUTHS) for k in range(AZIMUTHS)]
            views = [Camera(tuple(eye), tuple(target)) for eye in eyes]
            radius = max(_fitting(corners, target, view.axes(), slope) for view in views)
        position = target + radius * self._direction(self.start + self.speed * time)
        return Camera(tuple(map(float, position)), tuple(map(float, target)), fov=self.fov)

    def _direction(self, degrees: float) -> np.ndarray:
        a, e = np.radians(degrees), np.radians(self.elevation)
        return np.array([np.sin(a) * np.cos(e), np.sin(e), np.cos(a) * np.cos(e)])


class CameraPath(Options):
    """A camera that passes smoothly from key to key; before the first and after the last it rests.

    Between keys everything about it is interpolated by monotone cubics (Fritsch and Butland 1984), which do not swing
    beyond a key.
    """

    keys: Any = param((), "pairs (time [s], Camera), times rising", kind="any")

    def problems(self) -> list[str]:
        found = super().problems()
        try:
            pairs = [(time, camera) for time, camera in self.keys]
        except (TypeError, ValueError):
            return [*found, f"CameraPath: keys must be pairs (time, pl.Camera(...)), got {self.keys!r}"]
        if not pairs:
            found.append("CameraPath: keys must hold at least one pair (time, pl.Camera(...))")
        for time, camera in pairs:
            if not _is_number(time) or not isinstance(camera, Camera):
                found.append(f"CameraPath: keys must be pairs (time, pl.Camera(...)), got {(time, camera)!r}")
            else:
                found += [f"CameraPath: at {time:g} s, {sentence}" for sentence in camera.problems()]
        if not found and any(b[0] <= a[0] for a, b in zip(pairs, pairs[1:], strict=False)):
            found.append(f"CameraPath: the times of its keys must rise, got {[time for time, _ in pairs]!r}")
        return found

    def at(self, time: float, bounds: Bounds, aspect: float) -> Camera:
        """The camera at `time` [s]."""
        times = [key[0] for key in self.keys]
        rows = np.array([[*c.position, *c.target, *c.up, c.fov] for _, c in self.keys], float)
        row = rows[0]
        if len(times) > 1:
            from scipy.interpolate import PchipInterpolator  # here, since few need it and it takes long

            row = PchipInterpolator(times, rows)(np.clip(time, times[0], times[-1]))
        position, target, up = (tuple(map(float, part)) for part in np.split(row[:9], 3))
        return Camera(position, target, up, float(row[9]))


View: TypeAlias = Camera | Orbit | CameraPath


def _corners(bounds: Bounds) -> np.ndarray:
    low, high = np.asarray(bounds, float)
    return np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])


def _fitting(corners: np.ndarray, target: np.ndarray, axes: np.ndarray, slope: np.ndarray) -> float:
    """Distance from the target at which all corners are inside the picture: |x| <= slope (distance + z)."""
    local = (corners - target) @ axes.T
    return max(SMALLEST, float((np.abs(local[:, :2]) / slope - local[:, 2:]).max()))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and bool(np.isfinite(value))


def _is_triple(value: Any) -> bool:
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        return False
    return array.shape == (3,) and bool(np.isfinite(array).all())
