"""Elastic bodies that touch: impacts, rest, friction on walls and on each other, rolling."""

import math
from typing import Any

import numpy as np

import pliant as pl
from pliant.tools.validation import GRAVITY, Result, case, relative

RADIUS = 0.04  # of balls [m]
POISSON = 0.3


def tilted(degrees: float) -> tuple[float, float, float]:
    """Gravity on a slope [m/s^2]: x is down it, y away from it."""
    tilt = math.radians(degrees)
    return GRAVITY * math.sin(tilt), -GRAVITY * math.cos(tilt), 0.0


def energy(sim: pl.Simulation) -> float:
    """Kinetic and elastic [J]."""
    return sim.stats.kinetic_energy + sim.stats.elastic_energy


# --- impacts --------------------------------------------------------------------------------------------------


def thrown(young: float, speed: float, step: float, across: int = 4, **more: Any) -> tuple[float, float]:
    """A ball of radius 4 cm, `across` particles a radius, thrown at a wall without gravity: speed after over speed
    before, and the largest energy on the way over the first. `more` goes to the scene."""
    d = RADIUS / across
    scene = pl.Scene(particle_radius=d / 2, gravity=(0, 0, 0), **{"dt": min(step, 0.4 * d / speed)} | more)
    scene.add(pl.Plane(), pl.Boundary(), name="wall")
    ball = pl.Sphere(radius=RADIUS, center=(0, RADIUS + 0.3 * d, 0))
    scene.add(ball, pl.Elastic(young=young, poisson=POISSON), name="ball", velocity=(0, -speed, 0))
    sim = scene.build()
    first, most = energy(sim), 0.0
    touching = contact_time(young, speed, float(sim["ball"].mass.sum()))
    while sim.time < 0.5 * d / speed + 3 * touching + 10 * step:
        sim.step()
        most = max(most, energy(sim) / first)
        if sim["ball"].x[:, 1].min() > 1.2 * d:
            break
    return float(sim["ball"].v[:, 1].mean()) / speed, most


def stiffness(young: float) -> float:
    """K of Hertz: force over indentation^1.5, a ball on a rigid plane [N/m^1.5]."""
    return 4 / 3 * young / (1 - POISSON**2) * math.sqrt(RADIUS)


def contact_time(young: float, speed: float, mass: float) -> float:
    """How long a ball touches a wall [s], after Hertz."""
    return 2.94 * (mass**2 / (stiffness(young) ** 2 * speed)) ** 0.2


@case
def restitution(quick: bool) -> list[Result]:
    """A ball of 4 cm (1000 kg/m^3, 4 particles a radius) thrown at a smooth wall, without gravity, by fixed steps:
    speed after over before never exceeds 1, and kinetic and elastic energy never exceed the first by more than 0.1 %.
    What is lost is reported: the step damps what is fast compared with it."""
    every = [(e, v, dt) for e in (1e4, 1e5, 1e6, 1e7, 1e9) for v in (0.2, 1.0, 10.0) for dt in (2e-4, 2e-3, 1e-2)]
    results = []
    for young, speed, step in [(1e7, 1.0, 2e-3), (1e9, 10.0, 1e-2)] if quick else every:
        after, most = thrown(young, speed, step)
        label = f"{young:g} Pa, {speed:g} m/s, {1e3 * step:g} ms"
        results.append(Result(f"{label}: speed after", after, 1.0, max(after - 1.0, 0.0), 0.0))
        results.append(Result(f"{label}: largest energy", most, 1.0, max(most - 1.0, 0.0), 1e-3))
    return results


@case
def hertz(quick: bool) -> list[Result]:
    """Hertz: a ball of 4 cm (1 MPa, 1000 kg/m^3, 8 particles a radius, quick 5) that meets a smooth wall at 1 m/s stays
    2.94 (m^2 / (K^2 v))^(1/5), K = 4/3 E / (1 - nu^2) sqrt(R), and pushes with K (5 m v^2 / (4 K))^(3/5) at most. Steps
    of 0.1 ms, without damping."""
    across, speed, young, dt = 5 if quick else 8, 1.0, 1e6, 1e-4
    d = RADIUS / across
    scene = pl.Scene(particle_radius=d / 2, gravity=(0, 0, 0), dt=dt)
    scene.add(pl.Plane(), pl.Boundary(), name="wall")
    rubber = pl.Elastic(young=young, poisson=POISSON, damping=0.0)
    scene.add(pl.Sphere(radius=RADIUS, center=(0, RADIUS, 0)), rubber, name="ball", velocity=(0, -speed, 0))
    sim = scene.build()
    mass, forces = float(sim["ball"].mass.sum()), []
    seconds, K = contact_time(young, speed, mass), stiffness(young)
    while sim.time < 1.5 * seconds:
        sim.step()
        forces.append(-sim["wall"].force[1])
    largest = K * (5 * mass * speed**2 / (4 * K)) ** 0.6
    on = np.flatnonzero(np.array(forces) > 0.02 * largest)
    return [relative("contact time", dt * float(on[-1] - on[0] + 1), seconds, 0.1, "s"),
            relative("largest force", max(forces), largest, 0.1, "N")]  # fmt: skip


