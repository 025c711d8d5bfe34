"""Sweeps of a pressure solve: the lengths of Chebyshev, and threads that stay together through many passes."""

import numpy as np
import pytest
import taichi as ti

from pliant.core import team
from pliant.core.backend import Ints, IntTable, threads_for, workers
from pliant.solvers.pressure import sweeps
from pliant.solvers.pressure.iteration import IN_TURN, LARGEST_EIGENVALUE, RUNS, chebyshev


def residuals(eigenvalues, count):
    """What is left of a residual of one along eigenvectors of D^-1 K, after so many sweeps."""
    r, dq = np.ones_like(eigenvalues), np.zeros_like(eigenvalues)
    for step, momentum in chebyshev(LARGEST_EIGENVALUE)[:count].astype(float):
        dq = step * r + momentum * dq
        r = r - eigenvalues * dq
    return r


def test_a_run_of_sweeps_is_the_best_polynomial():
    """1 / T_k(sigma) is the least that k sweeps can leave of all eigenvalues in an interval, and is reached."""
    (least, count), *_ = RUNS
    sigma = (LARGEST_EIGENVALUE + least) / (LARGEST_EIGENVALUE - least)
    left = np.abs(residuals(np.linspace(least, LARGEST_EIGENVALUE, 1001), count))
    assert left.max() == pytest.approx(1 / np.cosh(count * np.arccosh(sigma)), rel=1e-3)


def test_runs_follow_each_other_for_ever_smaller_eigenvalues():
    assert len(chebyshev(LARGEST_EIGENVALUE)) == IN_TURN + 1 == sum(count for _, count in RUNS) + 1
    ends = np.cumsum([count for _, count in RUNS])
    for (least, _), end in zip(RUNS, ends, strict=True):
        assert np.abs(residuals(np.linspace(least, LARGEST_EIGENVALUE, 501), end)).max() < 0.2
    lengths = chebyshev(LARGEST_EIGENVALUE)
    assert (lengths[:, sweeps.STEP] > 0).all() and (lengths[:, sweeps.MOMENTUM] < 1).all()


@ti.kernel
def count_up(many: ti.i32, passes: ti.i32, shares: ti.i32, desk: Ints, done: IntTable, by: IntTable):
    """Each share of a pass is one more than the least of the pass before."""
    for turn in range(team.rounds(many)):
        worker = team.member(turn, many)
        if worker >= 0:
            for step in range(passes):
                one = team.next_share(step, worker, many, shares, desk)
                while one >= 0:
                    least = step
                    for k in range(shares):
                        if step > 0:
                            least = ti.min(least, done[step - 1, k])
                    done[step, one] += least + 1
                    by[step, one] = worker
                    team.end(step, many, desk)
                    one = team.next_share(step, worker, many, shares, desk)
                team.wait_for(step, shares, many, desk)


@pytest.mark.parametrize("elements", [1, 1_000_000])
@pytest.mark.parametrize("many", [1, 2, 5])
def test_no_pass_begins_before_the_last_is_done(many, elements):
    """By one thread and by all, and by fewer threads than there are workers: nobody is waited for."""
    passes, shares = 40, team.SHARES_EACH * many
    done, by = ti.ndarray(ti.i32, (passes, shares)), ti.ndarray(ti.i32, (passes, shares))
    for array in (done, by):
        array.fill(0)
    with threads_for(elements):
        count_up(many, passes, shares, team.clean_desk(many, passes), done, by)
    assert (done.to_numpy() == np.arange(1, passes + 1)[:, None]).all()
    assert by.to_numpy().min() >= 0 and by.to_numpy().max() < many and workers() >= 1
