"""The rigid bodies of a scene: what they are made of, what holds them, and what acts between them.

Where they are and how they move stands with the walls, which they are to particles (`boundary.walls`).
"""

import copy
import dataclasses
import itertools
import types
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from pliant.core.backend import threads_for
from pliant.core.store import Store
from pliant.core.world import BodySamples, World
from pliant.errors import PliantError
from pliant.solvers.rigid.articulation import Articulation, articulations, still_acting
from pliant.solvers.rigid.bodies import Bodies, Contacts
from pliant.solvers.rigid.detection import Detection
from pliant.solvers.rigid.forms import form_of
from pliant.solvers.rigid.joints import FORCE, NO_MOTOR, SPEED, WORLD, Joints, joint, joints, speeds
from pliant.solvers.rigid.options import AxisJoint, Joint
from pliant.solvers.rigid.solver import Forces, RigidSolver

ROUGHNESS = 0.5  # Coulomb coefficient of two of them, or one and a wall, where neither has its own: wood on wood
MARGIN = 0.02  # of the size of a body: contacts that near are known before they close


class RigidBodies(Store):
    """Contacts and joints of rigid bodies, with what they remember from one step to the next."""

    name = "rigid"

    @classmethod
    def wanted(cls, materials: Sequence[Any], settings: Any) -> bool:
        return any(material.free or material.driven for material in materials)

    @classmethod
    def build(cls, world: World, bodies: Sequence[BodySamples]) -> "RigidBodies":
        return cls(world, [body for body in bodies if body.material.is_wall])

    def __init__(self, world: World, bodies: Sequence[BodySamples]):
        self.world, walls = world, world.walls
        forms = [form_of(body.shape, wall.pivot, bool(body.material.inside_out))
                 for body, wall in zip(bodies, walls.walls, strict=True)]  # fmt: skip
        self.detection, self.solver = Detection(forms), RigidSolver()
        self.frictions, self.restitutions = self._tables(bodies)
        self.articulations: list[Articulation] = []
        self.declared: tuple[Joint, ...] = ()
        self.joints: Joints | None = None
        self.ignored: list[tuple[int, int]] = []
        n = len(walls.walls)
        self.force, self.before = np.zeros((n, 6)), np.zeros((n, 6))  # and torque, of the last two steps [N, N m]
        self.pulls = np.zeros((n, 6))  # and torques of hands in the step under way [N, N m]
        self._pressed = np.zeros(0, np.int64), np.zeros((0, 3))  # pairs that touch, and their forces [N]
        self.joint_states: dict[str, Any] = {}
        self._good: dict[str, np.ndarray] = {}

    def _tables(self, bodies: Sequence[BodySamples]) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients of friction and restitution of all pairs (n, n)."""
        frictions, names = self.world.frictions, [body.name for body in bodies]
        kinds = list({id(body.material): body for body in bodies}.values())
        kind = {id(body.material): k for k, body in enumerate(kinds)}
        number = np.array([kind[id(body.material)] for body in bodies], int)
        table = np.array([[_roughness(a.material, b.material) for b in kinds] for a in kinds])
        table = table.reshape(len(kinds), len(kinds))
        found = table[np.ix_(number, number)]
        place = {name: k for k, name in enumerate(names)}
        for pair, mu in frictions.given.items():
            rows = [place[name] for name in pair if name in place]
            if len(rows) == len(pair):
                found[rows[0], rows[-1]] = found[rows[-1], rows[0]] = mu
        bounce = np.array([getattr(body.material, "restitution", 0.0) for body in bodies], float)
        return found, np.maximum(bounce[:, None], bounce[None, :])

    def declare(self, declared: Sequence[Joint]) -> None:
        """Takes the joints of the scene, which say where they are when all is as it was built."""
        walls, rows = self.world.walls, []
        n = len(walls.walls)
        self.articulations = articulations(self.world)
        for links in self.articulations:  # which see to contacts of their own parts themselves
            self.ignored += itertools.combinations(links.parts.tolist(), 2)
        built = Bodies(walls.pivots, np.tile(np.eye(3), (n, 1, 1)), np.zeros((n, 3)), np.zeros((n, 3)), np.ones(n),
                       np.zeros((n, 3, 3)))  # fmt: skip
        place = {wall.name: k for k, wall in enumerate(walls.walls)} | {None: WORLD}
        for one in declared:
            first, second = place[one.a], place[one.b]
            more: dict[str, Any] = {}
            if isinstance(one, AxisJoint):
                more = {"axis": one.direction(), "limits": one.limit_range(), "most": one.strongest}
            if one.kind in ("spring", "distance"):
                more["length"] = one.rest_length()  # type: ignore[attr-defined]
            if one.kind == "spring":
                more |= {"stiffness": one.stiffness, "damping": one.damping}  # type: ignore[attr-defined]
            # the second is the frame in which the first moves
            rows.append(joint(built, one.kind, second, first, one.anchors()[::-1], **more))
            if not one.contact and WORLD not in (first, second):
                self.ignored.append((first, second))
        self.declared, self.joints = tuple(declared), joints(rows) if rows else None

    def joined(self, number: int) -> list[int]:
        """A free body, and all that are joined to it, or to one of these, by more than a spring."""
        free, found = self.world.walls.free, [number]
        place = {name: k for k, name in enumerate(self.world.walls.names)}
        pairs = [{place[one.a], place[one.b]} for one in self.declared if one.b is not None and one.kind != "spring"]
        for body in found:  # which grows meanwhile
            for pair in pairs:
                if body in pair:
                    found += [other for other in pair if free[other] and other not in found]
        return found

    # --- a step -----------------------------------------------------------------------------------------

    @property
    def lasting(self) -> np.ndarray:
        """(n, 6) forces and torques of contacts and joints that are about what they were in the step before."""
        return still_acting(self.force, self.before)

    @property
    def contact_forces(self) -> dict[tuple[str, str], np.ndarray]:
        """Forces (3,) [N] of contacts in the last step, on the first of two bodies by the second."""
        names = self.world.walls.names
        return {(names[pair % len(names)], names[pair // len(names)]): force
                for pair, force in zip(self._pressed[0].tolist(), self._pressed[1], strict=True)}  # fmt: skip

    @property
    def loose(self) -> np.ndarray:
        """(n,) free bodies that have no joint, and had no contact in the step before."""
        loose = self.world.walls.free & ~self.force.any(axis=1)
        if self.joints is not None:
            ends = np.concatenate([self.joints.a, self.joints.b])
            loose[ends[ends >= 0]] = False
        return loose

    def bodies(self, velocity: np.ndarray, spin: np.ndarray) -> Bodies:
        """All walls as the solver takes them, where they are now, at these velocities."""
        walls, free = self.world.walls, self.world.walls.free
        mass = np.array([wall.mass for wall in walls.walls])
        inertia = np.array([wall.inertia for wall in walls.walls]).reshape(-1, 3, 3)
        states = walls.states
        inverse_mass, inertia = np.where(free, 1.0 / mass, 0.0), np.where(free[:, None, None], inertia, 0.0)
        for links in self.articulations:
            heavy = links.inverse_mass > 0.0
            rows, R = links.rows[heavy], states.rotation[links.rows[heavy]]
            inverse_mass[rows] = links.inverse_mass[heavy]
            inertia[rows] = R.transpose(0, 2, 1) @ np.linalg.inv(links.inverse_inertia[heavy]) @ R
        return Bodies(walls.pivots + states.shift, states.rotation.copy(), velocity.copy(), spin.copy(), inverse_mass,
                      inertia)  # fmt: skip

    def advance(self, dt: float, bodies: Bodies, dv: np.ndarray, dw: np.ndarray, steady: np.ndarray) -> None:
        """Moves the bodies on by a step in which all else has added dv, dw to their velocities. Of that, `steady`
        (n, 6) acts evenly through it: gravity, and hands."""
        contacts = self._contacts(dt, bodies, dv, dw)
        self._drive()
        offset = self._recentre(bodies, contacts, dv, dw, steady)
        start = copy.deepcopy(bodies) if self.articulations else bodies
        with threads_for(0):  # one contact after the other
            forces = self.solver.step(bodies, contacts, self._joints_about(offset, bodies), dt, dv, dw, steady)
        for links in self.articulations:
            rows = links.rows
            turned = Rotation.from_matrix(bodies.rotation[rows] @ start.rotation[rows].transpose(0, 2, 1)).as_rotvec()
            by_itself = dt * (np.hstack((start.velocity, start.spin)) + 0.5 * steady)[rows]
            moved = np.hstack((bodies.center[rows] - start.center[rows], turned)) - by_itself
            links.find_timing(dt, moved, dt * np.hstack((forces.force, forces.torque))[rows])
        forces.torque += np.cross(offset, forces.force)
        self.before, self.force = self.force, np.concatenate([forces.force, forces.torque], axis=1)
        self._note(contacts, forces, bodies)

    def _contacts(self, dt: float, bodies: Bodies, dv: np.ndarray, dw: np.ndarray) -> Contacts:
        """What touches now or may within the step."""
        speed = np.linalg.norm(bodies.velocity, axis=1) + np.linalg.norm(dv, axis=1)
        turning, sizes = np.linalg.norm(bodies.spin, axis=1) + np.linalg.norm(dw, axis=1), self.world.walls.extents
        margins = MARGIN * sizes + dt * (speed + turning * sizes)
        contacts = self.detection.contacts(bodies, margins, self.ignored)
        contacts.friction = self.frictions[contacts.a, contacts.b].astype(np.float32)
        contacts.restitution = self.restitutions[contacts.a, contacts.b].astype(np.float32)
        return contacts

    def _recentre(self, bodies: Bodies, contacts: Contacts, dv: np.ndarray, dw: np.ndarray,
                  steady: np.ndarray) -> np.ndarray:  # fmt: skip
        """Takes links as bodies about other centres than their pivots, in place; returns how far these are (n, 3)."""
        offset = np.zeros_like(bodies.center)
        for links in self.articulations:
            offset[links.rows] = links.offset
        if offset.any():
            bodies.center += offset
            for velocity, spin in ((bodies.velocity, bodies.spin), (dv, dw), (steady[:, :3], steady[:, 3:])):
                velocity += np.cross(spin, offset)
            contacts.arm_a -= offset[contacts.a].astype(np.float32)
            contacts.arm_b -= offset[contacts.b].astype(np.float32)
        return offset

    def _joints_about(self, offset: np.ndarray, bodies: Bodies) -> Joints | None:
        """The joints, as bodies see them whose centres are that far from the pivots."""
        if self.joints is None or not offset.any():
            return self.joints
        own = np.vstack((np.einsum("nji,nj->ni", bodies.rotation, offset), np.zeros(3)))  # the last is the world's
        return dataclasses.replace(self.joints, anchor_a=self.joints.anchor_a - own[self.joints.a],
                                   anchor_b=self.joints.anchor_b - own[self.joints.b])  # fmt: skip

    def _drive(self) -> None:
        """Motors as they are now."""
        for k, one in enumerate(self.declared):
            if isinstance(one, AxisJoint) and self.joints is not None:
                speed, effort = one.motor(self.world.time)
                self.joints.mode[k] = NO_MOTOR if speed is effort is None else FORCE if speed is None else SPEED
                self.joints.target[k] = effort or 0.0 if speed is None else speed

    def _note(self, contacts: Contacts, forces: Forces, bodies: Bodies) -> None:
        """What users are told of contacts and joints."""
        n = len(bodies.center)
        pairs, number = np.unique(contacts.a.astype(np.int64) * n + contacts.b, return_inverse=True)
        total = np.zeros((len(pairs), 3))
        np.add.at(total, number, forces.contact)
        pressed = np.flatnonzero(total.any(axis=1))
        self._pressed = pairs[pressed], total[pressed]
        if self.joints is None:
            return
        now = speeds(self.joints, bodies)
        self.joint_states = {
            one.name: types.SimpleNamespace(angle=self.solver.rows.turned[k], speed=now[k],
                                            force=forces.joint_force[k], torque=forces.joint_torque[k])
            for k, one in enumerate(self.declared)
        }  # fmt: skip

    # --- the protocol of stores -------------------------------------------------------------------------

    def save(self) -> dict[str, np.ndarray]:
        return self.solver.save() | {"force": self.force, "before": self.before}

    def restore(self, arrays: Mapping[str, np.ndarray], partly: bool = False) -> None:
        wanted = self.save()
        for name, array in wanted.items():
            given = arrays.get(name)
            if given is None or given.dtype != array.dtype or given.shape[1:] != array.shape[1:]:
                raise PliantError(f"it does not hold {name!r} of the rigid bodies as this version of Pliant keeps it")
        if arrays["force"].shape != self.force.shape or arrays["before"].shape != self.before.shape:
            raise PliantError("it is of another number of rigid bodies")
        self.force, self.before = arrays["force"].copy(), arrays["before"].copy()
        self.solver.restore({name: arrays[name] for name in self.solver.save()})

    def backup(self) -> None:
        self._good = copy.deepcopy(self.save())

    def rollback(self) -> None:
        self.restore(self._good)


def _roughness(a: Any, b: Any) -> float:
    """Coulomb coefficient of two rigid bodies, or of one and a wall, by their materials: the geometric mean of both;
    where one has none of its own, the other's."""
    own = [material.friction for material in (a, b) if material.friction is not None]
    return float(np.sqrt(own[0] * own[-1])) if own else ROUGHNESS