@case
def collision(quick: bool) -> list[Result]:
    """Two balls of 4 cm (4 particles a radius) meet off-centre at 2 m/s, smooth and rough, of equal and of different
    stiffness and density, and one of them of water: momentum and angular momentum change by less than 1e-6 and 1e-5 of
    m v and m v R, and no energy comes from nowhere."""
    pairs: list[tuple[float, float | None, float, float | None]] = [(1e6, 1e6, 1000.0, None), (1e5, 1e7, 3000.0, 0.5)]
    if not quick:
        pairs += [(1e6, 1e6, 1000.0, 0.5), (1e9, 1e9, 1000.0, None), (1e4, 1e9, 300.0, 1.0), (1e6, None, 1000.0, None)]
    results = []
    for soft, stiff, density, mu in pairs:
        d, speed = RADIUS / 4, 2.0
        scene = pl.Scene(particle_radius=d / 2, gravity=(0, 0, 0))
        scene.add(pl.Sphere(radius=RADIUS, center=(-RADIUS, 0, 0)), pl.Elastic(young=soft, friction=mu),
                  name="a", velocity=(speed, 0, 0))  # fmt: skip
        other = pl.Fluid(density=density) if stiff is None else pl.Elastic(young=stiff, density=density, friction=mu)
        scene.add(pl.Sphere(radius=RADIUS, center=(RADIUS, 0.5 * RADIUS, 0)), other, name="b")
        sim = scene.build()
        first, push = sim.stats, float(sim["a"].mass.sum()) * speed
        lost, turned, most = 0.0, 0.0, 0.0
        while sim.time < 0.06:
            sim.step()
            now = sim.stats
            lost = max(lost, float(np.abs(now.momentum - first.momentum).max()) / push)
            turned = max(turned, float(np.abs(now.angular_momentum - first.angular_momentum).max()) / (push * RADIUS))
            most = max(most, energy(sim) / (first.kinetic_energy + first.elastic_energy))
        label = f"{soft:g} Pa on {'water' if stiff is None else f'{stiff:g} Pa'}, {density:g} kg/m^3, mu {mu or 0:g}"
        results += [Result(f"{label}: momentum", lost, 0.0, lost, 1e-6),
                    Result(f"{label}: angular momentum", turned, 0.0, turned, 1e-5),
                    Result(f"{label}: largest energy", most, 1.0, max(most - 1.0, 0.0), 1e-3)]  # fmt: skip
    return results


# --- rest -----------------------------------------------------------------------------------------------------


def settled(young: float, step: float, blocks: int, seconds: float) -> float:
    """A block of 8 cm on a floor, or three of half that height on each other (higher ones of 10 kPa would buckle),
    dropped from 1 mm: kinetic energy in m g d at the end."""
    size, d = 0.08, 0.08 / 6
    high = size if blocks == 1 else size / 2
    scene = pl.Scene(particle_radius=d / 2, dt=step)
    scene.add(pl.Plane(), pl.Boundary(friction=0.5), name="floor")
    for k in range(blocks):
        block = pl.Box(size=(size, high, size), center=(0, high / 2 + 1e-3 + k * (high + 1e-3), 0))
        scene.add(block, pl.Elastic(young=young, friction=0.5), name=f"block{k}")
    sim = scene.build()
    sim.run(seconds)
    mass = sum(float(sim[f"block{k}"].mass.sum()) for k in range(blocks))
    return sim.stats.kinetic_energy / (mass * GRAVITY * d)


