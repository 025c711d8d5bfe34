"""A body of a running simulation as NumPy arrays, in the order in which its particles were made."""

from typing import Any

import numpy as np

from pliant.boundary.walls import Wall
from pliant.errors import PliantError, SceneError
from pliant.io.data import TriMesh
from pliant.materials import Elastic
from pliant.scene.scene import Body, is_vector
from pliant.solvers.elasticity.rest import distances


class BodyView:
    """`sim[body]`: reading a property copies from the simulation, assigning `x` or `v` writes to it."""

    _assignable = ("x", "v", "material")

    def __init__(self, sim: Any, name: str, first: int, last: int):
        self._sim, self._name, self._slice = sim, name, slice(int(first), int(last))

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and name not in self._assignable:
            allowed = ", ".join(self._assignable[:-1]) + f" and {self._assignable[-1]}"
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
        change, before = wanted - everything[self._slice], self.x
        everything[self._slice] = wanted
        particles.set_by_id(field, everything)
        if field == "v" and self._sim.elasticity is not None:
            self._sim.elasticity.start_anew(self._slice)
        self._sim.measure()
        if self._sim.grains is not None:
            self._sim.grains.follow(self._sim.world.names.index(self._name), before, field, change)

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

    @property
    def grains(self) -> np.ndarray:
        """Positions of its grains (n, 3) [m], always in the same order; none unless it is `Granular(grains=...)`."""
        grains = self._sim.grains
        own = [b for b in grains.bodies if self._sim.world.names[b.number] == self._name] if grains else []
        return grains.x.to_numpy()[own[0].first : own[0].last] if own else np.zeros((0, 3), np.float32)


    # --- elastic bodies ---------------------------------------------------------------------------------

    @property
    def _elastic(self) -> tuple[Any, int]:
        """The solver that moves this body, and the body's number."""
        number = [f.body.name for f in self._sim.fillings].index(self._name)
        solver = self._sim.elasticity
        if solver is None or number not in solver.solids:
            raise PliantError(f"{self._name} is not elastic: it has no rest shape, deformation, stiffness or mesh")
        return solver, number

    @property
    def rest(self) -> np.ndarray:
        """Positions at rest (n, 3) [m]."""
        return self._elastic[0].world.particles.by_id("rest")[self._slice]

    @property
    def misfit(self) -> float:
        """How far it is from its rest shape, wherever that is: RMS distance of the particles [m]."""
        return float(np.sqrt((distances(self.rest.astype(float), self.x.astype(float)) ** 2).sum(axis=1).mean()))

    @property
    def F(self) -> np.ndarray:  # noqa: N802
        """Deformation gradients (n, 3, 3)."""
        solver, number = self._elastic
        return solver.deformation(number)[0]

    @property
    def R(self) -> np.ndarray:  # noqa: N802
        """Rotations in the deformation gradients (n, 3, 3)."""
        solver, number = self._elastic
        return solver.deformation(number)[1]

    @property
    def mesh(self) -> TriMesh:
        """Its surface now: `vertices` (n, 3) [m], `faces` (m, 3), and `fields` with their `normal` and, if the mesh it
        was made of has texture coordinates, `uv`. The vertices follow the particles (see `Skin`)."""
        self._elastic  # or it has none, which is told  # noqa: B018
        return self._sim.canvas.skins[self._name].skin.mesh(self.x)

    @property
    def material(self) -> Any:
        """Its material. Assigning another of the same kind and density changes the stiffness at run time; the matrix is
        factorised anew in the background, and the next step waits for it."""
        return self._filling.body.material

    @material.setter
    def material(self, material: Any) -> None:
        solver, number = self._elastic
        old = self.material
        if type(material) is not type(old):
            raise PliantError(f"{self._name} is {type(old).__name__} and can only become another {type(old).__name__}, "
                              f"got {material!r}")  # fmt: skip
        problems = material.problems()
        if problems:
            raise SceneError([f"{self._name}: {sentence}" for sentence in problems])
        for name in ("density", "neighbours"):
            if getattr(material, name) != getattr(old, name):
                raise PliantError(f"{self._name}: {name} belongs to the rest shape and cannot change at run time")
        self._sim.world.replace_material(number, material)
        try:
            solver.refresh()
        except PliantError:
            self._sim.world.replace_material(number, old)
            raise
        self._filling.body.material = material

    @property
    def _filling(self) -> Any:
        return next(f for f in self._sim.fillings if f.body.name == self._name)

    # --- prescribed motion ------------------------------------------------------------------------------

    @property
    def fixed(self) -> np.ndarray:
        """Which particles have a prescribed motion (n,)."""
        return self._read("mobility") == 0

    def fix(self, mask: Any = True) -> None:
        """Holds more particles in place, or has them moved if the body has a motion: `mask` is a function of the
        positions (the rest positions of an elastic body), an array, or True for all."""
        self._hold(self.fixed | self._mask(mask))

    def release(self, mask: Any = True) -> None:
        """Frees particles that were fixed or moved."""
        self._hold(self.fixed & ~self._mask(mask))

    def move(self, motion: Any, pivot: Any = None) -> None:
        """Moves the fixed particles at the velocity `motion(t)` from now on, as `body.move` does; None holds them."""
        body = self._filling.body
        if motion is not None and not callable(motion):
            raise PliantError(f"{self._name}: move needs a function of time, got {motion!r}")
        if pivot is not None and not is_vector(pivot):
            raise PliantError(f"{self._name}: pivot must be three finite numbers or None, got {pivot!r}")
        body.move(motion, pivot)
        number = [f.body.name for f in self._sim.fillings].index(self._name)
        self._sim.prescribed.lead(number, body.motion, pivot)

    def _mask(self, mask: Any) -> np.ndarray:
        from pliant.scene.assembly import marked

        elastic = isinstance(self.material, Elastic)
        return marked(self._name, mask, self._read("rest" if elastic else "x").astype(float))

    def _hold(self, fixed: np.ndarray) -> None:
        particles = self._sim.world.particles
        mobility = particles.by_id("mobility")
        if np.array_equal(mobility[self._slice] == 0, fixed):
            return
        mobility[self._slice] = np.where(fixed, 0.0, 1.0 / self._filling.body.material.density)
        particles.set_by_id("mobility", mobility)
        self._sim.prescribed.active = bool((mobility == 0).any())
        self._sim.measure()
        if self._sim.elasticity is not None:
            self._sim.elasticity.refresh()


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

    @property
    def mesh(self) -> TriMesh:
        """Its surface, where it is now."""
        shape = self._body.shown or self._body.shape
        if not np.isfinite(shape.bounds()).all():
            raise PliantError(f"{self._body.name} is infinite and has no mesh")
        vertices, faces, fields = shape.skin()
        if "normal" in fields:
            fields = fields | {"normal": fields["normal"] @ self._wall.rotation.T}
        return TriMesh(self._wall.placed(vertices), faces, fields)

    def outline(self) -> np.ndarray:
        """Line segments (m, 2, 3) of its wireframe, where it is now [m]."""
        return self._wall.placed(self._body.shape.outline())
