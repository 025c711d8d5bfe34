"""Pictures without a window: describe a `Picture`, let a `Renderer` draw it, save it as PNG."""

from pliant.render.colors import colormap
from pliant.render.picture import Camera, Light, Lines, Picture, Points, Surface, box_edges
from pliant.render.renderer import Renderer
from pliant.render.vulkan import available

__all__ = [
    "Camera", "Light", "Lines", "Picture", "Points", "Renderer", "Surface", "available", "box_edges", "colormap",
]  # fmt: skip