def tower(young: float, step: float, feet: list[tuple[float, float]], degrees: float) -> pl.Simulation:
    """A block of 6 x 8 x 6 particles of 4 cm on feet of one particle each, at places (x, z) in spacings, set down with
    a tilt: heavy on weak feet, it rocks slowly."""
    d = 0.04
    scene = pl.Scene(particle_radius=d / 2, dt=step)
    scene.add(pl.Plane(), pl.Boundary(friction=0.5), name="floor")
    shape: pl.Shape = pl.Box(size=(6 * d, 8 * d, 6 * d), center=(0, 5 * d, 0))
    for x, z in feet:
        shape = shape | pl.Box(size=(d, d, d), center=(x * d, d / 2, z * d))
    shape = shape.rotate("z", degrees, about=(0, 0, 0)).translate((0, 0.2 * d, 0))
    scene.add(shape, pl.Elastic(young=young), name="tower", sampling="regular")
    return scene.build()


def rocked(young: float, step: float, seconds: float) -> float:
    """Kinetic energy in m g d of a tower on four feet that was tilted by 1 degree."""
    sim = tower(young, step, [(x, z) for x in (-2.5, 2.5) for z in (-2.5, 2.5)], 1.0)
    sim.run(seconds)
    return sim.stats.kinetic_energy / (float(sim["tower"].mass.sum()) * GRAVITY * sim.scene.spacing)


@case
def resting(quick: bool) -> list[Result]:
    """Blocks of 8 cm (6 particles wide, friction 0.5), one and three on each other, let go 1 mm above, and a tower
    on weak feet, set down with a tilt: 2 s later their kinetic energy is below 1e-8 m g d."""
    every = [(e, dt, n) for e in (1e4, 1e6, 1e9) for dt in (5e-4, 2e-3, 5e-3) for n in (1, 3)]
    results = [(f"{e:g} Pa, {1e3 * dt:g} ms, {n} blocks", settled(e, dt, n, 2.0))
               for e, dt, n in ([(1e6, 5e-3, 1), (1e9, 5e-3, 1)] if quick else every)]  # fmt: skip
    results += [(f"{e:g} Pa, {1e3 * dt:g} ms, tower", rocked(e, dt, 2.0))
                for e, dt in ([] if quick else [(1e5, 2e-3), (1e6, 5e-4), (1e6, 2e-3), (1e8, 5e-3)])]  # fmt: skip
    return [Result(f"{label}: energy over m g d", found, 0.0, found, 1e-8) for label, found in results]


def dropped(radius: float, young: float, pressure: Any, **more: Any) -> tuple[float, float]:
    """A ball (600 kg/m^3, 4 particles a radius) let go 1 mm above a plane, for 0.3 s: how much higher than that it ever
    rises, in spacings, and the largest energy beyond the first, over m g d. `more` goes to the scene."""
    d = radius / 4
    scene = pl.Scene(particle_radius=d / 2, pressure=pressure, **more)
    scene.add(pl.Plane(), pl.Boundary(), name="floor")
    ball = pl.Sphere(radius=radius, center=(0, radius + 1e-3, 0))
    scene.add(ball, pl.Elastic(young=young, density=600), name="ball")
    sim = scene.build()
    weight, height = float(sim["ball"].mass.sum()) * GRAVITY, float(sim["ball"].x[:, 1].mean())
    first, risen, gained = sim.stats.potential_energy, 0.0, 0.0
    while sim.time < 0.3:
        sim.step()
        now = energy(sim) + sim.stats.potential_energy
        risen = max(risen, (float(sim["ball"].x[:, 1].mean()) - height) / d)
        gained = max(gained, (now - first) / (weight * d))
    return risen, gained


@case
def drop(quick: bool) -> list[Result]:
    """Balls of 2 to 50 cm radius, 10 kPa to 1 GPa, let go 1 mm above a plane, by DFSPH and IISPH, in the default step
    and in those of 0.5 and 5 ms: none rises above where it came from, and no energy comes from nowhere (1e-3 m g d)."""
    every = [(r, e, p, dt) for r in (0.02, 0.15, 0.5) for e in (1e4, 5e5, 1e7, 1e9)
             for p, dt in ((pl.DFSPH(), None), (pl.IISPH(), None), (pl.DFSPH(), 5e-4), (pl.DFSPH(), 5e-3))]  # fmt: skip
    few, results = [(0.04, 5e5, pl.DFSPH(), None), (0.15, 1e7, pl.IISPH(), None)], []
    for radius, young, pressure, dt in few if quick else every:
        risen, gained = dropped(radius, young, pressure, **({} if dt is None else {"dt": dt}))
        step = "default step" if dt is None else f"{1e3 * dt:g} ms"
        label = f"{100 * radius:g} cm, {young:g} Pa, {type(pressure).__name__}, {step}"
        results += [Result(f"{label}: risen over d", risen, 0.0, risen, 1e-3),
                    Result(f"{label}: energy gained over m g d", gained, 0.0, gained, 1e-3)]  # fmt: skip
    return results


