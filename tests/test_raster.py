"""The rasteriser of the viewer: what it draws is where it should be, as deep as it should be, in the right order."""

import subprocess
import sys

import numpy as np
import pytest
import taichi as ti
import trimesh
from taichi.lang.misc import is_arch_supported

from pliant.errors import PliantError
from pliant.render import Camera, Lines, Picture, Points, Surface, box_edges
from pliant.render.raster import Raster
from pliant.render.raster_tiles import EMPTY

WIDTH, HEIGHT = 200, 120
RED, GREEN, BLUE = (0.9, 0.05, 0.05), (0.05, 0.8, 0.05), (0.05, 0.1, 0.9)
FRONT = Camera((0, 0, 5), (0, 0, 0))
SCALE = HEIGHT / 2 / np.tan(np.radians(45) / 2)  # pixels per unit of slope
FAR = 1e6  # depth [m] of a pixel that sees nothing
SIDE = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], float)
TWO = np.array([[0, 1, 2], [0, 2, 3]])


@pytest.fixture(scope="module")
def raster(_taichi):
    return Raster(WIDTH, HEIGHT)


def drawn(raster, camera=FRONT, **parts):
    raster.load(Picture(camera, **parts))
    raster.draw()
    return raster.rows()


def rays(width=WIDTH, height=HEIGHT, scale=SCALE):
    """Directions (height, width, 3) of the pixels, first row on top, in the camera's frame, with depth 1."""
    u, v = (np.arange(width) + 0.5 - width / 2) / scale, (height / 2 - np.arange(height) - 0.5) / scale
    return np.stack([*np.meshgrid(u, v), np.ones((height, width))], axis=-1)


def depths(raster):
    """Depths (height, width), first row on top, and FAR where nothing is seen."""
    keys = raster._keys
    above = (keys >> 32).astype(np.int32).view(np.float32)
    scale = raster.height / 2 / np.tan(np.radians(45) / 2)
    seen = above / (rays(raster.width, raster.height, scale) ** 2).sum(axis=-1)
    return np.where(keys == EMPTY, FAR, seen)


def owners(raster):
    """What each pixel sees (height, width), first row on top: the number of the thing, or -1."""
    keys = raster._keys
    return np.where(keys == EMPTY, -1, keys & 0x7FFFFFFF)


def sphere_depths(centre, radius):
    """Slow twin: where the rays of all pixels meet a sphere, in double precision, or FAR."""
    d, c = rays(), np.array([centre[0], centre[1], 5.0 - centre[2]])
    square, b = (d * d).sum(axis=-1), d @ c
    inside = b * b - square * (c @ c - radius**2)
    return np.where(inside >= 0, (b - np.sqrt(np.maximum(inside, 0))) / square, FAR)


def triangle_depths(corners):
    """Slow twin: depths of triangles (m, 3, 3) in the camera's frame, or FAR, and the shares of their corners."""
    d = rays()[:, :, None]
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    weights = np.stack([(d * np.cross(p, q)).sum(axis=-1) for p, q in ((b, c), (c, a), (a, b))], axis=-1)
    total = weights.sum(axis=-1, keepdims=True)
    share = weights / np.where(total == 0, np.nan, total)
    depth = (share * corners[:, :, 2]).sum(axis=-1)
    return np.where((share >= 0).all(axis=-1) & (depth > 0), depth, FAR), share


