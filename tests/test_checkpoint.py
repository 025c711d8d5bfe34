"""Saved, loaded and continued equals never paused, to the last bit; and no damaged file is taken for a state."""

import json
import os
import zipfile

import numpy as np
import pytest

import pliant as pl
from pliant.scene import serialisation
from pliant.sim import checkpoint


def tank(**settings):
    scene = pl.Scene(particle_radius=0.05, **settings)
    scene.add(pl.Box(size=(1, 1, 1), center=(0.5, 0.5, 0.5)), pl.Boundary(inside_out=True, friction=0.2), name="tank")
    return scene


def splash(**fluid):
    scene = tank()
    scene.add(pl.Sphere(radius=0.2, center=(0.4, 0.6, 0.5)), pl.Fluid(**fluid), name="drop", velocity=(0.3, -1, 0.1))
    scene.add(pl.Box(size=(1, 0.3, 1), center=(0.5, 0.15, 0.5)), pl.Fluid(density=800), name="pool")
    return scene


# --- exact restart ----------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [0, 1, 2, 13])
@pytest.mark.parametrize("fluid", [{}, {"viscosity": 0.5, "viscosity_solver": "implicit"}, {"surface_tension": 0.07},
                                   {"viscosity": 0.01, "viscosity_solver": "explicit"}])  # fmt: skip
def test_every_solver_goes_on_exactly_from_any_step(steps, fluid, tmp_path, assert_same_state):
    one = splash(**fluid).build()
    for _ in range(steps):
        one.step()
    one.save(tmp_path / "state.npz")
    other = pl.load(tmp_path / "state.npz")
    for sim in (one, other):
        for _ in range(12):
            sim.step()
    assert_same_state(one, other)


def test_a_state_from_the_middle_of_a_frame_goes_on_exactly(tmp_path, assert_same_state):
    one = splash().build()
    frames = one.frames_between(0.0, 30, range(1, 6))
    one.watchers.append(lambda sim: sim.step_count != 9)
    list(frames)
    assert one.step_count == 9 and one.time * 30 % 1 > 0.01
    one.save(tmp_path / "state.npz")
    one.watchers.clear()
    done = int(one.time * 30)
    other = pl.load(tmp_path / "state.npz")
    times = [[frame.time for frame in sim.frames_between(0.0, 30, range(done + 1, 6))] for sim in (one, other)]
    assert times[0] == times[1] == [k / 30 for k in range(done + 1, 6)]
    assert_same_state(one, other)


def test_fixed_and_led_particles_periods_and_notes_are_kept(tmp_path, assert_same_state):
    def build():
        scene = pl.Scene(particle_radius=0.05, gravity=(0.5, -9.81, 0), periodic=(1.2, None, 1.2), cfl=0.3)
        scene.add(pl.Plane(point=(0, 0, 0), normal=(0, 1, 0)), pl.Boundary(friction=0.3), name="floor")
        water = scene.add(pl.Box(size=(1.2, 0.4, 1.2), center=(0.6, 0.2, 0.6)), pl.Fluid(viscosity=1e-3), name="water")
        water.fix(lambda x: x[:, 1] < 0.1)
        block = scene.add(pl.Box(size=(0.3, 0.3, 0.3), center=(0.65, 0.35, 0.65)), pl.Fluid(), name="stirrer")
        block.move(lambda t: ((0, 0, 0), (0, 3 * np.sin(9 * t), 0)))
        return scene

    one = build().build()
    one.run(0.05)
    one.save(tmp_path / "state.npz")
    other = pl.load(tmp_path / "state.npz", scene=build())
    assert other.notes == one.notes != []
    for sim in (one, other):
        sim.run(0.05)
    assert_same_state(one, other)
    assert one.prescribed.pivots.tobytes() == other.prescribed.pivots.tobytes()


def test_fixed_particles_stay_fixed_without_the_script(tmp_path, assert_same_state):
    scene = splash()
    scene.bodies[2].fix(lambda x: x[:, 0] < 0.3)
    one = scene.build()
    one.step()
    one.save(tmp_path / "state.npz")
    other = pl.load(tmp_path / "state.npz")
    before = other["pool"].x
    for sim in (one, other):
        sim.run(0.03)
    assert_same_state(one, other)
    held = (other["pool"].x == before).all(axis=1)
    assert 0 < held.sum() < len(held)
    other.save(tmp_path / "again.npz")
    assert_same_state(pl.load(tmp_path / "again.npz"), other)


def test_what_views_and_stats_show_is_kept(tmp_path):
    one = splash().build()
    one.run(0.03)
    one.save(tmp_path / "state.npz")
    other = pl.load(tmp_path / "state.npz")
    for name in ("x", "v", "density", "pressure", "mass", "volume"):
        assert getattr(one["pool"], name).tobytes() == getattr(other["pool"], name).tobytes(), name
    assert other.stats.iterations == one.stats.iterations and other.stats.energy == one.stats.energy
    assert other.stats.mean_density_error == one.stats.mean_density_error > 0


