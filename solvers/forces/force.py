"""What a force is: one file, one class, and it takes part. Nothing else has to be told of it."""

import importlib
import pkgutil
from typing import Any, ClassVar

import numpy as np
import taichi as ti

import pliant.solvers
from pliant.core.backend import upload
from pliant.core.particles import Field
from pliant.core.world import World

FORCES: list[type["Force"]] = []


class Force:
    """Base of all non-pressure forces. A subclass registers itself when its module is imported."""

    name: ClassVar[str]
    rank: ClassVar[int] = 0  # forces act in ascending rank
    fields: ClassVar[tuple[Field, ...]] = ()
    feels_pressure: ClassVar[bool] = False  # acts once the pressure of the last step has, in answer to it
    speed: float = 0.0  # [m/s] that it may give to particles by itself, however long it acts

    def __init_subclass__(cls) -> None:
        FORCES.append(cls)

    @classmethod
    def wanted(cls, materials: tuple, settings: Any) -> bool:
        """Whether this scene needs the force."""
        raise NotImplementedError

    def __init__(self, world: World, settings: Any):
        self.world = world
        self.notes: list[str] = []  # what the user should know of, a sentence each

    @classmethod
    def fill(cls, world: World) -> None:
        """Gives its own fields their values at the start, once the particles have theirs."""

    def meet(self) -> None:
        """Looks at the pairs of neighbours before anything acts on them; may take some out."""

    def apply(self, dt: float) -> dict[str, float]:
        """Changes velocities by one step; returns numbers for `sim.stats`."""
        raise NotImplementedError

    def longest_step(self) -> float:
        """Bound on the time step [s] that this force needs to be stable."""
        return float("inf")


def wanted_forces(materials: tuple, settings: Any) -> list[type[Force]]:
    """The forces this scene needs, in the order in which they act."""
    for module in pkgutil.walk_packages(pliant.solvers.__path__, "pliant.solvers."):
        importlib.import_module(module.name)
    return sorted((f for f in FORCES if f.wanted(materials, settings)), key=lambda f: (f.rank, f.name))


def material_table(world: World, parameter: str) -> ti.Ndarray:
    """Device array with one parameter of every body's material (0 where it has none), by `particles.body`."""
    return upload(np.array([getattr(material, parameter, 0.0) for material in world.materials]), ti.f32)
