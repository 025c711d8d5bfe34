"""A robot as it moves: MuJoCo's model and data, and what links and the scene tell each other.

A step dt is a whole number of MuJoCo's own, none longer than the model's timestep. Forces on links act all through it
(`xfrc_applied`). The step is made twice: first with the forces of the last one where these last, which tells where
links will go, and then, once the forces of this one are known, in earnest.

The effective inertia over a step (see `articulation`) is, for joint dampers D, servos of gain K and active constraints
of which MuJoCo knows Jacobians J_c and inverse regularisers D_c (Todorov 2014),

    A = M + dt D + dt^2 K / 2 + J_c^T D_c J_c,

in which all that it leaves out would add to it: links then seem to yield more than they do, which is stable. Without
it, with forces that act one step late, the force on a sphere under water changes from step to step by 30 times its
buoyancy at 300 kg/m^3, and it breaks down at 100; with it, by 0.02 times that down to 1 kg/m^3 (measured, in steps of
2.5 ms). Where a spring or servo turns in less than about a step, MuJoCo's own timestep sees to it.
"""

import math
from typing import Any

import numpy as np

from pliant.core.world import World
from pliant.errors import PliantError, SimulationError
from pliant.solvers.rigid.articulation import EVEN, Articulation, still_acting
from pliant.solvers.robots import control
from pliant.solvers.robots.mjcf import compiled, mujoco
from pliant.solvers.robots.options import Robot

SLACK = 1e-9  # of a timestep
AFFINE = 1  # mjBIAS_AFFINE and mjGAIN_AFFINE


