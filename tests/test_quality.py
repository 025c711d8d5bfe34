"""The quality of a filling: closed forms of lattices, a twin in plain loops, and the command that reports it."""

import hashlib
import json
import math
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import pliant as pl
from pliant.commands import cli, sample_picture
from pliant.commands import sample as sample_mesh
from pliant.core.smoothing import SMOOTHINGS
from pliant.errors import PliantError
from pliant.geometry import Quality, sample_regular
from pliant.geometry.quality import FLAT, Spread, relative_radius, surface_points
from pliant.io import TriMesh, read_cloud, write_mesh
from pliant.render import available

D = 0.1  # spacing [m]
CUBIC = SMOOTHINGS["cubic_spline"]
FIGURES = {"particles", "spacing", "density", "interior", "interior_particles", "corrected", "nearest", "neighbors",
           "coplanar", "collinear", "alone", "degenerate", "conditioning", "relative_radius", "surface",
           "surface_tail", "outside", "farthest_outside", "histograms"}  # fmt: skip


def lattice(n: int) -> tuple[np.ndarray, pl.Box]:
    """n^3 particles D apart, and the cube that they fill."""
    k = (np.arange(n) - (n - 1) / 2) * D
    return np.stack(np.meshgrid(k, k, k), -1).reshape(-1, 3), pl.Box(size=(n * D,) * 3)


def fcc(n: int) -> np.ndarray:
    """A cube of n^3 cells of a face-centred lattice whose nearest neighbors are D apart."""
    k = np.stack(np.meshgrid(*[np.arange(n)] * 3), -1).reshape(-1, 1, 3)
    cell = np.array([[0, 0, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]])
    return np.sqrt(2) * D * ((k + cell).reshape(-1, 3) - n / 2 + 0.25)


# --- closed forms -----------------------------------------------------------------------------------


def test_a_cubic_lattice_is_perfect_inside():
    x, cube = lattice(10)
    q = Quality.of(x, D**3, D, cube)
    assert q.particles == 1000 and q.interior_particles == 6**3
    assert q.interior.mean == pytest.approx(1.0, abs=1e-9) and q.interior.deviation < 1e-9
    assert q.nearest.mean == pytest.approx(1.0) and q.nearest.deviation < 1e-9
    assert q.neighbors.most == 26 and q.neighbors.least == 7  # the whole of 3^3 but itself; 2^3 at a corner
    assert q.relative_radius == pytest.approx(np.cbrt(np.sqrt(2)) / np.cbrt(2), abs=1e-9)  # 0.8909
    assert q.degenerate == 0 and q.outside == 0


def test_a_face_centred_lattice_is_the_densest():
    x = fcc(5)
    q = Quality.of(x, D**3 / np.sqrt(2), D, pl.Box(size=(5 * np.sqrt(2) * D,) * 3))
    assert q.relative_radius == pytest.approx(1.0, abs=1e-9)
    assert q.neighbors.most == 42  # 12 + 6 + 24 nearer than two spacings, 12 just there
    assert q.interior.mean == pytest.approx(0.99416 / 0.99997, abs=1e-4)  # sum over the lattice, by the cubic one's


def test_density_near_a_plane():
    """The first layer of a half-space lacks one plane of neighbors, which the correction gives back; half of W lies
    above a point of the surface, so a particle there should see about half of its density."""
    x, cube = lattice(14)
    q = Quality.of(x, D**3, D, cube)
    middle = np.abs(x[:, [0, 2]]).max(axis=1) < 4.6 * D
    top = middle & (x[:, 1] > 6.4 * D)
    assert top.sum() == 10**2
    assert np.allclose(q.values["density"][top], 1 - CUBIC.plane_sum(np.array([1.0])), atol=1e-9)
    assert np.allclose(q.values["corrected"][middle], 1.0, atol=1e-9)
    high = Quality.of(x + (0, 0.5 * D, 0), D**3, D, cube)  # now the layer lies in the surface
    assert np.allclose(high.values["corrected"][top], high.values["density"][top] / 0.5, rtol=0.03)
    edges = np.abs(x)[:, :2].min(axis=1) > 6.4 * D
    assert (q.values["corrected"][edges] < 0.9).all()  # an edge is no plane: it lacks more


