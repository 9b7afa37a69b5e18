"""Fails when a source file or a function outgrows the house's ceilings: 500 lines a file, 60 lines a function."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

FILE_CEILING = 500
FUNCTION_CEILING = 60


def complaints(path: Path) -> list[str]:
    """What is too long in one file."""
    text = path.read_text(encoding="utf-8")
    lines = len(text.splitlines())
    found = [f"{path}: {lines} lines, ceiling {FILE_CEILING}"] if lines > FILE_CEILING else []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_CEILING:
                found.append(f"{path}:{node.lineno}: {node.name} has {length} lines, ceiling {FUNCTION_CEILING}")
    return found


def main() -> int:
    """Check every file under the folders named as arguments."""
    found = [line for top in sys.argv[1:] for path in sorted(Path(top).rglob("*.py")) for line in complaints(path)]
    print("\n".join(found), file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
