"""Everything that particles can be coloured by: one number for each of them, in the order in which they were made."""

from collections.abc import Callable
from typing import Any

import numpy as np

AXES = "xyz"
RENAMED = {"x", "v", "m", "V", "p", "density", "body", "mobility"}  # fields of the particles that have other names here
USUAL = ("speed", "pressure", "density", "strain", "stress", *(f"velocity.{a}" for a in AXES))
ROTATION_FREE = np.eye(3)


def units(sim: Any) -> dict[str, str]:
    """The fields of a simulation by name, with their units: first the usual ones, at last those that only the solvers
    know."""
    found = {name: unit for name, (unit, _) in _OWN.items()}
    if sim.elasticity is not None:
        found |= {"strain": "1", "stress": "Pa"}
    found = {name: found[name] for name in USUAL if name in found} | found
    schema = sim.world.particles.schema.values()
    return found | {f.name: f.unit or "1" for f in schema if f.name not in RENAMED and f.name not in found}


def meanings(sim: Any) -> dict[str, str]:
    """What the names of fields do not tell."""
    schema = sim.world.particles.schema.values()
    found = {f.name: f.doc for f in schema if f.name not in RENAMED}
    return found | {"strain": "size of the corotated strain", "stress": "von Mises' stress"}


def values(sim: Any, name: str) -> np.ndarray:
    """A field by name; vectors count by their magnitude."""
    if name in _OWN:
        return _OWN[name][1](sim.world.particles)
    if name in ("strain", "stress"):
        return _elastic(sim, name)
    found = sim.world.particles.by_id(name)
    return found if found.ndim == 1 else np.sqrt(np.einsum("ij,ij->i", found, found))


def _component(field: str, axis: int) -> Callable[[Any], np.ndarray]:
    return lambda particles: np.ascontiguousarray(particles.by_id(field)[:, axis])


def _speed(particles: Any) -> np.ndarray:
    v = particles.by_id("v")
    return np.sqrt(np.einsum("ij,ij->i", v, v))


def _density(particles: Any) -> np.ndarray:
    ratio = particles.by_id("density") + particles.by_id("wall_density")
    return ratio * particles.by_id("m") / particles.by_id("V")


_OWN: dict[str, tuple[str, Callable[[Any], np.ndarray]]] = {
    "speed": ("m/s", _speed),
    **{f"velocity.{a}": ("m/s", _component("v", k)) for k, a in enumerate(AXES)},
    "pressure": ("Pa", lambda particles: particles.by_id("p")),
    "density": ("kg/m^3", _density),
    **{f"position.{a}": ("m", _component("x", k)) for k, a in enumerate(AXES)},
    "mass": ("kg", lambda particles: particles.by_id("m")),
    "volume": ("m^3", lambda particles: particles.by_id("V")),
    "id": ("1", lambda particles: np.arange(particles.n, dtype=np.float32)),
}


def _elastic(sim: Any, name: str) -> np.ndarray:
    """Of elastic bodies the size |E| of the corotated strain E = sym(R^T F) - 1, or von Mises' stress, sqrt(3/2) times
    the size of 2 mu dev E [Pa]; zero elsewhere."""
    found, solver = np.zeros(sim.particles, np.float32), sim.elasticity
    for number in solver.solids:
        F, R = solver.deformation(number)
        E = np.einsum("nji,njk->nik", R, F)
        E = (E + E.transpose(0, 2, 1)) / 2 - ROTATION_FREE
        if name == "stress":
            trace = np.einsum("nii->n", E)
            E -= trace[:, None, None] / 3 * ROTATION_FREE
        size = np.sqrt(np.einsum("nij,nij->n", E, E))
        scale = np.sqrt(1.5) * 2 * sim.world.materials[number].shear if name == "stress" else 1.0
        found[slice(*sim._ranges[sim.world.names[number]])] = scale * size
    return found
