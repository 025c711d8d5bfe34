"""Walls in motion: what particles feel of them each step, what they feel of particles, and the rule that none ever
passes one.

**Forces on walls.** A wall gets the opposite of every impulse that it gives: pressures times their wall gradients; what
slides along it, by friction, viscosity and the contact of sand (`wall_slide`, all of it to the nearest wall); and what
`keep_out` stops. So the impulses of all walls and the change of momentum agree to round-off.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import taichi as ti

from pliant.boundary.distance_map import FAR, Blocks, Directory, DistanceMap, sample
from pliant.boundary.volume_map import REACH, VolumeMap, profile
from pliant.boundary.wall_patches import WHOLE, WallPatch, add_to_patches, clear_patches, patch_table
from pliant.core.backend import Ints, Reals, RealTable, Vectors, upload, vec3
from pliant.core.fields import Field
from pliant.core.particles import Particles
from pliant.core.reduce import BLOCKS, block
from pliant.core.speedups import light
from pliant.core.store import Store
from pliant.errors import PliantError

CLEARANCE = 0.25  # in spacings: half a radius. Closer than this a particle is moved back, whatever pressure says
# More where a map rounds off an edge or a corner of a body, which shows in a gradient shorter than one: at the corner
# of a box the map's distance is 0.4 where the true one is zero (0.32 is needed there, measured).
ROUNDED = 0.4
LEAST_GAP = 0.25  # in spacings: the viscous layer between particle and wall is never thinner
KEEP_OUT_ROUNDS = 2  # where two walls meet, the second round settles what the first pushed across

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
    Field("wall_rest", "real", "1", "forces on walls: wall_density by the walls that are still to be seen to"),
    Field("wall_later", "real", "1", "forces on walls: what those seen to leave of the others"),
)


# What is known of walls at the particles when forces on walls are summed up.
Felt: TypeAlias = ti.types.argpack(density=Reals, number=Ints, slide=Vectors, rest=Reals, later=Reals)

# Rows of a wall's pose table: vectors as arguments cost far more to pass than arrays.
PIVOT, PLACE, VELOCITY, SPIN, ROTATION, POSE = 0, 1, 2, 3, 4, 7

# Two walls that add a and b to a particle's density add a + b - OVERLAP a b together, because both count the part of
# the mirrored lattice behind their common edge. With this value a lattice in a right-angled edge has density 1 exactly
# (cubic spline, beta = 0.1497: the edge's row adds 0.0191), and in a corner to 0.1 %.
OVERLAP = 0.85


@ti.func
def rotation(pose: ti.template()):
    return ti.Matrix.rows([pose[ROTATION], pose[ROTATION + 1], pose[ROTATION + 2]])


@ti.func
def side_at(k: ti.i32, x: vec3, flat: ti.template(), frame: ti.template(), cell: ti.f32, spacing: ti.f32,
            beyond: ti.f32, directory: ti.template(), spline: ti.template()):  # fmt: skip
    """Distance of the k-th side of a wall from x and the gradient of that distance, both in the wall's own frame. A
    flat wall has a side for each of its planes, a point and a normal in `frame`; any other has one side, its map, which
    begins at `frame[0]`."""
    distance, gradient = 0.0, vec3(0.0)
    if ti.static(flat):
        gradient = frame[2 * k + 1]
        distance = (x - frame[2 * k]).dot(gradient)
    else:
        distance, gradient = sample(x, frame[0], cell, FAR * spacing, beyond, directory, spline)
    return distance, gradient


@ti.func
def stopped(slip: vec3, out: vec3, friction: ti.f32):
    """What keeps something that slips past a wall from entering it: the change of velocity along the wall's normal, and
    by Coulomb's law that of its sliding."""
    stop = ti.min(slip.dot(out), 0.0)
    sliding = slip - slip.dot(out) * out
    cut = ti.min(-friction * stop / ti.max(sliding.norm(), 1e-12), 1.0)
    return -stop * out, -cut * sliding


