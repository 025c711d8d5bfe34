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
from pliant.solvers.rigid.articulation import articulations
from pliant.solvers.rigid.coupling import RigidCoupling
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
        self.store, self.coupling, self.articulations = store, RigidCoupling(world), articulations(world)
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
        walls, start, free = self.world.walls, self.start, self.world.walls.free
        bodies = self.store.bodies(start.velocity, start.spin)
        lasting = start.lasting.copy()
        for links in self.articulations:  # to contacts they yield in another way than to pressures
            lasting[links.rows] = dt * links.yielding(self.store.lasting[links.rows])
        dv = walls.states.velocity - start.velocity - lasting[:, :3]
        dw = walls.states.spin - start.spin - lasting[:, 3:]
        steady = np.where(walls.rigid[:, None], np.append(dt * self.world.gravity, np.zeros(3)), 0.0)
        for links in self.articulations:  # which forces move all through the step, as contacts do
            steady[links.rows] = np.hstack((dv, dw))[links.rows]
        self.store.advance(dt, bodies, dv, dw, steady)
        for links in self.articulations:
            rows = links.rows
            links.advance(dt, self.coupling.given[rows] / dt, self.store.force[rows])
            shift, bodies.rotation[rows] = links.poses()
            bodies.center[rows] = walls.pivots[rows] + shift
            bodies.velocity[rows], bodies.spin[rows] = np.hsplit(links.motion(), 2)
        walls.led = bodies.center[free] - walls.pivots[free], bodies.rotation[free]
        walls.states.velocity[free], walls.states.spin[free] = bodies.velocity[free], bodies.spin[free]


class RigidForces(Force):
    """Gravity on rigid bodies, and the contacts and joints that are about what they were: changes their velocities."""

    name, rank = "rigid forces", -10

    def __init__(self, world: World, motion: RigidMotion):
        super().__init__(world, None)
        self.motion = motion
        states = world.walls.states
        self.velocity, self.spin = states.velocity.copy(), states.spin.copy()  # at the start of the step
        self.lasting = np.zeros((len(self.velocity), 6))  # change of velocities by lasting contacts

    def run(self, dt: float) -> None:
        walls, coupling = self.world.walls, self.motion.coupling
        states, free, lasting = walls.states, walls.free, self.motion.store.lasting
        self.velocity, self.spin = states.velocity.copy(), states.spin.copy()
        foreseen = [(links.rows, links.begin(dt, lasting[links.rows])) for links in self.motion.articulations]
        for links in self.motion.articulations:
            links.find_bodies()
        coupling.begin(dt)
        coupling.foresee_drag()
        self.lasting = dt * coupling.accelerations(lasting)
        states.velocity[walls.rigid] += dt * self.world.gravity
        for rows, motion in foreseen:
            states.velocity[rows], states.spin[rows] = np.hsplit(motion, 2)
        states.velocity[free] += self.lasting[free, :3]
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
        coupling, walls = self.motion.coupling, self.world.walls
        if self.world.particles.n:
            left = walls.impulses - coupling.given
            change = np.where(walls.rigid[:, None], coupling.accelerations(left), 0.0)
            walls.states.velocity += change[:, :3]
            walls.states.spin += change[:, 3:]
            for links in self.motion.articulations:
                links.carry(left[links.rows])
