"""`pliant doctor`: what this machine offers to Pliant, what is amiss, and what to do about it.

Heavy libraries and drivers can print, hang or take their process down with them, so each is tried out in a child
process; all children run at the same time and share one time limit. This process imports what it needs of them only
once the children are on their way.
"""

import ctypes
import dataclasses
import importlib.metadata
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

import pliant
from pliant.core.choices import BACKENDS, TAICHI_TESTED
from pliant.core.memory import GIB, lines_of, total_and_free
from pliant.errors import PliantError

State = Literal["ok", "warning", "wrong"]
COLOURS: dict[State, str] = {"ok": "green", "warning": "yellow", "wrong": "bold red"}
PYTHONS = ((3, 10), (3, 13))  # the oldest and the newest that Taichi has wheels for
TIME_LIMIT = 20.0  # of a child [s]: a busy machine takes its time to import Taichi
LEAST_DISK, LEAST_MEMORY = 5 * GIB, 2 * GIB  # free; below, a warning
WIDE = 240  # columns where the output is no terminal, so that a check stays on one line
SPELLINGS = [(before, after) for before in ("scipy_", "") for after in ("", "64_")]  # of BLAS routines, by build


@dataclasses.dataclass(frozen=True)
class Check:
    """One line of the report. `advice` is empty where there is nothing to do."""

    name: str
    state: State
    found: str
    advice: str = ""


def checks() -> list[Check]:
    """Looks at everything that Pliant uses; takes a second or two."""
    with ThreadPoolExecutor(1 + len(EXTRAS)) as pool:
        waiting = [pool.submit(taichi_and_vulkan), *(pool.submit(extra, *row) for row in EXTRAS)]
        own = Check("Pliant", "ok", f"{pliant.__version__} in {Path(pliant.__file__).parent}")
        here = [python(), own, cores(), blas(), memory(), *disks(), *caches()]
        return [*here, *(check for future in waiting for check in future.result())]


def main(as_json: bool = False) -> int:
    """Prints the report; returns 1 if something that Pliant needs is broken, otherwise 0."""
    found = checks()
    if as_json:
        print(json.dumps([dataclasses.asdict(check) for check in found], indent=1))
    else:
        table = Table.grid(padding=(0, 2))
        for check in found:
            words = Text(check.found).append(f"; {check.advice}" if check.advice else "", style="bold")
            table.add_row(Text(check.state, style=COLOURS[check.state]), Text(check.name), words)
        Console(highlight=False, width=None if sys.stdout.isatty() else WIDE).print(table)
    return int(any(check.state == "wrong" for check in found))


# --- the machine ------------------------------------------------------------------------------------


def python(version: tuple[int, ...] = sys.version_info[:3]) -> Check:
    virtual = "conda" if Path(sys.prefix, "conda-meta").is_dir() else "virtual" if sys.prefix != sys.base_prefix else ""
    place = f"in the {virtual} environment {sys.prefix}" if virtual else "outside of a virtual environment"
    found = f"{'.'.join(map(str, version))} {place}"
    if PYTHONS[0] <= version[:2] <= PYTHONS[1]:
        return Check("Python", "ok", found)
    return Check("Python", "wrong", found, "install Python {}.{} to {}.{}".format(*PYTHONS[0], *PYTHONS[1]))


def cores() -> Check:
    there = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else there
    return Check("Cores", "ok", f"{usable} usable" + (f" of {there}" if usable < there else ""))


def blas() -> Check:
    """The BLAS under SciPy's LAPACK, which factorises the matrices of elastic bodies."""
    found = _openblas() or _blas_file() or _blas_of_the_build()
    if not is_reference(found):
        return Check("BLAS", "ok", found)
    slow = f"{found} is the reference BLAS: factorising elastic bodies takes about ten times longer"
    return Check("BLAS", "warning", slow, "pip install --force-reinstall scipy, which brings OpenBLAS")


def _blas_routine(name: str) -> tuple[Any, str]:
    """A routine of SciPy's BLAS and what stands before its name. None where it is not found, as on Windows."""
    from scipy.linalg import cython_blas

    try:
        library = ctypes.CDLL(cython_blas.__file__)
    except (OSError, AttributeError):
        return None, ""
    spelled = ((getattr(library, before + name + after, None), before) for before, after in SPELLINGS)
    return next((pair for pair in spelled if pair[0]), (None, ""))


