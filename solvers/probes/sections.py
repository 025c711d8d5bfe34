"""Flow through flat sections: what of each particle has passed.

A particle is a slab of one spacing d along the normal of the section. With s the height of its centre above the plane,
the share F(s) = clamp(1/2 + s / d, 0, 1) of it is beyond, and a step from s_0 to s_1 lets

    V (F(s_1) - F(s_0))

pass, if the particle is then inside the outline of the section. Summed over steps that is each particle's own volume
once it is through, and a stream of layers of particles flows evenly: area times speed in every step.
"""

import numpy as np
import taichi as ti

from pliant.core.backend import Ints, IntTable, Reals, RealTable, Vectors, vec3
from pliant.core.neighbors import difference
from pliant.core.reduce import BLOCKS, block
from pliant.geometry.patches import Disc, Rectangle

CENTER, FIRST, SECOND, NORMAL, HALF, RADIUS = 0, 3, 6, 9, 12, 14


def section_row(section: Disc | Rectangle) -> np.ndarray:
    """A section as kernels take it."""
    axes = section.axes(section.normal)  # type: ignore[arg-type]
    half = section.extent()[1]
    radius = float(section.radius) if isinstance(section, Disc) else 0.0
    return np.array([*section.middle(), *axes.ravel(), *half, radius], np.float32)


@ti.func
def beyond(s: ti.f32, spacing: ti.f32):
    """F(s)."""
    return ti.min(ti.max(0.5 + s / spacing, 0.0), 1.0)


@ti.func
def vector_at(table: ti.template(), q: ti.i32, column: ti.template()):
    return vec3(table[q, column], table[q, column + 1], table[q, column + 2])


@ti.kernel
def pass_sections(n: ti.i32, sections: ti.i32, spacing: ti.f32, wraps: ti.template(), period: Vectors, x: Vectors,
                  before: Vectors, V: Reals, m: Reals, body: Ints, table: RealTable, counts: IntTable,
                  out: RealTable):  # fmt: skip
    """Volume and mass that have passed each section in a step, block by block."""
    ti.loop_config(block_dim=1)
    for b in range(BLOCKS):
        lo, hi = block(b, n)
        for q in range(sections):
            volume, mass = 0.0, 0.0
            centre, normal = vector_at(table, q, CENTER), vector_at(table, q, NORMAL)
            for i in range(lo, hi):
                way = difference(before[i], centre, wraps, period)
                moved = difference(x[i], before[i], wraps, period)
                s = way.dot(normal)
                share = beyond(s + moved.dot(normal), spacing) - beyond(s, spacing)
                if share != 0.0 and counts[q, body[i]] > 0:
                    at = way + 0.5 * moved
                    u, v = at.dot(vector_at(table, q, FIRST)), at.dot(vector_at(table, q, SECOND))
                    inside = ti.abs(u) <= table[q, HALF] and ti.abs(v) <= table[q, HALF + 1]
                    if table[q, RADIUS] > 0.0:
                        inside = u * u + v * v <= table[q, RADIUS] ** 2
                    if inside:
                        volume += share * V[i]
                        mass += share * m[i]
            out[b, 2 * q], out[b, 2 * q + 1] = volume, mass