def test_degenerate_neighborhoods_are_told_apart():
    k = np.arange(5) * D
    sheet = np.stack(np.meshgrid(k, k, [0.0]), -1).reshape(-1, 3)
    thread = np.stack([k, 0 * k, 0 * k], axis=1) + (0, 2, 0)
    block = np.stack(np.meshgrid(k, k, k), -1).reshape(-1, 3) + (0, 4, 0)
    x = np.concatenate([sheet, thread, [[0, 6, 0]], block])
    q = Quality.of(x, D**3, D, pl.Box(size=(2, 8, 2), center=(0, 3, 0)))
    assert (q.coplanar, q.collinear, q.alone) == (25, 5, 1)
    assert q.degenerate == 31
    assert q.conditioning.least == 0.0 and q.neighbors.least == 0


def test_a_nearly_flat_neighborhood_counts_as_flat():
    """Two sheets: the ratio of the eigenvalues rises with their distance, through the bound."""
    k = np.arange(7) * D
    sheet = np.stack(np.meshgrid(k, k, [0.0]), -1).reshape(-1, 3)
    ratios = []
    for gap in (0.2, 1.0):
        q = Quality.of(np.concatenate([sheet, sheet + (0, 0, gap * D)]), D**3, D, pl.Box(size=(2, 2, 2)))
        ratios.append(q.conditioning.least)
        assert q.coplanar == (98 if gap == 0.2 else 0) and q.collinear == q.alone == 0
    assert ratios[0] < FLAT < ratios[1]


def test_distance_from_the_surface():
    """Corners of a cube are sqrt(3)/2 spacings from a lattice's particles, faces sqrt(1/4 + x^2 + y^2)."""
    x, cube = lattice(8)
    q = Quality.of(x, D**3, D, cube)
    assert q.surface.most == pytest.approx(np.sqrt(3) / 2, abs=1e-9)
    u = (np.arange(200) + 0.5) / 200 - 0.5
    mean = np.sqrt(0.25 + u[:, None] ** 2 + u**2).mean()
    assert q.surface.mean == pytest.approx(mean, abs=2e-3)
    assert q.surface.mean < q.surface_tail < q.surface.most
    one = Quality.of([[0.0, 0.0, 0.0]], 1.0, 1.0, pl.Box(size=(2, 2, 2)))
    assert one.surface.most == pytest.approx(np.sqrt(3)) and one.surface.least == pytest.approx(1.0, abs=0.05)


def test_particles_outside():
    x, cube = lattice(6)
    moved = x + (0.75 * D, 0, 0)  # the last layer goes out by a quarter
    q = Quality.of(moved, D**3, D, cube)
    assert q.outside == 36 and q.farthest_outside == pytest.approx(0.25)
    assert q.surface.most > np.sqrt(3) / 2 + 0.2  # and the other side is left
    touching = Quality.of(x + (0.5 * D, 0, 0), D**3, D, cube)
    assert touching.outside == 0


def test_one_particle_and_none():
    q = Quality.of([[0, 0, 0]], 1.0, 1.0, pl.Box(size=(1, 1, 1)))
    assert (q.alone, q.neighbors.least) == (1, 0)
    assert q.density.mean == pytest.approx(float(CUBIC.W(np.zeros(1), 2.0)[0]))
    found = q.as_dict()
    assert found["nearest"]["mean"] is None and found["interior"]["mean"] is None and found["relative_radius"] is None
    json.dumps(found, allow_nan=False)
    with pytest.raises(PliantError, match="without particles"):
        Quality.of(np.zeros((0, 3)), 1.0, 1.0, pl.Box(size=(1, 1, 1)))


