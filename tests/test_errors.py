"""Hostile input: whatever is wrong with a scene is told in sentences, all at once, before any work."""

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

import pliant as pl
from pliant.scene import assembly

NAN, INF = math.nan, math.inf
MIDDLE = (0.5, 0.5, 0.5)
SMALL = pl.Box(size=(0.4, 0.4, 0.4), center=MIDDLE)


def tank(**settings):
    """A scene with a container and nothing in it."""
    scene = pl.Scene(**{"particle_radius": 0.05, **settings})
    scene.add(pl.Box(size=(1, 1, 1), center=MIDDLE), pl.Boundary(inside_out=True), name="tank")
    return scene


def filled(**settings):
    scene = tank(**settings)
    return scene, scene.add(SMALL, pl.Fluid(), name="water")


def problems(scene):
    """What `build` says, after checking that each problem is one clear sentence."""
    with pytest.raises(pl.SceneError) as caught:
        scene.build()
    for sentence in caught.value.problems:
        assert "\n" not in sentence and "Traceback" not in sentence and 10 < len(sentence) < 300
    return caught.value.problems


def cheaply(scene, monkeypatch):
    """The problems, which must be found without a look at single points of the shapes or of space."""

    def refuse(*arguments, **more):
        raise AssertionError("the work had begun")

    with monkeypatch.context() as patch:
        for shape in (pl.Box, pl.Sphere):
            patch.setattr(shape, "signed_distance", refuse)
        for name in ("fill_bodies", "build_wall"):
            patch.setattr(assembly, name, refuse)
        tracemalloc.start()
        try:
            found = problems(scene)
            assert tracemalloc.get_traced_memory()[1] < 10e6  # bytes, at most at any time
        finally:
            tracemalloc.stop()
    return found


def only(scene):
    (sentence,) = problems(scene)
    return sentence


def has(sentence, *parts):
    assert all(part in sentence for part in parts), sentence


# --- parameters -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "wrong", "right"), [
    (lambda: filled(particle_raduis=0.1)[0], "particle_raduis", "particle_radius"),
    (lambda: filled(pressure=pl.DFSPH(max_density_eror=0.1))[0], "max_density_eror", "max_density_error"),
    (lambda: added(pl.Box(sise=(1, 1, 1), size=(0.4, 0.4, 0.4)), pl.Fluid()), "sise", "size"),
    (lambda: added(SMALL, pl.Fluid(densty=1.0)), "densty", "density"),
    (lambda: added(SMALL, pl.Fluid(viscosity_solver="implict")), "implict", "implicit"),
    (lambda: added(SMALL, pl.Fluid(), velocty=(0, 0, 0)), "velocty", "velocity"),
    (lambda: added(pl.Cylinder(radius=0.1, heigth=0.1, height=0.1), pl.Fluid()), "heigth", "height"),
])  # fmt: skip
def test_unknown_names_are_refused_with_the_likeliest(make, wrong, right):
    has(only(make()), repr(wrong), f"did you mean {right!r}?")


def added(shape, material, **more):
    scene, _ = filled()
    scene.add(shape, material, **more)
    return scene


def test_an_unknown_parameter_of_a_boundary_names_the_body():
    has(only(added(SMALL, pl.Boundary(insideout=True), name="lid")), "lid: Boundary", "'insideout'", "'inside_out'")


@pytest.mark.parametrize("value", [NAN, INF, -INF, -1, 0, "0.05", None, True, [0.05], 1j, 1e-300, np.zeros(3)])
def test_a_bad_particle_radius(value):
    has(only(filled(particle_radius=value)[0]), "Scene: particle_radius must be", "got " + repr(value))