def _openblas() -> str:
    """OpenBLAS tells its version and threads itself."""
    (config, owner), (threads, _) = _blas_routine("openblas_get_config"), _blas_routine("openblas_get_num_threads")
    if not (config and threads):
        return ""
    config.restype = ctypes.c_char_p
    version = re.match(r"OpenBLAS [\d.]+", config().decode(errors="replace"))
    name = (version[0] if version else "OpenBLAS") + (" (SciPy's)" if owner else "")
    return f"{name}, {threads()} thread{'s' if threads() > 1 else ''}"


def _blas_file() -> str:
    """The library that multiplies matrices for SciPy."""
    routine, _ = _blas_routine("dgemm_")
    address = ctypes.cast(routine, ctypes.c_void_p).value if routine else None
    try:
        return mapped_file(address, lines_of("/proc/self/maps")) if address else ""
    except (OSError, ValueError):  # forbidden in a container, or a name that is no text
        return ""


def mapped_file(address: int, maps: Iterable[str]) -> str:
    """The file at an address of this process, from its memory map (Linux)."""
    for words in (line.split(maxsplit=5) for line in maps):
        low, high = (int(number, 16) for number in words[0].split("-"))
        if low <= address < high:
            return words[5] if len(words) > 5 else ""
    return ""


def _blas_of_the_build() -> str:
    import scipy

    try:
        lapack = scipy.show_config(mode="dicts")["Build Dependencies"]["lapack"]
        return f"{lapack['name']} {lapack['version']}, says SciPy's build"
    except Exception:  # whatever a build of SciPy may tell of itself
        return "unknown library"


def is_reference(library: str) -> bool:
    """Whether a `libblas` is the plain one: tuned ones that stand in for it lie in folders that name them."""
    return Path(library).name.startswith("libblas") and not re.search("openblas|blis|atlas|mkl|flexi", library)


def memory() -> Check:
    known = total_and_free()
    if known is None:
        return Check("Memory", "ok", "size unknown")
    total, free = known
    advice = "close other programs, or simulate fewer particles" if free < LEAST_MEMORY else ""
    return Check("Memory", "warning" if advice else "ok", f"{_gib(free)} of {_gib(total)} available", advice)


def _gib(size: float) -> str:
    return f"{size / GIB:.3g} GiB"


def _nearest(folder: Path) -> Path:
    """The folder, or the closest one above it that exists."""
    folder = Path(os.path.abspath(folder))
    return next(path for path in (folder, *folder.parents) if path.exists())


def disks() -> Iterator[Check]:
    from pliant.core.cache import cache_folder

    for name, place, way in (("Disk, this folder", ".", "--out"), ("Disk, caches", cache_folder(), "PLIANT_CACHE")):
        try:
            free = shutil.disk_usage(_nearest(Path(place))).free
        except OSError as error:
            yield Check(name, "warning", f"free space unknown ({error.strerror})", "change to a folder that exists")
            continue
        advice = f"make room, or choose another disk with {way}" if free < LEAST_DISK else ""
        yield Check(name, "warning" if advice else "ok", f"{_gib(free)} free", advice)


def caches() -> Iterator[Check]:
    from pliant.core.backend import kernel_cache
    from pliant.core.cache import cache_folder

    setting = "TI_OFFLINE_CACHE_FILE_PATH"
    yield _cache("Kernel cache", kernel_cache(), "each start compiles its kernels anew", setting)
    yield _cache("Wall cache", cache_folder(), "each start computes its walls anew", "PLIANT_CACHE")


def _cache(name: str, folder: Path, loss: str, setting: str) -> Check:
    try:
        with tempfile.TemporaryFile(dir=_nearest(folder)):
            return Check(name, "ok", f"{folder} is writable")
    except OSError as error:
        return Check(name, "warning", f"{folder} is not writable ({error.strerror}): {loss}",
                     f"allow writing there, or set {setting} to another folder")  # fmt: skip


# --- tried out in children --------------------------------------------------------------------------


class ProbeError(Exception):
    """A child did not do what it was asked; says in a few words why."""


