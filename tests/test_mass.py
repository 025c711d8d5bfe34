"""Mass properties of shapes against closed forms, integration, and each other."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pliant.errors import PliantError
from pliant.geometry import Box, Capsule, Cylinder, Empty, Mesh, Plane, Shape, Sphere, Torus, centred
from pliant.geometry.mass import MassProperties
from pliant.geometry.volumes import integrate_moments

C = (0.3, -0.2, 0.5)
SOLIDS = {
    "box": Box((0.6, 0.8, 1.0), C),
    "sphere": Sphere(0.5, C),
    "cylinder": Cylinder(0.3, 0.9, C, "x"),
    "capsule": Capsule(0.3, 0.5, C, "z"),
    "torus": Torus(0.5, 0.2, C, "y"),
    "turned": Cylinder(0.3, 0.9, C, "z").rotate((1, 2, 3), 40.0),
    "magnified": Torus(0.5, 0.2, C, "x").scale(1.3),
}


def same(one: MassProperties, other: MassProperties, share: float) -> None:
    """Whether two agree to that share of their size, centres to that share of the length of the body."""
    size = np.sqrt(np.trace(other.inertia) / other.volume)
    assert one.volume == pytest.approx(other.volume, rel=share)
    np.testing.assert_allclose(one.center, other.center, rtol=0, atol=share * size)
    np.testing.assert_allclose(one.inertia, other.inertia, rtol=0, atol=share * np.trace(other.inertia))


def integrated(shape: Shape) -> MassProperties:
    return MassProperties.of_moments(integrate_moments(shape.signed_distance, shape.bounds()))


def as_mesh(shape: Shape) -> Mesh:
    return Mesh(shape.triangles())


@pytest.mark.parametrize("shape", SOLIDS.values(), ids=SOLIDS.keys())
def test_closed_forms_are_what_integration_gives(shape):
    same(shape.mass_properties(), integrated(shape), 1e-3)
    assert shape.mass_properties().volume == shape.volume()


@pytest.mark.parametrize("shape", SOLIDS.values(), ids=SOLIDS.keys())
def test_meshes_of_the_same_shapes_agree(shape):
    """Round shapes are drawn by few triangles, so that their meshes are smaller by a per cent or so."""
    same(as_mesh(shape).mass_properties(), shape.mass_properties(), 1e-12 if isinstance(shape, Box) else 0.03)


def test_known_values():
    """A cube of edge 1 has m/6 about any axis, a ball 2/5 m r^2, a long thin rod m h^2 / 12."""
    np.testing.assert_allclose(Box((1, 1, 1)).mass_properties().inertia, np.eye(3) / 6, atol=1e-15)
    ball = Sphere(2.0).mass_properties()
    np.testing.assert_allclose(ball.inertia, 0.4 * ball.volume * 4.0 * np.eye(3), rtol=1e-14)
    rod = Cylinder(1e-3, 1.0, axis="x").mass_properties()
    np.testing.assert_allclose(np.diag(rod.inertia)[1:] / rod.volume, 1 / 12, rtol=1e-5)


def test_parallel_axes():
    """About a corner a cube has 2/3 m on the diagonal and -1/4 m beside it."""
    cube = Box((1, 1, 1), (0.5, 0.5, 0.5)).mass_properties()
    np.testing.assert_allclose(cube.about((0, 0, 0)), np.where(np.eye(3), 2 / 3, -1 / 4), atol=1e-15)


def test_turning_turns_the_inertia():
    box, axis = Box((0.2, 0.5, 1.0), C), np.array([1.0, 2.0, -1.0])
    R = Rotation.from_rotvec(np.radians(50.0) * axis / np.linalg.norm(axis)).as_matrix()
    inertia = box.rotate(axis, 50.0).mass_properties().inertia
    np.testing.assert_allclose(inertia, R @ box.mass_properties().inertia @ R.T, atol=1e-15)
    assert np.array_equal(inertia, inertia.T)


def test_inertia_grows_as_the_fifth_power():
    small, large = (Box((0.2, 0.5, 1.0), C).scale(s, about=(0, 0, 0)).mass_properties() for s in (1.0, 3.0))
    np.testing.assert_allclose(large.inertia, 3**5 * small.inertia, rtol=1e-14)
    np.testing.assert_allclose(large.center, 3 * small.center)
    assert large.volume == pytest.approx(27 * small.volume)


def test_a_mesh_cube_equals_the_box_wherever_it_is():
    far = (1e5, -2e5, 3e5)
    same(as_mesh(Box((0.3, 0.2, 0.5), far)).mass_properties(), Box((0.3, 0.2, 0.5), far).mass_properties(), 1e-9)


def test_a_mesh_with_a_cavity_and_one_that_looks_inward():
    outer, inner = Box((1, 1, 1)), Box((0.5, 0.4, 0.3), (0.1, 0, 0))
    (v, f), (w, g) = outer.triangles(), inner.triangles()
    hollow = Mesh((np.concatenate([v, w]), np.concatenate([f, g[:, ::-1] + len(v)]))).mass_properties()
    a, b = outer.mass_properties(), inner.mass_properties()
    volume = a.volume - b.volume
    center = (a.volume * a.center - b.volume * b.center) / volume
    wanted = MassProperties(volume, center, a.about(center) - b.about(center))
    same(hollow, wanted, 1e-12)
    same(Mesh((v, f[:, ::-1])).mass_properties(), a, 1e-12)


def test_a_mesh_with_a_hole_is_counted():
    """A cube without its top is open: its inside is where the winding number says, which bulges a little."""
    vertices, faces = Box((1, 1, 1)).triangles()
    vertices, faces = refined(vertices, faces, 3)
    top = vertices[faces][:, :, 1].min(axis=1) > 0.5 - 1e-9
    few = top & (np.cumsum(top) <= 6)
    open_cube = Mesh((vertices, faces[~few]))
    assert not open_cube.surface.closed
    same(open_cube.mass_properties(), Box((1, 1, 1)).mass_properties(), 0.02)


def test_overlapping_shells_count_once():
    (v, f), (w, g) = Box((1, 1, 1)).triangles(), Box((1, 1, 1), (0.5, 0, 0)).triangles()
    both = Mesh((np.concatenate([v, w]), np.concatenate([f, g + len(v)]))).mass_properties()
    same(both, Box((1.5, 1, 1), (0.25, 0, 0)).mass_properties(), 5e-3)


def test_combined_shapes():
    """A box without a ball, and two boxes that touch, to 0.1 %."""
    ball, box = Sphere(0.3, (0.1, 0.05, 0)).mass_properties(), Box((1, 0.8, 0.9)).mass_properties()
    volume = box.volume - ball.volume
    center = (box.volume * box.center - ball.volume * ball.center) / volume
    wanted = MassProperties(volume, center, box.about(center) - ball.about(center))
    shape = Box((1, 0.8, 0.9)) - Sphere(0.3, (0.1, 0.05, 0))
    same(shape.mass_properties(), wanted, 1e-3)
    assert shape.mass_properties().volume == shape.volume()
    two = Box((0.37, 1, 1), (0.185, 0, 0)) | Box((0.63, 1, 1), (0.685, 0, 0))
    same(two.mass_properties(), Box((1, 1, 1), (0.5, 0, 0)).mass_properties(), 1e-3)
    moved = shape.rotate("z", 90.0, about=(0, 0, 0)).translate((5, 0, 0)).mass_properties()
    same(moved, wanted.placed(1.0, np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1.0]]), np.array([5, 0, 0])), 1e-3)


def test_a_cup_with_thin_walls():
    """Whose hollow ends at its rim: two faces in one place, of which only the ring is a surface."""
    outer, hollow = Cylinder(0.05, 0.122), Cylinder(0.045, 0.111, (0, 0.0055, 0))
    a, b = outer.mass_properties(), hollow.mass_properties()
    center = (a.volume * a.center - b.volume * b.center) / (a.volume - b.volume)
    wanted = MassProperties(a.volume - b.volume, center, a.about(center) - b.about(center))
    same((outer - hollow).mass_properties(), wanted, 1e-3)


@pytest.mark.parametrize("shape", [Plane(), Empty(), Box((1, 1, 1)) - Box((2, 2, 2)), Box((1, 1, 1)) | Plane()])
def test_what_has_no_mass_says_so(shape):
    with pytest.raises(PliantError, match="mass properties"):
        shape.mass_properties()


def refined(vertices, faces, times):
    """Each triangle cut into four, so many times."""
    for _ in range(times):
        a, b, c = (vertices[faces[:, k]] for k in range(3))
        ab, bc, ca = 0.5 * (a + b), 0.5 * (b + c), 0.5 * (c + a)
        parts = [np.stack(t, axis=1) for t in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))]
        corners = np.concatenate(parts).reshape(-1, 3)
        vertices, faces = corners, np.arange(len(corners)).reshape(-1, 3)
    return vertices, faces


@pytest.mark.parametrize("place", [(0.1, 0.2, 0.3), (-7.3, 11.1, 0.7)])
def test_copies_in_other_places_are_one_shape(place):
    """What is centred has one key, and moved back by its offset it is where the copy was."""
    for made in (
        lambda c: Box((0.2, 0.3, 0.4), c),
        lambda c: Torus(0.5, 0.2, c, "x").rotate((1, 2, 3), 40.0),
        lambda c: Cylinder(0.3, 0.9, c).scale(2.0).rotate("z", 10.0, about=(3, 2, 1)),
        lambda c: (Box((1, 1, 1)) - Sphere(0.5)).rotate("x", 5.0).translate(c),
    ):
        base, offset = centred(made(place))
        assert base.key() == centred(made((0.0, 0.0, 0.0)))[0].key()
        points = np.random.default_rng(0).uniform(-1, 1, (50, 3)) + offset
        wanted = made(place).signed_distance(points)
        np.testing.assert_allclose(base.signed_distance(points - offset), wanted, atol=1e-12)