class Mechanism(Articulation):
    """The robot `spec`, whose moving geoms are the walls `rows`."""

    def __init__(self, world: World, spec: Robot, rows: np.ndarray, parts: np.ndarray, numbers: np.ndarray):
        """`numbers` (k,) are those of the geoms in the model."""
        super().__init__(rows, parts)
        self.world, self.spec, self.base, self._mj = world, spec, spec.base, mujoco()
        pivots, self.model = world.walls.pivots[rows], compiled(spec.mjcf, spec.assets)
        m = self.model
        self._longest = float(m.opt.timestep)
        m.opt.gravity = self.base.rotation.T @ world.gravity / self.base.scale
        m.opt.jacobian = self._mj.mjtJacobian.mjJAC_DENSE
        m.opt.disableflags |= int(self._mj.mjtDisableBit.mjDSBL_AUTORESET)  # what breaks down is told
        self.data, self._trial = self._mj.MjData(m), self._mj.MjData(m)
        self._all = self._mj.mjtState.mjSTATE_INTEGRATION
        self.geoms, self._links = numbers, m.geom_bodyid[numbers]
        self._mj.mj_forward(m, self.data)
        self._R0 = self._rotations()
        self._pivots = pivots
        arms = self.base.unplace(pivots) - self.data.geom_xpos[numbers]
        self._arms = np.einsum("kji,kj->ki", self.data.geom_xmat[numbers].reshape(-1, 3, 3), arms)  # in frames of geoms
        self.sensordata = self.data.sensordata.copy()
        k = len(rows)
        self.force, self.before = np.zeros((k, 6)), np.zeros((k, 6))  # all that acts, in the last two steps [N, N m]
        self.late = np.zeros((k, 6))  # what is still to act [N s, N m s]

    # --- the contract of articulations ------------------------------------------------------------------

    def begin(self, dt: float, lasting: np.ndarray) -> np.ndarray:
        m, d = self.model, self.data
        d.ctrl[:] = self._controls()
        self._lasting = lasting
        self.J = self._jacobians()
        last = still_acting(self.force, self.before)
        self._copy(d, self._trial)
        self._run(self._trial, dt, last)
        self.A = self.base.scale**2 * self._effective_inertia(dt)
        foreseen = (self.J @ self._trial.qvel).reshape(-1, 6) if m.nv else np.zeros((len(self.rows), 6))
        return foreseen - dt * self.respond(last)

    def advance(self, dt: float, forces: np.ndarray, contacts: np.ndarray) -> None:
        forces = forces + self.late / dt
        self._run(self.data, dt, forces + contacts)
        mean = 0.5 + 0.5 / self._substeps(dt)  # MuJoCo's steps are semi-implicit: a force moves at once what it pushes
        self._shift(dt * dt * ((self.early - mean)[:, None] * contacts - (EVEN - mean) * self._lasting))
        self._look()
        self.sensordata = self.data.sensordata.copy()
        self.before, self.force, self.late = self.force, forces + contacts, np.zeros_like(self.late)

    def carry(self, impulses: np.ndarray) -> None:
        self.late = self.late + impulses

    def poses(self) -> tuple[np.ndarray, np.ndarray]:
        turn = self._rotations() @ self._R0.transpose(0, 2, 1)
        return self.base.place(self._points()) - self._pivots, turn

    def motion(self) -> np.ndarray:
        return (self._jacobians() @ self.data.qvel).reshape(-1, 6)

    # --- for users --------------------------------------------------------------------------------------

    @property
    def state(self) -> control.RobotState:
        """What its control is told."""
        found = control.state_of(self.model, self.data, self.world.time)
        found.sensors.update(control.sensors(self.model, self.sensordata))
        return found

    def place(self, **values: np.ndarray) -> None:
        """Gives it other positions `qpos` or velocities `qvel` of joints."""
        for name, value in values.items():
            getattr(self.data, name)[:] = value
        self._mj.mj_normalizeQuat(self.model, self.data.qpos)
        self._look()
        self.sensordata = self.data.sensordata.copy()

    def link_motion(self, link: int) -> np.ndarray:
        """(6,) velocity of the frame of a link of the model, and its spin, in the scene."""
        linear, angular = np.zeros((3, self.model.nv)), np.zeros((3, self.model.nv))
        self._mj.mj_jacBody(self.model, self.data, linear, angular, link)
        J = np.array([self.base.scale * linear, angular])
        return np.asarray((self.base.rotation @ J @ self.data.qvel).ravel())

    def link_load(self, link: int) -> np.ndarray:
        """(6,) force and torque about the frame of a link, in the scene, in the last step."""
        own = self._links == link
        arms = self.base.place(self._points()[own]) - self.base.place(self.data.xpos[link])
        force, torque = self.force[own, :3], self.force[own, 3:]
        return np.concatenate([force.sum(axis=0), (torque + np.cross(arms, force)).sum(axis=0)])

    # --- parts ------------------------------------------------------------------------------------------

    def _controls(self) -> np.ndarray:
        try:
            return control.values(self.spec.control, self.model, self.state)
        except SimulationError as error:
            raise SimulationError(f"{self.spec.name}: {error}") from error

    def _rotations(self) -> np.ndarray:
        """(k, 3, 3) of the geoms, in the scene."""
        return self.base.rotation @ self.data.geom_xmat[self.geoms].reshape(-1, 3, 3)

    def _points(self) -> np.ndarray:
        """(k, 3) where the pivots are, in the model."""
        R = self.data.geom_xmat[self.geoms].reshape(-1, 3, 3)
        return self.data.geom_xpos[self.geoms] + np.einsum("kij,kj->ki", R, self._arms)

    def _jacobians(self) -> np.ndarray:
        """(6k, nv) of velocities of the pivots and of spins, in the scene."""
        m, nv = self.model, self.model.nv
        found, linear, angular = np.zeros((len(self.rows), 2, 3, nv)), np.zeros((3, nv)), np.zeros((3, nv))
        for k, (point, link) in enumerate(zip(self._points(), self._links, strict=True)):
            self._mj.mj_jac(m, self.data, linear, angular, point, int(link))
            found[k] = self.base.scale * linear, angular
        return (self.base.rotation @ found).reshape(-1, nv)

    def _copy(self, one: Any, other: Any) -> None:
        """Gives `other` all of the state of `one` that the next step depends on."""
        state = np.zeros(self._mj.mj_stateSize(self.model, self._all))
        self._mj.mj_getState(self.model, one, state, self._all)
        self._mj.mj_setState(self.model, other, state, self._all)

    def _substeps(self, dt: float) -> int:
        """How many steps MuJoCo makes in one of dt."""
        return max(math.ceil(dt / self._longest - SLACK), 1)

    def _run(self, data: Any, dt: float, forces: np.ndarray) -> None:
        """A step of dt under the forces and torques (k, 6) on the links."""
        count, kinds = self._substeps(dt), self._mj.mjtWarning
        broken = (kinds.mjWARN_BADQPOS, kinds.mjWARN_BADQVEL, kinds.mjWARN_BADQACC)  # beyond 1e10
        for kind in broken:
            data.warning[kind].number = 0
        self.model.opt.timestep = dt / count
        data.xfrc_applied[:] = 0.0
        np.add.at(data.xfrc_applied, self._links, self._loads(forces))
        for _ in range(count):
            self._mj.mj_step(self.model, data)
        data.xfrc_applied[:] = 0.0
        if any(data.warning[kind].number for kind in broken) or not np.isfinite(data.qvel).all():
            raise SimulationError(f"{self.spec.name} broke down in MuJoCo at t = {self.world.time:.4g} s; the state is "
                                  "that of the last good step. Try a smaller timestep in its MJCF, or weaker "
                                  "servos")  # fmt: skip

    def _shift(self, moments: np.ndarray) -> None:
        """Moves links as forces do that have no impulse, but act late or early: by J A^-1 J^T of their moments in time
        (k, 6) [N s^2, N m s^2]. What falls on the ground is so stopped there, and not in the middle of its step."""
        if self.model.nv and moments.any():
            way = np.linalg.solve(self.A, self.J.T @ moments.ravel())
            self._mj.mj_integratePos(self.model, self.data.qpos, way, 1.0)

    def _loads(self, forces: np.ndarray) -> np.ndarray:
        """(k, 6) forces and torques on geoms as MuJoCo takes them, about the middles of links."""
        base = self.base
        F, T = forces[:, :3] @ base.rotation / base.scale, forces[:, 3:] @ base.rotation / base.scale**2
        return np.hstack((F, T + np.cross(self._points() - self.data.xipos[self._links], F)))

    def _look(self) -> None:
        """Finds all that follows from the state, and leaves the state as it is."""
        state = np.zeros(self._mj.mj_stateSize(self.model, self._all))
        self._mj.mj_getState(self.model, self.data, state, self._all)
        self._mj.mj_forward(self.model, self.data)
        self._mj.mj_setState(self.model, self.data, state, self._all)

    def _effective_inertia(self, dt: float) -> np.ndarray:
        """(nv, nv) in the units of the model; what resists is known from the trial."""
        m, d, t = self.model, self.data, self._trial
        A = np.zeros((m.nv, m.nv))
        for k, unit in enumerate(np.eye(m.nv)):
            self._mj.mj_mulM(m, d, A[k], unit)
        A = 0.5 * (A + A.T) + np.diag(dt * m.dof_damping)
        if m.nu:
            moment = np.zeros((m.nu, m.nv))
            self._mj.mju_sparse2dense(moment, t.actuator_moment.ravel(), t.moment_rownnz, t.moment_rowadr,
                                      t.moment_colind)  # fmt: skip
            A += np.einsum("ka,k,kb->ab", moment, self._servo_gains(dt), moment)
        active = t.efc_state == int(self._mj.mjtConstraintState.mjCNSTRSTATE_QUADRATIC)
        if active.any():
            J = t.efc_J.reshape(t.nefc, m.nv)[active]
            A += np.einsum("ka,k,kb->ab", J, t.efc_D[active], J)
        return A

    def _servo_gains(self, dt: float) -> np.ndarray:
        """(nu,) dt D + dt^2 K / 2 of actuators whose force falls with position and velocity; of none at its limit."""
        m, t = self.model, self._trial
        low, high = m.actuator_forcerange.T
        at_limit = m.actuator_forcelimited.astype(bool) & ((t.actuator_force <= low) | (t.actuator_force >= high))
        bias, gain = m.actuator_biastype == AFFINE, m.actuator_gaintype == AFFINE
        K, D = (-(bias * m.actuator_biasprm[:, k] + gain * m.actuator_gainprm[:, k] * t.ctrl) for k in (1, 2))
        return np.where(at_limit, 0.0, np.maximum(dt * D + 0.5 * dt * dt * K, 0.0))

    # --- the state --------------------------------------------------------------------------------------

    def save(self) -> dict[str, np.ndarray]:
        state = np.zeros(self._mj.mj_stateSize(self.model, self._all))
        self._mj.mj_getState(self.model, self.data, state, self._all)
        return {"state": state, "sensors": self.sensordata.copy(), "force": self.force.copy(),
                "before": self.before.copy(), "late": self.late.copy()}  # fmt: skip

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        wanted = self.save()
        for name, array in wanted.items():
            given = saved.get(name)
            if given is None or given.shape != array.shape or given.dtype != array.dtype:
                raise PliantError(f"it does not hold {name!r} of the robot {self.spec.name!r} as this version of "
                                  "MuJoCo and Pliant keep it")  # fmt: skip
        self._mj.mj_setState(self.model, self.data, saved["state"], self._all)
        self._look()
        self.sensordata = saved["sensors"].copy()
        self.force, self.before, self.late = (saved[name].copy() for name in ("force", "before", "late"))
