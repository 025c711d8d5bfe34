"""Kernels whose threads stay together give what Taichi's own way gives, and those that cannot stay as they are."""

import ast
import inspect
import textwrap

import numpy as np
import pytest
import taichi as ti

from pliant.core import crew, team
from pliant.core.backend import Ints, Reals, threads_for

MANY = 10**6  # elements for which kernels run in a crew


@ti.func
def largest(n: ti.i32, x: Reals) -> ti.f32:
    result = 0.0
    for k in range(n):
        result = ti.max(result, x[k])
    return result


@ti.kernel
def smooth(n: ti.i32, twice: ti.template(), x: Reals, y: Reals, ends: Reals):
    """Every pass reads at both sides what others wrote in the pass before."""
    width = n - 1
    for i in range(n):
        y[i] = x[i] + x[width - i]
    if ti.static(twice):
        for i in range(1, width):
            x[i] = y[i - 1] + y[i + 1]
        for i in range(n):
            y[i] = x[width - i]
    ends[0] = y[0] + y[width]
    ends[1] += ends[0]
    ti.loop_config(serialize=True)
    for i in range(1, n):
        x[i] = x[i - 1] + y[i]
    scale = 1 / (1 + largest(4, ends))
    for i in range(n):
        y[i] *= scale


def smoothed(x, twice):
    y = x + x[::-1]
    if twice:
        x[1:-1] = y[:-2] + y[2:]
        y = x[::-1].copy()
    first = y[0] + y[-1]
    x[1:] = x[0] + np.cumsum(y[1:])
    return x, y / (1 + max(first, first + 1)), np.array([first, first + 1, 0, 0])


@pytest.mark.parametrize("twice", [True, False])
@pytest.mark.parametrize("n", [2, 3, 33, 100_000])
def test_passes_see_what_those_before_have_written(n, twice):
    """Serial loops, single entries and functions among them. Whole numbers, so that no order of sums matters."""
    start = np.random.default_rng(n).integers(0, 3, n).astype(np.float32)
    x, y, ends = start.copy(), np.zeros(n, np.float32), np.array([0, 1, 0, 0], np.float32)
    with threads_for(MANY):
        smooth(n, twice, x, y, ends)
    expected = smoothed(start.astype(float), twice)
    for result, right in zip((x, y, ends), expected, strict=True):
        assert np.allclose(result, right, rtol=1e-6)


@ti.kernel
def nothing_to_do(n: ti.i32, x: Ints):
    for i in range(n):
        x[i] = 1
    for i in range(5, n):
        x[i] = 2


@pytest.mark.parametrize("n", [-3, 0, 1, 6])
def test_loops_without_a_round(n):
    x = np.zeros(8, np.int32)
    with threads_for(MANY):
        nothing_to_do(n, x)
    assert x.tolist() == [2 if 5 <= i < n else int(i < n) for i in range(8)]


def over_an_array(x: Ints):
    for i in x:
        x[i] = 1


def returns(x: Ints) -> ti.i32:
    for i in range(3):
        x[i] = 1
    return x[0]


def reads_beside_loops(x: Ints):
    first = x[0]
    for i in range(3):
        x[i] = first


def sums_up(x: Ints):
    found = 0
    for i in range(3):
        found += x[i]


def shared_already(x: Ints):
    for turn in range(team.rounds(2)):
        x[turn] = 1


@pytest.mark.parametrize("kernel", [over_an_array, returns, reads_beside_loops, sums_up, shared_already])
def test_what_threads_cannot_do_together_stays_as_it_is(kernel):
    tree = ast.parse(textwrap.dedent(inspect.getsource(kernel)))
    before = ast.unparse(tree)
    assert crew.rewrite(tree.body[0]) == 0 and ast.unparse(tree) == before
