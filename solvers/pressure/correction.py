"""Inside a liquid: gradients that are exact for linear fields, and pressures of either sign.

The density ratio rho_i = sum_j V_j W_ij is a good measure of how full space is, but a poor one of how much a flow
gathers. With some thirty neighbors it also tells how they are arranged: a lattice that is strained by 0.8 at constant
volume has a density ratio of 1.014, by 0.7 of 1.06. If velocities had to keep it constant they would resist shear: a
Taylor-Green vortex on a lattice lost 98 % of its energy where viscosity takes 38 %, and a patch that is strained had
70 % too much pressure, or none. So where fluid surrounds a particle, velocities see gradients after Bonet and Lok 1999,

    M_i = -sum_j G_ij x_ij^T,    L_i = M_i^-1,    div v_i = -sum_j L_i G_ij . (v_i - v_j),

which are exact for linear fields whatever the arrangement. The forces are the adjoint, sum_j (p_i L_i + p_j L_j) G_ij:
they keep momentum, since V_i G_ij is odd in the pair; angular momentum, since the divergence of a rotation is zero; and
energy, for pressures do no work on velocities without divergence. Any L_i that commutes with M_i has these properties,
so that L may go over to 1 towards the surface.

The density ratio is still what keeps space evenly filled: displacements beside dt v bring it to one (`dfsph`), at no
cost to the flow.

What is at rest wants the plain gradients: they derive from the density ratio, so that rest is a minimum of energy, and
what presses on a body is what it displaces. By corrected gradients alone the first layer at a wall would slip past,
displacements would lift it again, and still water would boil at 0.2 m/s; and a ball under water would have 9 % too
little buoyancy. (Measured with the walls of `volume_map`.) So at walls gradients stay as they are, and elsewhere they
are corrected as far as the pressure is the flow's and not the weight's: by the share d |grad v|^2 / g, the ratio of
what both do to velocities over a spacing, from none at LEAST to all at 1. Without gravity nothing rests. Most of a
liquid under gravity has plain gradients, and `system` passes by the corrections there (BENT).

A particle is inside where the measure

    (trace M) / 3 - d |sum_j G_ij + E_ij|

is above INSIDE: 1.02 on a lattice, about 0.75 in disorder, 0.24 at a plane surface, less in films and spray. (Images in
walls, E_ij, count like neighbors.) What touches an elastic body is not. Only inside may pressure be negative. Under
tension the forces of pressure draw particles together in pairs, at a rate of about sqrt(-p / rho) / d. `spread` parts
them again, by a shift towards where there are fewer (Lind et al. 2012).
"""

import taichi as ti

from pliant.core.backend import (
    Ints,
    Reals,
    Vectors,
    set_vector,
    share,
    turns,
    vec3,
    vec4,
    vec6,
    vector_at,
)
from pliant.core.fields import Field
from pliant.core.neighbors import difference_of_points
from pliant.core.reduce import block, blocks
from pliant.core.speedups import light, with_vectors
from pliant.solvers.pressure.system import BENT, CORRECTED, System, xyz

FIELDS = (
    *(Field(f"L{axis}", "point", "1", f"{axis} row of the correction of gradients, and 0") for axis in "xyz"),
    Field("inside", "real", "1", "1 where fluid surrounds it, 0 elsewhere"),
    Field("lopsided", "vector", "1/m", "towards where there are more particles: sum_j G_ij + E_ij"),
)
SURFACE, INSIDE = 0.4, 0.55  # of the measure above: the correction goes over from none to all between these
LEAST = 0.1  # the share of the flow in the pressure up to which gradients are not corrected
TINY = 1e-30
SPREADING = 2.0  # how fast particles part under tension, in the rate at which it draws them together
MOST_SPREADING = 0.1  # in a step


@ti.func
def surrounded(measure: ti.f32):
    """From 0 at a surface to 1 inside, by the measure above."""
    return ti.min(ti.max((measure - SURFACE) / (INSIDE - SURFACE), 0.0), 1.0)


@ti.func
def is_among_liquid(i: ti.i32, material: ti.template(), liquid: ti.template(), c: ti.template()):
    """1 if all neighbors are liquid, 0 otherwise; pairs that were parted do not count."""
    result = 1.0
    for k in range(c.span[i][0], c.span[i][1]):
        result *= ti.select(c.factor[k] == 0.0, 1.0, liquid[material[c.neighbor[k]]])
    return result


