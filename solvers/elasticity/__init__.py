"""Elastic solids, several methods."""

from pliant.solvers.elasticity.base import ElasticityOptions
from pliant.solvers.elasticity.peer import Peer, Peer2018
from pliant.solvers.elasticity.split import Split

__all__ = ["ElasticityOptions", "Peer", "Peer2018", "Split"]
