"""Wet surfaces: GGUI shades meshes by the angle to the light alone, which makes water look like clay.

What a surface should look like, with shadows, a sheen of sky and highlights, is worked out at its vertices and divided
by the light that GGUI is going to multiply it with.
"""

import numpy as np
import taichi as ti

from pliant.core.backend import Reals
from pliant.render.picture import Picture, Surface
from pliant.render.shadow import Rows, ShadowMap, shadows_on

FACE_ON = 0.03  # share of light that water reflects at right angles is 0.02; a little more reads as wet
POWER = 5  # of its rise towards a grazing angle (Schlick 1994)
GRAZING = 0.75  # less than Fresnel's 1: nothing but sky is reflected here, not the scene
MATTE = 0.84  # of the light is left to the body of the water: white foam must not burn out in full sun
SQUARINGS = 6  # of highlights: 2^6 is their Blinn-Phong exponent
SHADE = 2.0  # times a shadow's darkness that it takes from the light that casts it
WRAP = 0.25  # how far light creeps round an edge: water is lit from inside as well
AMBIENT_SHARE = 0.5  # of a shadow's darkness that also takes from the light of the sky
BRIGHTNESS = 0.9  # of highlights, times the light's colour


def glossy(surface: Surface, normals: np.ndarray, picture: Picture, shadows: ShadowMap | None) -> np.ndarray:
    """Colours (n, 3) of the vertices with which GGUI draws the surface as if it were wet."""
    colors = np.array(surface.color, np.float32)
    clear, lights = shadows_on(surface, normals, shadows, picture.shadow), light_rows(picture)
    _gloss(
        surface.vertices, normals, colors, clear, lights, len(lights) // 2, ti.math.vec3(picture.ambient),
        ti.math.vec3(picture.camera.position), ti.math.vec3(picture.background), ti.math.vec3(picture.horizon),
        surface.gloss,
    )  # fmt: skip
    return colors


def light_rows(picture: Picture) -> np.ndarray:
    """Two rows for each light: the direction to it, as a unit vector, and its colour; black if there is none."""
    lights = np.zeros((2 * max(len(picture.lights), 1), 3), np.float32)
    for k, light in enumerate(picture.lights):
        lights[2 * k] = np.asarray(light.direction, float) / np.linalg.norm(light.direction)
        lights[2 * k + 1] = light.color
    return lights


@ti.func
def wet(
    color: ti.math.vec3, n: ti.math.vec3, view: ti.math.vec3, up: ti.math.vec3, clear: ti.f32, gloss: ti.f32,
    lights: ti.template(), count: ti.template(), ambient: ti.math.vec3, zenith: ti.math.vec3, horizon: ti.math.vec3,
) -> ti.math.vec3:  # fmt: skip
    """What a surface looks like from `view`; `clear` is the share of light that shadows leave to it.

    `lights` has two rows for each of `count` lights: the direction to it and its colour.
    """
    cosine = ti.min(ti.abs(n.dot(view)), 1.0)  # below zero from inside, and a little around outlines
    height = (2.0 * n.dot(view) * n - view).dot(up)  # of the reflected ray
    sky = ti.math.mix(horizon, zenith, ti.math.clamp(height, 0.0, 1.0)) * (0.6 + 0.4 * (height > 0.0))
    lit, shine = ambient * (1.0 - AMBIENT_SHARE * (1.0 - clear)), ti.math.vec3(0.0)
    for m in ti.static(range(count)):
        towards, power = lights[2 * m], lights[2 * m + 1]
        if ti.static(m == 0):  # the first light casts the shadows
            power *= ti.max(1.0 - SHADE * (1.0 - clear), 0.0)
        lit += power * ti.max((n.dot(towards) + WRAP) / (1.0 + WRAP), 0.0)
        half = towards + view
        facing = ti.max(n.dot(half), 0.0) ** 2 / ti.max(half.norm_sqr(), 1e-12)  # a cosine, squared
        for _ in ti.static(range(SQUARINGS - 1)):
            facing *= facing
        shine += BRIGHTNESS * facing * power
    share = gloss * (FACE_ON + (GRAZING - FACE_ON) * (1.0 - cosine) ** POWER)
    return (1.0 - share) * MATTE * color * lit + share * sky + gloss * shine


@ti.kernel
def _gloss(
    x: Rows, normals: Rows, colors: Rows, clear: Reals, lights: Rows, count: ti.template(), ambient: ti.math.vec3,
    eye: ti.math.vec3, zenith: ti.math.vec3, horizon: ti.math.vec3, gloss: ti.f32,
):  # fmt: skip
    for k in x:
        n, view, up = normals[k], (eye - x[k]).normalized(), ti.math.vec3(0.0, 1.0, 0.0)
        seen = wet(colors[k], n, view, up, clear[k], gloss, lights, count, ambient, zenith, horizon)
        given = ambient
        for m in ti.static(range(count)):
            given += lights[2 * m + 1] * ti.abs(n.dot(lights[2 * m]))  # GGUI lights both sides of a mesh
        colors[k] = seen / given
