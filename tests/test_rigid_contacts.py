"""Contacts of rigid bodies: closed forms of pairs, symmetry, invariance, and dense sampling as the slow twin."""

import os
import subprocess
import sys

import numpy as np
import pytest
import taichi as ti
from scipy.spatial.transform import Rotation

import pliant as pl
from pliant.core import backend
from pliant.solvers.rigid.bodies import Bodies
from pliant.solvers.rigid.detection import Detection
from pliant.solvers.rigid.forms import form_of

CUBE = pl.Box(size=(0.2, 0.2, 0.2))
PLANK = pl.Box(size=(1.0, 0.05, 0.2))
FLOOR = pl.Plane()
BALL = pl.Sphere(radius=0.1)
ROD = pl.Cylinder(radius=0.1, height=0.3)
PILL = pl.Capsule(radius=0.05, height=0.2)
RING = pl.Torus(radius=0.2, tube=0.05)


def turned(axis, degrees):
    return Rotation.from_rotvec(np.radians(degrees) * np.asarray(axis, float)).as_matrix()


def bodies_at(centers, rotations=None, free=None):
    n = len(centers)
    rotations = [np.eye(3)] * n if rotations is None else [np.eye(3) if R is None else R for R in rotations]
    return Bodies(np.array(centers, float), np.array(rotations, float), np.zeros((n, 3)), np.zeros((n, 3)),
                  np.ones(n) if free is None else np.array(free, float), np.tile(np.eye(3), (n, 1, 1)))  # fmt: skip


def formed(shapes):
    return [form_of(s[0], inside_out=True) if isinstance(s, tuple) else form_of(s) for s in shapes]


def touching(shapes, centers, rotations=None, margin=0.005, **more):
    bodies = bodies_at(centers, rotations)
    contacts = Detection(formed(shapes)).contacts(bodies, margin, **more)
    contacts.point = bodies.center[contacts.a] + contacts.arm_a
    same = bodies.center[contacts.b] + contacts.arm_b
    assert np.allclose(contacts.point, same, atol=1e-6)
    assert np.allclose(np.linalg.norm(contacts.normal, axis=1), 1.0, atol=1e-5)
    assert (contacts.gap < margin).all() and (contacts.a < contacts.b).all()
    order = np.lexsort((contacts.key, contacts.b, contacts.a))
    assert (order == np.arange(len(order))).all()
    codes = list(zip(contacts.a, contacts.b, contacts.key, strict=True))
    assert len(set(codes)) == len(codes)
    return contacts


def rows(points):
    return np.array(sorted(np.round(points, 4).tolist()))


def assert_points(contacts, expected, atol=2e-4):
    """The same points, in any order."""
    found, expected = contacts.point, np.asarray(expected, float)
    assert len(found) == len(expected), found
    for x in expected:
        assert np.linalg.norm(found - x, axis=1).min() < atol, (x, found)


def assert_all(contacts, normal, gap, atol=1e-5):
    assert len(contacts.gap)
    assert np.allclose(contacts.normal, normal, atol=1e-4), contacts.normal
    assert np.allclose(contacts.gap, gap, atol=atol), contacts.gap


# --- pairs with closed forms ------------------------------------------------------------------------


def test_balls():
    c = touching([BALL, pl.Sphere(radius=0.2)], [(0, 0, 0), (0.18, 0.24, 0)])
    assert_all(c, (0.6, 0.8, 0), 0.0, 1e-6)
    assert_points(c, [(0.06, 0.08, 0)])


@pytest.mark.parametrize("direction", [(1, 0, 0), (1, 1, 0), (1, 1, 1)])
def test_ball_on_a_face_an_edge_and_a_corner(direction):
    u = np.array(direction, float)
    n = u / np.linalg.norm(u)
    at = 0.1 * u + 0.099 * n
    c = touching([CUBE, BALL], [(0, 0, 0), at])
    assert_all(c, n, -0.001)
    assert_points(c, [0.1 * u - 0.0005 * n])


def test_aligned_boxes():
    for gap in (-1e-3, -1e-5, 0.0, 1e-5, 1e-3):
        c = touching([CUBE, CUBE], [(0, 0, 0), (0, 0.2 + gap, 0)])
        assert_all(c, (0, 1, 0), gap, 1e-6)
        assert_points(c, [(x, 0.1 + gap / 2, z) for x in (-0.1, 0.1) for z in (-0.1, 0.1)])


