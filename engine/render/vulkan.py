"""Whether this machine can draw off-screen, found out before a window is asked for."""

import contextlib
import os
import sys
from collections.abc import Iterator

import taichi as ti


def available() -> str | None:
    """None if off-screen drawing works here, otherwise one sentence on what is missing.

    Taichi's own check creates a Vulkan instance and looks for a device that can compute, then lets go of both; it
    needs no `ti.init`, and answers False where a window would raise "Vulkan must be available for GGUI".
    """
    if not ti._lib.core.GGUI_AVAILABLE:
        return "this build of Taichi has no GGUI renderer; install the taichi wheel from PyPI for a desktop platform."
    with _silence():
        found = ti.lang.misc.is_arch_supported(ti.vulkan)
    if found:
        return None
    if sys.platform.startswith("linux"):
        return (
            "no Vulkan driver was found; install the graphics card's one, or a software one: "
            "apt install libvulkan1 mesa-vulkan-drivers."
        )
    return "no Vulkan driver was found; install or update the graphics card's driver."


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keeps quiet what native code writes to standard error ("RHI Error: Can not create Vulkan instance")."""
    sys.stderr.flush()
    try:
        kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    except OSError:  # there is no standard error
        yield
        return
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
