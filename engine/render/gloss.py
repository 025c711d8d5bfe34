"""Wet surfaces: GGUI shades meshes by the angle to the light alone, which makes water look like clay.

What a surface should look like, with shadows, a sheen of sky and highlights, is worked out at its vertices and divided
by the light that GGUI is going to multiply it with.
"""

import numpy as np
import taichi as ti

from pliant.render.picture import Picture, Points, Surface
from pliant.render.shadow import Rows, ShadowMap, edge_length, shaded

FACE_ON = 0.03  # share of light that water reflects at right angles is 0.02; a little more reads as wet
POWER = 5.0  # of its rise towards a grazing angle (Schlick 1994)
GRAZING = 0.75  # less than Fresnel's 1: nothing but sky is reflected here, not the scene
MATTE = 0.84  # of the light is left to the body of the water: white foam must not burn out in full sun
SHARPNESS = 60.0  # of highlights, as a Blinn-Phong exponent
LIFT = 2.0  # in cells of the shadow map or edges of the mesh, whichever are longer
SHADE = 2.0  # times a shadow's darkness that it takes from the light that casts it
WRAP = 0.25  # how far light creeps round an edge: water is lit from inside as well
AMBIENT_SHARE = 0.5  # of a shadow's darkness that also takes from the light of the sky
BRIGHTNESS = 0.9  # of highlights, times the light's colour


def glossy(surface: Surface, normals: np.ndarray, picture: Picture, shadows: ShadowMap | None) -> np.ndarray:
    """Colours (n, 3) of the vertices with which GGUI draws the surface as if it were wet."""
    colors = np.array(surface.color, np.float32)
    clear = _shadows_on(surface, normals, picture, shadows)
    lights = np.zeros((2 * max(len(picture.lights), 1), 3), np.float32)
    for k, light in enumerate(picture.lights):
        lights[2 * k] = np.asarray(light.direction, float) / np.linalg.norm(light.direction)
        lights[2 * k + 1] = light.color
    _gloss(
        surface.vertices, normals, colors, clear, lights, ti.math.vec3(picture.ambient),
        ti.math.vec3(picture.camera.position), ti.math.vec3(picture.background), ti.math.vec3(picture.horizon),
        surface.gloss,
    )  # fmt: skip
    return colors


def _shadows_on(surface: Surface, normals: np.ndarray, picture: Picture, shadows: ShadowMap | None) -> np.ndarray:
    """How much of the light (n, 3) shadows leave to the vertices, as if each were a particle lifted off the surface:
    slopes would otherwise shade themselves in stripes."""
    white = np.ones_like(surface.vertices)
    if shadows is None:
        return white
    size = max(edge_length(surface), 2.0 * shadows.cell)
    return shaded(Points(surface.vertices + LIFT * size * normals, size, white), shadows, picture.shadow)


@ti.kernel
def _gloss(
    x: Rows, normals: Rows, colors: Rows, clear: Rows, lights: Rows, ambient: ti.math.vec3, eye: ti.math.vec3,
    zenith: ti.math.vec3, horizon: ti.math.vec3, gloss: ti.f32,
):  # fmt: skip
    for k in x:
        n, view = normals[k], (eye - x[k]).normalized()
        cosine = ti.math.clamp(n.dot(view), 0.0, 1.0)
        mirrored = 2.0 * n.dot(view) * n - view
        sky = ti.math.mix(horizon, zenith, ti.math.clamp(mirrored[1], 0.0, 1.0)) * (0.6 + 0.4 * (mirrored[1] > 0.0))
        lit, given, shine = ambient * (1.0 - AMBIENT_SHARE * (1.0 - clear[k][0])), ambient, ti.math.vec3(0.0)
        for m in range(lights.shape[0] // 2):
            towards, color = lights[2 * m], lights[2 * m + 1]
            reaching = 1.0
            if m == 0:  # the first light casts the shadows
                reaching = ti.max(1.0 - SHADE * (1.0 - clear[k][0]), 0.0)
            lit += reaching * color * ti.max((n.dot(towards) + WRAP) / (1.0 + WRAP), 0.0)
            given += color * ti.abs(n.dot(towards))  # GGUI lights both sides of a mesh
            halfway = (towards + view).normalized()
            shine += reaching * BRIGHTNESS * color * ti.max(n.dot(halfway), 0.0) ** SHARPNESS
        share = gloss * (FACE_ON + (GRAZING - FACE_ON) * (1.0 - cosine) ** POWER)
        colors[k] = ((1.0 - share) * MATTE * colors[k] * lit + share * sky + gloss * shine) / given
