"""The pool of `pliant bench rigid` in SPlisHSPlasH, run by the interpreter that has `pysplishsplash`.

`python peer_rigid.py SPEC` with the JSON object that `bench_rigid.Spec` describes. Its rigid bodies are those of the
PositionBasedDynamics library, which are pushed by forces of the step before; each has a volume map, as ours have.
"""

import json
import sys
from pathlib import Path
from typing import Any

import peer

BOX = 2  # collisionObjectType
BODY_MAP = (10, 10, 10)  # mapResolution of a body


def places(spec: dict[str, Any]) -> list[list[float]]:
    """Middles of the boxes, as in `bench_rigid.places`."""
    length, height, width = (k * spec["spacing"] for k in spec["block"])
    across, side = max(round((spec["bodies"] / 2) ** 0.5), 1), spec["side"]
    found = []
    for k in range(spec["bodies"]):
        layer, (i, j) = k // across**2, divmod(k % across**2, across)
        found.append([length * ((i + 0.5) / across - 0.5), height + side * (1.2 + 1.5 * layer),
                      width * ((j + 0.5) / across - 0.5)])  # fmt: skip
    return found


def write_scene(spec: dict[str, Any], folder: Path) -> Path:
    """The pool and the boxes as a scene file."""
    d, side = spec["spacing"], spec["side"]
    length, height, width = ((k + 1) * d for k in spec["block"])
    tank = [length + d, 2 * height, width + d]
    (folder / "cube.obj").write_text(peer.CUBE + "\n")
    cube = {"geometryFile": str(folder / "cube.obj"), "restitution": 0.0, "collisionObjectType": BOX}
    walls = {"id": 1, "translation": [0, tank[1] / 2, 0], "scale": tank, "isDynamic": False, "isWall": True,
             "friction": 0.5, "collisionObjectScale": tank, "invertSDF": True, "mapInvert": True, "mapThickness": 0.0,
             "mapResolution": list(peer.MAP_RESOLUTION)}  # fmt: skip
    boxes = [{"id": k + 2, "translation": place, "scale": [side] * 3, "isDynamic": 1, "isWall": False, "friction": 0.5,
              "density": spec["densities"][k % len(spec["densities"])], "collisionObjectScale": [side] * 3,
              "mapInvert": False, "mapThickness": 0.0, "mapResolution": list(BODY_MAP)}
             for k, place in enumerate(places(spec))]  # fmt: skip
    settings = {"solver": "DFSPH", "max_dt": 5e-3, "cfl": 0.4, **spec}
    scene = {
        "Configuration": peer.configuration(settings),
        "Simulation": {"timeStepSize": 5e-3, "contactTolerance": 0.25 * d},
        "Materials": [{"id": "Fluid", "density0": 1000, "viscosityMethod": 0, "surfaceTensionMethod": 0}],
        "RigidBodies": [cube | one for one in (walls, *boxes)],
        "FluidBlocks": [{"denseMode": 0, "start": [-length / 2, 0.0, -width / 2],
                         "end": [length / 2, height, width / 2], "translation": [0, d / 2, 0]}],
    }  # fmt: skip
    path = folder / "pool.json"
    path.write_text(json.dumps(scene))
    return path


def run(spec: dict[str, Any], folder: Path) -> dict[str, Any]:
    """As the dam break is run, from another scene file."""
    defaults = {"solver": "DFSPH", "error": 1e-3, "divergence_error": 1e-3, "iterations": None, "min_iterations": 2,
                "max_iterations": 100, "max_dt": 5e-3, "cfl": 0.4}  # fmt: skip
    peer.write_scene = write_scene
    return peer.run(defaults | spec, folder)


if __name__ == "__main__":
    peer.carry_out(run, sys.argv[1:])
