"""Rigid bodies with elastic bodies and sand: friction both ways, grip, rest, collisions of all pairs."""

import itertools
import math

import numpy as np

import pliant as pl
from pliant.scenes import gripper
from pliant.tools.validation import GRAVITY, Result, case, relative

KINDS = ("fluid", "sand", "elastic", "rigid")
D = 0.01  # spacing on slopes [m]


def slope(what: str, mu: float, degrees: float) -> pl.Scene:
    """A block of 10 x 3 x 6 particles on a slab, on a slope: x is down it. `what` is "soft on fixed", "soft on free" (a
    slab of steel that lies on the floor, which holds it), or "rigid on soft"."""
    tilt = math.radians(degrees)
    gravity = (GRAVITY * math.sin(tilt), -GRAVITY * math.cos(tilt), 0.0)
    scene = pl.Scene(particle_radius=D / 2, gravity=gravity)
    scene.add(pl.Plane(point=(0, -4 * D, 0)), pl.Boundary(), name="floor")
    slab = pl.Box(size=(40 * D, 4 * D, 12 * D), center=(14 * D, -2 * D, 0))
    rubber, soft = pl.Elastic(young=1e6), what == "rigid on soft"
    under = scene.add(slab, rubber if soft else pl.Rigid(density=7800), name="slab")
    if what == "soft on fixed":
        under.fix()
    scene.friction("slab", "floor", 10.0)
    block = pl.Box(size=(10 * D, 3 * D, 6 * D), center=(0, 1.5 * D, 0))
    scene.add(block, pl.Rigid(density=1000) if soft else rubber, name="block")
    scene.friction("block", "slab", mu)
    return scene


def way_and_speed(sim: pl.Simulation) -> tuple[float, float]:
    """Of the block, down the slope [m, m/s]."""
    block = sim["block"]
    if hasattr(block, "position"):
        return float(block.position[0]), float(block.velocity[0])
    return float(block.x[:, 0].mean(dtype=float)), float(block.v[:, 0].mean(dtype=float))


def down_the_slope(what: str, mu: float, degrees: float, seconds: float) -> tuple[float, float]:
    """How far it moves in the second half of the time [m], and its acceleration there [m/s^2]."""
    sim, rows = slope(what, mu, degrees).build(quiet=True), []
    while sim.time < seconds:
        sim.step()
        rows.append((sim.time, *way_and_speed(sim)))
    t, x, v = np.array([row for row in rows if row[0] > seconds / 2]).T
    return float(x[-1] - x[0]), float(np.polyfit(t, v, 1)[0])


@case
def soft_incline(quick: bool) -> list[Result]:
    """Coulomb: a block of rubber (1 MPa) on a rigid slab, fixed or free, and a rigid block on one of rubber, on slopes
    1 degree below arctan(mu), where it stays (0.005 d in 1 s, quick 0.3 s), and 1 and 5 above, where it slides
    with g (sin - mu cos): within 1 % of g sin, for the edges of a rigid block meet bumps of half a percent of it."""
    results = []
    for what in ("soft on fixed", "soft on free", "rigid on soft"):
        for mu in (0.5,) if quick else (0.3, 0.7, 1.0):
            angle, label = math.degrees(math.atan(mu)), f"{what}, mu {mu:g}"
            moved, _ = down_the_slope(what, mu, angle - 1, 0.6 if quick else 2.0)
            results.append(Result(f"{label}, below: moved over d", moved / D, 0.0, moved / D, 5e-3))
            for more in (5,) if quick else (1, 5):
                tilt = math.radians(angle + more)
                _, found = down_the_slope(what, mu, angle + more, 0.4 if quick else 0.8)
                exact = GRAVITY * (math.sin(tilt) - mu * math.cos(tilt))
                results.append(relative(f"{label}, {more} above: acceleration", found, exact, 0.01, "m/s^2",
                                        GRAVITY * math.sin(tilt)))  # fmt: skip
    return results


@case
def grip(quick: bool) -> list[Result]:
    """The scene `gripper`: two fingers hold a soft ball of 1.7 kg for 10 s (quick 0.5 s) after it was carried, by
    m g / 2 of friction each, and it creeps by less than 1e-4 of its radius; it falls when they open and by mu 0.05."""
    radius = 0.012 if quick else 0.0081
    sim = gripper.build(radius=radius, drop=0).build(quiet=True)
    sim.run(seconds=3.5 if quick else 6.0)
    first = gripper.lag(sim)
    sim.run(seconds=0.5 if quick else 10.0)
    crept = float(abs(gripper.lag(sim) - first)[1]) / gripper.BALL
    weight = GRAVITY * float(sim["ball"].mass.sum(dtype=float))
    borne = -float(sim["left"].force[1] + sim["right"].force[1]) / weight
    least = min(gripper.pressure(sim)) / (weight / (2 * 0.6))
    results = [Result("way down over the radius of the ball", crept, 0.0, crept, 1e-4),
               relative("friction of both over m g", borne, 1.0, 1e-3),
               Result("pressure over m g / (2 mu)", least, 1.0, min(least - 1.0, 0.0), 0.0)]  # fmt: skip
    for label, options in (("mu 0.05", {"friction": 0.05, "drop": 0.0}), ("opened", {"drop": gripper.LIFTED})):
        sim = gripper.build(radius=radius, **options).build(quiet=True)
        sim.run(seconds=gripper.LIFTED + 1.5)
        height = float(sim["ball"].x[:, 1].mean()) / gripper.BALL
        results.append(Result(f"{label}: height over the radius", height, 1.0, max(height - 1.0, 0.0), 0.3))
    return results