def test_shifted_boxes():
    c = touching([CUBE, CUBE], [(0, 0, 0), (0.05, 0.2, -0.12)])
    assert_all(c, (0, 1, 0), 0.0, 1e-6)
    assert_points(c, [(x, 0.1, z) for x in (-0.05, 0.1) for z in (-0.1, -0.02)])


def test_box_turned_about_the_normal():
    """Two squares at 45 degrees overlap in a regular octagon."""
    c = touching([CUBE, CUBE], [(0, 0, 0), (0, 0.2, 0)], [None, turned((0, 1, 0), 45)])
    assert_all(c, (0, 1, 0), 0.0, 1e-6)
    s = 0.1 * np.tan(np.radians(22.5))
    assert_points(c, [(x, 0.1, z) for a, b in ((0.1, s), (s, 0.1)) for x in (-a, a) for z in (-b, b)])


def test_plank_across_plank():
    c = touching([PLANK, PLANK], [(0, 0, 0), (0.1, 0.05, 0)], [None, turned((0, 1, 0), 90)])
    assert_all(c, (0, 1, 0), 0.0, 1e-6)
    assert_points(c, [(x, 0.025, z) for x in (0.0, 0.2) for z in (-0.1, 0.1)])


@pytest.mark.parametrize("gap", [-0.002, 0.0, 0.002])
def test_crossed_edges(gap):
    """Each on its edge: a touches with its upper edge, along x, b with its lower one, along z."""
    half = 0.1 * np.sqrt(2)
    R = [turned((1, 0, 0), 45), turned((0, 0, 1), 45)]
    c = touching([CUBE, CUBE], [(0, 0, 0), (0.01, 2 * half + gap, 0.02)], R)
    assert_all(c, (0, 1, 0), gap)
    assert_points(c, [(0.01, half + gap / 2, 0)])


def test_box_on_its_edge():
    c = touching([FLOOR, CUBE], [(0, 0, 0), (0, 0.1 * np.sqrt(2) - 1e-3, 0)], [None, turned((0, 0, 1), 45)])
    assert_all(c, (0, 1, 0), -1e-3)
    assert_points(c, [(0, -5e-4, -0.1), (0, -5e-4, 0.1)])


def test_box_on_its_edge_on_a_box():
    c = touching([PLANK, CUBE], [(0, 0, 0), (0, 0.025 + 0.1 * np.sqrt(2), 0)], [None, turned((0, 0, 1), 45)])
    assert_all(c, (0, 1, 0), 0.0)
    assert_points(c, [(0, 0.025, -0.1), (0, 0.025, 0.1)])


def test_cylinder_lying_and_standing_on_a_plane():
    c = touching([FLOOR, ROD], [(0, 0, 0), (0, 0.1, 0)], [None, turned((1, 0, 0), 90)])
    assert_all(c, (0, 1, 0), 0.0)
    assert_points(c, [(0, 0, -0.15), (0, 0, 0.15)])
    c = touching([FLOOR, ROD], [(0, 0, 0), (0, 0.15, 0)])
    assert_all(c, (0, 1, 0), 0.0)
    assert len(c.gap) == 8 and np.allclose(np.hypot(c.point[:, 0], c.point[:, 2]), 0.1, atol=1e-5)


def test_tilted_cylinder_touches_at_its_lowest_point():
    for degrees in (1.0, 5.0, 30.0):
        R, a = turned((0, 0, 1), degrees), np.radians(degrees)
        low = 0.15 * np.cos(a) + 0.1 * np.sin(a)
        c = touching([FLOOR, ROD], [(0, 0, 0), (0, low, 0)], [None, R], margin=1e-4)
        k = np.argmin(c.gap)
        assert np.isclose(c.gap[k], 0.0, atol=1e-6)
        assert np.allclose(c.point[k], (0.15 * np.sin(a) - 0.1 * np.cos(a), 0, 0), atol=2e-4)


@pytest.mark.parametrize("gap", [-1e-4, 0.0, 1e-4])
def test_coaxial_cylinders(gap):
    """As in a roll of coins, where rims lie on rims."""
    c = touching([ROD, ROD], [(0, 0, 0), (0, 0.3 + gap, 0)])
    assert_all(c, (0, 1, 0), gap)
    assert len(c.gap) == 8 and np.allclose(np.hypot(c.point[:, 0], c.point[:, 2]), 0.1, atol=1e-5)
    angle = np.sort(np.arctan2(c.point[:, 2], c.point[:, 0]))
    assert np.diff(angle).max() < 1.6  # all around


