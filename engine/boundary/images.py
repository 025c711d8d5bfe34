"""Mirror images of particles in walls (prototype)."""

import numpy as np
import taichi as ti

from pliant.boundary.distance_map import Blocks, Directory
from pliant.boundary.walls import PIVOT, PLACE, SPIN, VELOCITY, Walls, rotation, side_at
from pliant.core.backend import Ints, IntTable, Reals, RealTable, Vectors, vec3
from pliant.core.neighbors import Neighbors, difference

IMAGE_REACH = 1.75  # in spacings
NEAR = 3  # sides a particle may see

VectorTable = ti.types.ndarray(dtype=vec3, ndim=2)


@ti.kernel
def _find_sides(n: ti.i32, x: Vectors, wall: ti.i32, flat: ti.template(), sides: ti.i32, pose: Vectors, frame: Vectors,
                cell: ti.f32, spacing: ti.f32, beyond: ti.f32, directory: Directory, spline: Blocks, first: ti.i32,
                near: Ints, phi: RealTable, normal: VectorTable, speed: RealTable, number: IntTable):  # fmt: skip
    for i in range(n):
        if wall == 0:
            near[i] = 0
        R, arm = rotation(pose), x[i] - pose[PLACE]
        local = R.transpose() @ arm + pose[PIVOT]
        for k in range(sides):
            distance, outward = side_at(k, local, flat, frame, cell, spacing, beyond, directory, spline)
            if distance < IMAGE_REACH * spacing and near[i] < NEAR:
                s = near[i]
                phi[i, s], normal[i, s], number[i, s] = ti.max(distance, 0.0), R @ outward, first + k
                speed[i, s] = (pose[VELOCITY] + pose[SPIN].cross(arm)).dot(R @ outward)
                near[i] = s + 1


@ti.func
def common(j: ti.i32, wanted: ti.i32, near: ti.template(), number: ti.template()):
    found = -1
    for s in range(near[j]):
        if number[j, s] == wanted:
            found = s
    return found


@ti.kernel
def _count_images(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, count: Ints, neighbor: IntTable,
                  factor: RealTable, h: ti.f32, near: Ints, phi: RealTable, number: IntTable, start: Ints, size: Ints,
                  total: Ints):  # fmt: skip
    total[0] = 0
    for i in range(n):
        found = 0
        if near[i] > 0:
            for k in range(count[i]):
                j = neighbor[i, k]
                if j != i and near[j] > 0:
                    r2 = difference(x[i], x[j], wraps, period).norm_sqr()
                    closest = 1e30
                    for s in range(near[i]):
                        t = common(j, number[i, s], near, number)
                        if t >= 0:
                            closest = ti.min(closest, phi[i, s] * phi[j, t])
                    found += ti.cast(r2 + 4.0 * closest < h * h, ti.i32)
        size[i] = found
        start[i] = 0
        if found > 0:
            start[i] = ti.atomic_add(total[0], found)


@ti.kernel
def _find_images(n: ti.i32, wraps: ti.template(), period: Vectors, x: Vectors, count: Ints, neighbor: IntTable,
                 factor: RealTable, V: Reals, w: ti.template(), f: ti.template(), h: ti.f32, sigma: ti.f32, near: Ints,
                 phi: RealTable, normal: VectorTable, speed: RealTable, number: IntTable, start: Ints, size: Ints,
                 image: Ints, E: Vectors, back: Vectors, density: Reals, gradient: Vectors, flux: Reals,
                 lopsided: Vectors, trace: Reals):  # fmt: skip
    scale = sigma / (h * h)
    for i in range(n):
        rho, b, fl, half, tr = 0.0, vec3(0.0), 0.0, vec3(0.0), 0.0
        if near[i] > 0:
            m = start[i]
            for k in range(-1, count[i]):
                j = i
                if k >= 0:
                    j = neighbor[i, k]
                if (k < 0 or j != i) and near[j] > 0:
                    dx = difference(x[i], x[j], wraps, period)
                    r2 = dx.norm_sqr()
                    here, there, hits = vec3(0.0), vec3(0.0), 0
                    for mask in range(1, 1 << near[i]):
                        R2, mine, yours, whole, moving = r2, dx, -dx, 1, 0.0
                        for s in range(near[i]):
                            if (mask >> s) & 1:
                                t = common(j, number[i, s], near, number)
                                if t < 0:
                                    whole = 0
                                else:
                                    R2 += 4.0 * phi[i, s] * phi[j, t]
                                    mine += 2.0 * phi[j, t] * normal[i, s]
                                    yours += 2.0 * phi[i, s] * normal[j, t]
                                    moving += 2.0 * phi[j, t] * speed[i, s] + 2.0 * phi[i, s] * speed[j, t]
                        if whole and R2 < h * h:
                            q = ti.sqrt(R2) / h
                            F = scale * V[j] * f(q)
                            rho += sigma * V[j] * w(q)
                            here += F * mine
                            there += F * yours
                            fl += F * moving
                            tr -= F * R2
                            hits = 1
                    half += here
                    b += here
                    if k < 0:
                        b += there
                    else:
                        if hits and m < start[i] + size[i]:
                            image[m], E[m], back[m] = j, here, there
                            m += 1
            for l in range(m, start[i] + size[i]):
                image[l], E[l], back[l] = i, vec3(0.0), vec3(0.0)
        density[i], gradient[i], flux[i], lopsided[i], trace[i] = rho, b, fl, half, tr


class Images:
    def __init__(self, neighbors: Neighbors, walls: Walls):
        self.neighbors, self.walls = neighbors, walls
        self.capacity, self.room = -1, 1024
        self.total = np.zeros(1, np.int32)
        self.allocate()

    def allocate(self):
        self.image = ti.ndarray(ti.i32, self.room)
        self.E, self.back = ti.ndarray(vec3, self.room), ti.ndarray(vec3, self.room)

    def update(self):
        p, nb = self.walls.particles, self.neighbors
        if self.capacity != p.capacity:
            c = self.capacity = p.capacity
            self.near, self.start, self.size = (ti.ndarray(ti.i32, c) for _ in range(3))
            self.number = ti.ndarray(ti.i32, (c, NEAR))
            self.phi, self.speed = ti.ndarray(ti.f32, (c, NEAR)), ti.ndarray(ti.f32, (c, NEAR))
            self.normal = ti.ndarray(vec3, (c, NEAR))
            self.lopsided, self.trace = ti.ndarray(vec3, c), ti.ndarray(ti.f32, c)
            self.near.fill(0)
        first = 0
        for k, arguments in enumerate(self.walls.arguments):
            _find_sides(p.n, p.x, k, *arguments, first, self.near, self.phi, self.normal, self.speed, self.number)
            first += arguments[1]
        _count_images(p.n, *nb.pairs, nb.h, self.near, self.phi, self.number, self.start, self.size, self.total)
        if self.total[0] > self.room:
            self.room = int(1.5 * self.total[0])
            self.allocate()
        _find_images(p.n, *nb.pairs, p.V, nb.smoothing.w, nb.smoothing.f, nb.h, nb.sigma, self.near, self.phi,
                     self.normal, self.speed, self.number, self.start, self.size, self.image, self.E, self.back,
                     p.wall_density, p.wall_gradient, p.wall_flux, self.lopsided, self.trace)

    @property
    def rows(self):
        return (self.start, self.size, self.image, self.E, self.back)
