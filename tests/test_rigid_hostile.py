"""Rigid bodies as nobody should build them: nothing explodes, hangs or falls through, and what is wrong is told in one
sentence."""

import math

import numpy as np
import pytest

import pliant as pl

G = 9.81
SIDE = 0.2


def box(center, size=SIDE):
    return pl.Box(size=(size, size, size) if np.isscalar(size) else size, center=center)


def scene_of(*bodies, floor=True, **settings):
    """A scene of shapes with their materials, which are called a, b, c."""
    scene = pl.Scene(particle_radius=0.05, **settings)
    if floor:
        scene.add(pl.Plane(), pl.Boundary(friction=0.5), name="floor")
    for name, (shape, material, *more) in zip("abc", bodies, strict=False):
        scene.add(shape, material, name=name, **(more[0] if more else {}))
    return scene


def watch(scene, seconds):
    """Runs it; returns the simulation and the fastest that anything free became [m/s]."""
    sim = scene.build(quiet=True) if isinstance(scene, pl.Scene) else scene
    walls, fastest = [wall for wall in sim.world.walls.walls if wall.free], 0.0
    while sim.time < seconds:
        sim.step()
        fastest = max(fastest, *(float(np.linalg.norm(wall.velocity)) for wall in walls))
        assert all(np.isfinite(wall.shift).all() and np.isfinite(wall.spin).all() for wall in walls)
    return sim, fastest


def sentence_of(scene):
    with pytest.raises(pl.SceneError) as caught:
        scene.build(quiet=True)
    (sentence,) = caught.value.problems
    assert "\n" not in sentence and 10 < len(sentence) < 300
    return sentence


def energy(sim):
    return sum(w.mass * (0.5 * w.velocity @ w.velocity + G * (w.pivot + w.shift)[1])
               + 0.5 * w.spin @ (w.rotation @ w.inertia @ w.rotation.T) @ w.spin
               for w in sim.world.walls.walls if w.free)  # fmt: skip


# --- overlaps at the start --------------------------------------------------------------------------


@pytest.mark.parametrize(("one", "other"), [
    (box((0, 0.1, 0)), box((0.03, 0.15, 0.02))),
    (pl.Sphere(radius=0.1, center=(0, 0.1, 0)), pl.Sphere(radius=0.1, center=(1e-3, 0.1, 0))),
    (box((0, 0.5, 0), 1.0), pl.Sphere(radius=0.1, center=(0, 0.4, 0.1))),
    (pl.Torus(radius=0.1, tube=0.04, center=(0, 0.1, 0)), pl.Torus(radius=0.1, tube=0.04, center=(0.02, 0.1, 0))),
])  # fmt: skip
def test_what_overlaps_deeply_is_pushed_apart_gently(one, other):
    sim, fastest = watch(scene_of((one, pl.Rigid()), (other, pl.Rigid())), 1.0)
    assert fastest < 2.5  # m/s: a fall from the top of the other is allowed


def test_copies_in_one_place_are_refused():
    """Nothing says in which way they should be pushed apart."""
    copies = [(box((0, 0.5, 0)), pl.Rigid())] * 3
    wanted = "b: it is in the very place of a, which has the same shape, as 1 more are; move them apart"
    assert sentence_of(scene_of(*copies)) == wanted


@pytest.mark.parametrize("height", [0.0, -0.05, -5.0])
def test_what_is_in_the_floor_comes_up(height):
    sim, fastest = watch(scene_of((box((0, height, 0)), pl.Rigid())), 1.0)
    assert fastest < 0.5 and sim["a"].position[1] == pytest.approx(SIDE / 2, abs=2e-3)


def test_what_is_in_a_wall_comes_out():
    sim, fastest = watch(scene_of((box((1, 0.5, 0), 1.0), pl.Boundary()), (box((1, 0.6, 0.1)), pl.Rigid())), 2.0)
    assert fastest < 0.5 and not (np.abs(sim["b"].position - (1, 0.5, 0)) < 0.55).all()


