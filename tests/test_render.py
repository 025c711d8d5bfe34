"""Pictures: what is drawn is where it should be, in the colour it should have."""

import os
import subprocess
import sys

import numpy as np
import pytest

from pliant.errors import PliantError
from pliant.render import Camera, Lines, Picture, Points, Renderer, Surface, available, box_edges, colormap
from pliant.render.cull import visible
from pliant.render.mesh import corner_normals

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


def test_renderers_take_turns_and_save(renderer, tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    picture = Picture(FRONT, [Points(np.zeros((1, 3)), 0.5, RED)])
    before = renderer.render(picture)
    other = Renderer(64, 48, supersample=1)
    other.save(tmp_path / "a.png", picture)
    assert np.asarray(image_module.open(tmp_path / "a.png")).shape == (48, 64, 3)
    np.testing.assert_array_equal(renderer.render(picture), before)


def test_without_a_driver_there_is_one_sentence():
    code = "from pliant.render import available; print(available())"
    environment = os.environ | {"VK_ICD_FILENAMES": "/nonexistent", "VK_DRIVER_FILES": "/nonexistent"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
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
