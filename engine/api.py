"""The public names. `import pliant` gives them out, and imports this file, with Taichi and all, when first asked."""

from pliant.core.fields import Field
from pliant.core.store import ArrayStore, Store
from pliant.errors import PliantError, SceneError, SimulationError
from pliant.geometry import (
    Box,
    Capsule,
    Cylinder,
    Disc,
    Face,
    Mesh,
    Plane,
    Quality,
    Rectangle,
    Shape,
    Sphere,
    Torus,
    sample,
    sample_surface,
)
from pliant.io.video import write_video
from pliant.materials import Air, Boundary, Elastic, Fluid, Granular, Material, Rigid, WindGrid
from pliant.render import Camera, CameraPath, Light, Look, Orbit
from pliant.run.frames import Frame
from pliant.scene.scene import Body, Scene
from pliant.sim.simulation import Simulation, load
from pliant.solvers.births.options import Drain, Emitter
from pliant.solvers.elasticity import Peer, Peer2018, Split
from pliant.solvers.pressure.dfsph import DFSPH
from pliant.solvers.pressure.iisph import IISPH
from pliant.solvers.probes.options import Probe
from pliant.solvers.rigid.options import (
    BallJoint,
    DistanceJoint,
    FixedJoint,
    HingeJoint,
    Joint,
    SliderJoint,
    SpringJoint,
)
from pliant.solvers.robots.options import Robot
from pliant.solvers.stage import Force, Stage

__all__ = [
    "DFSPH", "IISPH", "Air", "ArrayStore", "BallJoint", "Body", "Boundary", "Box", "Camera", "CameraPath",
    "Capsule", "Cylinder", "Disc", "DistanceJoint", "Drain", "Elastic", "Emitter", "Face", "Field", "FixedJoint",
    "Fluid", "Force", "Frame", "Granular", "HingeJoint", "Joint", "Light", "Look", "Material", "Mesh", "Orbit",
    "Peer", "Peer2018", "Plane", "PliantError", "Probe", "Quality", "Rectangle", "Rigid", "Robot", "Scene",
    "SceneError", "Shape", "Simulation", "SimulationError", "SliderJoint", "Sphere", "Split", "SpringJoint",
    "Stage", "Store", "Torus", "WindGrid", "load", "sample", "sample_surface", "write_video",
]  # fmt: skip
