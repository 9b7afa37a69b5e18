"""Finds and keeps states that a runtime could not write where they belong.

When its last write fails, a runtime leaves the state in `errored.tfstate` in its working folder, readable for all, and
never looks at it again; when that fails too, the state is only in its stream. Both are whole states, with everything
that the run made: they are kept from other eyes, and taken up before anything is planned.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

from stackhold.engines.terraform.state_facts import facts_of, serial_of
from stackhold.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["Standing", "errored_in", "find_errored", "keep_emergency", "read_errored", "serial_of", "standing"]

ERRORED: Final = "errored.tfstate"
LARGEST: Final = 256 * 1024 * 1024
_CHOSEN: Final = ("lineage", "serial", "terraform_version")


class Standing(StrEnum):
    """What a state that was left is, beside the one that the backend has."""

    NEWER = "newer"
    """It goes on from that one, or there is none: it is to be pushed."""
    SAME = "same"
    """That one holds all that it holds."""
    OLDER = "older"
    """That one has gone on since."""
    OTHER = "other"
    """They are not of one line, or one serial stands for two states: somebody must look."""


def standing(left: bytes, current: bytes | None) -> Standing:
    """Compare by lineage and serial; raises `InputError` for a state that is not taken.

    The runtime chooses a lineage when a state is written for the first time. So one that could not be written then
    has none, and what it says that a backend holds which holds nothing has none either.
    """
    lineage, serial = serial_of(left, what=f"the state in {ERRORED}")
    if current is None:
        return Standing.NEWER
    if left == current:
        return Standing.SAME
    now_lineage, now_serial = serial_of(current, what="the state in the backend")
    if not now_lineage and not now_serial:
        return Standing.NEWER
    if lineage != now_lineage:
        return Standing.SAME if not lineage and _content(left) == _content(current) else Standing.OTHER
    if serial == now_serial:
        return Standing.SAME if msgspec.json.decode(left) == msgspec.json.decode(current) else Standing.OTHER
    return Standing.NEWER if serial > now_serial else Standing.OLDER


def _content(state: bytes) -> dict[str, object]:
    """All but what is chosen anew when it is written."""
    document = msgspec.json.decode(state, type=dict[str, object])
    return {name: value for name, value in document.items() if name not in _CHOSEN}


def find_errored(directory: Path, *kept: Path) -> Sequence[Path]:
    """The files that hold a state of this module which nobody could write, the one to be pushed first before others.

    `kept` are the folders in which `keep_emergency` may have put one. Each file is for its owner alone afterwards.
    Raises `InputError` for one that cannot be read or is no state.
    """
    name = _emergency_name(directory)
    places = [directory / ERRORED, *(folder / name for folder in kept), *(folder.parent / name for folder in kept)]
    found = {place: facts_of(data, what=str(place)) for place in places if (data := read_errored(place)) is not None}
    return sorted(found, key=lambda place: found[place].serial)


def errored_in(directory: Path) -> Path | None:
    """The file that the runtime itself left in a module's folder."""
    place = directory / ERRORED
    return place if read_errored(place) is not None else None


def read_errored(place: Path) -> bytes | None:
    """What such a file holds, which is for its owner alone from now on; None when there is none."""
    try:
        handle = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(place, error.strerror or str(error)) from error
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            raise _unreadable(place, "it is no file")
        if facts.st_size > LARGEST:
            raise _unreadable(place, f"it has more than {LARGEST:,} bytes")
        with contextlib.suppress(OSError):
            os.fchmod(handle, stat.S_IRUSR | stat.S_IWUSR)
        with open(handle, "rb", closefd=False) as file:
            return file.read(LARGEST)
    except OSError as error:
        raise _unreadable(place, error.strerror or str(error)) from error
    finally:
        os.close(handle)


def keep_emergency(state: bytes, directory: Path, kept: Path) -> Path:
    """Write a state that was only in the stream to a file of its owner alone, where `find_errored` looks for it.

    That is the module's folder if it can be written, else the one beside the run's own, `kept`. A state of the same
    line that is there with a higher serial stays. Raises `InputError` when it is no state, `OSError` when it can be
    written nowhere.
    """
    facts = facts_of(state, what="the state in the stream")
    place = directory / ERRORED
    with contextlib.suppress(OSError, InputError):
        former = read_errored(place)
        if former is not None and standing(former, state) in (Standing.NEWER, Standing.SAME):
            return place
        if former is None or facts.lineage == facts_of(former).lineage:
            return _written(place, state)
    kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return _written(kept.parent / _emergency_name(directory), state)


def _written(place: Path, data: bytes) -> Path:
    """Write it whole beside its place, then put it there."""
    beside = place.with_name(f"{place.name}.{os.getpid()}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(handle, "wb") as file:
            os.fchmod(handle, 0o600)
            file.write(data)
            file.flush()
            os.fsync(handle)
        beside.replace(place)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return place


def _emergency_name(directory: Path) -> str:
    """Tells one module's from another's."""
    return f"errored-{hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()[:16]}.tfstate"


def _unreadable(place: Path, why: str) -> InputError:
    return InputError(
        f"{place} holds a state that an earlier run could not write, and it cannot be read: {why}",
        hint="A plan without it would make what it holds again. Make it readable, or move it away if it is of no use.",
    )
