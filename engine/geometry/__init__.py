"""Shapes as signed distances, and their filling with particles. NumPy and libigl only, no Taichi."""

from pliant.geometry.centring import centred
from pliant.geometry.combined import Difference, Intersection, Union
from pliant.geometry.mass import MassProperties
from pliant.geometry.mesh import Mesh
from pliant.geometry.moved import Moved, Rotated, Scaled, Translated
from pliant.geometry.patches import Disc, Face, Patch, Rectangle
from pliant.geometry.primitives import Box, Capsule, Cylinder, Empty, Plane, Sphere, Torus
from pliant.geometry.quality import Quality
from pliant.geometry.sampling import METHODS, Sampling, estimate_count, sample, sample_regular
from pliant.geometry.shapes import Shape
from pliant.geometry.surface import Surface
from pliant.geometry.surface_sampling import sample_surface

__all__ = [
    "METHODS",
    "Box",
    "Capsule",
    "Cylinder",
    "Difference",
    "Disc",
    "Empty",
    "Face",
    "Intersection",
    "MassProperties",
    "Mesh",
    "Moved",
    "Patch",
    "Plane",
    "Quality",
    "Rectangle",
    "Rotated",
    "Sampling",
    "Scaled",
    "Shape",
    "Sphere",
    "Surface",
    "Torus",
    "Translated",
    "Union",
    "centred",
    "estimate_count",
    "sample",
    "sample_regular",
    "sample_surface",
]
