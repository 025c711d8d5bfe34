"""Kernels that are launched quickly do what Taichi's own way does, with all kinds of arguments."""

import numpy as np
import pytest
import taichi as ti
from taichi.lang import kernel_impl

from pliant.core import speedups
from pliant.core.backend import (
    DEAL,
    SHARES,
    Ints,
    Reals,
    RealTable,
    Vectors,
    desk_of,
    is_on_one_thread,
    on_one_thread,
    share,
    turns,
    upload,
    vec3,
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
        with on_one_thread(True):
            count_twice(n, x, y)
        assert (x.to_numpy() == np.arange(n)).all() and (y.to_numpy() == np.arange(n)).all()
    with on_one_thread(False):
        assert not is_on_one_thread()


@ti.kernel
def spread_out(tasks: ti.i32, done: Ints, desk: Ints):
    for turn in range(turns(tasks)):
        k = share(turn, tasks)
        if k < tasks:
            done[k] += 1
            desk[k] = desk_of(turn, k)


@pytest.mark.parametrize("tasks", [1, 31, 33, 511, 720, 16_384, 16_385, 40_000])
@pytest.mark.parametrize("few", [True, False])
def test_shares_are_done_once_and_follow_each_other(tasks, few):
    done, desk = np.zeros(tasks, np.int32), np.zeros(tasks, np.int32)
    with on_one_thread(few):
        spread_out(tasks, done, desk)
    assert (done == 1).all() and (np.diff(desk) >= 0).all() and desk.max() < -(-tasks // DEAL) * SHARES


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
    for _ in range(3):
        Counter().count(x)
    assert x.to_numpy().tolist() == [6, 6]


def test_arrays_with_gradients_go_taichis_way():
    x, y = (ti.ndarray(ti.f32, 2, needs_grad=needs) for needs in (True, False))
    x.fill(1)
    for _ in range(2):
        add_any(2, x, y)
    assert y.to_numpy().tolist() == [2, 2]
    assert not any(speedups.WITH_GRADIENT in signature for signature in add_any._primal.launches.ready)
