"""Whether this machine can draw off-screen, found out before a window is asked for, and on which devices."""

import ctypes
import struct
import sys

import taichi as ti

from pliant.core.backend import is_supported

SOFTWARE_DRIVERS = ("llvmpipe", "lavapipe", "SwiftShader")  # words in the names of devices that are no hardware


def available() -> str | None:
    """None if off-screen drawing works here, otherwise one sentence on what is missing.

    Taichi's own check creates a Vulkan instance and looks for a device that can compute, then lets go of both; it
    needs no `ti.init`, and answers False where a window would raise "Vulkan must be available for GGUI".
    """
    if not ti._lib.core.GGUI_AVAILABLE:
        return "this build of Taichi has no GGUI renderer; install the taichi wheel from PyPI for a desktop platform."
    if is_supported("vulkan"):
        return None
    if sys.platform.startswith("linux"):
        return (
            "no Vulkan driver was found; install the graphics card's one, or a software one: "
            "apt install libvulkan1 mesa-vulkan-drivers."
        )
    return "no Vulkan driver was found; install or update the graphics card's driver."


def in_software(devices: list[str]) -> bool:
    """Whether the CPU does the work of all Vulkan devices there are."""
    return bool(devices) and all(any(name in device for name in SOFTWARE_DRIVERS) for device in devices)


def describe_gpu(backend: str) -> str:
    """A backend of a GPU and the device behind it, as far as that is known."""
    devices = vulkan_devices() if backend == "vulkan" else []
    if in_software(devices):
        return f"{backend} on {devices[0]}, a software driver: the CPU does the work, and backend 'cpu' is faster"
    return f"{backend} on {devices[0]}" if len(devices) == 1 else backend


def vulkan_devices() -> list[str]:
    """Names of the Vulkan devices, asked from the loader itself; empty if anything at all goes wrong."""
    try:
        vulkan = ctypes.CDLL("vulkan-1.dll" if sys.platform == "win32" else "libvulkan.so.1")
        # VkInstanceCreateInfo: type 1, then next, flags, application, layers and extensions all zero (64-bit layout).
        request, instance, count = struct.pack("@QQQQQQQQ", 1, *[0] * 7), ctypes.c_void_p(), ctypes.c_uint32()
        if vulkan.vkCreateInstance(request, None, ctypes.byref(instance)):
            return []
        vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), None)
        devices, names = (ctypes.c_void_p * count.value)(), []
        vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), devices)
        for device in devices:
            properties = ctypes.create_string_buffer(4096)  # VkPhysicalDeviceProperties is 824 bytes long
            vulkan.vkGetPhysicalDeviceProperties(ctypes.c_void_p(device), properties)
            names.append(properties.raw[20:276].split(b"\0")[0].decode(errors="replace"))  # after five numbers
        vulkan.vkDestroyInstance(instance, None)
        return names
    except (OSError, AttributeError, ctypes.ArgumentError):
        return []
