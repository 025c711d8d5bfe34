"""A press squeezes a heap of soft balls, rings and blocks in a box, and lets it go again."""

from typing import Any

import numpy as np

import pliant as pl

SECONDS = 2.5
WIDTH = 0.5  # of the box [m]
TOP = 0.5  # underside of the press at the start [m]
TIMES = (0.3, 0.8, 1.0, 1.3)  # when the press sets off, is down, sets off again, is up [s]
OWN = 4.0  # in spacings: particles of a body nearer than this at rest do not press on each other


def bodies() -> dict[str, tuple[pl.Shape, float, str]]:
    """Shape, Young's modulus [Pa] and colours by name, from the bottom to the top."""
    return {
        "arch": (pl.Torus(radius=0.13, tube=0.045, center=(0, 0.18, 0), axis="z"), 3e5, "water"),
        "cube": (pl.Box(size=(0.15, 0.15, 0.15), center=(-0.13, 0.08, -0.14)), 2e5, "honey"),
        "ball": (pl.Sphere(radius=0.085, center=(0.13, 0.09, -0.14)), 1e5, "viridis"),
        "roll": (pl.Capsule(radius=0.07, height=0.24, center=(0, 0.075, 0.13), axis="x"), 1e5, "sand"),
        "egg": (pl.Sphere(radius=0.075, center=(0.12, 0.24, 0.14)), 5e4, "grey"),
        "dice": (pl.Box(size=(0.13, 0.13, 0.13), center=(-0.11, 0.24, -0.15)), 1e5, "inferno"),
        "ring": (pl.Torus(radius=0.15, tube=0.05, center=(0, 0.41, 0)), 2e5, "plasma"),
    }


def build(radius: float = 0.008, low: float = 0.16, dt: float = 2e-3) -> pl.Scene:
    """They touch each other, and the standing ring also itself.

    radius: particle radius [m]; low: height down to which the press goes [m], where the bodies alone fill 0.11 m;
    dt: step of the elastic solve [s].
    """
    scene = pl.Scene(particle_radius=radius, elasticity=pl.Split(dt_elastic=dt))
    box = pl.Box(size=(WIDTH, 1.0, WIDTH), center=(0, 0.5, 0))
    shown = pl.Box(size=(WIDTH, 0.5, WIDTH), center=(0, 0.25, 0))
    scene.add(box, pl.Boundary(inside_out=True, friction=0.3), name="box", shown=shown)
    plate = pl.Box(size=(WIDTH + 0.2, 0.1, WIDTH + 0.2), center=(0, TOP + 0.05, 0))  # it reaches into the walls
    shown = pl.Box(size=(WIDTH, 0.03, WIDTH), center=(0, TOP + 0.015, 0))
    press = scene.add(plate, pl.Boundary(friction=0.3), name="press", shown=shown)
    start, down, again, up = TIMES

    def speed(t: float) -> tuple[float, float, float]:
        if start <= t < down:
            return 0, (low - TOP) / (down - start), 0
        return 0, (TOP - low) / (up - again) if again <= t < up else 0, 0

    press.move(speed)
    for name, (shape, young, colors) in bodies().items():
        scene.add(shape, pl.Elastic(young=young), name=name, colors=colors)
    scene.camera = pl.Camera(position=(0.5, 0.42, 1.6), target=(0, 0.24, 0), fov=30)
    scene.look = pl.Look(low=-1.5, high=2)
    return scene


def nearest(a: np.ndarray, b: np.ndarray, own: Any = None, apart: float = 0.0) -> float:
    """Least distance of points a from points b; with rest positions `own`, of those that are `apart` at rest."""
    least = np.inf
    for k in range(0, len(a), 200):
        d = np.linalg.norm(a[k : k + 200, None] - b, axis=2)
        if own is not None:
            d[np.linalg.norm(own[k : k + 200, None] - own, axis=2) < apart] = np.inf
        least = min(least, float(d.min()))
    return least


def check(sim: pl.Simulation) -> None:
    """No body has passed through another, itself, the box or the press; let go, they have their shapes again."""
    views = {body.name: sim[body] for body in sim.scene.bodies[2:]}
    under, d = sim["press"].position[1] - 0.05, sim.scene.spacing
    for name, view in views.items():
        x = view.x
        assert np.isfinite(x).all()
        assert (np.abs(x[:, [0, 2]]) < WIDTH / 2).all() and (x[:, 1] > 0).all(), f"{name} has passed the box"
        assert (x[:, 1] < under).all(), f"{name} has passed the press"
        assert nearest(x, x, view.rest, OWN * d) > 0.4 * d, f"{name} has passed through itself"
    names = list(views)
    for k, one in enumerate(names):
        for other in names[k + 1 :]:
            assert nearest(views[one].x, views[other].x) > 0.4 * d, f"{one} has passed through {other}"
    if sim.time > TIMES[-1] + 0.15:
        for name, view in views.items():
            size = np.ptp(view.rest, axis=0).max()
            assert view.misfit < 0.1 * size, f"{name} has not found back to its shape"
