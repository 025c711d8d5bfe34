"""The moving bunny of `pliant bench elastic` in SPlisHSPlasH, run by the interpreter that has `pysplishsplash`.

`python peer_elastic.py SPEC` with the JSON object that `bench_elastic.Spec` describes; the last line printed is a JSON
object of results. Needs nothing of Pliant, which the other environment may not have.

How the two sides are made equal (SPlisHSPlasH 2.19):
- particles: it reads Pliant's from a file, so number, order and lattice are the same, and so are those held below;
- mass: it gives a particle the volume (2 radius)^3, so its radius is that of Pliant's volume for each particle, which
  differs a little from the spacing asked for; with more volume, its pressure solver would inflate the body from the
  start (a version that has other volumes is refused);
- motion: held particles get Pliant's velocity before each step, and are moved along with it after the step;
- tolerances: both its solvers end at |r| < error |b|, and are told the error and the largest number of iterations;
- time step: fixed (cflMethod 0), the same for elasticity and pressure;
- no viscosity, no walls, no sorting: particles keep the order of the lattice.

What stays different: its pressure solver acts between the particles of the body too, which Pliant's does not.
"""

import json
import math
import sys
import time
from pathlib import Path
from statistics import fmean, median
from typing import Any

if __package__:
    from pliant.tools.peer import CUBE, Recorder, carry_out
else:  # a script: its folder is the first where modules are looked for
    from peer import CUBE, Recorder, carry_out  # type: ignore[no-redef]

DFSPH, VOLUME_MAPS, NO_CFL = 4, 2, 0  # numbers of simulationMethod, boundaryHandlingMethod, cflMethod
METHODS = {"split": (3, "Kugelstadt et al. 2021"), "peer": (2, "Peer et al. 2018")}  # elasticityMethod, its section
STAGES = {  # timers: the whole stage, of it the factorised part, of that the triangular solves, and the CG solve
    "split": {"elasticity": "Elasticity", "stretch": "Elasticity_Kugelstadt2021", "triangular": "solve SLE",
              "cg": "Volume - CG solve"},
    "peer": {"elasticity": "Elasticity_Peer2018", "cg": "Elasticity - CG solve"},
}  # fmt: skip
COMMON = {"total": "SimStep", "neighbors": "neighborhood_search", "divergence": "divergenceSolve",
          "density": "pressureSolve"}  # fmt: skip
ITERATIONS = "Elasticity - CG iterations"
FLOOR = (4.0, 0.5, 4.0)  # size [m] of the floor, where there is one
FLOOR_RESOLUTION = (40, 10, 40)  # of its volume map
FACTORING = "initSystem"  # assembly of the matrix, ordering and factorisation


def write_points(path: Path, points: Any) -> None:
    """Particles as a PDA file, the simplest of those it reads."""
    head = f"ATTRIBUTES\nposition\nTYPES\nV\nNUMBER_OF_PARTICLES: {len(points)}\nBEGIN DATA\n"
    path.write_text(head + "\n".join(f"{x:.9g} {y:.9g} {z:.9g}" for x, y, z in points) + "\n")


def write_scene(spec: dict[str, Any], points: Any, folder: Path) -> Path:
    """The body as a scene file, with its particles beside it."""
    write_points(folder / "body.pda", points)
    method, section = METHODS[spec["method"]]
    elastic = {"youngsModulus": spec["young"], "poissonsRatio": spec["poisson"], "alpha": spec["zero_energy"],
               "fixedBoxMin": [-1e3] * 3, "fixedBoxMax": [1e3, spec["bottom"], 1e3]}  # fmt: skip
    scene = {
        "Configuration": {
            "particleRadius": spec["peer_radius"], "gravitation": [0, -9.81, 0], "enableZSort": False,
            "simulationMethod": DFSPH, "boundaryHandlingMethod": VOLUME_MAPS, "numberOfStepsPerRenderUpdate": 1,
            "timeStepSize": spec["dt"], "cflMethod": NO_CFL,
        },
        "Materials": [{"id": "Fluid", "density0": spec["density"], "viscosityMethod": 0,
                       "surfaceTensionMethod": 0, "elasticityMethod": method, section: elastic}],
        "FluidModels": [{"id": "Fluid", "particleFile": str(folder / "body.pda"), "translation": [0, 0, 0],
                         "scale": [1, 1, 1]}],
    }  # fmt: skip
    if spec["floor"] is not None:
        (folder / "cube.obj").write_text(CUBE + "\n")
        middle = [0, spec["floor"] - FLOOR[1] / 2, 0]
        scene["RigidBodies"] = [{"geometryFile": str(folder / "cube.obj"), "translation": middle, "scale": FLOOR,
                                 "isDynamic": False, "isWall": False, "mapInvert": False, "mapThickness": 0.0,
                                 "mapResolution": FLOOR_RESOLUTION}]  # fmt: skip
    path = folder / "elastic.json"
    path.write_text(json.dumps(scene))
    return path