def test_shapes_and_meshes_come_back_without_their_files(tmp_path, assert_same_state):
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + ["f " + " ".join(str(k + 1) for k in f) for f in faces]
    (tmp_path / "cube.obj").write_text("\n".join(lines))
    scene = tank(pressure=pl.DFSPH(max_density_error=5e-4), gravity=np.array([0, -5.0, 0]))
    mesh = pl.Mesh(str(tmp_path / "cube.obj"), scale=0.3, center=(0.5, 0.3, 0.5))
    scene.add((mesh - pl.Sphere(radius=0.1, center=(0.5, 0.45, 0.5))).rotate("y", 20), pl.Boundary(), name="rock")
    scene.add(pl.Cylinder(radius=0.3, height=0.3, center=(0.5, 0.75, 0.5)), pl.Fluid(), name="water", colors="viridis")
    scene.camera = pl.Camera(position=(2, 1, 3), target=(0.5, 0.5, 0.5))
    one = scene.build()
    one.run(0.02)
    one.save(tmp_path / "state.npz")
    (tmp_path / "cube.obj").unlink()
    other = pl.load(tmp_path / "state.npz")
    assert [type(b.shape).__name__ for b in other.scene.bodies] == [type(b.shape).__name__ for b in scene.bodies]
    assert other.scene.bodies[2].colors == "viridis" and other.scene.camera == scene.camera
    for sim in (one, other):
        sim.run(0.02)
    assert_same_state(one, other)


# --- refusals ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "state.npz"
    sim = splash().build()
    sim.step()
    sim.save(path)
    return path


def refusal(path, **more):
    with pytest.raises(pl.PliantError) as error:
        pl.load(path, **more)
    (sentence,) = str(error.value).splitlines()
    return sentence


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.7, 0.99, 0.9999])
def test_a_truncated_file_is_refused(saved, tmp_path, share):
    whole = saved.read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: int(share * len(whole))])
    assert "cut.npz is" in refusal(tmp_path / "cut.npz")


@pytest.mark.parametrize("place", np.linspace(0.002, 0.998, 24))
def test_a_flipped_byte_is_noticed(saved, tmp_path, place):
    whole = bytearray(saved.read_bytes())
    whole[int(place * len(whole))] ^= 0x55
    (tmp_path / "bad.npz").write_bytes(whole)
    try:
        loaded = checkpoint.read(tmp_path / "bad.npz")
    except pl.PliantError as error:
        assert "bad.npz" in str(error)
    else:  # a byte of the zip's own tables that nobody reads
        good = checkpoint.read(saved)
        assert all(np.array_equal(good.arrays[name], loaded.arrays[name]) for name in good.arrays)


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 but no more", b"\x93NUMPY\x01\x00", bytes(1000)])
def test_a_foreign_file_is_refused(tmp_path, content):
    (tmp_path / "state.npz").write_bytes(content)
    assert "state.npz is" in refusal(tmp_path / "state.npz")


def test_somebody_elses_npz_is_refused(tmp_path):
    np.savez(tmp_path / "mine.npz", x=np.zeros(3))
    assert refusal(tmp_path / "mine.npz").endswith("mine.npz is not a checkpoint of Pliant")
    np.savez(tmp_path / "mine.npz", header=np.frombuffer(b'{"format": "else"}', np.uint8))
    assert refusal(tmp_path / "mine.npz").endswith("mine.npz is not a checkpoint of Pliant")
    np.savez(tmp_path / "mine.npz", header=np.array([{"a": 1}], dtype=object))  # a pickle, which is never opened
    assert "mine.npz is damaged" in refusal(tmp_path / "mine.npz")


def with_header(saved, path, change):
    """The same checkpoint with another header."""
    with np.load(saved) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(arrays.pop("header").tobytes())
    change(header)
    if "checksum" in header:
        header.pop("checksum")
        header["checksum"] = checkpoint._checksum(header, arrays)
    np.savez(path, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)


def test_a_newer_format_is_refused(saved, tmp_path):
    with_header(saved, tmp_path / "new.npz", lambda header: header.update(version=checkpoint.VERSION + 1))
    assert "was saved by a newer Pliant" in refusal(tmp_path / "new.npz")
    with_header(saved, tmp_path / "odd.npz", lambda header: header.update(version="two"))
    assert "was saved by a newer Pliant" in refusal(tmp_path / "odd.npz")


def test_a_changed_number_is_noticed(saved, tmp_path):
    with np.load(saved) as file:
        arrays = {name: file[name] for name in file.files}
    arrays["particles/x"][3, 1] += 1e-3
    np.savez(tmp_path / "edited.npz", **arrays)
    assert "edited.npz is damaged: its checksum does not fit its contents" in refusal(tmp_path / "edited.npz")


