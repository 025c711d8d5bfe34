"""What stands by friction alone: a tower, houses of cards, arches."""

import math

import numpy as np
from scipy.spatial import ConvexHull

import pliant as pl
from pliant.tools.validation import GRAVITY, Result, case, relative
from pliant.tools.validation.rigid import ground

CARD, THICKNESS, LEAN = np.array([2e-3, 0.09, 0.06]), 2e-3, 20.0  # a card [m], and from the vertical [degrees]
SPAN, STONES = 0.5, 7  # middle radius of an arch [m], and of how many stones


def positions(sim: pl.Simulation) -> np.ndarray:
    """Middles of all bodies but the floor."""
    return np.array([sim[body.name].position for body in sim.scene.bodies[1:]])


def moved(sim: pl.Simulation, seconds: float) -> float:
    """The largest way that a body goes in that time [m]."""
    start = positions(sim)
    sim.run(seconds=seconds)
    return float(np.linalg.norm(positions(sim) - start, axis=1).max())


@case
def tower(quick: bool) -> list[Result]:
    """Ten boxes of 20 cm, one on the other, for 60 s (quick 3): they move less than 1 % of a box, and the contact under
    the k-th from the top carries k m g within 2 %."""
    scene, side, count = ground(friction=0.5), 0.2, 10
    for k in range(count):
        center = (0.004 * (k % 2), (k + 0.5) * side, 0.003 * (k % 3))
        scene.add(pl.Box(size=(side, side, side), center=center), pl.Rigid(density=500, friction=0.5), name=f"box{k}")
    sim = scene.build(quiet=True)
    sim.run(seconds=0.5)
    way = moved(sim, 2.5 if quick else 59.5) / side
    weight, worst = sim["box0"].mass * GRAVITY, 0.0
    for k in range(count):
        below = "floor" if k == 0 else f"box{k - 1}"
        worst = max(worst, abs(sim[f"box{k}"].contacts[below][1] / ((count - k) * weight) - 1))
    return [Result(f"largest way in {sim.time - 0.5:g} s over the size", way, 0.0, way, 0.01),
            Result("contacts: worst of k m g", worst, 0.0, worst, 0.02)]  # fmt: skip


def card_house(storeys: int, wide: int, friction: float) -> pl.Scene:
    """Pairs of cards that lean on each other, `wide` of them below and one less in each storey, on cards that lie."""
    scene, angle = ground(friction=friction, radius=0.005), math.radians(LEAN)
    base = CARD[1] * math.sin(angle) + THICKNESS * math.cos(angle)  # of half a pair
    rise, floor = CARD[1] * math.cos(angle) + THICKNESS * math.sin(angle), 0.0
    stuff = pl.Rigid(density=700, friction=friction)
    for storey in range(storeys):
        pairs = wide - storey
        for k in range(pairs):
            for side in (-1, 1):
                center = ((2 * k - pairs + 1 + 0.5 * side) * base, floor + rise / 2, 0)
                scene.add(pl.Box(size=tuple(CARD), center=center).rotate("z", side * LEAN, about=center), stuff)
        floor += rise
        for k in range(pairs - 1 if storey < storeys - 1 else 0):
            center = ((2 * k - pairs + 2) * base, floor + THICKNESS / 2, 0)
            scene.add(pl.Box(size=(1.96 * base, THICKNESS, CARD[2]), center=center), stuff)
        floor += THICKNESS
    return scene


@case
def cards(quick: bool) -> list[Result]:
    """A house of four cards, and one of two storeys (7 cards) and of four (26, not quick), stand for 10 s (quick 2) to
    1 % of a card."""
    results, seconds = [], 2.0 if quick else 10.0
    for label, storeys, wide in (("four cards", 1, 2), ("two storeys", 2, 2), ("four storeys", 4, 4)):
        if not (quick and storeys == 4):
            way = moved(card_house(storeys, wide, 0.5).build(quiet=True), seconds) / CARD[1]
            results.append(Result(f"{label}: way over the height of a card", way, 0.0, way, 0.01))
    return results


