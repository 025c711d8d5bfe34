"""Skins of a scene's elastic bodies: what each is made of, as plain data that files and other processes can hold."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.core import backend
from pliant.core.data import Cloud, Snapshot, TriMesh
from pliant.core.smoothing import smoothing
from pliant.geometry import Mesh, Moved, Shape
from pliant.geometry.drawing import slopes
from pliant.skin.refine import refined
from pliant.skin.skinning import Skin

if TYPE_CHECKING:
    from pliant.sim.simulation import Simulation

SUFFIX = "_skin"  # behind a body's name: what its skin is called among the meshes of a frame
FINE = 1.0  # in spacings: the longest edge of a skin that is made of a shape, so that it can bend where particles can
FAR = 0.02  # in sizes of the shape: vertices are moved onto the surface by no more than this
SMALL = 1e-4  # in sizes of the shape: step over which a slope is measured


class SkinSource:
    """What the skin of a body is made of: its surface at rest, made when first asked for, and its particles at rest.

    `shape` is the surface where `mesh` is not given; the others are as `Skin` takes them, but for `smoothing`, a name.
    """

    def __init__(self, mesh: TriMesh | None, X: np.ndarray, V: np.ndarray, spacing: float,  # noqa: N803
                 smoothing: str, nearest: int | None = None, shape: Shape | None = None):  # fmt: skip
        self.X, self.V, self.spacing, self.smoothing = X, V, float(spacing), smoothing
        self.nearest, self._mesh, self._shape = nearest, mesh, shape
        self._skin: Skin | None = None

    @property
    def mesh(self) -> TriMesh:
        """The surface at rest: the triangles of a mesh as they are, other shapes cut finely enough to bend."""
        if self._mesh is None:
            assert self._shape is not None
            self._mesh = surface(self._shape, self.spacing)
            self._shape = None
        return self._mesh

    @property
    def skin(self) -> Skin:
        """The skin, made when first asked for."""
        if self._skin is None:
            self._skin = self.with_mesh(self.mesh)
        return self._skin

    def with_mesh(self, mesh: TriMesh) -> Skin:
        """Another surface on the same particles, given where the body was at rest."""
        backend.start()
        return Skin(mesh.vertices, mesh.faces, self.X, self.V, self.spacing, smoothing(self.smoothing), mesh.fields,
                    self.nearest)  # fmt: skip

    def drawn(self, cloud: Cloud, values: Mapping[str, np.ndarray]) -> TriMesh:
        """The surface as pictures show it, with these values of the particles at its vertices."""
        return self.skin.split(self.skin.mesh(cloud.x, values=values))

    def __getstate__(self) -> dict:
        """Plain arrays travel to other processes; what is on a device stays here."""
        return {**self.__dict__, "_mesh": self.mesh, "_shape": None, "_skin": None}

    def save(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Everything, as plain values and arrays that `load` takes."""
        mesh = self.mesh
        arrays = {"X": self.X, "V": self.V, "vertices": mesh.vertices, "faces": mesh.faces}
        arrays |= {f"field.{name}": values for name, values in mesh.fields.items()}
        return {"spacing": self.spacing, "smoothing": self.smoothing, "nearest": self.nearest,
                "fields": list(mesh.fields)}, arrays  # fmt: skip

    @classmethod
    def load(cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> "SkinSource":
        """What was saved."""
        fields = {name: arrays[f"field.{name}"] for name in header["fields"]}
        mesh = TriMesh(arrays["vertices"], arrays["faces"], fields)
        return cls(mesh, arrays["X"], arrays["V"], header["spacing"], header["smoothing"], header["nearest"])


def surface(shape: Shape, spacing: float) -> TriMesh:
    """The surface of a shape as a skin on particles of that spacing [m] needs it.

    The triangles of a mesh are taken as they are. Those of other shapes are halved until they can bend, and what comes
    of it is moved onto the surface.
    """
    vertices, faces, fields = shape.skin()
    plain = shape
    while isinstance(plain, Moved):
        plain = plain.shape
    if isinstance(plain, Mesh):
        return TriMesh(vertices, faces, dict(fields))
    size = float(np.ptp(vertices, axis=0).max())
    vertices, faces = refined(vertices, faces, FINE * spacing)
    step = np.clip(shape.signed_distance(vertices), -FAR * size, FAR * size)
    return TriMesh(vertices - step[:, None] * slopes(shape.signed_distance, vertices, SMALL * size), faces)


def skin_sources(sim: "Simulation") -> dict[str, SkinSource]:
    """What the skins of a simulation's elastic bodies are made of, by the bodies' names."""
    found, p = {}, sim.world.particles
    shapes = {k: x for k, x in sim.world.waiting_bodies().items()
              if sim.world.materials[sim.world.bodies[k].material].elastic}  # fmt: skip
    if sim.elasticity is not None:
        shapes |= {number: p.read("rest", p.rows_of(number)) for number in sim.elasticity.solids}
    for number, x in sorted(shapes.items()):
        group = sim.world.bodies[number]
        body = sim.scene.body(group.name)
        found[group.name] = SkinSource(
            None, x.astype(np.float32), np.full(len(x), group.volume_each, np.float32), group.spacing,
            sim.scene.settings.smoothing, body.material.neighbors, body.shown or body.shape,
        )  # fmt: skip
    return found


def without_skins(snapshot: Snapshot) -> Snapshot:
    """The snapshot without what can be made of its particles."""
    others = {name: mesh for name, mesh in snapshot.meshes.items() if not is_skin(name, snapshot)}
    return dataclasses.replace(snapshot, meshes=others)


def is_skin(name: str, snapshot: Snapshot) -> bool:
    """Whether one of the meshes of a snapshot is the skin of one of its bodies."""
    return name.endswith(SUFFIX) and name.removesuffix(SUFFIX) in snapshot.clouds


def skinned(sources: Mapping[str, SkinSource], snapshot: Snapshot) -> Snapshot:
    """The snapshot with the skins of its bodies among its meshes, as `<body>_skin`."""
    skins = {name + SUFFIX: source.skin.mesh(snapshot.clouds[name].x) for name, source in sources.items()
             if name in snapshot.clouds and len(snapshot.clouds[name].x)}  # fmt: skip
    return dataclasses.replace(snapshot, meshes=snapshot.meshes | skins)
