"""A body of a running simulation as NumPy arrays, in the order in which its particles were made."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.boundary.wall import Wall
from pliant.core.data import TriMesh
from pliant.core.store import ArrayStore, Store
from pliant.errors import PliantError, SceneError
from pliant.scene.scene import Body, is_vector
from pliant.sim import fields
from pliant.solvers.births.meter import Meter
from pliant.solvers.births.sources import Sources
from pliant.solvers.elasticity.base import Elasticity
from pliant.solvers.elasticity.rest import distances
from pliant.solvers.granular.grains import Grains
from pliant.solvers.probes.recorder import Recorder

if TYPE_CHECKING:
    from pliant.sim.simulation import Simulation


class BodyView:
    """`sim[body]`: reading a property copies from the simulation, assigning `x` or `v` writes to it."""

    _assignable = ("x", "v", "material")

    def __init__(self, sim: "Simulation", number: int):
        self._sim, self._number, self._name = sim, number, sim.world.bodies[number].name

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and name not in self._assignable:
            allowed = ", ".join(self._assignable[:-1]) + f" and {self._assignable[-1]}"
            raise PliantError(f"{self._name}.{name} cannot be assigned; {allowed} can")
        object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def _rows(self) -> np.ndarray:
        """Where its particles are among all, in the order in which they were made."""
        return self._sim.world.particles.rows_of(self._number)

    @property
    def _body(self) -> Body:
        return self._sim.scene.body(self._name)

    def _read(self, field: str) -> np.ndarray:
        return self._sim.world.particles.read(field, self._rows)

    def _numbers(self, field: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
        """What was given for a field, as an array of that shape."""
        try:
            wanted = np.broadcast_to(np.asarray(values, dtype=float), shape)
        except (TypeError, ValueError):
            given = f"shape {np.shape(values)}" if isinstance(values, np.ndarray) else f"{type(values).__name__}"
            raise PliantError(f"{self._name}.{field} needs numbers of shape {shape}, got {given}") from None
        if not (np.abs(wanted) <= np.finfo(np.float32).max).all():
            raise PliantError(f"{self._name}.{field} needs finite numbers in single precision, got NaN or infinity")
        return wanted

    def _write(self, field: str, values: Any) -> None:
        sim, before, old = self._sim, self.x, self._read(field)
        wanted = self._numbers(field, values, old.shape)
        sim.world.particles.write(field, self._rows, wanted)
        if field == "v" and sim.elasticity is not None:
            sim.elasticity.take_velocities(self._rows, old)
        sim.measure()
        if (grains := self._grain_store) is not None:
            grains.follow(self._number, before, field, wanted - old)

    @property
    def _grain_store(self) -> Grains | None:
        store = self._sim.world.stores.get(Grains.name)
        return store if isinstance(store, Grains) else None

    # --- particles come and go --------------------------------------------------------------------------

    def add(self, x: Any, v: Any = 0.0) -> None:
        """Adds particles at places x (n, 3) [m] with velocities v [m/s], (n, 3) or the same three numbers for all. Only
        what flows can grow."""
        x = np.asarray(x, dtype=float)
        if x.ndim != 2 or x.shape[1] != 3:
            raise PliantError(f"{self._name}.add needs places of shape (n, 3), got {x.shape}")
        self._only_what_flows("added to")
        self._sim.add_particles(self._number, self._numbers("x", x, x.shape), self._numbers("v", v, x.shape))

    def remove(self, mask: Any) -> None:
        """Takes particles out: `mask` is a function of the positions (n, 3), or an array of True and False."""
        from pliant.scene.assembly import marked

        self._only_what_flows("taken from")
        self._sim.remove_particles(self._rows[marked(self._name, mask, self.x.astype(float), "remove")])

    def _only_what_flows(self, what: str) -> None:
        if not self.material.fluid_like:
            raise PliantError(f"{self._name}: particles can be {what} fluids and sand only; those of an elastic body "
                              "belong together")  # fmt: skip

    # --- what they have ---------------------------------------------------------------------------------

    @property
    def x(self) -> np.ndarray:
        """Positions (n, 3) [m]."""
        return self._read("x")

    @x.setter
    def x(self, values: Any) -> None:
        self._write("x", values)

    @property
    def v(self) -> np.ndarray:
        """Velocities (n, 3) [m/s]. What is added to those of an elastic body acts as an impulse, m dv, in the next
        step; if all are scaled down, as by v = 0, it goes on with these."""
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
        return fields.density(self._sim.world.particles, self._rows)

    @property
    def pressure(self) -> np.ndarray:
        """Pressures of the last step (n,) [Pa]."""
        return self._read("p")

    @property
    def grains(self) -> np.ndarray:
        """Positions of its grains (n, 3) [m], always in the same order; none unless it is `Granular(grains=...)`."""
        grains = self._grain_store
        own = [k for k, group in enumerate(grains.groups) if group.number == self._number] if grains else []
        return grains.read("x", grains.rows_of(own[0])) if grains and own else np.zeros((0, 3), np.float32)

    # --- wet sand ---------------------------------------------------------------------------------------

    @property
    def pore_pressure(self) -> np.ndarray:
        """Pressures of the water in the pores of sand (n,) [Pa]."""
        self._only_sand("pore_pressure")
        return self._read("pore_pressure")

    @property
    def effective_pressure(self) -> np.ndarray:
        """What grains bear of the pressure, and what friction grows with (n,) [Pa]."""
        return np.maximum(self.pressure - self.pore_pressure, 0.0)

    @property
    def saturation(self) -> np.ndarray:
        """The share of its pores that water fills (n,); more than 1 where water is about to come out."""
        self._only_sand("saturation")
        if "water" not in self._sim.world.particles.schema:  # nothing is there that could seep
            return np.zeros(len(self), np.float32)
        return self._read("water") / (self.material.porosity * self._read("V"))

    def _only_sand(self, name: str) -> None:
        if not self.material.has_yield_stress:
            raise PliantError(f"{self._name} has no {name}: it is not sand (pl.Granular with friction or cohesion)")

    # --- elastic bodies ---------------------------------------------------------------------------------

    @property
    def _elastic(self) -> Elasticity:
        """The solver that moves this body."""
        solver = self._sim.elasticity
        if self.material.elastic and not len(self):
            raise PliantError(f"{self._name} is not there: it has not appeared yet, or it is gone")
        if solver is None or self._number not in solver.solids:
            raise PliantError(f"{self._name} is not elastic: it has no rest shape, deformation, stiffness or mesh")
        return solver

    @property
    def rest(self) -> np.ndarray:
        """Positions at rest (n, 3) [m]."""
        return self._elastic.world.particles.read("rest", self._rows)

    @property
    def misfit(self) -> float:
        """How far it is from its rest shape, wherever that is: RMS distance of the particles [m]."""
        return float(np.sqrt((distances(self.rest.astype(float), self.x.astype(float)) ** 2).sum(axis=1).mean()))

    @property
    def F(self) -> np.ndarray:  # noqa: N802
        """Deformation gradients (n, 3, 3)."""
        return self._elastic.deformation(self._number)[0]

    @property
    def R(self) -> np.ndarray:  # noqa: N802
        """Rotations in the deformation gradients (n, 3, 3)."""
        return self._elastic.deformation(self._number)[1]

    @property
    def contact_force(self) -> np.ndarray:
        """Forces on its particles by all that touches it (n, 3) [N]: other bodies, walls, fluids, its own far parts;
        pressure and friction, in the last step."""
        return self._elastic.world.particles.read("contact_force", self._rows)

    @property
    def contacts(self) -> dict[str, np.ndarray]:
        """Who touches it, and the force on it (3,) [N] of each. A particle that several push is counted to the one that
        pushes it most."""
        world = self._elastic.world
        force, pusher = self.contact_force.astype(float), world.particles.read("pusher", self._rows)
        names = {k: body.name for k, body in enumerate(world.bodies)}
        names |= {-2 - k: wall.name for k, wall in enumerate(world.walls.walls)}
        return {names[k]: force[pusher == k].sum(axis=0) for k in np.unique(pusher).tolist() if k in names}

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
        return self._body.material

    @material.setter
    def material(self, material: Any) -> None:
        solver, world, old = self._elastic, self._sim.world, self.material
        if type(material) is not type(old):
            raise PliantError(f"{self._name} is {type(old).__name__} and can only become another {type(old).__name__}, "
                              f"got {material!r}")  # fmt: skip
        problems = material.problems()
        if problems:
            raise SceneError([f"{self._name}: {sentence}" for sentence in problems])
        for name in ("density", "neighbors"):
            if getattr(material, name) != getattr(old, name):
                raise PliantError(f"{self._name}: {name} belongs to the rest shape and cannot change at run time")
        index = world.bodies[self._number].material
        world.materials[index] = material
        try:
            solver.refresh()
        except PliantError:
            world.materials[index] = old
            raise
        self._body.material = material
        self._sim.collect_notes()

    # --- prescribed motion ------------------------------------------------------------------------------

    @property
    def fixed(self) -> np.ndarray:
        """Which particles have a prescribed motion (n,)."""
        return self._read("inverse_density") == 0

    def fix(self, mask: Any = True) -> None:
        """Holds more particles in place, or has them moved if the body has a motion: `mask` is a function of the
        positions (the rest positions of an elastic body), an array, or True for all."""
        self._hold(self.fixed | self._mask(mask))

    def release(self, mask: Any = True) -> None:
        """Frees particles that were fixed or moved."""
        self._hold(self.fixed & ~self._mask(mask))

    def move(self, motion: Any, pivot: Any = None) -> None:
        """Moves the fixed particles at the velocity `motion(t)` from now on, as `body.move` does; None holds them."""
        body = self._body
        if motion is not None and not callable(motion):
            raise PliantError(f"{self._name}: move needs a function of time, got {motion!r}")
        if pivot is not None and not is_vector(pivot):
            raise PliantError(f"{self._name}: pivot must be three finite numbers or None, got {pivot!r}")
        body.move(motion, pivot)
        self._sim.prescribed.lead(self._number, body.motion, pivot)

    def _mask(self, mask: Any) -> np.ndarray:
        from pliant.scene.assembly import marked

        return marked(self._name, mask, self._read("rest" if self.material.elastic else "x").astype(float))

    def _hold(self, fixed: np.ndarray) -> None:
        if np.array_equal(self.fixed, fixed):
            return
        inverse_density = np.where(fixed, 0.0, 1.0 / self.material.density)
        self._sim.world.particles.write("inverse_density", self._rows, inverse_density)
        self._sim.prescribed.refresh()
        self._sim.measure()
        if self._sim.elasticity is not None:
            self._sim.elasticity.refresh()
            self._sim.collect_notes()


class StoreView:
    """`sim[body]` of a body in another store: its fields by name."""

    def __init__(self, store: Store, name: str):
        self._store, self._name = store, name

    def __getattr__(self, field: str) -> np.ndarray:
        store = self._store
        if field.startswith("_") or not isinstance(store, ArrayStore) or field not in store.schema:
            raise AttributeError(f"{self._name} has no {field!r}")
        return store.read(field, store.rows_of(store.bodies.index(self._name)))

    def __len__(self) -> int:
        return self._store.counts()[self._name]


class SourceView:
    """`sim[emitter]` and `sim[drain]`: what has passed, and how fast."""

    def __init__(self, store: Sources, name: str):
        self._store, self._name = store, name
        self._nozzle = next((one for one in store.nozzles if one.emitter.name == name), None)
        self._sink = next((one for one in store.sinks if one.drain.name == name), None)

    @property
    def _meter(self) -> Meter:
        found = self._nozzle or self._sink
        assert found is not None
        return found.meter

    @property
    def count(self) -> int:
        """Particles that have come out of it, or gone into it."""
        return self._meter.count

    @property
    def volume(self) -> float:
        """Their volume [m^3]."""
        return self._meter.volume

    @property
    def rate(self) -> float:
        """Volume per time [m^3/s]: of an emitter in the last step, of a drain over the last 0.2 s."""
        if self._nozzle is not None:
            return self._nozzle.emitter.shape.area() * self._nozzle.pace
        return self._meter.rate(self._store.world.time)

    @property
    def bodies(self) -> dict[str, int]:
        """Particles that have passed, by body."""
        if self._nozzle is not None:
            return {self._nozzle.emitter.body: self.count}
        assert self._sink is not None
        names = [body.name for body in self._store.world.bodies]
        return {name: int(count) for name, count in zip(names, self._sink.taken, strict=True) if count}

    @property
    def waiting(self) -> bool:
        """Whether something is in the way of an emitter; a drain never waits."""
        return self._nozzle is not None and self._nozzle.waiting


class ProbeView:
    """`sim[probe]`: what it has recorded."""

    def __init__(self, recorder: Recorder):
        self._recorder, self._shape = recorder, recorder.probe.shape

    def __len__(self) -> int:
        return self._recorder.samples.count

    @property
    def times(self) -> np.ndarray:
        """Times of the samples (n,) [s]."""
        return self._recorder.samples.rows[:, 0].copy()

    @property
    def values(self) -> np.ndarray:
        """The samples: (n,) for a scalar at a point or on a patch, (n, points) at a list of points, with (..., 3) for
        vectors, (n, 2) for a flow: volume [m^3/s] and mass [kg/s] per time."""
        rows = self._recorder.samples.rows[:, 1 : 1 + self._recorder.measured]
        return rows.reshape(-1, *self._shape).copy()

    @property
    def value(self) -> Any:
        """The last sample, a number or an array; NaN before the first."""
        return self.values[-1] if len(self) else np.full(self._shape, np.nan)[()]

    @property
    def total(self) -> np.ndarray:
        """Volume [m^3] and mass [kg] that have passed a section since the start, (2,)."""
        if not len(self._recorder.total):
            raise PliantError(f"{self._recorder.probe.name} measures {self._recorder.probe.quantity}; only a flow has "
                              "a total")  # fmt: skip
        return self._recorder.total.copy()

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Names and units of the columns of its files, after the time."""
        return list(self._recorder.columns)


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
    def force(self) -> np.ndarray:
        """Force of everything that pushed and rubbed on it in the last step [N]."""
        return self._wall.force.copy()

    @property
    def torque(self) -> np.ndarray:
        """Moment of these forces about `position` [N m]."""
        return self._wall.torque.copy()

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
