"""Water at rest: pressure, volume and layers of a settled column."""

import dataclasses
from typing import Any

import numpy as np

import pliant as pl
from pliant.tools.validation import GRAVITY, WATER, Result, case, relative

SPACING = 0.05  # [m]
KICK = 0.5  # [m/s]: standard deviation of the random velocities that break the lattice
AVERAGED = 0.5  # [s]
AVERAGED_STEPS = 40
TOP = 3  # layers below the surface that the extrapolation of the pressure to the floor leaves out


@dataclasses.dataclass
class Column:
    """Time averages over a settled column of height H, layer by layer (slices of one spacing above the floor)."""

    height: float
    level: np.ndarray  # mean height of the particles of each layer [m]
    pressure: np.ndarray  # their mean pressure [Pa]
    slope: float  # of the line through the pressures of the particles above the first layer [Pa/m]
    bottom: float  # where that line meets the floor [Pa]
    middle: float  # mean height of all particles [m]
    kinetic: float  # mean kinetic energy of a particle over m g d


def column(layers: int, wide: int, walled: bool, kick: float, viscosity: float = 1e-6) -> Any:
    """Water `layers` deep: on a plane and periodic in x and z, or in a tank with walls."""
    d = SPACING
    H, W = layers * d, wide * d
    scene = pl.Scene(particle_radius=d / 2, periodic=(None, None, None) if walled else (W, None, W))
    if walled:
        tank = pl.Box(size=(W, 2 * H, W), center=(W / 2, H, W / 2))
        scene.add(tank, pl.Boundary(inside_out=True), name="tank")
    else:
        scene.add(pl.Plane(), pl.Boundary(), name="floor")
    block = pl.Box(size=(W, H, W), center=(W / 2, H / 2, W / 2))
    water = scene.add(block, pl.Fluid(viscosity=viscosity), name="water")
    sim = scene.build()
    if kick:
        sim[water].v = np.random.default_rng(1).normal(0.0, kick, (len(sim[water]), 3))
    return sim


def settle(sim: pl.Simulation, layers: int, seconds: float) -> Column:
    """Waits, then averages over AVERAGED seconds."""
    d, water = SPACING, sim["water"]
    sim.run(seconds)
    y, p, squares, end = [], [], [], sim.time + AVERAGED
    while sim.time < end:
        sim.step()
        y.append(water.x[:, 1].astype(float))
        p.append(water.pressure.astype(float))
        squares.append((water.v.astype(float) ** 2).sum(axis=1).mean())
    mean_y, mean_p = np.mean(y, axis=0), np.mean(p, axis=0)
    inner = (mean_y > d) & (mean_y < (layers - TOP) * d)
    slope, bottom = np.polyfit(mean_y[inner], mean_p[inner], 1)
    flat_y, flat_p = np.concatenate(y), np.concatenate(p)
    layer = np.minimum((flat_y / d).astype(int), layers - 1)
    count = np.bincount(layer, minlength=layers)
    level, pressure = (np.bincount(layer, weights=w, minlength=layers) / count for w in (flat_y, flat_p))
    kinetic = 0.5 * float(np.mean(squares)) / (GRAVITY * d)
    return Column(layers * d, level, pressure, float(slope), float(bottom), float(mean_y.mean()), kinetic)


def judge(name: str, c: Column) -> list[Result]:
    """The targets: profile within 3 % of rho g H, bottom pressure and volume within 1 %, layers even within 3 %."""
    weight = WATER * GRAVITY * c.height
    exact = WATER * GRAVITY * (c.height - c.level)
    off = (c.pressure - exact) / weight
    worst = 1 + int(np.argmax(np.abs(off[1:])))  # above the first layer
    first, second = np.diff(c.level)[:2]
    return [
        relative(f"{name}: pressure of the first layer", c.pressure[0], exact[0], 0.03, "Pa", weight),
        relative(f"{name}: pressure of the worst other", c.pressure[worst], exact[worst], 0.03, "Pa", weight),
        relative(f"{name}: bottom pressure, extrapolated", c.bottom, weight, 0.01, "Pa"),
        relative(f"{name}: volume (twice the mean height)", 2 * c.middle, c.height, 0.01, "m"),
        relative(f"{name}: spacing of layers 1-2 over 2-3", first / second, 1.0, 0.03),
        Result(f"{name}: kinetic energy over m g d", c.kinetic, 0.0, c.kinetic),
    ]  # fmt: skip


