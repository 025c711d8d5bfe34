"""A bucket on three hinges digs in a bed of sand, and lifts what it has got."""

import math

import numpy as np

import pliant as pl

SECONDS = 4.0
LENGTH, WIDTH, DEPTH = 0.9, 0.4, 0.26  # of the bed, which begins at FRONT [m]
FRONT, BOARD, RIM = 0.3, 0.06, 0.06  # boards of the box are so thick, and so much higher than the sand [m]
SHOULDER, BOOM, ARM = np.array([0.0, 0.62]), 0.58, 0.5  # where the boom turns, and the lengths of boom and arm [m]
DRUM, BREADTH, PLATE = 0.12, 0.2, 0.016  # radius and breadth of the bucket, and how thick its plates are [m]
DRUM_CENTER = np.array([0.05, -0.15])  # its middle, from the hinge [m]
# When the hinge of the bucket is where, and how far the bucket is turned: time [s], x, y [m], angle [degrees]
PATH = np.array([[0.0, 0.92, 0.62, 60.0], [0.7, 0.92, 0.39, 60.0], [1.3, 0.80, 0.46, 20.0], [1.8, 0.68, 0.48, -25.0],
                 [2.3, 0.62, 0.55, -75.0], [3.0, 0.66, 0.80, -100.0]])  # fmt: skip


def place(t: float) -> tuple[np.ndarray, float]:
    """Where the hinge of the bucket should be (2,) [m], and the angle of the bucket [rad]: a cubic Hermite spline, with
    the slopes of Catmull and Rom, that begins and ends at rest."""
    times, points = PATH[:, 0], PATH[:, 1:]
    k = int(np.clip(np.searchsorted(times, t, side="right") - 1, 0, len(PATH) - 2))
    h = times[k + 1] - times[k]
    s = float(np.clip((t - times[k]) / h, 0.0, 1.0))
    slopes = np.zeros_like(points)
    slopes[1:-1] = (points[2:] - points[:-2]) / (times[2:] - times[:-2])[:, None]
    step = 3 * s**2 - 2 * s**3
    x, y, turned = (points[k] + step * (points[k + 1] - points[k])
                    + h * s * (1 - s) * ((1 - s) * slopes[k] - s * slopes[k + 1]))  # fmt: skip
    return np.array([x, y]), math.radians(turned)


def angles(t: float) -> np.ndarray:
    """Angles of boom, arm and bucket from the x axis (3,) [rad], with the elbow up."""
    p, turned = place(t)
    way = p - SHOULDER
    r = float(np.hypot(*way))
    boom = math.atan2(way[1], way[0]) + math.acos((BOOM**2 + r**2 - ARM**2) / (2 * BOOM * r))
    arm = math.atan2(*(p - SHOULDER - BOOM * np.array([math.cos(boom), math.sin(boom)]))[::-1])
    return np.array([boom, arm, turned])


def speeds(t: float) -> np.ndarray:
    """Speeds of the three hinges (3,) [rad/s]: of the boom, of the arm beside it, of the bucket beside the arm."""
    h = 1e-4
    return np.diff((angles(t + h) - angles(t - h)) / (2 * h), prepend=0.0)


def beam(start: np.ndarray, end: np.ndarray, thick: float, broad: float) -> pl.Shape:
    """A beam from one point of the plane to another."""
    length, angle = float(np.hypot(*(end - start))), math.degrees(math.atan2(*(end - start)[::-1]))
    middle = (*(0.5 * (start + end)), 0.0)
    return pl.Box(size=(length + thick, thick, broad), center=middle).rotate("z", angle, about=middle)


def bucket() -> pl.Shape:
    """A drum, open towards -x, with a blade below and an ear above, where its hinge is: at the origin."""
    x, y = DRUM_CENTER
    outer = pl.Cylinder(radius=DRUM, height=BREADTH, center=(x, y, 0), axis="z")
    inner = pl.Cylinder(radius=DRUM - PLATE, height=BREADTH - 2 * PLATE, center=(x, y, 0), axis="z")
    mouth = pl.Box(size=(DRUM, 2.2 * DRUM, 1.2 * BREADTH), center=(x - 0.8 * DRUM, y, 0))
    low, high = np.array([x - 0.3 * DRUM, y - 0.9 * DRUM]), np.array([x - 0.2 * DRUM, y + 0.94 * DRUM])
    blade = beam(low, low + np.array([-0.06, -0.012]), PLATE, BREADTH)
    return ((outer - inner) - mouth) | blade | beam(np.zeros(2), high, 2 * PLATE, 0.06)


