"""A solve of the pressure system (`system`): where it starts, its sweeps, and what they sum up.

A sweep changes the pressures by a step along their residuals and a share of the last change (its momentum),

    dq = step residual / D + momentum dq,    q <- q + dq,    residual <- residual - K dq,

where q may fall below zero inside liquids only. It goes through the particles twice: for what the changes do to
displacements u, and for what u does to density ratios. Which step and momentum is for others to say (`iteration`).
"""

import taichi as ti

from pliant.core import team
from pliant.core.backend import Ints, Reals, RealTable, Vectors, set_vector, share, turns, vec4, vector_at
from pliant.core.reduce import BLOCKS, block, blocks
from pliant.core.speedups import light, with_vectors
from pliant.solvers.pressure.system import System, bending, find_displacements, find_growth, xyz

# The density ratio up to which nothing pushes. Layers that slide past each other change the mean density by some 1e-5;
# a closed volume filled to the brim would have no room for that, and jam.
REST = 1.0001

# What a solve sums up, and the number of these sums
COMPRESSION, TWO_SIDED, GATHERED, LENGTH, CURVATURE, LARGEST, MEMBERS, SOURCE, SUMS = range(9)
BOTH_SIDES = 2.0  # tolerance of the two-sided error, in tolerances of compression
GROUP = 8  # particles that follow each other and so are next to each other, 2 along each axis: see GATHERED
UNBOUNDED = 1e30  # a tension that no pressure reaches
SAMPLES = 4096  # particles that tell the mean of a source
STEP, MOMENTUM = 0, 1  # columns of the lengths of sweeps
GO_ON, STOP, TOO_LONG = 0, 1, 2  # what is decided after a sweep


@with_vectors
@ti.kernel
def begin(n: ti.i32, wraps: ti.template(), period: Vectors, corrected: ti.i32, c: System,
          inverse_density: Reals, dt: ti.f32, p: Reals, dv: Vectors):  # fmt: skip
    """Starts from the pressures of the last step: adds what they do to velocities."""
    for i in range(n):
        c.q[i] = dt * dt * p[i]
        c.xq[i][3] = c.q[i]
    for turn in range(turns(blocks(n))):
        lo, hi = block(share(turn, blocks(n)), n)
        find_displacements(lo, hi, 1.0 / dt, inverse_density, wraps, period, corrected, c)
        for i in range(lo, hi):
            set_vector(dv, i, vector_at(dv, i) + xyz(c.u[i]))


@with_vectors
@ti.kernel
def predict(n: ti.i32, wraps: ti.template(), period: Vectors, corrected: ti.i32, c: System, flux: Reals,
            wall: Reals, density: Reals, least: ti.f32, v: Vectors, dt: ti.f32, compression: ti.f32, feedback: ti.f32,
            slack: ti.f32, step: ti.f32, partial: RealTable, sums: Reals):  # fmt: skip
    """residual = dt d rho/dt + (rho - 1): the excess at the end of the step. Of an excess that is there already only
    the share `compression` counts; what is missing counts whole, so that thinned-out particles may come closer. Inside
    a liquid either counts whole, but of what is within the `slack` only the share `feedback`. The source is
    dt^2 |tr((grad v)^2)|: what velocities do in a step to their own divergence, of which some SAMPLES give the mean.
    Members have something to push against: the inside of a solid has not, and must not dilute the mean. The first
    changes of pressures are those of a sweep of length `step`."""
    every = (n + SAMPLES - 1) // SAMPLES
    for i in range(n):
        c.u[i] = vec4(vector_at(v, i), 0.0)
    for turn in range(turns(blocks(n))):
        s = share(turn, blocks(n))
        lo, hi = block(s, n)
        find_growth(lo, hi, wraps, period, corrected, c)
        members, sources = 0.0, 0.0
        for i in range(lo, hi):
            source = 0.0
            if corrected != 0 and i % every == 0:
                source = every * dt * dt * ti.abs(bending(i, wraps, period, c))
            excess = density[i] + wall[i] - REST
            missing = ti.min(excess, 0.0) + compression * ti.max(excess, 0.0)
            within = excess - (1.0 - feedback) * ti.min(ti.max(excess, -slack), slack)
            c.residual[i] = dt * (c.response[i] - flux[i]) + ti.select(c.inside[i] > 0.0, within, missing)
            find_change(i, step, 0.0, least, c)
            if c.D[i] > least:
                members += 1.0
                sources += source
        if lo < hi:
            partial[s, MEMBERS], partial[s, SOURCE] = members, sources
            partial[s, LENGTH], partial[s, CURVATURE] = 0.0, 0.0
        sum_errors(s, lo, hi, least, partial, c)
    ti.loop_config(serialize=True)
    for k in range(SUMS):
        total_up(k, n, partial, sums)