@case
def hydrostatic(quick: bool) -> list[Result]:
    """Water at rest, p = rho g (H - y): 16 layers of 10 x 10 particles of 5 cm (quick: 12 of 8 x 8), settled for
    2 s (quick: 1.5 s) and averaged over 0.5 s. Three ways: from the lattice and from random velocities (0.5 m/s) on a
    plane, periodic sideways; from random velocities in a tank with walls, edges and corners. Errors of pressure are
    over rho g H. Layers are slices of one spacing above the floor."""
    layers, wide, seconds = (12, 8, 1.5) if quick else (16, 10, 2.0)
    results = []
    for name, walled, kick in (("plane", False, 0.0), ("plane, shaken", False, KICK), ("tank, shaken", True, KICK)):
        results += judge(name, settle(column(layers, wide, walled, kick), layers, seconds))
    return results


def tanks() -> dict[str, pl.Shape]:
    """Hollows of several shapes, all some 0.6 m wide with the lowest place at the origin."""
    tilted = pl.Box(size=(0.5, 1.0, 0.5), center=(0, 0.5, 0)).rotate(axis=(0, 0, 1), degrees=30)
    return {
        "cylinder": pl.Cylinder(radius=0.3, height=1.0, center=(0, 0.5, 0)),
        "tilted box": tilted.translate((0, 0.125, 0)),
        "bowl": pl.Sphere(radius=0.45, center=(0, 0.45, 0)),
    }


@case
def hydrostatic_tanks(quick: bool) -> list[Result]:
    """Water at rest in a cylinder, a box tilted by 30 degrees and a round bowl, by DFSPH and IISPH, shaken by 0.5 m/s
    and settled for 3 s (quick: 1.5 s): the slope of the pressure of particles a spacing and more off the walls, and
    where it meets the surface, which a probe finds. 0.5 m deep, particles of 2.5 cm (quick: 4 cm)."""
    d, seconds, results = (0.04, 1.5, []) if quick else (0.025, 3.0, [])
    for name, hollow in tanks().items():
        for solver in (pl.DFSPH(), pl.IISPH()):
            scene = pl.Scene(particle_radius=d / 2, pressure=solver)
            scene.add(hollow, pl.Boundary(inside_out=True), name="tank")
            water = scene.add(hollow & pl.Box(size=(2, 0.5, 2), center=(0, 0.25, 0)), pl.Fluid(), name="water")
            level = scene.probe("elevation", at=(0, 0, 0), name="level")
            sim = scene.build()
            sim[water].v = np.random.default_rng(1).normal(0.0, KICK, (len(sim[water]), 3))
            sim.run(seconds)
            y, p = [], []
            for _ in range(AVERAGED_STEPS):
                sim.step()
                x = sim[water].x.astype(float)
                inner = (-hollow.signed_distance(x) > d) & (x[:, 1] < sim[level].value - TOP * d)
                y.append(x[inner, 1])
                p.append(sim[water].pressure[inner].astype(float))
            slope, bottom = np.polyfit(np.concatenate(y), np.concatenate(p), 1)
            title = f"{name}, {type(solver).__name__}"
            results.append(relative(f"{title}: slope of the pressure", -slope, WATER * GRAVITY, 0.05, "Pa/m"))
            surface = -bottom / slope
            results.append(relative(f"{title}: where it is zero", surface, float(sim[level].value), 0.05, "m"))
            kinetic = sim.stats.kinetic_energy / (sim[water].mass.sum() * GRAVITY * d)
            results.append(Result(f"{title}: kinetic energy over m g d", kinetic, 0.0, kinetic))
    return results
