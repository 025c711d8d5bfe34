"""From a checked scene to arrays: samples bodies, carves overlaps, builds walls."""

from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from pliant.boundary.volume_map import VolumeMap
from pliant.boundary.wall import Wall
from pliant.core.console import console
from pliant.core.smoothing import Smoothing
from pliant.core.world import BodySamples, wall_distance
from pliant.errors import PliantError, SceneError
from pliant.geometry import Box, Empty, Moved, Plane, Shape, centred, sample
from pliant.scene.scene import Body, Scene
from pliant.solvers.births.options import arriving

WALL_GAP = 0.35  # in spacings: a particle closer than this to a wall at the start overlaps it
HEAVIEST = 1e30  # [kg] and [kg m^2]; one over it is the least: single precision ends at 1e38
BODY_GAP = 0.7  # in spacings: the same for particles of two bodies


def fill_bodies(scene: Scene, notes: list[str]) -> list[BodySamples]:
    """Samples all bodies. Particles that overlap a wall or an earlier body are left out, and said so; points of other
    stores may lie anywhere."""
    walls = [body for body in scene.bodies if body.material.is_wall]
    late = arriving(scene.settings.sources)
    samples: list[BodySamples] = []
    problems = []
    for body in scene.bodies:
        if body.material.is_wall or isinstance(body.shape, Empty):
            each = 0.0 if body.material.is_wall else scene.spacing**3
            samples.append(samples_of(scene, body, np.zeros((0, 3)), each))
            continue
        size = {"particles": body.particles} if body.particles else {"spacing": scene.spacing_of(body)}
        try:
            shape, method, confined = _to_fill(body, walls, scene.spacing, notes)
            with console.status(f"filling {body.name} with particles") as status:
                found = sample(shape, method=method, confined=confined, progress=_telling(status, body.name), **size)
        except PliantError as error:  # it is smaller than a particle
            problems.append(f"{body.name}: {error}")
            continue
        x = found.x
        if body.material.has_particles:
            before = [one for one in samples if one.material.has_particles and one.name not in late and len(one.x)]
            before = [] if body.name in late else before  # it waits until its place is free
            x, problem = _clear(body, x, [] if confined else walls, before, scene.spacing, notes)
            problems += problem
        samples.append(samples_of(scene, body, x, found.volume_each))
    if problems:
        raise SceneError(problems)
    return samples


def samples_of(scene: Scene, body: Body, x: np.ndarray, volume_each: float) -> BodySamples:
    """A body of the scene, filled with these points."""
    fixed = fixed_mask(body, x) if len(x) else np.zeros(0, bool)
    return BodySamples(body.name, body.shape, body.material, x, volume_each, scene.spacing_of(body),
                       np.asarray(body.velocity, dtype=float), body.colors, fixed)  # fmt: skip


def _clear(body: Body, x: np.ndarray, walls: list[Body], before: list[BodySamples], spacing: float,
           notes: list[str]) -> tuple[np.ndarray, list[str]]:  # fmt: skip
    """The points that keep their distance from walls and from the bodies before; and what is wrong if none do."""
    whole = len(x)
    carvers: list[Body | BodySamples] = []
    others: list[Body | BodySamples] = [*walls, *before]
    for other in others:
        clear = _clear_of(other, x, spacing)
        if not clear.all():
            carvers.append(other)
            notes.append(f"{body.name}: {len(x) - clear.sum():,} of {whole:,} particles overlap {other.name} and were "
                         "left out.")  # fmt: skip
        x = x[clear]
    return x, [] if len(x) else [f"{body.name}: {_swallowed(carvers)}; move it or leave it out"]


def _to_fill(body: Body, walls: list[Body], spacing: float, notes: list[str]) -> tuple[Shape, str, bool]:
    """The shape that a body fills, by which method, and whether walls confine it.

    A lattice that a round wall cuts leaves a gap of up to a spacing. So what flows is fitted to what the walls leave of
    its shape, if one of these is round or if that is wanted."""
    if not body.material.fluid_like:
        return body.shape, body.sampling or "fitted", False
    wanted = body.sampling or ("fitted" if any(map(_is_round, walls)) else "regular")
    if wanted != "fitted":
        return body.shape, wanted, False
    lattice = sample(body.shape, spacing, method="regular").x
    clear = np.array([_clear_of(wall, lattice, spacing) for wall in walls]).reshape(len(walls), len(lattice))
    cutting = [wall for wall, kept in zip(walls, clear, strict=True) if not kept.all()]
    swallowed = not clear.all(axis=0).any()
    if swallowed or (body.sampling is None and not any(map(_is_round, cutting))):
        return body.shape, "regular", False
    shape = body.shape
    for wall in cutting:
        shape = shape & wall.shape if wall.material.inside_out else shape - wall.shape
        notes.append(f"{body.name}: it overlaps {wall.name} and fills what is left.")
    return shape, "fitted", True


def _is_round(wall: Body) -> bool:
    """Whether a lattice cannot lie against all of a wall."""
    return half_spaces(wall.shape, wall.material.inside_out) is None


def _telling(status: Any, name: str) -> Any:
    """Shows how far the particles of a body still move."""
    return lambda k, moved, end: status.update(
        f"filling {name} with particles: round {k}, moves of {moved:.1e} spacings, {end:.0e} is rest"
    )


def _clear_of(other: Body | BodySamples, x: np.ndarray, spacing: float) -> np.ndarray:
    """Which points keep their distance from a wall or from the particles of a body."""
    if isinstance(other, BodySamples):
        return cKDTree(other.x).query(x, distance_upper_bound=BODY_GAP * spacing)[0] > BODY_GAP * spacing
    return wall_distance(other, x) > WALL_GAP * spacing


