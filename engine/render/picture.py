"""What is in a picture, as plain data: no Taichi here, so a scene can describe its picture before anything runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pliant.errors import PliantError
from pliant.render.camera import Camera, Triple

_TYPICAL = 1000  # triangles and vertices by which a mesh is judged
_FINE = 1 / 15  # of a mesh's size: its typical edge, at most, if it is fine


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
    """A wireframe: `segments` (m, 2, 3) [m], `width` in pixels of a picture of 1280 x 720, in proportion otherwise.
    Those that are `over` all else are not hidden, where the picture is drawn by `Raster`."""

    segments: np.ndarray
    color: Triple = (0.22, 0.25, 0.30)
    width: float = 1.5
    over: bool = False

    def __post_init__(self):
        self.segments = np.ascontiguousarray(self.segments, np.float32).reshape(-1, 2, 3)


@dataclass
class Surface:
    """A triangle mesh: `vertices` (n, 3) [m], `faces` (m, 3), `color` for all or (n, 3) for each vertex.

    `normals` (n, 3) replace those found from the faces. `gloss` in 0..1 makes it reflect sky and lights, and take
    shadows, both at its vertices: for meshes about as fine as the picture.
    """

    vertices: np.ndarray
    faces: np.ndarray
    color: np.ndarray | Triple = (0.93, 0.55, 0.25)
    normals: np.ndarray | None = None
    gloss: float = 0.0

    def __post_init__(self):
        self.vertices = _table("Surface.vertices", self.vertices)
        self.faces = np.asarray(self.faces, np.int64).reshape(-1, 3)
        sane = np.isfinite(self.vertices).all(axis=1)
        if not sane.all():  # as for particles: leave out what blew up
            self.faces = self.faces[sane[self.faces].all(axis=1)]
            self.vertices = np.where(sane[:, None], self.vertices, np.float32(0.0))
        if self.normals is not None:
            self.normals = np.nan_to_num(_table("Surface.normals", self.normals))
        self.color = np.broadcast_to(np.asarray(self.color, np.float32), self.vertices.shape)

    @cached_property
    def edge(self) -> float:
        """Length of a typical edge [m], by some of the triangles; 0 without any."""
        if not len(self.faces):
            return 0.0
        faces = self.faces[:: max(1, len(self.faces) // _TYPICAL)]
        a, b, c = (self.vertices[faces[:, k]] for k in range(3))
        return float(np.sqrt(np.linalg.norm(np.cross(b - a, c - a), axis=1).mean()))

    @cached_property
    def fine(self) -> bool:
        """Whether the vertices stand for the mesh: those of fluids do, those of a crate need not."""
        some = self.vertices[:: max(1, len(self.vertices) // _TYPICAL)]
        return self.gloss > 0 and self.edge < _FINE * float(np.ptp(some, axis=0).max())


@dataclass(frozen=True)
class Light:
    """A light far away towards `direction` (from the scene to the light)."""

    direction: Triple
    color: Triple = (1.0, 1.0, 1.0)

    def problems(self) -> list[str]:
        """One sentence for each thing that is wrong with this light."""
        found = []
        for name, low in (("direction", -np.inf), ("color", 0.0)):
            try:
                value = np.asarray(getattr(self, name), float)
            except (TypeError, ValueError):
                value = np.zeros(0)
            if value.shape != (3,) or not np.isfinite(value).all() or (value < low).any() or not value.any():
                found.append(f"Light: {name} must be three finite numbers, not all zero, got {getattr(self, name)!r}")
        return found


@dataclass(frozen=True)
class Bar:
    """A colour bar: what it measures, from which value to which, and a strip for each of the colour `maps`."""

    label: str
    low: float
    high: float
    maps: tuple[str, ...] = ("water",)


# Key light over the left shoulder of a camera in the default framing direction, and a faint bluish one from the right.
LIGHTS = (Light((-0.55, 1.25, 0.9), (0.62, 0.61, 0.58)), Light((1.0, 0.35, 0.25), (0.16, 0.17, 0.20)))


@dataclass
class Picture:
    """Everything one picture shows. Colours are sRGB in 0..1; the first light casts the shadows.

    `background` fades towards `horizon` downwards; `ground` is the height [m] of a floor that fades into the horizon,
    or None; `shadow` is how dark shadows are, 0 for none. `glass` are thin transparent walls, convex and with faces
    that look outward. `title`, `clock` and `bar` are written on top, light on `dark` backgrounds.
    """

    camera: Camera
    points: list[Points] = field(default_factory=list)
    lines: list[Lines] = field(default_factory=list)
    surfaces: list[Surface] = field(default_factory=list)
    background: Triple = (0.70, 0.79, 0.88)
    horizon: Triple = (0.955, 0.965, 0.975)
    ground: float | None = None
    ground_color: Triple = (0.87, 0.88, 0.89)
    lights: Sequence[Light] = LIGHTS
    ambient: Triple = (0.47, 0.48, 0.50)
    shadow: float = 0.4
    glass: list[Surface] = field(default_factory=list)
    bar: Bar | None = None
    title: str = ""
    clock: str = ""
    dark: bool = False


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
