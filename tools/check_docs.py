"""Fails when a Markdown file links to a file or heading of this repository that is not there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.M)
_FENCE = re.compile(r"^```.*?^```\s*$", re.M | re.S)


def anchor(heading: str) -> str:
    """A heading's anchor, as the usual renderers make it."""
    plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def complaints(path: Path) -> list[str]:
    """Dead links of one file."""
    found = []
    for target in _LINK.findall(_FENCE.sub("", path.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, fragment = target.partition("#")
        there = (path.parent / name).resolve() if name else path
        if not there.exists():
            found.append(f"{path.relative_to(ROOT)}: no such file: {target}")
        elif fragment and there.suffix == ".md":
            anchors = {anchor(h) for h in _HEADING.findall(_FENCE.sub("", there.read_text(encoding="utf-8")))}
            if fragment not in anchors:
                found.append(f"{path.relative_to(ROOT)}: no such heading: {target}")
    return found


def main() -> int:
    """Check every page at the top and under docs/ and examples/."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    found = [line for page in sorted(pages) for line in complaints(page)]
    print("\n".join(found), file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
