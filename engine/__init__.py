"""Pliant: one particle engine for soft solids, fluids, sand, shells and rigid bodies. `import pliant as pl`."""

import os

if __name__ != "pliant":
    raise ImportError("engine/ installs as the package pliant; write `import pliant` instead of `import engine`.")

os.environ.setdefault("ENABLE_TAICHI_HEADER_PRINT", "0")  # before Taichi is imported: nobody asked for its banner

os.environ.setdefault("HOME", os.path.expanduser("~"))  # Taichi's cache aborts without one; services often have none

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
from pliant.materials import Air, Boundary, Elastic, Fluid, Granular, Material, WindGrid
from pliant.render import Camera, CameraPath, Light, Look, Orbit
from pliant.run.frames import Frame
from pliant.scene.scene import Body, Scene
from pliant.sim.simulation import Simulation, load
from pliant.solvers.births.options import Drain, Emitter
from pliant.solvers.elasticity import Peer, Peer2018, Split
from pliant.solvers.pressure.dfsph import DFSPH
from pliant.solvers.pressure.iisph import IISPH
from pliant.solvers.probes.options import Probe
from pliant.solvers.stage import Force, Stage

__version__ = "0.1.0"

__all__ = [
    "DFSPH", "IISPH", "Air", "ArrayStore", "Body", "Boundary", "Box", "Camera", "CameraPath", "Capsule", "Cylinder",
    "Disc", "Drain", "Elastic", "Emitter", "Face", "Field", "Fluid", "Force", "Frame", "Granular", "Light", "Look",
    "Material", "Mesh", "Orbit", "Peer", "Peer2018", "Plane", "PliantError", "Probe", "Quality", "Rectangle", "Scene",
    "SceneError", "Shape", "Simulation", "SimulationError", "Sphere", "Split", "Stage", "Store", "Torus",
    "WindGrid", "load", "sample", "sample_surface", "write_video",
]  # fmt: skip
