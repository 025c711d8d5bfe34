"""Nozzles as flat patches: areas, planes, and points that share them evenly."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

import pliant as pl
from pliant.geometry import Cylinder

D = 0.01


@pytest.mark.parametrize("patch", [
    pl.Disc(radius=0.05), pl.Disc(radius=0.02), pl.Rectangle(size=(0.1, 0.04)),
    pl.Face(pl.Box(size=(0.1, 0.2, 0.3)), at=(0, 0.1, 0)), pl.Face(Cylinder(radius=0.06, height=0.1), at=(0, 0.05, 0)),
])  # fmt: skip
def test_points_share_the_area_evenly(patch):
    points = patch.points(D)
    assert len(points) * D**2 == pytest.approx(patch.area(), rel=0.08)
    assert patch.inside(points).all()
    assert cKDTree(points).query(points, k=2)[0][:, 1].min() > 0.6 * D
    np.testing.assert_allclose(points.mean(axis=0), patch.extent().mean(axis=0), atol=0.1 * D)
    np.testing.assert_array_equal(points, patch.points(D))
    assert np.isfinite(patch.outline((0, 1, 0))).all()


def test_a_face_is_the_flat_part_around_a_point():
    end = pl.Face(Cylinder(radius=0.1, height=0.3), at=(0.02, 0.16, 0))
    assert end.area() == pytest.approx(np.pi * 0.01, rel=5e-3)
    np.testing.assert_allclose(end.middle(), (0, 0.15, 0), atol=1e-6)
    np.testing.assert_allclose(end.normal, (0, 1, 0), atol=1e-6)
    np.testing.assert_allclose(end.axes((0, -1, 0))[2], (0, -1, 0), atol=1e-6)  # it may be taken the other way round
    side = pl.Face(pl.Box(size=(1, 2, 3)), at=(0.6, 0, 0))
    assert side.area() == pytest.approx(6.0) and side.edge().shape == (4, 2, 2)


@pytest.mark.parametrize("patch", [pl.Disc(radius=1, normal=(1, 2, -0.5)), pl.Rectangle(size=(1, 2), normal=(0, 1, 0))])
def test_axes_are_orthonormal(patch):
    axes = patch.axes((0, 0, 1))
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(axes[2], np.divide(patch.normal, np.linalg.norm(patch.normal)))


def test_without_a_normal_it_looks_along_the_flow():
    np.testing.assert_allclose(pl.Disc(radius=1).axes((0, -3, 0))[2], (0, -1, 0))


def test_what_is_smaller_than_half_a_particle_has_no_points():
    assert not len(pl.Disc(radius=0.3 * D).points(D)) and len(pl.Disc(radius=0.45 * D).points(D)) == 1
    assert not len(pl.Rectangle(size=(D, 0.4 * D)).points(D))


@pytest.mark.parametrize("patch, words", [
    (pl.Disc(), "radius is missing"), (pl.Disc(radius=0), "radius must be in (0, inf)"),
    (pl.Disc(radius=1, normal=(0, 0, 0)), "normal must not be zero"), (pl.Disc(radius=float("nan")), "not a number"),
    (pl.Rectangle(size=(1, -1)), "two positive numbers"), (pl.Rectangle(size=3), "two positive numbers"),
    (pl.Face(pl.Plane(), at=(0, 0, 0)), "Plane is infinite"), (pl.Face("pipe.obj", at=(0, 0, 0)), "must be a shape"),
])  # fmt: skip
def test_bad_patches(patch, words):
    assert any(words in sentence for sentence in patch.problems()), patch.problems()


def test_cups_have_no_lids():
    """Where faces of combined shapes coincide, distances are those from what is really there."""
    inside = Cylinder(radius=0.05, height=0.11, center=(0, 0.07, 0))
    cup = Cylinder(radius=0.06, height=0.125, center=(0, 0.0625, 0)) - inside  # both end at y = 0.125
    at = [(0, 0.125, 0), (0, 0.1251, 0), (0.02, 0.124, 0)]
    assert np.abs(cup.signed_distance(at)).max() < 2e-3
    np.testing.assert_allclose(cup.exact_distance(at), [0.05, 0.05, 0.03], rtol=0.02)
    real = [(0.05, 0.06, 0), (0.055, 0.06, 0), (0, 0.0075, 0), (0.1, 0.06, 0), (0, 0.03, 0)]
    np.testing.assert_allclose(cup.exact_distance(real), cup.signed_distance(real), atol=1e-9)
    halves = pl.Box(size=(1, 1, 1), center=(0.5, 0, 0)) | pl.Box(size=(1, 1, 1), center=(-0.5, 0, 0))
    np.testing.assert_allclose(halves.exact_distance([(0, 0, 0), (0.01, 0, 0)]), -0.5, rtol=1e-3)
    moved = cup.rotate("x", 90, about=(0, 0, 0)).scale(2.0, about=(0, 0, 0))
    assert moved.exact_distance([(0, 0, 0.25)])[0] == pytest.approx(0.1, rel=0.02)


def test_thin_parts_are_not_taken_for_lids():
    sheets = pl.Box(size=(1, 1, 1)) - pl.Box(size=(0.999, 1.2, 1.2))  # two sheets, thinner than any grid shows
    at = [(0.49975, 0, 0), (0.49, 0, 0), (0.6, 0, 0)]
    np.testing.assert_allclose(sheets.exact_distance(at), sheets.signed_distance(at))
