"""Mirror images: walls as liquids see them.

To a plane wall at the distances phi_i and phi_j of two particles, the mirror image of j is at the distance R from i,

    R^2 = |x_ij|^2 + 4 phi_i phi_j,    wall density of i = sum_j V_j W(R),

j = i included. A lattice that reaches up to the wall then has density 1 next to it, as if it went on behind. The sum
is a potential of pairs. Its gradients with respect to i and j,

    E_ij = V_j W'(R) / R (x_ij + 2 phi_j grad phi_i),    B_ij = V_j W'(R) / R (-x_ij + 2 phi_i grad phi_j),

are what the pressure system needs (`solvers.pressure.system`); it stays symmetric, since V_i E_ij = V_j B_ji. Along the
wall they are those of one more neighbor: what is next to a side wall is carried by the pressure like all the rest. A
wall that depends on the distance alone, as that of `volume_map`, gives no such support: the first column in a tank
lacked a fifth of it, sank, and swung along the wall at twice the frequency of the waves.

Where sides meet, a particle has images in each of them and in all their combinations, for which the terms
4 phi_i phi_j add up: in a right-angled edge or corner this is exact. At other angles such an image counts sin^2 of the
angle, so that opposite sides have none in common. At curved walls phi is the distance of the map, and each particle has
its own plane. An image there counts 2 n_i . n_j, within 0 and 1: what is around a corner has none here.

In a fluid that has moved, first layers are no lattice. With phi as it is, their pressure would be 3 % of that at the
floor too high, as in `volume_map`, so that d/2 + STEEP (phi - d/2) counts in its place.

Maps round off the edges of obstacles: there a particle at the least distance that `walls` allows may be inside. So each
side of a map that is closer than STOP adds 1/2 STOPPING ((STOP d - phi) / d)^2 to the density, which keeps them off.

Only liquids see images (`mirrored`), those of all particles; all else has the walls of `volume_map`.

**Forces on walls.** Of what the pressures of a pair do, the part along x_ij is between the two. The rest comes from the
wall: to i, -V_i (p_i + p_j) V_j W'(R) / R 2 phi_j grad phi_i.
"""

import weakref
from typing import TypeAlias

import numpy as np
import taichi as ti

from pliant.boundary.keep_out import CLEARANCE
from pliant.boundary.volume_map import KNOWN
from pliant.boundary.wall_sides import Sides
from pliant.boundary.wall_table import NUMBERS, PLACE, POSE, WallTable, is_plane, velocity_of, wall_of
from pliant.boundary.walls import Walls
from pliant.core.backend import Ints, IntTable, Points, Reals, RealTable, Spans, Vectors, VectorTable, vec3, vec4
from pliant.core.fields import Field
from pliant.core.neighbors import Neighbors, difference, difference_of_points
from pliant.core.smoothing import SPACINGS_PER_SUPPORT
from pliant.core.speedups import light

STEEP = 1.06  # see above
IMAGE_REACH = KNOWN  # in spacings: images of what is further away add 1e-4 at most to a first layer at d/2
STOP, STOPPING = 0.45, 30.0  # in spacings, and 1: what keeps particles off maps, see above
UNSEEN = 1e9  # in spacings: the distance where there is no side
START_ROOM = 4096  # pairs of particles and images
GROWTH = 1.5  # of the room, beyond what is needed

FIELDS = (
    Field("image_gradient", "vector", "1/m", "gradient of wall_density with respect to the particle itself"),
    Field("image_lopsided", "vector", "1/m", "sum of the gradients of images: sum_j E_ij"),
    Field("image_trace", "real", "1", "-sum_j V_j W'(R) R: what images add to the trace of sum_j G_ij x_ij^T"),
)

# Pairs of a particle i and the image of another, j: `image_count[i]` entries from `image_start[i]` on. Who j is, its
# place among the neighbors of i, E_ij (0 if pressures of j do not act on i), B_ij (0 if j adds nothing to i's density),
# and V_j W'(R) / R 2 phi_j if i sees one side.
Rows: TypeAlias = ti.types.argpack(image_start=Ints, image_count=Ints, image_of=Ints, image_slot=Ints, image_E=Vectors,
                                   image_B=Vectors, image_far=Reals)  # fmt: skip


# The sides that particles see, as images have them: where the particle is, and the least of its distances; what it has
# of its own image, if it sees one side; of each side, its number, distance [m] and gradient (both stretched by STEEP),
# the speed of the wall along it [m/s], how far inside STOP it is, in spacings, and what the wall takes along it.
Mirrors: TypeAlias = ti.types.argpack(seen=Ints, mirror_number=IntTable, mirror_near=Points, mirror_own=Reals,
                                      mirror_phi=RealTable, mirror_gradient=VectorTable, mirror_speed=RealTable,
                                      mirror_stop=RealTable, mirror_push=RealTable)  # fmt: skip


