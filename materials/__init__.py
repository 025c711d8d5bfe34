"""Materials: parameters and law, one small file each."""

from pliant.materials.boundary import Boundary
from pliant.materials.elastic import Elastic
from pliant.materials.fluid import Fluid
from pliant.materials.material import Material

__all__ = ["Boundary", "Elastic", "Fluid", "Material"]
