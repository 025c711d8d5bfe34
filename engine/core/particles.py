"""The particles: one store, everything about it derived from one declared schema."""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from pliant.core.fields import Field
from pliant.core.memory import available_memory
from pliant.core.store import ArrayStore
from pliant.errors import SimulationError

CORE = (
    Field("x", "vector", "m", "position", carried=True),
    Field("v", "vector", "m/s", "velocity", carried=True),
    Field("m", "real", "kg", "mass", carried=True),
    Field("V", "real", "m^3", "rest volume", carried=True),
    Field("inverse_density", "real", "m^3/kg", "1 / rest density, or 0 for particles with prescribed motion",
          carried=True),
    Field("material", "int", "", "its place in the scene's table of materials", carried=True),
    Field("density", "real", "1", "density over rest density", saved=True),
)  # fmt: skip


BYTES_EACH = 1024  # of a particle, neighbor lists included; measured by `pliant bench fluid`
INITIAL, EMITTED, DRAINED = "initial", "emitted", "drained"
ACCOUNTS = (INITIAL, EMITTED, DRAINED)  # rows of the accounts: there at the start, come since, gone since


class Particles(ArrayStore):
    """The particles of all bodies. Which `material` one has may change, the `body` it was made for does not.

    `accounts` (3, bodies) holds how many of each body were there at the start, have come since and have gone since.
    """

    name = "particles"
    built_in = True
    fields: ClassVar[tuple[Field, ...]] = CORE

    def __init__(self, bodies: Sequence[str], fields: Iterable[Field] = (), count: int = 0):
        super().__init__(bodies, fields, count)
        self.accounts = np.zeros((len(ACCOUNTS), len(self.population)), int)

    def reserve(self, count: int) -> None:
        """Makes room, if there is memory for it: what comes while a scene runs may become too much."""
        if self.n and count > self.capacity:
            needed, free = BYTES_EACH * max(count, 2 * self.capacity), available_memory()
            if needed > free:
                raise SimulationError(f"more than {self.n:,} particles need about {needed / 2**30:.3g} GiB of memory, "
                                      f"and {free / 2**30:.3g} GiB are free; let fewer of them come, or drain "
                                      "some")  # fmt: skip
        super().reserve(count)

    def enter(self, account: str, body: np.ndarray) -> None:
        """Enters particles of these bodies (n,) into an account."""
        self.accounts[ACCOUNTS.index(account)] += np.bincount(body, minlength=len(self.population))

    def save(self) -> dict[str, np.ndarray]:
        return super().save() | {"accounts": self.accounts.copy()}

    def restore(self, arrays: Mapping[str, np.ndarray], partly: bool = False) -> None:
        super().restore(arrays, partly)
        self.accounts = np.array(arrays["accounts"])

    def by_id(self, name: str) -> np.ndarray:
        """A copy of one field in the order in which the particles were made."""
        return self.numpy(name)[self.rows_by_id()]

    def set_by_id(self, name: str, values: np.ndarray) -> None:
        """Writes one field, given in the order in which the particles were made."""
        self.write(name, self.rows_by_id(), values)