@light
@ti.kernel
def _mirror_sides(n: ti.i32, x: Vectors, spacing: ti.f32, t: WallTable, sides: Sides, c: Mirrors):
    """Distances and gradients of the sides that particles see, stretched by STEEP."""
    for i in range(n):
        near = UNSEEN * spacing
        for s in range(c.seen[i]):
            side, distance = sides.side_number[i, s], sides.side_distance[i, s]
            gradient = STEEP * sides.side_outward[i, s]
            phi = 0.5 * spacing + STEEP * (ti.max(distance, CLEARANCE * spacing) - 0.5 * spacing)
            near = ti.min(near, phi)
            c.mirror_phi[i, s], c.mirror_gradient[i, s] = phi, gradient
            c.mirror_stop[i, s] = ti.select(is_plane(side, t), 0.0, ti.max(STOP - distance / spacing, 0.0))
            c.mirror_speed[i, s] = gradient.dot(velocity_of(wall_of(side, t), x[i], t))
        c.mirror_near[i] = vec4(x[i], near)


@ti.func
def common(j: ti.i32, number: ti.i32, c: ti.template()):
    """Which of the sides that j sees has this number; -1 if none."""
    found = -1
    for s in range(c.seen[j]):
        if c.mirror_number[j, s] == number:
            found = s
    return found


@ti.func
def right_angled(i: ti.i32, s: ti.i32, t: ti.i32, j: ti.i32, u: ti.i32, v: ti.i32, c: ti.template()):
    """How much an image in two sides counts: s and t of those that i sees, u and v of those that j sees."""
    result = 0.0
    if v >= 0:
        here = c.mirror_gradient[i, s].dot(c.mirror_gradient[i, t]) / STEEP**2
        there = c.mirror_gradient[j, u].dot(c.mirror_gradient[j, v]) / STEEP**2
        result = ti.min(ti.max(1.0 - here * there, 0.0), 1.0)
    return result


@ti.func
def mirror(i: ti.i32, j: ti.i32, dx: vec3, chosen: ti.i32, c: ti.template()):
    """The image of j in a set of the sides that i sees, one bit each: R^2, how much it counts, R times the gradients of
    R with respect to i and j, and R dR/dt by the motion of the walls."""
    R2, weight, here, there, moving = dx.norm_sqr(), 1.0, dx, -dx, 0.0
    for s in range(c.seen[i]):
        if (chosen >> s) & 1:
            t = common(j, c.mirror_number[i, s], c)
            if t < 0:
                weight = 0.0
            else:
                near, far, n = 2.0 * c.mirror_phi[i, s], 2.0 * c.mirror_phi[j, t], c.mirror_gradient[i, s] / STEEP
                R2 += near * far
                here += far * c.mirror_gradient[i, s]
                there += near * c.mirror_gradient[j, t]
                moving += far * c.mirror_speed[i, s] + near * c.mirror_speed[j, t]
                weight *= ti.min(ti.max(2.0 * n.dot(c.mirror_gradient[j, t]) / STEEP, 0.0), 1.0)
                for other in range(s):
                    if (chosen >> other) & 1:
                        weight *= right_angled(i, s, other, j, t, common(j, c.mirror_number[i, other], c), c)
    return R2, weight, here, there, moving, 0.0


@ti.func
def stopping(i: ti.i32, s: ti.i32, h: ti.f32, c: ti.template()):
    """What stops particles at a side, in its gradient there."""
    return -STOPPING * c.mirror_stop[i, s] * SPACINGS_PER_SUPPORT / h / STEEP


@ti.func
def mirror_in_one(i: ti.i32, j: ti.i32, dx: vec3, c: ti.template()):
    """`mirror` for a particle i that sees one side, as most do that see any: to the same bits, and faster. Last comes
    2 phi_j."""
    R2, weight, here, there, moving, far = dx.norm_sqr(), 0.0, dx, -dx, 0.0, 0.0
    t = common(j, c.mirror_number[i, 0], c)
    if t >= 0:
        near = 2.0 * c.mirror_phi[i, 0]
        far = 2.0 * c.mirror_phi[j, t]
        own, other = c.mirror_gradient[i, 0], c.mirror_gradient[j, t]
        R2 += near * far
        here += far * own
        there += near * other
        moving = far * c.mirror_speed[i, 0] + near * c.mirror_speed[j, t]
        weight = ti.min(ti.max(2.0 * (own / STEEP).dot(other) / STEEP, 0.0), 1.0)
    return R2, weight, here, there, moving, far