@case
def rigid_on_sand(quick: bool) -> list[Result]:
    """A crate of 12 cm that falls on sand (5 particles a side), heavy (3000 kg/m^3) and light (300): after 1.5 s
    (quick: light alone) it bears its weight and lies still; and one of 200 kg/m^3 that is buried stays where it is."""
    results, side, radius = [], 0.36, 0.012
    for label, density, top in (("light", 300.0, 0.28), ("heavy", 3000.0, 0.28), ("buried", 200.0, 0.18)):
        if quick and label == "heavy":
            continue
        depth = 0.24 if label == "buried" else 0.15
        scene, crate = pl.Scene(particle_radius=radius), pl.Box(size=(0.12, 0.12, 0.12), center=(0, top - 0.06, 0))
        scene.add(pl.Box(size=(side, 0.8, side), center=(0, 0.4, 0)), pl.Boundary(inside_out=True), name="box")
        bed = pl.Box(size=(side, depth, side), center=(0, depth / 2, 0))
        scene.add(bed - crate if label == "buried" else bed, pl.Granular(), name="sand")
        scene.add(crate, pl.Rigid(density=density, friction=0.5), name="crate")
        sim = scene.build(quiet=True)
        sim.run(seconds=1.5)
        first, body, up = sim["crate"].position, sim["crate"], []
        while sim.time < 2.0:
            sim.step()
            up.append(float(body.force[1]))
        moved = float(np.abs(body.position - first).max()) / (2 * radius)
        weight, total = GRAVITY * body.mass, GRAVITY * (body.mass + float(sim["sand"].mass.sum(dtype=float)))
        results += [Result(f"{label}: moved in 0.5 s over d", moved, 0.0, moved, 2e-3),
                    relative(f"{label}: force on it over m g", float(np.mean(up)), weight, 0.01, "N"),
                    relative(f"{label}: force on the box", -float(sim["box"].force[1]), total, 0.01, "N")]  # fmt: skip
    return results


def material(kind: str, mu: float | None) -> pl.Material:
    return {"fluid": pl.Fluid(), "sand": pl.Granular(), "elastic": pl.Elastic(young=1e5, friction=mu),
            "rigid": pl.Rigid(density=500, friction=mu or 0.0, restitution=0.3)}[kind]  # fmt: skip


@case
def pairs(quick: bool) -> list[Result]:
    """A cube of 20 cm flies into another one at 2 m/s, off-centre and askew, without gravity: every pair of fluid,
    sand, elastic and rigid, smooth and rough. Momentum stays within 1e-6 of m v, angular momentum within 1e-4 of m v
    times the side, and no energy comes from nowhere. Water that seeps into sand goes from particle to particle, and
    takes its angular momentum from one place to the other: that pair is only reported."""
    results, side, speed = [], 0.2, 2.0
    for one, other in itertools.combinations_with_replacement(KINDS, 2):
        for mu in (0.5,) if quick else (None, 0.5):
            scene = pl.Scene(particle_radius=0.02, gravity=(0, 0, 0))
            cube = pl.Box(size=(side, side, side))
            scene.add(cube.translate((-1.25 * side, 0.03, 0.02)), material(one, mu), name="a", velocity=(speed, 0, 0))
            scene.add(cube.rotate("y", 20), material(other, mu), name="b")
            sim = scene.build(quiet=True)
            first = sim.stats
            push, lost, turned, most = float(first.momentum[0]), 0.0, 0.0, 0.0
            while sim.time < 0.15:
                sim.step()
                now = sim.stats
                lost = max(lost, float(np.abs(now.momentum - first.momentum).max()) / push)
                turned = max(turned, float(np.abs(now.angular_momentum - first.angular_momentum).max()) / (push * side))
                most = max(most, now.energy / first.energy)
            label, seeps = f"{one} on {other}, mu {mu or 0:g}", {one, other} == {"fluid", "sand"}
            results += [Result(f"{label}: momentum", lost, 0.0, lost, 1e-6),
                        Result(f"{label}: angular momentum", turned, 0.0, turned, None if seeps else 1e-4),
                        Result(f"{label}: largest energy", most, 1.0, max(most - 1.0, 0.0), 1e-5)]  # fmt: skip
    return results
