"""Memory does not grow from step to step: by what the C library and Python count here, and by the resident memory of
processes of their own, whose history is known."""

import ctypes
import gc
import subprocess
import sys

import numpy as np
import pytest

import pliant as pl

COMMON = """
import gc, os, sys
import numpy as np
import pliant as pl

def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def growth(do, warm_up, times):
    for _ in range(warm_up):
        do()
    before = resident()
    for _ in range(times):
        do()
    return (resident() - before) / times
"""

ARRAYS = """
import taichi as ti
from pliant.core import backend

backend.start("cpu")
reals, vectors = ti.ndarray(ti.f32, 8), ti.ndarray(backend.vec3, 8)
matrices, table = ti.ndarray(backend.mat3, 8), ti.ndarray(ti.i32, (2, 2))

def use():
    vectors.fill(1.5)
    matrices.fill(-2.0)
    reals[1] = vectors[1][2] + matrices[7][2, 2]
    table[1, 0] = 7
    return reals[1], table[1, 0]

assert use() == (-0.5, 7), use()
assert (vectors.to_numpy() == 1.5).all() and (matrices.to_numpy() == -2.0).all()
assert reals.to_numpy().tolist() == [0, -0.5, 0, 0, 0, 0, 0, 0] and table.to_numpy().tolist() == [[0, 0], [7, 0]]
print(growth(use, 500, 5000))
"""

SCENE = """
def water(scene):
    scene.add(pl.Box(size=(0.3, 0.3, 0.3), center=(0, 0.15, 0)), pl.Fluid(), name="water")

def ball(scene):
    scene.add(pl.Sphere(radius=0.2, center=(2, 0.3, 0)), pl.Elastic(young=1e5), name="ball")

def gripper(scene):
    for side in (-1, 1):
        jaw = scene.add(pl.Box(size=(0.1, 0.4, 0.4), center=(4 + 0.3 * side, 0.2, 0)), pl.Boundary(friction=0.5))
        jaw.move(lambda t, side=side: (-0.05 * side * np.sin(20 * t), 0, 0))
    cube = scene.add(pl.Box(size=(0.3, 0.3, 0.3), center=(4, 0.2, 0)), pl.Elastic(young=1e5), name="cube")
    cube.fix(lambda x: x[:, 1] > 0.25)
    cube.move(lambda t: (0, 0.1 * np.cos(10 * t), 0))

scene = pl.Scene(particle_radius=0.05, dt=1e-3)
scene.add(pl.Box(size=(5, 1, 0.6), center=(2, 0.5, 0)), pl.Boundary(inside_out=True), name="tank")
for part in parts:
    globals()[part](scene)
"""
STEPS = "parts = [sys.argv[3]]" + SCENE + "print(growth(scene.build().step, int(sys.argv[1]), int(sys.argv[2])))"


def growth(program: str, *arguments: object, timeout: float = 300) -> float:
    """Bytes of resident memory that are not given back, for each time that the program does its work."""
    command = [sys.executable, "-c", COMMON + program, *map(str, arguments)]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=timeout)
    return float(run.stdout.splitlines()[-1])


pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc tells the memory of a process")


def test_filling_arrays_and_reading_elements_keep_nothing():
    assert growth(ARRAYS) < 50


class MallInfo(ctypes.Structure):
    """What `mallinfo2` of glibc returns."""

    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks",
                                                     "fsmblks", "uordblks", "fordblks", "keepcost")]  # fmt: skip


def allocated() -> tuple[int, int]:
    """Bytes that are allocated by malloc, mapped or not, and blocks that Python has given to objects."""
    gc.collect()
    library = ctypes.CDLL(None)
    library.mallinfo2.restype = MallInfo
    info = library.mallinfo2()
    return info.uordblks + info.hblkhd, sys.getallocatedblocks()


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="glibc 2.33 or later counts its memory")
def test_steps_keep_nothing():
    """Measured: no byte, and one block a step at most. A kernel that is compiled anew in each step: 8 kB, 8 blocks."""
    space = {"np": np, "pl": pl, "parts": ["water", "ball", "gripper"]}
    exec(SCENE, space)
    sim, steps = space["scene"].build(), 100
    for _ in range(200):  # until all that there is has touched
        sim.step()
    bytes_before, blocks_before = allocated()
    for _ in range(steps):
        sim.step()
    bytes_after, blocks_after = allocated()
    assert bytes_after - bytes_before < 50 * steps and blocks_after - blocks_before < 3 * steps


@pytest.mark.slow
@pytest.mark.parametrize("part", ["water", "ball", "gripper"])
def test_many_steps_keep_nothing(part):
    assert growth(STEPS, 1000, 4000, part, timeout=1800) < 500
