"""Shapes as signed distances, and their filling with particles. NumPy and libigl only, no Taichi."""

from pliant.geometry.combined import Difference, Intersection, Union
from pliant.geometry.mesh import Mesh
from pliant.geometry.moved import Moved, Rotated, Scaled, Translated
from pliant.geometry.primitives import Box, Capsule, Cylinder, Plane, Sphere, Torus
from pliant.geometry.sampling import estimate_count, sample_regular
from pliant.geometry.shapes import Shape
from pliant.geometry.surface import Surface

__all__ = [
    "Box",
    "Capsule",
    "Cylinder",
    "Difference",
    "Intersection",
    "Mesh",
    "Moved",
    "Plane",
    "Rotated",
    "Scaled",
    "Shape",
    "Sphere",
    "Surface",
    "Torus",
    "Translated",
    "Union",
    "estimate_count",
    "sample_regular",
]