# --- parts of a sweep -----------------------------------------------------------------------------------


@ti.func
def projected(old: ti.f32, step: ti.f32, residual: ti.f32, D: ti.f32, least: ti.f32, inside: ti.f32):
    """A pressure after one step along its residual, below zero only inside a liquid; none where there is nothing to
    push against."""
    lowest = ti.select(inside > 0.0, -UNBOUNDED, 0.0)
    return ti.select(least < D, ti.max(old + step * residual / ti.max(D, least), lowest), 0.0)


@ti.func
def find_change(i: ti.i32, step: ti.f32, momentum: ti.f32, least: ti.f32, c: ti.template()):
    """The next change of a pressure, into `xq`. What rigid bodies are about to take of the residual is theirs."""
    old, residual = c.q[i] + momentum * c.xq[i][3], c.residual[i] + c.body_response[i]
    c.xq[i][3] = projected(old, step, residual, c.D[i], least, c.inside[i]) - c.q[i]


@ti.func
def change_pressures(lo: ti.i32, hi: ti.i32, inverse_density: ti.template(), wraps: ti.template(),
                     period: ti.template(), corrected: ti.i32, c: ti.template()):  # fmt: skip
    """The first half of a sweep for one block: q <- q + dq, and what the changes do to displacements."""
    for i in range(lo, hi):
        c.q[i] = c.q[i] + c.xq[i][3]
    find_displacements(lo, hi, 1.0, inverse_density, wraps, period, corrected, c)


@ti.func
def change_residuals(s: ti.i32, lo: ti.i32, hi: ti.i32, wraps: ti.template(), period: ti.template(),
                     corrected: ti.i32, V: ti.template(), volume: ti.f32, least: ti.f32, partial: ti.template(),
                     c: ti.template()):  # fmt: skip
    """The second half for one block, the s-th: what the displacements do to residuals, and the sums: of errors, and of
    V dq D dq and V dq K dq, with V in units of `volume`."""
    find_growth(lo, hi, wraps, period, corrected, c)
    length, curvature = 0.0, 0.0
    for i in range(lo, hi):
        c.residual[i] = c.residual[i] + c.response[i]
        if c.D[i] > least:
            change = c.xq[i][3]
            length += V[i] / volume * c.D[i] * change**2
            curvature -= V[i] / volume * change * c.response[i]
    if lo < hi:
        partial[s, LENGTH], partial[s, CURVATURE] = length, curvature
    sum_errors(s, lo, hi, least, partial, c)


@ti.func
def counted(r: ti.f32, q: ti.f32, inside: ti.f32):
    """What of a residual is an error: parting is one as well where pressure acts, and inside a liquid."""
    return ti.select(q > 0.0 or inside > 0.0, r, ti.max(r, 0.0))


@ti.func
def sum_errors(s: ti.i32, lo: ti.i32, hi: ti.i32, least: ti.f32, partial: ti.template(), c: ti.template()):
    """Sums up compression and two-sided errors over one block, the s-th; errors gathered, of groups that are together
    as large as their sum; and the largest compression."""
    over, error, gathered, together, worst = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(lo, hi):
        if c.D[i] > least:
            r = c.residual[i]
            counts = counted(r, c.q[i], c.inside[i])
            over += ti.max(r, 0.0)
            error += ti.abs(counts)
            together += counts
            worst = ti.max(worst, r)
        if (i - lo) % GROUP == GROUP - 1 or i == hi - 1:
            gathered += ti.abs(together)
            together = 0.0
    if lo < hi:
        partial[s, COMPRESSION], partial[s, TWO_SIDED], partial[s, LARGEST] = over, error, worst
        partial[s, GATHERED] = gathered


