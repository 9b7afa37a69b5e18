"""Builds the control plane that tests run on, once: `python -m tests.cluster.build [PART…]`.

With KUBEBUILDER_ASSETS set there is nothing to build; it only says whether all that is needed lies there.
"""

from __future__ import annotations

import sys

from tests.cluster.parts import PARTS, SHELF, assets, binary
from tests.gobuild import build
from tests.gobuild.part import NotBuilt

_TOOL = "tests.cluster.build"


def main(names: list[str]) -> int:
    """Build what is not there yet, of the parts named or of all."""
    if assets() is None:
        return build.run(names, parts=PARTS, shelf=SHELF, tool=_TOOL)
    try:
        for part in PARTS:
            print(f"{part.name}: {binary(part)}")
    except NotBuilt as error:
        print(f"{_TOOL}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
