"""Rigid bodies by themselves: closed forms. `rigid_fluid` has those in water."""

import math

import numpy as np

import pliant as pl
from pliant.tools.validation import GRAVITY, Result, case, relative

# Period of a pendulum over that of small swings, by its amplitude in degrees (complete elliptic integral)
PENDULUM = {10.0: 1.00191, 45.0: 1.03997, 90.0: 1.18034}


def ground(tilt: float = 0.0, friction: float | None = None, radius: float = 0.01, **more: object) -> pl.Scene:
    """A plane, and gravity as on a slope of so many degrees: x is down it."""
    angle = math.radians(tilt)
    gravity = (GRAVITY * math.sin(angle), -GRAVITY * math.cos(angle), 0.0)
    scene = pl.Scene(particle_radius=radius, gravity=gravity, **more)
    scene.add(pl.Plane(), pl.Boundary(friction=friction), name="floor")
    return scene


def speed_after(sim: pl.Simulation, name: str, seconds: float) -> float:
    """Acceleration down the slope, from the speed after so long [m/s^2]."""
    sim.run(seconds=seconds)
    return float(sim[name].velocity[0]) / sim.time


@case
def rigid_incline(quick: bool) -> list[Result]:
    """A box on a slope of 30 degrees slides by g (sin - mu cos), and stays for ever where tan < mu; a ball rolls by
    5/7 g sin, if mu is above 2/7 tan."""
    results, tilt, seconds = [], 30.0, 0.5 if quick else 1.0
    sine, cosine = math.sin(math.radians(tilt)), math.cos(math.radians(tilt))
    for mu in (0.0, 0.1, 0.3) if quick else (0.0, 0.1, 0.2, 0.3, 0.4, 0.5):
        scene = ground(tilt, mu)
        scene.add(pl.Box(size=(0.2, 0.1, 0.2), center=(0, 0.05, 0)), pl.Rigid(friction=mu), name="box")
        measured = speed_after(scene.build(quiet=True), "box", seconds)
        results.append(relative(f"mu {mu}: acceleration", measured, GRAVITY * (sine - mu * cosine), 0.01, "m/s^2"))
    for mu in (0.6, 1.0):
        scene = ground(tilt, mu)
        scene.add(pl.Box(size=(0.2, 0.1, 0.2), center=(0, 0.05, 0)), pl.Rigid(friction=mu), name="box")
        sim = scene.build(quiet=True)
        sim.run(seconds=2.0 if quick else 10.0)
        way = abs(float(sim["box"].position[0]))
        results.append(Result(f"mu {mu}: way in {sim.time:.0f} s over the size", way / 0.2, 0.0, way / 0.2, 1e-3))
    for mu in (0.3, 0.8):
        scene = ground(tilt, mu)
        scene.add(pl.Sphere(radius=0.1, center=(0, 0.1, 0)), pl.Rigid(friction=mu), name="ball")
        measured = speed_after(scene.build(quiet=True), "ball", seconds)
        results.append(relative(f"ball, mu {mu}: acceleration", measured, 5 / 7 * GRAVITY * sine, 0.01, "m/s^2"))
    return results


@case
def pendulum(quick: bool) -> list[Result]:
    """A rod on a hinge swings with amplitudes of 10, 45 and 90 degrees: T / T0 = 1.00191, 1.03997, 1.18034, where
    T0 = 2 pi sqrt(I / (m g l)). Steps of 5 ms."""
    results, length, width = [], 0.5, 0.04
    inertia = (length**2 + width**2) / 12 + (length / 2) ** 2  # about the end, per mass
    small = 2 * math.pi * math.sqrt(inertia / (GRAVITY * length / 2))
    for amplitude, ratio in PENDULUM.items():
        scene = pl.Scene(particle_radius=0.02)
        rod = pl.Box(size=(width, length, width), center=(0, -length / 2, 0)).rotate("z", amplitude, about=(0, 0, 0))
        body = scene.add(rod, pl.Rigid(), name="rod")
        scene.hinge(body, None, at=(0, 0, 0), axis="z", name="hinge")
        sim, angles, times = scene.build(quiet=True), [], []
        while sim.time < (2.6 if quick else 10.6) * small * ratio:
            sim.step()
            angles.append(sim["hinge"].angle + amplitude)
            times.append(sim.time)
        a, t = np.array(angles), np.array(times)
        k = np.flatnonzero((a[:-1] > 0) & (a[1:] <= 0))  # through the middle, each time in the same direction
        crossings = t[k] + (t[k + 1] - t[k]) * a[k] / (a[k] - a[k + 1])
        period = float(np.diff(crossings).mean())
        results.append(relative(f"{amplitude:g} degrees: T / T0", period / small, ratio, 0.01))
        left = float(np.abs(a[t > t[-1] - ratio * small]).max()) / amplitude
        results.append(Result(f"{amplitude:g} degrees: amplitude left", left, 1.0, left - 1.0, 0.02))
    return results