def test_cylinders_lying_crossed_and_side_by_side():
    lying, across = turned((1, 0, 0), 90), turned((0, 0, 1), 90)
    c = touching([ROD, ROD], [(0, 0, 0), (0.02, 0.199, 0.03)], [lying, across])
    assert_all(c, (0, 1, 0), -0.001)
    assert_points(c, [(0, 0.0995, 0.03)], atol=1e-3)
    c = touching([ROD, ROD], [(0, 0, 0), (0.12, 0.16, 0.1)], [lying, lying])
    assert_all(c, (0.6, 0.8, 0), 0.0)
    assert_points(c, [(0.06, 0.08, -0.05), (0.06, 0.08, 0.15)])


def test_box_on_a_lying_cylinder():
    c = touching([ROD, CUBE], [(0, 0, 0), (0.03, 0.2, 0)], [turned((1, 0, 0), 90), None])
    assert_all(c, (0, 1, 0), 0.0)
    assert_points(c, [(0, 0.1, -0.1), (0, 0.1, 0.1)])


def test_cylinder_over_the_rim_of_a_box():
    """A standing cylinder half over a box: its rim on the face, and the box's edge under its end."""
    c = touching([CUBE, pl.Cylinder(radius=0.08, height=0.3)], [(0, 0, 0), (0.1, 0.249, 0)])
    assert_all(c, (0, 1, 0), -0.001)
    assert c.point[:, 0].max() < 0.1 + 1e-4
    assert c.point[:, 0].min() < 0.03 and c.point[:, 2].max() > 0.075 and c.point[:, 2].min() < -0.075
    for z in (-0.08, 0.08):
        assert np.linalg.norm(c.point - (0.1, 0.0995, z), axis=1).min() < 2e-3


def test_capsules():
    c = touching([FLOOR, PILL], [(0, 0, 0), (0, 0.05, 0)], [None, turned((1, 0, 0), 90)])
    assert_all(c, (0, 1, 0), 0.0)
    assert_points(c, [(0, 0, -0.1), (0, 0, 0.1)])
    c = touching([PILL, PILL], [(0, 0, 0), (0.098, 0.03, 0)], [None, turned((1, 0, 0), 90)])
    assert_all(c, (1, 0, 0), -0.002)
    assert_points(c, [(0.049, 0.03, 0)], atol=1e-3)
    c = touching([PILL, CUBE], [(0, 0.15, 0), (0.1, 0, 0)], [turned((0, 0, 1), 90), None])
    assert_all(c, (0, -1, 0), 0.0)
    assert_points(c, [(0, 0.1, 0), (0.1, 0.1, 0)])


def test_torus_on_a_plane_and_linked():
    c = touching([FLOOR, RING], [(0, 0, 0), (0, 0.05, 0)])
    assert_all(c, (0, 1, 0), 0.0)
    assert len(c.gap) == 8 and np.allclose(np.hypot(c.point[:, 0], c.point[:, 2]), 0.2, atol=1e-5)
    # links of a chain: the tube of one through the other's hole, pulled apart along x until they touch
    c = touching([RING, RING], [(0, 0, 0), (0.301, 0, 0)], [None, turned((1, 0, 0), 90)])
    k = np.argmin(c.gap)
    assert np.isclose(c.gap[k], -0.001, atol=1e-5)
    assert np.allclose(np.abs(c.normal[k]), (1, 0, 0), atol=1e-3)
    assert c.normal[k][0] < 0  # the near side of b lies within a


def test_torus_over_a_peg():
    c = touching([pl.Cylinder(radius=0.14, height=0.5), RING], [(0, 0, 0), (0.01, 0, 0)])
    assert np.isclose(c.gap.min(), 0.0, atol=1e-5)
    k = np.argmin(c.gap)
    assert np.allclose(c.normal[k], (-1, 0, 0), atol=1e-3)


