"""What a stage of the time step is: one file, one class, and it takes part. Nothing else has to be told of it."""

import dataclasses
import importlib
import pkgutil
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import taichi as ti

import pliant.solvers
from pliant.core.backend import upload
from pliant.core.fields import Field
from pliant.core.registry import Registry
from pliant.core.world import World

# The time step: places in the order in which they come (Kugelstadt 2021, Algorithm 1, extended). A stage says at which
# place it acts, and by its rank when among those there.
ORDER = (
    "births",  # particles come, go or change their material
    "prescribed",  # velocities of particles whose motion is given
    "neighbors",  # sort, lists, gradients, densities
    "walls",  # what particles have of the walls
    "contact",  # which pairs and densities pressure is to see; impulses of contact handed on
    "forces",  # gravity, drag, surface tension: velocities
    "warm start",  # the pressures of the last step act on velocities, then viscosity
    "elasticity",  # lines 3-12: velocities
    "pressure",  # line 13: velocities, and displacements that remove compression
    "rigid",  # contacts and joints of rigid bodies: their velocities, and where they will be
    "advance",  # friction of walls, positions, walls
    "grains",  # what follows the particles without being felt by them
    "probes",  # what is measured of the state that all this has led to
)


@dataclasses.dataclass(frozen=True)
class SolveResult:
    """How an iterative solve ended: iterations, mean and largest error left, whether that is below the tolerance."""

    iterations: int
    mean: float = 0.0
    largest: float = 0.0
    converged: bool = True


class Stage:
    """Base of all stages. A subclass registers itself when it is defined, in the engine or in a user's own file.

    `results` tell how the solves of the last step ended, by name; both `results` and what `save` returns are in
    checkpoints.
    """

    name: ClassVar[str]
    place: ClassVar[str]
    rank: ClassVar[int] = 0  # stages of one place act in ascending rank
    fields: ClassVar[tuple[Field, ...]] = ()  # arrays that it wants with the particles
    kinds: ClassVar[Registry] = Registry()
    speed: float = 0.0  # [m/s] that it may give to particles by itself, however long it acts

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        Stage.kinds.add(cls)

    @classmethod
    def wanted(cls, materials: Sequence[Any], settings: Any) -> bool:
        """Whether a scene of these materials needs the stage. By default none does: another stage brings it along."""
        return False

    @classmethod
    def fill(cls, world: World, rows: np.ndarray) -> None:
        """Gives its fields their first values in these rows of the particles, once the core fields have theirs."""

    def __init__(self, world: World, settings: Any):
        self.world = world
        self.notes: list[str] = []  # what the user should know of, a sentence each
        self.results: dict[str, SolveResult] = {}

    def parts(self) -> list["Stage"]:
        """The stages that it consists of: itself, and those it brings along."""
        return [self]

    def after_neighbors(self) -> None:
        """Looks at the state before anything acts on it, once neighbors and walls are known. Changes nothing but what
        belongs to the stage alone."""

    def members_changed(self) -> None:
        """Hears that particles have come or gone."""

    def run(self, dt: float) -> None:
        """Acts for one step of dt [s]."""
        raise NotImplementedError

    def max_dt(self) -> float:
        """Bound on the time step [s] that the stage needs to be stable."""
        return float("inf")

    def save(self) -> dict[str, Any]:
        """What it must remember from one step to the next beside its fields, as plain values."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes back what `save` returned."""


class Force(Stage):
    """Base of what changes velocities beside elasticity and pressure: `run` changes `particles.v`."""

    place = "forces"


def wanted_stages(materials: Sequence[Any], settings: Any) -> list[type[Stage]]:
    """The kinds of stages that a scene needs, in the order in which they act."""
    for module in pkgutil.walk_packages(pliant.solvers.__path__, "pliant.solvers."):
        importlib.import_module(module.name)
    return sorted((kind for kind in Stage.kinds if kind.wanted(materials, settings)), key=position)


def position(stage: Stage | type[Stage]) -> tuple[int, int, str]:
    """Where a stage comes in the step."""
    return ORDER.index(stage.place), stage.rank, stage.name


def material_table(world: World, parameter: str) -> ti.Ndarray:
    """Device array with one parameter of every material (0 where it has none), by `particles.material`."""
    return upload(np.array([float(getattr(m, parameter, 0.0)) for m in world.materials]), ti.f32)
