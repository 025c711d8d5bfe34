"""Walls in motion: what particles feel of them each step, and what they feel of particles.

**Sides.** A wall has a side for each of its planes, or one, its map. Once in a step each particle finds the sides that
are near it, and all that walls do afterwards is said in terms of these (`wall_sides`).

**Forces on walls.** A wall gets the opposite of every impulse that it gives: pressures times their wall gradients; what
slides along it, by friction, viscosity and the contact of sand (`wall_slide`, all of it to the nearest side); and what
`keep_out` stops. So the impulses of all walls and the change of momentum agree to round-off.
"""

import copy
import functools
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import taichi as ti

from pliant.boundary.keep_out import KEEP_OUT_ROUNDS, keep_out, mark_close
from pliant.boundary.volume_map import KNOWN, REACH, profile
from pliant.boundary.wall import FASTEST, FASTEST_SPIN, STATE, Wall, WallStates
from pliant.boundary.wall_patches import WHOLE, WallPatch, add_to_patches, patch_table
from pliant.boundary.wall_sides import OVERLAP, SIDES, Sides, find_sides, is_nearest, part_of_gradient, to_surface
from pliant.boundary.wall_table import (
    PIVOT,
    PLACE,
    POSE,
    ROTATION,
    SPIN,
    VELOCITY,
    TableOfWalls,
    WallTable,
    arm_of,
    velocity_of,
    wall_of,
)
from pliant.core.backend import (
    Ints,
    Reals,
    RealTable,
    Vectors,
    VectorTable,
    host_view,
    task,
    threads_for,
    turns,
    upload,
    vec3,
)
from pliant.core.fields import Field
from pliant.core.particles import Particles
from pliant.core.speedups import light
from pliant.core.store import Store
from pliant.errors import PliantError

LEAST_GAP = 0.25  # in spacings: the viscous layer between particle and wall is never thinner
ROUND_OFF = 1e-3  # by which a body may turn faster than the fastest
CHUNK = 128  # of the pairs of particles and sides that are summed up at a time

OF_WALLS = ("wall_density", "wall_gradient", "wall_flux", "wall_drag", "wall_friction", "wall_velocity",
            "wall_distance", "wall_normal", "wall_number", "wall_slide")  # fmt: skip
FIELDS = (
    Field("wall_density", "real", "1", "density ratio that the walls add (Neder 2024, Eq. 37)", saved=True),
    Field("wall_gradient", "vector", "1/m", "gradient of wall_density (Eq. 38)"),
    Field("wall_flux", "real", "1/s", "wall_gradient times the velocity of the walls"),
    Field("wall_drag", "real", "1/m^2", "viscous drag on no-slip walls, per kinematic viscosity"),
    Field("wall_friction", "real", "1", "Coulomb coefficient of the walls in reach"),
    Field("wall_velocity", "vector", "m/s", "velocity of the walls in reach"),
    Field("wall_distance", "real", "m", "distance of the nearest wall, if it is in reach"),
    Field("wall_normal", "vector", "1", "direction away from it"),
    Field("wall_number", "int", "", "which wall that is"),
    Field("wall_slide", "vector", "m/s^2", "acceleration along walls by friction and viscosity"),
    Field("wall_push", "vector", "N/m^3", "force that pressures make the walls give, per volume"),
    Field("too_close", "int", "", "whether a wall puts it back"),
)
# What particles know of walls: the fields above.
Felt: TypeAlias = ti.types.argpack(
    wall_density=Reals, wall_gradient=Vectors, wall_flux=Reals, wall_drag=Reals, wall_friction=Reals,
    wall_velocity=Vectors, wall_distance=Reals, wall_normal=Vectors, wall_number=Ints, wall_slide=Vectors,
)  # fmt: skip


