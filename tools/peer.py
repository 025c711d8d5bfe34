"""The dam break of `pliant bench fluid` in SPlisHSPlasH, run by the interpreter that has `pysplishsplash`.

`python peer.py SPEC` with the JSON object that `bench.Spec` describes; the last line printed is a JSON object of
results. Needs nothing of Pliant, which the other environment may not have.

How the two sides are made equal (SPlisHSPlasH 2.19):
- time step: cflMethod 1 is dt = cflFactor 0.4 d / max|v + a dt|, so cflFactor = cfl / 0.4;
- tolerances are in percent; the divergence one is, as in Pliant, the change of density in one step. A scene file's
  Configuration does not reach them, so they are set on the solver itself;
- the block: denseMode 0 makes round(length / d) - 1 particles along each axis, each of volume d^3;
- the tank is 2 d wider than the block, because its walls hold particles at a distance of about d, not d / 2.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, median
from typing import Any

METHODS = {"IISPH": 3, "DFSPH": 4}  # numbers of simulationMethod
VOLUME_MAPS, CFL = 2, 1  # numbers of boundaryHandlingMethod, cflMethod
CFL_UNIT = 0.4  # what cflFactor is multiplied by
MAP_RESOLUTION = (40, 30, 20)
LEAST_TOLERANCE = 1e-6  # percent; the smallest it takes
STAGES = {"total": "SimStep", "neighbors": "neighborhood_search", "walls": "computeVolumeAndBoundaryX",
          "divergence": "divergenceSolve", "pressure": "pressureSolve"}  # fmt: skip
COUNTS = {"density": "{} - iterations", "divergence": "{} - iterationsV"}  # of the solver
CUBE = "\n".join(
    [f"v {x} {y} {z}" for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]
    + [f"f {a} {b} {c}\nf {a} {c} {d}" for a, b, c, d in ((1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7),
                                                         (1, 3, 7, 5), (2, 6, 8, 4))]
)  # fmt: skip


def configuration(spec: dict[str, Any]) -> dict[str, Any]:
    """Settings of the scene file: the solver, volume maps, and the CFL condition of Pliant's run."""
    return {
        "particleRadius": spec["spacing"] / 2, "gravitation": [0, -9.81, 0], "enableZSort": True,
        "simulationMethod": METHODS[spec["solver"]], "boundaryHandlingMethod": VOLUME_MAPS,
        "numberOfStepsPerRenderUpdate": 1,
        "timeStepSize": spec["max_dt"], "cflMethod": CFL, "cflFactor": spec["cfl"] / CFL_UNIT,
        "cflMinTimeStepSize": 1e-6, "cflMaxTimeStepSize": spec["max_dt"],
    }  # fmt: skip


def set_solver(solver: Any, spec: dict[str, Any]) -> None:
    """Tolerances and bounds on iterations as in Pliant, or a fixed number of iterations; read back to be sure."""
    fixed, most = spec["iterations"], spec["iterations"] or spec["max_iterations"]
    errors, counts = {"MAX_ERROR": spec["error"]}, {"MIN_ITERATIONS": fixed or spec["min_iterations"],
                                                    "MAX_ITERATIONS": most}  # fmt: skip
    if spec["solver"] == "DFSPH":
        errors["MAX_ERROR_V"], counts["MAX_ITERATIONS_V"] = spec["divergence_error"], most
    for name, error in errors.items():
        parameter, value = getattr(solver, name), LEAST_TOLERANCE if fixed else 100 * error
        solver.setValueFloat(parameter, value)
        assert abs(solver.getValueFloat(parameter) / value - 1) < 1e-3, solver.getName(parameter)
    for name, count in counts.items():
        parameter = getattr(solver, name)
        solver.setValueUInt(parameter, count)
        assert solver.getValueUInt(parameter) == count, solver.getName(parameter)