@ti.func
def total_up(k: ti.i32, n: ti.i32, partial: ti.template(), sums: ti.template()):
    total = 0.0
    for s in range(blocks(n)):
        total = ti.select(k == LARGEST, ti.max(total, partial[s, k]), total + partial[s, k])
    sums[k] = total


@ti.func
def total_of(k: ti.template(), n: ti.i32, partial: ti.template()):
    """One of the sums, anew: the compiler takes an element with a constant index for what it was before a loop."""
    total = 0.0
    for s in range(blocks(n)):
        total += partial[s, k]
    return total


# --- sweeps ---------------------------------------------------------------------------------------------


@with_vectors
@ti.kernel
def sweep(n: ti.i32, wraps: ti.template(), period: Vectors, corrected: ti.i32, c: System, V: Reals,
          volume: ti.f32, inverse_density: Reals, least: ti.f32, rate: ti.f32, step: ti.f32, momentum: ti.f32,
          moved: Vectors, partial: RealTable, sums: Reals):  # fmt: skip
    """One sweep with the changes that were found last, what it does to `moved` (velocities at a rate of 1/dt, or
    positions at 1), and the sums; `step` and `momentum` are for the changes of the next."""
    for turn in range(turns(blocks(n))):
        lo, hi = block(share(turn, blocks(n)), n)
        change_pressures(lo, hi, inverse_density, wraps, period, corrected, c)
        for i in range(lo, hi):
            set_vector(moved, i, vector_at(moved, i) + rate * xyz(c.u[i]))
    for turn in range(turns(blocks(n))):
        s = share(turn, blocks(n))
        lo, hi = block(s, n)
        change_residuals(s, lo, hi, wraps, period, corrected, V, volume, least, partial, c)
        for i in range(lo, hi):
            find_change(i, step, momentum, least, c)
    ti.loop_config(serialize=True)
    for k in range(SUMS):
        total_up(k, n, partial, sums)


@light
@ti.kernel
def find_changes(n: ti.i32, step: ti.f32, least: ti.f32, c: System):
    """The changes of a sweep without momentum."""
    for i in range(n):
        find_change(i, step, 0.0, least, c)