# --- friction -------------------------------------------------------------------------------------------------


def down_the_slope(mu: float, degrees: float, on_another: bool, seconds: float) -> tuple[float, float]:
    """A slab of 10 x 3 x 6 particles on a slope, or on another slab that sticks to it: how far it has moved in
    spacings, and its acceleration [m/s^2] in the second half of the time."""
    d = 0.01
    scene = pl.Scene(particle_radius=d / 2, gravity=tilted(degrees))
    scene.add(pl.Plane(), pl.Boundary(friction=mu), name="slope")
    bottom = 0.0
    if on_another:
        bottom = 4 * d
        scene.add(pl.Box(size=(24 * d, 4 * d, 10 * d), center=(6 * d, 2 * d, 0)), pl.Elastic(young=1e6), name="under")
        scene.friction("under", "slope", 10.0)
        scene.friction("under", "slab", mu)
    slab = pl.Box(size=(10 * d, 3 * d, 6 * d), center=(0, bottom + 1.5 * d, 0))
    scene.add(slab, pl.Elastic(young=1e6), name="slab")
    sim = scene.build()
    start, times, speeds = float(sim["slab"].x[:, 0].mean()), [], []
    while sim.time < seconds:
        sim.step()
        times.append(sim.time)
        speeds.append(float(sim["slab"].v[:, 0].mean()))
    late = np.array(times) > seconds / 2
    acceleration = np.polyfit(np.array(times)[late], np.array(speeds)[late], 1)[0]
    return (float(sim["slab"].x[:, 0].mean()) - start) / d, float(acceleration)


@case
def incline(quick: bool) -> list[Result]:
    """Coulomb: slabs of rubber (1 MPa) on slopes 1 degree below and above arctan(mu), mu from 0.1 to 2, on a wall and
    on another slab. Below, they move by less than 0.05 d in 2 s (quick: 0.4 s); above, they slide with g (sin - mu
    cos), for 0.8 s, in which they pass many bumps."""
    results = []
    for mu, on_another in [(0.7, False), (0.3, True)] if quick else [(mu, o) for mu in (0.1, 0.3, 0.7, 1.0, 2.0)
                                                                      for o in (False, True)]:  # fmt: skip
        angle, label = math.degrees(math.atan(mu)), f"mu {mu:g} on {'another' if on_another else 'a wall'}"
        moved, _ = down_the_slope(mu, angle - 1, on_another, 0.4 if quick else 2.0)
        results.append(Result(f"{label}, below: moved over d", moved, 0.0, moved, 0.05))
        _, found = down_the_slope(mu, angle + 1, on_another, 0.8)
        tilt = math.radians(angle + 1)
        exact = GRAVITY * (math.sin(tilt) - mu * math.cos(tilt))
        results.append(relative(f"{label}, above: acceleration", found, exact, 0.03, "m/s^2"))
    return results


@case
def rolling(quick: bool) -> list[Result]:
    """A ball of 4 cm (1 MPa, 8 particles a radius) on a slope of 15 degrees with friction 1 rolls, with 5/7 g sin:
    speed after 0.4 s, by steps that do not damp (`numerical_damping=0`), and reported by those that
    do. Its surface is bumpy, and each bump costs it a little."""
    across, seconds = 8, 0.4
    exact, results = 5 / 7 * tilted(15)[0] * seconds, []
    for damping in (0.0,) if quick else (0.0, 0.5, 1.0):
        d = RADIUS / across
        elasticity = pl.Split(numerical_damping=damping)
        scene = pl.Scene(particle_radius=d / 2, gravity=tilted(15), elasticity=elasticity)
        scene.add(pl.Plane(), pl.Boundary(friction=1.0), name="slope")
        scene.add(pl.Sphere(radius=RADIUS, center=(0, RADIUS, 0)), pl.Elastic(young=1e6), name="ball")
        sim = scene.build()
        sim.run(seconds)
        found = float(sim["ball"].v[:, 0].mean())
        label, target = f"numerical_damping {damping:g}: speed", None if damping else 0.06
        results.append(relative(label, found, exact, target, "m/s"))
    return results


