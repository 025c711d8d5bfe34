"""Probes: they read what is there, record it at the times they promise, and change nothing."""

import math
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import taichi as ti
from typer.testing import CliRunner

import pliant as pl
from pliant.boundary.wall_patches import WallPatch, patch_table, share_of
from pliant.commands import cli
from pliant.core.backend import Reals, RealTable, vec4
from pliant.core.smoothing import SMOOTHINGS
from pliant.errors import PliantError
from pliant.render import vulkan
from pliant.render.render_scene import RenderScene
from pliant.run import inspect_probes, probe_files
from pliant.run import run as running
from pliant.solvers.probes.options import QUANTITIES, Probe
from pliant.solvers.probes.recorder import Recorder

NAN, INF = math.nan, math.inf
D = 0.05  # spacing [m]
RHO_G = 1000 * 9.81


def pool(layers=12, wide=8):
    """Water on a plane, endless to all sides: `layers` deep."""
    H, W = layers * D, wide * D
    scene = pl.Scene(particle_radius=D / 2, periodic=(W, None, W))
    scene.add(pl.Plane(), pl.Boundary(), name="floor")
    scene.add(pl.Box(size=(W, H, W), center=(W / 2, H / 2, W / 2)), pl.Fluid(), name="water")
    return scene


def dam(**settings):
    """A column of water that falls apart in a tank."""
    scene = pl.Scene(**({"particle_radius": D / 2} | settings))
    scene.add(pl.Box(size=(1, 0.6, 0.3), center=(0.5, 0.3, 0.15)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Box(size=(0.4, 0.4, 0.3), center=(0.2, 0.2, 0.15)), pl.Fluid(), name="water")
    return scene


def every_kind(scene, **more):
    """Probes of all kinds in the dam."""
    wall = pl.Rectangle(size=(0.3, 0.2), center=(1, 0.1, 0.15))
    return [
        scene.probe("pressure", at=[(0.02, 0.05, 0.15), (0.3, 0.05, 0.1), (0.9, 0.5, 0.15)], name="bed", **more),
        scene.probe("velocity", at=(0.45, 0.05, 0.15), name="front", every=0.02),
        scene.probe("density", at=[(0.2, 0.1, 0.15)], name="density", window=0.013, every=0.01),
        scene.probe("elevation", at=[(0.1, 0, 0.15), (0.5, 0.1, 0.15)], name="gauges", every=0.03),
        scene.probe("pressure", on=wall, name="impact", window=0.02),
        scene.probe("force", on=pl.Disc(radius=0.1, center=(0, 0.1, 0.15)), name="push", every=0.025),
        scene.probe("flow", through=pl.Rectangle(size=(0.3, 0.6), center=(0.5, 0.3, 0.15), normal=(1, 0, 0)),
                    name="gate", every=0.02),
    ]  # fmt: skip


@ti.kernel
def sum_of_shares(table: RealTable, out: Reals):
    """Over a lattice around the origin."""
    ti.loop_config(serialize=True)
    for i in range(81):
        u, v = i % 9 - 4 - table[0, 0], i // 9 - 4 - table[0, 1]
        out[0] += share_of(table, 0, u, v, vec4(0.5))


# --- what they read ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def still():
    """A pool at rest, and what was measured in its last quarter of a second."""
    scene, H = pool(), 12 * D
    heights = np.array([0.1, 0.2, 0.3, 0.4])
    mean = {"window": 0.25}
    probes = {
        "column": scene.probe("pressure", at=[(0.21, y, 0.17) for y in heights], name="column", **mean),
        "air": scene.probe("pressure", at=(0.2, H + 2 * D, 0.2), name="air"),
        "level": scene.probe("elevation", at=[(0.2, 0, 0.2), (0.0, 0.5, 0.4)], name="level"),
        "density": scene.probe("density", at=[(0.2, 0.3, 0.2), (0.2, 0.01, 0.2), (0.2, 2, 0.2)], name="density"),
    }
    for size in (0.2, 0.5, 1.3, 3):
        disc = pl.Disc(radius=size * D, center=(0.2, 0, 0.2))
        probes[f"disc {size}"] = scene.probe("pressure", on=disc, name=f"disc {size}", **mean)
    tiles = [(x, z) for x in (0.1, 0.3) for z in (0.1, 0.3)]
    for k, (x, z) in enumerate(tiles):
        probes[f"tile{k}"] = scene.probe("force", on=pl.Rectangle(size=(0.2, 0.2), center=(x, 0, z)), name=f"tile{k}")
    sim = scene.build(quiet=True)
    sim.run(0.6)
    return sim, probes, heights, H


def test_a_column_in_still_water_reads_rho_g_h(still):
    sim, probes, heights, H = still
    wanted = RHO_G * (H - heights)
    assert np.abs(sim[probes["column"]].value - wanted).max() < 0.04 * RHO_G * H
    slope = np.polyfit(heights, sim[probes["column"]].value, 1)[0]
    assert slope == pytest.approx(-RHO_G, rel=0.03)
    assert sim[probes["air"]].value == 0.0 and sim[probes["air"]].values.shape == (sim.step_count,)


def test_the_level_is_read_within_half_a_spacing(still):
    sim, probes, _, H = still
    assert np.abs(sim[probes["level"]].value - [H, H - 0.5]).max() < 0.5 * D


def test_densities_are_not_biased_by_walls(still):
    sim, probes, _, _ = still
    middle, floor, air = sim[probes["density"]].value
    assert middle == pytest.approx(1000, rel=0.01) and floor == pytest.approx(1000, rel=0.03) and np.isnan(air)


@pytest.mark.parametrize(("size", "scatter"), [("0.2", 0.2), ("0.5", 0.2), ("1.3", 0.08), ("3", 0.05)])
def test_patches_of_any_size_read_the_pressure_of_the_floor(still, size, scatter):
    """Down to an eighth of a particle, where it depends on how the few particles above it happen to stand."""
    sim, probes, _, H = still
    assert sim[probes[f"disc {size}"]].value == pytest.approx(RHO_G * H, rel=scatter)


def test_tiles_add_up_to_the_force_on_the_floor(still):
    sim, probes, _, H = still
    tiles = sum(sim[probes[f"tile{k}"]].value for k in range(4))
    # at the edge of the periodic domain, what of their squares is across it is not counted
    assert tiles[1] == pytest.approx(sim["floor"].force[1], rel=0.15) and tiles[1] < 0


def test_tiles_of_a_box_add_up_to_its_force_in_any_motion():
    """All six sides, while the water splashes about: pressure, what keep-out stops, and friction."""
    scene = pl.Scene(particle_radius=D / 2)
    tank = scene.add(pl.Box(size=(0.6, 0.4, 0.3), center=(0.3, 0.2, 0.15)),
                     pl.Boundary(inside_out=True, friction=0.3, no_slip=True), name="tank")  # fmt: skip
    tank.move(lambda t: ((0.5 * math.sin(9 * t), 0, 0), (0, 0, 0.6 * math.cos(7 * t))))
    scene.add(pl.Box(size=(0.3, 0.3, 0.3), center=(0.15, 0.15, 0.15)), pl.Fluid(viscosity=1e-3), name="water")
    sides = [pl.Rectangle(size=(0.3, 0.4), center=(x, 0.2, 0.15)) for x in (0, 0.6)]
    sides += [pl.Rectangle(size=(0.2, 0.3), center=(x, y, 0.15)) for x in (0.1, 0.3, 0.5) for y in (0, 0.4)]
    sides += [pl.Rectangle(size=(0.6, 0.1), center=(0.3, y, z)) for y in (0.05, 0.15, 0.25, 0.35) for z in (0, 0.3)]
    tiles = [scene.probe("force", on=side) for side in sides]
    sim = scene.build(quiet=True)
    for _ in range(60):
        sim.step()
        total = sum(sim[tile].value for tile in tiles)
        assert np.abs(total - sim[tank].force).max() < 1e-4 * np.abs(sim[tank].force).max() + 1e-6
    assert np.abs(sim[tank].force).max() > 10


def test_the_floor_of_a_round_tank_carries_its_water_to_the_edge():
    """There the wall is a map, which makes the edge round: what is pressed into it is shared by component."""
    scene = pl.Scene(particle_radius=D / 2)
    tank = scene.add(pl.Cylinder(radius=0.2, height=0.5, center=(0, 0.25, 0)), pl.Boundary(inside_out=True))
    scene.add(pl.Cylinder(radius=0.2, height=0.3, center=(0, 0.15, 0)), pl.Fluid(), name="water")
    floor = scene.probe("force", on=pl.Disc(radius=0.2))
    middle = scene.probe("pressure", on=pl.Disc(radius=0.1), window=0.2)
    side = scene.probe("pressure", on=pl.Rectangle(size=(0.1, 0.1), center=(0.2, 0.12, 0)), window=0.2)
    sim = scene.build(quiet=True)
    sim.run(0.4)
    assert sim[floor].value[1] == pytest.approx(sim[tank].force[1], rel=0.03)
    level = float(sim["water"].volume.sum()) / (math.pi * 0.2**2)
    assert sim[middle].value == pytest.approx(RHO_G * level, rel=0.07)
    assert sim[side].value == pytest.approx(RHO_G * (level - 0.12), rel=0.12)


def test_a_patch_moves_with_its_wall():
    """A piston that is pushed through still water feels the same on its patch, which is wider than the water, wherever
    it is by then."""
    scene = pl.Scene(particle_radius=D / 2, gravity=(0, 0, 0))
    scene.add(pl.Box(size=(0.6, 0.3, 0.3), center=(0.3, 0.15, 0.15)), pl.Fluid(), name="water")
    piston = scene.add(pl.Box(size=(0.1, 1.2, 1.2), center=(-0.05, 0.15, 0.15)), pl.Boundary(), name="piston")
    piston.move(lambda t: (1.0, 0, 0))
    front = scene.probe("force", on=pl.Rectangle(size=(1.1, 1.1), center=(0, 0.15, 0.15)), window=0.05)
    back = scene.probe("force", on=pl.Rectangle(size=(1.1, 1.1), center=(-0.1, 0.15, 0.15)))
    sim = scene.build(quiet=True)
    sim.run(0.2)
    assert sim["piston"].position[0] > 0.1
    assert sim[front].value[0] < -1 and not sim[back].values.any()
    assert sim[front]._recorder.recent.rows[-1, 2] == pytest.approx(sim["piston"].force[0], rel=1e-4)


@pytest.fixture(scope="module")
def jet():
    scene = pl.Scene(particle_radius=0.01, gravity=(0, 0, 0))
    scene.emit(pl.Disc(radius=0.05, center=(0, 0.4, 0)), pl.Fluid(density=800), velocity=(0, -2, 0), name="tap")
    section = {"center": (0, 0.3, 0)}
    probes = [
        scene.probe("velocity", at=[(0, 0.3, 0), (0.3, 0.3, 0)], name="speed"),
        scene.probe("flow", through=pl.Disc(radius=0.1, normal=(0, -1, 0), **section), name="down", window=0.1),
        scene.probe("flow", through=pl.Rectangle(size=(0.2, 0.2), normal=(0, 3, 0), **section), name="up"),
        scene.probe("flow", through=pl.Disc(radius=0.1, normal=(1, 0, 0), **section), name="beside"),
        scene.probe("flow", through=pl.Disc(radius=0.1, normal=(0, -1, 0), center=(0.2, 0.3, 0)), name="missed"),
    ]
    sim = scene.build(quiet=True)
    sim.run(0.3)
    return sim, probes


def test_a_velocity_probe_in_a_jet_reads_its_speed(jet):
    sim, (speed, *_) = jet
    assert sim[speed].value[0] == pytest.approx((0, -2, 0), abs=0.02)
    assert np.isnan(sim[speed].value[1]).all() and np.isnan(sim[speed].values[0]).all()
    assert sim[speed].values.shape == (sim.step_count, 2, 3)


def test_the_flow_through_a_section_is_area_times_speed(jet):
    sim, (_, down, up, beside, missed) = jet
    Q = math.pi * 0.05**2 * 2
    assert sim[down].value == pytest.approx((Q, 800 * Q), rel=0.02)
    late = sim[up].times > 0.2
    assert sim[up].values[late].mean(axis=0) == pytest.approx((-Q, -800 * Q), rel=0.02)
    assert np.abs(sim[up].values[late, 0] / -Q - 1).max() < 0.05  # in every single step
    assert abs(sim[down].total[0] - Q * 0.25) < 1.5 * 0.02**3  # since the front has passed
    assert sim[down].total[1] == pytest.approx(800 * sim[down].total[0]) and sim[up].total == pytest.approx(
        -sim[down].total)  # fmt: skip
    assert abs(sim[beside].total[0]) < 0.02**3 and not sim[missed].total.any()


def test_what_flows_back_is_taken_off(jet):
    """A block that is moved through a section and back has passed nothing; across a periodic end once each time."""
    scene = pl.Scene(particle_radius=0.02, gravity=(0, 0, 0), periodic=(0.32, None, None), dt=1e-3)
    block = scene.add(pl.Box(size=(0.08, 0.08, 0.08), center=(0.1, 0, 0)), pl.Fluid(), velocity=(1, 0, 0), name="block")
    gate = scene.probe("flow", through=pl.Rectangle(size=(1, 1), center=(0.2, 0, 0), normal=(1, 0, 0)), of=block)
    end = scene.probe("flow", through=pl.Rectangle(size=(1, 1), center=(0.319, 0, 0), normal=(1, 0, 0)))
    sim = scene.build(quiet=True)
    volume = float(sim[block].volume.sum())
    sim.run(0.3)
    assert sim[gate].total[0] == pytest.approx(volume, rel=1e-3)
    assert sim[end].total[0] == pytest.approx(volume, rel=1e-3)
    sim[block].v = (-1, 0, 0)
    sim.run(0.3)
    assert abs(sim[gate].total[0]) < 1e-3 * volume and abs(sim[end].total[0]) < 1e-3 * volume


@pytest.mark.parametrize("periodic", [(None, None, None), (0.6, None, 0.4)])
def test_points_are_what_a_slow_sum_gives(periodic):
    """The twin: every particle, with the positions and velocities after the step and the pressures of the step."""
    scene = pl.Scene(particle_radius=D / 2, periodic=periodic)
    scene.add(pl.Plane(), pl.Boundary(), name="floor")
    scene.add(pl.Box(size=(0.3, 0.3, 0.4), center=(0.15, 0.15, 0.2)), pl.Fluid(), velocity=(1, 0, 0.5), name="water")
    scene.add(pl.Box(size=(0.15, 0.2, 0.2), center=(0.44, 0.12, 0.12)), pl.Fluid(density=700), name="oil")
    at = np.random.default_rng(3).uniform((0, 0, 0), (0.6, 0.3, 0.4), (40, 3))
    p, v, rho = (scene.probe(quantity, at=at, name=quantity) for quantity in ("pressure", "velocity", "density"))
    oil = scene.probe("density", at=at, of="oil")
    sim = scene.build(quiet=True)
    sim.run(0.15)
    L = np.array([a or 1e9 for a in periodic])
    bodies = [sim["water"], sim["oil"]]
    fields = [np.concatenate([getattr(b, name) for b in bodies]).astype(float)
              for name in ("x", "volume", "pressure", "v", "density")]  # fmt: skip
    x, V = fields[:2]
    way = x[None] - at[:, None]
    way -= L * np.round(way / L)
    W = V * SMOOTHINGS["cubic_spline"].W(np.linalg.norm(way, axis=2), 2 * D) * (np.linalg.norm(way, axis=2) < 2 * D)
    least = D**3 * SMOOTHINGS["cubic_spline"].W(np.array(D), 2 * D)
    near = W.sum(axis=1) > least
    assert 5 < near.sum() < 40
    with np.errstate(invalid="ignore"):
        mean = [W @ f / (W.sum(axis=1) if f.ndim == 1 else W.sum(axis=1)[:, None]) for f in fields[2:]]
    scale = np.abs(mean[0][near]).max()
    assert np.abs(sim[p].value - np.where(near, mean[0], 0.0)).max() < 1e-4 * scale
    assert np.allclose(sim[v].value, np.where(near[:, None], mean[1], NAN), atol=1e-4, equal_nan=True)
    assert np.allclose(sim[rho].value, np.where(near, mean[2], NAN), rtol=1e-4, equal_nan=True)
    only = W[:, len(bodies[0]) :]
    known = only.sum(axis=1) > least
    assert np.allclose(sim[oil].value[known], (only @ bodies[1].density)[known] / only.sum(axis=1)[known], rtol=1e-4)
    assert np.isnan(sim[oil].value[~known]).all() and 0 < known.sum() < near.sum()


@pytest.mark.parametrize("gravity", [(0, -9.81, 0), (0, 9.81, 0), (4.0, -3.0, 0), (0, 0, 0)])
def test_levels_of_a_block_wherever_down_is(gravity):
    """To a fifth of a spacing for a block on the lattice, in its middle, at a wall and in an edge; spray has none."""
    scene = pl.Scene(particle_radius=D / 2, gravity=gravity, dt=1e-5)
    scene.add(pl.Plane(), pl.Boundary(), name="floor")
    scene.add(pl.Box(size=(0.6, 0.4, 0.5), center=(0.3, 0.2, 0.25)), pl.Fluid(), name="water")
    drop = scene.add(None, pl.Fluid(), name="drop")
    scene.emit(pl.Disc(radius=0.05, center=(9, 9, 9)), drop, velocity=(0, -1, 0), start=5)
    at = np.array([(0.3, 0.1, 0.25), (0.01, 0.1, 0.25), (0.01, 0.1, 0.01), (0.3, 0.7, 0.25), (5, 0, 0)])
    level = scene.probe("elevation", at=at)
    sim = scene.build(quiet=True)
    sim[drop].add([(0.3, 1.0, 0.25)])
    sim.step()
    up = -np.array(gravity) / np.linalg.norm(gravity) if any(gravity) else np.array([0.0, 1.0, 0.0])
    along = np.linspace(-2, 2, 40_001)
    line = at[:, None] + along[:, None] * up
    inside = ((line > 0) & (line < (0.6, 0.4, 0.5))).all(axis=2)
    wanted = [along[row].max() if row.any() else NAN for row in inside]
    straight = np.abs(up).max() == 1
    assert np.isnan(sim[level].value).tolist() == np.isnan(wanted).tolist()
    assert np.nanmax(np.abs(sim[level].value - wanted)[:1 if not straight else None]) < (0.2 if straight else 0.5) * D


def test_a_level_is_that_of_water_and_not_of_what_flies_above_it():
    """Drops of two layers above a pool and a film of one, a sheet of three; and a drop over the dry floor."""
    scene = pl.Scene(particle_radius=D / 2, dt=1e-5)
    scene.add(pl.Plane(), pl.Boundary(), name="floor")
    for x, high in ((0, 6), (1, 1), (2, 6), (3, 0)):
        if high:
            scene.add(pl.Box(size=(0.4, high * D, 0.4), center=(x, high * D / 2, 0)), pl.Fluid())
    for x, layers in ((0, 2), (1, 2), (2, 3), (3, 2)):
        scene.add(pl.Box(size=(0.4, layers * D, 0.4), center=(x, 0.8 + layers * D / 2, 0)), pl.Fluid())
    level = scene.probe("elevation", at=[(x, 0, 0) for x in range(4)])
    sim = scene.build(quiet=True)
    sim.step()
    assert sim[level].value == pytest.approx((6 * D, D, 0.8 + 3 * D, 0.8 + 2 * D), abs=0.2 * D)


def test_sand_and_bodies_are_measured_by_name():
    scene = pl.Scene(particle_radius=0.02)
    scene.add(pl.Plane(), pl.Boundary(), name="floor")
    sand = scene.add(pl.Box(size=(0.4, 0.2, 0.4), center=(0, 0.1, 0)), pl.Granular(), name="sand")
    cube = scene.add(pl.Box(size=(0.16, 0.16, 0.16), center=(1, 0.5, 0)), pl.Elastic(young=1e5), name="cube")
    height = scene.probe("elevation", at=(0, 0, 0), of=sand)
    falling = scene.probe("velocity", at=(1, 0.5, 0), of=cube)
    nothing = scene.probe("velocity", at=(1, 0.5, 0))
    sim = scene.build(quiet=True)
    sim.run(0.05)
    assert sim[height].value == pytest.approx(0.2, abs=0.01)
    assert sim[falling].value[1] == pytest.approx(-9.81 * 0.05, rel=0.05)
    assert np.isnan(sim[nothing].value).all()


@pytest.mark.parametrize("radius", [0.1, 0.5, 1.3, 3.0])
@pytest.mark.parametrize("at", [(0.0, 0.0), (0.5, 0.5), (0.21, 0.37)])
def test_a_lattice_gives_each_disc_its_area(radius, at):
    """The shares of all particles of a square lattice of spacing 1, wherever it lies."""
    patch = WallPatch(np.array([*at, 0.0]), np.eye(3), (radius, radius), radius, math.pi * radius**2)
    found = np.zeros(1, np.float32)
    sum_of_shares(patch_table([patch], 1.0, True), found)
    assert found[0] == pytest.approx(patch.area, rel=0.02)


# --- when they record -------------------------------------------------------------------------------


def test_samples_are_taken_by_the_first_step_that_is_not_too_early():
    scene, at = dam(), (0.2, 0.1, 0.15)
    often, seldom = scene.probe("velocity", at=at), scene.probe("velocity", at=at, every=0.02)
    sim, ends = scene.build(quiet=True), []
    sim.watchers.append(lambda sim: ends.append(sim.time))
    sim.run(0.2)
    ends = np.array(ends)
    assert sim[often].times == pytest.approx(ends)
    due = 0.02 * np.arange(1, 11)
    assert sim[seldom].times == pytest.approx([ends[ends > t - 1e-7][0] for t in due])
    rows = np.searchsorted(ends, sim[seldom].times - 1e-9)
    assert np.array_equal(sim[seldom].values, sim[often].values[rows])
    assert np.array_equal(sim[often].value, sim[often].values[-1])


def test_frames_and_samples_of_one_rate_coincide():
    scene = dam()
    level = scene.probe("elevation", at=(0.1, 0, 0.15), every=1 / 30)
    sim = scene.build(quiet=True)
    times = [frame.time for frame in sim.frames(seconds=0.2, fps=30)]
    assert sim[level].times == pytest.approx(times[1:], abs=1e-9)


def test_steps_longer_than_the_time_between_samples_give_one_sample_each():
    scene = dam(dt=5e-3)
    p = scene.probe("pressure", at=(0.1, 0.1, 0.1), every=1e-3)
    sim = scene.build(quiet=True)
    sim.run(0.05)
    assert sim[p].times == pytest.approx(5e-3 * np.arange(1, 11))


def test_before_the_first_sample_there_is_none():
    scene = dam()
    a, b = scene.probe("velocity", at=[(0.1, 0.1, 0.1)] * 2, every=1.0), scene.probe("pressure", at=(0.1, 0.1, 0.1))
    sim = scene.build(quiet=True)
    assert len(sim[a]) == 0 and sim[a].values.shape == (0, 2, 3) and np.isnan(sim[a].value).all()
    assert np.isnan(sim[b].value) and sim[b].times.shape == (0,)
    with pytest.raises(PliantError, match="only a flow has a total"):
        sim[b].total  # noqa: B018


def test_a_moving_average_is_that_of_numpy():
    """Over steps of uneven length, at samples between their ends."""
    scene, at, T = dam(), [(0.1, 0.05, 0.15), (0.45, 0.05, 0.15)], 0.017
    raw = scene.probe("velocity", at=at)
    mean = scene.probe("velocity", at=at, window=T)
    seldom = scene.probe("velocity", at=at, window=T, every=0.03)
    sim = scene.build(quiet=True)
    rng = np.random.default_rng(5)
    for _ in range(60):
        sim.step(float(rng.uniform(1e-3, 4e-3)))
    t, y = sim[raw].times, sim[raw].values.reshape(60, -1)
    begin = np.concatenate([[0.0], t[:-1]])
    for k in (0, 3, 20, 59):
        weight = np.clip(np.minimum(t, t[k]) - np.maximum(begin, t[k] - T), 0, None)[:, None] * ~np.isnan(y)
        with np.errstate(invalid="ignore"):
            wanted = np.nansum(weight * y, axis=0) / weight.sum(axis=0)
        assert np.allclose(sim[mean].values[k].ravel(), wanted, rtol=1e-12, equal_nan=True)
    assert np.isnan(y[0, 3:]).all() and np.isfinite(y[-1]).all()  # there was air, and then there was water
    rows = [int(np.argmin(np.abs(t - s))) for s in sim[seldom].times]
    assert np.array_equal(sim[seldom].values, sim[mean].values[rows], equal_nan=True)


def test_windows_forget_what_they_do_not_reach():
    recorder = Recorder(Probe(name="p", quantity="pressure", at=(0, 0, 0), window=0.1, every=0.5))
    for k in range(1, 1001):
        recorder.take(0.01 * k, 0.01, np.array([float(k)]))
        recorder.backup()
    assert recorder.recent.count < 30 and recorder.samples.count == 20
    assert recorder.samples.rows[-1] == pytest.approx((10.0, 995.5))


# --- that they change nothing, and forget nothing ---------------------------------------------------


def test_nothing_depends_on_probes():
    plain, probed = dam(), dam()
    every_kind(probed)
    one, other = plain.build(quiet=True), probed.build(quiet=True)
    for sim in (one, other):
        sim.run(0.15)
    assert one.step_count == other.step_count
    for name in ("x", "v", "pressure"):
        assert getattr(one["water"], name).tobytes() == getattr(other["water"], name).tobytes()
    assert one["tank"].force.tobytes() == other["tank"].force.tobytes()


def test_a_saved_state_goes_on_recording(tmp_path, assert_same_state):
    scene = dam()
    probes = every_kind(scene, window=0.03)
    sim = scene.build(quiet=True)
    sim.run(0.1)
    sim.save(tmp_path / "state.npz")
    again = pl.load(tmp_path / "state.npz")
    assert_same_state(sim, again)
    for one in (sim, again):
        one.run(0.15)
    assert_same_state(sim, again)
    for probe in probes:
        assert len(sim[probe]) and sim[probe].values.tobytes() == again[probe.name].values.tobytes()
    with pytest.raises(PliantError, match="belongs to another scene: probes"):
        pl.load(tmp_path / "state.npz", dam())


def test_a_change_of_parameters_keeps_what_was_recorded():
    scene = dam()
    probes = every_kind(scene)
    sim = scene.build(quiet=True)
    sim.run(0.05)
    before = {probe.name: sim[probe].values for probe in probes}
    sim.change("water", viscosity=1e-3)
    sim.change(gravity=(0, -5, 0))
    sim.run(0.05)
    for probe in probes:
        now = sim[probe].values
        assert len(now) > len(before[probe.name])
        assert now[: len(before[probe.name])].tobytes() == before[probe.name].tobytes()


def test_a_step_that_breaks_down_records_nothing(monkeypatch):
    scene = dam()
    probes = every_kind(scene)
    sim = scene.build(quiet=True)
    sim.run(0.06)
    before = {probe.name: (sim[probe].values, sim[probe].times) for probe in probes}
    total = sim["gate"].total
    monkeypatch.setattr(sim, "speed_limit", lambda: 1e-6)
    with pytest.raises(pl.SimulationError):
        sim.step()
    for probe in probes:
        assert np.array_equal(sim[probe].values, before[probe.name][0], equal_nan=True)
        assert np.array_equal(sim[probe].times, before[probe.name][1])
    assert np.array_equal(sim["gate"].total, total)


# --- runs -------------------------------------------------------------------------------------------

SCENE = """
import pliant as pl

SECONDS = 0.2

def build(count: int = 3):
    scene = pl.Scene(particle_radius=0.05)
    scene.add(pl.Box(size=(1, 1, 0.6), center=(0.5, 0.5, 0.3)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Box(size=(0.4, 0.6, 0.6), center=(0.2, 0.3, 0.3)), pl.Fluid(), name="water")
    scene.probe("pressure", at=[(0.1 * k, 0.1, 0.3) for k in range(count)], name="bed", window=0.01)
    scene.probe("velocity", at=(0.3, 0.2, 0.3), every=0.02, name="velocity")
    scene.probe("flow", through=pl.Disc(radius=1, center=(0.5, 0, 0.3), normal=(1, 0, 0)), name="gate")
    scene.probe("pressure", on=pl.Disc(radius=0.1, center=(0, 0.2, 0.3)), name="on the wall", every=0.01)
    return scene
"""
WORDS = ["run", "my.py", "--format", "npz", "--fps", "20", "--checkpoint", "0"]


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Calls the command line in an empty folder with a scene file; gives its text."""
    monkeypatch.chdir(tmp_path)
    Path("my.py").write_text(SCENE)

    def call(*words, status=0):
        result = CliRunner().invoke(cli.app, [str(word) for word in words])
        assert result.exit_code == status, result.output
        return result.output

    return call


def files_of(folder):
    return {path.name: path.read_bytes() for path in sorted((Path(folder) / "probes").iterdir())}


def test_a_run_that_was_interrupted_and_resumed_has_the_same_files(call, monkeypatch):
    call(*WORDS, "--out", "whole")
    after, steps = running.Run._after_step, []

    def stop(self, first):
        steps.append(1)
        if len(steps) in (7, 19):
            signal.raise_signal(signal.SIGINT)
        return after(self, first)

    monkeypatch.setattr(running.Run, "_after_step", stop)
    call(*WORDS, "--out", "parts", status=130)
    assert files_of("parts").keys() == files_of("whole").keys() and files_of("parts") != files_of("whole")
    call("run", "--resume", "--out", "parts", status=130)
    call("run", "--resume", "--out", "parts")
    assert files_of("parts") == files_of("whole")
    assert sorted(files_of("whole")) == sorted(f"{name}.{ending}" for ending in ("csv", "npz")
                                               for name in ("bed", "velocity", "gate", "on the wall"))  # fmt: skip


def test_a_crash_keeps_what_was_recorded_and_resumes(call, monkeypatch):
    call(*WORDS, "--out", "whole")
    keep, frames = running.Run._keep, []

    def fail(self, frame):
        frames.append(frame.index)
        if frame.index == 3:
            raise PliantError("the disk is full")
        keep(self, frame)

    with monkeypatch.context() as patch:
        patch.setattr(running.Run, "_keep", fail)
        call(*WORDS, "--out", "parts", status=1)
    assert len((Path("parts") / "probes" / "gate.csv").read_text().splitlines()) > 10
    (Path("parts") / "probes" / "gate.csv").write_text("torn")
    (Path("parts") / "probes" / ".bed.csv.12345.part").write_text("torn")
    call("run", "--resume", "--out", "parts")
    assert files_of("parts") == files_of("whole")


def test_the_files_tell_names_units_and_numbers(call):
    text = call(*WORDS)
    assert "probes:" in text
    head, *lines = (Path("out/my/probes") / "bed.csv").read_text().splitlines()
    assert head == ("time [s],pressure at (0 0.1 0.3) [Pa],pressure at (0.1 0.1 0.3) [Pa],"
                    "pressure at (0.2 0.1 0.3) [Pa]")  # fmt: skip
    rows = np.loadtxt(lines, delimiter=",")
    one = probe_files.read_recording("out/my/probes/bed.npz")
    assert np.allclose(rows, one.rows, rtol=1e-10) and one.units == ["Pa"] * 3 and one.points.shape == (3, 3)
    assert (Path("out/my/probes") / "gate.csv").read_text().startswith(
        "time [s],volume flow [m^3/s],mass flow [kg/s],volume [m^3],mass [kg]\n")  # fmt: skip
    call(*WORDS, "--overwrite", "--set", "count=1")
    assert len((Path("out/my/probes") / "bed.csv").read_text().splitlines()[0].split(",")) == 2
    Path("my.py").write_text("\n".join(line for line in SCENE.splitlines() if "scene.probe" not in line))
    call(*WORDS, "--overwrite")
    assert not Path("out/my/probes").exists()


def test_inspect_lists_and_draws_them(call):
    call(*WORDS)
    text = call("inspect", "out/my")
    image = pytest.importorskip("matplotlib.image").imread("out/my/probes.png")[..., :3]
    assert image.shape[1] == 1600 and (np.ptp(image, axis=2) > 0.2).mean() > 1e-3
    one = probe_files.read_recording("out/my/probes/on the wall.npz")
    for part in ("on the wall", "gate", "velocity", "bed", f"{one.values[-1, 0]:.4g}", f"{one.values.max():.4g}", "Pa"):
        assert part in text, part
    (Path("out/my/probes") / "gate.npz").write_bytes(b"torn")
    text = call("inspect", "out/my", "--out", "other.png")
    assert Path("other_probes.png").exists() and "is damaged" in " ".join(text.split())


def test_labels_tell_what_differs():
    rows, points = np.arange(8.0).reshape(2, 4), np.array([(0, 1, 2), (0, 3, 2), (0, 4, 2.0)])
    one = probe_files.Recording("a", "pressure", ["p"] * 3, ["Pa"] * 3, points, rows)
    assert [label for label, _ in inspect_probes.lines_of(one)[0]] == ["y = 1", "y = 3", "y = 4"]
    many = probe_files.Recording("a", "pressure", ["p"] * 30, ["Pa"] * 30, np.random.rand(30, 3), np.zeros((2, 31)))
    lines, _, title = inspect_probes.lines_of(many)
    assert len(lines) == inspect_probes.MOST_LINES and "8 of 30" in title
    none = probe_files.Recording("a", "force", ["force x", "force y", "force z"], ["N"] * 3, np.zeros((0, 3)),
                                 np.zeros((0, 4)))  # fmt: skip
    assert [label for label, _ in inspect_probes.lines_of(none)[0]] == ["x", "y", "z"]
    assert inspect_probes.table([one, many, none]).row_count == 36


def test_pictures_mark_them_if_asked(tmp_path):
    """Outlines of patches move with their walls; a saved scene has them too."""
    scene = dam()
    every_kind(scene)
    scene.body("tank").move(lambda t: (1.0, 0, 0))
    sim = scene.build(quiet=True)
    sim.step()
    sim.canvas.render_scene.save(tmp_path / "scene.npz")
    for render_scene in (sim.canvas.render_scene, RenderScene.load(tmp_path / "scene.npz")):
        snapshot = pl.Frame(sim, 0).snapshot(False)
        plain = render_scene.picture(snapshot, pl.Look())
        marked = render_scene.picture(snapshot, pl.Look(probes=True))
        assert len(marked.lines) == len(plain.lines) + 2
        patches = next(lines for lines in marked.lines[-2:] if len(lines.segments) == 4 + len(DISC.edge()))
        assert patches.segments[..., 0].max() == pytest.approx(1.0 + sim.time, abs=1e-6)


# --- what is refused --------------------------------------------------------------------------------

DISC = pl.Disc(radius=0.05, center=(0, 0.1, 0.15))
GATE = pl.Disc(radius=0.1, center=(0.5, 0.1, 0.15), normal=(1, 0, 0))


@pytest.mark.parametrize(("given", "phrase"), [
    ({"quantity": "presure", "at": (0, 0, 0)}, "must be one of " + ", ".join(QUANTITIES)),
    ({"quantity": "temperature", "at": (0, 0, 0)}, "got 'temperature'"),
    ({"quantity": None, "at": (0, 0, 0)}, "quantity must be one of"),
    ({"quantity": ["pressure"], "at": (0, 0, 0)}, "quantity must be one of"),
    ({"quantity": "pressure"}, "got no place"),
    ({"quantity": "pressure", "at": (0, NAN, 0)}, "at must be one point"),
    ({"quantity": "pressure", "at": [(0, 0, 0), (0, INF, 0)]}, "at must be one point"),
    ({"quantity": "pressure", "at": (0, 0)}, "at must be one point"),
    ({"quantity": "pressure", "at": [[[0, 0, 0]]]}, "at must be one point"),
    ({"quantity": "pressure", "at": [(0, 0, 0), (0, 0)]}, "at must be one point"),
    ({"quantity": "pressure", "at": np.zeros((0, 3))}, "at must be one point"),
    ({"quantity": "pressure", "at": "here"}, "at must be one point"),
    ({"quantity": "pressure", "at": np.zeros((100, 4))}, "at must be one point"),
    ({"quantity": "pressure", "at": (0, 0, 0), "every": -1}, "every must be in (0, inf) s, got -1"),
    ({"quantity": "pressure", "at": (0, 0, 0), "every": 0}, "every must be"),
    ({"quantity": "pressure", "at": (0, 0, 0), "every": NAN}, "not a number"),
    ({"quantity": "pressure", "at": (0, 0, 0), "window": "long"}, "window must be a number"),
    ({"quantity": "pressure", "at": (0, 0, 0), "of": "wter"}, "unknown body 'wter'; did you mean 'water'?"),
    ({"quantity": "pressure", "at": (0, 0, 0), "of": "tank"}, "unknown body 'tank'; known: water."),
    ({"quantity": "pressure", "at": (0, 0, 0), "of": 3}, "of must be a body or its name, got 3"),
    ({"quantity": "pressure", "at": (0, 0, 0), "on": DISC}, "got at= and on="),
    ({"quantity": "velocity", "on": DISC}, "velocity is measured at points"),
    ({"quantity": "flow", "at": (0, 0, 0)}, "flow is measured through a section"),
    ({"quantity": "flow", "through": DISC}, "a section needs a normal"),
    ({"quantity": "flow", "through": pl.Box(size=(1, 1, 1))}, "through must be a pl.Disc or a pl.Rectangle"),
    ({"quantity": "flow", "through": GATE, "of": "nobody"}, "unknown body 'nobody'"),
    ({"quantity": "force", "on": "tank"}, "on must be a pl.Disc or a pl.Rectangle, got 'tank'"),
    ({"quantity": "force", "on": pl.Disc(radius=-1)}, "radius must be"),
    ({"quantity": "force", "on": DISC, "of": "water"}, "leave out of="),
    ({"quantity": "force", "on": pl.Disc(radius=0.1, center=(0.5, 0.3, 0.15))}, "on no wall: the nearest, 'tank', is"),
    ({"quantity": "force", "on": pl.Disc(radius=0.1, center=(0, 0.3, 0.15), normal=(0, 1, 0))}, "does not lie flat on"),
    ({"quantity": "pressure", "at": (0, 0, 0), "name": "water"}, "are called 'water'; names must differ"),
    ({"quantity": "pressure", "at": (0, 0, 0), "name": "first"}, "are called 'first'; names must differ"),
    ({"quantity": "pressure", "at": (0, 0, 0), "name": "../x"}, "a name may hold"),
    ({"quantity": "pressure", "at": (0, 0, 0), "evry": 0.1}, "probe has no parameter 'evry'; did you mean 'every'?"),
])  # fmt: skip
def test_each_mistake_is_one_sentence(given, phrase):
    scene = dam()
    scene.probe("pressure", at=(0, 0, 0), name="first")
    scene.probe(**given)
    with pytest.raises(pl.SceneError) as caught:
        scene.build()
    assert len(caught.value.problems) == 1, caught.value.problems
    sentence = caught.value.problems[0]
    assert phrase in sentence and "\n" not in sentence and len(sentence) < 300


def test_all_mistakes_are_told_at_once():
    scene = dam(cfl=7)
    scene.probe("presure", at=(0, 0, 0))
    scene.probe("velocity", at=(0, NAN, 0), every=-1, of="nobody")
    scene.probe("pressure", at=(0, 0, 0), of="nobody")
    assert len(scene.problems()) == 5
    free = pl.Scene()
    free.add(pl.Box(size=(1, 1, 1)), pl.Fluid())
    free.probe("force", on=DISC)
    assert free.problems() == ["probe1: a patch lies on a wall, and the scene has none; add a pl.Boundary"]


def test_unknown_probes_are_told():
    scene = dam()
    scene.probe("pressure", at=(0, 0, 0), name="gauge")
    with pytest.raises(PliantError, match="unknown body 'guage'; did you mean 'gauge'"):
        scene.build(quiet=True)["guage"]


# --- other backends ---------------------------------------------------------------------------------

HERE = """
import sys
import numpy as np
import pliant as pl

def run(name):
    scene = pl.Scene(particle_radius=0.05, dt=5e-3)
    scene.add(pl.Box(size=(0.6, 0.5, 0.3), center=(0.3, 0.25, 0)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Box(size=(0.3, 0.3, 0.3), center=(0.15, 0.15, 0)), pl.Fluid(), name="water")
    places = [(0.1, 0.1, 0.0), (0.28, 0.03, 0.1)]
    probes = [scene.probe(q, at=places) for q in ("pressure", "velocity", "density", "elevation")]
    probes.append(scene.probe("force", on=pl.Rectangle(size=(0.3, 0.3), center=(0.15, 0, 0))))
    probes.append(scene.probe("flow", through=pl.Disc(radius=1, center=(0.3, 0, 0), normal=(1, 0, 0))))
    sim = scene.build(backend=name, quiet=True)
    for _ in range(5):
        sim.step()
    return np.concatenate([sim[probe].values.reshape(5, -1) for probe in probes], axis=1)

"""


@pytest.mark.skipif(vulkan.available() is not None, reason=str(vulkan.available()))
def test_they_read_the_same_on_the_gpu(tmp_path):
    here: dict = {}
    exec(HERE, here)
    values = here["run"]("cpu")
    command = [sys.executable, "-c", HERE + "np.save(sys.argv[1], run('vulkan'))", str(tmp_path / "gpu.npy")]
    subprocess.run(command, check=True, timeout=300)
    assert np.abs(values).max() > 100 and (values[:, -2] != 0).any()
    np.testing.assert_allclose(np.load(tmp_path / "gpu.npy"), values, rtol=2e-3, atol=1e-3)
