"""From the samples of a scene to stores that solvers work on."""

from collections.abc import Sequence

import numpy as np

from pliant.boundary.volume_map import wall_profile
from pliant.boundary.wall import Wall
from pliant.boundary.walls import FIELDS as WALL_FIELDS
from pliant.boundary.walls import Walls
from pliant.core.frictions import Frictions
from pliant.core.neighbors import Neighbors
from pliant.core.particles import Particles
from pliant.core.smoothing import smoothing
from pliant.core.store import Store
from pliant.core.world import BodyGroup, BodySamples, World
from pliant.errors import PliantError
from pliant.scene.scene import Scene
from pliant.solvers.births.options import arriving
from pliant.solvers.prescribed import Prescribed
from pliant.solvers.stage import Stage


def make_world(scene: Scene, samples: Sequence[BodySamples], walls: list[Wall], kinds: Sequence[type[Stage]],
               cache: dict[str, list]) -> World:  # fmt: skip
    """The stores of a scene, still empty, with room for the samples and the fields of these kinds of stages."""
    settings, w = scene.settings, smoothing(scene.settings.smoothing)
    own = [s for s in samples if s.material.has_particles]
    materials = [s.material for s in own]
    groups = [BodyGroup(s.name, s.shape, k, s.spacing, s.volume_each, s.colors) for k, s in enumerate(own)]
    fields = [*WALL_FIELDS, *settings.pressure.fields(materials), *(f for kind in kinds for f in kind.fields)]
    particles = Particles([group.name for group in groups], fields, sum(len(s.x) for s in own))
    frictions = Frictions({body.name: body.material for body in scene.bodies}, settings.frictions)
    on_walls = np.array([[frictions.between(wall.name, s.name) for s in own] for wall in walls])
    on_walls = on_walls.reshape(len(walls), len(own))
    world = World(
        particles, Neighbors(particles, w, scene.spacing, tuple(settings.periodic)),
        Walls(particles, walls, scene.spacing, wall_profile(w), on_walls,
              np.array([m.elastic for m in materials], float)),
        scene.spacing, np.asarray(settings.gravity, dtype=float), materials, groups, frictions=frictions, cache=cache,
        sources=tuple(settings.sources), probes=tuple(settings.probes), robots=tuple(settings.robots),
        fillers=kinds,
    )  # fmt: skip
    for kind in Store.kinds:
        if not kind.built_in and kind.wanted([s.material for s in samples], settings):
            if kind.name in world.stores:
                raise PliantError(f"the store {kind.name!r} is declared twice; choose another name")
            world.stores[kind.name] = kind.build(world, samples)
    return world


def fill_world(world: World, samples: Sequence[BodySamples]) -> None:
    """The state at the start."""
    late = arriving(world.sources)
    for number, group in enumerate(world.bodies):
        own = _samples_of(samples, group)
        if len(own.x) and group.name not in late:
            world.make_particles(number, own.x, np.broadcast_to(own.velocity, own.x.shape), own.fixed)
    for store in world.stores.values():
        if not store.built_in:
            store.fill(samples)


def make_prescribed(world: World, scene: Scene, samples: Sequence[BodySamples]) -> Prescribed:
    """What moves fixed particles. Bodies turn about their middle at the start unless they say otherwise."""
    bodies = [scene.body(group.name) for group in world.bodies]
    starts = [_samples_of(samples, group).x for group in world.bodies]
    middles = [x.mean(axis=0) if len(x) else np.zeros(3) for x in starts]
    pivots = [m if body.pivot is None else body.pivot for m, body in zip(middles, bodies, strict=True)]
    return Prescribed(world, [body.motion for body in bodies], np.array(pivots, dtype=float))


def _samples_of(samples: Sequence[BodySamples], group: BodyGroup) -> BodySamples:
    return next(one for one in samples if one.name == group.name)
