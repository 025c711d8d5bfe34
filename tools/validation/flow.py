"""Particles that come and go, and what they do to walls: flow, jets, weights, buoyancy."""

import numpy as np

import pliant as pl
from pliant.solvers.births.nozzle import LAYERS
from pliant.tools.validation import GRAVITY, WATER, Result, case, relative


def mean_forces(sim: pl.Simulation, walls: list[str], seconds: float) -> dict[str, np.ndarray]:
    """Mean forces on walls over so many seconds [N]."""
    impulse, begun = {name: np.zeros(3) for name in walls}, sim.time
    while sim.time < begun + seconds:
        sim.step()
        for name in walls:
            impulse[name] += sim.dt * sim[name].force
    return {name: total / (sim.time - begun) for name, total in impulse.items()}


def imbalance(sim: pl.Simulation, walls: list[str], seconds: float) -> float:
    """Largest difference between a step's change of momentum and the impulses of gravity and walls, over m g dt."""
    worst, end = 0.0, sim.time + seconds
    bodies = [body for body in sim.scene.bodies if body.material.has_particles]
    mass = sum(sim[body].mass.sum(dtype=float) for body in bodies)
    gravity, before = np.asarray(sim.scene.settings.gravity, dtype=float), sim.stats.momentum
    while sim.time < end:
        sim.step()
        after = sim.stats.momentum
        given = sim.dt * (mass * gravity - sum(sim[name].force for name in walls))
        worst = max(worst, float(np.abs(after - before - given).max()) / (mass * GRAVITY * sim.dt))
        before = after
    return worst


@case
def emission(quick: bool) -> list[Result]:
    """A jet of 2 m/s from a nozzle of 10 cm without gravity, particles of 2 cm, for 2 s (quick: 0.5 s): volume that has
    come against area times speed, distance of its layers, mean density error. The same with steps of 8 ms, in which
    nearly a layer comes at a time, and with a velocity that rises and falls."""
    seconds, area, results = 0.5 if quick else 2.0, np.pi * 0.05**2, []
    for name, dt, rising in (("usual steps", None, False), ("steps of 8 ms", 8e-3, False), ("pulsing", None, True)):
        scene = pl.Scene(particle_radius=0.01, gravity=(0, 0, 0), dt=dt, elasticity=pl.Split(dt_elastic=0.01))
        speed = (lambda t: (0, -2 - np.sin(20 * t), 0)) if rising else (0, -2, 0)
        scene.emit(pl.Disc(radius=0.05, center=(0, 0, 0)), pl.Fluid(), velocity=speed, name="nozzle")
        sim = scene.build(quiet=True)
        sim.run(seconds)
        way = 2 * seconds + (1 - np.cos(20 * seconds)) / 20 * rising
        layer = sim["fluid1"].volume[0] * len(scene.settings.sources[0].shape.points(0.02)) / area
        results.append(relative(f"{name}: volume", sim["nozzle"].volume, area * way, 0.01 + layer / way / 2, "m^3"))
        results.append(Result(f"{name}: mean density error", sim.stats.mean_density_error, 0.0,
                              sim.stats.mean_density_error, 5e-3))  # fmt: skip
        if not rising:
            y = np.sort(np.unique(np.round(sim["fluid1"].x[:, 1], 4)))
            gaps = np.diff(y)[np.diff(y) > 0.5 * layer]
            results.append(relative(f"{name}: widest gap of layers", gaps.max(), layer, 0.02, "m"))
    return results


@case
def wall_forces(quick: bool) -> list[Result]:
    """What fluid does to walls. The floor of a tank (30 cm wide and deep, particles of 2 cm; quick: 3 cm) after 1 s,
    mean of 1 s: its weight. A fixed sphere of 8 cm radius under water: buoyancy. A jet (12 cm, 2 m/s, 40 cm over
    a plate of 80 cm): rho Q v with the speed at the plate, beside the weight of what lies on it. And the balance
    of impulses in each step, for water, honey and sand that break over a ball."""
    d = 0.03 if quick else 0.02
    return [*_floor(d), *_sphere(d), *_jet(d), *_balance()]