@pytest.mark.parametrize(("settings", "parts"), [
    ({"gravity": (0, -9.81)}, ("gravity must be three numbers", "(0, -9.81)")),
    ({"gravity": (0, NAN, 0)}, ("gravity must be three numbers", "nan")),
    ({"gravity": -9.81}, ("gravity must be three numbers", "got -9.81")),
    ({"pressure": "dfsph"}, ("pressure must be a pressure solver such as pl.DFSPH()", "'dfsph'")),
    ({"pressure": pl.DFSPH(max_iterations=2.5)}, ("DFSPH: max_iterations must be a whole number", "2.5")),
    ({"dt": -1}, ("dt must be in (0, 1] s", "-1")),
    ({"cfl": 2}, ("cfl must be in (0, 1], got 2",)),
    ({"min_dt": 0.1, "max_dt": 0.01}, ("min_dt must not exceed max_dt", "0.1 and 0.01")),
    ({"smoothing": "spikey"}, ("smoothing must be one of", "'spikey'", "did you mean 'spiky'?")),
    ({"periodic": (0.1, None, None)}, ("a period must be at least 0.6 m (12 particle radii)", "got 0.1")),
    ({"periodic": (-5, None, None)}, ("a period must be at least 0.6 m", "got -5")),
    ({"periodic": (1e30, None, None)}, ("a period must be", "at most 100000 m", "got 1e+30")),
    ({"periodic": (1, 1)}, ("a length or None for each of the three axes", "(1, 1)")),
    ({"periodic": ("1", None, None)}, ("a length or None for each of the three axes", "'1'")),
    ({"periodic": 3}, ("a length or None for each of the three axes", "got 3")),
])  # fmt: skip
def test_bad_settings(settings, parts):
    has(only(filled(**settings)[0]), *parts)


@pytest.mark.parametrize(("shape", "parts"), [
    (pl.Box(), ("Box: size is missing",)),
    (pl.Box(size=(1, 0, 1)), ("Box: size must be in (0, inf) m", "(1, 0, 1)")),
    (pl.Box(size=(1, -1, 1)), ("Box: size must be in (0, inf) m", "(1, -1, 1)")),
    (pl.Box(size=(1, NAN, 1)), ("Box: size must be three numbers", "nan")),
    (pl.Box(size=(1, INF, 1)), ("Box: size must be in (0, inf) m", "inf")),
    (pl.Box(size=1), ("Box: size must be three numbers", "got 1")),
    (pl.Box(size=("1", "1", "1")), ("Box: size must be three numbers", "('1', '1', '1')")),
    (pl.Box(size=(1, 1, 1), center=(0, INF, 0)), ("Box: center must be finite, got",)),
    (pl.Box(size="big"), ("Box: size must be three numbers", "'big'")),
    (pl.Box((1, 1, 1), (0, 0, 0), 3), ("Box takes at most 2 values, got 3",)),
    (pl.Box((1, 1, 1), size=(1, 1, 1)), ("Box got 'size' twice",)),
    (pl.Box(size=(1, 1, 1), center=(0, NAN, 0)), ("Box: center must be three numbers",)),
    (pl.Sphere(radius=-1), ("Sphere: radius must be in (0, inf) m", "-1")),
    (pl.Cylinder(radius=0.1, height=0.1, axis="w"), ("Cylinder: axis must be one of x, y, z", "'w'")),
    (pl.Torus(radius=0.1, tube=0.2), ("Torus: tube must be at most radius", "0.2")),
    (SMALL.translate("up"), ("Translated: offset must be three numbers", "'up'")),
    (SMALL.scale(0), ("Scaled: factor must be in (0, inf)", "got 0")),
    (SMALL & pl.Sphere(radius=0.1, center=(9, 9, 9)), ("do not overlap",)),
    (SMALL - pl.Box(size=(1, 1, 1), center=MIDDLE), ("smaller than one particle",)),
    (pl.Sphere(radius=0.01, center=MIDDLE), ("Sphere", "smaller than one particle", "use a smaller particle_radius")),
    (pl.Plane(), ("Plane is infinite and cannot be filled with particles",)),
    (pl.Plane(normal=(0, 0, 0)), ("Plane: normal must not be zero",)),
    (pl.Box(size=(1, 1, 1), center=(1e30, 0, 0)), ("1e+30 m from the origin", "single precision")),
    (None, ("it has no shape, and no emitter fills it",)),
    (pl.Box, ("first argument of add must be a shape such as pl.Box(...)", "class")),
])  # fmt: skip
def test_bad_shapes(shape, parts):
    has(only(added(shape, pl.Fluid(), name="drop")), "drop: ", *parts)


