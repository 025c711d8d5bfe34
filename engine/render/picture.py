"""What is in a picture, as plain data: no Taichi here, so a scene can describe its picture before anything runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pliant.errors import PliantError

Triple = Sequence[float]


@dataclass
class Points:
    """Particles drawn as spheres: centres `x` (n, 3) [m], one `radius` [m], `colors` (n, 3) or one colour, in 0..1."""

    x: np.ndarray
    radius: float
    colors: np.ndarray | Triple = (0.10, 0.45, 0.75)

    def __post_init__(self):
        self.x = _table("Points.x", self.x)
        colors = np.broadcast_to(np.asarray(self.colors, np.float32), self.x.shape)
        sane = np.isfinite(self.x).all(axis=1)  # a particle that blew up must not take the picture with it
        self.x, self.colors = np.ascontiguousarray(self.x[sane]), np.ascontiguousarray(colors[sane])


@dataclass
class Lines:
    """A wireframe: `segments` (m, 2, 3) [m], `width` in pixels of the finished picture."""

    segments: np.ndarray
    color: Triple = (0.22, 0.25, 0.30)
    width: float = 1.5

    def __post_init__(self):
        self.segments = np.ascontiguousarray(self.segments, np.float32).reshape(-1, 2, 3)


@dataclass
class Surface:
    """A triangle mesh: `vertices` (n, 3) [m], `faces` (m, 3), `color` for all or (n, 3) for each vertex."""

    vertices: np.ndarray
    faces: np.ndarray
    color: np.ndarray | Triple = (0.93, 0.55, 0.25)

    def __post_init__(self):
        self.vertices = _table("Surface.vertices", self.vertices)
        self.faces = np.asarray(self.faces, np.int64).reshape(-1, 3)
        self.color = np.broadcast_to(np.asarray(self.color, np.float32), self.vertices.shape)


@dataclass(frozen=True)
class Light:
    """A light far away towards `direction` (from the scene to the light)."""

    direction: Triple
    color: Triple = (1.0, 1.0, 1.0)


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

    @classmethod
    def framing(
        cls,
        bounds: tuple[Triple, Triple],
        direction: Triple = (1.0, 0.6, 1.6),
        aspect: float = 16 / 9,
        fov: float = 35.0,
        margin: float = 1.12,
    ) -> "Camera":
        """Look from `direction` at the box `bounds` = (lowest corner, highest corner), just filling the picture.

        `aspect` is width over height, `margin` how much larger than the box the view is.
        """
        low, high = np.asarray(bounds, float)
        corners = np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
        target, towards = (low + high) / 2, np.asarray(direction, float)
        axes = cls(target + towards, target).axes()
        slope = np.tan(np.radians(fov) / 2) * np.array([aspect, 1.0]) / margin
        for _ in range(4):  # the box's outline is not centred in perspective: shift, fit, and again
            local = (corners - target) @ axes.T
            # A corner at depth d + z is inside when |x| <= slope * (d + z); 1e-3 keeps a box of no size in view.
            distance = max(1e-3, (np.abs(local[:, :2]) / slope - local[:, 2:]).max())
            seen = local[:, :2] / (distance + local[:, 2:])
            target = target + (seen.max(axis=0) + seen.min(axis=0)) / 2 * distance @ axes[:2]
        local = (corners - target) @ axes.T
        distance = max(1e-3, (np.abs(local[:, :2]) / slope - local[:, 2:]).max())
        return cls(tuple(target - distance * axes[2]), tuple(target), fov=fov)


# Key light over the left shoulder of a camera in the default framing direction, and a faint bluish one from the right.
_LIGHTS = (Light((-0.55, 1.25, 0.9), (0.62, 0.61, 0.58)), Light((1.0, 0.35, 0.25), (0.16, 0.17, 0.20)))


@dataclass
class Picture:
    """Everything one picture shows. Colours are sRGB in 0..1; the first light casts the shadows.

    `background` fades towards `horizon` downwards; `ground` is the height [m] of a floor that fades into the horizon,
    or None; `shadow` is how dark shadows are, 0 for none.
    """

    camera: Camera
    points: list[Points] = field(default_factory=list)
    lines: list[Lines] = field(default_factory=list)
    surfaces: list[Surface] = field(default_factory=list)
    background: Triple = (0.70, 0.79, 0.88)
    horizon: Triple = (0.955, 0.965, 0.975)
    ground: float | None = None
    ground_color: Triple = (0.87, 0.88, 0.89)
    lights: Sequence[Light] = _LIGHTS
    ambient: Triple = (0.47, 0.48, 0.50)
    shadow: float = 0.4


def box_edges(low: Triple, high: Triple) -> np.ndarray:
    """The twelve edges (12, 2, 3) of a box, for `Lines`."""
    first, last = np.asarray(low, float), np.asarray(high, float)
    unit = np.array([[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)])
    pairs = [(i, i | bit) for i in range(8) for bit in (1, 2, 4) if not i & bit]
    return (first + unit * (last - first))[np.array(pairs)]


def _table(name: str, values: np.ndarray) -> np.ndarray:
    values = np.ascontiguousarray(values, np.float32)
    if values.ndim != 2 or values.shape[1] != 3:
        raise PliantError(f"{name} must have shape (n, 3), got {values.shape}.")
    return values
