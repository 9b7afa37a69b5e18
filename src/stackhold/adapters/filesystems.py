"""Whether a path lies on a file system that other machines write too.

There `flock` and rename do not promise what the directory store needs. Known from the mount table (Linux);
where there is none, nothing is known and nothing refused.
"""

from __future__ import annotations

import contextlib
from pathlib import Path, PurePosixPath

_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "ncpfs", "9p", "afs", "auristorfs", "coda"}
)
_CLUSTER = frozenset({"ceph", "glusterfs", "lustre", "gpfs", "beegfs", "orangefs", "ocfs2", "gfs", "gfs2"})
_FUSE = frozenset(
    f"fuse.{kind}"
    for kind in (
        "sshfs",
        "rclone",
        "s3fs",
        "gcsfuse",
        "goofys",
        "mount-s3",
        "glusterfs",
        "ceph-fuse",
        "juicefs",
        "davfs",
    )
)
_SHARED = _NETWORK | _CLUSTER | _FUSE | {"davfs", "davfs2"}
_MOUNTS = Path("/proc/self/mountinfo")


def network_kind(path: Path) -> str | None:
    """The kind of network file system that `path`, or its nearest existing parent, lies on; None for a local one."""
    with contextlib.suppress(OSError):
        kind = mounted_kind(_MOUNTS.read_text(encoding="utf-8", errors="replace"), PurePosixPath(path.resolve()))
        return kind if kind in _SHARED else None
    return None


def mounted_kind(mount_table: str, path: PurePosixPath) -> str | None:
    """The file system type at `path` by a mount table; a later mount hides an earlier one at the same point."""
    best, kind = -1, None
    for line in mount_table.splitlines():
        fields = line.split(" ")
        if len(fields) < 10 or "-" not in fields[6:]:
            continue
        point = PurePosixPath(_unescaped(fields[4]))
        if (path == point or point in path.parents) and len(point.parts) >= best:
            best, kind = len(point.parts), fields[fields.index("-", 6) + 1]
    return kind


def _unescaped(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text
