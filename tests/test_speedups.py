"""Kernels that are launched quickly do what Taichi's own way does, with all kinds of arguments."""

import gc
import subprocess
import sys
import weakref

import numpy as np
import pytest
import taichi as ti
from taichi.lang import kernel_impl

from pliant.core import speedups
from pliant.core.backend import (
    DEAL,
    SHARES,
    Ints,
    Points,
    Reals,
    RealTable,
    Vectors,
    desk_of,
    desks,
    runs_alone,
    set_vector,
    share,
    task,
    threads_for,
    turns,
    upload,
    vec3,
    vec4,
    vector_at,
)

Pack = ti.types.argpack(x=Reals, scale=ti.f32, v=Vectors)


@ti.func
def twice(a: ti.f32) -> ti.f32:
    return 2 * a


@ti.func
def thrice(a: ti.f32) -> ti.f32:
    return 3 * a


@ti.kernel
def everything(n: ti.i32, bits: ti.u32, factor: ti.f32, how: ti.template(), squared: ti.template(), x: Reals,
               v: Vectors, table: RealTable, pack: Pack, rows: Vectors, out: Reals):  # fmt: skip
    for i in range(n):
        value = how(factor * x[i]) + v[i].sum() + table[i, 1] + rows[i].y
        value += pack.scale * pack.x[i] + pack.v[i].z + ti.cast(bits, ti.f32)
        if ti.static(squared):
            value = value**2
        out[i] = value


@ti.kernel
def add_any(n: ti.i32, x: ti.types.ndarray(), y: ti.types.ndarray()):
    for i in range(n):
        y[i] += x[i]


def arguments(rng, how=twice, squared=False, factor=1.5, count=3):
    x, v, table, rows = rng.random(4), rng.random((4, 3)), rng.random((4, 2)), rng.random((4, 3))
    pack = Pack(x=upload(x + 1, ti.f32), scale=0.5, v=upload(v + 2, vec3))
    given = (count, 7, factor, how, squared, upload(x, ti.f32), upload(v, vec3), table.astype(np.float32), pack,
             rows.astype(np.float32), ti.ndarray(ti.f32, 4))  # fmt: skip
    expected = (2 if how is twice else 3) * factor * x + v.sum(axis=1) + table[:, 1] + rows[:, 1]
    expected += 0.5 * (x + 1) + v[:, 2] + 2 + 7
    return given, np.where(np.arange(4) < count, expected**2 if squared else expected, 0)


