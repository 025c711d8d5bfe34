"""The yardstick of memory: what a triad and a step have to move."""

import numpy as np
import pytest
import taichi as ti

from pliant.tools import bandwidth


def test_the_triad_computes_what_it_says():
    a, b, c = (ti.ndarray(ti.f32, 5) for _ in range(3))
    b.from_numpy(np.arange(5, dtype=np.float32))
    c.fill(2.0)
    bandwidth._triad(5, 3.0, a, b, c)
    np.testing.assert_array_equal(a.to_numpy(), np.arange(5) + 6.0)


def test_bandwidth_is_that_of_a_machine(monkeypatch):
    monkeypatch.setattr(bandwidth, "SMALLEST", 1 << 22)
    monkeypatch.setattr(bandwidth, "last_cache", lambda: 0)
    assert 1e8 < bandwidth.triad_bandwidth() < 1e13  # bytes a second


def test_bytes_grow_with_pairs_particles_and_sweeps():
    small = bandwidth.least_bytes(1000, 30_000, {"density": 0.0, "divergence": 2.0})
    assert all(size > 0 for size in small.values())
    double = bandwidth.least_bytes(2000, 60_000, {"density": 0.0, "divergence": 2.0})
    assert double == pytest.approx({name: 2 * size for name, size in small.items()})
    more = bandwidth.least_bytes(1000, 30_000, {"density": 1.0, "divergence": 2.0})
    sweep = more["density"] - small["density"]
    assert sweep > 2 * bandwidth.PAIR * 30_000, "a sweep passes twice over all pairs"
    assert small["divergence"] == pytest.approx(small["density"] + 2 * sweep)


def test_shares_of_time():
    shares = bandwidth.memory_shares({"walls": 1e6, "density": 4e6}, {"walls": 1.0, "density": 0.0, "total": 10.0}, 1e9)
    assert shares == pytest.approx({"walls": 1.0, "total": 0.5})  # 1 MB at 1 GB/s is 1 ms