@pytest.mark.parametrize(("material", "parts"), [
    (pl.Fluid(density=0), ("Fluid: density must be in (0, 1e+06] kg/m^3", "got 0")),
    (pl.Fluid(density=INF), ("Fluid: density must be in", "got inf")),
    (pl.Fluid(density="water"), ("Fluid: density must be a number", "'water'")),
    (pl.Fluid(viscosity=-1), ("Fluid: viscosity must be in [0, 1000] m^2/s", "-1")),
    (pl.Boundary(inside_out=1), ("Boundary: inside_out must be True or False", "got 1")),
    (pl.Boundary(friction=NAN), ("Boundary: friction must be a number", "nan")),
    (pl.Fluid, ("second argument of add must be a material such as pl.Fluid(...)",)),
    ("water", ("second argument of add must be a material such as pl.Fluid(...)", "'water'")),
])  # fmt: skip
def test_bad_materials(material, parts):
    has(only(added(SMALL, material, name="drop")), "drop: ", *parts)


# --- bodies -----------------------------------------------------------------------------------------


def test_shape_and_material_swapped():
    has(only(added(pl.Fluid(), SMALL)), "first the shape and then the material")


@pytest.mark.parametrize("velocity", [(1, 2), (1, 2, NAN), "fast", ("1", "2", "3"), None, (1, (2, 3), 4), (1e30, 0, 0)])
def test_a_bad_velocity(velocity):
    has(only(added(SMALL, pl.Fluid(), name="drop", velocity=velocity)), "drop: velocity must be three numbers", "got ")


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "a/b", 3, ["a"], "a\nb", "x" * 200, ".hidden"])
def test_names_go_into_file_names(name):
    has(only(added(SMALL, pl.Fluid(), name=name)), "a name may hold up to 100 letters, digits", repr(name))


def test_two_bodies_of_one_name():
    has(only(added(SMALL, pl.Fluid(), name="water")), "two bodies are called 'water'; names must differ")


@pytest.mark.parametrize("scene", [pl.Scene(), tank()], ids=["no bodies", "no fluid"])
def test_nothing_to_simulate(scene):
    has(only(scene), "the scene has no particles", "pl.Fluid()")


def test_overlapping_bodies_are_carved_and_noted():
    scene, _ = filled()
    scene.add(pl.Box(size=(0.4, 0.4, 0.4), center=(0.7, 0.5, 0.5)), pl.Fluid(), name="more")
    sim = scene.build()
    assert sim.notes == ["more: 32 of 64 particles overlap water and were left out."]
    assert len(sim["more"]) == 32


def test_notes_are_printed_once_unless_it_is_to_be_quiet(capsys, tmp_path):
    scene, _ = filled()
    scene.add(pl.Box(size=(0.4, 0.4, 0.4), center=(0.7, 0.5, 0.5)), pl.Fluid(), name="more")
    note = "more: 32 of 64 particles overlap water and were left out."
    sim = scene.build()
    captured = capsys.readouterr()
    assert captured.err.count(note) == 1 and captured.out == ""
    sim.save(tmp_path / "state.npz")
    sim.change(gravity=(0, 0, 0))
    again = pl.load(tmp_path / "state.npz")
    quiet = scene.build(quiet=True)
    assert note not in capsys.readouterr().err
    assert sim.notes == again.notes == quiet.notes == [note]


@pytest.mark.parametrize(("center", "size", "told"), [
    (MIDDLE, 0.2, "drop: it lies wholly inside water; move it or leave it out"),
    ((5, 5, 5), 0.4, "drop: it lies wholly outside tank; move it or leave it out"),
])  # fmt: skip
def test_a_body_swallowed_whole_is_refused(center, size, told):
    assert only(added(pl.Box(size=(size,) * 3, center=center), pl.Fluid(), name="drop")) == told


