"""MJCF, the models of MuJoCo: read whole, with all files that they refer to, so that no state depends on a file."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np

from pliant.errors import PliantError

Assets = tuple[tuple[str, np.ndarray], ...]  # names, and contents as bytes
WITH_FILES = ("mesh", "hfield", "texture", "skin", "flexcomp", "model")  # elements that refer to files, by kind
DIRECTORIES = ("assetdir", "meshdir", "texturedir", "strippath")  # of the compiler: where files are
DEEPEST = 20  # files that include each other


def mujoco() -> Any:
    """The library, or a sentence on where to get it."""
    try:
        import mujoco
    except ImportError as error:
        raise PliantError("robots are moved by MuJoCo, which is not installed or does not start; "
                          "pip install pliant[robots], with Python 3.11 or newer") from error  # fmt: skip
    if mujoco.get_mju_user_warning() is None:  # it would write a file where the program runs; errors tell the same
        mujoco.set_mju_user_warning(_ignore)
    return mujoco


def _ignore(text: str) -> None:
    """Takes a warning of MuJoCo."""


def read(source: Any) -> tuple[str, Assets]:
    """A model from a file or from XML text: text without includes, and the files that it needs. What cannot be read is
    told in one sentence."""
    if isinstance(source, str) and source.lstrip().startswith("<"):
        root, folder = _parsed(source, "its MJCF"), Path()
    elif isinstance(source, (str, Path)):
        root, folder = _parsed(_text(Path(source)), str(source)), Path(source).parent
    else:
        raise PliantError(f"the first value of Robot must be the name of an MJCF file, or XML text, got {source!r}")
    if root.tag != "mujoco":
        raise PliantError(f"a Robot needs MJCF, whose outermost element is <mujoco>; it is <{root.tag}> here")
    _include(root, folder)
    assets = _embed(root, folder)
    return ET.tostring(root, encoding="unicode"), assets


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise PliantError(f"the MJCF file {path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise PliantError(f"the MJCF file {path} is not text in UTF-8") from error


def _parsed(text: str, name: str) -> ET.Element:
    try:
        return ET.fromstring(text)
    except ET.ParseError as error:
        raise PliantError(f"{name} is broken XML: {error}") from error


def _include(element: ET.Element, folder: Path, depth: int = 0) -> None:
    """Puts what files hold in the place of <include file=>. Their names are relative to the folder of the model."""
    if depth > DEEPEST:
        raise PliantError("the files of the MJCF include each other without end")
    for child in list(element):
        if child.tag == "include":
            path = folder / child.get("file", "")
            inner = _parsed(_text(path), str(path))
            _include(inner, folder, depth + 1)
            place = list(element).index(child)
            element.remove(child)
            for k, one in enumerate(inner):
                element.insert(place + k, one)
        else:
            _include(child, folder, depth)


def _embed(root: ET.Element, folder: Path) -> Assets:
    """Reads all files that a model without includes refers to, and gives them names of their own in it."""
    compiler: dict[str, str] = {}
    for element in root.iter("compiler"):
        compiler |= {name: element.attrib.pop(name) for name in DIRECTORIES if name in element.attrib}
    found: dict[Path, tuple[str, np.ndarray]] = {}
    for element in root.iter():
        if element.tag not in WITH_FILES:
            continue
        texture = element.tag == "texture"
        within = compiler.get("texturedir" if texture else "meshdir", compiler.get("assetdir", ""))
        for key in [key for key in element.attrib if key.startswith("file")]:
            named = element.attrib[key]
            if compiler.get("strippath") == "true":
                named = Path(named).name
            path = folder / within / named
            if path not in found:
                kept = f"{len(found)}_{re.sub(r'[^a-z0-9.]', '_', path.name.lower())}"
                found[path] = kept, np.frombuffer(_bytes(path, element.tag), np.uint8)
            if element.tag in ("mesh", "hfield", "texture", "model") and "name" not in element.attrib:
                element.set("name", path.stem)  # as MuJoCo calls it
            element.set(key, found[path][0])
    return tuple(found.values())


def _bytes(path: Path, kind: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PliantError(f"the {kind} file {path} of the MJCF cannot be read: {error.strerror or error}") from error


def compiled(text: str, assets: Assets) -> Any:
    """The model, as MuJoCo makes it of MJCF; what it finds wrong is told in one sentence."""
    library = mujoco()
    try:
        return library.MjModel.from_xml_string(text, {name: data.tobytes() for name, data in assets})
    except ValueError as error:
        raise PliantError(f"MuJoCo cannot make a model of the MJCF: {' '.join(str(error).split())}") from error