@ti.kernel
def _sample_walls(n: ti.i32, x: Vectors, wall: ti.i32, flat: ti.template(), sides: ti.i32, pose: Vectors,
                  frame: Vectors, cell: ti.f32, spacing: ti.f32, beyond: ti.f32, directory: Directory, spline: Blocks,
                  table: RealTable, material: Ints, rubbing: Reals, no_slip: ti.f32, density: Reals, gradient: Vectors,
                  flux: Reals, drag: Reals, friction: Reals, moving: Vectors, nearest: Reals, normal: Vectors,
                  number: Ints, slide: Vectors):  # fmt: skip
    """Adds one wall, the `wall`-th. Friction and velocity of several walls are averaged by the push of each."""
    for i in range(n):
        if wall == 0:
            number[i], slide[i] = -1, vec3(0.0)
            density[i], flux[i], drag[i], friction[i] = 0.0, 0.0, 0.0, 0.0
            gradient[i], moving[i], normal[i], nearest[i] = vec3(0.0), vec3(0.0), vec3(0.0), REACH * spacing
        R, arm = rotation(pose), x[i] - pose[PLACE]
        local = R.transpose() @ arm + pose[PIVOT]
        for k in range(sides):
            distance, outward = side_at(k, local, flat, frame, cell, spacing, beyond, directory, spline)
            if distance < REACH * spacing:
                beta, slope = profile(distance / spacing, table)
                g = slope / spacing * (R @ outward)
                speed = pose[VELOCITY] + pose[SPIN].cross(arm)
                if distance < nearest[i]:
                    nearest[i], normal[i], number[i] = distance, (R @ outward).normalized(), wall
                share = g.norm() / ti.max(g.norm() + gradient[i].norm(), 1e-12)
                friction[i] += share * (rubbing[material[i]] - friction[i])
                moving[i] += share * (speed - moving[i])
                # the shear (v - v_wall) / phi acts on the particle's share of wall, which is 1 / d per volume at d / 2
                share_of_wall = slope / table[0, 1] * outward.norm() / spacing
                drag[i] += no_slip * share_of_wall / ti.max(distance, LEAST_GAP * spacing)
                others, here = 1.0 - OVERLAP * density[i], 1.0 - OVERLAP * beta
                gradient[i] = here * gradient[i] + others * g
                flux[i] = here * flux[i] + others * g.dot(speed)
                density[i] += others * beta


@ti.kernel
def _keep_out(n: ti.i32, x: Vectors, v: Vectors, m: Reals, inverse_density: Reals, flat: ti.template(), sides: ti.i32,
              pose: Vectors, frame: Vectors, cell: ti.f32, spacing: ti.f32, beyond: ti.f32, directory: Directory,
              spline: Blocks, material: Ints, rubbing: Reals, patched: ti.template(), patches: RealTable,
              load: RealTable):  # fmt: skip
    """What came too close is put back. It loses the speed at which it came, and by friction a share of that at which
    it slides: the wall gets these as impulses, and its patches their shares."""
    ti.loop_config(block_dim=1)
    for b in range(BLOCKS):
        lo, hi = block(b, n)
        impulse, turn = vec3(0.0), vec3(0.0)
        if ti.static(patched):
            clear_patches(b, patches, load)
        for i in range(lo, hi):
            if inverse_density[i] > 0.0:
                R = rotation(pose)
                for k in range(sides):
                    arm = x[i] - pose[PLACE]
                    local = R.transpose() @ arm + pose[PIVOT]
                    distance, outward = side_at(k, local, flat, frame, cell, spacing, beyond, directory, spline)
                    least = (CLEARANCE + ROUNDED * ti.max(1.0 - outward.norm(), 0.0)) * spacing
                    if distance < least and outward.norm() > 0.0:
                        out = (R @ outward).normalized()
                        x[i] += (least - distance) * out
                        push, rub = stopped(v[i] - pose[VELOCITY] - pose[SPIN].cross(arm), out, rubbing[material[i]])
                        v[i] += push + rub
                        given = m[i] * (push + rub)
                        impulse -= given
                        turn -= arm.cross(given)
                        if ti.static(patched):
                            add_to_patches(b, -given, R, k, local, distance, outward, patches, flat, sides, frame,
                                           spacing, load)  # fmt: skip
        for a in ti.static(range(3)):
            load[b, a], load[b, 3 + a] = impulse[a], turn[a]


@light
@ti.kernel
def _find_pushes(n: ti.i32, p: Reals, gradient: Vectors, push: Vectors):
    for i in range(n):
        push[i] = -p[i] * gradient[i]