@ti.func
def list_images(i: ti.i32, start: ti.i32, h: ti.f32, wraps: ti.template(), period: ti.template(), span: ti.template(),
                neighbor: ti.template(), c: ti.template(), rows: ti.template()):  # fmt: skip
    """Notes the neighbors of which i may have an image in reach, by the nearest side of each, from `start` on; returns
    where they end. Without a branch, as `core.neighbors`."""
    end, own = start, c.mirror_near[i]
    for k in range(span[i][0], span[i][1]):
        j = neighbor[k]
        other = c.mirror_near[j]
        dx = difference_of_points(own, other, wraps, period)
        rows.image_of[end], rows.image_slot[end] = j, k
        R2 = dx[0] * dx[0] + dx[1] * dx[1] + dx[2] * dx[2] + 4.0 * own[3] * other[3]
        end += ti.cast(h * h > R2, ti.i32)
    return end


@ti.kernel
def _find_images(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
                 factor: Reals, V: Reals, w: ti.template(), f: ti.template(), h: ti.f32, sigma: ti.f32,
                 material: Ints, mirrored: Reals, c: Mirrors, rows: Rows, wall_gradient: Vectors, density: Reals,
                 flux: Reals, gradient: Vectors, lopsided: Vectors, trace: Reals, used: Ints):  # fmt: skip
    """Pairs with images, and what they add to densities and gradients. Where the entries of a particle stand depends on
    threads; what they are does not. If `used` exceeds the room there is, entries are missing."""
    scale = sigma / (h * h)
    used[0] = 0
    for i in range(n):
        own, start, end = mirrored[material[i]] > 0.0, 0, 0
        if c.seen[i] > 0:
            wanted = span[i][1] - span[i][0] + 1
            start = ti.atomic_add(used[0], wanted)
            end = start
            if start + wanted <= rows.image_of.shape[0]:
                end = list_images(i, start, h, wraps, period, span, neighbor, c, rows)
        entry = start
        rho, rate, b, total, R2_total = 0.0, 0.0, vec3(0.0), vec3(0.0), 0.0
        for at in range(start - ti.cast(c.seen[i] > 0, ti.i32), end):  # itself first
            j, slot = i, 0
            if at >= start:
                j, slot = rows.image_of[at], rows.image_slot[at]
            dx, E, B, pull = difference(x[i], x[j], wraps, period), vec3(0.0), vec3(0.0), 0.0
            for chosen in range(1, 1 << c.seen[i]):
                R2, weight, here, there, moving, far = mirror_in_one(i, j, dx, c)
                if c.seen[i] > 1:
                    R2, weight, here, there, moving, far = mirror(i, j, dx, chosen, c)
                if weight > 0.0 and h * h > R2:
                    q = ti.sqrt(R2) / h
                    F = weight * scale * V[j] * f(q)
                    E += F * here
                    B += F * there
                    rho += weight * sigma * V[j] * w(q)
                    rate += F * moving
                    R2_total -= F * R2
                    pull += F * far
            total += E
            b += E
            if at < start:
                b += B
                c.mirror_own[i] = pull
            elif E.norm_sqr() > 0.0:
                rows.image_of[entry], rows.image_slot[entry] = j, slot
                rows.image_E[entry] = ti.select(mirrored[material[j]] > 0.0, 1.0, 0.0) * E
                rows.image_B[entry] = ti.select(own, 1.0, 0.0) * B
                rows.image_far[entry] = pull
                entry += 1
        for s in range(c.seen[i]):
            slope = stopping(i, s, h, c)
            rho += 0.5 * STOPPING * c.mirror_stop[i, s] ** 2
            rate += slope * c.mirror_speed[i, s]
            b += slope * c.mirror_gradient[i, s]
        rows.image_start[i], rows.image_count[i] = start, entry - start
        lopsided[i], trace[i], gradient[i] = total, R2_total, wall_gradient[i]
        if own:
            density[i], flux[i], gradient[i] = rho, rate, b


