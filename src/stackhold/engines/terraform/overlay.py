"""Makes a folder of a module that may not be written to look as if it could be: links to all of its entries.

A module may name what lies outside of it (`../modules/net`), and the system looks for that from the folder that the
runtime runs in. So every folder above the module is made again as well, as a real folder with links to what the
original holds, and a relative path leads to the same file from the overlay as from the module, however far up.
`path.cwd` and `abspath` give the overlay's own place, which is another for each run.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_BESIDE: Final = 5000
"""A folder above the module with more entries than that is taken for a warehouse, not for a place of modules."""
_DATA: Final = ".terraform"
_ERRORED: Final = "errored.tfstate"


@contextmanager
def overlaid(directory: Path, scratch: Path | None = None) -> Iterator[Path]:
    """A writable folder that stands for `directory`, gone afterwards with all that was written into it.

    The module's data folder is not linked: it could not be written. A state that the runtime could not save
    (`errored.tfstate`) and nobody took away keeps the overlay from being removed.
    """
    top = Path(tempfile.mkdtemp(prefix="stackhold-module-", dir=scratch)).resolve()
    try:
        overlay = _build(top, directory.resolve())
    except BaseException:
        shutil.rmtree(top, ignore_errors=True)
        raise
    try:
        yield overlay
    finally:
        if not _holds_state(overlay):
            shutil.rmtree(top, ignore_errors=True)


def _build(top: Path, module: Path) -> Path:
    here, original = top, Path(module.anchor)
    for part in module.relative_to(original).parts:
        with suppress(OSError):
            _link_all(original, here, leaving_out={part}, top=top, most=_MOST_BESIDE)
        here, original = here / part, original / part
        here.mkdir(mode=0o700)
    _link_all(original, here, leaving_out={_DATA}, top=top)
    return here


def _link_all(original: Path, here: Path, *, leaving_out: set[str], top: Path, most: int | None = None) -> None:
    names = [name for name in os.listdir(original) if name not in leaving_out]
    if most is not None and len(names) > most:
        return
    for name in names:
        if original / name != top:
            os.symlink(original / name, here / name)


def _holds_state(overlay: Path) -> bool:
    errored = overlay / _ERRORED
    return errored.is_file() and not errored.is_symlink()