@ti.kernel
def _load(n: ti.i32, dt: ti.f32, last: ti.i32, wall: ti.i32, flat: ti.template(), sides: ti.i32, pose: Vectors,
          frame: Vectors, cell: ti.f32, spacing: ti.f32, beyond: ti.f32, directory: Directory, spline: Blocks,
          table: RealTable, x: Vectors, m: Reals, inverse_density: Reals, p: Reals, material: Ints, mirrored: Reals,
          c: Felt, patched: ti.template(), patches: RealTable, load: RealTable):  # fmt: skip
    """Impulse and its moment about the pivot that one wall gets in a step, and the shares of its patches. Walls are
    seen to in the reverse of the order in which `_sample_walls` has added them, which undoes the sum over walls one by
    one."""
    ti.loop_config(block_dim=1)
    for b in range(BLOCKS):
        lo, hi = block(b, n)
        impulse, turn = vec3(0.0), vec3(0.0)
        if ti.static(patched):
            clear_patches(b, patches, load)
        for i in range(lo, hi):
            if c.density[i] > 0.0:
                others, share = c.rest[i], c.later[i]
                if last == 1:
                    others, share = c.density[i], 1.0
                R, arm, gradient = rotation(pose), x[i] - pose[PLACE], vec3(0.0)
                local = R.transpose() @ arm + pose[PIVOT]
                push, nearest = m[i] * inverse_density[i] * p[i], REACH * spacing
                push *= 1.0 - mirrored[material[i]]  # images have theirs
                close, away = 0, vec3(0.0)  # the nearest side, along which things slide
                for k in range(sides):
                    side = sides - 1 - k
                    distance, outward = side_at(side, local, flat, frame, cell, spacing, beyond, directory, spline)
                    if distance < REACH * spacing:
                        beta, slope = profile(distance / spacing, table)
                        here = 1.0 - OVERLAP * beta
                        others = (others - beta) / here  # of the walls before, which this one has added to
                        part = share * (1.0 - OVERLAP * others) * slope / spacing * (R @ outward)
                        gradient += part
                        share *= here
                        if ti.static(patched):
                            add_to_patches(b, dt * push * part, R, side, local, distance, outward, patches, flat, sides,
                                           frame, spacing, load)  # fmt: skip
                            if distance < nearest:
                                nearest, close, away = distance, side, outward
                c.rest[i], c.later[i] = others, share
                given = push * gradient
                if c.number[i] == wall:
                    given -= m[i] * c.slide[i]
                    if ti.static(patched):
                        add_to_patches(b, -dt * m[i] * c.slide[i], R, close, local, nearest, away, patches, flat, sides,
                                       frame, spacing, load)  # fmt: skip
                impulse += dt * given
                turn += dt * arm.cross(given)
        for a in ti.static(range(3)):
            load[b, a], load[b, 3 + a] = impulse[a], turn[a]


@dataclasses.dataclass
class Wall:
    """One boundary body: its map or its planes, where it is and how it moves.

    `motion(t)` gives its velocity [m/s], or a pair of velocity and angular velocity [rad/s] about `pivot`.
    """

    name: str
    map: VolumeMap | None
    planes: np.ndarray | None  # (k, 2, 3): a point and the outward normal of each half-space the wall consists of
    no_slip: bool
    pivot: np.ndarray
    motion: Callable[[float], object] | None = None
    shift: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(3))
    rotation: np.ndarray = dataclasses.field(default_factory=lambda: np.eye(3))
    velocity: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(3))
    spin: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(3))
    force: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(3))  # of the last step [N],
    torque: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(3))  # and its moment about the pivot [N m]
    patch_force: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros((0, 3)))  # on each of its patches [N]
    wetting: float = 0.0  # cosine of its contact angle
    extent: float = 0.0  # largest distance of the surface from the pivot: spin times this bounds the surface speed
    mass: float = np.inf  # [kg]; that of a rigid body is finite, and its pivot is its centre of mass
    inertia: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros((3, 3)))  # about it, as built [kg m^2]
    restitution: float = 0.0  # speed after an impact over that before
    free: bool = False  # moves as forces make it: a rigid body that is neither held nor led

    def set_velocity(self, t: float) -> None:
        """Takes the prescribed velocity at time t; what nothing moves is at rest."""
        self.velocity, self.spin = rigid_velocity(np.zeros(3) if self.motion is None else self.motion(t))

    def advance(self, dt: float) -> None:
        """Moves by one step: a translation and an exact rotation about the spin axis (Rodrigues)."""
        self.shift = self.shift + dt * self.velocity
        angle = float(np.linalg.norm(self.spin)) * dt
        if angle:
            a = self.spin / np.linalg.norm(self.spin)
            K = np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])
            self.rotation = (np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K) @ self.rotation

    @property
    def speed(self) -> float:
        """Bound on the speed of its surface."""
        return float(np.linalg.norm(self.velocity) + np.linalg.norm(self.spin) * self.extent)

    @property
    def moved(self) -> bool:
        """Whether it moves, or is elsewhere than it was built."""
        return self.motion is not None or bool(self.shift.any()) or not np.array_equal(self.rotation, np.eye(3))

    def placed(self, points: np.ndarray) -> np.ndarray:
        """Points of the wall as it was built, where they are now."""
        return (points - self.pivot) @ self.rotation.T + self.pivot + self.shift

    def unplaced(self, points: np.ndarray) -> np.ndarray:
        """Points as the wall sees them that is still where it was built: the inverse of `placed`."""
        return (points - self.pivot - self.shift) @ self.rotation + self.pivot

    def pose(self) -> np.ndarray:
        """The (4, 4) matrix that takes points of the wall as it was built to where they are now."""
        matrix = np.eye(4)
        matrix[:3, :3], matrix[:3, 3] = self.rotation, self.pivot + self.shift - self.rotation @ self.pivot
        return matrix


