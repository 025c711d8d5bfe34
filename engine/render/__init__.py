"""Pictures without a window: describe a `Picture`, let a `Renderer` draw it, save it as PNG."""

from pliant.render.camera import Camera, CameraPath, Orbit
from pliant.render.colors import COLOR_MAPS, colormap
from pliant.render.look import BACKGROUNDS, Look
from pliant.render.picture import Bar, Light, Lines, Picture, Points, Surface, box_edges
from pliant.render.renderer import Renderer
from pliant.render.vulkan import available

__all__ = [
    "BACKGROUNDS", "COLOR_MAPS", "Bar", "Camera", "CameraPath", "Light", "Lines", "Look", "Orbit", "Picture", "Points",
    "Renderer", "Surface", "available", "box_edges", "colormap",
]  # fmt: skip
