"""Pictures: what is drawn is where it should be, in the colour it should have."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.ndimage import binary_dilation, binary_erosion
from scipy.spatial import Delaunay

from pliant.errors import PliantError
from pliant.render import (
    COLOR_MAPS,
    Bar,
    Camera,
    CameraPath,
    Light,
    Lines,
    Look,
    Orbit,
    Picture,
    Points,
    Renderer,
    Surface,
    available,
    box_edges,
    colormap,
)  # fmt: skip
from pliant.render.coloring import label, no_such_field, robust_range, scalar, unit
from pliant.render.cull import visible
from pliant.render.mesh import corner_normals
from pliant.render.overlay import overlay, scaled, ticks

WIDTH, HEIGHT = 160, 90
RED, GREEN, BLUE = (0.9, 0.05, 0.05), (0.05, 0.8, 0.05), (0.05, 0.1, 0.9)
CUBE_FACES = np.array(
    [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
     [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]]
)  # fmt: skip
CUBE = np.array([[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)], float) - 0.5
FRONT = Camera((0, 0, 5), (0, 0, 0))


@pytest.fixture(scope="module")
def renderer(_taichi):
    missing = available()
    if missing:
        pytest.skip(missing)
    renderer = Renderer(WIDTH, HEIGHT)
    yield renderer
    renderer.close()


def strongest(image):
    """Per pixel, the channel that clearly leads (0, 1, 2), or -1 for grey."""
    spread = image.max(axis=-1).astype(int) - np.median(image, axis=-1)
    return np.where(spread > 50, image.argmax(axis=-1), -1)


def test_spheres_are_where_the_camera_says(renderer):
    groups = [Points(np.zeros((1, 3)), 0.5, RED), Points([[1.5, 1, 0]], 0.3, GREEN), Points([[-1.5, -1, 0]], 0.3, BLUE)]
    image = renderer.render(Picture(FRONT, groups))
    assert image.shape == (HEIGHT, WIDTH, 3) and image.dtype == np.uint8
    leads = strongest(image)
    scale = HEIGHT / 2 / np.tan(np.radians(45) / 2) / 5  # pixels per metre at the target
    for channel, (x, y), radius in ((0, (0, 0), 0.5), (1, (1.5, 1), 0.3), (2, (-1.5, -1), 0.3)):
        rows, columns = np.nonzero(leads == channel)
        assert columns.mean() == pytest.approx(WIDTH / 2 - 0.5 + x * scale, abs=1.5)
        assert rows.mean() == pytest.approx(HEIGHT / 2 - 0.5 - y * scale, abs=1.5)
        assert len(rows) == pytest.approx(np.pi * (radius * scale) ** 2, rel=0.25)
    assert (leads[0] == -1).all(), "the background is not grey at the top"


def test_nothing_to_draw_gives_the_backdrop(renderer):
    image = renderer.render(Picture(FRONT, [Points(np.zeros((0, 3)), 0.1)], [Lines(np.zeros((0, 2, 3)))]))
    assert image.min() > 150
    assert image[-1].mean() > image[0].mean() + 20, "the sky brightens towards the horizon"


def test_a_particle_that_blew_up_is_left_out(renderer):
    x = np.array([[0, 0, 0], [np.nan, 0, 0], [0, np.inf, 0]])
    assert strongest(renderer.render(Picture(FRONT, [Points(x, 0.5, RED)])))[HEIGHT // 2, WIDTH // 2] == 0


def test_counts_may_change_between_pictures(renderer):
    for n in (10, 5000, 1, 9000):
        x = np.random.default_rng(n).uniform(-1, 1, (n, 3))
        image = renderer.render(Picture(FRONT, [Points(x, 0.2, RED)]))
        assert (strongest(image) == 0).any()


def test_surface_and_lines(renderer):
    camera = Camera.framing((CUBE.min(axis=0), CUBE.max(axis=0)), aspect=WIDTH / HEIGHT)
    lines = [Lines(box_edges((-0.5,) * 3, (0.5,) * 3), (0, 0, 0), width=2)]
    solid = renderer.render(Picture(camera, surfaces=[Surface(CUBE, CUBE_FACES, GREEN)]))
    wire = renderer.render(Picture(camera, lines=lines))
    rows, _ = np.nonzero(strongest(solid) == 1)
    assert 0.8 * HEIGHT < np.ptp(rows) < HEIGHT - 2, "the box fills the picture and stays inside"
    assert 100 < (wire.max(axis=-1) < 100).sum() < 2000
    for _ in range(6):  # scene.mesh of Taichi 1.7.4 skipped some frames
        again = renderer.render(Picture(camera, surfaces=[Surface(CUBE, CUBE_FACES, GREEN)]))
        np.testing.assert_array_equal(again, solid)


def test_shadow_falls_on_the_ground_and_on_particles_below(renderer):
    camera = Camera((0, 3, 6), (0, 0, 0))
    grid = np.stack(np.meshgrid(np.linspace(-0.3, 0.3, 9), [1.0], np.linspace(-0.3, 0.3, 9)), -1).reshape(-1, 3)
    groups = [Points(grid, 0.05, RED)]
    lit = renderer.render(Picture(camera, groups, ground=0.0, shadow=0.0)).astype(int)
    dark = renderer.render(Picture(camera, groups, ground=0.0, shadow=0.5)).astype(int)
    darker = (lit - dark).max(axis=-1) > 40
    rows, columns = np.nonzero(darker)
    assert len(rows) > 50
    assert rows.min() > 10 and columns.mean() > WIDTH / 2, "the key light comes from the left"


def test_hidden_particles_change_nothing(renderer, monkeypatch):
    axis = np.linspace(-1, 1, 16)
    x = np.stack(np.meshgrid(axis, axis, axis), -1).reshape(-1, 3)
    camera = Camera.framing(((-1, -1, -1), (1, 1, 1)))
    picture = Picture(camera, [Points(x, axis[1] - axis[0], colormap(x[:, 0], name="viridis"))])
    (seen,) = visible(picture.points, camera, WIDTH, HEIGHT)
    assert 0.1 < seen.mean() < 0.7
    culled = renderer.render(picture)
    monkeypatch.setattr("pliant.render.renderer.visible", lambda points, *_: [np.ones(len(p.x), bool) for p in points])
    np.testing.assert_array_equal(renderer.render(picture), culled)


def test_renderers_take_turns_and_save(renderer, tmp_path, monkeypatch):
    image_module = pytest.importorskip("PIL.Image")
    picture = Picture(FRONT, [Points(np.zeros((1, 3)), 0.5, RED)])
    before = renderer.render(picture)
    other = Renderer(64, 48, supersample=1)
    monkeypatch.chdir(tmp_path)
    other.save(tmp_path / "a.png", picture)
    other.close()
    assert os.listdir(tmp_path) == ["a.png"], "GGUI's own settings are not left behind"
    assert np.asarray(image_module.open(tmp_path / "a.png")).shape == (48, 64, 3)
    np.testing.assert_array_equal(renderer.render(picture), before)


def test_without_a_driver_there_is_one_sentence():
    code = "from pliant.render import available; print(available())"
    environment = os.environ | {"VK_ICD_FILENAMES": "/nonexistent", "VK_DRIVER_FILES": "/nonexistent"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert "no Vulkan driver" in run.stdout.strip().splitlines()[-1]


@pytest.mark.parametrize("aspect", [0.5, 1.0, 2.0])
def test_framing_holds_the_box(aspect):
    low, high = np.array([1.0, 0, 0]), np.array([1.02, 0.01, 0.05])
    camera = Camera.framing((low, high), aspect=aspect)
    corners = low + (CUBE + 0.5) * (high - low)
    local = (corners - camera.position) @ camera.axes().T
    seen = local[:, :2] / local[:, 2:] / np.tan(np.radians(camera.fov) / 2) / (aspect, 1)
    assert np.abs(seen).max() == pytest.approx(1 / 1.12, rel=1e-3)
    np.testing.assert_allclose(seen.max(axis=0) + seen.min(axis=0), 0, atol=0.02)


def test_colormap():
    colors = colormap([0, 1, 2, 5, np.nan], 0, 2)
    assert colors.shape == (5, 3) and colors.dtype == np.float32
    np.testing.assert_array_equal(colors[2], colors[3])
    np.testing.assert_array_equal(colors[0], colors[4])
    assert np.all(np.diff(colormap(np.arange(9), name="water").sum(axis=1)) > 0)
    assert colormap(np.ones(4)).shape == (4, 3) and colormap(np.zeros(0)).shape == (0, 3)
    with pytest.raises(PliantError, match="did you mean 'viridis'"):
        colormap([1], name="virdis")


def test_normals_keep_sharp_edges_and_smooth_round_ones():
    cube = corner_normals(CUBE.astype(np.float32), CUBE_FACES)
    np.testing.assert_allclose(np.abs(cube).max(axis=1), 1, atol=1e-6)
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    ring = np.array([[np.cos(a), y, np.sin(a)] for a in angles for y in (0, 1)], np.float32)
    faces = np.array([[2 * i, 2 * i + 1, (2 * i + 2) % 48] for i in range(24)])
    faces = np.concatenate([faces, [[2 * i + 1, (2 * i + 3) % 48, (2 * i + 2) % 48] for i in range(24)]])
    cosine = np.abs((corner_normals(ring, faces) * (ring * (1, 0, 1))[faces.reshape(-1)]).sum(axis=1))
    assert cosine.min() > np.cos(np.radians(6))


def test_wrong_shapes_are_named():
    with pytest.raises(PliantError, match=r"Points\.x must have shape \(n, 3\)"):
        Points(np.zeros((4, 2)), 0.1)


def seen_at(camera, points, width, height):
    """Columns and rows at which a camera sees points."""
    local = (np.asarray(points, float) - camera.position) @ camera.axes().T
    scale = height / 2 / np.tan(np.radians(camera.fov) / 2)
    return width / 2 + scale * local[:, 0] / local[:, 2], height / 2 - scale * local[:, 1] / local[:, 2]


def inside_hull(points, width, height):
    """Which pixels lie in the convex hull of points (n, 2)."""
    y, x = np.mgrid[:height, :width] + 0.5
    return (Delaunay(points).find_simplex(np.stack([x, y], -1).reshape(-1, 2)) >= 0).reshape(height, width)


def test_glass_is_seen_inside_its_outline_only(renderer):
    camera = Camera.framing(((-0.5,) * 3, (0.5,) * 3), aspect=WIDTH / HEIGHT, margin=1.4)
    ball = [Points(np.zeros((1, 3)), 0.3, RED)]
    bare = renderer.render(Picture(camera, ball)).astype(int)
    glazed = renderer.render(Picture(camera, ball, glass=[Surface(CUBE, CUBE_FACES)])).astype(int)
    changed = np.abs(glazed - bare).max(axis=-1) > 0
    hull = inside_hull(np.stack(seen_at(camera, CUBE, WIDTH, HEIGHT), axis=1), WIDTH, HEIGHT)
    assert not changed[~binary_dilation(hull, iterations=2)].any()
    assert changed[binary_erosion(hull, iterations=2)].mean() > 0.95
    middle = glazed[HEIGHT // 2, WIDTH // 2]
    assert middle[0] > middle[1:].max() + 60, "the ball is seen through the glass"
    again = renderer.render(Picture(camera, ball, glass=[Surface(CUBE, CUBE_FACES)]))
    np.testing.assert_array_equal(again, glazed)


def test_glass_around_the_camera(renderer):
    picture = Picture(Camera((0, 0, 0.1), (0, 0, -5)), glass=[Surface(4 * CUBE, CUBE_FACES)])
    bare = renderer.render(Picture(picture.camera)).astype(int)
    changed = np.abs(renderer.render(picture).astype(int) - bare).max(axis=-1) > 0
    assert changed.mean() > 0.95, "the far walls fill the picture"


def test_gloss_adds_highlights(renderer):
    angles = np.linspace(0, np.pi, 40)[:, None], np.linspace(0, 2 * np.pi, 80)[None]
    unit_ = np.stack(np.broadcast_arrays(np.sin(angles[0]) * np.cos(angles[1]), np.cos(angles[0]),
                                         np.sin(angles[0]) * np.sin(angles[1])), -1).reshape(-1, 3)  # fmt: skip
    quads = np.array(
        [[80 * i + j, 80 * i + j + 1, 80 * i + j + 81, 80 * i + j + 80] for i in range(39) for j in range(79)]
    )
    faces = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    matte, wet = (
        renderer.render(Picture(FRONT, surfaces=[Surface(unit_, faces, BLUE, unit_, gloss)])) for gloss in (0.0, 1.0)
    )
    ball = binary_erosion(strongest(matte) == 2, iterations=2)  # without the pixels that show some background
    assert ball.sum() > 500
    assert matte[ball][:, 0].max() < 40 and wet[ball][:, 0].max() > 120, "a white highlight on blue"


def test_meshes_that_blew_up_lose_only_those_faces():
    vertices = CUBE.copy()
    vertices[0] = np.nan
    surface = Surface(vertices, CUBE_FACES)
    assert np.isfinite(surface.vertices).all() and len(surface.faces) == (CUBE_FACES != 0).all(axis=1).sum()


@pytest.mark.parametrize("name", COLOR_MAPS)
def test_the_bar_shows_the_map(name):
    image = overlay(np.full((720, 1280, 3), 128, np.uint8), Picture(FRONT, bar=Bar("pressure [Pa]", 0, 5e4, (name,))))
    wanted = (255 * colormap(np.linspace(0, 1, 300), 0, 1, name) + 0.5).astype(np.uint8)
    starts = [(row, column) for row in range(560, 700) for column in range(20, 80)
              if (image[row, column : column + 300] == wanted).all()]  # fmt: skip
    assert len(starts) == 14, "fourteen rows of the colours, from low to high"
    changed = (image != 128).any(axis=-1)
    assert changed.mean() < 0.04, "it covers little of the picture"


def test_text_is_left_out_where_there_is_no_room():
    picture = Picture(FRONT, bar=Bar("speed [m/s]", 0, 1), title="Dam break", clock="t = 0.10 s")
    small = np.full((120, 160, 3), 90, np.uint8)
    assert overlay(small, picture) is small
    for shape in ((200, 200), (1280, 720), (201, 1999), (240, 427)):
        assert overlay(np.full((*shape, 3), 90, np.uint8), picture).shape == (*shape, 3)


def test_ticks_are_round():
    assert ticks(0, 2.66) == pytest.approx([0, 0.5, 1, 1.5, 2, 2.5])
    assert ticks(-3, 3) == pytest.approx([-2, 0, 2])
    assert ticks(0, 5000) == pytest.approx([0, 1000, 2000, 3000, 4000, 5000])
    assert ticks(997.3, 1003.1) == pytest.approx([998, 1000, 1002])
    assert scaled("pressure [Pa]", 0, 25_000) == ("pressure [kPa]", 1e3)
    assert scaled("density [kg/m^3]", 0, 1000) == ("density [kg/m^3]", 1.0)
    assert scaled("shear [1/s]", 0, 3e6) == ("shear [10^6 1/s]", 1e6)
    assert scaled("mass", 0, 2e-5) == ("mass [10^-6]", 1e-6)


def test_fields_by_name():
    fields = {
        "velocity": np.array([[3.0, 4, 0], [0, 0, -2]]),
        "pressure": np.array([1.0, 2]),
        "q_x": np.array([7.0, 8]),
    }
    fields["stress"] = np.arange(18.0).reshape(2, 3, 3)
    for name, wanted in (("speed", [5, 2]), ("velocity", [5, 2]), ("velocity.x", [3, 0]), ("velocity_z", [0, -2]),
                         ("pressure", [1, 2]), ("q_x", [7, 8]), ("stress.xy", [1, 10])):  # fmt: skip
        np.testing.assert_allclose(scalar(fields, name), wanted)
    assert scalar(fields, "presure") is None and scalar(fields, "pressure.x") is None
    sentence = str(no_such_field("presure", fields))
    assert "did you mean 'pressure'?" in sentence and "speed" in sentence and "velocity" in sentence
    assert label("velocity.x", unit({"velocity": "m/s"}, "velocity.x")) == "velocity x [m/s]"
    assert label("speed", unit({"velocity": "m/s"}, "speed")) == "speed [m/s]"


def test_ranges_leave_outliers_out():
    values = np.append(np.linspace(-1, 2, 1000), [1e9, np.nan])
    low, high = robust_range([values])
    assert -1 <= low < -0.9 and 1.9 < high <= 2
    low, high = robust_range([values], diverging=True)
    assert low == -high
    assert robust_range([np.full(5, 3.0)]) == (1.5, 4.5) and robust_range([]) == (-0.5, 0.5)


def test_looks_tell_their_mistakes():
    assert Look().problems() == []
    found = Look(colr="speed", fluid="sphere", low=2, supersample=9).problems()
    assert any("did you mean 'color'?" in s for s in found)
    assert any("did you mean 'spheres'?" in s for s in found)
    assert any("supersample must be in [1, 4]" in s for s in found)
    assert "low must be below high" in Look(low=2, high=1).problems()[0]


@pytest.mark.parametrize("aspect", [0.5, 16 / 9])
def test_an_orbit_keeps_the_scene_in_view(aspect):
    bounds, orbit = np.array([[0, 0, 0], [3, 1, 1.0]]), Orbit(speed=30, start=0)
    corners = bounds[0] + (CUBE + 0.5) * (bounds[1] - bounds[0])
    largest = 0.0
    for time in range(12):
        camera = orbit.at(time, bounds, aspect)
        x, y = seen_at(camera, corners, aspect, 1.0)
        assert x.min() > 0 and x.max() < aspect and y.min() > 0 and y.max() < 1
        largest = max(largest, np.ptp(x) / aspect, np.ptp(y))
        turned = np.subtract(camera.position, camera.target)
        assert np.degrees(np.arctan2(turned[0], turned[2])) % 360 == pytest.approx(30 * time, abs=1e-6)
    assert largest > 0.6
    assert orbit.problems() == []
    assert "radius must be in (0, inf)" in Orbit(radius=-1).problems()[0]


def test_a_camera_path_passes_its_keys():
    keys = [
        (0.0, Camera((0, 0, 5), (0, 0, 0))),
        (1.0, Camera((5, 1, 0), (0, 1, 0), fov=30)),
        (3.0, Camera((0, 2, -5), (0, 0, 0))),
    ]
    path = CameraPath(keys)
    assert path.problems() == []
    for time, key in [*keys, (-1.0, keys[0][1]), (9.0, keys[2][1])]:
        camera = path.at(time, None, 1.0)
        np.testing.assert_allclose(
            [*camera.position, *camera.target, camera.fov], [*key.position, *key.target, key.fov]
        )
    heights = [path.at(t, None, 1.0).position[1] for t in np.linspace(0, 3, 50)]
    assert (np.diff(heights) > -1e-9).all(), "it does not swing beyond its keys"
    assert CameraPath([(1, keys[0][1])]).at(5, None, 1).position == (0, 0, 5)
    for wrong, sentence in (([], "at least one"), ([(1, 2)], "pairs"), (3, "pairs"), (keys[::-1], "must rise")):
        assert sentence in CameraPath(wrong).problems()[0]


def test_cameras_and_lights_tell_their_mistakes():
    assert FRONT.problems() == [] and Light((0, 1, 0)).problems() == []
    assert "must differ" in Camera((0, 0, 0), (0, 0, 0)).problems()[0]
    assert "fov must be in" in Camera((0, 0, 1), (0, 0, 0), fov=190).problems()[0]
    assert "up must not" in Camera((0, 5, 0), (0, 0, 0)).problems()[0]
    assert "position must be three" in Camera((0, 5), (0, 0, 0)).problems()[0]
    assert "direction must be" in Light((0, 0, 0)).problems()[0]


def test_caps_of_a_cylinder_are_flat_and_its_side_is_round():
    import pliant as pl

    vertices, faces = pl.Cylinder(radius=1, height=1).triangles()
    normals, corners = corner_normals(vertices.astype(np.float32), faces), vertices[faces.reshape(-1)]
    cap = np.abs(normals[:, 1]) > 0.9
    np.testing.assert_allclose(np.abs(normals[cap, 1]), 1, atol=1e-5)
    radial = corners[~cap] * (1, 0, 1)
    assert ((normals[~cap] * radial).sum(axis=1) / np.linalg.norm(radial, axis=1)).min() > np.cos(np.radians(2))
