"""What may be chosen on the command line, and what is chosen if nothing is.

Apart from what carries it out, so that `--help` need not import it: nothing here imports anything.
"""

BACKENDS = ("cpu", "cuda", "vulkan", "metal")
BACKEND_NAMES = (*BACKENDS, "gpu")  # gpu is the one there is
TAICHI_TESTED = "1.7.4"  # the version whose private parts `speedups` replaces
BACKEND_VARIABLE = "PLIANT_BACKEND"  # of the environment: what computes where nothing is said

PARTICLE_FORMATS = ("vtu", "npz", "ply", "bgeo")  # one file for each body and frame; the first is read back first
MESH_FORMATS = ("obj", "stl", "ply")  # walls and other surfaces: once, or for each frame if they move
FORMATS = (*dict.fromkeys((*PARTICLE_FORMATS, *MESH_FORMATS)), "usd", "png")
USUAL_FORMATS = ("vtu", "png")

LOOK = ("color", "low", "high", "colors", "bar", "fluid", "solid", "grains", "containers", "probes", "joints", "radius",
        "ground", "shadow", "background", "supersample", "title", "clock")  # parameters of `pl.Look`  # fmt: skip

FPS, SIZE, SEED = 30.0, "1280x720", 0  # of a run: frames per simulated second, its pictures, its random numbers
