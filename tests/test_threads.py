"""Results do not depend on the number of threads: what moves and what is drawn, with one thread here and with one for
each core elsewhere."""

import os
import subprocess
import sys

import numpy as np
import pytest
import taichi as ti

import pliant as pl
from pliant.solvers.linear import blas, cholesky, supernodes

# A thread takes 512 rounds of a loop at a time, so there are more than that of each kind.
PROGRAM = """
import numpy as np
import pliant as pl
from pliant.render import Camera, Lines, Picture, Points, Surface
from pliant.render.raster import Raster

def pond(folder):
    scene = pl.Scene(particle_radius=0.02, air=pl.Air((4, 0, 1), grain=1e-3))
    tank = pl.Box(size=(0.8, 1, 0.6), center=(0.4, 0.5, 0.3))
    scene.add(tank, pl.Boundary(inside_out=True, friction=0.2), name="tank")
    scene.add(pl.Box(size=(0.8, 0.2, 0.6), center=(0.4, 0.1, 0.3)), pl.Fluid(density=800, viscosity=0.01), name="pool")
    syrup = pl.Fluid(viscosity=0.5, viscosity_solver="implicit", surface_tension=0.07)
    scene.add(pl.Sphere(radius=0.12, center=(0.15, 0.33, 0.3)), syrup, name="drop", velocity=(0.3, -1, 0.1))
    cube = pl.Box(size=(0.24, 0.4, 0.24), center=(0.6, 0.4, 0.3))
    scene.add(cube, pl.Elastic(young=1e5), name="cube").fix(lambda x: x[:, 1] > 0.55)
    ball = pl.Sphere(radius=0.14, center=(0.35, 0.36, 0.3))
    scene.add(ball, pl.Elastic(young=1e4, density=600, poisson=0.4), name="ball")
    sim = scene.build()
    sim.grab("ball", (0.35, 0.4, 0.3)).target = (0.3, 0.6, 0.3)
    sim.grab("pool", (0.2, 0.1, 0.2)).target = (0.3, 0.1, 0.3)
    for _ in range(10):
        sim.step()
    sim["cube"].release()
    for _ in range(10):
        sim.step()
    sim.save(folder + "/pond.npz")

def storm(folder):
    gusts = np.random.default_rng(0).uniform(-9, 9, (4, 3, 5, 3))
    wind = pl.WindGrid(gusts, low=(0, 0, 0), high=(1, 0.6, 1))
    scene = pl.Scene(particle_radius=0.025, air=pl.Air(wind, grain=1e-3))
    tank = pl.Box(size=(1, 1, 1), center=(0.5, 0.5, 0.5))
    scene.add(tank, pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Sphere(radius=0.2, center=(0.5, 0, 0.5)), pl.Boundary(), name="rock")
    heap = pl.Box(size=(0.6, 0.5, 0.6), center=(0.4, 0.25, 0.5))
    scene.add(heap, pl.Granular(grains=10, cohesion=50.0), name="sand", velocity=(0.5, 0, 0))
    sim = scene.build()
    for _ in range(15):
        sim.step()
    sim.save(folder + "/storm.npz")

def bank(folder):
    scene = pl.Scene(particle_radius=0.02)
    tank = pl.Box(size=(0.8, 1, 0.4), center=(0.4, 0.5, 0.2))
    scene.add(tank, pl.Boundary(inside_out=True), name="tank")
    gravel = pl.Box(size=(0.4, 0.24, 0.4), center=(0.6, 0.12, 0.2))
    scene.add(gravel, pl.Granular(grain_diameter=0.03, saturation=0.9), name="gravel")
    scene.add(pl.Box(size=(0.4, 0.36, 0.4), center=(0.2, 0.18, 0.2)), pl.Fluid(), name="water")
    sim = scene.build()
    for _ in range(25):
        sim.step()
    assert len(sim["water"]) != 900
    sim.save(folder + "/bank.npz")

def picture(folder):
    rng = np.random.default_rng(8)
    points = [Points(np.repeat(rng.uniform(-1, 1, (4000, 3)), 2, axis=0), 0.05, rng.random((8000, 3)))]
    surface = Surface(rng.uniform(-1.5, 1.5, (900, 3)), np.arange(900).reshape(-1, 3), rng.random((900, 3)))
    lines = [Lines(rng.uniform(-2, 2, (50, 2, 3)), color) for color in ((1, 0, 0), (0, 0, 1))]
    raster = Raster(640, 360)
    raster.load(Picture(Camera((0, 0, 5), (0, 0, 0)), points, lines, [surface], ground=-1.0))
    raster.draw()
    np.save(folder + "/picture.npy", raster.rows())

def run(folder):
    pond(folder)
    storm(folder)
    bank(folder)
    picture(folder)
"""

ALONE = """
import os, sys
from pliant.solvers.linear import blas, cholesky, supernodes
os.cpu_count = lambda: int(os.environ["TI_CPU_MAX_NUM_THREADS"])  # by which a factorisation shares its work
blas.BLOCK, supernodes.TASK_ENTRIES, cholesky.WORTH_CACHING = 32, 3000, 1e9
run(sys.argv[1])
"""


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    """How the program ends here, and in a process with one thread (with as many as usual, if there is one here): two
    folders."""
    folders = [tmp_path_factory.mktemp("threads") for _ in range(2)]
    here: dict = {}
    exec(PROGRAM, here)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blas, "BLOCK", 32)  # much to share in a small body
        patch.setattr(supernodes, "TASK_ENTRIES", 3000)
        patch.setattr(cholesky, "WORTH_CACHING", 1e9)
        here["run"](str(folders[0]))
    threads = 1 if ti.lang.impl.current_cfg().cpu_max_num_threads > 1 else max(2, os.cpu_count() or 1)
    environment = {**os.environ, "TI_CPU_MAX_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    subprocess.run([sys.executable, "-c", PROGRAM + ALONE, str(folders[1])], env=environment, check=True, timeout=600)
    return folders


@pytest.mark.parametrize("name", ["pond", "storm", "bank"])
def test_motion(ends, assert_same_state, name):
    one, other = (pl.load(folder / f"{name}.npz") for folder in ends)
    assert one.particles > 1200 and (name != "storm" or one.stores["grains"].n > 12_000)
    assert_same_state(one, other)


def test_pictures(ends):
    one, other = (np.load(folder / "picture.npy") for folder in ends)
    assert (one == other).all() and len(np.unique(one)) > 100