def test_box_and_ball_in_the_corner_of_a_container():
    room = (pl.Box(size=(1, 1, 1)),)
    c = touching([room, CUBE], [(0, 0, 0), (0.4, -0.4, 0.4)])
    assert len(c.gap) == 12 and np.allclose(c.gap, 0.0, atol=1e-6)
    assert rows(np.unique(np.round(c.normal), axis=0)).tolist() == [[-1, 0, 0], [0, 0, -1], [0, 1, 0]]
    c = touching([room, BALL], [(0, 0, 0), (0.4, -0.4, 0.4)])
    assert len(c.gap) == 3
    tank = (pl.Cylinder(radius=0.5, height=1.0),)
    c = touching([tank, BALL], [(0, 0, 0), (0.401, -0.4, 0)])
    assert rows(c.normal).tolist() == [[-1, 0, 0], [0, 1, 0]]
    assert np.allclose(np.sort(c.gap), [-0.001, 0], atol=1e-6)


def test_cards():
    """A card of 1 mm that lies over the rim of another, sunk by a tenth of it."""
    card = pl.Box(size=(0.06, 0.001, 0.09))
    c = touching([card, card], [(0, 0, 0), (0.04, 0.0009, 0.05)], margin=2e-3)
    assert_all(c, (0, 1, 0), -1e-4, 1e-6)
    assert_points(c, [(x, 0.00045, z) for x in (0.01, 0.03) for z in (0.005, 0.045)])
    # it leans with its lower edge on the other's face
    R = turned((0, 0, 1), 60)
    low = 0.03 * np.sin(np.radians(60)) + 0.0005 * np.cos(np.radians(60))
    c = touching([card, card], [(0, 0, 0), (0.0, 0.0005 + low, 0)], [None, R], margin=5e-4)
    deepest = c.gap < 1e-5
    assert deepest.sum() == 2 and np.allclose(c.normal[deepest], (0, 1, 0), atol=1e-4)


def test_needle_on_a_plate():
    needle, plate = pl.Cylinder(radius=1e-3, height=0.2, axis="x"), pl.Box(size=(0.1, 0.002, 1.0))
    c = touching([plate, needle], [(0, 0, 0), (0.02, 0.002, 0.3)], margin=1e-4)
    assert_all(c, (0, 1, 0), 0.0)
    assert c.point[:, 0].min() < -0.0499 and c.point[:, 0].max() > 0.0499


def test_moved_shapes():
    """Translated, rotated and scaled shapes are what they are without."""
    moved = pl.Cylinder(radius=0.05, height=0.15, axis="x").rotate("z", 90).scale(2.0).translate((1, 2, 3))
    bodies = bodies_at([(0, 0, 0), (5, 0.15, 0)])
    c = Detection([form_of(FLOOR), form_of(moved, pivot=(1, 2, 3))]).contacts(bodies, 0.005)
    assert len(c.gap) == 8 and np.allclose(c.gap, 0.0, atol=1e-6)
    assert np.allclose(np.hypot(c.arm_b[:, 0], c.arm_b[:, 2]), 0.1, atol=1e-5)
    bodies.center[1] = (0.3, 0.2, 0)
    c = Detection([form_of(FLOOR), form_of(CUBE, pivot=(0.0, 0.1, 0.0))]).contacts(bodies, 0.005)
    assert np.allclose(c.arm_b[:, 1], -0.2) and np.allclose(c.gap, 0.0, atol=1e-6)


# --- meshes and combinations --------------------------------------------------------------------------


def meshed(shape):
    return pl.Mesh(shape.triangles())


@pytest.mark.parametrize("second", ["box", "mesh"])
def test_meshes_of_boxes(second):
    """As boxes, within a part of the grid's spacing of 3 mm."""
    first, other = meshed(CUBE), CUBE if second == "box" else meshed(CUBE)
    for gap in (-1e-3, 0.0, 1e-3):
        c = touching([first, other], [(0, 0, 0), (0, 0.2 + gap, 0)])
        assert np.allclose(c.gap, gap, atol=2e-4) and np.allclose(c.normal, (0, 1, 0), atol=0.07)
        for x in [(x, 0.1 + gap / 2, z) for x in (-0.1, 0.1) for z in (-0.1, 0.1)]:
            assert np.linalg.norm(c.point - x, axis=1).min() < 4e-3
    c = touching([first, other], [(0, 0, 0), (0.05, 0.199, -0.12)])
    deep = c.gap < 0.0
    assert np.allclose(c.gap[deep], -0.001, atol=2e-4) and np.allclose(c.normal[deep], (0, 1, 0), atol=0.07)
    low, high = c.point.min(axis=0), c.point.max(axis=0)
    assert np.allclose(low, (-0.05, 0.0995, -0.1), atol=4e-3) and np.allclose(high, (0.1, 0.0995, -0.02), atol=4e-3)
    half, R = 0.1 * np.sqrt(2), [turned((1, 0, 0), 45), turned((0, 0, 1), 45)]
    c = touching([first, other], [(0, 0, 0), (0.01, 2 * half - 5e-4, 0.02)], R)
    k = np.argmin(c.gap)
    assert np.allclose(c.normal[k], (0, 1, 0), atol=0.05) and np.isclose(c.gap[k], -5e-4, atol=6e-4)