@ti.func
def inverse_of(d: vec3, o: vec3):
    """The inverse of a symmetric matrix with the diagonal d and the elements o at yz, zx, xy, as `vec6` has them."""
    adjugate = vec6(d[1] * d[2] - o[0] * o[0], d[2] * d[0] - o[1] * o[1], d[0] * d[1] - o[2] * o[2],
                    o[1] * o[2] - d[0] * o[0], o[2] * o[0] - d[1] * o[1], o[0] * o[1] - d[2] * o[2])  # fmt: skip
    return adjugate / (d[0] * adjugate[0] + o[2] * adjugate[5] + o[1] * adjugate[4])


@with_vectors
@ti.kernel
def find_corrections(n: ti.i32, wraps: ti.template(), period: Vectors, c: System, b: Vectors, spacing: ti.f32,
                     weight: ti.f32, mixed: ti.template(), material: Ints, liquid: Reals, image_lopsided: Vectors,
                     image_trace: Reals, lopsided: Vectors):  # fmt: skip
    """L, and who is inside; images count like neighbors. `b` is the gradient of the walls, `weight` is g / d [1/s^2],
    `c.u` are velocities, and `mixed` says whether there is anything but liquids."""
    for turn in range(turns(blocks(n))):
        lo, hi = block(share(turn, blocks(n)), n)
        for i in range(lo, hi):
            own, whole, lop = vec6(1.0, 1.0, 1.0, 0.0, 0.0, 0.0), 0.0, vector_at(image_lopsided, i)
            if liquid[material[i]] > 0.0:
                xi, ui = c.xo[i], c.u[i] + vec4(0.0, 0.0, 0.0, 1.0)
                # Rows of sum_j G_ij (u_i - u_j)^T, with sum_j G_ij as the fourth column, and of sum_j G_ij x_ij^T
                x, y, z, X, Y, Z = vec4(0.0), vec4(0.0), vec4(0.0), vec4(0.0), vec4(0.0), vec4(0.0)
                for k in range(c.span[i][0], c.span[i][1]):
                    j = c.neighbor[k]
                    dx, du = difference_of_points(xi, c.xo[j], wraps, period), ui - c.u[j]
                    G = c.factor[k] * dx
                    x += G[0] * du
                    y += G[1] * du
                    z += G[2] * du
                    X += G[0] * dx
                    Y += G[1] * dx
                    Z += G[2] * dx
                lop += vec3(x[3], y[3], z[3])
                measure = (image_trace[i] - X[0] - Y[1] - Z[2]) / 3.0 - spacing * lop.norm()
                part = surrounded(measure)
                if ti.static(mixed):
                    part = ti.min(part, is_among_liquid(i, material, liquid, c))
                whole = ti.select(part == 1.0, 1.0, 0.0)
                shear = xyz(x).norm_sqr() + xyz(y).norm_sqr() + xyz(z).norm_sqr()
                part *= ti.max(ti.min(shear / ti.max(weight, TINY), 1.0) - LEAST, 0.0) / (1.0 - LEAST)
                if part > 0.0 and vector_at(b, i).norm() == 0.0:
                    rest = 1.0 - part
                    own = inverse_of(vec3(rest - part * X[0], rest - part * Y[1], rest - part * Z[2]),
                                     vec3(-part * Y[2], -part * X[2], -part * X[1]))  # fmt: skip
                    c.special[i] = c.special[i] | CORRECTED
            c.inside[i] = whole
            set_vector(lopsided, i, lop)
            c.Lx[i], c.Ly[i] = vec4(own[0], own[5], own[4], 0.0), vec4(own[5], own[1], own[3], 0.0)
            c.Lz[i] = vec4(own[4], own[3], own[2], 0.0)
    for i in range(n):  # all who write to the same place write the same
        if c.special[i] & CORRECTED:
            c.special[i] = c.special[i] | BENT
            for k in range(c.span[i][0], c.span[i][1]):
                j = c.neighbor[k]
                c.special[j] = c.special[j] | BENT


@light
@ti.kernel
def spread(n: ti.i32, dt: ti.f32, spacing: ti.f32, inside: Reals, inverse_density: Reals, p: Reals, lopsided: Vectors,
           shift: Vectors):  # fmt: skip
    """Shifts particles under tension towards where there are fewer."""
    for i in range(n):
        if inside[i] > 0.0 and p[i] < 0.0:
            rate = ti.sqrt(-p[i] * inverse_density[i]) / spacing
            shift[i] -= ti.min(SPREADING * dt * rate, MOST_SPREADING) * spacing**2 * lopsided[i]
