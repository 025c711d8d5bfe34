"""No particle ever passes a wall: what comes too close is put back, and the wall gets what that takes."""

import taichi as ti

from pliant.boundary.wall import stopped
from pliant.boundary.wall_patches import add_to_patches
from pliant.boundary.wall_sides import Sides
from pliant.boundary.wall_table import WallTable, arm_of, candidate, candidates, side_at, velocity_of, within
from pliant.core.backend import Ints, Reals, RealTable, Vectors, vec3
from pliant.core.speedups import light

CLEARANCE = 0.25  # in spacings: half a radius. Closer than this a particle is moved back, whatever pressure says
# More where a map rounds off an edge or a corner of a body, which shows in a gradient shorter than one: at the corner
# of a box the map's distance is 0.4 where the true one is zero (0.32 is needed there, measured).
ROUNDED = 0.4
KEEP_OUT_ROUNDS = 2  # where two walls meet, the second round settles what the first pushed across
STEEPEST = 2.0  # gradient of a map, where it stands for less or more than a plane


@light
@ti.kernel
def mark_close(n: ti.i32, dt: ti.f32, fastest: ti.f32, x: Vectors, v: Vectors, shift: Vectors,
               inverse_density: Reals, reach: ti.f32, spacing: ti.f32, t: WallTable, c: Sides, too_close: Ints,
               count: Ints):  # fmt: skip
    """Which particles came too close to a wall, and how many. Those that were far from all walls, whose surfaces move
    at the `fastest`, and did not get near are passed by."""
    count[0] = 0
    for i in range(n):
        found, before, most = 0, reach, (CLEARANCE + ROUNDED) * spacing
        for s in range(c.side_count[i]):
            before = ti.min(before, c.side_distance[i, s])
        if inverse_density[i] > 0.0 and before - STEEPEST * (dt * (v[i].norm() + fastest) + shift[i].norm()) < most:
            walls, offset = candidates(x[i], t)
            for k in range(walls):
                wall = candidate(k, offset, t)
                if within(wall, x[i], most, t):
                    for side in range(t.side_begin[wall], t.side_begin[wall + 1]):
                        distance, outward = side_at(side, x[i], t)
                        found |= ti.cast(distance < clearance(outward, spacing) and outward.norm() > 0.0, ti.i32)
            if found > 0:
                ti.atomic_add(count[0], 1)
        too_close[i] = found


@ti.func
def clearance(outward: vec3, spacing: ti.f32):
    """How near a side lets particles come, where the gradient of its distance is that."""
    return (CLEARANCE + ROUNDED * ti.max(1.0 - outward.norm(), 0.0)) * spacing


@ti.func
def yielded(wall: ti.i32, x: vec3, lightness: ti.template(), load: ti.template(), t: ti.template()):
    """What impulses and moments so far have added to the velocity of a wall at a point, by its inverse masses."""
    motion = ti.Vector([0.0] * 6)
    for a in ti.static(range(6)):
        for b in ti.static(range(6)):
            motion[a] += lightness[wall, 6 * a + b] * load[wall, b]
    return motion[:3] + motion[3:].cross(arm_of(wall, x, t))


@ti.func
def mobility(wall: ti.i32, x: vec3, way: vec3, lightness: ti.template(), t: ti.template()):
    """Effective inverse mass [1/kg] of a wall at a point, in a direction."""
    d = way / ti.max(way.norm(), 1e-20)
    turn, result = arm_of(wall, x, t).cross(d), 0.0
    lever = ti.Vector([d[0], d[1], d[2], turn[0], turn[1], turn[2]])
    for a in ti.static(range(6)):
        for b in ti.static(range(6)):
            result += lever[a] * lightness[wall, 6 * a + b] * lever[b]
    return result


@ti.kernel
def keep_out(n: ti.i32, rounds: ti.i32, x: Vectors, v: Vectors, m: Reals, spacing: ti.f32, t: WallTable,
             material: Ints, rubbing: RealTable, too_close: Ints, first: Ints, patches: RealTable,
             lightness: RealTable, load: RealTable):  # fmt: skip
    """What came too close is put back. It loses the speed at which it came, and by friction a share of that at which
    it slides: the wall gets these as impulses, and its patches their shares. One after the other, for few do. What is
    free gives way: it gets what an inelastic impact gives, and the next particle meets it as it moves then."""
    ti.loop_config(serialize=True)
    for i in range(n):
        if too_close[i] > 0:
            for _ in range(rounds):
                walls, offset = candidates(x[i], t)
                for k in range(walls):
                    wall = candidate(k, offset, t)
                    if within(wall, x[i], (CLEARANCE + ROUNDED) * spacing, t):
                        for side in range(t.side_begin[wall], t.side_begin[wall + 1]):
                            at = x[i]
                            distance, outward = side_at(side, at, t)
                            least = clearance(outward, spacing)
                            if distance < least and outward.norm() > 0.0:
                                out = outward.normalized()
                                slip, mu = v[i] - velocity_of(wall, at, t), rubbing[wall, material[i]]
                                slip -= yielded(wall, at, lightness, load, t)
                                back = (least - distance) * out
                                lost = m[i] * v[i].cross(back)  # of its angular momentum, by going there
                                x[i] = at + back
                                push, rub = stopped(slip, out, mu)
                                share = 1.0 / (1.0 + m[i] * mobility(wall, at, push + rub, lightness, t))
                                push, rub = share * push, share * rub
                                v[i] = v[i] + push + rub
                                given = -m[i] * (push + rub)
                                turn = arm_of(wall, x[i], t).cross(given) + lost
                                for a in ti.static(range(3)):
                                    load[wall, a] = load[wall, a] + given[a]
                                    load[wall, 3 + a] = load[wall, 3 + a] + turn[a]
                                add_to_patches(wall, given, wall, side, at, distance, outward, first, patches, t,
                                               spacing, load)  # fmt: skip