def test_smooth_meshes():
    ball = meshed(BALL)
    c = touching([FLOOR, ball], [(0, 0, 0), (0.3, 0.0999, 0)])
    assert np.isclose(c.gap.min(), -1e-4, atol=1e-5)
    rod = meshed(ROD)
    c = touching([FLOOR, rod], [(0, 0, 0), (0, 0.0999, 0)], [None, turned((1, 0, 0), 90)])
    deep = c.point[c.gap < -9e-5]
    assert deep[:, 2].min() < -0.149 and deep[:, 2].max() > 0.149
    c = touching([ball, BALL], [(0, 0, 0), (0.12, 0.16, 0)])
    assert abs(c.gap.min()) < 5e-4 and np.allclose(c.normal[np.argmin(c.gap)], (0.6, 0.8, 0), atol=0.05)


def test_thin_meshes():
    card = meshed(pl.Box(size=(0.06, 0.001, 0.09)))
    c = touching([card, card], [(0, 0, 0), (0.04, 0.0009, 0.05)], margin=2e-3)
    assert np.allclose(c.gap, -1e-4, atol=1.5e-4) and (c.normal[:, 1] > 0.85).all()
    low, high = c.point.min(axis=0), c.point.max(axis=0)
    assert np.allclose(low[[0, 2]], (0.01, 0.005), atol=2e-3) and np.allclose(high[[0, 2]], (0.03, 0.045), atol=2e-3)


def test_bowl():
    """Balls and rings in a bowl, and a bowl on its rim."""
    bowl = pl.Sphere(radius=0.3) - pl.Sphere(radius=0.25) - pl.Box(size=(1, 0.6, 1), center=(0, 0.3, 0))
    c = touching([bowl, BALL], [(0, 0, 0), (0.09, -0.12, 0)])
    k = np.argmin(c.gap)
    assert abs(c.gap[k]) < 1e-4 and np.allclose(c.normal[k], (-0.6, 0.8, 0), atol=0.02)
    ring = pl.Torus(radius=0.1, tube=0.03)
    c = touching([bowl, ring], [(0, 0, 0), (0, -np.sqrt(0.22**2 - 0.01), 0)])
    assert abs(c.gap.min()) < 1e-4 and len(c.gap) == 8
    angles = np.sort(np.arctan2(c.point[:, 2], c.point[:, 0]))
    assert np.diff(angles).max() < 1.6
    c = touching([FLOOR, bowl], [(0, 0, 0), (0, 0, 0)], [None, turned((1, 0, 0), 180)])
    assert np.allclose(c.gap, 0.0, atol=2e-4) and np.ptp(c.point[:, 0]) > 0.5 and np.ptp(c.point[:, 2]) > 0.5


def test_ball_in_a_groove():
    """It touches both walls of what is not convex, though each place is nearest to one surface only."""
    groove = pl.Box(size=(0.6, 0.4, 0.6)) - pl.Box(size=(0.25, 0.25, 1.0), center=(0, 0.2, 0)).rotate("z", 45)
    bottom = 0.2 - 0.125 * np.sqrt(2)
    c = touching([groove, BALL], [(0, 0, 0), (0, bottom + 0.1 * np.sqrt(2), 0)])
    deep = c.normal[c.gap < 2e-4]
    assert {tuple(n) for n in np.round(deep.astype(float), 1).tolist()} == {(-0.7, 0.7, 0.0), (0.7, 0.7, 0.0)}


# --- what must hold for any pair ----------------------------------------------------------------------

SOLIDS = {"box": CUBE, "ball": BALL, "rod": ROD, "pill": PILL, "ring": RING}


