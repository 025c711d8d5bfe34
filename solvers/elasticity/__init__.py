"""Elastic solids, several methods."""

from pliant.solvers.elasticity.base import ElasticityOptions
from pliant.solvers.elasticity.peer import Peer
from pliant.solvers.elasticity.split import Split

__all__ = ["ElasticityOptions", "Peer", "Split"]