@light
@ti.kernel
def _sample(n: ti.i32, x: Vectors, reach: ti.f32, spacing: ti.f32, t: WallTable, c: Sides, felt: Felt,
            table: RealTable, material: Ints, rubbing: RealTable, no_slip: Reals, at_surface: Reals):  # fmt: skip
    """What walls add to densities and gradients, and their velocities, friction and drag. Friction and velocity of
    several sides are averaged by the push of each; the velocity is that at the surface for what rubs there."""
    for i in range(n):
        find_sides(i, x[i], reach, t, c)
        density, flux, drag, friction, number, nearest = 0.0, 0.0, 0.0, 0.0, -1, REACH * spacing
        gradient, moving, normal = vec3(0.0), vec3(0.0), vec3(0.0)
        for s in range(c.side_count[i]):
            distance, outward = c.side_distance[i, s], c.side_outward[i, s]
            c.side_share[i, s] = 0.0
            if distance < REACH * spacing:
                wall = wall_of(c.side_number[i, s], t)
                beta, slope = profile(distance / spacing, table)
                g = slope / spacing * outward
                speed = velocity_of(wall, x[i] + at_surface[material[i]] * to_surface(i, s, c), t)
                if distance < nearest:
                    nearest, normal, number = distance, outward.normalized(), wall
                share = g.norm() / ti.max(g.norm() + gradient.norm(), 1e-12)
                friction += share * (rubbing[wall, material[i]] - friction)
                moving += share * (speed - moving)
                for before in range(s):
                    c.side_share[i, before] = (1.0 - share) * c.side_share[i, before]
                c.side_share[i, s] = share
                # the shear (v - v_wall) / phi acts on the particle's share of wall, which is 1 / d per volume at d / 2
                share_of_wall = slope / table[0, 1] * outward.norm() / spacing
                drag += no_slip[wall] * share_of_wall / ti.max(distance, LEAST_GAP * spacing)
                others, here = 1.0 - OVERLAP * density, 1.0 - OVERLAP * beta
                gradient = here * gradient + others * g
                flux = here * flux + others * g.dot(speed)
                density += others * beta
        felt.wall_density[i], felt.wall_gradient[i], felt.wall_flux[i] = density, gradient, flux
        felt.wall_drag[i] = drag
        felt.wall_friction[i], felt.wall_velocity[i], felt.wall_distance[i] = friction, moving, nearest
        felt.wall_normal[i], felt.wall_number[i], felt.wall_slide[i] = normal, number, vec3(0.0)


@light
@ti.kernel
def _find_pushes(n: ti.i32, p: Reals, gradient: Vectors, push: Vectors):
    for i in range(n):
        push[i] = -p[i] * gradient[i]


@light
@ti.kernel
def _count_pairs(n: ti.i32, walls: ti.i32, t: WallTable, c: Sides, start: Ints):
    """How many pairs of particles and sides each wall has: entry k + 2 is of wall k."""
    ti.loop_config(serialize=True)
    for k in range(walls + 2):
        start[k] = 0
    ti.loop_config(serialize=True)
    for i in range(n):
        for s in range(c.side_count[i]):
            k = wall_of(c.side_number[i, s], t) + 2
            start[k] = start[k] + 1


@light
@ti.kernel
def _list_pairs(n: ti.i32, walls: ti.i32, t: WallTable, c: Sides, start: Ints, pair: Ints):
    """These pairs, wall by wall in the order of the particles; those of wall k are then from start[k] on."""
    ti.loop_config(serialize=True)
    for k in range(1, walls + 1):
        start[k + 1] = start[k + 1] + start[k]
    ti.loop_config(serialize=True)
    for i in range(n):
        for s in range(c.side_count[i]):
            k = wall_of(c.side_number[i, s], t) + 1
            pair[start[k]] = SIDES * i + s
            start[k] = start[k] + 1


@ti.kernel
def _load(chunks: ti.i32, begin: Ints, end: Ints, owner: Ints, pair: Ints, dt: ti.f32, spacing: ti.f32, t: WallTable,
          c: Sides, table: RealTable, x: Vectors, m: Reals, inverse_density: Reals, p: Reals, slide: Vectors,
          material: Ints, mirrored: Reals, imaged: ti.template(), image_push: RealTable, image_gradient: VectorTable,
          rubbed: ti.template(), rub: Vectors, first: Ints, patches: RealTable, load: RealTable):  # fmt: skip
    """Impulses and their moments about the pivots that walls get in a step, and the shares of their patches, chunk by
    chunk of pairs that are of one wall. Images have pushes of their own; what slides does so along the nearest side,
    and the tractions of what rubs act at its surface."""
    for turn in range(turns(chunks)):
        k = task(turn)
        if k < chunks:
            wall, impulse, moment = owner[k], vec3(0.0), vec3(0.0)
            for e in range(begin[k], end[k]):
                i, s = pair[e] // SIDES, pair[e] % SIDES
                given = (1.0 - mirrored[material[i]]) * p[i] * part_of_gradient(i, s, spacing, table, c)
                if ti.static(imaged):
                    given += image_push[i, s] * image_gradient[i, s]
                given *= dt * m[i] * inverse_density[i]
                if is_nearest(i, s, c):
                    given -= dt * m[i] * slide[i]
                    if ti.static(rubbed):
                        moment += dt * m[i] * inverse_density[i] * to_surface(i, s, c).cross(rub[i])
                impulse += given
                moment += arm_of(wall, x[i], t).cross(given)
                if first[wall] < first[wall + 1]:
                    add_to_patches(k, given, wall, c.side_number[i, s], x[i], c.side_distance[i, s],
                                   c.side_outward[i, s], first, patches, t, spacing, load)  # fmt: skip
            for a in ti.static(range(3)):
                load[k, a], load[k, 3 + a] = impulse[a], moment[a]