def near_poses(count, seed, first, second, reach=0.25):
    """Pairs of poses that nearly touch, each far from the others: bodies 2 k and 2 k + 1."""
    rng = np.random.default_rng(seed)
    R = Rotation.random(2 * count, random_state=seed).as_matrix()
    u = rng.normal(size=(count, 3))
    centers = np.zeros((2 * count, 3))
    centers[::2, 0] = 2.0 * np.arange(count)
    centers[1::2] = centers[::2] + rng.uniform(0.5, 1.2, (count, 1)) * reach * u / np.linalg.norm(u, axis=1)[:, None]
    return [first, second] * count, centers, R


def by_pair(contacts, value):
    return {(a, b, k): v for a, b, k, v in zip(contacts.a, contacts.b, contacts.key, value, strict=True)}


@pytest.mark.parametrize("first", SOLIDS)
@pytest.mark.parametrize("second", SOLIDS)
def test_swapped_bodies(first, second):
    """b and a have the contacts of a and b, with normals the other way: the same depth and the same place of it."""
    shapes, centers, R = near_poses(40, 3, SOLIDS[first], SOLIDS[second])
    swap = np.arange(80) ^ 1
    c = touching(shapes, centers, R)
    s = touching([shapes[k] for k in swap], centers[swap], R[swap])
    assert np.array_equal(np.unique(c.a), np.unique(s.a)) and len(np.unique(c.a)) > 5
    for pair in np.unique(c.a):
        here, there = c.a == pair, s.a == pair
        assert abs(c.gap[here].min() - s.gap[there].min()) < 1e-4
        i, k = np.flatnonzero(here)[np.argmin(c.gap[here])], np.flatnonzero(there)
        along = (s.normal[k] @ c.normal[i]).min()
        assert along < -0.99, (pair, c.normal[i], s.normal[k])


@pytest.mark.parametrize("second", SOLIDS)
def test_a_common_motion_moves_contacts(second):
    """Turned and brought 1e5 m away, the same contacts come out."""
    shapes, centers, R = near_poses(40, 5, CUBE, SOLIDS[second])
    c = touching(shapes, centers, R)
    Q = Rotation.random(random_state=1).as_matrix()
    m = touching(shapes, centers @ Q.T + (1e5, -1e5, 3e4), Q @ R)
    here, there = by_pair(c, c.gap), by_pair(m, m.gap)
    common = here.keys() & there.keys()
    assert len(common) > 0.95 * max(len(here), len(there))
    assert max(abs(here[k] - there[k]) for k in common) < 2e-5
    normals, moved = by_pair(c, c.normal @ Q.T), by_pair(m, m.normal)
    assert np.quantile([np.abs(normals[k] - moved[k]).max() for k in common], 0.95) < 1e-3


def test_a_slope_far_away():
    """A box at rest on an infinite slope, 1e5 m from the point by which that is given."""
    R = turned((1, 0, 0), 30)
    slope = pl.Plane(normal=R @ (0, 1, 0))
    at = R @ (7e4, 0.1, -9e4)
    bodies = bodies_at([(0, 0, 0), at], [None, R])
    c = Detection(formed([slope, CUBE])).contacts(bodies, 0.005)
    assert len(c.gap) == 4 and np.allclose(c.gap, 0.0, atol=1e-6)
    assert np.allclose(np.linalg.norm(c.arm_b, axis=1), 0.1 * np.sqrt(3), atol=1e-6)


def heap(count=64, seed=2):
    """Bodies of all kinds, near to each other."""
    rng = np.random.default_rng(seed)
    side = round(count ** (1 / 3))
    grid = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), -1).reshape(-1, 3)
    shapes = [list(SOLIDS.values())[k % 5] for k in range(len(grid))]
    return shapes, 0.25 * grid + rng.uniform(-0.02, 0.02, grid.shape), Rotation.random(len(grid), seed).as_matrix()


def test_keys_last():
    shapes, centers, R = heap()
    rng = np.random.default_rng(4)
    before = touching(shapes, centers, R, margin=0.02)
    small = Rotation.from_rotvec(rng.uniform(-1e-5, 1e-5, centers.shape)).as_matrix()
    after = touching(shapes, centers + rng.uniform(-1e-6, 1e-6, centers.shape), small @ R, margin=0.02)
    one, two = by_pair(before, before.gap), by_pair(after, after.gap)
    assert len(one) > 100 and len(one.keys() & two.keys()) > 0.97 * len(one.keys() | two.keys())


