"""Looks through this machine's processes: who belongs to a child, and whether a child of an earlier run still lives.

A child leads a process group and a session, and its process id is not given to another as long as anybody is in
either. Only reads; where there is no /proc nothing is seen of the others.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_BOOT_ID: Final = _PROC / "sys/kernel/random/boot_id"
_DEAD: Final = frozenset("ZXx")
_STATE, _PARENT, _STARTED = 0, 1, 19
"""Where these stand in a process's `stat`, counted from behind its name."""


@dataclass(frozen=True, slots=True)
class Member:
    """One process that a child started, or that was started by such a one."""

    pid: int
    is_dead: bool
    """Ended, but not reaped yet."""
    is_ours: bool
    """It is this process's own child by now: the first process of a container inherits the orphans."""


def company(leader: int) -> list[Member]:
    """The processes in the leader's group or session, without itself."""
    with suppress(OSError):
        pids = map(int, filter(str.isdigit, os.listdir(_PROC)))
        return [member for pid in pids if (member := _member(pid, leader)) is not None]
    return []


def mark(pid: int, file: Path) -> None:
    """Write down which process this is, so that a reuse of its id is told from it. Best effort."""
    fields = {"pid": pid, "started": _started(pid), "boot": _boot()}
    with suppress(OSError):
        fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="ascii") as out:
            json.dump(fields, out)


def marked_pid(file: Path) -> int | None:
    """The id of the process that was written down; None for no such file."""
    try:
        return int(json.loads(file.read_text(encoding="ascii"))["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_at_work(file: Path) -> bool:
    """Whether the process that was written down, or anything in its group or session, lives; False for no such file."""
    try:
        fields = json.loads(file.read_text(encoding="ascii"))
        pid, started, boot = int(fields["pid"]), str(fields["started"]), str(fields["boot"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    if boot != _boot() or pid <= 1:
        return False
    if not boot:
        return _answers(pid)
    now = _stat(pid)
    if now and now[_STARTED] != started:
        return False
    return (bool(now) and now[_STATE] not in _DEAD) or any(not member.is_dead for member in company(pid))


def _member(pid: int, leader: int) -> Member | None:
    if pid == leader:
        return None
    with suppress(OSError):
        if leader in (os.getpgid(pid), os.getsid(pid)) and (stat := _stat(pid)):
            return Member(pid, is_dead=stat[_STATE] in _DEAD, is_ours=stat[_PARENT] == str(os.getpid()))
    return None


def _stat(pid: int) -> list[str]:
    """The fields of a process behind its name, which may hold anything; none when it is gone."""
    with suppress(OSError):
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return fields if len(fields) > _STARTED else []
    return []


def _started(pid: int) -> str:
    fields = _stat(pid)
    return fields[_STARTED] if fields else ""


def _boot() -> str:
    with suppress(OSError):
        return _BOOT_ID.read_text(encoding="ascii").strip()
    return ""


def _answers(pid: int) -> bool:
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
