"""Builds OpenTofu and the test providers from their Go modules, once: `python -m tests.runtimes.build [PART…]`.

Of the providers it makes the filesystem mirror that both runtimes install from.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.gobuild import build
from tests.runtimes.parts import HOSTS, PARTS, PROVIDERS, SHELF, mirror_folder, platform_name


def main(names: list[str]) -> int:
    """Build what is not there yet, of the parts named or of all, then the mirror of the providers."""
    return build.run(names, parts=PARTS, shelf=SHELF, tool="tests.runtimes.build", then=_mirror)


def _mirror() -> None:
    """Make the unpacked filesystem mirror: one tree per registry name, of hard links to the built providers."""
    if not all(part.path.is_file() for part in PROVIDERS.values()):
        return
    target = mirror_folder()
    if not target.is_dir():
        scratch = Path(tempfile.mkdtemp(prefix=build.SCRATCH, dir=SHELF.path))
        for source, part in PROVIDERS.items():
            for host in HOSTS:
                folder = scratch / host / source / part.version / platform_name()
                folder.mkdir(parents=True)
                os.link(part.path, folder / part.file)
        scratch.rename(target)
    os.utime(target)
    print(f"provider mirror: {target}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
