"""Files that other programs open, each written whole or not at all, and readers that give the numbers back.

Particles (`write_cloud`, `read_cloud`) as .vtu .ply .npz .bgeo, surfaces (`write_mesh`, `read_mesh`) as .obj .ply .stl,
whole runs as USD (`write_usd`, `read_usd`) or as a ParaView series (`.pvd`), and pictures as .png. A new format is one
file that registers itself, and one line here.
"""

from pliant.core.data import Cloud, Snapshot, TriMesh
from pliant.io import bgeo, npz, obj, ply, stl  # noqa: F401  each registers itself
from pliant.io.registry import CLOUDS, MESHES, read_cloud, read_mesh, write_cloud, write_mesh
from pliant.io.usd import usd_writer, write_usd
from pliant.io.usd_reader import UsdSeries, read_usd
from pliant.io.vtu import read_pvd, read_vtu, write_pvd, write_vtu

__all__ = [
    "CLOUDS", "MESHES", "Cloud", "Snapshot", "TriMesh", "UsdSeries", "read_cloud", "read_mesh", "read_pvd",
    "read_usd", "read_vtu", "usd_writer", "write_cloud", "write_mesh", "write_pvd", "write_usd", "write_vtu",
]  # fmt: skip
