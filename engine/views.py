"""A body of a running simulation as NumPy arrays, in the order in which its particles were made."""

from typing import Any

import numpy as np

from pliant.errors import PliantError
from pliant.scene import Body
from pliant.walls import Wall


class BodyView:
    """`sim[body]`: reading a property copies from the simulation, assigning `x` or `v` writes to it."""

    _assignable = ("x", "v")

    def __init__(self, sim: Any, name: str, first: int, last: int):
        self._sim, self._name, self._slice = sim, name, slice(int(first), int(last))

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and name not in self._assignable:
            allowed = " and ".join(self._assignable)
            raise PliantError(f"{self._name}.{name} cannot be assigned; {allowed} can")
        object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return self._slice.stop - self._slice.start

    def _read(self, field: str) -> np.ndarray:
        return self._sim.world.particles.by_id(field)[self._slice]

    def _write(self, field: str, values: Any) -> None:
        particles = self._sim.world.particles
        everything = particles.by_id(field)
        shape = everything[self._slice].shape
        try:
            wanted = np.broadcast_to(np.asarray(values, dtype=float), shape)
        except (TypeError, ValueError):
            given = f"shape {np.shape(values)}" if isinstance(values, np.ndarray) else f"{type(values).__name__}"
            raise PliantError(f"{self._name}.{field} needs numbers of shape {shape}, got {given}") from None
        if not (np.abs(wanted) <= np.finfo(np.float32).max).all():
            raise PliantError(f"{self._name}.{field} needs finite numbers in single precision, got NaN or infinity")
        everything[self._slice] = wanted
        particles.set_by_id(field, everything)
        self._sim.measure()

    @property
    def x(self) -> np.ndarray:
        """Positions (n, 3) [m]."""
        return self._read("x")

    @x.setter
    def x(self, values: Any) -> None:
        self._write("x", values)

    @property
    def v(self) -> np.ndarray:
        """Velocities (n, 3) [m/s]."""
        return self._read("v")

    @v.setter
    def v(self, values: Any) -> None:
        self._write("v", values)

    @property
    def mass(self) -> np.ndarray:
        """Masses (n,) [kg]."""
        return self._read("m")

    @property
    def volume(self) -> np.ndarray:
        """Rest volumes (n,) [m^3]."""
        return self._read("V")

    @property
    def density(self) -> np.ndarray:
        """Densities at the start of the last step (n,) [kg/m^3]; before the first step, zero."""
        ratio = self._read("density") + self._read("wall_density")
        return ratio * self._read("m") / self._read("V")

    @property
    def pressure(self) -> np.ndarray:
        """Pressures of the last step (n,) [Pa]."""
        return self._read("p")


class WallView:
    """`sim[boundary]`: where a wall is and how it moves."""

    def __init__(self, wall: Wall, body: Body):
        self._wall, self._body = wall, body

    @property
    def position(self) -> np.ndarray:
        """Where the pivot is now [m]."""
        return self._wall.pivot + self._wall.shift

    @property
    def rotation(self) -> np.ndarray:
        """Rotation since the start (3, 3)."""
        return self._wall.rotation.copy()

    @property
    def velocity(self) -> np.ndarray:
        """Velocity of the pivot [m/s]."""
        return self._wall.velocity.copy()

    @property
    def angular_velocity(self) -> np.ndarray:
        """Angular velocity [rad/s]."""
        return self._wall.spin.copy()

    def outline(self) -> np.ndarray:
        """Line segments (m, 2, 3) of its wireframe, where it is now [m]."""
        return self._wall.placed(self._body.shape.outline())
