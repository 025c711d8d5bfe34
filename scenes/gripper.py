"""Two fingers pick up a soft ball by friction, carry it, and let it go."""

import numpy as np

import pliant as pl

SECONDS = 6.0
BALL, DENSITY, YOUNG = 0.1, 400.0, 5e4  # radius [m], density [kg/m^3] and Young's modulus [Pa] of the ball
FINGER = (0.03, 0.16, 0.12)  # size of a finger [m]
GAP = 0.03  # between the ball and each finger at first [m]
CLOSED, LIFTED, CARRIED = 0.6, 1.4, 2.4  # when fingers have closed, the ball is lifted and has been carried along [s]
HEIGHT, WAY = 0.3, 0.6  # by how much it is lifted and carried [m]


def motion(t: float) -> tuple[float, float, float]:
    """Velocity of the carriage [m/s]: up, then along x, starting and stopping gently."""
    up, along = (t - CLOSED) / (LIFTED - CLOSED), (t - LIFTED) / (CARRIED - LIFTED)
    if 0 < up < 1:
        return (0.0, HEIGHT / (LIFTED - CLOSED) * (1 - np.cos(2 * np.pi * up)), 0.0)
    if 0 < along < 1:
        return (WAY / (CARRIED - LIFTED) * (1 - np.cos(2 * np.pi * along)), 0.0, 0.0)
    return (0.0, 0.0, 0.0)


def build(radius: float = 0.0081, friction: float = 0.6, force: float = 40.0, drop: float = 4.5) -> pl.Scene:
    """The fingers slide along a carriage. One goes up to its stop, and the other presses the ball against it.

    radius: particle radius [m]; friction: Coulomb coefficient of ball and fingers [1]; force: with which the ball is
    pressed [N]; drop: after how many seconds the fingers open, 0 never [s].
    """
    scene = pl.Scene(particle_radius=radius, dt=2e-3)
    scene.add(pl.Plane(), pl.Boundary(friction=0.5), name="floor")
    ball = pl.Elastic(density=DENSITY, young=YOUNG, friction=friction)
    scene.add(pl.Sphere(radius=BALL, center=(0, BALL, 0)), ball, name="ball", colors="plasma")
    top = 2 * BALL + 0.08
    beam = pl.Box(size=(0.5, 0.04, 0.06), center=(0, top + 0.02, 0))
    carriage = scene.add(beam, pl.Rigid(density=3000), name="carriage", colors="grey")
    carriage.move(motion)
    for name, side, strength, most in (("left", -1.0, 3.0, GAP), ("right", 1.0, 1.0, 3 * GAP)):
        at = (side * (BALL + GAP + FINGER[0] / 2), BALL, 0.0)
        rod = pl.Box(size=(FINGER[0], top - BALL, 0.03), center=(at[0], (top + BALL) / 2, 0))
        finger = scene.add(pl.Box(size=FINGER, center=at) | rod, pl.Rigid(density=2000, friction=friction), name=name,
                           colors="sand")  # fmt: skip

        def press(t: float, most: float = strength * force) -> float:
            """It closes gently, and opens at once."""
            return -0.5 * force if 0 < drop < t else most * min(t / CLOSED, 1.0)

        scene.slider(finger, carriage, at=at, axis=(-side, 0, 0), limits=(-0.03, most), force=press,
                     name=f"{name} motor")  # fmt: skip
    scene.camera = pl.Camera(position=(0.8, 0.6, 1.6), target=(0.3, 0.24, 0), fov=34)
    return scene


def pressure(sim: pl.Simulation) -> tuple[float, float]:
    """Force that each finger presses with [N]."""
    return -float(sim["left"].force[0]), float(sim["right"].force[0])


def lag(sim: pl.Simulation) -> np.ndarray:
    """How far the middle of the ball is from the carriage, along x, y and z, beyond what it was at first (3,) [m]."""
    first = np.array([0.0, -BALL - 0.1, 0.0])
    return np.asarray(sim["ball"].x.mean(axis=0, dtype=float) - sim["carriage"].position - first)


def check(sim: pl.Simulation) -> None:
    """Closed fingers press hard enough and hold the ball, with equal forces on both sides; without them it falls."""
    x = sim["ball"].x
    assert np.isfinite(x).all() and x[:, 1].min() > 0, "the ball is in the floor"
    weight = 9.81 * float(sim["ball"].mass.sum(dtype=float))
    mu = sim.scene.body("ball").material.friction
    for finger, force in sim["ball"].contacts.items():
        assert np.allclose(force, -sim[finger].force, rtol=1e-3, atol=1e-3 * weight), "action is not reaction"
    if sim["right motor"].displacement < 0.0:
        assert sim.time < LIFTED or lag(sim)[1] < -0.02, "the ball hangs in the air"
    elif sim.time > LIFTED and mu * min(pressure(sim)) > weight:
        assert np.abs(lag(sim)).max() < 0.03, "the ball slips"