def test_a_fluid_inside_an_obstacle_is_refused():
    scene = pl.Scene(particle_radius=0.05)
    scene.add(pl.Sphere(radius=3), pl.Boundary(), name="rock")
    scene.add(SMALL, pl.Fluid(), name="water")
    has(only(scene), "water: it lies wholly inside rock")


@pytest.mark.parametrize("shape", [pl.Box(size=(10, 10, 10)), pl.Sphere(radius=5)], ids=["box", "sphere"])
def test_more_particles_than_memory_are_refused_at_once(shape, monkeypatch):
    scene = pl.Scene(particle_radius=1e-6)
    scene.add(shape, pl.Fluid())
    has(cheaply(scene, monkeypatch)[-1], "particles", "GiB", "use a particle_radius of")


def test_a_wall_too_large_for_its_resolution_is_refused_at_once(monkeypatch):
    scene = pl.Scene(particle_radius=1e-5)
    scene.add(pl.Box(size=(100, 100, 100)), pl.Boundary(inside_out=True))
    scene.add(pl.Box(size=(1e-3, 1e-3, 1e-3)), pl.Fluid())
    (told,) = cheaply(scene, monkeypatch)
    has(told, "the walls need about", "GiB", "use a particle_radius of")


MESHES = {
    "missing.obj": (None, "there is no file"),
    "empty.obj": (b"", "empty.obj is an empty file"),
    "noise.ply": (bytes(range(256)), "noise.ply cannot be read as ply"),
    "noise.glb": (bytes(range(256)), "noise.glb cannot be read as glb"),
    "hollow.obj": (b"v 0 0 0\nv 1 0 0\nf 1 2 9\n", "hollow.obj cannot be read as obj"),
    "points.obj": (b"v 0 0 0\nv 1 0 0\nv 0 1 0\n", "points.obj"),
    "sheet.obj": (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "sheet.obj encloses no volume"),
    "notes.txt": (b"hello", "unsupported ending 'txt'; use one of obj, ply"),
}


