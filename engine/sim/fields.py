"""Everything that particles have to show: for each, one array by name, with its unit. Files, pictures, views and the
viewer all read from here."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from pliant.core.particles import Particles

if TYPE_CHECKING:
    from pliant.sim.simulation import Simulation

AXES = "xyz"
RENAMED = {"x", "v", "m", "V", "p", "density", "body", "inverse_density", "slot"}  # have other names here, or none
USUAL = ("speed", "pressure", "density", "strain", "stress", *(f"velocity.{a}" for a in AXES))
EXPORTED = ("velocity", "density", "pressure", "mass")  # what files hold, beside positions and ids
ROTATION_FREE = np.eye(3)

Rows = np.ndarray | None  # which particles; None means all, in the order they have


def read(particles: Particles, name: str, rows: Rows = None) -> np.ndarray:
    """A field of the store."""
    return particles.numpy(name) if rows is None else particles.read(name, rows)


def density(particles: Particles, rows: Rows = None) -> np.ndarray:
    """Densities at the start of the last step [kg/m^3]; before the first step, zero."""
    own, wall, m, V = (read(particles, name, rows) for name in ("density", "wall_density", "m", "V"))
    return (own + wall) * m / V


def _speed(particles: Particles, rows: Rows) -> np.ndarray:
    v = read(particles, "v", rows)
    return np.sqrt(np.einsum("ij,ij->i", v, v))


def _component(field: str, axis: int) -> Callable[[Particles, Rows], np.ndarray]:
    return lambda particles, rows: np.ascontiguousarray(read(particles, field, rows)[:, axis])


def _plain(field: str) -> Callable[[Particles, Rows], np.ndarray]:
    return lambda particles, rows: read(particles, field, rows)


_OWN: dict[str, tuple[str, Callable[[Particles, Rows], np.ndarray]]] = {
    "speed": ("m/s", _speed),
    **{f"velocity.{a}": ("m/s", _component("v", k)) for k, a in enumerate(AXES)},
    "pressure": ("Pa", _plain("p")),
    "density": ("kg/m^3", density),
    **{f"position.{a}": ("m", _component("x", k)) for k, a in enumerate(AXES)},
    "mass": ("kg", _plain("m")),
    "volume": ("m^3", _plain("V")),
    "id": ("1", lambda particles, rows: read(particles, "id", rows).astype(np.float32)),
}


def units(sim: "Simulation") -> dict[str, str]:
    """The fields of a simulation by name, with their units: first the usual ones, at last those that only the solvers
    know."""
    found = {name: unit for name, (unit, _) in _OWN.items()}
    if sim.elasticity is not None:
        found |= {"strain": "1", "stress": "Pa"}
    found = {name: found[name] for name in USUAL if name in found} | found
    schema = sim.world.particles.schema.values()
    return found | {f.name: f.unit or "1" for f in schema if f.name not in RENAMED and f.name not in found}


def meanings(sim: "Simulation") -> dict[str, str]:
    """What the names of fields do not tell."""
    schema = sim.world.particles.schema.values()
    found = {f.name: f.doc for f in schema if f.name not in RENAMED}
    return found | {"strain": "size of the corotated strain", "stress": "von Mises' stress"}


def values(sim: "Simulation", name: str) -> np.ndarray:
    """A field by name, one number for each particle in the order they have: vectors and matrices count by their
    magnitude, `velocity` is a vector."""
    particles = sim.world.particles
    if name == "velocity":
        return particles.numpy("v")
    if name in _OWN:
        return _OWN[name][1](particles, None)
    if name in ("strain", "stress") and sim.elasticity is not None:
        return _elastic(sim, name)
    found = particles.numpy(name)
    if found.ndim == 1:
        return found
    weights = np.array([1, 1, 1, 2, 2, 2], np.float32)[: found.shape[1]]  # the other half of a symmetric matrix
    return np.sqrt(np.einsum("ij,ij,j->i", found, found, weights))


def _elastic(sim: "Simulation", name: str) -> np.ndarray:
    """Of elastic bodies the size |E| of the corotated strain E = sym(R^T F) - 1, or von Mises' stress, sqrt(3/2) times
    the size of 2 mu dev E [Pa]; zero elsewhere."""
    world, solver = sim.world, sim.elasticity
    assert solver is not None
    found = np.zeros(world.particles.n, np.float32)
    for number in solver.solids:
        F, R = solver.deformation(number)
        E = np.einsum("nji,njk->nik", R, F)
        E = (E + E.transpose(0, 2, 1)) / 2 - ROTATION_FREE
        if name == "stress":
            trace = np.einsum("nii->n", E)
            E -= trace[:, None, None] / 3 * ROTATION_FREE
        size = np.sqrt(np.einsum("nij,nij->n", E, E))
        shear = world.materials[world.bodies[number].material].shear
        found[world.particles.rows_of(number)] = np.sqrt(1.5) * 2 * shear * size if name == "stress" else size
    return found
