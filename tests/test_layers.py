"""The shape of the project: imports go down only, and the rules that keep kernels and the package whole."""

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"engine": "pliant", "materials": "pliant.materials", "solvers": "pliant.solvers"}
FOLDERS |= {"scenes": "pliant.scenes", "tools": "pliant.tools", "tests": "tests"}

CORE = ["boundary", "core", "errors", "geometry"]
FACADE = 3  # everything in engine/ that is not core
LAYERS = {f"pliant.{name}": 0 for name in CORE}
LAYERS |= {"pliant.materials": 1, "pliant.solvers": 2, "pliant.scenes": 4, "pliant.tools": 5, "tests": 5}

SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
KERNEL_FOLDERS = ("engine", "materials", "solvers")


def inside(*folders: str) -> list[Path]:
    return [path for path in SOURCES if path.relative_to(ROOT).parts[0] in folders]


def each(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.relative_to(ROOT).as_posix())


def module_name(path: Path) -> str:
    folder, *rest = path.relative_to(ROOT).with_suffix("").parts
    return ".".join([FOLDERS[folder], *rest]).removesuffix(".__init__")


MODULES = {module_name(path) for path in SOURCES}


def layer(module: str) -> int:
    """The layer of the longest known prefix of a module's name; the rest of the engine is the facade."""
    while module not in LAYERS and "." in module:
        module = module.rpartition(".")[0]
    return LAYERS.get(module, FACADE)


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    """What a file consists of."""
    return list(ast.walk(ast.parse(path.read_text())))


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, wherever the import stands, by its full name."""
    package = module_name(path) if path.name == "__init__.py" else module_name(path).rpartition(".")[0]
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            origin = ".".join(part for part in (base, node.module) if part)
            for alias in node.names:  # `from pliant import errors` means pliant.errors, not the facade
                inner = f"{origin}.{alias.name}"
                yield inner if inner in MODULES else origin


@each(SOURCES)
def test_imports_go_down(path):
    own = module_name(path)
    upward = [name for name in imports(path) if name.split(".")[0] == "pliant" and layer(name) > layer(own)]
    assert not upward, f"{own} (layer {layer(own)}) imports from above: {upward}"


@each(SOURCES)
def test_nobody_imports_the_bare_folders(path):
    bare = [name for name in imports(path) if name.split(".")[0] in FOLDERS]
    assert not bare, f"import {bare} as part of pliant"


@each(inside("scenes"))
def test_scenes_use_the_facade_only(path):
    allowed = {"pliant", "numpy"} | set(sys.stdlib_module_names)
    inner = [n for n in imports(path) if n.startswith("pliant.") and layer(n) != LAYERS["pliant.scenes"]]
    others = inner + [n for n in imports(path) if n.split(".")[0] not in allowed]
    assert not others, f"a scene needs `import pliant as pl`, NumPy and maybe another scene, not {others}"


@each(inside(*KERNEL_FOLDERS))
def test_annotations_are_not_postponed(path):
    assert "__future__" not in imports(path), "Taichi reads a kernel's annotations as objects, not as text"


def starts_taichi(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "taichi" and any(alias.name == "init" for alias in node.names)
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("ti.init", "taichi.init")


def test_only_the_backend_starts_taichi():
    starters = [path for path in SOURCES if any(map(starts_taichi, nodes(path)))]
    assert starters == [ROOT / "engine" / "core" / "backend.py"]


def test_packages_are_the_folders_with_python_files():
    """setuptools cannot discover packages under a folder mapping, so the list is kept by hand."""
    listed = re.search(r"^packages = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(), re.MULTILINE | re.DOTALL)
    assert listed is not None
    folders = {path.parent for path in SOURCES if path not in inside("tests")}
    assert set(re.findall(r'"(.+?)"', listed[1])) == {module_name(folder / "__init__.py") for folder in folders}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


@pytest.mark.skipif(not (ROOT / "engine" / "__init__.py").read_text(), reason="the facade is not written yet")
def test_bare_import_fails_with_a_sentence():
    run = subprocess.run([sys.executable, "-c", "import engine"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode != 0
    assert re.fullmatch(r"ImportError: .*import pliant.*\.", run.stderr.splitlines()[-1])


def test_files_that_the_pages_name_are_there():
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    named = [(page.name, link) for page in pages for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())]
    assert ("README.md", "scenes/viewer.png") in named
    assert [(page, link) for page, link in named if not (ROOT / link).exists()] == []