def ask(code: str) -> Any:
    """Runs Python code that ends with a line of JSON in a child that finds the same modules as this process."""
    words = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}\n{code}"]
    try:
        child = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired:
        raise ProbeError(f"no answer within {TIME_LIMIT:g} s") from None
    except OSError as error:
        raise ProbeError(f"{sys.executable} cannot be started: {error.strerror}") from None
    if child.returncode < 0:
        raise ProbeError(f"its process crashed ({signal.strsignal(-child.returncode)})")
    if child.returncode:
        raise ProbeError((child.stderr.strip() or f"exit status {child.returncode}").splitlines()[-1])
    if not child.stdout.strip():
        raise ProbeError("its process ended without an answer")
    return json.loads(child.stdout.splitlines()[-1])


def ask_package(package: str, modules: str, answer: str = "None") -> list[Any]:
    """Version of an installed package whose modules can be imported, and the value of the expression `answer`."""
    return ask(f"""
import importlib.metadata, json
import {modules}
try:
    version = importlib.metadata.version({package!r})
except importlib.metadata.PackageNotFoundError:
    version = "of unknown version"
print(json.dumps([version, {answer}]))
""")


def graphics() -> dict[str, Any]:
    """What Taichi can use here. Runs in a child: Taichi warns about missing drivers, and drivers may crash."""
    from pliant.core import backend, launch_check
    from pliant.render.vulkan import available, in_software, vulkan_devices

    backends, devices = [name for name in BACKENDS if backend.is_supported(name)], vulkan_devices()
    slow = ""
    if "cpu" in backends:
        backend.start("cpu")
        slow = backend.slow_because()
        try:
            launch_check.check()
        except PliantError as error:
            slow = slow or str(error)
    return {"backends": backends, "missing": available(), "devices": devices, "software": in_software(devices),
            "slow": slow}  # fmt: skip


def taichi_and_vulkan() -> list[Check]:
    try:
        version = importlib.metadata.version("taichi")
    except importlib.metadata.PackageNotFoundError:
        version = "of unknown version"
    try:
        here = ask("import json; from pliant.commands import doctor; print(json.dumps(doctor.graphics()))")
    except ProbeError as error:
        found = f"{version}, but its backends cannot be tried: {error}"
        return [Check("Taichi", "warning", found, "try again; if it stays, reinstall the graphics driver")]
    taichi = Check("Taichi", "ok", f"{version}, backends: {', '.join(here['backends'])}")
    if "cpu" not in here["backends"]:
        taichi = Check("Taichi", "wrong", f"{version} without its CPU backend", "pip install --force-reinstall taichi")
    elif here["slow"]:
        found = f"{version}, whose kernels start slowly: it has changed since {TAICHI_TESTED} ({here['slow']})"
        taichi = Check("Taichi", "warning", found, f"pip install taichi=={TAICHI_TESTED}, which is faster")
    if here["missing"]:
        found, _, advice = here["missing"].rstrip(".").partition("; ")
        return [taichi, Check("Vulkan", "warning", f"no pictures: {found}", advice)]
    device = ", ".join(here["devices"]) or "an unknown device"
    if here["software"]:
        return [taichi, Check("Vulkan", "ok", f"draws pictures in software ({device})", "a graphics card is faster")]
    return [taichi, Check("Vulkan", "ok", f"draws pictures on {device}")]


FFMPEG = "f'ffmpeg {i.get_ffmpeg_version()} at {i.get_ffmpeg_exe()}'"
EXTRAS = [  # name, package, what to import from it, what goes without it, and an expression for more to tell
    ("Videos", "imageio-ffmpeg", "imageio_ffmpeg as i", "videos cannot be written", FFMPEG),
    ("Surfaces", "pysplashsurf", "pysplashsurf", "fluids are drawn as particles, without a surface"),
    ("Web viewer", "viser", "viser", "pliant view --web cannot serve a page"),
    ("USD", "usd-core", "pxr.Usd", "USD files cannot be written"),
    ("Robots", "mujoco", "mujoco", "pl.Robot cannot be used"),
    ("Plots", "matplotlib", "matplotlib", "pliant inspect cannot draw"),
]


def extra(name: str, package: str, modules: str, loss: str, more: str = "None") -> list[Check]:
    try:
        version, told = ask_package(package, modules, more)
    except ProbeError as error:
        problem = "not installed" if str(error).startswith("ModuleNotFoundError") else error
        return [Check(name, "warning", f"{problem}: {loss}", f"pip install {package}")]
    return [Check(name, "ok", f"{package} {version}" + (f", {told}" if told else ""))]