# --- against plain loops ----------------------------------------------------------------------------


def test_twin_in_plain_loops():
    rng = np.random.default_rng(3)
    x = rng.uniform(-0.3, 0.3, (250, 3))
    x[7] = x[8] + (1e-4, 0, 0)  # two at one place, nearly
    volume, shape = 0.6**3 / 250, pl.Sphere(radius=0.4)
    spacing = np.cbrt(volume)
    q = Quality.of(x, volume, spacing, shape, SMOOTHINGS["wendland_c2"])
    h = 2 * spacing

    def unscaled(r):
        return 21 / (2 * math.pi) / h**3 * max(1 - r / h, 0) ** 4 * (4 * r / h + 1)

    cells = range(-2, 3)
    norm = 1 / sum(spacing**3 * unscaled(spacing * math.hypot(a, b, c)) for a in cells for b in cells for c in cells)

    def w(r):
        return norm * unscaled(r)

    density, nearest, count, flat = [], [], [], {1: 0, 2: 0}
    for i in range(250):
        total, near, many, moment = w(0.0), math.inf, 0, np.zeros((3, 3))
        for j in range(250):
            if i == j:
                continue
            X = x[i] - x[j]
            r = math.sqrt(sum(X**2))
            near = min(near, r)
            if r < 0.999 * h:
                total += w(r)
                if r > 1e-3 * h:
                    many += 1
                    moment += volume * 20 * (1 - r / h) ** 3 * np.outer(X, X)  # -W' / r, but for the same factor
        values = np.linalg.eigvalsh(moment)
        rank = int((values > 0.1 * values[2]).sum())
        if rank < 3:
            flat[rank] += 1
        density.append(volume * total), nearest.append(near), count.append(many)
    assert np.allclose(q.values["density"], density, rtol=1e-6)
    assert np.allclose(q.values["nearest"] * spacing, nearest)
    assert (q.values["neighbors"] == count).all()
    assert (q.collinear, q.coplanar) == (flat[1], flat[2])
    assert q.relative_radius == pytest.approx(min(nearest) / 2 / (volume / (4 * math.sqrt(2))) ** (1 / 3))
    assert np.allclose(q.values["depth"] * spacing, 0.4 - np.linalg.norm(x, axis=1))


def test_surface_points_cover_all_triangles_alike():
    vertices = np.array([[0, 0, 0], [2, 0, 0], [0, 1, 0], [0, 0, 0.01], [5, 5, 5]], float)
    points, area = surface_points(vertices, np.array([[0, 1, 2], [0, 1, 3]]), 0.1)
    assert area.sum() == pytest.approx(1.0 + 0.01)
    assert (area[:4] == 0).all() and len(points) == 4 + 23**2 + 21**2  # sides of sqrt(5) and 2.00002 by 0.1
    first = points[4 + 21**2 :]
    assert np.allclose(first[:, 2], 0) and (first[:, 0] / 2 + first[:, 1] < 1).all()
    centroid = (np.array([2, 1, 0]) / 3 + 0.01 * np.array([2, 0, 0.01]) / 3) / 1.01
    assert np.allclose(np.average(points, axis=0, weights=area), centroid)


def test_spread_and_relative_radius():
    s = Spread.of(np.arange(101.0))
    assert (s.mean, s.least, s.low, s.high, s.most) == (50.0, 0.0, 1.0, 99.0, 100.0)
    assert s.deviation == pytest.approx(np.sqrt((101**2 - 1) / 12))
    assert relative_radius(1.0, 1.0) == pytest.approx(0.8909, abs=1e-4)
    bcc = relative_radius(np.sqrt(3) / 2, 0.5)
    assert bcc == pytest.approx(0.9721, abs=1e-4)