def _swallowed(carvers: list[Body | BodySamples]) -> str:
    if len(carvers) > 1:
        return f"all of it overlaps {' and '.join(body.name for body in carvers)}"
    container = carvers[0].material.is_wall and carvers[0].material.inside_out
    return f"it lies wholly {'outside' if container else 'inside'} {carvers[0].name}"


def fixed_mask(body: Body, x: np.ndarray) -> np.ndarray:
    """Which particles of a body have a prescribed motion."""
    if body.fixed is None:
        return np.full(len(x), body.motion is not None)
    return marked(body.name, body.fixed, x)


def marked(name: str, given: Any, x: np.ndarray, doing: str = "fix") -> np.ndarray:
    """Which particles at x are meant by a function of their positions, an array, or True for all."""
    try:
        mask = np.asarray(given(x) if callable(given) else given)
    except Exception as error:  # the user's own function: whatever it raises is reported
        raise SceneError([f"{name}: the function given to {doing} fails: {error}"]) from error
    if mask.dtype != bool or mask.shape not in ((), (len(x),)):
        got = repr(mask.item()) if mask.shape == () else f"an array of {mask.dtype} of shape {mask.shape}"
        raise SceneError([f"{name}: {doing} needs True or False for each of its {len(x):,} particles, got {got}"])
    return np.full(len(x), mask) if mask.shape == () else np.ascontiguousarray(mask)


def build_wall(body: Body, spacing: float, smoothing: Smoothing, maps: dict[str, VolumeMap] | None = None,
               felt: bool = True) -> Wall:  # fmt: skip
    """A boundary or a rigid body as a wall: planes and box-shaped containers as they are, everything else by its volume
    map. Rigid bodies of one shape share theirs, among those in `maps`. What is not `felt`, because there are no
    particles, needs none."""
    shape, material = body.shape, body.material
    bounds = shape.bounds()
    infinite = not np.isfinite(bounds).all()
    planes = half_spaces(shape, material.inside_out)
    if infinite and planes is None:
        raise SceneError([f"{body.name}: only a Plane may be infinite; intersect it with a Box"])
    pivot = np.zeros(3) if infinite else bounds.mean(axis=0)
    if body.pivot is not None:
        pivot = np.asarray(body.pivot, dtype=float)
    common: dict[str, Any] = dict(name=body.name, pivot=pivot, motion=body.motion) | wall_values(body)
    common["free"] = material.driven
    if material.free:
        pivot = common["pivot"] = body.mass_properties().center
        common["free"] = not body.fixed and body.motion is None
    if not infinite:
        common["extent"] = float(np.linalg.norm(np.maximum(np.abs(bounds[0] - pivot), np.abs(bounds[1] - pivot))))
    if planes is not None or not felt:
        return set_off(Wall(map=None, planes=planes, inside_out=bool(material.inside_out), **common), body)
    base, offset = centred(shape) if material.free else (shape, np.zeros(3))
    key, maps = f"{base.key()} {material.inside_out} {spacing!r} {smoothing.name}", {} if maps is None else maps
    if key not in maps:
        solid = Body(body.name, base, material, body.velocity)
        maps[key] = VolumeMap(lambda x: wall_distance(solid, x), base.bounds(), spacing, smoothing,
                              material.inside_out, key)  # fmt: skip
    own = maps[key].moved(offset) if material.free else maps[key]
    return set_off(Wall(map=own, planes=None, inside_out=bool(material.inside_out), **common), body)


def set_off(wall: Wall, body: Body) -> Wall:
    """Gives what is free the velocities that it starts with."""
    if wall.free:
        wall.velocity, wall.spin = body.velocity, np.zeros(3) if body.spin is None else body.spin
    return wall


def wall_values(body: Body) -> dict[str, Any]:
    """What a wall has of the material of its body, which may change while the scene runs."""
    material = body.material
    values = {"no_slip": bool(material.no_slip), "wetting": material.wetting}
    if not material.free:
        return values
    solid = body.mass_properties()
    mass = material.mass_of(solid.volume)
    principal = mass / solid.volume * np.linalg.eigvalsh(solid.inertia)
    if not (principal[0] > 1 / HEAVIEST and max(mass, principal[2]) < HEAVIEST and mass > 1 / HEAVIEST):
        raise SceneError([f"{body.name}: its mass of {mass:.3g} kg and its size make it so hard or so easy to turn "
                          "that single precision cannot tell; choose another density or size"])  # fmt: skip
    return values | {"mass": mass, "inertia": mass / solid.volume * solid.inertia,
                     "restitution": float(material.restitution)}  # fmt: skip


def half_spaces(shape: Shape, inside_out: bool) -> np.ndarray | None:
    """Points and outward normals (k, 2, 3) of the half-spaces whose union is the solid, if it is one: the ground under
    a plane, or what surrounds the inside of a box."""
    if isinstance(shape, Moved):
        planes = half_spaces(shape.shape, inside_out)
        if planes is None:
            return None
        scale, _, _ = shape.placement()
        points, tips = shape.to_world(planes[:, 0]), shape.to_world(planes.sum(axis=1))
        return np.stack([points, (tips - points) / scale], axis=1)
    if isinstance(shape, Plane):
        normal = np.asarray(shape.normal, dtype=float) / np.linalg.norm(shape.normal)
        return np.array([[shape.point, -normal if inside_out else normal]], dtype=float)
    if isinstance(shape, Box) and inside_out:
        axes = np.concatenate([np.eye(3), -np.eye(3)])
        faces = np.asarray(shape.center, dtype=float) - axes * np.asarray(shape.size, dtype=float) / 2
        return np.stack([faces, axes], axis=1)
    return None