class Walls(Store):
    """All walls of a scene: where they are, and the kernels that let particles feel them."""

    name = "walls"
    built_in = True

    def __init__(self, particles: Particles, walls: list[Wall], spacing: float, table: np.ndarray,
                 friction: np.ndarray, at_surface: np.ndarray | None = None):  # fmt: skip
        """`friction` (walls, materials) are the Coulomb coefficients of each material on each wall; `at_surface`
        (materials,) is 1 for those whose friction acts at the surface of the wall, not at their particles."""
        self.particles, self.walls, self.spacing = particles, walls, spacing
        self.states = WallStates.of(walls)
        self.pivots = np.array([wall.pivot for wall in walls]).reshape(-1, 3)
        self.extents = np.array([wall.extent for wall in walls])
        self.profile = upload(table, ti.f32)
        self.friction, self.rough = friction, bool(friction.any())
        self._rubbing = upload(friction if friction.size else np.zeros((1, 1)), ti.f32)
        self._no_slip = upload(np.array([float(wall.no_slip) for wall in walls] or [0.0]), ti.f32)
        materials = max(friction.shape[1], 1)
        self.at_surface = upload(np.zeros(materials) if at_surface is None else np.asarray(at_surface, float), ti.f32)
        self._nothing_mirrored = upload(np.zeros(materials), ti.f32)
        self._no_pushes = ti.ndarray(ti.f32, (1, 1)), ti.ndarray(vec3, (1, 1))
        self.reach = REACH * spacing  # [m] up to where particles look for sides
        self.images: Any = None  # of liquids (`images.Images`), where a pressure solver has them
        self.lightness = np.zeros((len(walls), 36), np.float32)  # inverse masses (6, 6) of what is free
        self._capacity, self._good = -1, WallStates.at_rest(0)
        self.led: tuple | None = None  # where a step takes what is free: shifts (n, 3) and rotations (n, 3, 3)
        self.stopping = np.zeros((len(walls), WHOLE))  # impulses by what was put back, where walls are then
        self.loose = np.zeros(len(walls), bool)  # rigid bodies that nothing but particles acts on in this step
        self._close, self._starts = np.zeros(1, np.int32), np.zeros(len(walls) + 2, np.int32)
        self.pairs = ti.ndarray(ti.i32, 1)
        self._chunks: Any = None
        self.set_patches([[] for _ in walls])

    @functools.cached_property
    def places(self) -> TableOfWalls:
        """Where the walls are, and their surfaces."""
        return TableOfWalls(self.walls, [wall.map for wall in self.walls], self.spacing, KNOWN * self.spacing)

    @property
    def table(self) -> WallTable:
        """The same as kernels take it."""
        return self.places.table

    def set_patches(self, patches: Sequence[Sequence[WallPatch]]) -> None:
        """Lets each wall tell what acts on these parts of it (`patch_force`)."""
        counts = [len(own) for own in patches]
        rows = [patch_table(own, self.spacing, wall.planes is not None)
                for wall, own in zip(self.walls, patches, strict=True) if own]  # fmt: skip
        self._first = upload(np.cumsum([0, *counts]), ti.i32)
        self._patches = upload(np.concatenate(rows) if rows else patch_table((), self.spacing, True), ti.f32)
        self._load = np.zeros((len(self.walls), WHOLE + 3 * max(counts, default=0)))  # impulse, moment, impulses of
        for wall, count in zip(self.walls, counts, strict=True):  # patches in this step [N s, N m s]
            wall.patch_force = np.zeros((count, 3))

    def take_images(self, images: Any, reach: float) -> None:
        """Lets particles look for sides as far as images need it, `reach` in spacings."""
        self.images, self._capacity = images, -1
        self.reach = (reach if images.wanted else REACH) * self.spacing

    def upload_poses(self) -> None:
        """Tells the device where the walls are."""
        self.places.update(self.poses)

    @property
    def poses(self) -> np.ndarray:
        """(n, POSE, 3) rows of `wall_table` for each wall."""
        s = self.states
        rows = np.empty((len(self.walls), POSE, 3), np.float32)
        rows[:, PIVOT], rows[:, PLACE], rows[:, VELOCITY], rows[:, SPIN] = (
            self.pivots, self.pivots + s.shift, s.velocity, s.spin)  # fmt: skip
        rows[:, ROTATION:] = s.rotation
        return rows

    def _allocate(self) -> None:
        """Room for as many particles as their own arrays have."""
        p = self.particles
        self._capacity = p.capacity
        rows = (p.capacity if self.walls else 1, SIDES)
        self.felt = Felt(**{name: getattr(p, name) for name in OF_WALLS})
        self.sides = Sides(side_count=ti.ndarray(ti.i32, rows[0]), side_number=ti.ndarray(ti.i32, rows),
                           side_distance=ti.ndarray(ti.f32, rows), side_outward=ti.ndarray(vec3, rows),
                           side_share=ti.ndarray(ti.f32, rows))  # fmt: skip

    def sample(self, t: float) -> None:
        """Samples all walls at the particles (densities, gradients, drag), at the walls' velocities of time t."""
        p = self.particles
        self.set_velocities(t)
        if not self.walls:
            return
        if self._capacity != p.capacity:
            self._allocate()
        self._chunks = None
        self.upload_poses()
        _sample(p.n, p.x, self.reach, self.spacing, self.table, self.sides, self.felt, self.profile, p.material,
                self._rubbing, self._no_slip, self.at_surface)  # fmt: skip

    def set_velocities(self, t: float) -> None:
        """Takes the prescribed velocities at time t."""
        for k in np.flatnonzero(~self.free):
            self.walls[k].set_velocity(t)

    def find_pushes(self) -> None:
        """Finds what pressures make the walls give, while particles are where they were."""
        p = self.particles
        _find_pushes(p.n, p.p, p.wall_gradient, p.wall_push)
        if self.images:
            self.images.find_pushes()

    def feel(self, dt: float) -> None:
        """Sums up what particles have done to the walls in this step of dt [s], after `find_pushes`."""
        self._load.fill(0.0)
        begin, end, owner = self.chunks
        if not len(begin):
            return
        p, images = self.particles, self.images
        mirrored = images.mirrored if images else self._nothing_mirrored
        pushes = images.pushes if images and images.wanted else (False, *self._no_pushes)
        load = np.zeros((len(begin), self._load.shape[1]), np.float32)
        rubbed = "wall_rub" in p.schema
        _load(len(begin), begin, end, owner, self.pairs, dt, self.spacing, self.table, self.sides, self.profile, p.x,
              p.m, p.inverse_density, p.p, p.wall_slide, p.material, mirrored, *pushes, rubbed,
              p.wall_rub if rubbed else p.wall_slide, self._first, self._patches, load)  # fmt: skip
        np.add.at(self._load, owner, load)

    @property
    def chunks(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """First and last of the `pairs` of particles and sides of each chunk, and its wall; the same for a whole step.
        A pair is SIDES times the particle, and which of its sides it is."""
        p, walls = self.particles, len(self.walls)
        if self._chunks is not None:
            return self._chunks
        if not walls or not p.n:
            return (np.zeros(0, np.int32),) * 3
        start = self._starts
        with threads_for(0):
            _count_pairs(p.n, walls, self.table, self.sides, start)
        count = start[2:].copy()
        if count.sum() > self.pairs.shape[0]:
            self.pairs = ti.ndarray(ti.i32, 2 * int(count.sum()))
        with threads_for(0):
            _list_pairs(p.n, walls, self.table, self.sides, start, self.pairs)
        chunks = -(-count // CHUNK)
        owner = np.repeat(np.arange(walls, dtype=np.int32), chunks)
        place = np.arange(len(owner)) - np.repeat(np.cumsum(chunks) - chunks, chunks)
        last = np.cumsum(count)
        begin = (last - count)[owner] + CHUNK * place
        end = np.minimum(begin + CHUNK, last[owner])
        self._chunks = begin.astype(np.int32), end.astype(np.int32), owner
        return self._chunks

    def advance(self, dt: float) -> None:
        """Moves the walls, then puts back any particle that came closer than CLEARANCE."""
        p = self.particles
        for k in np.flatnonzero(~self.free):
            self.walls[k].advance(dt)
        if self.led is not None:
            self.states.shift[self.free], self.states.rotation[self.free] = self.led
        if self.walls:
            self.upload_poses()
            mark_close(p.n, dt, self.speed, p.x, p.v, p.shift, p.inverse_density, self.reach, self.spacing, self.table,
                        self.sides, p.too_close, self._close)  # fmt: skip
            self.stopping = np.zeros((len(self.walls), WHOLE))
            if self._close[0]:
                load, rounds = np.zeros(self._load.shape, np.float32), KEEP_OUT_ROUNDS if len(self.walls) > 1 else 1
                with threads_for(0):
                    keep_out(p.n, rounds, p.x, p.v, p.m, self.spacing, self.table, p.material, self._rubbing,
                              p.too_close, self._first, self._patches, self.lightness, load)  # fmt: skip
                self._load += load
                self.stopping += load[:, :WHOLE]
        self.states.force[:], self.states.torque[:] = self._load[:, :3] / dt, self._load[:, 3:WHOLE] / dt
        if self._load.shape[1] > WHOLE:
            for wall, own in zip(self.walls, self._load, strict=True):
                wall.patch_force = own[WHOLE : WHOLE + 3 * len(wall.patch_force)].reshape(-1, 3) / dt

    @property
    def impulses(self) -> np.ndarray:
        """(n, 6) what particles have given to each in the last step, and its moment about the pivot [N s, N m s]."""
        return self._load[:, :WHOLE]

    @property
    def motion(self) -> np.ndarray:
        """(n, 6) velocity and spin of each."""
        return np.concatenate([self.states.velocity, self.states.spin], axis=1)

    def touching(self) -> np.ndarray:
        """(m, 2) pairs of a particle and a wall that it sees."""
        begin, end, owner = self.chunks
        if not len(begin):
            return np.zeros((0, 2), np.int64)
        memory = host_view(self.pairs)
        pairs = (self.pairs.to_numpy() if memory is None else memory)[: int(end.max())]  # chunks follow each other
        return np.stack([pairs // SIDES, np.repeat(owner, end - begin)], axis=1).astype(np.int64)

    @property
    def free(self) -> np.ndarray:
        """(n,) which of them move as forces make them."""
        return np.array([wall.free for wall in self.walls], bool)

    @property
    def rigid(self) -> np.ndarray:
        """(n,) which of these are rigid bodies by themselves, and no links of a mechanism."""
        return np.array([wall.free and np.isfinite(wall.mass) for wall in self.walls], bool)

    def find(self, name: str | None) -> Wall | None:
        """The wall of this name, if there is one."""
        return next((wall for wall in self.walls if wall.name == name), None)

    @property
    def speed(self) -> float:
        """Bound on the speed of the surfaces of all."""
        v, w = np.linalg.norm(self.states.velocity, axis=1), np.linalg.norm(self.states.spin, axis=1)
        return float((v + w * self.extents).max(initial=0.0))

    # --- the protocol of stores -------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        return [wall.name for wall in self.walls]

    def save(self) -> dict[str, np.ndarray]:
        return {f"{wall.name}/{name}": getattr(wall, name).copy() for wall in self.walls for name in STATE}

    def restore(self, arrays: Mapping[str, np.ndarray], partly: bool = False) -> None:
        for wall in self.walls:
            for name in STATE:
                array = arrays.get(f"{wall.name}/{name}")
                if array is None or array.shape != getattr(wall, name).shape:
                    raise PliantError(f"it does not tell where the wall {wall.name!r} is")
                setattr(wall, name, array)

    def trouble(self) -> str:
        s = self.states
        speed, spin = np.linalg.norm(s.velocity, axis=1), np.linalg.norm(s.spin, axis=1)
        sound = (speed <= FASTEST) & (spin <= FASTEST_SPIN * (1 + ROUND_OFF)) & np.isfinite(s.shift).all(axis=1)
        lost = np.flatnonzero(~(sound & np.isfinite(s.rotation).all(axis=(1, 2))))
        if not len(lost):
            return ""
        return f"{self.names[lost[0]]} would move at {speed[lost[0]]:.3g} m/s and turn at {spin[lost[0]]:.3g} rad/s"

    def backup(self) -> None:
        self._good = copy.deepcopy(self.states)

    def rollback(self) -> None:
        for name in STATE:
            getattr(self.states, name)[:] = getattr(self._good, name)
