"""Writes docs/reference/resources.md from the native handlers; with `--check`, only says whether it is up to date."""

from __future__ import annotations

import sys
from pathlib import Path

from stackhold.engines.cloudformation.resources.registry import handler_for, native_types

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "resources.md"
_FOUND_BY = {
    "name": "its name",
    "token": "a client token, or tags",
    "tag": "tags only",
    "child": "its parent",
    "nothing": "not at all",
}
_HEAD = """# Resource types with a native handler

Made by `make docs` from the handlers. *Found again by*: how a create whose answer was lost can be told to have
happened. *Holds data*: a plan that replaces or deletes it is asked about.

| Type | Found again by | Name of up to | Holds data |
|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    rows = []
    for name in native_types():
        handler = handler_for(name)
        assert handler is not None
        rule = handler.name_rule
        length = f"{rule.limit} characters" if rule else ""
        rows.append(
            f"| `{name}` | {_FOUND_BY[handler.found_by.value]} | {length} | {'yes' if handler.is_stateful else ''} |"
        )
    return _HEAD + "\n".join(rows) + "\n"


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