@with_vectors
@ti.kernel
def sweep_together(n: ti.i32, wraps: ti.template(), period: Vectors, corrected: ti.i32, c: System, V: Reals,
                   volume: ti.f32, inverse_density: Reals, least: ti.f32, rate: ti.f32, lengths: RealTable,
                   longest: ti.f32, tolerance: ti.f32, strictness: ti.f32, fewest: ti.i32, most: ti.i32, moved: Vectors,
                   partial: RealTable, sums: Reals, workers: ti.i32, shares: ti.i32, desk: Ints,
                   done: Ints):  # fmt: skip
    """As many sweeps as are needed, in one launch (`core.team`): `fewest` at least, `most` at the most. Each pass over
    the particles is cut into shares; row k of `lengths` is for the changes after sweep k. `done` is told how many there
    were, and why they ended."""
    for turn in range(team.rounds(workers)):
        worker = team.member(turn, workers)
        if worker >= 0:
            sweeps, verdict = 0, GO_ON
            while verdict == GO_ON:
                first, second = 2 * sweeps, 2 * sweeps + 1
                one = team.next_share(first, worker, workers, shares, desk)
                while one >= 0:
                    for s in range(one * blocks(n) // shares, (one + 1) * blocks(n) // shares):
                        lo, hi = block(s, n)
                        change_pressures(lo, hi, inverse_density, wraps, period, corrected, c)
                        for i in range(lo, hi):
                            set_vector(moved, i, vector_at(moved, i) + rate * xyz(c.u[i]))
                    team.end(first, workers, desk)
                    one = team.next_share(first, worker, workers, shares, desk)
                team.wait_for(first, shares, workers, desk)
                one = team.next_share(second, worker, workers, shares, desk)
                while one >= 0:
                    for s in range(one * blocks(n) // shares, (one + 1) * blocks(n) // shares):
                        lo, hi = block(s, n)
                        change_residuals(s, lo, hi, wraps, period, corrected, V, volume, least, partial, c)
                        for i in range(lo, hi):
                            find_change(i, lengths[sweeps, STEP], lengths[sweeps, MOMENTUM], least, c)
                    if team.end(second, workers, desk) == shares - 1:
                        decision = decide(n, sweeps + 1, longest, tolerance, strictness, fewest, most, partial, sums)
                        done[0], done[1] = sweeps + 1, decision
                        team.tell(second, decision, workers, desk)
                        team.end(second, workers, desk)
                    one = team.next_share(second, worker, workers, shares, desk)
                team.wait_for(second, shares + 1, workers, desk)
                verdict = team.told(second, workers, desk)
                sweeps += 1


@ti.func
def decide(n: ti.i32, sweeps: ti.i32, longest: ti.f32, tolerance: ti.f32, strictness: ti.f32, fewest: ti.i32,
           most: ti.i32, partial: ti.template(), sums: ti.template()) -> ti.i32:  # fmt: skip
    """Whether to go on after so many sweeps; finds the sums. As `iteration.FreeSweeps.run`."""
    for k in range(SUMS):
        total_up(k, n, partial, sums)
    two_sided = ti.max(total_of(TWO_SIDED, n, partial), strictness * total_of(GATHERED, n, partial)) / BOTH_SIDES
    error = ti.max(total_of(COMPRESSION, n, partial), two_sided) / ti.max(total_of(MEMBERS, n, partial), 1.0)
    result = GO_ON
    if total_of(CURVATURE, n, partial) > longest * total_of(LENGTH, n, partial):
        result = TOO_LONG
    elif sweeps >= most or (sweeps >= fewest and error <= tolerance):
        result = STOP
    return result


# --- the same in parts, for what couples ----------------------------------------------------------------


@with_vectors
@ti.kernel
def push(n: ti.i32, wraps: ti.template(), period: Vectors, corrected: ti.i32, c: System, inverse_density: Reals,
         least: ti.f32, step: ti.f32, a: Vectors):  # fmt: skip
    """The first half of a sweep, and what it does to free particles."""
    for i in range(n):
        find_change(i, step, 0.0, least, c)
    for turn in range(turns(blocks(n))):
        lo, hi = block(share(turn, blocks(n)), n)
        change_pressures(lo, hi, inverse_density, wraps, period, corrected, c)
        for i in range(lo, hi):
            set_vector(a, i, xyz(c.u[i]))


@light
@ti.kernel
def add(n: ti.i32, rate: ti.f32, a: Vectors, moved: Vectors):
    for i in range(n):
        moved[i] += rate * a[i]


@with_vectors
@ti.kernel
def follow(n: ti.i32, wraps: ti.template(), period: Vectors, corrected: ti.i32, c: System, V: Reals,
           volume: ti.f32, least: ti.f32, rate: ti.f32, a: Vectors, moved: Vectors, partial: RealTable,
           sums: Reals):  # fmt: skip
    """The second half: what accelerations, as they are then, do to `moved` and to residuals, and the sums."""
    for i in range(n):
        c.u[i] = vec4(vector_at(a, i), 0.0)
        set_vector(moved, i, vector_at(moved, i) + rate * vector_at(a, i))
    for turn in range(turns(blocks(n))):
        s = share(turn, blocks(n))
        lo, hi = block(s, n)
        change_residuals(s, lo, hi, wraps, period, corrected, V, volume, least, partial, c)
    ti.loop_config(serialize=True)
    for k in range(SUMS):
        total_up(k, n, partial, sums)


# --- after a solve --------------------------------------------------------------------------------------


@light
@ti.kernel
def finish(n: ti.i32, dt: ti.f32, q: Reals, p: Reals, tense: Ints):
    """Pressures as such again, and whether there is tension anywhere."""
    tense[0] = 0
    for i in range(n):
        p[i] = q[i] / (dt * dt)
        if q[i] < 0.0:
            tense[0] = 1


@light
@ti.kernel
def pressure_head(n: ti.i32, material: Ints, liquid: Reals, inverse_density: Reals, p: Reals, partial: RealTable):
    """Sums of p / rho and of its square over the particles of liquids that are under pressure, block by block."""
    ti.loop_config(block_dim=1)
    for b in range(BLOCKS):
        lo, hi = block(b, n)
        first, second = 0.0, 0.0
        for i in range(lo, hi):
            head = liquid[material[i]] * inverse_density[i] * ti.max(p[i], 0.0)
            first += head
            second += head * head
        partial[b, 0], partial[b, 1] = first, second
