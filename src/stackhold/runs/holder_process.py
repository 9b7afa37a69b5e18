"""Whether the process that a lock names is running on this very host.

A lock's owner is `user@hostname:pid`. Of a process elsewhere nothing can be told from here, and neither of one in
another container that shares this host's name: what is told is a fact about this host, never a verdict on the lock.
"""

from __future__ import annotations

import os
import re
import socket

_OWNER = re.compile(r"[^@]*@(?P<host>[^:]+):(?P<pid>[1-9][0-9]{0,9})")


def pid_here(owner: str, *, hostname: str | None = None) -> int | None:
    """The process id when that process is running on this host; None otherwise."""
    pid = _local_pid(owner, hostname)
    return pid if pid is not None and _is_running(pid) else None


def pid_gone(owner: str, *, hostname: str | None = None) -> int | None:
    """The process id when it was one of this host and is running no longer; None otherwise."""
    pid = _local_pid(owner, hostname)
    return pid if pid is not None and not _is_running(pid) else None


def _local_pid(owner: str, hostname: str | None) -> int | None:
    found = _OWNER.fullmatch(owner)
    if found is None or found["host"] != (hostname if hostname is not None else socket.gethostname()):
        return None
    return int(found["pid"])


def _is_running(pid: int) -> bool:
    """Where it cannot be told, it counts as running."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OverflowError:
        return False
    except OSError:
        return True
    return True