def test_a_sphere_has_its_outline_and_its_depth(raster):
    """Straight ahead, a sphere of radius r at distance z covers slopes up to r / sqrt(z^2 - r^2), and is z - r away."""
    drawn(raster, points=[Points(np.zeros((1, 3)), 1.0)])
    seen = (depths(raster) < FAR)
    reach = SCALE / np.sqrt(24.0)
    away = np.hypot(*(np.indices((HEIGHT, WIDTH)) - [[[HEIGHT / 2 - 0.5]], [[WIDTH / 2 - 0.5]]]))
    assert (seen == (away <= reach))[abs(away - reach) > 0.01].all()
    assert depths(raster)[HEIGHT // 2, WIDTH // 2] == pytest.approx(4.0, abs=2e-3)  # half a pixel off the middle


@pytest.mark.parametrize(
    ("centre", "radius"), [((1.8, -1.1, 0.0), 0.7), ((-1.7, 1.0, 2.0), 0.5), ((0.3, 0.2, 1.0), 1.9)]
)
def test_spheres_off_the_axis_are_those_of_the_twin(raster, centre, radius):
    drawn(raster, points=[Points([centre], radius)])
    expected, found = sphere_depths(centre, radius), depths(raster)
    both = (expected < FAR) & (found < FAR)
    assert both.sum() > 300
    assert ((expected < FAR) != (found < FAR)).sum() <= 2, "outlines differ by more than rounding"
    assert abs(expected - found)[both].max() < 0.01 * radius  # where the ray grazes the sphere, rounding counts most
    assert np.median(abs(expected - found)[both]) < 1e-5


def test_the_nearest_of_many_spheres_is_seen(raster):
    """Most of them are left out early because others hide them: the picture must not show it."""
    x, radius = np.random.default_rng(1).uniform((-2.2, -1.5, -2), (2.2, 1.5, 2), (2500, 3)), 0.12
    drawn(raster, points=[Points(x[:1000], radius), Points(x[1000:], radius)])
    expected, second, owner = (np.full((HEIGHT, WIDTH), value) for value in (FAR, FAR, -1))
    for k, centre in enumerate(x):
        layer = sphere_depths(centre, radius)
        second = np.minimum(second, np.maximum(layer, expected))
        owner = np.where(layer < expected, k, owner)
        expected = np.minimum(expected, layer)
    found = depths(raster)
    sure = (second - expected > 1e-3) & (expected < FAR) & (found < FAR)
    assert sure.mean() > 0.5
    assert ((expected < FAR) != (found < FAR)).mean() < 1e-3
    assert (owners(raster) == owner)[sure].mean() > 0.9995  # but for outlines that pass the middle of a pixel
    assert np.quantile(abs(expected - found)[sure], 0.999) < 1e-3


def test_spheres_half_hidden_by_others_show_before_a_wall(raster):
    """Those behind are drawn in the second round, for which all the wall's depths are known."""
    first = np.stack(np.meshgrid(np.linspace(-2.5, 2.5, 9), np.linspace(-1.5, 1.5, 7), [0.0]), axis=-1).reshape(-1, 3)
    wall = Surface(SIDE * 6 - (0, 0, 0.1), TWO)
    drawn(raster, points=[Points(first, 0.15), Points(first + (0.08, 0.02, -0.05), 0.15)], surfaces=[wall])
    assert set(np.unique(owners(raster))) == set(range(2 * len(first) + 2))


def test_a_nearer_sphere_hides_a_farther_one_whatever_their_order(raster):
    near, far = Points([[0, 0, 1.0]], 0.4, RED), Points([[0, 0, -1.0]], 0.4, GREEN)
    for groups in ([near, far], [far, near]):
        image = drawn(raster, points=groups)
        assert image[HEIGHT // 2, WIDTH // 2].argmax() == 0


def test_equally_deep_spheres_belong_to_the_first(raster):
    drawn(raster, points=[Points(np.zeros((5, 3)), 0.5)])
    assert set(np.unique(owners(raster))) == {-1, 0}


def test_the_smallest_particle_shows(raster):
    rng = np.random.default_rng(2)
    for at in rng.uniform((-1, -1, -1), (1, 1, 1), (20, 3)):
        drawn(raster, points=[Points([at], 1e-5, RED)])
        assert 1 <= (depths(raster) < FAR).sum() <= 4


def test_triangles_are_those_of_the_twin(raster):
    """Triangles of all sizes that cross each other, some of them reaching behind the camera."""
    rng = np.random.default_rng(3)
    corners = rng.uniform((-3, -2, -4), (3, 2, 4), (12, 1, 3)) + rng.normal(0, 1.2, (12, 3, 3))
    corners[0] = [[-2, -0.5, 2], [2, -0.5, 2], [0, 0.62, 9]]  # passes just under the camera
    drawn(raster, surfaces=[Surface(corners.reshape(-1, 3), np.arange(36).reshape(-1, 3))])
    layers, shares = triangle_depths(corners * (1, 1, -1) + (0, 0, 5.0))
    layers = np.where(layers > 0.02 * 5, layers, FAR)
    expected, found = layers.min(axis=-1), depths(raster)
    edge = (abs(shares) < 0.02).any(axis=(-1, -2)) | ~np.isfinite(shares).all(axis=(-1, -2))
    ahead = np.sort(layers, axis=-1)[..., 1] - expected > 1e-3
    sure = ~edge & (ahead | ~(expected < FAR))
    assert sure.mean() > 0.5 and (layers[..., 0] == expected)[sure & (expected < FAR)].any()
    assert ((expected < FAR) == (found < FAR))[sure].all()
    assert (owners(raster) == np.where((expected < FAR), layers.argmin(axis=-1), -1))[sure].all()
    both = sure & (expected < FAR)
    assert abs(expected - found)[both] == pytest.approx(0.0, abs=1e-4)


def test_neighboring_triangles_leave_no_gaps(raster):
    n = 40
    grid = np.stack(np.meshgrid(np.linspace(-3.7, 3.7, n), np.linspace(-2.3, 2.3, n), indexing="ij"), axis=-1)
    vertices = np.concatenate([grid.reshape(-1, 2), np.random.default_rng(4).uniform(-0.1, 0.1, (n * n, 1))], axis=1)
    a = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).ravel()
    faces = np.concatenate([np.stack([a, a + n, a + 1], axis=1), np.stack([a + 1, a + n, a + n + 1], axis=1)])
    drawn(raster, surfaces=[Surface(vertices, faces)])
    assert (depths(raster) < FAR).all()


def test_colours_are_interpolated_in_perspective(raster):
    """A strip that runs away from the camera: half of its length is seen well above the middle of the picture."""
    strip = np.array([[-1.0, -1, 3], [1, -1, 3], [1, -1, -20], [-1, -1, -20]])
    colors = np.array([[0, 0, 0], [0, 0, 0], [1, 1, 1], [1, 1, 1]], float)
    picture = Picture(FRONT, surfaces=[Surface(strip, TWO, colors)], lights=(), ambient=(1, 1, 1))
    raster.load(picture)
    raster.draw()
    column = raster.rows()[:, WIDTH // 2, 0]
    v = (HEIGHT / 2 - np.arange(HEIGHT) - 0.5) / SCALE
    depth = np.where(v < 0, -1 / np.minimum(v, -1e-9), np.inf)  # of the plane one metre below
    inner = (depth > 2.5) & (depth < 20)
    assert inner.sum() > 20
    assert abs(column - 255 * (depth - 2) / 23)[inner].max() < 2.0


def test_both_sides_of_a_surface_are_lit_alike(raster):
    front = drawn(raster, surfaces=[Surface(SIDE, TWO, GREEN)])
    back = drawn(raster, surfaces=[Surface(SIDE, TWO[:, ::-1], GREEN)])
    assert (front == back).all() and front[HEIGHT // 2, WIDTH // 2, 1] > 80


def test_particles_and_surfaces_hide_each_other(raster):
    wall = Surface(SIDE, TWO, GREEN)
    image = drawn(raster, points=[Points([[-0.5, 0, 0.5], [0.5, 0, -0.5]], 0.2, RED)], surfaces=[wall])
    left, right = (int(WIDTH / 2 + x * SCALE / 5) for x in (-0.5, 0.5))
    assert image[HEIGHT // 2, left].argmax() == 0 and image[HEIGHT // 2, right].argmax() == 1


def test_lines_are_hidden_by_what_is_before_them(raster):
    line = Lines([[[-3, 0, -1], [3, 0, -1]]], RED, width=25.0)
    image = drawn(raster, lines=[line], surfaces=[Surface(SIDE, TWO, GREEN)])
    row = image[HEIGHT // 2].argmax(axis=-1)
    assert row[WIDTH // 2] == 1
    edge = SCALE / 5  # pixels from the middle to the sides of the square
    red = np.nonzero((image[HEIGHT // 2].astype(int) @ [2, -1, -1]) > 250)[0] + 0.5 - WIDTH / 2
    assert abs(red).min() == pytest.approx(edge, abs=1.5)
    assert abs(red).max() == pytest.approx(3 * SCALE / 6, abs=2)
    before = Lines([[[-3, 0, 0.5], [3, 0, 0.5]]], RED, width=25.0)
    image = drawn(raster, lines=[before], surfaces=[Surface(SIDE, TWO, GREEN)])
    assert image[HEIGHT // 2, WIDTH // 2].argmax() == 0


def test_lines_are_smooth_and_as_wide_as_they_should_be():
    """Across a slanted line, coverages add up to its width."""
    raster = Raster(1280, 720)
    ends = np.array([[[-1, -0.3, 0], [1, 0.4, 0]]])
    raster.load(Picture(FRONT, lines=[Lines(ends, (0, 0, 0), 3.0)]))
    raster.draw()
    coverage = (raster._lines >> 16) / 256
    assert len(np.unique(coverage)) > 20
    columns = coverage[:, 500:780].sum(axis=0)  # measured upright, the line is wider by 1 / cos of its slope
    assert columns.mean() == pytest.approx(3.0 * np.hypot(1, 0.35), rel=0.02)


@pytest.mark.parametrize("order", [1, -1])
def test_lines_that_pass_the_camera_are_cut(raster, order):
    image = drawn(raster, lines=[Lines([[[0.5, -1, -5], [0.5, -1, 30]][::order]], RED, width=25.0)])
    red = (image.astype(int) @ [2, -1, -1]) > 200
    assert red[-1].any() and not red[: HEIGHT // 2].any()


def test_picking_finds_the_particle_and_the_point(raster):
    rng = np.random.default_rng(5)
    groups = [Points(rng.uniform(-1, 1, (30, 3)), 0.1), Points(rng.uniform(-1, 1, (30, 3)), 0.1)]
    drawn(raster, points=groups, surfaces=[Surface(SIDE * 6 - (0, 0, 3), TWO)])
    index = owners(raster)
    for py, px in np.argwhere((index >= 0) & (index < 60))[::97]:
        hit = raster.pick(int(px), int(py))
        assert (hit.kind, hit.group * 30 + hit.index) == ("points", index[py, px])
        assert np.linalg.norm(hit.point - groups[hit.group].x[hit.index]) == pytest.approx(0.1, rel=1e-3)
    hit = raster.pick(3, HEIGHT // 2)
    assert hit.kind == "surface" and hit.group == 0 and hit.index in (0, 1)
    assert hit.point[2] == pytest.approx(-3.0, abs=1e-4)


def test_picking_looks_around_and_beyond_the_picture(raster):
    drawn(raster, points=[Points([[0, 0, 0]], 0.05)])
    assert raster.pick(WIDTH // 2 + 4, HEIGHT // 2).index == 0
    assert raster.pick(WIDTH // 2 + 9, HEIGHT // 2) is None
    for px, py in ((-50, 3), (3, -50), (WIDTH + 50, 3), (3, HEIGHT + 50)):
        assert raster.pick(px, py) is None


def test_picking_needs_a_drawing():
    raster = Raster(40, 30)
    assert raster.pick(3, 3) is None
    raster.load(Picture(FRONT, [Points(np.zeros((1, 3)), 1.0)]))
    raster.draw()
    assert raster.pick(20, 15) is not None
    raster.load(Picture(FRONT))
    assert raster.pick(20, 15) is None, "what was drawn before is not what is loaded now"


def channels(image):
    return np.stack([image >> shift & 255 for shift in (16, 8, 0)], axis=-1)


def test_the_image_has_the_rows_and_panels_lie_on_it(raster):
    rows = drawn(raster, points=[Points(np.zeros((1, 3)), 0.5, RED)], lines=[Lines(box_edges((-1, -1, -1), (1, 1, 1)))])
    image = raster.image()
    assert image.shape == (HEIGHT, WIDTH) and image.dtype == np.uint32 and (image >> 24 == 255).all()
    assert (channels(image) == rows).all()
    panels = np.random.default_rng(6).integers(0, 256, (HEIGHT, WIDTH, 4), dtype=np.uint8)
    panels[:40, :, 3], panels[40:80, :, 3] = 0, 255
    alpha = panels[..., 3:] / 255
    mixed = np.rint(rows * (1 - alpha) + panels[..., :3] * alpha).astype(np.uint8)
    assert (channels(raster.image(panels)) == mixed).all()
    with pytest.raises(PliantError, match="panels must have shape"):
        raster.image(panels[:-1])


def test_another_size_and_another_camera(raster):
    picture = Picture(FRONT, [Points(np.zeros((1, 3)), 0.5, RED)])
    for width, height in ((1, 1), (7, 300), (333, 55), (WIDTH, HEIGHT)):
        raster.resize(width, height)
        raster.load(picture)
        raster.draw()
        assert raster.rows().shape == (height, width, 3)
    centred = raster.rows()
    raster.draw(Camera((0, 0, 5), (1.0, 0, 0)))
    moved = raster.rows()
    assert (moved != centred).any() and raster.pick(WIDTH // 2, HEIGHT // 2) is None
    raster.draw()
    assert (raster.rows() == centred).all(), "without a camera, the picture's own counts"
    with pytest.raises(PliantError, match="positive size"):
        raster.resize(0, 10)


def test_resizing_keeps_what_was_loaded(raster):
    drawn(raster, points=[Points(np.zeros((1, 3)), 0.5, RED)])
    raster.resize(WIDTH // 2, HEIGHT // 2)
    raster.draw()
    assert raster.rows()[HEIGHT // 4, WIDTH // 4].argmax() == 0
    raster.resize(WIDTH, HEIGHT)


def test_nothing_and_next_to_nothing(raster):
    with pytest.raises(PliantError, match="nothing to draw"):
        Raster(10, 10).draw()
    empty = drawn(raster, points=[Points(np.zeros((0, 3)), 0.1)], lines=[Lines(np.zeros((0, 2, 3)))],
                  surfaces=[Surface(np.zeros((0, 3)), np.zeros((0, 3), int))])  # fmt: skip
    assert empty.min() > 150, "a pale sky"
    flat = Surface(np.zeros((3, 3)), [[0, 1, 2]])
    behind = [Points([[0, 0, 5.0], [0, 0, 7.0], [0, 0, 4.99], [1e9, 0, 0], [0, 0, -1e12]], 0.1)]
    dot = Lines([[[0, 0, 4.95], [0, 0, 4.95]], [[0, 0, 9], [0, 0, 8]]])
    image = drawn(raster, points=behind, surfaces=[flat], lines=[dot])
    assert 1 <= (image != empty).any(axis=-1).sum() <= 25, "only the farthest particle, a dot in the middle"


def test_a_camera_among_particles_sees_the_rest(raster):
    """Spheres that touch the camera are left out, the others are drawn."""
    x = np.random.default_rng(7).uniform(-1, 1, (3000, 3))
    drawn(raster, Camera((0, 0, 0), (0, 0, -1)), points=[Points(x, 0.08, BLUE)])
    assert (depths(raster) < FAR).mean() > 0.95
    assert 0.08 <= depths(raster).min() < 0.5, "no nearer than twice the radius, less the radius"


def test_the_floor_and_the_shadows_are_those_of_files(raster):
    """A ball casts a shadow on the floor, and on the particles below it."""
    x = np.stack(np.meshgrid(np.linspace(-1, 1, 30), [-1.0], np.linspace(-1, 1, 30)), axis=-1).reshape(-1, 3)
    ball = Points([[0, 0, 0]], 0.4, RED)
    above = Camera((0, 5, 0.01), (0, 0, 0))
    floor = Points(x, 0.04, (0.6, 0.6, 0.6))
    bare = drawn(raster, above, points=[floor], ground=-1.1).astype(int)
    grains = owners(raster) >= 0
    dark = drawn(raster, above, points=[floor, ball], ground=-1.1)
    behind = grains & (owners(raster) < 900)
    darker = (bare - dark).min(axis=-1)
    assert (darker[behind] > 30).sum() > 200, "the particles in the shadow"
    assert (abs(darker[behind]) < 3).mean() > 0.6, "the others are as before"
    assert (darker[~grains & (owners(raster) < 0)] > 8).sum() > 100, "the ground beside them"


def test_a_fine_wet_ball_looks_as_if_each_pixel_were_shaded(raster):
    """Its colours are worked out at the vertices, which are some pixels apart."""
    ball = trimesh.creation.icosphere(5)
    picture = {"color": BLUE, "normals": ball.vertices, "gloss": 0.6}
    images = []
    for fine in (True, False):
        surface = Surface(ball.vertices, ball.faces, **picture)
        assert surface.fine
        surface.fine = fine
        images.append(drawn(raster, surfaces=[surface]).astype(int))
    seen = owners(raster) >= 0
    assert images[1][seen].max() - images[1][seen].min() > 100, "there is light and shade"
    assert abs(images[0] - images[1])[seen].mean() < 1.0
    assert abs(images[0] - images[1]).max() < 16


def test_a_wet_floor_fades_evenly_into_the_distance_from_both_sides(raster):
    """No edge where its normals begin to turn away from the camera."""
    side = np.linspace(-4, 4, 161)
    x = np.stack(np.meshgrid(side, [0.0], side, indexing="ij"), axis=-1).reshape(-1, 3)
    square = np.array([[0, 1, 161], [1, 162, 161]])
    faces = (np.arange(160)[:, None] * 161 + np.arange(160)).reshape(-1, 1, 1) + square
    for up in (1.0, -1.0):
        floor = Surface(x, faces.reshape(-1, 3), BLUE, normals=np.tile([0, up, 0], (len(x), 1)), gloss=0.6)
        column = drawn(raster, Camera((0, 1, 5), (0, 0, 0)), surfaces=[floor])[:, WIDTH // 2].astype(int)
        column = column[owners(raster)[:, WIDTH // 2] >= 0]
        assert len(column) > 50 and abs(np.diff(column[2:-2], axis=0)).max() < 8


def test_a_mesh_is_seen_from_inside(raster):
    """Triangles that turn their backs are drawn where nothing hides them, and nowhere else."""
    open_box = trimesh.creation.box((2, 2, 2))
    faces = open_box.faces[open_box.face_normals[:, 2] < 0.5]  # without the side towards the camera
    drawn(raster, surfaces=[Surface(open_box.vertices, faces, GREEN)])
    assert depths(raster)[HEIGHT // 2, WIDTH // 2] == pytest.approx(6.0, rel=1e-5)
    drawn(raster, surfaces=[Surface(open_box.vertices, open_box.faces, GREEN)])
    assert depths(raster)[HEIGHT // 2, WIDTH // 2] == pytest.approx(4.0, rel=1e-5)


def test_another_backend_is_refused():
    start = "from pliant.core import backend; backend.start('vulkan')\n" if is_arch_supported(ti.vulkan) else ""
    code = start + "from pliant.render.raster import Raster; Raster(20, 10)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert ended.returncode != 0 and "start the engine on the CPU first" in ended.stderr
