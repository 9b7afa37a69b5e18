"""Runs one container: reads what to run on standard input, makes its namespaces, and says what becomes of it.

A program of its own, started by path, that needs nothing but the standard library. The container's first process is
process 1 of new PID, mount, IPC and UTS namespaces, on a root that is put together here: layers of files, then mounts.
It has the machine's network. On the descriptor `report` one line says that it runs and its process id, or why it could
not be started; a last line says how it ended. When this program dies, the container dies with it.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import warnings
from typing import Any

_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 32, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_NEW_NAMESPACES = 0x00020000 | 0x20000000 | 0x04000000 | 0x08000000
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 24, 38
_LAST_CAPABILITY = 63
_EINVAL = 22
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}
_MOST_LINKS = 40

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> int:
    """Run the container to its end."""
    spec: dict[str, Any] = json.loads(sys.stdin.buffer.read())
    report = int(spec["report"])
    _die_with(signal.SIGKILL)
    try:
        _call("unshare", _NEW_NAMESPACES)
        child, trouble = _fork(spec)
    except OSError as error:
        _say(report, {"failed": f"no namespaces: {error}"})
        return 0
    with os.fdopen(trouble) as said:
        text = said.read()
    if text:
        os.waitpid(child, 0)
        _say(report, {"failed": text})
        return 0
    _say(report, {"pid": child})
    _, status = os.waitpid(child, 0)
    _say(report, {"code": 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)})
    return 0


def _fork(spec: dict[str, Any]) -> tuple[int, int]:
    heard, said = os.pipe()
    child = os.fork()
    if child:
        os.close(said)
        return child, heard
    try:
        _become(spec)
    except BaseException as error:
        os.write(said, f"{error}".encode() or b"failed")
    os._exit(128)


def _become(spec: dict[str, Any]) -> None:
    _die_with(signal.SIGKILL)
    os.setsid()
    os.umask(0o022)
    _call("sethostname", spec["host_name"].encode(), len(spec["host_name"].encode()))
    root = _make_root(spec)
    os.chdir(root)
    _call("pivot_root", b".", b".")
    _call("umount2", b".", _MNT_DETACH)
    os.chdir("/")
    os.makedirs(spec["working_dir"], exist_ok=True)
    os.chdir(spec["working_dir"])
    _drop_privileges(spec)
    _die_with(signal.SIGKILL)
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execvpe(spec["argv"][0], spec["argv"], spec["env"])


def _make_root(spec: dict[str, Any]) -> str:
    """Put the container's files together under the scratch folder, which a file system in memory covers from now on."""
    scratch: str = spec["scratch"]
    _mount("none", "/", "", _MS_REC | _MS_PRIVATE)
    held = [_hold(one["source"]) for one in spec["mounts"]]
    layers = [_hold(layer) for layer in spec["layers"]]
    _mount("tmpfs", scratch, "tmpfs", 0, "mode=0755")
    root, upper, work, empty = (f"{scratch}/{name}" for name in ("root", "upper", "work", "empty"))
    for folder in (root, upper, work, empty):
        os.mkdir(folder, 0o755)
    lower = ["/"] if spec["on_host"] else [*layers, empty]
    _overlay(lower, root, upper, work)
    for layer in layers if spec["on_host"] else ():
        _lay(layer, root, "", scratch)
    _make_system(root)
    for one, source in sorted(zip(spec["mounts"], held, strict=True), key=lambda pair: pair[0]["target"].count("/")):
        _bind(source, _target(root, one["target"], is_folder=os.path.isdir(source)), read_only=one["read_only"])
    os.makedirs(_inside(root, spec["working_dir"]), exist_ok=True)
    if spec["read_only_root"]:
        _mount("none", root, "", _MS_REMOUNT | _MS_BIND | _MS_RDONLY)
    return root


def _overlay(lower: list[str], target: str, upper: str, work: str) -> None:
    _mount("overlay", target, "overlay", 0, f"lowerdir={':'.join(lower)},upperdir={upper},workdir={work}")