def rigid_velocity(value: object) -> tuple[np.ndarray, np.ndarray]:
    """Velocity and angular velocity from what a user's motion function returned."""
    array = np.asarray(value, dtype=float)
    if array.shape not in ((3,), (2, 3)) or not np.isfinite(array).all():
        raise ValueError(
            f"a motion must return a finite velocity (3 numbers) or a pair (velocity, angular velocity), got {value!r}"
        )
    return (array, np.zeros(3)) if array.shape == (3,) else (array[0], array[1])


class Walls(Store):
    """All walls of a scene: where they are, and the kernels that let particles feel them."""

    name = "walls"
    built_in = True
    state = ("shift", "rotation", "velocity", "spin", "force", "torque")  # of each wall, in checkpoints

    def __init__(self, particles: Particles, walls: list[Wall], spacing: float, table: np.ndarray,
                 friction: np.ndarray):  # fmt: skip
        """`friction` (walls, materials) are the Coulomb coefficients of each material on each wall."""
        self.particles, self.walls, self.spacing = particles, walls, spacing
        self.table = ti.ndarray(ti.f32, table.shape)
        self.table.from_numpy(table.astype(np.float32))
        self.poses = [ti.ndarray(vec3, POSE) for _ in walls]
        self._uploaded: dict[str, np.ndarray] = {}
        self.arguments = [wall_arguments(w, w.map, spacing, pose) for w, pose in zip(walls, self.poses, strict=True)]
        self._good: list[tuple] = []
        self._loads = [np.zeros(WHOLE) for _ in walls]  # impulse, moment, impulses of patches in this step [N s, N m s]
        self._partial = [np.zeros((BLOCKS, WHOLE), np.float32) for _ in walls]
        self._patches: list[tuple] = [(False, upload(patch_table((), spacing, True), ti.f32)) for _ in walls]
        self._felt: tuple = (None, None)
        self.images: Any = None  # of liquids (`images.Images`), where a pressure solver has them
        self._rubbing = [upload(row, ti.f32) for row in friction]
        self.friction, self.rough = friction, bool(friction.any())
        self._nothing_mirrored = upload(np.zeros(max(friction.shape[1], 1)), ti.f32)

    def set_patches(self, number: int, patches: Sequence[WallPatch]) -> None:
        """Lets a wall, by its number, tell what acts on these parts of it (`patch_force`)."""
        table = patch_table(patches, self.spacing, self.walls[number].planes is not None)
        self._patches[number] = bool(patches), upload(table, ti.f32)
        self._partial[number] = np.zeros((BLOCKS, WHOLE + 3 * len(patches)), np.float32)
        self.walls[number].patch_force = np.zeros((len(patches), 3))

    def upload_poses(self) -> None:
        """Tells the device where the walls are; those at rest are told once."""
        for wall, pose in zip(self.walls, self.poses, strict=True):
            rows = [wall.pivot, wall.pivot + wall.shift, wall.velocity, wall.spin, *wall.rotation]
            values = np.array(rows, np.float32)
            before = self._uploaded.get(wall.name)
            if before is None or not np.array_equal(values, before):
                pose.from_numpy(values)
                self._uploaded[wall.name] = values

    def sample(self, t: float) -> None:
        """Samples all walls at the particles (densities, gradients, drag), at the walls' velocities of time t."""
        p = self.particles
        for wall in self.walls:
            wall.set_velocity(t)
        self.upload_poses()
        for k, (wall, arguments) in enumerate(zip(self.walls, self.arguments, strict=True)):
            _sample_walls(p.n, p.x, k, *arguments, self.table, p.material, self._rubbing[k],
                          float(wall.no_slip), p.wall_density, p.wall_gradient, p.wall_flux, p.wall_drag,
                          p.wall_friction, p.wall_velocity, p.wall_distance, p.wall_normal, p.wall_number,
                          p.wall_slide)  # fmt: skip

    def find_pushes(self) -> None:
        """Finds what pressures make the walls give, while particles are where they were."""
        p = self.particles
        _find_pushes(p.n, p.p, p.wall_gradient, p.wall_push)
        if self.images:
            self.images.find_pushes()

    def feel(self, dt: float) -> None:
        """Sums up what particles have done to the walls in this step of dt [s], after `find_pushes`."""
        p, last = self.particles, len(self.walls) - 1
        if self._felt[0] != p.capacity:
            self._felt = p.capacity, Felt(density=p.wall_density, number=p.wall_number, slide=p.wall_slide,
                                          rest=p.wall_rest, later=p.wall_later)  # fmt: skip
        mirrored = self.images.mirrored if self.images else self._nothing_mirrored
        for k, arguments in reversed(list(enumerate(self.arguments))):
            _load(p.n, dt, int(k == last), k, *arguments, self.table, p.x, p.m, p.inverse_density, p.p,
                  p.material, mirrored, self._felt[1], *self._patches[k], self._partial[k])  # fmt: skip
            if self.images:
                self.images.load(k, dt, self._patches[k], self._partial[k])
            self._loads[k] = self._partial[k].sum(axis=0, dtype=float)

    def advance(self, dt: float) -> None:
        """Moves the walls, then puts back any particle that came closer than CLEARANCE."""
        p = self.particles
        for wall in self.walls:
            wall.advance(dt)
        self.upload_poses()
        for _ in range(KEEP_OUT_ROUNDS if len(self.walls) > 1 else 1):
            for k, (arguments, rubbing) in enumerate(zip(self.arguments, self._rubbing, strict=True)):
                _keep_out(p.n, p.x, p.v, p.m, p.inverse_density, *arguments, p.material, rubbing, *self._patches[k],
                          self._partial[k])  # fmt: skip
                self._loads[k] += self._partial[k].sum(axis=0, dtype=float)
        for wall, load in zip(self.walls, self._loads, strict=True):
            wall.force, wall.torque = load[:3] / dt, load[3:WHOLE] / dt
            wall.patch_force = load[WHOLE:].reshape(-1, 3) / dt

    def find(self, name: str | None) -> Wall | None:
        """The wall of this name, if there is one."""
        return next((wall for wall in self.walls if wall.name == name), None)

    @property
    def speed(self) -> float:
        return max((wall.speed for wall in self.walls), default=0.0)

    # --- the protocol of stores -------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        return [wall.name for wall in self.walls]

    def save(self) -> dict[str, np.ndarray]:
        return {f"{wall.name}/{name}": getattr(wall, name) for wall in self.walls for name in self.state}

    def restore(self, arrays: Mapping[str, np.ndarray], partly: bool = False) -> None:
        for wall in self.walls:
            for name in self.state:
                array = arrays.get(f"{wall.name}/{name}")
                if array is None or array.shape != getattr(wall, name).shape:
                    raise PliantError(f"it does not tell where the wall {wall.name!r} is")
                setattr(wall, name, np.array(array, dtype=float))

    def backup(self) -> None:
        self._good = [tuple(getattr(wall, name) for name in self.state) for wall in self.walls]

    def rollback(self) -> None:
        for wall, values in zip(self.walls, self._good, strict=True):
            for name, value in zip(self.state, values, strict=True):
                setattr(wall, name, value)


def wall_arguments(wall: Wall, distances: DistanceMap | None, spacing: float, pose: ti.Ndarray) -> tuple:
    """A wall as kernels take it (flat, sides, pose, frame, cell, spacing, beyond, directory, spline): its planes, or
    its surface as a map of distances, whose nodes are half a `spacing` [m] apart."""
    if wall.planes is not None:
        frame, nothing = upload(wall.planes.reshape(-1, 3), vec3), ti.ndarray(ti.f32, (1, 1))
        return (True, len(wall.planes), pose, frame, spacing, spacing, FAR * spacing, ti.ndarray(ti.i32, (1, 1, 1)),
                nothing)  # fmt: skip
    assert distances is not None
    m, frame = distances, upload(np.array([distances.origin]), vec3)
    return False, 1, pose, frame, m.cell, spacing, m.beyond, m.directory, m.spline
