"""`pliant doctor`: each check tells what it found, in what state that is and what to do; children cannot hurt it."""

import collections
import json
import sys
import threading
import types
from pathlib import Path

import pytest
import scipy

from pliant.commands import doctor
from pliant.commands.doctor import Check, ProbeError
from pliant.core import memory

LONG = 120.0  # [s] that a child may take on a busy machine

LOW = 1 * doctor.GIB
MAPS = """7f01-7f02 r-xp 00000000 08:01 12    /usr/lib/x/openblas-pthread/libblas.so.3
7f02-7f04 rw-p 00000000 00:00 0
7f05-7f06 r-xp 00000000 08:01 14    /a folder/libmkl_rt.so.2""".splitlines()


def answering(monkeypatch, value):
    """Lets every child answer with a value, or fail with an error."""

    def ask(code):
        if isinstance(value, Exception):
            raise value
        return value

    monkeypatch.setattr(doctor, "ask", ask)


@pytest.fixture(scope="module")
def report() -> list[Check]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doctor, "TIME_LIMIT", LONG)
        return doctor.checks()


def test_all_children_run_at_the_same_time(monkeypatch):
    together = threading.Barrier(1 + len(doctor.EXTRAS))

    def ask(code):
        together.wait(LONG)  # fails unless all of them come
        raise ProbeError("no answer")

    monkeypatch.setattr(doctor, "ask", ask)
    assert len([check for check in doctor.checks() if "no answer" in check.found]) == together.parties


def test_a_whole_report(report):
    found = report
    by_name = {check.name: check for check in found}
    assert len(by_name) == len(found) >= 14
    assert by_name["Python"].found.startswith("{}.{}.{}".format(*sys.version_info[:3]))
    assert by_name["Taichi"].state == "ok" and "cpu" in by_name["Taichi"].found
    assert {"Pliant", "Cores", "Memory", "Kernel cache", "Vulkan", "BLAS", "Videos", "USD", "Plots"} <= set(by_name)
    assert all(check.advice for check in found if check.state != "ok")
    assert all("\n" not in check.found + check.advice for check in found)


@pytest.mark.parametrize(("state", "status"), [("ok", 0), ("warning", 0), ("wrong", 1)])
def test_the_exit_status_tells_whether_something_needed_is_broken(monkeypatch, capsys, state, status):
    found = [Check("Python", "ok", "3.12"), Check("[b]Disk", state, "full", "tidy up")]
    monkeypatch.setattr(doctor, "checks", lambda: found)
    assert doctor.main() == status
    first, second = capsys.readouterr().out.splitlines()
    assert first.split() == ["ok", "Python", "3.12"]
    assert second.split() == [state, "[b]Disk", "full;", "tidy", "up"]
    assert first.index("3.12") == second.index("full")  # aligned


def test_json_holds_the_same_fields(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "checks", lambda: [Check("USD", "warning", "not installed", "pip install usd-core")])
    assert doctor.main(as_json=True) == 0
    (check,) = json.loads(capsys.readouterr().out)
    assert check == {"name": "USD", "state": "warning", "found": "not installed", "advice": "pip install usd-core"}


# --- the machine ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "state"), [((3, 9, 18), "wrong"), ((3, 10, 0), "ok"), ((3, 14, 0), "wrong")])
def test_python_versions(version, state):
    check = doctor.python(version)
    assert check.state == state and (state == "ok" or "3.10 to 3.13" in check.advice)


@pytest.mark.parametrize(
    ("library", "state", "words"),
    [
        ("/usr/lib/x/blas/libblas.so.3.11.0", "warning", "reference BLAS"),
        ("/usr/lib/x/openblas-pthread/libblas.so.3", "ok", "openblas-pthread/libblas.so.3"),
        ("/opt/mkl/libmkl_rt.so.2", "ok", "libmkl_rt"),
        ("", "ok", "says SciPy's build"),
    ],
)
def test_blas_by_its_file_or_by_the_build(monkeypatch, library, state, words):
    monkeypatch.setattr(doctor, "_openblas", lambda: "")
    monkeypatch.setattr(doctor, "_blas_file", lambda: library)
    check = doctor.blas()
    assert check.state == state and words in check.found and ("scipy" in check.advice) == (state != "ok")


@pytest.mark.parametrize(
    ("config", "threads", "found"),
    [
        (b"OpenBLAS 0.3.27 DYNAMIC_ARCH Haswell MAX_THREADS=64", 2, "OpenBLAS 0.3.27 (SciPy's), 2 threads"),
        (b"NO_LAPACKE Haswell", 1, "OpenBLAS (SciPy's), 1 thread"),  # before 0.3
    ],
)
def test_openblas_tells_of_itself(monkeypatch, config, threads, found):
    routines = {"scipy_openblas_get_config": lambda: config, "scipy_openblas_get_num_threads": lambda: threads}
    monkeypatch.setattr(doctor.ctypes, "CDLL", lambda path: types.SimpleNamespace(**routines))
    assert doctor.blas() == Check("BLAS", "ok", found)


def test_the_blas_of_this_scipy():
    """Where SciPy is linked dynamically, its matrix product lies in a file, and OpenBLAS in one of that name."""
    library, check = doctor._blas_file(), doctor.blas()
    assert not library or Path(library).is_file()
    assert "openblas" not in library or check.found.startswith("OpenBLAS")


