"""The stages of rigid bodies: what acts on them from outside, then what acts between them, and what is left over.

    forces      gravity, and contacts that last: with these, what presses on a body meets it as it will move;
                after all other forces, viscous drag
    pressure    what flows and what is soft pushes it, in the sweeps (`coupling`)
    rigid       contacts and joints, in substeps (`solver`): velocities, and where it goes
    advance     what walls have done to particles since, it gets back (friction of liquids, what was put back)
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pliant.core.world import World
from pliant.solvers.rigid.coupling import RigidCoupling
from pliant.solvers.rigid.levers import SIX
from pliant.solvers.rigid.store import RigidBodies
from pliant.solvers.stage import Force, Stage


class RigidMotion(Stage):
    """Changes velocities of rigid bodies by contacts and joints, and finds where they go."""

    name = place = "rigid"

    @classmethod
    def wanted(cls, materials: Sequence[Any], settings: Any) -> bool:
        return RigidBodies.wanted(materials, settings)

    def __init__(self, world: World, settings: Any):
        super().__init__(world, settings)
        store = world.stores[RigidBodies.name]
        assert isinstance(store, RigidBodies)
        self.store, self.coupling = store, RigidCoupling(world)
        self.store.declare(settings.joints)
        world.couplings.insert(0, self.coupling)  # before elastic bodies, whose tractions it hears of
        self.start = RigidForces(world, self)

    def parts(self) -> list[Stage]:
        return [self.start, RigidDrag(self.world, self), self, RigidRemainder(self.world, self)]

    @property
    def contact_forces(self) -> dict[tuple[str, str], np.ndarray]:
        """Forces (3,) [N] of contacts in the last step, on the first of two bodies by the second."""
        return self.store.contact_forces

    @property
    def joint_states(self) -> dict[str, Any]:
        """How joints stood after the last step, by name."""
        return self.store.joint_states

    def run(self, dt: float) -> None:
        walls, start = self.world.walls, self.start
        if not np.isfinite(walls.motion).all():
            return  # the step has broken down and will be taken back
        bodies = self.store.bodies(start.velocity, start.spin)
        dv = walls.states.velocity - start.velocity - start.lasting[:, :3]
        dw = walls.states.spin - start.spin - start.lasting[:, 3:]
        free = walls.free
        self.store.advance(dt, bodies, dv, dw, self._steady(dt))
        walls.led = bodies.center[free] - walls.pivots[free], bodies.rotation[free]
        walls.states.velocity[free], walls.states.spin[free] = bodies.velocity[free], bodies.spin[free]

    def _steady(self, dt: float) -> np.ndarray:
        """(n, 6) changes of velocities that act all through the step. A body that no particle touches falls so,
        exactly. Particles move by dt v with the velocity v at the end of the step, and one that they touch must do so
        too, or it would creep by g dt^2 / 2 from step to step where they bear it. Its forces act at the start, then,
        but for as much of them as lasting contacts and joints will take out again, bit by bit."""
        steady, touched = np.zeros((len(self.world.walls.walls), SIX)), self.coupling.touched
        steady[:, :3] = dt * self.world.gravity * self.world.walls.free[:, None]
        steady[touched] = -self.start.lasting[touched]
        return steady


class RigidForces(Force):
    """Gravity on rigid bodies, and the contacts and joints that are about what they were: changes their velocities."""

    name, rank = "rigid forces", -10

    def __init__(self, world: World, motion: RigidMotion):
        super().__init__(world, None)
        self.motion = motion
        states = world.walls.states
        self.velocity, self.spin = states.velocity.copy(), states.spin.copy()  # at the start of the step
        self.lasting = np.zeros((len(self.velocity), SIX))  # change of velocities by lasting contacts

    def run(self, dt: float) -> None:
        walls, coupling = self.world.walls, self.motion.coupling
        states, free = walls.states, walls.free
        self.velocity, self.spin = states.velocity.copy(), states.spin.copy()
        walls.loose = self.motion.store.loose
        coupling.begin(dt)
        coupling.foresee_drag()
        self.lasting = dt * coupling.accelerations(self.motion.store.lasting)
        states.velocity[free] += dt * self.world.gravity + self.lasting[free, :3]
        states.spin[free] += self.lasting[free, 3:]


class RigidDrag(Force):
    """What viscous liquids and their surfaces do to rigid bodies: changes their velocities."""

    name, rank = "rigid drag", 100

    def __init__(self, world: World, motion: RigidMotion):
        super().__init__(world, None)
        self.motion = motion

    def run(self, dt: float) -> None:
        self.motion.coupling.drag()


class RigidRemainder(Stage):
    """Gives rigid bodies, at the end of a step, what particles have lost to them beside what sweeps gave them already.
    """

    name, place, rank = "rigid remainder", "advance", 10

    def __init__(self, world: World, motion: RigidMotion):
        super().__init__(world, None)
        self.motion = motion

    def run(self, dt: float) -> None:
        walls = self.world.walls
        if self.world.particles.n:
            change = self.motion.coupling.remainder()
            walls.states.velocity += change[:, :3]
            walls.states.spin += change[:, 3:]