def test_all_kinds_of_arguments():
    """The first call of a signature goes Taichi's way, all others the quick one."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        for options in ({}, {"how": thrice}, {"squared": True}, {"factor": np.float64(0.3)}, {"count": np.int64(4)}):
            given, expected = arguments(rng, **options)
            everything(*given)
            np.testing.assert_allclose(given[-1].to_numpy(), expected, rtol=1e-5)
    assert len(everything._primal.launches.ready) == 5 and len(everything._primal.compiled_kernels) == 3


def test_the_quick_way_is_taken_and_looks_at_nothing_again(monkeypatch):
    given, expected = arguments(np.random.default_rng(1))
    everything(*given)
    monkeypatch.setattr(kernel_impl.Kernel, "launch_kernel", None)
    given[-1].fill(0)
    everything(*given)
    np.testing.assert_allclose(given[-1].to_numpy(), expected, rtol=1e-5)


def test_arrays_of_other_types_are_told_apart():
    for _ in range(2):
        for kind, type_ in ((ti.f32, np.float32), (ti.i32, np.int32)):
            device, host = ti.ndarray(kind, 3), np.arange(3, dtype=type_)
            add_any(3, host, device)
            add_any(3, device, device)
            assert device.to_numpy().tolist() == [0, 2, 4] and device.to_numpy().dtype == type_
            for _ in range(3):
                add_any(3, device, host)
            assert host.tolist() == [0, 7, 14] and device.to_numpy().tolist() == [0, 2, 4]
            add_any(3, host, device)
            assert host.tolist() == [0, 7, 14] and device.to_numpy().tolist() == [0, 9, 18]


def test_arrays_in_another_order_of_memory_go_taichis_way():
    target = ti.ndarray(ti.f32, (2, 3))
    for _ in range(2):
        for values in (np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(6, dtype=np.float32).reshape(3, 2).T):
            copy_table(values, target)
            np.testing.assert_array_equal(target.to_numpy(), values)


@ti.kernel
def copy_table(x: RealTable, y: RealTable):
    for i, j in x:
        y[i, j] = x[i, j]


@pytest.mark.parametrize("wrong", [
    {0: 2.5}, {2: "much"}, {5: 3}, {5: np.zeros(4, np.float64)}, {6: np.zeros((4, 2), np.float32)}, {8: None},
])  # fmt: skip
def test_wrong_arguments_are_refused_after_good_ones_too(wrong):
    given = list(arguments(np.random.default_rng(2))[0])
    everything(*given)
    everything(*given)
    for place, value in wrong.items():
        given[place] = value
    with pytest.raises((TypeError, ValueError, ti.TaichiRuntimeError)):
        everything(*given)
    with pytest.raises(ti.TaichiSyntaxError, match="`out : .* missing"):
        everything(*given[:-1])


def test_a_member_of_a_pack_that_is_set_anew_counts():
    given, _ = arguments(np.random.default_rng(3))
    everything(*given)
    everything(*given)
    before = given[-1].to_numpy()
    given[8].x = upload(given[8].x.to_numpy() + 4, ti.f32)
    everything(*given)
    np.testing.assert_allclose(given[-1].to_numpy()[:3], before[:3] + 2, rtol=1e-5)


@ti.func
def count_up(n: ti.i32, x: ti.template()):
    for i in range(1, n):
        x[i] = x[i - 1] + 1


@ti.kernel
def count_twice(n: ti.i32, x: Ints, y: Ints):
    for i in range(1, n):
        x[i] = x[i - 1] + 1
    count_up(n, y)


def test_loops_on_one_thread_run_in_order():
    """Those of functions that a kernel calls too. Each element waits for the one before, as no parallel loop would."""
    n = 100_000
    for _ in range(2):
        x, y = ti.ndarray(ti.i32, n), ti.ndarray(ti.i32, n)
        with threads_for(0):
            count_twice(n, x, y)
        assert (x.to_numpy() == np.arange(n)).all() and (y.to_numpy() == np.arange(n)).all()
    with threads_for(10**6):
        assert not runs_alone(count_twice)


@ti.kernel
def spread_out(tasks: ti.i32, done: Ints, desk: Ints):
    for turn in range(turns(tasks)):
        k = share(turn, tasks)
        if k < tasks:
            done[k] += 1
            desk[k] = desk_of(turn, k)


@pytest.mark.parametrize("tasks", [1, 31, 33, 511, 720, 16_384, 16_385, 40_000])
@pytest.mark.parametrize("elements", [0, 10**6, np.inf], ids=["alone", "together", "ordinary"])
def test_shares_are_done_once_each_at_one_desk(tasks, elements):
    done, desk = np.zeros(tasks, np.int32), np.zeros(tasks, np.int32)
    with threads_for(elements):
        spread_out(tasks, done, desk)
    assert (done == 1).all() and desk.max() < desks(tasks)
    if elements != 10**6:  # there a thread has one desk for all of its shares
        assert (np.diff(desk) != 0).sum() < -(-tasks // DEAL) * SHARES, "tasks of a share follow each other"


@ti.kernel
def total(n: ti.i32, x: Ints) -> ti.i32:
    found = 0
    for i in range(n):
        found += x[i]
    return found


def test_results_come_back_and_names_may_be_given():
    x = upload(np.arange(5), ti.i32)
    assert [total(n, x) for n in (5, 4, 5)] == [10, 6, 10]
    assert total(n=3, x=x) == 3


@ti.data_oriented
class Counter:
    def __init__(self):
        self.step = 2

    @ti.kernel
    def count(self, x: Ints):
        for i in x:
            x[i] += self.step


def test_kernels_of_classes_are_known_as_such():
    x = ti.ndarray(ti.i32, 2)
    for elements in (1, 1, 10**6, 10**6):
        with threads_for(elements):
            Counter().count(x)
    assert x.to_numpy().tolist() == [8, 8]


def test_arrays_with_gradients_go_taichis_way():
    x, y = (ti.ndarray(ti.f32, 2, needs_grad=needs) for needs in (True, False))
    x.fill(1)
    for _ in range(2):
        add_any(2, x, y)
    assert y.to_numpy().tolist() == [2, 2]
    assert not any(speedups.WITH_GRADIENT in signature for signature in add_any._primal.launches.ready)


def test_launches_are_kept_and_tell_arrays_numbers_and_packs_apart():
    x, y = upload(np.arange(4), ti.f32), ti.ndarray(ti.f32, 4)
    pack = Pack(x=x, scale=2.0, v=upload(np.ones((4, 3)), vec3))
    for _ in range(3):
        scaled(4, 3.0, pack, y)
        assert y.to_numpy().tolist() == [1.0, 7.0, 13.0, 19.0]
    assert len(scaled._primal.launches.contexts) == 1
    scaled(2, 0.5, pack, y)
    assert y.to_numpy().tolist() == [1.0, 2.0, 13.0, 19.0]
    other = ti.ndarray(ti.f32, 4)
    scaled(4, 3.0, pack, other)
    assert other.to_numpy().tolist() == [1.0, 7.0, 13.0, 19.0] and y.to_numpy()[1] == 2.0
    pack["x"] = upload(np.arange(4) + 1, ti.f32)
    scaled(4, 3.0, pack, y)
    assert y.to_numpy().tolist() == [7.0, 13.0, 19.0, 25.0]
    host = np.zeros(4, np.float32)
    for target in (host, host.copy(), host):
        scaled(4, 3.0, pack, target)
        assert target.tolist() == [7.0, 13.0, 19.0, 25.0]


@ti.kernel
def scaled(n: ti.i32, factor: ti.f32, pack: Pack, out: Reals):
    for i in range(n):
        out[i] = factor * pack.scale * pack.x[i] + pack.v[i].z


def test_kept_launches_are_few_and_keep_no_array_alive():
    target = ti.ndarray(ti.f32, 4)
    gone = []
    for k in range(100):
        source = upload(np.full(4, k), ti.f32)
        gone.append(weakref.ref(source))
        add_any(4, source, target)
        del source
    assert target.to_numpy().tolist() == [sum(range(100))] * 4
    assert len(add_any._primal.launches.contexts) <= speedups.MOST_CONTEXTS
    gc.collect()
    assert not any(ref() for ref in gone)


@ti.kernel
def dealt(n: ti.i32, out: Ints):
    for turn in range(turns(n)):
        k = task(turn)
        if k < n:
            out[k] = k + 1


@speedups.light
@ti.kernel
def plain(n: ti.i32, out: Ints):
    for i in range(n):
        out[i] = i + 1


def test_few_elements_are_left_to_one_thread():
    """By their number alone, which differs between kernels that do little and others."""
    chosen = []
    for elements in (1, speedups.COMMON, speedups.LIGHT, speedups.LIGHT + 1):
        for kernel in (dealt, plain):
            out = ti.ndarray(ti.i32, 100)
            with threads_for(elements):
                kernel(100, out)
                chosen.append(speedups.threads.way)
            assert out.to_numpy().tolist() == list(range(1, 101))
    one, all_ = speedups.ALONE, speedups.TOGETHER
    assert chosen == [one, one, one, one, all_, one, all_, all_]
    dealt(100, out)
    assert speedups.threads.way == speedups.ORDINARY


# What a Taichi that is not the tested one may have done to us, and what is said of it
CHANGES = {
    "nothing": ("", ""),
    "other results": ("speedups.Launches.launch = lambda self, ready, args: None", "wrong results"),
    "parts missing": ("speedups.ASTTransformer = None", "build_For"),
}
STEPS = """
from pliant.core import backend, speedups
backend.TAICHI_TESTED = "0"
{change}
backend.start("cpu")
import pliant as pl
scene = pl.Scene(particle_radius=0.05)
scene.add(pl.Box(size=(0.3, 0.3, 0.3), center=(0, 0.15, 0)), pl.Fluid())
sim = scene.build(quiet=True)
sim.step()
print(sim.stats.kinetic_energy > 0, backend.slow_because())
"""


@pytest.mark.parametrize("name", CHANGES)
def test_another_taichi_is_tried_out_and_otherwise_left_to_itself(name):
    change, words = CHANGES[name]
    done = subprocess.run([sys.executable, "-c", STEPS.format(change=change)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    stepped, _, told = done.stdout.splitlines()[-1].partition(" ")
    assert stepped == "True" and words in told and bool(told) == bool(words)


@speedups.with_vectors
@ti.kernel
def add_in_vectors(n: ti.i32, a: Points, b: Points, v: Vectors, out: Vectors):
    for i in range(n):
        total = vec4(0.0)
        for k in range(3):
            total += ti.cast(k, ti.f32) * ti.select(a[i] < b[i], a[i], b[i])
        set_vector(out, i, vector_at(v, i) + vec3(total[0], total[1], total[2]))


@pytest.mark.parametrize("elements", [1, 100_000])
def test_vectors_in_registers_give_what_their_components_do(elements):
    rng, n = np.random.default_rng(4), 1001
    a, b, v = rng.uniform(size=(n, 4)), rng.uniform(size=(n, 4)), rng.uniform(size=(n, 3))
    out = ti.ndarray(vec3, n)
    with threads_for(elements):
        for _ in range(3):
            add_in_vectors(n, upload(a, vec4), upload(b, vec4), upload(v, vec3), out)
    np.testing.assert_allclose(out.to_numpy(), v + 3 * np.minimum(a, b)[:, :3], rtol=1e-6)
    assert ti.lang.impl.current_cfg().real_matrix_scalarize
