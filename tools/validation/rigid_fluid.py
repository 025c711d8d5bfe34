"""Rigid bodies in liquids: closed forms of floating, starting, sinking. `rigid_experiments` has what was measured."""

import math

import numpy as np

import pliant as pl
from pliant.tools.validation import GRAVITY, WATER, Result, case, relative

CRATE, HEIGHT = 0.24, 0.144  # of a crate that floats [m]: flat enough to float upright at any density
RAFT = 0.12  # height of the box whose moment is measured; it is as wide as a crate [m]
DENSITIES = (100.0, 300.0, 500.0, 700.0, 900.0, 950.0)  # [kg/m^3]


def pool(radius: float, width: float, depth: float, **liquid: float) -> pl.Scene:
    """A square pool, and room above it."""
    scene = pl.Scene(particle_radius=radius)
    tank = pl.Box(size=(width, 2 * depth, width), center=(0, depth, 0))
    scene.add(tank, pl.Boundary(inside_out=True), name="pool")
    scene.add(pl.Box(size=(width, depth, width), center=(0, depth / 2, 0)), pl.Fluid(**liquid), name="water")
    return scene


def afloat(density: float, radius: float, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Draughts over the height, and vertical speeds, in the last second of so many: a crate is let go a fifth of its
    height above where it is to float. The level is that at which water and crate fill the pool up to it: the highest
    particles say it only to a share of their spacing."""
    width, depth = 2 * CRATE, 0.24
    scene = pool(radius, width, depth, viscosity=1e-3)
    start = depth + HEIGHT * (0.7 - density / WATER)
    scene.add(pl.Box(size=(CRATE, HEIGHT, CRATE), center=(0, start, 0)), pl.Rigid(density=density, friction=0.3),
              name="crate")  # fmt: skip
    sim = scene.build(quiet=True)
    volume, found = float(sim["water"].mass.sum(dtype=float)) / WATER, []
    sim.run(seconds=seconds - 1.0)
    while sim.time < seconds:
        sim.step()
        bottom = float(sim["crate"].position[1]) - HEIGHT / 2
        level = (volume - CRATE**2 * bottom) / (width**2 - CRATE**2)
        if level - bottom > HEIGHT:  # nothing of it is above the water
            level = (volume + CRATE**2 * HEIGHT) / width**2
        found.append((sim.dt, (level - bottom) / HEIGHT, float(sim["crate"].velocity[1])))
    dt, draught, speed = np.array(found).T
    return np.array([dt @ draught / dt.sum(), draught.std()]), speed


@case
def draughts(quick: bool) -> list[Result]:
    """Crates (24 x 14.4 x 24 cm, 100 to 950 kg/m^3), each let go in a small pool, float as deep as their share of the
    density of water: within 2 % of the height with 12 particles across it, quick 5 % with 6. They come to rest: a crate
    of 950 neither sinks nor bobs for ever."""
    results = []
    for density in DENSITIES:
        (depth, bobbing), _ = afloat(density, HEIGHT / (12 if quick else 24), 3.0 if quick else 5.0)
        results.append(Result(f"{density:g} kg/m^3: depth over height", depth, density / WATER, depth - density / WATER,
                              0.05 if quick else 0.02))  # fmt: skip
        results.append(Result(f"{density:g} kg/m^3: bobbing in the last second over height", bobbing, 0.0, bobbing,
                              0.02 if quick else 0.01))  # fmt: skip
    return results


def submerged(size: tuple[float, float], place: float, tilt: float, level: float) -> tuple[float, float]:
    """Area of that part of a tilted rectangle (its middle at height `place`, above x = 0) which is below the level, and
    the x of its centroid."""
    c, s = math.cos(math.radians(tilt)), math.sin(math.radians(tilt))
    w, h = size[0] / 2, size[1] / 2
    corners = [(c * x - s * y, place + s * x + c * y) for x, y in ((-w, -h), (w, -h), (w, h), (-w, h))]
    below = []  # clipped by the water's surface (Sutherland and Hodgman)
    for (x, y), (u, v) in zip(corners, corners[1:] + corners[:1], strict=True):
        if y < level:
            below.append((x, y))
        if (y < level) != (v < level):
            below.append((x + (u - x) * (level - y) / (v - y), level))
    if not below:
        return 0.0, 0.0
    p = np.array(below)
    q = np.roll(p, -1, axis=0)
    cross = p[:, 0] * q[:, 1] - p[:, 1] * q[:, 0]
    area = float(cross.sum()) / 2
    return area, float(((p[:, 0] + q[:, 0]) * cross).sum()) / (6 * area)


@case
def restoring_moment(quick: bool) -> list[Result]:
    """A box (24 x 12 x 24 cm) is held half under water at 0, 10 and 20 degrees: the force on it is its buoyancy, and
    the torque about its middle is that force times the lever of the centroid of what is submerged, both within 5 %.
    12 particles across its height, quick 4; means over half a second."""
    results, width, depth, radius = [], 0.6, 0.3, RAFT / (8 if quick else 24)
    for tilt in (0.0, 10.0, 20.0):
        scene = pool(radius, width, depth, viscosity=1e-3)
        box = pl.Box(size=(CRATE, RAFT, CRATE), center=(0, depth, 0)).rotate("z", tilt)
        scene.add(box, pl.Rigid(), name="box").fix()
        sim = scene.build(quiet=True)
        volume, rows = float(sim["water"].mass.sum(dtype=float)) / WATER, []
        sim.run(seconds=1.0)
        while sim.time < 1.5:
            sim.step()
            rows.append((sim.dt, sim["box"].force[1], sim["box"].torque[2]))
        dt, lift, torque = np.array(rows).T
        level = depth
        for _ in range(50):
            area, arm = submerged((CRATE, RAFT), depth, tilt, level)
            level = (volume + CRATE * area) / width**2
        weight = WATER * GRAVITY * CRATE * area
        results.append(relative(f"{tilt:g} degrees: buoyancy", dt @ lift / dt.sum(), weight, 0.05, "N"))
        if tilt:
            results.append(relative(f"{tilt:g} degrees: torque", dt @ torque / dt.sum(), weight * arm, 0.05, "N m"))
    return results


@case
def added_mass(quick: bool) -> list[Result]:
    """A ball of 1, 300 and 3000 kg/m^3, let go under water, starts by g (rs - rf) / (rs + rf / 2): a weightless one
    upwards with 2 g. Radius of 4 particles (quick), 6; a pool 8 radii wide."""
    results, R = [], 0.1
    d = R / (4 if quick else 6)
    for density in (1.0, 300.0, 3000.0):
        scene, side = pool(d / 2, 8 * R, 8 * R), 8 * R
        scene.add(pl.Sphere(radius=R, center=(0, side / 2, 0)), pl.Rigid(density=density), name="ball").fix()
        sim = scene.build(quiet=True)
        sim.run(seconds=0.5)
        sim["ball"].release()
        start, rows = sim.time, []
        while sim.time < start + 0.02:
            sim.step()
            rows.append((sim.time - start, float(sim["ball"].velocity[1])))
        t, v = np.array(rows).T
        expected = GRAVITY * (WATER - density) / (density + WATER / 2)
        results.append(relative(f"{density:g} kg/m^3: acceleration", float(t @ v / (t @ t)), expected, 0.1, "m/s^2"))
    return results


def slowed_by_tube(share: float) -> float:
    """By how much a sphere on the axis of a tube, of that share of its radius, is slower than in the open (Haberman and
    Sayre 1958)."""
    s = share
    return (1 - 0.75857 * s**5) / (1 - 2.1050 * s + 2.0865 * s**3 - 1.7068 * s**5 + 0.72603 * s**6)


@case
def terminal_speed(quick: bool) -> list[Result]:
    """A ball of 3 cm sinks (2000 kg/m^3) or rises (100) through a viscous liquid in a tube on whose axis it is, at
    Stokes' speed 2 (rs - rf) g R^2 / (9 mu) over the factor of Haberman and Sayre 1958 for the tube; Re is about 0.1.
    A radius of 6 particles, quick 4, in a tube of 3 1/3 radii."""
    R, nu, share = 0.03, 0.02, 0.3
    d, tube, results = R / (4 if quick else 6), R / share, []
    for density in (2000.0, 100.0):
        length = 3 * tube
        scene = pl.Scene(particle_radius=d / 2)
        inside = pl.Cylinder(radius=tube, height=length, center=(0, length / 2, 0), axis="y")
        scene.add(inside, pl.Boundary(inside_out=True), name="tube")
        scene.add(pl.Cylinder(radius=tube, height=0.9 * length, center=(0, 0.45 * length, 0), axis="y"),
                  pl.Fluid(viscosity=nu), name="oil")  # fmt: skip
        scene.add(pl.Sphere(radius=R, center=(0, 0.45 * length, 0)), pl.Rigid(density=density), name="ball")
        sim = scene.build(quiet=True)
        sim.run(seconds=0.5)
        start, place = sim.time, float(sim["ball"].position[1])
        sim.run(seconds=0.1)
        speed = (float(sim["ball"].position[1]) - place) / (sim.time - start)
        free = 2 * (WATER - density) * GRAVITY * R**2 / (9 * WATER * nu)
        results.append(relative(f"{density:g} kg/m^3: speed", speed, free / slowed_by_tube(share), 0.1, "m/s"))
    return results