@case
def ladder(quick: bool) -> list[Result]:
    """A plank that leans on a smooth wall, a = 20 degrees from the vertical, stands if the floor has more than
    mu = tan(a) / 2 - t / (2 l): moments about its lower edge. It stands by 1.03 of that and slides down by 0.97."""
    results, angle = [], math.radians(LEAN)
    length, thickness = 1.0, 0.04
    least = 0.5 * (math.tan(angle) - thickness / length)
    for share in (0.97, 1.03):
        scene = ground(friction=1.0)
        scene.add(pl.Plane(normal=(1, 0, 0)), pl.Boundary(), name="wall")
        rise = length * math.cos(angle) + thickness * math.sin(angle)
        center = (0.5 * (length * math.sin(angle) + thickness * math.cos(angle)), rise / 2, 0)
        plank = pl.Box(size=(thickness, length, 0.2), center=center).rotate("z", LEAN, about=center)
        scene.add(plank, pl.Rigid(density=700), name="plank")
        scene.friction("plank", "wall", 0.0)
        scene.friction("plank", "floor", share * least)
        sim = scene.build(quiet=True)
        sim.run(seconds=1.5 if quick else 5.0)
        stands = float(sim["plank"].position[1] > 0.95 * center[1])
        results.append(Result(f"{share:g} of the least friction: stands", stands, float(share > 1),
                              stands - (share > 1), 0.0))  # fmt: skip
    return results


def stone(first: float, last: float, thickness: float) -> pl.Mesh:
    """A piece of an arch between two angles [rad]."""
    points = np.array([(r * math.cos(a), r * math.sin(a), z) for z in (-0.1, 0.1) for a in (first, last)
                       for r in (SPAN - thickness / 2, SPAN + thickness / 2)])  # fmt: skip
    faces = ConvexHull(points).simplices
    normals = np.cross(points[faces[:, 1]] - points[faces[:, 0]], points[faces[:, 2]] - points[faces[:, 0]])
    inwards = np.einsum("ij,ij->i", normals, points[faces[:, 0]] - points.mean(axis=0)) < 0
    faces[inwards] = faces[inwards][:, ::-1]
    return pl.Mesh((points, faces))


@case
def arch(quick: bool) -> list[Result]:
    """Seven stones in half a circle. They stand if they are thicker than 0.107 of the radius (Couplet 1730; Heyman
    1969) and rough enough, mu > 0.31 to 0.39 (Gilbert et al. 2006): 0.12 and 0.24 R thick, by 0.5 and 0.6, they come to
    rest, and then carry their weight; 0.08 R thick, or by 0.2, they fall. (By 0.4 they stand as well, but may slide for
    some seconds by 1 % of R first, where the edges of stones meet, which their maps round.)"""
    results = []
    for share, friction, stands in ((0.24, 0.6, True), (0.24, 0.5, True), (0.12, 0.6, True), (0.12, 0.5, True),
                                    (0.24, 0.2, False), (0.08, 0.6, False)):  # fmt: skip
        if quick and share == 0.12:
            continue
        scene, label = ground(friction=friction), f"{share:g} R thick, mu {friction}"
        for k in range(STONES):
            shape = stone(math.pi * k / STONES, math.pi * (k + 1) / STONES, share * SPAN)
            scene.add(shape, pl.Rigid(density=2000, friction=friction), name=f"stone{k}")
        sim = scene.build(quiet=True)
        sim.run(seconds=2.0)
        top = float(sim["stone3"].position[1] / SPAN)
        results.append(Result(f"{label}: stands", float(top > 0.9), float(stands), float(top > 0.9) - stands, 0.0))
        if stands:
            way = moved(sim, 1.0 if quick else 10.0) / SPAN
            results.append(Result(f"{label}: way at rest over the radius", way, 0.0, way, 0.002))
            weight = GRAVITY * sum(sim[f"stone{k}"].mass for k in range(STONES))
            feet = sum(float(sim[f"stone{k}"].contacts["floor"][1]) for k in (0, STONES - 1))
            results.append(relative(f"{label}: load of the feet", feet, weight, 0.01, "N"))
    return results
