"""A cup tilts and pours its water into another one, which stands on a scale. (Both are drawn cut open.)"""

import numpy as np

import pliant as pl

SECONDS = 4.0
INNER, HEIGHT, FILLED = 0.05, 0.12, 0.09  # radius and depth of the inside of the cup, and of the water in it [m]
LOWER = 0.11  # radius of the inside of the lower one, which is as high [m]
LIFT = 0.01  # of the bottom of the cup over the lip of the lower one [m]
START = 0.2  # when it begins to tilt [s]
TILT = np.radians(125)  # by how much


def cup(center: tuple[float, float, float], radius: float, wall: float) -> pl.Shape:
    """A cup of that inner radius and wall [m]; `center` is that of the bottom of its inside."""
    x, y, z = center
    inside = pl.Cylinder(radius=radius, height=HEIGHT, center=(x, y + HEIGHT / 2, z))
    return pl.Cylinder(radius=radius + wall, height=wall + HEIGHT, center=(x, y + (HEIGHT - wall) / 2, z)) - inside


def build(radius: float = 0.004, fluid: str = "water", turn: float = 3.0) -> pl.Scene:
    """radius: particle radius [m]; fluid: water or honey; turn: how long it takes to tilt the cup [s]."""
    scene = pl.Scene(particle_radius=radius)
    wall = 3 * radius
    low, high = (0.0, wall, 0.0), (-LOWER / 2 - INNER, 2 * wall + HEIGHT + LIFT, 0.0)
    pivot = (high[0] + INNER, high[1] + HEIGHT, 0.0)  # the lip over which it flows
    behind = pl.Box(size=(2, 2, 0.5), center=(0, 0, -0.25))

    def motion(t: float) -> tuple:
        """Slowly at first and in the end."""
        s = np.clip((t - START) / turn, 0, 1)
        return (0, 0, 0), (0, 0, -TILT / turn * 6 * s * (1 - s))

    scene.add(pl.Plane(), pl.Boundary(), name="ground")
    upper, lower = cup(high, INNER, wall), cup(low, LOWER, wall)
    scene.add(upper, pl.Boundary(), name="upper", shown=upper & behind).move(motion, pivot=pivot)
    scene.add(lower, pl.Boundary(), name="lower", shown=lower & behind)
    liquid = pl.Fluid() if fluid == "water" else pl.Fluid(density=1400, viscosity=5e-3)
    full = pl.Cylinder(radius=INNER, height=FILLED, center=(high[0], high[1] + FILLED / 2, 0))
    scene.add(full, liquid, name="liquid", colors="water" if fluid == "water" else "honey")
    scene.camera = pl.Camera(position=(0.05, 0.5, 0.95), target=(-0.03, 0.16, 0), fov=36)
    scene.look = pl.Look(low=-0.6, high=1.6)
    return scene


def check(sim: pl.Simulation) -> None:
    """Most of the water is in the lower cup, none in the walls, and the scale carries what is in it."""
    x, m = sim["liquid"].x, sim["liquid"].mass
    assert np.isfinite(x).all()
    local = (x - sim["upper"].position) @ sim["upper"].rotation + sim["upper"].position
    for name, points in (("upper", local), ("lower", x)):
        assert not sim.scene.body(name).shape.inside(points).any(), f"water is in the wall of {name}"
    inside = (np.hypot(x[:, 0], x[:, 2]) < LOWER) & (x[:, 1] < HEIGHT + 0.02)
    assert inside.mean() > 0.7, "the water has not got into the lower cup"
    weight = 9.81 * m[inside].sum()
    assert -sim["lower"].force[1] > 0.5 * weight, "the lower cup does not carry what is in it"
