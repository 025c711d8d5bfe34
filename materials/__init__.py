"""Materials: parameters and law, one small file each."""

from pliant.materials.air import Air, WindGrid
from pliant.materials.boundary import Boundary
from pliant.materials.elastic import Elastic
from pliant.materials.fluid import Fluid
from pliant.materials.granular import Granular
from pliant.materials.link import RobotLink
from pliant.materials.material import Material
from pliant.materials.rigid import Rigid

__all__ = ["Air", "Boundary", "Elastic", "Fluid", "Granular", "Material", "Rigid", "RobotLink", "WindGrid"]