def test_a_blas_that_tells_nothing_is_no_problem(monkeypatch):
    def fail(*_, **__):
        raise OSError("not here")

    monkeypatch.setattr(doctor.ctypes, "CDLL", fail)
    monkeypatch.setattr(scipy, "show_config", fail)
    assert doctor.blas() == Check("BLAS", "ok", "unknown library")


@pytest.mark.parametrize(("address", "file"), [(0x7F01, "libblas.so.3"), (0x7F03, ""), (0x7F05, "libmkl_rt.so.2")])
def test_the_file_at_an_address(address, file):
    assert Path(doctor.mapped_file(address, MAPS)).name == file


def test_little_disk_and_memory_are_warnings(monkeypatch):
    usage = collections.namedtuple("usage", "total used free")
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: usage(10 * LOW, 9 * LOW, LOW))
    monkeypatch.setattr(memory, "_container_memory", lambda: (2 * LOW, LOW))
    checks = [*doctor.disks(), doctor.memory()]
    assert [check.state for check in checks] == ["warning"] * 3
    assert checks[0].found == "1 GiB free" and "--out" in checks[0].advice


def test_limits_of_control_groups_count(monkeypatch, tmp_path):
    """The innermost group has no limit of its own, the one above has; cache that may be dropped counts as free."""
    (tmp_path / "outer/inner").mkdir(parents=True)
    (tmp_path / "outer/inner/memory.max").write_text("max\n")
    (tmp_path / "outer/memory.max").write_text(f"{8 * LOW}\n")
    (tmp_path / "outer/memory.current").write_text(f"{7 * LOW}\n")
    (tmp_path / "outer/memory.stat").write_text(f"anon 5\ninactive_file {2 * LOW}\n")
    monkeypatch.setattr(memory, "CGROUP_2", (tmp_path, *memory.CGROUP_2[1:]))
    read = memory.lines_of
    monkeypatch.setattr(memory, "lines_of", lambda p: ["0::/outer/inner"] if p == "/proc/self/cgroup" else read(p))
    assert memory._container_memory() == (8 * LOW, 3 * LOW)


def test_caches(monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("TI_OFFLINE_CACHE_FILE_PATH", str(tmp_path / "not/there/yet"))
    monkeypatch.setenv("PLIANT_CACHE", str(blocked))
    kernels, walls = doctor.caches()
    assert kernels.state == "ok" and not (tmp_path / "not").exists()  # looking leaves nothing behind
    assert walls.state == "warning" and str(blocked) in walls.found and "PLIANT_CACHE" in walls.advice


# --- children ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import a_module_that_is_not_there", "ModuleNotFoundError"),
        ("import os; os.abort()", "crashed"),
        ("import time; time.sleep(60)", "no answer within 0.5 s"),
        ("raise SystemExit(0)", "without an answer"),
        ("raise SystemExit(3)", "exit status 3"),
    ],
)
def test_children_that_fail(monkeypatch, code, words):
    monkeypatch.setattr(doctor, "TIME_LIMIT", 0.5 if "sleep" in code else LONG)
    with pytest.raises(ProbeError, match=words):
        doctor.ask(code)


def test_a_child_finds_the_same_modules_and_may_chatter(monkeypatch, tmp_path):
    (tmp_path / "chatty.py").write_text("print('[Noise] version 1')")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert doctor.ask_package("chatty", "chatty", "6 * 7") == ["of unknown version", 42]


@pytest.mark.parametrize("row", doctor.EXTRAS, ids=lambda row: row[0])
def test_what_is_not_installed_is_a_warning_with_a_command(monkeypatch, row):
    answering(monkeypatch, ProbeError(f"ModuleNotFoundError: No module named {row[2]!r}"))
    (check,) = doctor.extra(*row)
    assert check == Check(row[0], "warning", f"not installed: {row[3]}", f"pip install {row[1]}")


def test_what_is_installed_but_broken_says_why(monkeypatch):
    answering(monkeypatch, ProbeError("its process crashed (Segmentation fault)"))
    (check,) = doctor.extra(*doctor.EXTRAS[0])
    assert check.state == "warning" and "Segmentation fault" in check.found and "imageio-ffmpeg" in check.advice


def told(devices, **more):
    """What the child that tries graphics answers."""
    return {"backends": ["cpu"], "missing": None, "devices": devices, "software": False, "slow": ""} | more


@pytest.mark.parametrize(
    ("answer", "states", "words"),
    [
        (told(["GeForce"]), ["ok", "ok"], "on GeForce"),
        (told(["llvmpipe (LLVM 15)"], software=True), ["ok", "ok"], "software"),
        (told([]), ["ok", "ok"], "unknown device"),
        (told([], missing="no driver; apt it."), ["ok", "warning"], "no driver"),
        (told([], backends=[]), ["wrong", "ok"], "unknown device"),
        (told(["GeForce"], slow="wrong results"), ["warning", "ok"], "on GeForce"),
        (ProbeError("no answer within 4 s"), ["warning"], "no answer"),
    ],
)
def test_graphics(monkeypatch, answer, states, words):
    answering(monkeypatch, answer)
    checks = doctor.taichi_and_vulkan()
    assert [check.state for check in checks] == states and words in checks[-1].found
