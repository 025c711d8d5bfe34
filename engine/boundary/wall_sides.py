"""The sides of walls that a particle sees: which, how far away, and what they add together."""

from typing import TypeAlias

import taichi as ti

from pliant.boundary.volume_map import REACH, profile
from pliant.boundary.wall_table import candidate, candidates, side_at, within
from pliant.core.backend import Ints, IntTable, RealTable, VectorTable, vec3

SIDES = 4  # that a particle sees: the nearest of them
TINY = 1e-12  # [m] gradients below this have no direction

# Two walls that add a and b to a particle's density add a + b - OVERLAP a b together, because both count the part of
# the mirrored lattice behind their common edge. With this value a lattice in a right-angled edge has density 1 exactly
# (cubic spline, beta = 0.1497: the edge's row adds 0.0191), and in a corner to 0.1 %.
OVERLAP = 0.85

# The sides that particles see: how many; of each, its number, its distance [m] and the gradient of that, and its share
# in the friction and velocity of the walls.
Sides: TypeAlias = ti.types.argpack(side_count=Ints, side_number=IntTable, side_distance=RealTable,
                                    side_outward=VectorTable, side_share=RealTable)  # fmt: skip


@ti.func
def _place_for(i: ti.i32, distance: ti.f32, c: ti.template()):
    """Where to note one more side: behind the others, or in place of the farthest; -1 if that is nearer."""
    place = c.side_count[i]
    if place == SIDES:
        place = 0
        for s in range(1, SIDES):
            if c.side_distance[i, s] > c.side_distance[i, place]:
                place = s
        if c.side_distance[i, place] <= distance:
            place = -1
    return place


@ti.func
def find_sides(i: ti.i32, x: vec3, reach: ti.f32, t: ti.template(), c: ti.template()):
    """Notes the sides within reach."""
    c.side_count[i] = 0
    count, offset = candidates(x, t)
    for k in range(count):
        wall = candidate(k, offset, t)
        if within(wall, x, reach, t):
            for side in range(t.side_begin[wall], t.side_begin[wall + 1]):
                distance, outward = side_at(side, x, t)
                if distance < reach:
                    s = _place_for(i, distance, c)
                    if s >= 0:
                        c.side_count[i] = ti.max(c.side_count[i], s + 1)
                        c.side_number[i, s], c.side_distance[i, s], c.side_outward[i, s] = side, distance, outward


@ti.func
def to_surface(i: ti.i32, s: ti.i32, c: ti.template()):
    """From a particle to the surface of a side that it sees."""
    outward = c.side_outward[i, s]
    return -c.side_distance[i, s] / ti.max(outward.norm(), TINY) * outward


@ti.func
def part_of_gradient(i: ti.i32, s: ti.i32, spacing: ti.f32, table: ti.template(), c: ti.template()):
    """What one of the sides that a particle sees has in `wall_gradient`: beta' grad phi, as far as others leave it."""
    part = vec3(0.0)
    if c.side_distance[i, s] < REACH * spacing:
        part = profile(c.side_distance[i, s] / spacing, table)[1] / spacing * c.side_outward[i, s]
        for other in range(c.side_count[i]):
            if other != s and c.side_distance[i, other] < REACH * spacing:
                part *= 1.0 - OVERLAP * profile(c.side_distance[i, other] / spacing, table)[0]
    return part


@ti.func
def is_nearest(i: ti.i32, s: ti.i32, c: ti.template()):
    """Whether no other side that a particle sees is nearer."""
    result = True
    for other in range(c.side_count[i]):
        here, there = c.side_distance[i, s], c.side_distance[i, other]
        result = result and (here < there or (here == there and s <= other))
    return result