def _lay(layer: str, root: str, at: str, scratch: str) -> None:
    """Lay an image's files over the machine's. They may lie inside of those, which no single overlay allows.

    A folder that only the image has can be written to, as all of the container's files; single files of it cannot.
    """
    for name in sorted(os.listdir(f"{layer}{at}")):
        source, path = f"{layer}{at}/{name}", f"{at}/{name}"
        target = _inside(root, path)
        if os.path.islink(source):
            os.symlink(os.readlink(source), f"{_inside(root, at)}/{name}")
        elif not os.path.isdir(source):
            _bind(source, _target(root, path, is_folder=False), read_only=True)
        elif os.path.isdir(target):
            _lay(layer, root, path, scratch)
        else:
            upper, work = (f"{scratch}/{len(os.listdir(scratch))}-{use}" for use in ("upper", "work"))
            os.mkdir(upper)
            os.chmod(upper, os.stat(source).st_mode & 0o7777)
            os.mkdir(work)
            os.mkdir(target)
            _overlay([source], target, upper, work)


def _hold(path: str) -> str:
    """A name for what lies at `path` now, whatever is mounted over it later."""
    return f"/proc/self/fd/{os.open(path, os.O_PATH)}"


def _make_system(root: str) -> None:
    proc = _target(root, "/proc", is_folder=True)
    _mount("proc", proc, "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    dev = _target(root, "/dev", is_folder=True)
    _mount("tmpfs", dev, "tmpfs", _MS_NOSUID, "mode=0755")
    for name in _DEVICES:
        _bind(f"/dev/{name}", _target(root, f"/dev/{name}", is_folder=False), read_only=False)
    for name in ("pts", "shm"):
        os.mkdir(f"{dev}/{name}")
    _mount("devpts", f"{dev}/pts", "devpts", _MS_NOSUID | _MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
    _mount("shm", f"{dev}/shm", "tmpfs", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, "mode=1777")
    for name, text in _LINKS.items():
        os.symlink(text, f"{dev}/{name}")
    sys_folder = _target(root, "/sys", is_folder=True)
    _bind("/sys", sys_folder, read_only=True)


def _target(root: str, path: str, *, is_folder: bool) -> str:
    """Make the place in the container's files where something is mounted."""
    target = _inside(root, path)
    if is_folder:
        os.makedirs(target, exist_ok=True)
    elif not os.path.lexists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    return target


def _inside(root: str, path: str) -> str:
    """Follow `path` as a process with that root would: links in the container's files stay in them."""
    left, at, links = [part for part in path.split("/") if part], "", 0
    while left:
        part = left.pop(0)
        if part in (".", ".."):
            at = at if part == "." else os.path.dirname(at)
            continue
        step = f"{at}/{part}"
        if os.path.islink(root + step):
            links += 1
            if links > _MOST_LINKS:
                raise OSError(f"too many links in {path}")
            text = os.readlink(root + step)
            left = [one for one in text.split("/") if one] + left
            at = "" if text.startswith("/") else at
        else:
            at = step
    return root + at


def _bind(source: str, target: str, *, read_only: bool) -> None:
    _mount(source, target, "", _MS_BIND | (0 if read_only else _MS_REC))
    if read_only:
        _mount("none", target, "", _MS_REMOUNT | _MS_BIND | _MS_RDONLY)


def _drop_privileges(spec: dict[str, Any]) -> None:
    if spec["capabilities"] is not None:
        for number in range(_LAST_CAPABILITY + 1):
            if number not in spec["capabilities"]:
                try:
                    _call("prctl", _PR_CAPBSET_DROP, number, 0, 0, 0)
                except OSError as error:
                    if error.errno != _EINVAL:
                        raise
    os.setgroups(spec["groups"])
    os.setresgid(spec["group"], spec["group"], spec["group"])
    os.setresuid(spec["user"], spec["user"], spec["user"])
    if spec["no_new_privileges"]:
        _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _die_with(number: int) -> None:
    _call("prctl", _PR_SET_PDEATHSIG, int(number), 0, 0, 0)


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    try:
        _call("mount", source.encode(), target.encode(), kind.encode() or None, flags, options.encode() or None)
    except OSError as error:
        raise OSError(error.errno, f"{kind or source} at {target}: {error.strerror}") from error


def _call(name: str, *values: int | bytes | None) -> None:
    given = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in values]
    if getattr(_libc, name)(*given) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def _say(report: int, what: dict[str, Any]) -> None:
    os.write(report, json.dumps(what).encode() + b"\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main())
