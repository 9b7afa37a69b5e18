"""What a root module declares, read from its files: whether it is one, and which backend it has.

The runtime takes an empty directory for a module, so that is looked at here. A file that the runtime would not take
into account is not taken into account either; what is wrong inside one is left to the runtime to report, but for two
backends, where nobody could tell which state is meant.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stackhold.engines.terraform.hcl import headers
from stackhold.engines.terraform.override import backend_override, is_our_override
from stackhold.engines.terraform.runtime import TERRAFORM
from stackhold.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Declared", "ModuleFacts", "backend_override", "inspect_module"]

CLOUD: Final = "cloud"
_HIDES: Final = {".tofu": ".tf", ".tofu.json": ".tf.json"}
"""Which file of the same name OpenTofu leaves out for one with this ending."""
_ENDINGS: Final = (".tf.json", ".tofu.json", ".tf", ".tofu")
_BACKEND_KEY: Final = re.compile(r'"(backend|cloud)"\s*:')


@dataclass(frozen=True, slots=True)
class Declared:
    """A backend that a module declares."""

    kind: str
    """`s3`, `http`, …; `cloud` for a `cloud` block."""
    file: str
    """Its file's name in the module."""
    line: int
    is_override: bool = False
    """It stands in an override file, and so takes the place of one that does not."""

    @property
    def where(self) -> str:
        """For people: `main.tf:3`."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class ModuleFacts:
    """A root module."""

    directory: Path
    """In full."""
    files: tuple[str, ...]
    """The names of its configuration files, sorted; of two that stand for each other the one that counts."""
    backends: tuple[Declared, ...] = ()
    """All that are declared, in the order in which one takes the place of another."""

    @property
    def backend(self) -> Declared | None:
        """The one that counts; None when the module declares none."""
        return self.backends[-1] if self.backends else None

    @property
    def has_configuration(self) -> bool:
        """Whether there is any configuration file."""
        return bool(self.files)


def inspect_module(directory: Path, *, product: str = "") -> ModuleFacts:
    """Look at a root module.

    `product` (`terraform` or `opentofu`) is who will read it: only OpenTofu reads `.tofu` files; unless told, those
    count as well. Raises `InputError` for no directory, no configuration, an unreadable file, and two backends.
    """
    directory = directory.resolve() if ".." in directory.parts else Path(os.path.abspath(directory))
    files = _configuration_files(directory, product)
    if not files:
        raise InputError(
            f"{directory} holds no configuration files (*.tf, *.tofu, *.tf.json, *.tofu.json)",
            hint="Name the folder of a root module.",
        )
    declared = [found for name in files for found in _declared(directory, name)]
    primary = _only_one(directory, [each for each in declared if not each.is_override])
    overrides: list[Declared] = []
    for name in files:
        overrides += _only_one(directory, [each for each in declared if each.is_override and each.file == name])
    return ModuleFacts(directory, files, (*primary, *overrides))


def _configuration_files(directory: Path, product: str) -> tuple[str, ...]:
    try:
        entries = sorted(entry.name for entry in os.scandir(directory) if not entry.is_dir())
    except NotADirectoryError as error:
        raise InputError(f"{directory} is a file, not the folder of a root module") from error
    except FileNotFoundError as error:
        raise InputError(f"there is no directory {directory}") from error
    except OSError as error:
        raise InputError(f"{directory} cannot be read: {error.strerror}") from error
    names = {name for name in entries if _ending(name) and not _is_ignored(name)}
    if product == TERRAFORM:
        names = {name for name in names if ".tofu" not in _ending(name)}
    hidden = {name.removesuffix(_ending(name)) + _HIDES[_ending(name)] for name in names if _ending(name) in _HIDES}
    return tuple(name for name in sorted(names - hidden) if not is_our_override(directory / name))


def _ending(name: str) -> str:
    return next((ending for ending in _ENDINGS if name.endswith(ending)), "")


def _is_ignored(name: str) -> bool:
    """Hidden files and those that editors leave about."""
    return name.startswith(".") or name.endswith("~") or (name.startswith("#") and name.endswith("#"))


def _declared(directory: Path, name: str) -> Iterator[Declared]:
    try:
        text = (directory / name).read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise InputError(f"{directory / name} cannot be read: {error.strerror}") from error
    stem = name.removesuffix(_ending(name))
    is_override = stem == "override" or stem.endswith("_override")
    found = _in_json(text) if name.endswith(".json") else _in_hcl(text)
    for kind, line in found:
        yield Declared(kind, name, line, is_override=is_override)


def _in_hcl(text: str) -> Iterator[tuple[str, int]]:
    if "backend" not in text and CLOUD not in text:
        return
    for header in headers(text):
        match header.path:
            case (("terraform",), ("backend", kind)):
                yield kind, header.line
            case (("terraform",), ("cloud",)):
                yield CLOUD, header.line


def _in_json(text: str) -> Iterator[tuple[str, int]]:
    try:
        document = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return
    lines = iter([text.count("\n", 0, found.start()) + 1 for found in _BACKEND_KEY.finditer(text)])
    for settings in _bodies(document, "terraform"):
        for key, value in settings:
            if key == CLOUD:
                line = next(lines, 1)
                yield from ((CLOUD, line) for _ in _blocks(value))
            elif key == "backend":
                line = next(lines, 1)
                yield from ((kind, line) for block in _blocks(value) for kind, inner in block for _ in _blocks(inner))


class _Pairs(tuple[tuple[str, object], ...]):
    """A JSON object as it is written: a repeated key is a repeated block."""

    __slots__ = ()


def _bodies(document: object, key: str) -> Iterator[_Pairs]:
    for block in _blocks(document):
        for name, value in block:
            if name == key:
                yield from _blocks(value)


def _blocks(value: object) -> Iterator[_Pairs]:
    """One block, or several in a list."""
    if isinstance(value, _Pairs):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _blocks(each)


def _only_one(directory: Path, declared: Sequence[Declared]) -> Sequence[Declared]:
    if len(declared) > 1:
        places = " and ".join(f"{each.kind!r} at {each.where}" for each in declared)
        raise InputError(f"{directory} declares more than one backend: {places}", hint="Leave one of them.")
    return declared
