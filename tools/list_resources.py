"""Writes docs/reference/resources.md from the native handlers; with `--check`, only says whether it is up to date."""

from __future__ import annotations

import sys
from pathlib import Path

from stackhold.engines.cloudformation.resources.handler import FoundBy
from stackhold.engines.cloudformation.resources.registry import handler_for, native_types

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "resources.md"
_FOUND_BY = {
    FoundBy.NAME: "its name, if the tags are ours or nobody else can have the name",
    FoundBy.TOKEN: "its tags; a client token keeps a second send from making a second one",
    FoundBy.TAG: "its tags alone; a twin that lands late is removed",
    FoundBy.CHILD: "its place",
    FoundBy.NOTHING: "nothing: it is named, with the command that looks for it",
}
_HEAD = """# Resource types with a native handler

Made by `make docs` from the handlers. *Found again by*: how the next run tells whether a create happened whose answer
nobody heard, and takes on what it made. *Place*: the properties that say where to look. *Holds data*: a plan that
replaces or deletes it is asked about.

| Type | Found again by | Place | Name of up to | Holds data |
|---|---|---|---|---|
"""
_FOOT = """
Every other type goes through Cloud Control: found again by its identifier where the template names all of it, else by
its tags among all of its type. One that takes no tags and whose identifier AWS chooses cannot be found; the run names
it with the command that looks for it.
"""


def page() -> str:
    """The whole page."""
    rows = []
    for name in native_types():
        handler = handler_for(name)
        assert handler is not None
        rule = handler.name_rule
        length = f"{rule.limit} characters" if rule else ""
        place = ", ".join(_shown(handler.where))
        holds = "yes" if handler.is_stateful else ""
        rows.append(f"| `{name}` | {_FOUND_BY[handler.found_by]} | {place} | {length} | {holds} |")
    return _HEAD + "\n".join(rows) + "\n" + _FOOT


def _shown(where: tuple[str, ...]) -> list[str]:
    """The first few: a route's place has a property per kind of target."""
    return [f"`{each}`" for each in where[:4]] + (["…"] if len(where) > 4 else [])


def main() -> int:
    """Write it, or compare."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page():
        return 0
    print("docs/reference/resources.md is out of date: run make docs", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
