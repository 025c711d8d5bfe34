"""How a scene says what is to be measured, and what may be wrong with that."""

from typing import TYPE_CHECKING, Any

from pliant.errors import unknown_name
from pliant.solvers.probes import patches
from pliant.solvers.probes.options import Probe, points_of

if TYPE_CHECKING:
    from pliant.scene.scene import Scene


def add(scene: "Scene", quantity: Any, name: str, values: dict[str, Any]) -> Probe:
    """Adds a probe; points that are sound are kept as plain numbers."""
    points = points_of(values["at"])
    if points is not None:
        plain = points.tolist()
        values = values | {"at": tuple(plain) if points.ndim == 1 else tuple(map(tuple, plain))}
    made = Probe(name=name, quantity=quantity, **values)
    scene.settings = scene.settings.replaced(probes=(*scene.settings.probes, made))
    return made


def problems(scene: "Scene") -> list[str]:
    """What is wrong with the probes themselves, and with the bodies that they name, one sentence each."""
    found = []
    for probe in scene.settings.probes:
        if not isinstance(probe, Probe):
            found.append(f"Scene: probes are made by scene.probe, got {probe!r}")
            continue
        own = probe.problems()
        measured = [body.name for body in scene.bodies if getattr(body.material, "has_particles", False)]
        if not own and probe.of is not None and probe.of not in measured:
            own.append(f"{probe.name}: it measures an " + unknown_name("body", probe.of, measured))
        found += own
    return found


def patch_problems(scene: "Scene") -> list[str]:
    """Whether patches lie on walls, in a scene that is sound otherwise."""
    walls = [body for body in scene.bodies if body.material.is_wall]
    return [f"{probe.name}: {sentence}" for probe in scene.settings.probes if probe.on is not None
            for sentence in patches.patch_problems(walls, probe.on, scene.spacing)]  # fmt: skip