@ti.func
def add_pushes(i: ti.i32, wraps: ti.template(), period: ti.template(), x: ti.template(), V: ti.template(),
               f: ti.template(), h: ti.f32, scale: ti.f32, material: ti.template(), mirrored: ti.template(),
               p: ti.template(), c: ti.template(), rows: ti.template()):  # fmt: skip
    """Adds to what walls take of a particle that sees several sides."""
    start = rows.image_start[i]
    for k in range(start - 1, start + rows.image_count[i]):
        j = i
        if k >= start:
            j = rows.image_of[k]
        dx = difference(x[i], x[j], wraps, period)
        pressure = mirrored[material[i]] * p[i] + mirrored[material[j]] * p[j]
        for chosen in range(1, 1 << c.seen[i]):
            R2, weight, here, there, moving, far = mirror(i, j, dx, chosen, c)
            if weight > 0.0 and h * h > R2:
                F = weight * scale * V[j] * f(ti.sqrt(R2) / h)
                for s in range(c.seen[i]):
                    if (chosen >> s) & 1:
                        t = common(j, c.mirror_number[i, s], c)
                        c.mirror_push[i, s] = c.mirror_push[i, s] + pressure * F * 2.0 * c.mirror_phi[j, t]


@ti.kernel
def _find_pushes(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, span: Spans, neighbor: Ints,
                 factor: Reals, V: Reals, f: ti.template(), h: ti.f32, sigma: ti.f32, material: Ints,
                 mirrored: Reals, p: Reals, c: Mirrors, rows: Rows, total: Vectors):  # fmt: skip
    """What walls take along the gradients of their distances, per volume: sum_j (p_i + p_j) V_j W'(R) / R 2 phi_j; and
    the total that they give, in place of what `walls` says of liquids."""
    scale = sigma / (h * h)
    for i in range(n):
        if mirrored[material[i]] > 0.0:
            total[i] = vec3(0.0)
        for s in range(c.seen[i]):
            c.mirror_push[i, s] = mirrored[material[i]] * p[i] * stopping(i, s, h, c)
        if c.seen[i] == 1:
            own, start = mirrored[material[i]] * p[i], rows.image_start[i]
            push = 2.0 * own * c.mirror_own[i]
            for k in range(start, start + rows.image_count[i]):
                j = rows.image_of[k]
                push += (own + mirrored[material[j]] * p[j]) * rows.image_far[k]
            c.mirror_push[i, 0] = c.mirror_push[i, 0] + push
        elif c.seen[i] > 1:
            add_pushes(i, wraps, period, x, V, f, h, scale, material, mirrored, p, c, rows)
        for s in range(c.seen[i]):
            total[i] = total[i] - c.mirror_push[i, s] * c.mirror_gradient[i, s]


@ti.kernel
def _find_levers(count: ti.i32, touched: Ints, wraps: ti.template(), period: Vectors, x: Vectors, V: Reals,
                 f: ti.template(), h: ti.f32, sigma: ti.f32, material: Ints, mirrored: Reals, pose: Vectors,
                 numbers: Ints, c: Mirrors, rows: Rows, linear: VectorTable, angular: VectorTable):  # fmt: skip
    """How densities by images depend on where walls are (`solvers.rigid.levers`). `pose` and `numbers` are of the table
    of walls, which is too much for one kernel."""
    scale = sigma / (h * h)
    for e in range(count):
        i = touched[e]
        if mirrored[material[i]] > 0.0:
            for s in range(c.seen[i]):
                l, wall = stopping(i, s, h, c) * c.mirror_gradient[i, s], numbers[NUMBERS * c.mirror_number[i, s]]
                linear[i, s], angular[i, s] = l, (x[i] - pose[POSE * wall + PLACE]).cross(l)
            start = rows.image_start[i]
            for k in range(start - 1, start + rows.image_count[i]):
                j = i
                if k >= start:
                    j = rows.image_of[k]
                dx = difference(x[i], x[j], wraps, period)
                for chosen in range(1, 1 << c.seen[i]):
                    R2, weight, here, there, moving, far = mirror(i, j, dx, chosen, c)
                    if weight > 0.0 and h * h > R2:
                        F = weight * scale * V[j] * f(ti.sqrt(R2) / h)
                        for s in range(c.seen[i]):
                            if (chosen >> s) & 1:
                                s_j = common(j, c.mirror_number[i, s], c)
                                arm = x[i] - pose[POSE * numbers[NUMBERS * c.mirror_number[i, s]] + PLACE]
                                own = 2.0 * F * c.mirror_phi[j, s_j] * c.mirror_gradient[i, s]
                                other = 2.0 * F * c.mirror_phi[i, s] * c.mirror_gradient[j, s_j]
                                linear[i, s] = linear[i, s] + own + other
                                angular[i, s] = angular[i, s] + arm.cross(own) + (arm - dx).cross(other)


@light
@ti.kernel
def _half_space(n: ti.i32, b: Vectors, distance: Reals, lopsided: Vectors, trace: Reals):
    """What images would add, by the walls of `volume_map`: half of b is what a lattice that went on would add."""
    for i in range(n):
        lopsided[i], trace[i] = 0.5 * b[i], b[i].norm() * distance[i]


