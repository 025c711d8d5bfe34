"""Backends: which one "gpu" is, and that it computes what the CPU does."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

import pliant as pl
from pliant.commands.cli import app
from pliant.core import backend
from pliant.errors import PliantError
from pliant.render import vulkan


@pytest.mark.parametrize(("here", "chosen"), [
    (("cpu", "vulkan", "metal", "cuda"), "cuda"), (("cpu", "vulkan", "metal"), "metal"), (("cpu", "vulkan"), "vulkan"),
])  # fmt: skip
def test_gpu_is_the_best_one_there_is(monkeypatch, here, chosen):
    monkeypatch.setattr(backend, "is_supported", lambda name: name in here)
    with pytest.raises(pl.PliantError, match=f"already runs on 'cpu' in this process; .* for '{chosen}'"):
        backend.start("gpu")
    monkeypatch.setattr(backend, "_started", chosen)
    backend.start("gpu")
    backend.start(chosen)
    assert backend.started() == chosen


def test_without_a_gpu_there_is_one_sentence(monkeypatch):
    monkeypatch.setattr(backend, "is_supported", lambda name: name == "cpu")
    with pytest.raises(pl.PliantError) as told:
        backend.start("gpu")
    assert str(told.value) == ("backend 'gpu' is not available on this machine, which has no driver for CUDA, Metal or "
                               "Vulkan; use backend='cpu'.")  # fmt: skip


def test_a_gpu_that_runs_stays_the_one(monkeypatch):
    monkeypatch.setattr(backend, "_started", "vulkan")
    monkeypatch.setattr(backend, "is_supported", lambda name: name in ("cuda", "vulkan"))
    backend.start("gpu")
    assert backend.started() == "vulkan"


@pytest.mark.parametrize(("devices", "told"), [
    (["GeForce"], "vulkan on GeForce"), (["GeForce", "llvmpipe (LLVM 15)"], "vulkan"), ([], "vulkan"),
    (["llvmpipe (LLVM 15)"], "vulkan on llvmpipe (LLVM 15), a software driver: the CPU does the work, and backend "
                             "'cpu' is faster"),
])  # fmt: skip
def test_the_device_is_told(monkeypatch, devices, told):
    monkeypatch.setattr(vulkan, "vulkan_devices", lambda: devices)
    assert vulkan.describe_gpu("vulkan") == told
    assert vulkan.describe_gpu("cuda") == "cuda"


@pytest.mark.parametrize(("age", "left"), [(2 * backend.LOCKED, False), (0.0, True)])
def test_a_lock_that_a_killed_process_left_is_taken_away(monkeypatch, tmp_path, age, left):
    """Not that of one that writes just now."""
    monkeypatch.setenv("TI_OFFLINE_CACHE_FILE_PATH", str(tmp_path))
    backend._open_kernel_cache()  # there is none
    lock = tmp_path / "ticache.lock"
    lock.touch()
    os.utime(lock, (time.time() - age,) * 2)
    backend._open_kernel_cache()
    assert lock.exists() == left


RUN = """
import sys
import numpy as np
import pliant as pl
from pliant.core import backend

def run(name):
    scene = pl.Scene(particle_radius=0.05, dt=5e-3)
    scene.add(pl.Box(size=(0.6, 0.5, 0.3), center=(0.3, 0.25, 0)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Box(size=(0.3, 0.3, 0.3), center=(0.15, 0.15, 0)), pl.Fluid(), name="water")
    sim = scene.build(backend=name)
    for _ in range(5):
        sim.step()
    return sim["water"].x

"""

ON_THE_GPU = """
x = run("gpu")
assert backend.started() in backend.GPUS
np.testing.assert_allclose(run(backend.started()), x, atol=1e-5)
backend.start("gpu")
np.save(sys.argv[1], x)
"""


@pytest.mark.skipif(vulkan.available() is not None, reason=str(vulkan.available()))
def test_a_run_on_the_gpu_is_that_on_the_cpu(tmp_path, capsys):
    here: dict = {}
    exec(RUN, here)
    x = here["run"]("cpu")
    assert "backend" not in capsys.readouterr().err
    command = [sys.executable, "-c", RUN + ON_THE_GPU, str(tmp_path / "gpu.npy")]
    told = subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True, timeout=300).stderr
    assert told.count("backend 'gpu' is ") == 1
    np.testing.assert_allclose(np.load(tmp_path / "gpu.npy"), x, atol=1e-4)


def test_the_environment_names_the_usual_backend(monkeypatch):
    monkeypatch.setattr(backend, "_started", None)
    monkeypatch.delenv("PLIANT_BACKEND", raising=False)
    assert backend.usual() == "cpu"
    monkeypatch.setenv("PLIANT_BACKEND", "vulkan")
    assert backend.usual() == "vulkan"
    monkeypatch.setattr(backend, "_started", "cpu")
    assert backend.usual() == "cpu"  # what runs already
    monkeypatch.setattr(backend, "_started", None)
    monkeypatch.setenv("PLIANT_BACKEND", "vulcan")
    with pytest.raises(PliantError, match="did you mean 'vulkan'"):
        backend.start()


@pytest.mark.parametrize("command", [("sample", "ball.obj"), ("view", "dam_break"), ("bench", "small"), ("validate",)])
def test_commands_that_compute_take_a_backend(command, monkeypatch):
    """Refused by name before anything starts; the environment is as before then."""
    monkeypatch.delenv("PLIANT_BACKEND", raising=False)
    result = CliRunner().invoke(app, [*command, "--backend", "gpuu"])
    assert result.exit_code == 2 and "did you mean 'gpu'" in result.output
    assert "PLIANT_BACKEND" not in os.environ
