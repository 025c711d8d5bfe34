"""A robot arm, moved by MuJoCo, stirs a tank with its paddle and drives a floating crate before it."""

import numpy as np

import pliant as pl

SECONDS = 6.0
TANK, DEPTH = (1.6, 1.0, 0.6), 0.3  # of the tank, and of the water in it [m]
CRATE = 0.14  # side of the crate [m]
STROKE, PERIOD = 0.75, 2.4  # [rad] of the shoulder to either side, and how long a stroke there and back takes [s]

# Three joints: the column turns, shoulder and elbow bend. The paddle is lighter than water; servos lead all joints.
ARM = """
<mujoco model="stirring arm">
  <compiler angle="radian"/>
  <option timestep="0.002" integrator="implicitfast"/>
  <default><joint damping="0.3"/><geom density="600"/></default>
  <worldbody>
    <geom name="beam" type="box" size="0.05 0.05 0.03" pos="0 0 0.21"/>
    <body name="column">
      <joint name="turn" type="hinge" axis="0 0 1" range="-1.5 1.5"/>
      <geom type="cylinder" size="0.035 0.08" pos="0 0 0.09"/>
      <body name="upper">
        <joint name="shoulder" type="hinge" axis="0 1 0" range="-1.3 1.3"/>
        <geom type="capsule" fromto="0 0 -0.04 0 0 -0.26" size="0.022"/>
        <body name="paddle" pos="0 0 -0.3">
          <joint name="elbow" type="hinge" axis="0 1 0" range="-1.3 1.3"/>
          <geom name="stem" type="capsule" fromto="0 0 0 0 0 -0.12" size="0.016"/>
          <geom name="blade" type="box" size="0.016 0.13 0.09" pos="0 0 -0.2" density="300"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="turn" joint="turn" kp="60" kv="4"/>
    <position name="shoulder" joint="shoulder" kp="150" kv="8"/>
    <position name="elbow" joint="elbow" kp="60" kv="3"/>
  </actuator>
  <sensor><jointpos name="shoulder" joint="shoulder"/><actuatorfrc name="effort" actuator="shoulder"/></sensor>
</mujoco>
"""


def stroke(t: float) -> dict[str, float]:
    """Strokes to and fro, with the paddle held upright and turned a little."""
    swing = STROKE * np.sin(2 * np.pi * t / PERIOD)
    return {"shoulder": -swing, "elbow": 0.8 * swing, "turn": 0.25 * np.sin(2 * np.pi * t / (2 * PERIOD))}


def build(radius: float = 0.0125, density: float = 300.0) -> pl.Scene:
    """The arm hangs from a beam over the tank; it needs MuJoCo (pip install pliant[robots]).

    radius: particle radius [m]; density: of the crate [kg/m^3].
    """
    scene = pl.Scene(particle_radius=radius)
    scene.add(pl.Box(size=TANK, center=(0, TANK[1] / 2, 0)), pl.Boundary(inside_out=True), name="tank")
    scene.add(pl.Box(size=(TANK[0], DEPTH, TANK[2]), center=(0, DEPTH / 2, 0)), pl.Fluid(), name="water")
    scene.add(pl.Box(size=(CRATE,) * 3, center=(0.36, DEPTH + CRATE / 4, 0)),
              pl.Rigid(density=density, friction=0.3), name="crate", colors="honey")  # fmt: skip
    scene.add(pl.Robot(ARM, position=(0, 0.68, 0), control=stroke), name="arm", colors="grey")
    scene.camera = pl.Camera(position=(0.7, 1.15, 2.1), target=(0, 0.3, 0), fov=38)
    scene.look = pl.Look(fluid="surface")
    return scene


def check(sim: pl.Simulation) -> None:
    """Servos lead the joints, water resists the paddle, the crate floats, and no water is inside of the blade."""
    wanted, arm = stroke(sim.time), sim["arm"]
    lag = np.abs(arm.qpos - [wanted[name] for name in arm.actuators]).max()
    assert lag < 0.35, f"the arm lags by {lag:.2f} rad"
    assert np.linalg.norm(arm.links["paddle"].force) < 150
    assert 0.15 < sim["crate"].position[1] < 0.5, "the crate does not float"
    blade = arm.links["paddle"]
    local = (sim["water"].x - blade.position) @ blade.rotation + [0, 0, 0.2]
    assert not (np.abs(local) < np.array([0.016, 0.13, 0.09]) - sim.scene.spacing / 4).all(axis=1).any()
    if sim.time > 1.0:
        assert np.abs(sim["water"].v).max() > 0.1, "the water is not stirred"