# --- numbers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("material", "more", "words"), [
    ({"mass": 0.0}, {}, "mass must be in"), ({"mass": -1.0}, {}, "mass must be in"),
    ({"mass": math.nan}, {}, "mass must be a number"), ({"mass": math.inf}, {}, "mass must be"),
    ({"density": 0.0}, {}, "density must be in"), ({"density": -5.0}, {}, "density must be in"),
    ({"density": math.inf}, {}, "density must be"), ({"restitution": 2.0}, {}, "restitution must be in [0, 1], got 2"),
    ({"friction": -1.0}, {}, "friction must be in"), ({"friction": math.nan}, {}, "friction must be"),
    ({}, {"spin": (0, math.nan, 0)}, "spin must be three numbers"), ({}, {"spin": (0, 2e6, 0)}, "spin must be"),
    ({}, {"velocity": (math.inf, 0, 0)}, "velocity must be three numbers"),
])  # fmt: skip
def test_impossible_numbers_are_told(material, more, words):
    assert words in sentence_of(scene_of((box((0, 1, 0)), pl.Rigid(**material), more)))


@pytest.mark.parametrize("name", ["position", "rotation", "quaternion", "velocity", "spin"])
def test_nan_cannot_be_assigned(name):
    sim = scene_of((box((0, 1, 0)), pl.Rigid())).build(quiet=True)
    before = np.array(getattr(sim["a"], name))
    with pytest.raises(pl.PliantError, match=f"a.{name} needs"):
        setattr(sim["a"], name, np.full(before.shape, math.nan))
    assert np.array_equal(getattr(sim["a"], name), before)


# --- shapes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("thickness", [0.003, 0.001])
@pytest.mark.parametrize("spin", [(0, 0, 1), (3, 1, 1)])
def test_needles_fall_and_lie_still(thickness, spin):
    """1 : 1000. They turned so far in a step that the effective masses of their ends were ten times off."""
    scene = scene_of((box((0, 0.3, 0), (1.0, thickness, thickness)), pl.Rigid(friction=0.5), {"spin": spin}))
    sim = scene.build(quiet=True)
    start = energy(sim)
    while sim.time < 1.0:
        sim.step()
        assert energy(sim) < 1.01 * start
    assert sim["a"].position[1] == pytest.approx(thickness / 2, abs=thickness)
    assert np.linalg.norm(sim["a"].velocity) < 0.1


def test_plates_and_coins_fall_flat():
    coin = pl.Cylinder(radius=0.5, height=0.001, center=(2, 0.3, 0), axis="y")
    sim, fastest = watch(scene_of((box((0, 0.3, 0), (1.0, 0.001, 1.0)), pl.Rigid(), {"spin": (0, 0, 1)}),
                                  (coin, pl.Rigid())), 1.5)  # fmt: skip
    assert fastest < 3.0 and max(sim[name].position[1] for name in "ab") < 0.02


@pytest.mark.parametrize(("mesh", "words"), [
    ((np.zeros((0, 3)), np.zeros((0, 3), int)), "the mesh has no faces"),
    (([[0, 0, 0], [1, 0, 0], [1, 0, 1.0]], [[0, 1, 2]]), "encloses no volume"),
    ((np.zeros((3, 3)), [[0, 1, 2]]), "only triangles without area"),
    ((np.full((3, 3), math.nan), [[0, 1, 2]]), "not finite numbers"),
])  # fmt: skip
def test_meshes_without_an_inside_are_refused(mesh, words):
    assert words in sentence_of(scene_of((pl.Mesh(mesh), pl.Rigid())))


def test_a_mesh_with_a_hole_is_closed():
    sphere = pl.Sphere(radius=0.1, center=(0, 0.3, 0)).triangles()
    vertices, faces = np.asarray(sphere[0]), np.asarray(sphere[1])
    sim, fastest = watch(scene_of((pl.Mesh((vertices, faces[20:])), pl.Rigid())), 0.5)
    assert fastest < 3.0 and any("open" in note for note in sim.notes)
    assert sim["a"].position[1] == pytest.approx(0.1, abs=0.02)


