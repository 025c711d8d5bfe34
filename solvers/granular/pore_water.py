"""Which materials hold and give water, by what law (see `seepage`), and how much of it sand begins with."""

from typing import Any

import numpy as np

from pliant.core.world import BodyGroup, World

SAND, WATER = 1.0, 2.0  # roles: what holds water in its pores, and the liquid that it is


def is_porous(material: Any) -> bool:
    """Whether water seeps into it, and its friction is found by effective stress."""
    return bool(getattr(material, "porosity", 0.0)) and material.has_yield_stress


def liquid_of(world: World) -> Any:
    """The material that seeps: the first liquid of the scene."""
    return next(m for body in world.bodies if (m := world.materials[body.material]).liquid)


def seeps(world: World, material: Any) -> bool:
    """Whether a material is that liquid, be it in another body."""
    first = liquid_of(world)
    return material.liquid and (material.density, material.viscosity) == (first.density, first.viscosity)


def law_of(world: World, body: BodyGroup) -> list[float]:
    """The row of the material of a body in the table that kernels read: role, porosity, the coefficients A and B of
    Ergun 1952 (see `seepage`), density, and the volume of a particle."""
    liquid, material = liquid_of(world), world.materials[body.material]
    if not is_porous(material):
        return [WATER * seeps(world, material), 1.0, 0.0, 0.0, material.density, body.volume_each]
    n, D, rho = material.porosity, material.grain_diameter, liquid.density
    viscous = 150 * rho * liquid.viscosity * (1 - n) ** 2 / (n**3 * D**2)
    return [SAND, n, viscous, 1.75 * rho * (1 - n) / (n**3 * D), material.density, body.volume_each]


def wet(world: World, rows: np.ndarray, saturation: float) -> None:
    """Fills this share of the pores of particles with water."""
    p, rho = world.particles, liquid_of(world).density
    porosity = np.array([getattr(m, "porosity", 0.0) for m in world.materials])[p.read("material", rows)]
    V, free = p.read("V", rows), p.read("inverse_density", rows) > 0
    water = saturation * porosity * V
    mass = p.read("m", rows) + rho * (water - p.read("water", rows))
    p.write("water", rows, water)
    p.write("m", rows, mass)
    p.write("inverse_density", rows, np.where(free, V / mass, 0.0))


def wet_what_lies_under_water(world: World) -> None:
    """Sand whose saturation is not given is full where free water stands above it, in columns of one spacing."""
    p, g = world.particles, float(np.linalg.norm(world.gravity))
    material = p.numpy("material")
    unknown = [is_porous(m) and m.saturation is None for m in world.materials]
    liquid = [seeps(world, m) for m in world.materials]
    sand, water = np.flatnonzero(np.array(unknown)[material]), np.flatnonzero(np.array(liquid)[material])
    if not g or not len(sand) or not len(water):
        return
    x, up = p.numpy("x").astype(float), -world.gravity / g
    across = np.linalg.svd(up[None])[2][1:]  # two directions at right angles to it
    column = np.floor((x @ across.T) / world.spacing + 0.25).astype(np.int64)
    column -= column.min(axis=0)
    number = column[:, 0] * (column[:, 1].max() + 1) + column[:, 1]
    top = np.full(number.max() + 1, -np.inf)
    np.maximum.at(top, number[water], x[water] @ up)
    wet(world, sand[x[sand] @ up < top[number[sand]]].astype(np.int32), 1.0)