def set_solver(solver: Any, spec: dict[str, Any]) -> None:
    """Tolerance and bound on iterations as in Pliant; all that was asked for is read back to be sure."""
    split = spec["method"] == "split"
    error, most = (solver.MAX_ERROR_V, solver.MAX_ITERATIONS_V) if split else (solver.MAX_ERROR, solver.MAX_ITERATIONS)
    solver.setValueFloat(error, spec["error"])
    solver.setValueUInt(most, spec["max_iterations"])
    assert solver.getValueUInt(most) == spec["max_iterations"], solver.getName(most)
    asked = {error: spec["error"], solver.YOUNGS_MODULUS: spec["young"], solver.POISSON_RATIO: spec["poisson"],
             solver.ALPHA: spec["zero_energy"]}  # fmt: skip
    for parameter, value in asked.items():
        assert math.isclose(solver.getValueFloat(parameter), value, rel_tol=1e-3), solver.getName(parameter)


class Mover(Recorder):
    """A recorder that moves the held particles between two steps."""

    def __init__(self, engine: Any, base: Any, model: Any, spec: dict[str, Any]):
        import numpy as np

        super().__init__(engine, base, spec["warm"], spec["steps"])
        self.spec = spec
        n = model.numActiveParticles()  # the buffers are longer
        self.x, self.v = (np.array(model.getFieldBuffer(name), copy=False)[:n] for name in ("position", "velocity"))
        self.held = np.flatnonzero(self.x[:, 1] < spec["bottom"])
        self.speed = 0.0  # of the held particles in the step that ended

    def __call__(self) -> None:
        super().__call__()
        self.x[self.held, 0] += self.spec["dt"] * self.speed
        self.speed = self.spec["speed"] * math.sin(self.spec["frequency"] * len(self.rows) * self.spec["dt"])
        self.v[self.held] = (self.speed, 0.0, 0.0)


def peak_megabytes() -> float:
    """The most memory that this process has held; not a number where the system does not tell."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return math.nan


def run(spec: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Runs the scene without a window and returns the medians of the measured steps."""
    import numpy as np
    import pysplishsplash as engine

    points = np.load(spec["points"])
    base = engine.Exec.SimulatorBase()
    base.init(sceneFile=str(write_scene(spec, points, folder)), outputDir=str(folder), useGui=False, useCache=False,
              initialPause=False, stopAt=1e9)  # fmt: skip
    before = peak_megabytes()
    base.initSimulation()
    model = engine.Simulation.getCurrent().getFluidModel(0)
    assert model.numActiveParticles() == len(points), "the peer has other particles"
    mass = spec["density"] * (2 * spec["peer_radius"]) ** 3
    assert math.isclose(model.getMass(0), mass, rel_tol=1e-3), f"a particle of {model.getMass(0)} kg, not {mass}"
    set_solver(model.getElasticityBase(), spec)
    mover = Mover(engine, base, model, spec)
    base.setTimeStepCB(mover)
    start = time.time()
    base.runSimulation()
    cores = mover.load.cores()
    fixed = sum(model.getParticleState(i) != engine.ParticleState.Active for i in range(len(points)))
    assert fixed == len(mover.held), f"the peer holds {fixed} particles, not {len(mover.held)}"
    ms = {name: mover.of(timer) for name, timer in (COMMON | STAGES[spec["method"]]).items()}
    first, centre = mover.rows[0], mover.x.mean(axis=0, dtype=float) - points.mean(axis=0)
    return {
        "particles": len(points), "held": fixed, "ms": {name: median(values) for name, values in ms.items()},
        "iterations": fmean(mover.of(ITERATIONS)), "tolerant": True, "factor": first.get(FACTORING, 0.0) / 1e3,
        "setup": mover.first - start - first["SimStep"] / 1e3, "startup": mover.first - spec["born"],
        "megabytes": peak_megabytes(), "megabytes_before": before, "cores": cores,
        "centre": dict(zip("xyz", map(float, centre), strict=True)),
        "time": engine.TimeManager.getCurrent().getTime(),
    }  # fmt: skip


if __name__ == "__main__":
    carry_out(run, sys.argv[1:])