def test_a_millimetre_and_a_hundred_metres():
    """And rigid bodies alone have no maps for particles, which would take all memory here."""
    sim, fastest = watch(scene_of((box((0, 51, 0), 100.0), pl.Rigid()), (box((0, 0.05, 60), 1e-3), pl.Rigid()),
                                  (box((3, 101.05, 0), 1e-3), pl.Rigid())), 0.6)  # fmt: skip
    assert fastest < 6.0
    assert sim["b"].position[1] == pytest.approx(5e-4, abs=2e-4)
    assert sim["c"].position[1] > sim["a"].position[1] + 50


# --- masses -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("below", "above"), [(1e3, 1e-3), (1e-3, 1e3), (1e-1, 1e3)])
def test_a_million_times_as_heavy(below, above):
    scene = scene_of((box((0, 0.1, 0)), pl.Rigid(mass=below)), (box((0, 0.3, 0)), pl.Rigid(mass=above)))
    sim, fastest = watch(scene, 1.0)
    assert fastest < 0.5
    assert [sim[name].position[1] for name in "ab"] == pytest.approx([0.1, 0.3], abs=0.01 * SIDE)
    weight = np.array(sim["a"].contacts["floor"])[1]
    assert weight == pytest.approx((below + above) * G, rel=0.02)


@pytest.mark.parametrize(("first", "second"), [(1e-3, 1e3), (1e3, 1e-3)])
def test_a_pendulum_of_uneven_masses(first, second):
    scene = scene_of((box((0, 1, 0)), pl.Rigid(mass=first)), (box((0.4, 1, 0)), pl.Rigid(mass=second)), floor=False)
    scene.ball("a", None, at=(-0.1, 1, 0))
    scene.ball("b", "a", at=(0.2, 1, 0))
    sim = scene.build(quiet=True)
    start = energy(sim)
    watch(sim, 1.0)
    assert abs(energy(sim) - start) < 0.02 * (first + second) * G * 0.5


# --- speeds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("speed", [50.0, 500.0])
@pytest.mark.parametrize("dt", [None, 5e-3])
def test_nothing_tunnels(speed, dt):
    scene = scene_of((box((1, 0, 0), (0.01, 4, 4)), pl.Boundary()),
                     (box((0, 0, 0), 0.05), pl.Rigid(), {"velocity": (speed, 0, 0), "spin": (1, 2, 3)}),
                     (pl.Torus(radius=0.04, tube=0.01, center=(0, 0.5, 0)), pl.Rigid(), {"velocity": (speed, 0, 0)}),
                     floor=False, gravity=(0, 0, 0), dt=dt)  # fmt: skip
    sim, fastest = watch(scene, 0.05)
    assert fastest <= 1.01 * speed
    assert all(sim[name].position[0] < 0.995 for name in "bc")


def test_a_spin_of_a_million():
    sim = scene_of((box((0, 0.5, 0)), pl.Rigid(), {"spin": (1e6, 3, 2)})).build(quiet=True)
    start = energy(sim)
    for _ in range(50):
        sim.step()
    assert energy(sim) == pytest.approx(start, rel=1e-6)


@pytest.mark.parametrize("joint", [
    lambda s: s.spring("a", None, at=((0.1, 1, 0), (0, 2, 0)), stiffness=1e15, length=0.5),
    lambda s: s.hinge("a", None, at=(0, 1, 0), axis="z", torque=1e15),
])  # fmt: skip
def test_what_nothing_can_hold_breaks_down_in_a_sentence(joint):
    scene = scene_of((box((0, 1, 0)), pl.Rigid(mass=1e-3)), floor=False)
    joint(scene)
    sim = scene.build(quiet=True)
    with pytest.raises(pl.SimulationError, match=r"broke down at t = .* s: a would move at .* last good step") as error:
        for _ in range(1000):
            sim.step()
    assert "\n" not in str(error.value)
    assert np.isfinite(sim["a"].position).all() and np.linalg.norm(sim["a"].velocity) <= 1e6


def test_a_step_of_a_tenth_of_a_second():
    scene = scene_of((box((0, 0.1, 0)), pl.Rigid()), (box((0, 0.3, 0)), pl.Rigid()),
                     (box((0.03, 1.0, 0)), pl.Rigid(), {"spin": (1, 2, 3)}), dt=0.1)  # fmt: skip
    sim, fastest = watch(scene, 3.0)
    assert fastest < 6.0 and all(-0.01 < sim[name].position[1] < 0.6 for name in "abc")