class Images:
    """The images of all particles in all walls. `arrays` is what the pressure system takes, and `rows` the same in one
    piece."""

    def __init__(self, walls: Walls, neighbors: Neighbors, mirrored: ti.Ndarray, wanted: bool):
        """`mirrored` is 1 for materials that see images, and `wanted` whether any does."""
        # Walls hold their images; if these held the walls, both would stay until the garbage collector comes.
        self.walls: Walls = weakref.proxy(walls)
        self.neighbors, self.mirrored = neighbors, mirrored
        self.wanted = wanted and bool(walls.walls)
        self.capacity, self.room, self._used = -1, START_ROOM, np.zeros(1, np.int32)
        walls.take_images(self, IMAGE_REACH)
        self._mirrors: tuple = (None, None)
        self._allocate()

    def _allocate(self) -> None:
        """Room for as many particles as their own arrays have, and for the pairs."""
        particles = self.walls.particles
        if self.capacity != particles.capacity:
            self.capacity = capacity = particles.capacity
            self._start, self._size = ti.ndarray(ti.i32, capacity), ti.ndarray(ti.i32, capacity)
            self._start.fill(0)
            self._size.fill(0)
        self.arrays = {"image_start": self._start, "image_count": self._size}
        for name, kind in (("image_of", ti.i32), ("image_slot", ti.i32), ("image_E", vec3), ("image_B", vec3)):
            self.arrays[name] = ti.ndarray(kind, self.room)
        self.rows = Rows(**self.arrays, image_far=ti.ndarray(ti.f32, self.room))

    @property
    def sides(self) -> Mirrors:
        """The sides that particles see; made anew when the walls have made theirs."""
        sides = self.walls.sides
        if self._mirrors[0] is not sides:
            rows = sides["side_number"].shape
            table = {f"mirror_{name}": ti.ndarray(ti.f32, rows) for name in ("phi", "speed", "stop", "push")}
            made = Mirrors(seen=sides["side_count"], mirror_number=sides["side_number"],
                           mirror_near=ti.ndarray(vec4, rows[0]), mirror_own=ti.ndarray(ti.f32, rows[0]),
                           mirror_gradient=ti.ndarray(vec3, rows), **table)  # fmt: skip
            self._mirrors = sides, made
        return self._mirrors[1]

    @property
    def pushes(self) -> tuple:
        """What walls take, as they sum it up: whether there is any, and of each side of each particle how much along
        which gradient."""
        return True, self.sides["mirror_push"], self.sides["mirror_gradient"]

    @property
    def gradient(self) -> ti.Ndarray:
        """Gradient of the walls' density with respect to each particle itself."""
        p = self.walls.particles
        return p.image_gradient if self.wanted else p.wall_gradient

    def update(self) -> None:
        """Finds the images, after neighbors and walls are known."""
        p, near = self.walls.particles, self.neighbors
        if self.capacity != p.capacity:
            self._allocate()
        if not self.wanted:
            _half_space(p.n, p.wall_gradient, p.wall_distance, p.image_lopsided, p.image_trace)
            return
        _mirror_sides(p.n, p.x, self.walls.spacing, self.walls.table, self.walls.sides, self.sides)
        s = near.smoothing
        while True:
            _find_images(p.n, *near.pairs, p.V, s.w, s.f, near.h, near.sigma, p.material, self.mirrored, self.sides,
                         self.rows, p.wall_gradient, p.wall_density, p.wall_flux, p.image_gradient, p.image_lopsided,
                         p.image_trace, self._used)  # fmt: skip
            if self._used[0] <= self.room:
                return
            self.room = int(GROWTH * self._used[0])
            self._allocate()

    def find_pushes(self) -> None:
        """What pressures make the walls give."""
        p, near = self.walls.particles, self.neighbors
        if self.wanted:
            _find_pushes(p.n, *near.pairs, p.V, near.smoothing.f, near.h, near.sigma, p.material, self.mirrored, p.p,
                         self.sides, self.rows, p.wall_push)  # fmt: skip

    def find_levers(self, touched: ti.Ndarray, count: int, linear: ti.Ndarray, angular: ti.Ndarray) -> None:
        """How the densities of liquids among those who are touched depend on where walls are."""
        p, near = self.walls.particles, self.neighbors
        if self.wanted:
            _find_levers(count, touched, near.wraps, near.period, p.x, p.V, near.smoothing.f, near.h, near.sigma,
                         p.material, self.mirrored, *self.walls.places.poses_and_numbers, self.sides, self.rows, linear,
                         angular)  # fmt: skip