def test_an_unknown_material_is_refused(saved, tmp_path):
    def change(header):
        header["scene"]["bodies"][1]["material"]["class"] = "Slime"

    with_header(saved, tmp_path / "slime.npz", change)
    assert "class 'Slime' of pliant.materials.fluid, which this program" in refusal(tmp_path / "slime.npz")


def test_a_class_is_not_taken_for_another_of_its_name(saved):
    class Fluid(pl.Fluid):
        """Not the one that was saved."""

    assert type(pl.load(saved).scene.bodies[1].material) is pl.Fluid and Fluid is not pl.Fluid


@pytest.mark.parametrize("path", [None, 3, b"state.npz", "", "a\0b"])
def test_what_is_not_a_file_name(path):
    assert "a file name is needed" in refusal(path)
    with pytest.raises(pl.PliantError, match="a file name is needed"):
        splash().build().save(path)


def test_what_is_not_a_scene(saved):
    assert "scene must be a pl.Scene, got 3" in refusal(saved, scene=3)


def test_links_are_followed_and_devices_left_alone(tmp_path):
    sim = splash().build()
    (tmp_path / "real.npz").touch()
    (tmp_path / "link.npz").symlink_to(tmp_path / "real.npz")
    sim.save(tmp_path / "link.npz")
    assert (tmp_path / "link.npz").is_symlink() and pl.load(tmp_path / "real.npz").particles == sim.particles
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(pl.PliantError, match="it is not an ordinary file"):
        sim.save(tmp_path / "pipe.npz")
    with pytest.raises(pl.PliantError, match="it is a folder"):
        sim.save(tmp_path)


def test_fields_of_another_version_are_refused(saved, tmp_path):
    with np.load(saved) as file:
        arrays = {name: file[name] for name in file.files if name != "particles/p"}
    header = json.loads(arrays.pop("header").tobytes())
    header.pop("checksum")
    header["checksum"] = checkpoint._checksum(header, arrays)
    np.savez(tmp_path / "old.npz", header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)
    assert "does not hold the field 'p'" in refusal(tmp_path / "old.npz")


def test_missing_and_unreadable_files(tmp_path):
    assert "No such file" in refusal(tmp_path / "none.npz")
    assert "directory" in refusal(tmp_path)


def test_functions_have_to_be_given_again(tmp_path):
    scene = splash()
    scene.bodies[0].move(lambda t: (0, 0, 0))
    scene.on_step(lambda sim: None)
    sim = scene.build()
    sim.save(tmp_path / "state.npz")
    sentence = refusal(tmp_path / "state.npz")
    assert "the motion of 'tank' and an on_step callback" in sentence and "scene=scene" in sentence
    assert pl.load(tmp_path / "state.npz", scene=scene).particles == sim.particles


@pytest.mark.parametrize(("change", "phrase"), [
    (lambda s: s.add(pl.Sphere(radius=0.1), pl.Boundary(), name="more"), "its bodies were tank, drop, pool and are"),
    (lambda s: setattr(s.bodies[1], "material", pl.Fluid(viscosity=1)), "drop.material.viscosity was 1e-06 and is 1"),
    (lambda s: setattr(s.bodies[1], "shape", pl.Box(size=(1, 1, 1))), "drop.shape was a Sphere and is a Box"),
    (lambda s: setattr(s.bodies[2], "velocity", (1, 0, 0)), "pool.velocity was"),
    (lambda s: setattr(s, "settings", pl.Scene(particle_radius=0.04).settings), "particle_radius was 0.05 and is 0.04"),
])  # fmt: skip
def test_another_scene_is_refused(saved, change, phrase):
    scene = splash()
    change(scene)
    assert phrase in refusal(saved, scene=scene)


def test_a_file_from_before_a_body_had_a_parameter_is_the_same_scene():
    tree, arrays = serialisation.describe(tank())
    older = json.loads(json.dumps(tree))
    for entry in older["bodies"]:
        del entry["sampling"]
    assert serialisation.differences(older, arrays, tree, arrays) == []
    older["bodies"][0]["velocity"] = [1.0, 0.0, 0.0]
    assert len(serialisation.differences(older, arrays, tree, arrays)) == 1


def test_a_full_disk_leaves_the_older_checkpoint(saved, tmp_path, monkeypatch):
    path = tmp_path / "state.npz"
    path.write_bytes(saved.read_bytes())

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(pl.PliantError, match="No space left on device"):
        splash().build().save(path)
    monkeypatch.undo()
    assert pl.load(path).step_count == 1 and [p.name for p in tmp_path.iterdir()] == ["state.npz"]


def test_a_checkpoint_is_an_ordinary_npz(saved):
    with zipfile.ZipFile(saved) as archive:
        assert archive.testzip() is None
    with np.load(saved, allow_pickle=False) as file:
        assert file["particles/x"].shape[1] == 3
