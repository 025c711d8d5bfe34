"""Patches of walls: which share of the force of a particle on a wall acts on a flat part of that wall.

A particle of spacing d pushes on a square of d x d of the wall around its foot, the point of the wall nearest to it.
The share of that square in a patch is its share of the force, so that a lattice of particles at pressure p gives p
times the area for patches of any size and place, also below that of a particle, and nothing jumps when a particle
passes an edge. With L(v, c) the length of [v - d/2, v + d/2] & [-c, c], the square around (u, v) has the share

    rectangle of half sides a, b:  L(u, a) L(v, b) / d^2,
    disc of radius R:              integral of L(v, sqrt(R^2 - s^2)) ds over [u - d/2, u + d/2] & [-R, R],  / d^2.

Where another side of the same wall stands closer than d/2, the square ends there: patches that tile a box add up to the
force on it.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
import taichi as ti

from pliant.boundary.wall_table import is_plane, rotation, side_at, to_wall
from pliant.core.backend import vec3, vec4

# Columns of the table of patches: vectors, then numbers.
CENTER, FIRST, SECOND, NORMAL, HALF, RADIUS, DEPTH, COLUMNS = 0, 3, 6, 9, 12, 14, 15, 16
WHOLE = 6  # columns of a table of loads that belong to the whole wall: its impulse and the moment of that
FACING = 0.9  # cosine: a patch takes all of what is pressed against its own side of the wall,
ASIDE = 0.2  # and from this on, in the edges of a map, the component along its normal
BULGE = 0.42  # depth over half the width of a cap of a sphere that is cut off where it faces aside by 45 degrees
ON_WALL = 0.5  # in spacings: how far a foot may be off the plane of a patch on a flat wall
STRIPS = 8  # into which the part of a square in a disc is cut
ALONG = 0.99  # cosine: sides of a wall cut squares short whose axes they face


@dataclasses.dataclass(frozen=True)
class WallPatch:
    """A flat part of a wall, in the frame of the wall as it was built."""

    center: np.ndarray  # [m]
    axes: np.ndarray  # (3, 3) two directions in its plane, and its normal away from the wall
    half: tuple[float, float]  # how far it reaches along both directions, to either side [m]
    radius: float  # of a disc [m], 0 for a rectangle
    area: float  # [m^2]

    def row(self, spacing: float, flat: bool) -> np.ndarray:
        """It as kernels take it."""
        depth = ON_WALL * spacing + (0.0 if flat else BULGE * max(self.half))
        return np.array([*self.center, *self.axes.ravel(), *self.half, self.radius, depth], np.float32)


def patch_table(patches: Sequence[WallPatch], spacing: float, flat: bool) -> np.ndarray:
    """(n, COLUMNS) the patches of one wall; one row of zeros if there are none."""
    return np.array([patch.row(spacing, flat) for patch in patches] or [np.zeros(COLUMNS)], np.float32)


@ti.func
def vector_at(table: ti.template(), q: ti.i32, column: ti.template()):
    return vec3(table[q, column], table[q, column + 1], table[q, column + 2])


@ti.func
def overlap(u: ti.f32, low: ti.f32, high: ti.f32, half: ti.f32):
    """Share of the interval from u - low to u + high that lies within -half to half."""
    return ti.max(ti.min(u + high, half) - ti.max(u - low, -half), 0.0) / ti.max(low + high, 1e-12)


@ti.func
def is_on(table: ti.template(), q: ti.i32, foot: vec3, depth: ti.f32, spacing: ti.f32):
    """Whether a foot may lie on a patch, not further than `depth` from its plane, and where in its plane."""
    way = foot - vector_at(table, q, CENTER)
    u, v = way.dot(vector_at(table, q, FIRST)), way.dot(vector_at(table, q, SECOND))
    near = ti.max(ti.abs(u) - table[q, HALF], ti.abs(v) - table[q, HALF + 1]) < 0.5 * spacing
    return near and ti.abs(way.dot(vector_at(table, q, NORMAL))) < depth, u, v


@ti.func
def share_of(table: ti.template(), q: ti.i32, u: ti.f32, v: ti.f32, room: ti.template()):
    """The share of the square around (u, v) that lies in a patch; `room` is how far the square reaches along both axes,
    to either side."""
    found, R = 0.0, table[q, RADIUS]
    if R > 0.0:  # by the midpoint rule over s = R sin(angle), in which the chords are smooth
        first = ti.asin(ti.min(ti.max((u - room[0]) / R, -1.0), 1.0))
        last = ti.asin(ti.min(ti.max((u + room[1]) / R, -1.0), 1.0))
        for k in range(STRIPS):
            chord = R * ti.cos(first + (last - first) * (k + 0.5) / STRIPS)
            found += overlap(v, room[2], room[3], chord) * chord
        found *= (last - first) / STRIPS / ti.max(room[0] + room[1], 1e-12)
    else:
        found = overlap(u, room[0], room[1], table[q, HALF]) * overlap(v, room[2], room[3], table[q, HALF + 1])
    return found


@ti.func
def square_around(side: ti.i32, wall: ti.i32, x: vec3, q: ti.i32, table: ti.template(), t: ti.template(),
                  spacing: ti.f32):  # fmt: skip
    """How far the square of a particle at x reaches along the axes of a patch, to either side: d/2, or to another side
    of the same wall."""
    room = vec4(0.5 * spacing)
    for j in range(t.side_begin[wall], t.side_begin[wall + 1]):
        if j != side:  # so it is flat: there is one map only
            distance, outward = side_at(j, x, t)
            if distance < 0.5 * spacing:
                for axis in ti.static(range(2)):
                    facing = outward.dot(rotation(wall, t) @ vector_at(table, q, FIRST + 3 * axis))
                    if facing > ALONG:
                        room[2 * axis] = ti.min(room[2 * axis], ti.max(distance, 0.0))
                    if facing < -ALONG:
                        room[2 * axis + 1] = ti.min(room[2 * axis + 1], ti.max(distance, 0.0))
    return room


@ti.func
def add_to_patches(row: ti.i32, given: vec3, wall: ti.i32, side: ti.i32, x: vec3, distance: ti.f32, outward: vec3,
                   first: ti.template(), table: ti.template(), t: ti.template(), spacing: ti.f32,
                   load: ti.template()):  # fmt: skip
    """Adds their shares of an impulse, given at x to the side of a wall at that distance, to the patches of this wall:
    three columns for each behind those of the whole wall. The patches of wall k begin at first[k] in their table."""
    out = outward / ti.max(outward.norm(), 1e-6)
    for q in range(first[wall], first[wall + 1]):
        n = rotation(wall, t) @ vector_at(table, q, NORMAL)
        facing = out.dot(n)
        if facing > ti.select(is_plane(side, t), FACING, ASIDE):
            foot, depth, part = x - distance * out, table[q, DEPTH], given
            if facing < FACING:  # in an edge, which a map makes round: each of its sides gets what points at it
                foot, depth, part = x, depth + spacing, given.dot(n) * n
            on, u, v = is_on(table, q, to_wall(wall, foot, t), depth, spacing)
            if on:
                share = share_of(table, q, u, v, square_around(side, wall, x, q, table, t, spacing))
                for a in ti.static(range(3)):
                    column = WHOLE + 3 * (q - first[wall]) + a
                    load[row, column] = load[row, column] + share * part[a]