def write_scene(spec: dict[str, Any], folder: Path) -> Path:
    """The dam break as a scene file."""
    d = spec["spacing"]
    length, height, width = ((k + 1) * d for k in spec["block"])
    tank = [3 * length, 2 * height, width + 2 * d]
    left = -tank[0] / 2
    (folder / "cube.obj").write_text(CUBE + "\n")
    scene = {
        "Configuration": configuration(spec),
        "Materials": [{"id": "Fluid", "density0": 1000, "viscosityMethod": 0, "surfaceTensionMethod": 0}],
        "RigidBodies": [{"geometryFile": str(folder / "cube.obj"), "translation": [0, tank[1] / 2, 0], "scale": tank,
                         "isDynamic": False, "isWall": True, "mapInvert": True, "mapThickness": 0.0,
                         "mapResolution": list(MAP_RESOLUTION)}],
        "FluidBlocks": [{"denseMode": 0, "start": [left, 0.0, -width / 2],
                         "end": [left + length, height, width / 2], "translation": [d / 2, d / 2, 0]}],
    }  # fmt: skip
    path = folder / "dam.json"
    path.write_text(json.dumps(scene))
    return path


class Load:
    """How many cores this process and all others keep busy from now on; others only where the system tells."""

    def __init__(self) -> None:
        self.start = self.now()

    @staticmethod
    def now() -> tuple[float, float, float]:
        """Wall-clock, own and everybody's processor seconds."""
        own = os.times()
        try:
            ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
            busy = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")  # all but idle and waiting for disks
        except (OSError, ValueError, AttributeError):
            busy = float("nan")
        return time.perf_counter(), own.user + own.system, busy

    def cores(self) -> dict[str, float]:
        wall, own, busy = (b - a for a, b in zip(self.start, self.now(), strict=True))
        return {"own": own / wall, "others": max((busy - own) / wall, 0.0)}


class Recorder:
    """Called after each step: keeps the running sums of the engine's own timers and counters."""

    def __init__(self, engine: Any, base: Any, warm: int, steps: int):
        self.engine, self.base, self.warm, self.steps = engine, base, warm, steps
        self.first, self.load = 0.0, Load()
        self.rows: list[dict[str, float]] = []

    def __call__(self) -> None:
        self.first = self.first or time.time()
        utilities = self.engine.Utilities
        sums = {timer.name: timer.totalTime for timer in utilities.Timing.m_averageTimes.values()}
        sums |= {name: counter.sum for name, counter in utilities.Counting.m_averageCounts.items()}
        self.rows.append(sums)
        if len(self.rows) == self.warm:
            self.load = Load()
        if len(self.rows) >= self.warm + self.steps:
            self.base.setValueFloat(self.base.STOP_AT, 1e-12)  # the way out of runSimulation

    def of(self, name: str) -> list[float]:
        """What each measured step added."""
        values = [row.get(name, 0.0) for row in self.rows[self.warm - 1 :]]
        return [b - a for a, b in zip(values[:-1], values[1:], strict=True)]


def run(spec: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Runs the scene without a window and returns the medians of the measured steps."""
    import numpy as np
    import pysplishsplash as engine

    base = engine.Exec.SimulatorBase()
    base.init(sceneFile=str(write_scene(spec, folder)), outputDir=str(folder), useGui=False, useCache=False,
              initialPause=False, stopAt=1e9)  # fmt: skip
    recorder = Recorder(engine, base, spec["warm"], spec["steps"])
    base.setTimeStepCB(recorder)
    base.initSimulation()
    set_solver(engine.Simulation.getCurrent().getTimeStep(), spec)
    model = engine.Simulation.getCurrent().getFluidModel(0)
    base.runSimulation()
    cores = recorder.load.cores()
    density = np.array(model.getFieldBuffer("density"), copy=False)[: model.numActiveParticles()]
    milliseconds = {stage: recorder.of(name) for stage, name in STAGES.items()}
    return {
        "particles": model.numActiveParticles(), "ms": {k: median(v) for k, v in milliseconds.items()},
        "ms_mean": fmean(milliseconds["total"]), "startup": recorder.first - spec["born"],
        "iterations": {k: fmean(recorder.of(name.format(spec["solver"]))) for k, name in COUNTS.items()},
        "compression": float(np.maximum(density / model.getDensity0() - 1, 0).mean()),
        "cores": cores, "time": engine.TimeManager.getCurrent().getTime(),
    }  # fmt: skip


def carry_out(run: Callable[[dict, Path], dict], argv: list[str]) -> None:
    """Runs what the one argument describes. Leaves without the engine's own clean-up, which may crash."""
    with tempfile.TemporaryDirectory() as folder:
        result = run(json.loads(argv[0]), Path(folder))
    print(json.dumps(result), flush=True)
    os._exit(0)


if __name__ == "__main__":
    carry_out(run, sys.argv[1:])
