"""The collision geoms of a robot as shapes of the scene, and where its base stands."""

import dataclasses
import re
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from pliant.errors import PliantError
from pliant.geometry import Box, Capsule, Cylinder, Mesh, Plane, Shape, Sphere
from pliant.geometry.mesh import UP
from pliant.geometry.moved import Rotated, Translated
from pliant.solvers.robots.mjcf import mujoco

OTHER = re.compile(r"[^\w .+-]")  # what no name of a body may have


@dataclasses.dataclass(frozen=True)
class Base:
    """Where a robot stands: x = scale R x_model + position. Masses and times are those of the model."""

    rotation: np.ndarray  # (3, 3), from the model's axes, of which z points up, to those of the scene
    position: np.ndarray  # (3,) [m]
    scale: float

    @classmethod
    def of(cls, position: Any, rotation: Any, scale: float, up: str) -> "Base":
        """`rotation` is None or (axis, degrees)."""
        R = np.array(UP[up], dtype=float)
        if rotation is not None:
            axis = np.asarray(rotation[0], dtype=float)
            R = Rotation.from_rotvec(np.radians(rotation[1]) * axis / np.linalg.norm(axis)).as_matrix() @ R
        return cls(R, np.asarray(position, dtype=float), float(scale))

    def place(self, x: np.ndarray) -> np.ndarray:
        """Points of the model (..., 3) in the scene."""
        return self.scale * x @ self.rotation.T + self.position

    def unplace(self, x: np.ndarray) -> np.ndarray:
        return (x - self.position) @ self.rotation / self.scale


@dataclasses.dataclass(frozen=True)
class Geom:
    """A geom at the start."""

    name: str  # link and geom, as its wall is called behind the name of the robot
    number: int  # in the model
    shape: Shape
    moves: bool


def geoms(model: Any, base: Base) -> list[Geom]:
    """All geoms that collide, where the model has them at the start."""
    library = mujoco()
    data = library.MjData(model)
    library.mj_kinematics(model, data)
    chosen = [k for k in range(model.ngeom) if model.geom_contype[k] or model.geom_conaffinity[k]]
    links = [link_name(model, int(model.geom_bodyid[k])) for k in chosen]
    found: list[Geom] = []
    for k, link in zip(chosen, links, strict=True):
        name = link
        if links.count(link) > 1:
            name = f"{link}.{_plain(model.geom(k).name) or sum(one.name.startswith(link + '.') for one in found) + 1}"
        place = base.place(data.geom_xpos[k])
        turn = base.rotation @ data.geom_xmat[k].reshape(3, 3)
        moves = bool(model.body_weldid[model.geom_bodyid[k]])
        found.append(Geom(name, k, shape_of(model, k, name, base.scale, turn, place), moves))
    return found


def link_name(model: Any, body: int) -> str:
    """The name of a link, as everything here calls it."""
    return _plain(model.body(body).name) or f"body{body}"


def _plain(name: str) -> str:
    return OTHER.sub("_", name).lstrip(" .+-")


def shape_of(model: Any, k: int, name: str, s: float, turn: np.ndarray, place: np.ndarray) -> Shape:
    """The shape of one geom, magnified by s, turned and placed."""
    kinds, size = mujoco().mjtGeom, s * model.geom_size[k]
    kind = int(model.geom_type[k])
    if kind == kinds.mjGEOM_PLANE:
        return Plane(point=tuple(place.tolist()), normal=tuple(turn[:, 2].tolist()))
    if kind == kinds.mjGEOM_SPHERE:
        return Sphere(radius=float(size[0]), center=tuple(place.tolist()))
    if kind == kinds.mjGEOM_CAPSULE:
        return _placed(Capsule(radius=float(size[0]), height=float(2 * size[1]), center=(0, 0, 0), axis="z"), turn,
                       place)  # fmt: skip
    if kind == kinds.mjGEOM_CYLINDER:
        return _placed(Cylinder(radius=float(size[0]), height=float(2 * size[1]), center=(0, 0, 0), axis="z"), turn,
                       place)  # fmt: skip
    if kind == kinds.mjGEOM_BOX:
        return _placed(Box(size=tuple((2 * size).tolist()), center=(0, 0, 0)), turn, place)
    if kind == kinds.mjGEOM_ELLIPSOID:
        vertices, faces = Sphere(radius=1.0, center=(0, 0, 0)).triangles()
        return _placed(Mesh((vertices * size, faces)), turn, place)
    if kind == kinds.mjGEOM_MESH:
        return _placed(Mesh(_mesh(model, int(model.geom_dataid[k]), s)), turn, place)
    raise PliantError(f"{name} is a {kinds(kind).name[7:].lower()}, which cannot be a boundary here; use a mesh, or "
                      "let it collide with nothing (contype and conaffinity 0)")  # fmt: skip


def _mesh(model: Any, mesh: int, s: float) -> tuple[np.ndarray, np.ndarray]:
    """Vertices [m] and faces of a mesh of the model."""
    first, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    begin, faces = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
    return s * model.mesh_vert[first : first + count].astype(float), model.mesh_face[begin : begin + faces].astype(int)


def _placed(shape: Shape, turn: np.ndarray, place: np.ndarray) -> Shape:
    vector = Rotation.from_matrix(turn).as_rotvec()
    angle = float(np.linalg.norm(vector))
    if angle:
        axis, degrees = tuple((vector / angle).tolist()), float(np.degrees(angle))
        shape = Rotated(shape, axis=axis, degrees=degrees, about=(0.0, 0.0, 0.0))
    return Translated(shape, offset=tuple(place.tolist()))
