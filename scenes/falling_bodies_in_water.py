"""Soft bodies of many shapes and weights fall into a tank of water: some float, some sink."""

import numpy as np

import pliant as pl

SECONDS = 3.5
TANK, DEPTH = (1.5, 1.0, 0.8), 0.4  # of the tank and the water in it [m]


def star(center: tuple[float, float, float]) -> pl.Shape:
    """Five arms."""
    shape: pl.Shape = pl.Sphere(radius=0.07, center=center)
    x, y, z = center
    for k in range(5):
        arm = pl.Capsule(radius=0.042, height=0.1, center=(x, y + 0.09, z))
        shape = shape | arm.rotate("z", 72 * k, about=center)
    return shape


def duck(center: tuple[float, float, float]) -> pl.Shape:
    """Body, head, bill and tail."""
    parts = [
        (pl.Capsule(radius=0.085, height=0.1, axis="x"), (0, 0, 0)),
        (pl.Sphere(radius=0.072), (0.085, 0.125, 0)),
        (pl.Capsule(radius=0.03, height=0.03, axis="x"), (0.16, 0.115, 0)),
        (pl.Capsule(radius=0.04, height=0.06, axis="x").rotate("z", -40), (-0.12, 0.06, 0)),
    ]
    shapes = [part.translate(np.add(center, place)) for part, place in parts]
    return shapes[0] | shapes[1] | shapes[2] | shapes[3]


def bodies(mesh: str | None) -> dict[str, tuple[pl.Shape, pl.Elastic, str]]:
    """Shape, material and colours of each by name: the lighter ones first."""
    toy = duck((-0.38, 0.75, 0.12))
    if mesh:
        size = np.ptp(pl.Mesh(mesh).bounds(), axis=0).max()
        toy = pl.Mesh(mesh, scale=0.32 / size, center=(-0.38, 0.78, 0.12))
    return {
        "duck": (toy, pl.Elastic(density=300, young=2e5), "honey"),
        "ring": (pl.Torus(radius=0.13, tube=0.05, center=(0.38, 0.78, 0.12)).rotate("x", 35),
                 pl.Elastic(density=500, young=1e5), "plasma"),
        "cube": (pl.Box(size=(0.18, 0.18, 0.18), center=(-0.05, 0.62, -0.2)).rotate((1, 0, 1), 30),
                 pl.Elastic(density=700, young=3e5), "sand"),
        "ball": (pl.Sphere(radius=0.11, center=(-0.42, 0.62, -0.22)), pl.Elastic(density=1500, young=2e5), "viridis"),
        "pill": (pl.Capsule(radius=0.065, height=0.16, center=(0.42, 0.64, -0.2), axis="x").rotate("y", 40),
                 pl.Elastic(density=2500, young=1e6), "grey"),
        "star": (star((0.02, 0.75, 0.2)), pl.Elastic(density=1500, young=3e4), "inferno"),
    }  # fmt: skip


def build(radius: float = 0.0125, mesh: str | None = None, dt: float = 2e-3) -> pl.Scene:
    """Duck, ring and cube are lighter than water, star, ball and pill heavier.

    radius: particle radius [m]; mesh: a file with a toy that floats in place of the duck, made 0.32 m long; dt: step of
    elastic bodies [s].
    """
    scene = pl.Scene(particle_radius=radius, elasticity=pl.Split(dt_elastic=dt))
    width, height, length = TANK
    scene.add(pl.Box(size=TANK, center=(0, height / 2, 0)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Box(size=(width, DEPTH, length), center=(0, DEPTH / 2, 0)), pl.Fluid(), name="water")
    for name, (shape, material, colors) in bodies(mesh).items():
        scene.add(shape, material, name=name, colors=colors)
    scene.camera = pl.Camera(position=(0.9, 1.15, 2.5), target=(0, 0.32, 0), fov=32)
    scene.look = pl.Look(low=-2.5, high=3.5, fluid="surface")
    return scene


def check(sim: pl.Simulation) -> None:
    """Light bodies float at the surface, heavy ones lie on the bottom, and all is still in the tank."""
    width, _, length = TANK
    level = np.percentile(sim["water"].x[:, 1], 99)
    for body in sim.scene.bodies[1:]:
        x, density = sim[body].x, body.material.density
        assert np.isfinite(x).all()
        inside = (np.abs(x[:, 0]) < width / 2) & (x[:, 1] > 0) & (np.abs(x[:, 2]) < length / 2)
        assert inside.all(), f"{body.name} has left the tank"
        if density < 1000:
            assert x[:, 1].max() > level, f"{body.name} does not float"
        elif density > 1000:
            assert x[:, 1].min() < 0.05, f"{body.name} does not sink"