def _floor(d: float) -> list[Result]:
    scene = pl.Scene(particle_radius=d / 2)
    scene.add(pl.Plane(), pl.Boundary(), name="floor")
    for k, (x, z) in enumerate(((1, 0), (-1, 0), (0, 1), (0, -1))):
        scene.add(pl.Plane(normal=(x, 0, z), point=(-0.15 * x, 0, -0.15 * z)), pl.Boundary(), name=f"side{k}")
    water = scene.add(pl.Box(size=(0.3, 0.3, 0.3), center=(0, 0.15, 0)), pl.Fluid())
    sim = scene.build(quiet=True)
    sim.run(1.0)
    force = mean_forces(sim, ["floor", "side0"], 1.0)
    weight = GRAVITY * sim[water].mass.sum(dtype=float)
    side = 0.5 * WATER * GRAVITY * 0.3**3
    return [relative("floor of a tank", -force["floor"][1], weight, 0.01, "N"),
            relative("side of a tank", -force["side0"][0], side, 0.05, "N")]  # fmt: skip


def _sphere(d: float) -> list[Result]:
    scene = pl.Scene(particle_radius=d / 2)
    scene.add(pl.Box(size=(0.4, 0.6, 0.4), center=(0, 0.3, 0)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Sphere(radius=0.08, center=(0, 0.16, 0)), pl.Boundary(), name="ball")
    scene.add(pl.Box(size=(0.4, 0.35, 0.4), center=(0, 0.175, 0)), pl.Fluid())
    sim = scene.build(quiet=True)
    sim.run(1.5)
    force = mean_forces(sim, ["ball"], 1.0)["ball"]
    return [relative("fixed sphere under water", force[1], WATER * GRAVITY * 4 / 3 * np.pi * 0.08**3, 0.02, "N")]


def _jet(d: float) -> list[Result]:
    scene, radius, speed, high = pl.Scene(particle_radius=d / 2), 0.06, 2.0, 0.4
    scene.add(pl.Box(size=(0.8, 0.1, 0.8), center=(0, -0.05, 0)), pl.Boundary(), name="plate")
    water = scene.add(None, pl.Fluid(), name="water")
    scene.emit(pl.Disc(radius=radius, center=(0, high, 0)), water, velocity=(0, -speed, 0), name="nozzle")
    scene.drain(pl.Box(size=(4, 1, 4), center=(0, -0.6, 0)), name="below")
    sim = scene.build(quiet=True)
    sim.run(0.8)
    mouth = high - LAYERS * d  # from which on it falls freely
    force, mass, begun = 0.0, 0.0, sim.time
    while sim.time < begun + 0.6:
        sim.step()
        x, m = sim[water].x, sim[water].mass
        above = (np.abs(x[:, [0, 2]]) < 0.4).all(axis=1) & (x[:, 1] > 0) & (x[:, 1] < mouth)
        force -= sim.dt * sim["plate"].force[1]
        mass += sim.dt * m[above].sum(dtype=float)
    seconds, fast = sim.time - begun, np.hypot(speed, np.sqrt(2 * GRAVITY * mouth))
    flow = WATER * np.pi * radius**2 * speed  # [kg/s]
    on_plate = mass / seconds - flow * (fast - speed) / GRAVITY  # what is above it, but for what still falls
    push = force / seconds - GRAVITY * on_plate
    return [relative("jet on a plate, beside the weight on it", push, flow * fast, 0.05, "N")]


def _balance() -> list[Result]:
    materials = {"water": pl.Fluid(), "honey": pl.Fluid(viscosity=0.1, viscosity_solver="implicit"),
                 "sand": pl.Granular()}  # fmt: skip
    results = []
    for name, material in materials.items():
        scene = pl.Scene(particle_radius=0.025)
        tank = pl.Box(size=(1, 1, 0.5), center=(0.5, 0.5, 0.25))
        scene.add(tank, pl.Boundary(inside_out=True, friction=0.3), name="tank")
        scene.add(pl.Sphere(radius=0.14, center=(0.6, 0.14, 0.25)), pl.Boundary(friction=0.3), name="ball")
        scene.add(pl.Box(size=(0.4, 0.5, 0.5), center=(0.2, 0.25, 0.25)), material)
        off = imbalance(scene.build(quiet=True), ["tank", "ball"], 0.4)
        results.append(Result(f"{name}: impulses against momentum, over m g dt", off, 0.0, off, 1e-5))
    return results
