"""Fills a mesh with particles in SPlisHSPlasH, run by the interpreter that has `pysplishsplash`.

`python peer_sampling.py SPEC` with the JSON object that `bench_sampling.Spec` describes; writes the particles into the
file `points` (.npy) and prints a JSON object of results on the last line. Needs nothing of Pliant.

Its Python function for this takes a single vertex (2.19), so the mesh goes the way of a scene: a fluid whose particles
are sampled from an obj file. Three modes: 0 regular, 1 almost dense, 2 dense. Their particles are 2 radii apart or so;
inside is where a signed distance on a grid of `sdf` cells along each side is negative.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

if __package__:
    from pliant.tools.peer import carry_out
    from pliant.tools.peer_elastic import peak_megabytes
else:  # a script: its folder is the first where modules are looked for
    from peer import carry_out  # type: ignore[no-redef]
    from peer_elastic import peak_megabytes  # type: ignore[no-redef]

DFSPH, VOLUME_MAPS, NO_CFL = 4, 2, 0  # numbers of simulationMethod, boundaryHandlingMethod, cflMethod
MODES = {"regular": 0, "almost dense": 1, "dense": 2}  # denseMode
TIMER = "Volume sampling"  # [ms]: the signed distance and the particles, without reading the file


def write_scene(spec: dict[str, Any], folder: Path) -> Path:
    """A scene with the mesh as its only fluid."""
    scene = {
        "Configuration": {
            "particleRadius": spec["radius"], "gravitation": [0, 0, 0], "simulationMethod": DFSPH, "enableZSort": False,
            "boundaryHandlingMethod": VOLUME_MAPS, "timeStepSize": 1e-4, "cflMethod": NO_CFL,
        },
        "Materials": [{"id": "Fluid", "density0": 1000}],
        "FluidModels": [{"id": "Fluid", "particleFile": spec["mesh"], "translation": [0, 0, 0], "scale": [1, 1, 1],
                         "denseMode": MODES[spec["method"]], "resolutionSDF": [spec["sdf"]] * 3}],
    }  # fmt: skip
    path = folder / "sampling.json"
    path.write_text(json.dumps(scene))
    return path


def run(spec: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Samples the mesh and keeps the particles."""
    import numpy as np
    import pysplishsplash as engine

    base = engine.Exec.SimulatorBase()
    base.init(sceneFile=str(write_scene(spec, folder)), outputDir=str(folder), useGui=False, useCache=False,
              initialPause=False, stopAt=1e9)  # fmt: skip
    before, start = peak_megabytes(), time.perf_counter()
    base.initSimulation()
    wall = time.perf_counter() - start
    timers = {timer.name: timer.totalTime for timer in engine.Utilities.Timing.m_averageTimes.values()}
    model = engine.Simulation.getCurrent().getFluidModel(0)
    n = model.numActiveParticles()
    np.save(spec["points"], np.array(model.getFieldBuffer("position"), copy=False)[:n])
    return {"particles": n, "seconds": timers[TIMER] / 1e3, "wall": wall, "megabytes": peak_megabytes(),
            "megabytes_before": before, "iterations": 0}  # fmt: skip


if __name__ == "__main__":
    carry_out(run, sys.argv[1:])
