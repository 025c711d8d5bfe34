"""What copies of a shape in several places have in common: the same shape around the origin, and where it was put."""

import numpy as np

from pliant.geometry.moved import Rotated, Scaled, Translated
from pliant.geometry.primitives import ORIGIN, Box, Capsule, Cylinder, Sphere, Torus
from pliant.geometry.shapes import Array, Shape


def centred(shape: Shape) -> tuple[Shape, Array]:
    """A shape of which this one is a copy, and the offset (3,) [m] by which it is moved. Copies of one shape in other
    places give shapes with the same key; meshes do so where one mesh is translated, since to read a mesh again costs
    more than is won."""
    if isinstance(shape, Translated):
        base, offset = centred(shape.shape)
        return base, offset + np.asarray(shape.offset, dtype=float)
    if isinstance(shape, (Rotated, Scaled)):
        base, offset = centred(shape.shape)
        return shape.replaced(shape=base, about=ORIGIN), shape.to_world(offset)
    if isinstance(shape, (Box, Capsule, Cylinder, Sphere, Torus)):
        return shape.replaced(center=ORIGIN), np.array(shape.center, dtype=float)
    return shape, np.zeros(3)
