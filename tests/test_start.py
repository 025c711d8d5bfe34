"""Start-up: help and lists do not import Taichi or NumPy, and the names of `import pliant` come when they are used.

Tells by the modules that a fresh process has imported, not by the clock.
"""

import inspect
import json
import subprocess
import sys

import pytest

import pliant as pl
from pliant.core import choices
from pliant.scene import listing, loading
from pliant.tools import validate

HEAVY = ("taichi", "numpy", "scipy", "igl", "trimesh", "meshio", "PIL")
HELPED = ("run", "view", "render", "export", "skin", "inspect", "sample", "doctor", "scenes", "bench", "validate")

AT_THE_END = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(list(sys.modules)), file=sys.stderr))
"""

SCENE = '''"""A scene.

More of it."""
A, B = 2, 3.5

def build(x, *, a=A, b=B, c=(1, 2), d=max(1, 2), **more):
    pass
'''


def imported_by(code: str) -> tuple[str, set[str]]:
    """What a fresh process prints, and which heavy packages it has imported in the end."""
    done = subprocess.run([sys.executable, "-c", AT_THE_END + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, {name.split(".")[0] for name in json.loads(done.stderr.splitlines()[-1])} & set(HEAVY)


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["scenes"], *([name, "--help"] for name in HELPED)],
                         ids=" ".join)  # fmt: skip
def test_help_and_lists_import_nothing_heavy(words):
    text, heavy = imported_by(f"sys.argv[1:] = {words!r}\nfrom pliant.commands.cli import main; main()")
    assert text and heavy == set()


def test_import_pliant_is_light_until_a_name_is_used():
    assert imported_by("import pliant as pl; pl.__version__, pl.__doc__")[1] == set()
    assert "taichi" in imported_by("import pliant as pl; pl.Scene")[1]


@pytest.mark.parametrize("code", [
    "from pliant import Scene, Fluid, load; Scene, Fluid, load",
    "from pliant import *; Scene, Elastic, write_video",
    "import pliant as pl; assert set(pl.__all__) < set(dir(pl)), dir(pl)",
    "import pliant as pl; assert pl.render.Camera is pl.Camera",
    "import pliant as pl; assert not hasattr(pl, 'scenery') and not hasattr(pl, '__wrapped__')",
    "import inspect, pliant as pl; assert 'Scene' in dict(inspect.getmembers(pl))",
])  # fmt: skip
def test_names_come_in_every_way(code):
    imported_by(code)


def test_every_stage_and_store_is_there_whichever_file_was_imported_first():
    told = """
from pliant.core.store import Store
from pliant.solvers.stage import Stage
print(sorted(cls.__qualname__ for cls in [*Stage.kinds, *Store.kinds]))
"""
    lone, _ = imported_by("from pliant.core.registry import load_plugins; load_plugins()" + told)
    whole, _ = imported_by("import pliant as pl; pl.Scene" + told)
    assert lone == whole and "Advance" in lone


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="module 'pliant' has no attribute 'Sceen'"):
        pl.Sceen  # noqa: B018


@pytest.mark.parametrize("summary", listing.list_scenes(), ids=lambda summary: summary.name)
def test_scenes_are_as_their_files_tell(summary):
    source = loading.find_scene(summary.name)
    options = {name: option.default for name, option in inspect.signature(source.build).parameters.items()}
    assert list(summary.options.items()) == list(options.items())
    assert summary.about == source.module.__doc__.strip().partition("\n")[0]


def test_what_a_scene_file_may_say():
    summary = listing.summarise("mine", SCENE)
    assert summary.about == "A scene."
    assert summary.options == {"a": 2, "b": 3.5, "c": (1, 2), "d": "max(1, 2)"}
    assert listing.summarise("empty", "").options == {}


def test_help_names_the_parameters_of_looks():
    assert tuple(pl.Look().values()) == choices.LOOK


def test_help_names_the_cases_of_validate():
    validate.load_cases()
    own = [name for name, case in validate.CASES.items() if case.__module__.startswith("pliant.tools.validation.")]
    assert sorted(validate.case_names()) == sorted(own)