def build(radius: float = 0.01, friction_angle: float = 35.0, grains: int = 0) -> pl.Scene:
    """Motors turn boom, arm and bucket, so that the bucket goes along its path.

    radius: particle radius [m]; friction_angle: of the sand [degree]; grains: drawn for each particle, 0 for none.
    """
    scene = pl.Scene(particle_radius=radius)
    bed = (LENGTH, DEPTH, WIDTH)
    middle = FRONT + LENGTH / 2
    outer = pl.Box(size=(LENGTH + 2 * BOARD, DEPTH + RIM + BOARD, WIDTH + 2 * BOARD),
                   center=(middle, (DEPTH + RIM - BOARD) / 2, 0))  # fmt: skip
    inner = pl.Box(size=(LENGTH, DEPTH + 2 * RIM, WIDTH), center=(middle, DEPTH / 2 + RIM, 0))
    scene.add(outer - inner, pl.Boundary(), name="box")
    scene.add(pl.Plane(point=(0, -BOARD, 0)), pl.Boundary(), name="ground")
    sand = pl.Granular(friction_angle=friction_angle, grains=grains)
    scene.add(pl.Box(size=bed, center=(middle, DEPTH / 2, 0)), sand, name="sand", colors="sand")
    alpha, beta, turned = angles(0.0)
    elbow = SHOULDER + BOOM * np.array([math.cos(alpha), math.sin(alpha)])
    wrist = elbow + ARM * np.array([math.cos(beta), math.sin(beta)])
    steel = pl.Rigid(density=2000, friction=0.4)
    boom = scene.add(beam(SHOULDER, elbow, 0.05, 0.05), steel, name="boom", colors="honey")
    arm = scene.add(beam(elbow, wrist, 0.04, 0.04), steel, name="arm", colors="honey")
    at = [(float(x), float(y), 0.0) for x, y in (SHOULDER, elbow, wrist)]
    shape = bucket().rotate("z", math.degrees(turned), about=(0, 0, 0)).translate(at[2])
    scoop = scene.add(shape, steel, name="bucket", colors="grey")
    for k, (name, one, other) in enumerate((("shoulder", boom, None), ("elbow", arm, boom), ("wrist", scoop, arm))):
        scene.hinge(one, other, at=at[k], axis="z", speed=lambda t, k=k: float(speeds(t)[k]), name=name)
    scene.camera = pl.Camera(position=(1.0, 1.5, 1.9), target=(0.55, 0.5, 0), fov=37)
    return scene


def load(sim: pl.Simulation) -> np.ndarray:
    """Which particles of the sand are in the bucket (n,)."""
    hinge, turned = sim["wrist"].position[:2], place(0.0)[1]
    R = sim["bucket"].rotation[:2, :2]
    c, s = math.cos(turned), math.sin(turned)
    center = hinge + R @ np.array([[c, -s], [s, c]]) @ DRUM_CENTER
    x = sim["sand"].x
    return np.asarray((np.hypot(*(x[:, :2] - center).T) < DRUM) & (np.abs(x[:, 2]) < BREADTH / 2))


def check(sim: pl.Simulation) -> None:
    """The bucket is on its path, sand is in the box but for what is spilled, and the bucket bears what it has lifted.
    """
    x, d = sim["sand"].x, sim.scene.spacing
    inside = (np.abs(x[:, 0] - FRONT - LENGTH / 2) < LENGTH / 2) & (np.abs(x[:, 2]) < WIDTH / 2) & (x[:, 1] > 0)
    assert np.isfinite(x).all() and inside.mean() > 0.99, "sand has left the box"
    assert np.abs(sim["wrist"].position[:2] - place(sim.time)[0]).max() < 0.02, "the bucket is off its path"
    if sim.time > PATH[-1, 0]:
        held = load(sim)
        assert held.sum() * d**3 > 0.2 * math.pi * DRUM**2 * BREADTH, "the bucket is empty"
    if sim.time > PATH[-1, 0] + 0.5:
        weight = 9.81 * float(sim["sand"].mass[held].sum(dtype=float))
        assert abs(sim["bucket"].force[1] / weight + 1) < 0.05, "the bucket does not bear its load"
