"""A moment of a simulation as plain arrays: what stores tell, writers write, readers return and pictures show."""

from dataclasses import dataclass, field

import numpy as np

GRAINS = "_grains"  # behind a body's name: what the cloud of its grains is called


@dataclass
class Cloud:
    """Points of one body: positions `x` (n, 3) [m], fields by name, (n,), (n, 3) or (n, 3, 3), and units."""

    x: np.ndarray
    fields: dict[str, np.ndarray] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)


@dataclass
class CloudStyle:
    """How a cloud is drawn: its colour map, the radius of its points [m], whether it is a fluid, which may be drawn as
    a surface, and whether its points are the grains of another body."""

    name: str
    colors: str
    radius: float
    fluid: bool = True
    grains: bool = False


@dataclass
class TriMesh:
    """A surface: `vertices` (n, 3) [m], `faces` (m, 3), and fields of its vertices by name, as those of a cloud, with
    units; `normal` (n, 3) and texture coordinates `uv` (n, 2) among them."""

    vertices: np.ndarray
    faces: np.ndarray
    fields: dict[str, np.ndarray] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)


@dataclass
class Pose:
    """Where a rigid body is and how it moves: `position` (3,) [m] of its centre of mass, `quaternion` (x, y, z, w) that
    turns it from how it was built, `velocity` (3,) [m/s] and `spin` (3,) [rad/s]."""

    position: np.ndarray
    quaternion: np.ndarray
    velocity: np.ndarray
    spin: np.ndarray


@dataclass
class Snapshot:
    """One frame. `clouds` are the bodies of particles and, as `<body>_grains`, the grains of granular ones. `poses`
    holds, for each wall that moves and each rigid body, the (4, 4) matrix that takes it from where it was built to
    where it is now; `rigid` are the rigid bodies alone, and how they move; `meshes` are the surfaces that deform."""

    index: int
    time: float  # [s]
    clouds: dict[str, Cloud] = field(default_factory=dict)
    poses: dict[str, np.ndarray] = field(default_factory=dict)
    meshes: dict[str, TriMesh] = field(default_factory=dict)
    rigid: dict[str, Pose] = field(default_factory=dict)