def test_nothing_flickers_in_a_stack():
    """A stack of equal boxes that trembles keeps its keys and normals, whichever faces are the nearer ones."""
    rng = np.random.default_rng(0)
    centers = np.array([(0, 0.1 + 0.2 * k, 0) for k in range(6)])
    c = touching([*[CUBE] * 6, FLOOR], [*centers, (0, 0, 0)])
    assert len(c.gap) == 24
    for _ in range(20):
        small = Rotation.from_rotvec(rng.uniform(-1e-5, 1e-5, (6, 3))).as_matrix()
        d = touching([*[CUBE] * 6, FLOOR], [*centers + rng.uniform(-1e-5, 1e-5, (6, 3)), (0, 0, 0)], [*small, None])
        assert np.array_equal(c.key, d.key) and np.allclose(np.abs(d.normal), (0, 1, 0), atol=1e-4)


def test_no_contact_is_missed():
    """500 poses of two boxes against points all over both surfaces."""
    other, margin = pl.Box(size=(0.3, 0.1, 0.2)), 0.01
    shapes, centers, R = near_poses(500, 7, CUBE, other)
    c = touching(shapes, centers, R, margin=margin)
    s = np.linspace(-0.5, 0.5, 41)
    square = np.stack(np.meshgrid(s, s, indexing="ij"), -1).reshape(-1, 2)
    cube = np.concatenate([np.insert(square, k, side, axis=1) for k in range(3) for side in (-0.5, 0.5)])
    near = inside = 0
    for k in range(500):
        place = [(centers[2 * k + e], R[2 * k + e], shapes[e]) for e in range(2)]
        least = np.inf
        for (x, Q, own), (y, P, opposite) in (place, place[::-1]):
            points = (cube * own.size) @ Q.T + x
            least = min(least, opposite.signed_distance((points - y) @ P).min())
        found = c.gap[c.a == 2 * k]
        if least < margin - 1e-3:
            assert len(found), (k, least)
            near += 1
            if least < 0.0:
                inside += 1
                assert found.min() < 0.0, (k, least)
                assert found.min() > 3.0 * least - 1e-3
            else:
                assert 0.4 * least - 1e-4 < found.min() < least + 1e-4, (k, least, found)
        elif least > margin:
            assert not len(found) or found.min() > 0.0
    assert near > 150 and inside > 100


THIN = {"plate": pl.Box(size=(0.4, 0.01, 0.3)), "needle": pl.Cylinder(radius=0.004, height=0.4),
        "coin": pl.Cylinder(radius=0.1, height=0.01)}  # fmt: skip


@pytest.mark.parametrize("first", SOLIDS | THIN)
def test_no_contact_of_any_kind_is_missed(first):
    """The same for all other pairs, thin ones too: apart, the gap is the distance of points all over both surfaces;
    however deep one is in the other, there is something that pushes."""
    margin, count, every = 0.01, 40, SOLIDS | THIN
    points = {name: pl.sample_surface(shape, count=3000)[0] for name, shape in every.items()}
    for second, other in list(every.items())[list(every).index(first) :]:
        shapes, centers, R = near_poses(count, 11, every[first], other, reach=0.22)
        c = touching(shapes, centers, R, margin=margin)
        for k in range(count):
            (x, y), (P, Q) = centers[2 * k : 2 * k + 2], R[2 * k : 2 * k + 2]
            least = min(other.signed_distance((points[first] @ P.T + x - y) @ Q).min(),
                        every[first].signed_distance((points[second] @ Q.T + y - x) @ P).min())  # fmt: skip
            found = c.gap[c.a == 2 * k]
            if least < margin - 2e-3:
                assert len(found), (second, k, least)
                if least > 1e-3:
                    assert least - 2e-3 < found.min() < least + 2e-4, (second, k, least, found)
            elif least > 1.2 * margin:
                assert not len(found) or found.min() > 0.0