def test_figures_as_rows_and_json():
    x, volume = sample_regular(pl.Sphere(radius=0.5), D)
    q = Quality.of(x, volume, D, pl.Sphere(radius=0.5))
    found = json.loads(json.dumps(q.as_dict(), allow_nan=False))
    assert set(found) == FIGURES
    assert sum(found["histograms"]["nearest"]["counts"]) == len(x)
    assert found["density"]["mean"] == q.density.mean and found["degenerate"] == q.degenerate
    rows = {name.strip(): value for name, value, _ in q.rows()}
    assert rows["particles"] == f"{len(x):,}" and rows["density"].startswith(f"{q.density.mean:.4f}")


# --- the command ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def box(tmp_path_factory):
    """A file of a box of 1 x 0.8 x 0.6 m."""
    path = tmp_path_factory.mktemp("meshes") / "box.obj"
    write_mesh(path, TriMesh(*pl.Box(size=(1.0, 0.8, 0.6)).triangles()))
    return path


def call(*words, status=0):
    result = CliRunner().invoke(cli.app, ["sample", *map(str, words)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    assert result.exit_code == status, result.output
    return result.output


def refusal(*words):
    (line,) = call(*words, status=2).splitlines()
    assert line.startswith("pliant: ") and line.endswith((".", "?")), line
    return line


def test_particles_are_written_with_their_fields(box, tmp_path):
    told = call(box, "--radius", 0.05, "--sampling", "regular", "--format", "npz,ply,vtu,bgeo", "--out", tmp_path / "a")
    assert "480 particles of radius 0.05 m" in told
    names = {path.name for path in (tmp_path / "a").iterdir()}
    assert names == {f"box_regular.{ending}" for ending in ("npz", "ply", "vtu", "bgeo")}
    cloud = read_cloud(tmp_path / "a" / "box_regular.npz")
    quality = Quality.of(cloud.x, 1e-3, 0.1, pl.Box(size=(1.0, 0.8, 0.6)))
    assert np.allclose(cloud.fields["density_ratio"], quality.values["density"])
    assert np.array_equal(cloud.fields["neighbors"], quality.values["neighbors"])
    assert cloud.fields["volume"].sum() == pytest.approx(0.48)


def test_report_without_pictures(box, tmp_path, monkeypatch):
    """The histograms are drawn, and it says why the particles are not."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.setattr(sample_picture, "available", lambda: "no Vulkan driver was found")
    told = call(box, "--particles", 300, "--sampling", "regular", "--report", "--out", tmp_path)
    assert "no pictures of the particles: no Vulkan driver was found" in told
    assert "relative radius" in told and "Hausdorff distance" in told
    report = json.loads((tmp_path / "report.json").read_text())
    assert set(report) == {"command", "started", "versions", "platform", "arguments", "mesh", "samplings"}
    assert report["mesh"]["sha256"] == hashlib.sha256(box.read_bytes()).hexdigest()
    assert report["mesh"]["triangles"] == 12 and report["mesh"]["volume"] == pytest.approx(0.48)
    found = report["samplings"]["regular"]
    assert set(found["quality"]) == FIGURES and found["particles"] == found["quality"]["particles"]
    assert found["files"] == [str(tmp_path / "box_regular.vtu")]
    assert (tmp_path / "report.png").read_bytes()[:4] == b"\x89PNG"
    again = shlex.split(report["command"])
    assert again[:2] == ["pliant", "sample"]
    first = (tmp_path / "box_regular.vtu").read_bytes()
    (tmp_path / "box_regular.vtu").unlink()
    call(*again[2:])
    assert (tmp_path / "box_regular.vtu").read_bytes() == first


def test_all_samplings_side_by_side(box, tmp_path):
    told = json.loads(call(box, "--particles", 400, "--sampling", "all", "--json", "--seed", 3, "--out", tmp_path))
    assert list(told["samplings"]) == ["fitted", "regular", "blue_noise"]
    assert {path.stem for path in tmp_path.iterdir()} == {"box_fitted", "box_blue_noise", "box_regular"}
    for found in told["samplings"].values():
        assert found["particles"] == pytest.approx(400, rel=0.1)
        assert found["particles"] * found["volume_each"] == pytest.approx(0.48, rel=1e-6)
    assert told["arguments"]["seed"] == 3


@pytest.mark.skipif(available() is not None, reason=str(available()))
def test_report_with_pictures(box, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.setattr(sample_picture, "PIXELS", 240)
    call(box, "--particles", 300, "--sampling", "regular", "--report", "--quiet", "--out", tmp_path)
    with Image.open(tmp_path / "report.png") as picture:
        pixels = np.asarray(picture.convert("RGB")).astype(int)
    mesh = pixels[150:600, 20:500]
    clay = (np.abs(mesh - mesh.max(axis=2, keepdims=True)).max(axis=2) > 5) & (mesh.max(axis=2) < 245)
    assert clay.mean() > 0.2  # a brownish box where the mesh is
    balls = pixels[650:950, 20:340]
    assert (balls.min(axis=2) < 200).mean() > 0.1


def test_quiet_says_nothing(box, tmp_path):
    assert call(box, "--particles", 50, "--sampling", "regular", "--quiet", "--out", tmp_path) == ""
    assert (tmp_path / "box_regular.vtu").exists()


def test_scale_and_usual_count(box, tmp_path):
    told = json.loads(call(box, "--scale", 10, "--sampling", "regular", "--json", "--out", tmp_path))
    assert told["mesh"]["volume"] == pytest.approx(480.0)
    assert told["samplings"]["regular"]["particles"] == pytest.approx(10_000, rel=0.02)


def test_unit_and_up(box, tmp_path):
    words = ["--unit", "mm", "--up", "z", "--particles", 200, "--sampling", "regular"]
    told = json.loads(call(box, *words, "--json", "--out", tmp_path))
    assert np.allclose(np.ptp(told["mesh"]["bounds"], axis=0), (1e-3, 0.6e-3, 0.8e-3))
    assert "--unit mm --up z" in told["command"]
    assert "unit must be one of m, cm, mm" in refusal(box, "--unit", "mile")


@pytest.mark.parametrize(("words", "told"), [
    (["--radius", "0.05", "--particles", "9"], "--radius and --particles exclude each other"),
    (["--radius", "0"], "--radius must be a positive number of metres, got 0.0"),
    (["--radius", "nan"], "--radius must be a positive number of metres"),
    (["--radius", "1"], "a particle of --radius 1 m is larger than box.obj, which is 1 x 0.8 x 0.6 m"),
    (["--radius", "1e-5"], "--radius 1e-05 m would make 6e+13 particles in box.obj"),
    (["--particles", "0"], "--particles must lie between 1 and 100,000,000, got 0"),
    (["--scale", "-1"], "--scale must be a positive number of times, got -1.0"),
    (["--seed", "-1"], "--seed must be a whole number from 0 to 4294967295, got -1"),
    (["--sampling", "regulr"], "unknown sampling 'regulr'; did you mean 'regular'?"),
    (["--format", "obj"], "unknown format 'obj'"),
    (["--particles", "50", "--sampling", "regular", "--out", "/proc/here"], "cannot write /proc/here/box_regular.vtu"),
])  # fmt: skip
def test_mistakes_get_a_sentence(box, words, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert told in refusal(box, *words)
    assert not Path("out").exists()


def test_what_is_no_mesh(tmp_path):
    assert "there is no file" in refusal(tmp_path / "none.obj")
    (tmp_path / "text.txt").write_text("hello")
    assert "unsupported ending 'txt'" in refusal(tmp_path / "text.txt")


def test_report_needs_matplotlib(box, tmp_path, monkeypatch):
    monkeypatch.setattr(sample_mesh, "missing_plots", lambda: "--report draws with matplotlib, which is not installed")
    assert "matplotlib" in refusal(box, "--report", "--out", tmp_path / "none")
    assert not (tmp_path / "none").exists()
