"""Each solver on a graphics processor: a few steps of small scenes are those on the CPU, but for what is rounded.

Vulkan stands for all of them, be it a software driver: kernels are written once, and this finds what only a CPU takes.
"""

import subprocess
import sys

import numpy as np
import pytest

import pliant as pl
from pliant.render import vulkan

pytestmark = pytest.mark.skipif(vulkan.available() is not None, reason=str(vulkan.available()))

D, STEPS, DT = 0.05, 4, 2e-3


def tank(**settings):
    scene = pl.Scene(particle_radius=D / 2, **settings)
    scene.add(pl.Box(size=(0.6, 0.6, 0.3), center=(0.3, 0.3, 0.15)), pl.Boundary(inside_out=True, friction=0.3),
              name="tank")  # fmt: skip
    return scene


def block(scene, material, x=0.15, y=0.1, name="body", velocity=(0.3, -0.5, 0)):
    scene.add(pl.Box(size=(0.2, 0.2, 0.2), center=(x, y, 0.15)), material, name=name, velocity=velocity)
    return scene


def water():
    return block(tank(), pl.Fluid(viscosity=1e-3))


def water_by_iisph():
    return block(tank(pressure=pl.IISPH()), pl.Fluid())


def honey_with_skin():
    return block(tank(), pl.Fluid(density=1400, viscosity=0.5, surface_tension=0.1))


def spinning_water():
    return block(tank(), pl.Fluid(micropolar=0.02))


def water_on_a_ball():
    scene = block(tank(air=pl.Air(velocity=(3, 0, 0))), pl.Fluid(), y=0.35)
    ball = scene.add(pl.Sphere(radius=0.08, center=(0.2, 0.12, 0.15)), pl.Boundary(), name="ball")
    ball.move(lambda t: (0, 0.5, 0))
    return scene


def sand_with_grains():
    return block(tank(), pl.Granular(friction_angle=35, grains=8))


def wet_sand():
    scene = block(tank(), pl.Granular(grain_diameter=2e-3), y=0.11, velocity=(0, 0, 0))
    return block(scene, pl.Fluid(), y=0.32, name="water")


def jelly():
    return block(tank(), pl.Elastic(young=5e4), y=0.102)


def jelly_by_peer():
    return block(tank(elasticity=pl.Peer2018()), pl.Elastic(young=5e4), y=0.102)


def jelly_in_water():
    return block(block(tank(), pl.Elastic(young=5e4), y=0.102), pl.Fluid(), x=0.4, name="water", velocity=(-1, 0, 0))


def jet():
    scene = tank()
    scene.emit(pl.Disc(radius=0.08, center=(0.3, 0.4, 0.15)), pl.Fluid(), velocity=(0, -4, 0), name="body")
    scene.drain(pl.Box(size=(0.6, 0.04, 0.3), center=(0.3, 0.02, 0.15)))
    return scene


def crates_in_water():
    scene = block(tank(), pl.Fluid(viscosity=1e-3), velocity=(0, 0, 0))
    for k in range(2):
        scene.add(pl.Box(size=(0.1, 0.1, 0.1), center=(0.15 + 0.03 * k, 0.28 + 0.101 * k, 0.15)),
                  pl.Rigid(density=400, friction=0.4), name=f"crate{k + 1}", velocity=(0.3, -1, 0))  # fmt: skip
    flap = scene.add(pl.Cylinder(radius=0.05, height=0.2, center=(0.4, 0.2, 0.15)), pl.Rigid(), name="flap")
    scene.hinge(flap, None, at=(0.4, 0.35, 0.15), axis="z", speed=2.0)
    return scene


SCENES = (water, water_by_iisph, honey_with_skin, spinning_water, water_on_a_ball, sand_with_grains, wet_sand, jelly,
          jelly_by_peer, jelly_in_water, jet, crates_in_water)  # fmt: skip


def run(make, backend):
    """Where the particles and walls of the scene come to, and what the tank bears."""
    sim = make().build(backend=backend, quiet=True)
    for _ in range(8 * STEPS if make is jet else STEPS):
        sim.step(DT)
    p, walls = sim.world.particles, sim.world.walls.states
    return np.concatenate([p.by_id("x").ravel(), walls.shift.ravel(), p.by_id("v").ravel(), walls.velocity.ravel(),
                           sim["tank"].force])  # fmt: skip


@pytest.fixture(scope="module")
def on_the_gpu(tmp_path_factory):
    """All scenes in one child: a process has one backend."""
    folder = tmp_path_factory.mktemp("gpu")
    program = f"""
import sys
sys.path.insert(0, {str(__file__.rsplit("/", 1)[0])!r})
import numpy as np, test_gpu
for make in test_gpu.SCENES:
    try:
        np.save(f"{folder}/{{make.__name__}}.npy", test_gpu.run(make, "vulkan"))
    except Exception as error:
        print(make.__name__, error, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=900)
    return folder, done.stderr


@pytest.mark.parametrize("make", SCENES, ids=lambda make: make.__name__)
def test_steps_on_the_gpu_are_those_on_the_cpu(make, on_the_gpu):
    folder, told = on_the_gpu
    assert (folder / f"{make.__name__}.npy").exists(), told
    gpu, cpu = np.load(folder / f"{make.__name__}.npy"), run(make, "cpu")
    assert gpu.shape == cpu.shape
    x, v = (slice(k * (len(cpu) - 3) // 2, (k + 1) * (len(cpu) - 3) // 2) for k in (0, 1))
    assert np.abs(gpu[x] - cpu[x]).max() < 2e-3 * D
    assert np.abs(gpu[v] - cpu[v]).max() < 2e-2 * np.abs(cpu[v]).max()
    assert np.abs(gpu[-3:] - cpu[-3:]).max() < 0.05 * max(np.abs(cpu[-3:]).max(), 1.0)