@pytest.mark.parametrize("name", MESHES)
def test_bad_mesh_files(name, tmp_path):
    content, told = MESHES[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    has(only(added(pl.Mesh(tmp_path / name), pl.Fluid(), name="duck")), "duck: Mesh: ", told)


# --- functions of the user --------------------------------------------------------------------------


BAD_MOTIONS = {
    "raises": (lambda t: 1 / 0, "its motion fails at t = 0 s: division by zero"),
    "nan": (lambda t: (NAN, 0, 0), "must return a finite velocity"),
    "none": (lambda t: None, "must return a finite velocity"),
    "two": (lambda t: (1, 2), "must return a finite velocity"),
    "number": (3, "move needs a function of time, got 3"),
    "no argument": (lambda: (0, 0, 0), "its motion fails at t = 0 s"),
}


@pytest.mark.parametrize("kind", BAD_MOTIONS)
def test_a_motion_that_fails_at_the_start(kind):
    motion, told = BAD_MOTIONS[kind]
    scene, water = filled()
    water.move(motion)
    scene.bodies[0].move(motion)
    found = problems(scene)
    assert len(found) == 2
    has(found[0], "tank: ", told)
    has(found[1], "water: ", told)


@pytest.mark.parametrize("body", [0, 1], ids=["wall", "fluid"])
@pytest.mark.parametrize("later", [lambda: 1 / 0, lambda: NAN], ids=["raises", "nan"])
def test_a_motion_that_fails_later(body, later):
    scene, _ = filled()
    name = scene.bodies[body].move(lambda t: (later() if t > 0.006 else 0.0, 0, 0)).name
    sim = scene.build()
    with pytest.raises(pl.SimulationError, match=rf"{name}: its motion fails at t = 0\.\d+ s: "):
        sim.run(0.05)


@pytest.mark.parametrize("pivot", ["here", (1, 2), (0, NAN, 0)])
def test_a_bad_pivot(pivot):
    scene, _ = filled()
    scene.bodies[0].move(lambda t: (0, 0, 0), pivot=pivot)
    has(only(scene), "tank: pivot must be three finite numbers or None", repr(pivot))


@pytest.mark.parametrize(("mask", "told"), [
    ([True, False], "True or False for each of its 64 particles, got an array of bool of shape (2,)"),
    (lambda x: x > 0, "got an array of bool of shape (64, 3)"),
    (lambda x: x[:, 0], "got an array of float64 of shape (64,)"),
    (lambda x: None, "got None"),
    (lambda x: 1 / 0, "the function given to fix fails: division by zero"),
    ("all", "got 'all'"),
])  # fmt: skip
def test_a_bad_mask_of_fixed_particles(mask, told):
    scene, water = filled()
    water.fix(mask)
    has(only(scene), "water: ", told)


def test_on_step_needs_a_function():
    scene, _ = filled()
    scene.on_step(3)
    has(only(scene), "on_step needs a function of the simulation, got 3")


def test_a_camera_is_a_camera():
    scene, _ = filled()
    scene.camera = (1, 2, 3)
    has(only(scene), "camera must be a pl.Camera, pl.Orbit or pl.CameraPath or None, got (1, 2, 3)")


@pytest.mark.parametrize("name", ["water_0001", "water_surface", "water_surface_0012"])
def test_names_whose_files_would_overwrite_others(name):
    scene, _ = filled()
    scene.bodies[-1].name = "water"
    scene.add(pl.Sphere(radius=0.1), pl.Boundary(), name=name)
    has(only(scene), f"{name}: its files would get the names of those of 'water'; choose another name")


def test_names_that_differ_in_capitals_only():
    scene, _ = filled()
    scene.add(pl.Sphere(radius=0.1), pl.Boundary(), name="rock")
    scene.add(pl.Sphere(radius=0.1), pl.Boundary(), name="Rock")
    has(only(scene), "'Rock' differs from another name in capitals only")


@pytest.mark.parametrize(("shown", "material", "told"), [
    (pl.Plane(), pl.Boundary(), "what is shown must be finite, got Plane"),
    (pl.Sphere(radius=0.1), pl.Fluid(), "shown belongs to walls"),
    (pl.Sphere(radius=-1), pl.Boundary(), "Sphere: radius must be"),
])  # fmt: skip
def test_what_is_shown_is_checked(shown, material, told):
    has(only(added(SMALL, material, name="it", shown=shown)), told)


def test_long_names_count_in_bytes():
    has(only(added(SMALL, pl.Fluid(), name="水" * 100)), "a name may hold up to 100 letters")


def test_fractions_are_no_numbers():
    has(only(added(pl.Box(size=(1, 1, Fraction(3, 5))), pl.Fluid())), "size must be three numbers")


def test_what_is_shown_is_a_shape():
    scene, _ = filled()
    scene.add(pl.Sphere(radius=0.1), pl.Boundary(), name="rock", shown="rock.obj")
    has(only(scene), "rock: shown must be a shape such as pl.Mesh(...) or None, got 'rock.obj'")


@pytest.mark.parametrize(("name", "value", "told"), [
    ("camera", pl.Camera((0, 0, 0), (0, 0, 0)), "Camera: position and target must differ"),
    ("camera", pl.Camera((0, 0, "z"), (0, 0, 0)), "Camera: position must be three finite numbers"),
    ("camera", pl.Orbit(sped=3), "Orbit has no parameter 'sped'; did you mean 'speed'?"),
    ("camera", pl.CameraPath([]), "CameraPath: keys must hold at least one pair"),
    ("camera", pl.CameraPath([(1, pl.Camera((1, 1, 1), (0, 0, 0)))] * 2), "the times of its keys must rise"),
    ("look", "pressure", "look must be a pl.Look or None, got 'pressure'"),
    ("look", pl.Look(colour="pressure"), "Look has no parameter 'colour'; did you mean 'color'?"),
    ("look", pl.Look(supersample=99), "Look: supersample must be in [1, 4]"),
    ("lights", [pl.Light((0, 0, 0))], "Light: direction"),
    ("lights", pl.Camera((1, 1, 1), (0, 0, 0)), "lights must be a list of pl.Light or None"),
    ("lights", [None], "lights must be a list of pl.Light or None, got None"),
])  # fmt: skip
def test_cameras_looks_and_lights_are_checked_with_the_scene(name, value, told):
    scene, _ = filled()
    setattr(scene, name, value)
    has(only(scene), told)


def test_all_mistakes_are_told_at_once():
    scene = tank(particle_raduis=0.1, cfl=9, periodic=(0.1, None, None))
    scene.add(pl.Box(size=(1, -1, 1)), pl.Fluid(density=-3), name="water", velocty=(0, 0, 0))
    scene.add(pl.Sphere(radius=NAN), pl.Boundary(frction=1), name="ball", velocity=(1, 2))
    scene.on_step("loudly")
    found = problems(scene)
    wanted = ["particle_raduis", "cfl", "period", "velocty", "water: Box: size", "water: Fluid: density",
              "ball: Sphere: radius", "frction", "ball: velocity", "on_step"]  # fmt: skip
    assert len(found) == len(wanted)
    for part in wanted:
        assert sum(part in sentence for sentence in found) == 1, (part, found)


# --- a running simulation ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sim():
    return filled()[0].build()


@pytest.mark.parametrize("value", [-1, 0, NAN, INF, "1", None])
def test_bad_times(sim, value):
    with pytest.raises(pl.PliantError, match="seconds must be a positive number, got"):
        sim.run(value)
    with pytest.raises(pl.PliantError, match="seconds must be a positive number, got"):
        next(sim.frames(value))
    with pytest.raises(pl.PliantError, match="fps must be a positive number, got"):
        next(sim.frames(1, value))


@pytest.mark.parametrize("dt", [-1, 0, NAN, "1", True])
def test_a_bad_step(sim, dt):
    with pytest.raises(pl.PliantError, match="dt must be a positive number, got"):
        sim.step(dt)


def test_an_unknown_body(sim):
    with pytest.raises(pl.PliantError, match=r"unknown body 'watr'; did you mean 'water'\?"):
        sim["watr"]
    with pytest.raises(pl.PliantError, match=r"unknown body '3'; known: tank, water\."):
        sim[3]


@pytest.mark.parametrize("values", [np.zeros((3, 3)), np.zeros(64), "fast", [(1, 2), (1, 2, 3)], {}])
def test_assigning_a_wrong_shape(sim, values):
    with pytest.raises(pl.PliantError, match=r"water\.v needs numbers of shape \(64, 3\), got"):
        sim["water"].v = values


@pytest.mark.parametrize("values", [NAN, INF, 1e300, None, (0, NAN, 0)])
def test_assigning_what_is_not_finite(sim, values):
    before = sim["water"].x
    with pytest.raises(pl.PliantError, match=r"water\.x needs finite numbers in single precision"):
        sim["water"].x = values
    assert (sim["water"].x == before).all()


def test_assigning_what_cannot_be_assigned(sim):
    for name in ("density", "velocity"):  # a property, and a misspelt one
        with pytest.raises(pl.PliantError, match=rf"water\.{name} cannot be assigned; x, v and material can"):
            setattr(sim["water"], name, 1.0)


def test_an_unknown_backend():
    with pytest.raises(pl.PliantError, match=r"unknown backend 'cup'; did you mean 'cpu'\?"):
        filled()[0].build(backend="cup")
    with pytest.raises(pl.PliantError, match="backend must be text such as 'cpu', got 1"):
        filled()[0].build(backend=1)
    with pytest.raises(pl.PliantError, match="already runs on 'cpu'"):
        filled()[0].build(backend="cuda")


def test_frames_refuse_unknown_formats_and_bad_folders(sim, tmp_path):
    frame = next(sim.frames(1))
    with pytest.raises(pl.PliantError, match=r"unknown format 'vtk'; did you mean 'vtu'\?"):
        frame.write(tmp_path, formats="vtk")
    (tmp_path / "file").write_text("")
    with pytest.raises(pl.PliantError, match="cannot write .*file"):
        frame.write(tmp_path / "file", formats="vtu")
    frame.write(tmp_path, formats="vtu")
    assert (tmp_path / "water_0000.vtu").exists()