@case
def tumbling(quick: bool) -> list[Result]:
    """A box with principal moments as 1 : 2 : 3, turning about the middle axis at 1 rad/s and 0.01 about the first,
    flips over every 20.754 s (T = 41.509 s). Steps of 5 ms; energy and angular momentum stay."""
    size = np.sqrt([4.0, 2.0, 0.0]) * 0.25  # b^2 + c^2 : a^2 + c^2 : a^2 + b^2 is 1 : 2 : 3 ...
    size[2] = 1e-3 * size[0]  # ... of a plate without thickness, which is as good as one
    scene = pl.Scene(particle_radius=0.05, gravity=(0, 0, 0))
    scene.add(pl.Box(size=tuple(size)), pl.Rigid(), name="box", spin=(0.01, 1.0, 0.0))
    sim = scene.build(quiet=True)
    energy, momentum = sim["box"].energy, sim["box"].angular_momentum
    flips, up, worst = [], 1.0, 0.0
    while sim.time < (45.0 if quick else 100.0):
        sim.step()
        now = float((sim["box"].rotation.T @ sim["box"].spin)[1])
        if now * up < 0:
            flips.append(sim.time)
            up = -up
        worst = max(worst, abs(sim["box"].energy / energy - 1))
    turned = float(np.abs(sim["box"].angular_momentum - momentum).max() / np.abs(momentum).max())
    results = [relative("time between flips", float(np.diff(flips).mean()), 41.509 / 2, 0.01, "s")]
    results.append(Result("energy: largest change", worst, 0.0, worst, 1e-3))
    results.append(Result("angular momentum: change", turned, 0.0, turned, 1e-6))
    return results


@case
def cradle(quick: bool) -> list[Result]:
    """Five balls in a row touch; one that flies into them stops, and the last flies on at its speed. And a pair that
    meets with restitution 0.5: v2 = (1 + e) v / 2."""
    results = []
    for label, count, bounce in (("cradle", 5, 1.0), ("pair, e = 0.5", 2, 0.5)):
        scene, r = pl.Scene(particle_radius=0.02, gravity=(0, 0, 0)), 0.1
        for k in range(count):
            x = 2 * r * k - (0.05 if k == 0 else 0.0)
            scene.add(pl.Sphere(radius=r, center=(x, 0, 0)), pl.Rigid(restitution=bounce, friction=0.0),
                      name=f"ball{k}", velocity=(1.0 if k == 0 else 0.0, 0, 0))  # fmt: skip
        sim = scene.build(quiet=True)
        sim.run(seconds=0.2)
        last = float(sim[f"ball{count - 1}"].velocity[0])
        results.append(relative(f"{label}: speed of the last", last, (1 + bounce) / 2, 0.01, "m/s"))
        left = max(abs(float(sim[f"ball{k}"].velocity[0])) for k in range(1, count - 1)) if count > 2 else 0.0
        results.append(Result(f"{label}: speed of those between", left, 0.0, left, 0.01))
    return results


@case
def spinning_top(quick: bool) -> list[Result]:
    """A fast top on a ball joint, tilted by 30 degrees, goes round at about m g l / (I3 w3), for which
    I3 w3 W - I1 W^2 cos(tilt) = m g l."""
    r, height, w = 0.1, 0.02, 200.0
    scene, tilt, arm = pl.Scene(particle_radius=0.02, max_dt=1e-3), math.radians(30), 0.1
    axis = np.array([math.sin(tilt), math.cos(tilt), 0.0])
    disc = pl.Cylinder(radius=r, height=height, center=(0, arm, 0)).rotate("z", -30, about=(0, 0, 0))
    body = scene.add(disc, pl.Rigid(), name="top", spin=tuple(w * axis))
    scene.ball(body, None, at=(0, 0, 0))
    sim = scene.build(quiet=True)
    about, across = r**2 / 2, r**2 / 4 + height**2 / 12 + arm**2  # moments per mass, about the axis and the joint
    expected = float(np.roots([-across * math.cos(tilt), about * w, -GRAVITY * arm]).min())
    directions, times = [], []
    while sim.time < (0.5 if quick else 1.0) * 2 * math.pi / expected:
        sim.step()
        p = sim["top"].position
        directions.append(math.atan2(-p[2], p[0]))
        times.append(sim.time)
    turned = np.unwrap(directions)
    rate = float(np.polyfit(times, turned, 1)[0])
    return [relative("rate of precession", rate, expected, 0.01, "rad/s")]
