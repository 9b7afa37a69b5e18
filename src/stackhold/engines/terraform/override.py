"""Gives a module that declares no backend one for the time of a run, by an override file of our own beside its files.

The file says no more than which kind of backend; everything else goes by the environment, so nothing of it stays in
the module's data folder. It carries a lock for as long as its run lives, by which the file of a run that died is told
from that of one at work. In a module that may not be written the file goes into an overlay (`overlay.py`).
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from stackhold.engines.terraform.overlay import overlaid
from stackhold.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_TEXT: Final = b"""\
# Placed by stackhold for the time of a run, which removes it. When no run is at work it may be deleted.
terraform {
  backend "http" {}
}
"""
_NAME: Final = re.compile(r"stackhold_[0-9A-Za-z-]+_override\.tf")
_READ_ONLY: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


@contextmanager
def backend_override(directory: Path, run_id: str, *, scratch: Path | None = None) -> Iterator[Path]:
    """The folder to run in while the module has an `http` backend: the module's own, or an overlay of it.

    `scratch` is where an overlay is made, the system's folder for temporary files unless given. What dead runs left
    in the module is removed first.
    """
    _remove_dead(directory)
    name = f"stackhold_{re.sub('[^0-9A-Za-z-]', '-', run_id)}_override.tf"
    try:
        fd = _place(directory / name)
    except OSError as error:
        if error.errno not in _READ_ONLY:
            raise InputError(f"cannot write {directory / name}: {error.strerror}") from error
        with overlaid(directory, scratch) as overlay, _held(overlay / name, _place(overlay / name)):
            yield overlay
        return
    with _held(directory / name, fd):
        yield directory


def is_our_override(file: Path) -> bool:
    """Whether this is such a file, perhaps an unfinished one."""
    if not _NAME.fullmatch(file.name) or file.is_symlink():
        return False
    try:
        return file.stat().st_size <= len(_TEXT) and _TEXT.startswith(file.read_bytes())
    except OSError:
        return False


def _place(file: Path) -> int:
    """Write the file; returns it open, with its lock.

    Another run may look at it before it has that, take it for a dead run's and remove it: then it is written again.
    """
    while True:
        fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_EX)
            os.write(fd, _TEXT)
            if _is_open_as(fd, file):
                return fd
        except BaseException:
            file.unlink(missing_ok=True)
            os.close(fd)
            raise
        os.close(fd)


@contextmanager
def _held(file: Path, fd: int) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(OSError):
            if _is_open_as(fd, file):
                file.unlink()
        os.close(fd)


def _remove_dead(directory: Path) -> None:
    with suppress(OSError):
        for file in directory.glob("stackhold_*_override.tf"):
            if is_our_override(file):
                _remove_if_dead(file)


def _remove_if_dead(file: Path) -> None:
    """Remove it unless a run at work holds its lock; where locks do not work it stays."""
    with suppress(OSError):
        fd = os.open(file, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_open_as(fd, file):
                file.unlink()
        finally:
            os.close(fd)


def _is_open_as(fd: int, file: Path) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(file))
    except FileNotFoundError:
        return False
