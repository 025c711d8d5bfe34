"""From a checked scene to arrays: samples bodies, carves overlaps, builds walls."""

import dataclasses

import numpy as np
from scipy.spatial import cKDTree

from pliant.boundary import VolumeMap
from pliant.errors import SceneError
from pliant.geometry import Plane, sample_regular
from pliant.scene import Body, Scene
from pliant.smoothing import Smoothing
from pliant.walls import Wall

WALL_GAP = 0.35  # in spacings: a particle closer than this to a wall at the start overlaps it
BODY_GAP = 0.7  # in spacings: the same for particles of two bodies


@dataclasses.dataclass
class Filling:
    """The particles of one body at the start."""

    body: Body
    x: np.ndarray
    volume_each: float


def wall_distance(body: Body, points: np.ndarray) -> np.ndarray:
    """Distance to the surface of a boundary body, negative inside its solid."""
    phi = body.shape.signed_distance(points)
    return -phi if body.material.inside_out else phi


def fill_bodies(scene: Scene, notes: list[str]) -> list[Filling]:
    """Samples all bodies. What overlaps a wall or an earlier body is left out, and said so."""
    d = scene.spacing
    walls = [body for body in scene.bodies if not body.material.sampled]
    fillings: list[Filling] = []
    problems = []
    for body in (body for body in scene.bodies if body.material.sampled):
        x, volume = sample_regular(body.shape, d)
        whole = len(x)
        for wall in walls:
            x, before = x[wall_distance(wall, x) > WALL_GAP * d], len(x)
            _note_carving(notes, body, wall, before - len(x), whole)
        for other in fillings:
            if len(x):
                far = cKDTree(other.x).query(x, distance_upper_bound=BODY_GAP * d)[0] > BODY_GAP * d
                _note_carving(notes, body, other.body, int((~far).sum()), whole)
                x = x[far]
        if not len(x):
            problems.append(f"{body.name}: it lies wholly inside other bodies or walls; move it or leave it out")
        fillings.append(Filling(body, x, volume))
    if problems:
        raise SceneError(problems)
    return fillings


def _note_carving(notes: list[str], body: Body, other: Body, lost: int, whole: int) -> None:
    if lost:
        notes.append(f"{body.name}: {lost:,} of {whole:,} particles overlap {other.name} and were left out.")


def fixed_mask(body: Body, x: np.ndarray) -> np.ndarray:
    """Which particles of a body have a prescribed motion."""
    if body.fixed is None:
        return np.full(len(x), body.motion is not None)
    try:
        mask = np.asarray(body.fixed(x) if callable(body.fixed) else body.fixed)
        return np.ascontiguousarray(np.broadcast_to(mask, len(x)).astype(bool))
    except Exception as error:  # the user's own function: whatever it raises is reported
        raise SceneError([f"{body.name}: fix needs a mask of its {len(x):,} particles: {error}"]) from error


def build_wall(body: Body, spacing: float, smoothing: Smoothing) -> Wall:
    """A boundary body as a wall: a plane as it is, everything else by its volume map."""
    shape, material = body.shape, body.material
    bounds = shape.bounds()
    infinite = not np.isfinite(bounds).all()
    if infinite and not isinstance(shape, Plane):
        raise SceneError([f"{body.name}: only a Plane may be infinite; intersect it with a Box"])
    pivot = np.zeros(3) if infinite else bounds.mean(axis=0)
    if body.pivot is not None:
        pivot = np.asarray(body.pivot, dtype=float)
    common = dict(name=body.name, friction=float(material.friction), no_slip=bool(material.no_slip), pivot=pivot,
                  motion=body.motion)  # fmt: skip
    if infinite:
        normal = np.asarray(shape.normal, dtype=float) / np.linalg.norm(shape.normal)
        side = -1.0 if material.inside_out else 1.0
        return Wall(map=None, plane=(np.asarray(shape.point, dtype=float), side * normal), **common)
    key = f"{shape.key()} {material.inside_out} {spacing!r} {smoothing.name}"
    volume_map = VolumeMap(lambda x: wall_distance(body, x), bounds, spacing, smoothing, material.inside_out, key)
    extent = float(np.linalg.norm(np.maximum(np.abs(bounds[0] - pivot), np.abs(bounds[1] - pivot))))
    return Wall(map=volume_map, plane=None, extent=extent, **common)