# --- joints -----------------------------------------------------------------------------------------


def joined(*joints, **settings):
    scene = scene_of((box((0, 1, 0)), pl.Rigid()), (box((0.4, 1, 0)), pl.Rigid()), floor=False, **settings)
    for joint in joints:
        joint(scene)
    return scene


@pytest.mark.parametrize("joints", [
    [lambda s: s.ball("a", None, at=(1000, 1, 0))],  # far from its body
    [lambda s: s.join("a", "b", at=(0.2, 1, 0)), lambda s: s.join("a", "b", at=(0.2, 1, 0)),
     lambda s: s.join("b", "a", at=(0.1, 1, 0)), lambda s: s.ball("a", None, at=(0, 1, 0))],
    [lambda s: s.distance("a", "b", length=0.2), lambda s: s.distance("a", "b", length=0.6),
     lambda s: s.ball("a", None, at=(0, 1.1, 0))],  # cannot close
    [lambda s: s.hinge("a", None, at=(0, 1, 0), axis="z", speed=3.0),
     lambda s: s.hinge("a", None, at=(0, 1, 0), axis="z", speed=-3.0)],
    [lambda s: s.hinge("a", None, at=(0, 1, 0), axis="z", speed=3.0),
     lambda s: s.slider("a", None, axis="x", speed=1.0),
     lambda s: s.hinge("a", None, at=(0.05, 1, 0), axis="x", speed=-3.0)],
])  # fmt: skip
def test_joints_that_contradict_each_other_give_way(joints):
    sim, fastest = watch(joined(*joints), 1.0)
    assert fastest < 10.5  # that of a free fall


@pytest.mark.parametrize(("joint", "words"), [
    (lambda s: s.ball("a", "a", at=(0, 1, 0)), "it joins a to itself"),
    (lambda s: s.join("floor", None), "no force can move"),
    (lambda s: s.hinge("a", "b", at=(0, 1, 0), axis=(0, 0, 0)), "axis must not be zero"),
    (lambda s: s.slider("a", "b", axis=(math.nan, 0, 0)), "axis must be"),
])  # fmt: skip
def test_impossible_joints_are_told(joint, words):
    scene = joined(joint)
    scene.add(pl.Plane(), pl.Boundary(), name="floor")
    assert words in sentence_of(scene)


# --- in water ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("density", [1.0, 10_000.0])
def test_a_thousand_times_lighter_and_ten_times_heavier_than_water(density):
    """A light crate shoots up, leaves the water and falls back; pressures that are cut off at zero threw it about."""
    scene = pl.Scene(particle_radius=0.03)
    scene.add(pl.Box(size=(0.8, 1.0, 0.8), center=(0, 0.5, 0)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Box(size=(0.8, 0.5, 0.8), center=(0, 0.25, 0)), pl.Fluid(), name="water")
    scene.add(box((0, 0.3, 0)), pl.Rigid(density=density), name="crate")
    sim, fastest = watch(scene, 0.4)
    assert fastest < 3.0 and sim.stats.max_speed < 3.0
    assert (sim["crate"].position[1] > 0.6) == (density < 1000)


def test_bodies_smaller_than_a_particle_in_water():
    """What is put back in front of a body that is lighter than the particle pushes it as an impact would, no more."""
    scene = pl.Scene(particle_radius=0.03)
    scene.add(pl.Box(size=(0.6, 0.6, 0.6), center=(0, 0.3, 0)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Box(size=(0.6, 0.3, 0.6), center=(0, 0.15, 0)), pl.Fluid(), name="water")
    scene.add(pl.Sphere(radius=0.01, center=(0, 0.2, 0)), pl.Rigid(density=300), name="bubble")
    scene.add(pl.Box(size=(0.02, 0.02, 0.02), center=(0.15, 0.2, 0)), pl.Rigid(density=3000), name="stone")
    sim, fastest = watch(scene, 0.4)
    assert fastest < 5.0 and sim.stats.max_speed < 5.0