@case
def capstan(quick: bool) -> list[Result]:
    """Euler and Eytelwein: a strip (3 MPa, 2 x 3 particles) half around a drum of 10 cm (10 spacings) is pulled at both
    ends, at one of them ever harder. It begins to slide, which is to say moves by a fifth of a spacing beyond what it
    is stretched, when one pull is exp(mu pi) times the other."""
    results = []
    for mu in (0.3,) if quick else (0.1, 0.3, 0.5):
        radius, young, pull, ramp = 0.1, 3e6, 0.3, 1.0
        d = radius / 10
        leg, wide, thick, exact = 6 * d, 3 * d, 2 * d, math.exp(mu * math.pi)
        scene = pl.Scene(particle_radius=d / 2, gravity=(0, 0, 0))
        scene.add(pl.Cylinder(radius=radius, height=4 * wide, axis="z"), pl.Boundary(friction=mu), name="drum")
        ring = (pl.Cylinder(radius=radius + thick, height=wide, axis="z")
                - pl.Cylinder(radius=radius, height=2 * wide, axis="z"))  # fmt: skip
        strip = ring & pl.Box(size=(4 * radius, 2 * radius, wide), center=(0, radius, 0))
        for side in (-1, 1):
            strip = strip | pl.Box(size=(thick, leg, wide), center=(side * (radius + thick / 2), -leg / 2, 0))
        scene.add(strip, pl.Elastic(young=young, damping=20.0), name="strip")
        sim = scene.build()
        rest, mass = sim["strip"].rest, sim["strip"].mass.astype(float)
        slack, taut = ((rest[:, 1] < 2 * d - leg) & (side * rest[:, 0] > 0) for side in (-1, 1))
        least, start, ratio = 0.004 * young * thick * wide, 0.0, 1.0
        while sim.time < pull + ramp:
            force = least * min(sim.time / (pull - 0.1), 1.0)
            ratio = 1.0 + (1.4 * exact - 1.0) * max(sim.time - pull, 0.0) / ramp
            v = sim["strip"].v
            v[slack, 1] -= force / mass[slack].sum() * sim.dt
            v[taut, 1] -= ratio * force / mass[taut].sum() * sim.dt
            sim["strip"].v = v
            sim.step()
            height = float(sim["strip"].x[slack, 1].mean())
            if sim.time < pull:
                start = height
            if height - start > 0.2 * d:
                break
        results.append(relative(f"mu {mu:g}: pull over the other when it slides", ratio, exact, 0.1, "1"))
    return results


@case
def on_sand(quick: bool) -> list[Result]:
    """A block of rubber (8 x 3 x 6 particles) that is pushed at 1 m/s over a bed of sand of 35 degrees slows down by
    mu g, mu being its own coefficient, or that of the sand where it has none; from 1 to 0.4 m/s."""
    d, results = 0.02, []
    for mu in (0.3,) if quick else (0.1, 0.3, None):
        scene = pl.Scene(particle_radius=d / 2)
        scene.add(pl.Box(size=(0.8, 0.8, 0.2), center=(0, 0.4, 0)), pl.Boundary(inside_out=True), name="tank")
        scene.add(pl.Box(size=(0.8, 0.12, 0.2), center=(0, 0.06, 0)), pl.Granular(friction_angle=35), name="sand")
        block = pl.Box(size=(8 * d, 3 * d, 6 * d), center=(-0.2, 0.12 + 1.5 * d, 0))
        scene.add(block, pl.Elastic(young=1e6, friction=mu), name="block")
        sim = scene.build()
        sim.run(0.3)
        sim["block"].v = sim["block"].v + (1.0, 0.0, 0.0)
        times: list[float] = []
        speeds: list[float] = []
        while sim.time < 0.8 and (not speeds or speeds[-1] > 0.4):
            sim.step()
            times.append(sim.time)
            speeds.append(float(sim["block"].v[:, 0].mean()))
        found = -float(np.polyfit(times[2:], speeds[2:], 1)[0]) / GRAVITY
        exact = math.tan(math.radians(35)) if mu is None else mu
        results.append(relative(f"mu {exact:.3g}: deceleration over g", found, exact, 0.15, "1"))
    return results