def test_distances_and_their_gradients():
    """Those on the device are those of the shapes, and gradients their differences."""
    import pliant.solvers.rigid.distances as d

    @ti.kernel
    def ask(n: ti.i32, parts: backend.RealTable, grid: backend.Reals, x: backend.RealTable, out: backend.RealTable):
        for i in range(n):
            found = d.distance(backend.vec3(x[i, 0], x[i, 1], x[i, 2]), 0, parts, grid)
            for k in ti.static(range(4)):
                out[i, k] = found[k]

    points = np.random.default_rng(3).uniform(-0.4, 0.4, (2000, 3)).astype(np.float32)
    shapes = {**SOLIDS, "plane": FLOOR, "mesh": pl.Box(size=(0.3, 0.4, 0.2)) - CUBE}
    for name, shape in shapes.items():
        for inside_out in (False, True):
            placed = form_of(shape)
            part = placed.form.parts.copy()
            part[0, d.SIGN] *= -1 if inside_out else 1
            grid = placed.form.grid if placed.form.grid is not None else np.zeros(1)
            out = np.zeros((2000, 4), np.float32)
            ask(2000, backend.upload(part, ti.f32), backend.upload(grid, ti.f32), points, out)
            world = points @ placed.rotation.T + placed.offset
            sign, h = (-1 if inside_out else 1), 1e-5
            expected = sign * shape.exact_distance(world)
            slope = [shape.exact_distance(world + h * e) - shape.exact_distance(world - h * e) for e in np.eye(3)]
            slope = sign * np.stack(slope, axis=1) / (2 * h) @ placed.rotation
            within = np.ones(len(points), bool) if name != "mesh" else np.abs(expected) < 0.02
            error = np.abs(out[:, 3] - expected)[within]
            turn = np.linalg.norm(out[:, :3] - slope, axis=1)[within]
            bounds = (1e-6, 2e-3) if name != "mesh" else (3e-3, 0.2)
            assert np.quantile(error, 0.99) < bounds[0], (name, error.max())
            assert np.quantile(turn, 0.9) < bounds[1], (name, np.quantile(turn, 0.9))


def test_threads(tmp_path):
    """The same from one thread as from all."""
    shapes, centers, R = heap(1000)
    c = touching(shapes, centers, R, margin=0.02)
    program = (
        "import sys, runpy, numpy as np\nfrom pliant.core import backend\nbackend.start('cpu')\n"
        f"t = runpy.run_path({__file__!r})\nc = t['touching'](*t['heap'](1000), margin=0.02)\n"
        "np.savez(sys.argv[1], key=c.key, a=c.a, b=c.b, gap=c.gap, normal=c.normal, arm=c.arm_b)"
    )
    threads = 1 if ti.lang.impl.current_cfg().cpu_max_num_threads > 1 else 2
    environment = {**os.environ, "TI_CPU_MAX_NUM_THREADS": str(threads)}
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "c.npz")], env=environment, check=True, timeout=300)
    with np.load(tmp_path / "c.npz") as other:
        for name, value in dict(key=c.key, a=c.a, b=c.b, gap=c.gap, normal=c.normal, arm=c.arm_b).items():
            assert np.array_equal(other[name], value), name


def test_pairs_that_are_left_out():
    c = touching([CUBE, CUBE, CUBE], [(0, 0.2 * k, 0) for k in range(3)], ignored_pairs=[(2, 1)])
    assert set(zip(c.a, c.b, strict=True)) == {(0, 1)}
    bodies = bodies_at([(0, 0, 0), (0, 0.2, 0), (0, 0.4, 0)], free=[0, 0, 1])
    c = Detection(formed([CUBE] * 3)).contacts(bodies, np.array([0.0, 0.001, 0.001]))
    assert set(zip(c.a, c.b, strict=True)) == {(1, 2)}
    empty = Detection(formed([CUBE])).contacts(bodies_at([(0, 0, 0)]), 0.01)
    assert empty.gap.shape == (0,) and empty.normal.shape == (0, 3)


@pytest.mark.parametrize("overlap", [0.0, 1e-4, 2e-3])
@pytest.mark.parametrize("angle", [0.0, 0.06])
def test_parallel_cylinders_whose_ends_are_flush(overlap, angle):
    """However deep one lies in the other, it is held at both ends, across the axes."""
    rod = pl.Cylinder(radius=0.05, height=1.0, axis="z")
    c = touching([rod, rod], [(0, 0, 0), (0.1 - overlap, 0, 0)], [None, turned((1, 0, 0), angle)])
    deep = c.gap < 1e-5 - overlap
    assert deep.sum() == 2 and np.allclose(c.gap[deep], -overlap, atol=2e-5)
    assert np.allclose(np.abs(c.normal[deep][:, 0]), 1.0, atol=1e-3)
    assert sorted(np.sign(c.point[deep][:, 2]).tolist()) == [-1.0, 1.0] and np.abs(c.point[deep][:, 2]).min() > 0.49
