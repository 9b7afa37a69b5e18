"""Builds parts from their Go modules, once, onto their shelf in the user's cache.

go.mod and go.sum of each part pin and verify all that goes in. Go's build cache and module cache grow to gigabytes, so
both are temporary and removed at the end; only the binaries stay. A part appears on its shelf whole or not at all, and
two builds at once wait for each other. What a killed build left is removed by the next one.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.gobuild.part import Part, Shelf

SCRATCH = ".building-"
"""What the name of a folder begins with that a build works in; the next build removes it."""

_UNUSED_SECONDS = 30 * 24 * 3600.0
_NICE = 15


class BuildError(Exception):
    """A part could not be built; its text says why."""


def run(
    names: Sequence[str], *, parts: Sequence[Part], shelf: Shelf, tool: str, then: Callable[[], None] | None = None
) -> int:
    """Build what is not there yet, of the parts named or of all, then what is made of them; an exit code."""
    os.umask(0o077)
    try:
        wanted = _wanted(names, parts)
        with _alone(shelf.path):
            missing = [part for part in wanted if not part.path.is_file()]
            if missing:
                _build(missing, shelf.path)
            for part in wanted:
                os.utime(part.path.parent)
                print(f"{part.name} {part.version}: {part.path} ({part.path.stat().st_size / 1e6:.0f} MB)")
            if then is not None:
                then()
            _prune(shelf.path)
    except BuildError as error:
        print(f"{tool}: {error}", file=sys.stderr)
        return 1
    return 0


def _wanted(names: Sequence[str], parts: Sequence[Part]) -> list[Part]:
    known = {part.name: part for part in parts}
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise BuildError(f"no part {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in names] if names else list(parts)


@contextlib.contextmanager
def _alone(root: Path) -> Iterator[None]:
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    root.chmod(0o700)
    with (root / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another build is running; waiting for it", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in root.glob(f"{SCRATCH}*"):
            print(f"removing what an ended build left: {left.name}", flush=True)
            shutil.rmtree(left)
        yield


def _build(missing: list[Part], root: Path) -> None:
    go = shutil.which("go")
    if go is None:
        names = ", ".join(f"{part.name} {part.version}" for part in missing)
        raise BuildError(f"`go` is not on PATH; install Go 1.26.8 or newer to build {names}")
    scratch = Path(tempfile.mkdtemp(prefix=SCRATCH, dir=root))
    try:
        for part in missing:
            _build_one(go, part, scratch)
    finally:
        shutil.rmtree(scratch)


def _build_one(go: str, part: Part, scratch: Path) -> None:
    print(f"building {part.name} {part.version} from its Go module …", flush=True)
    begun = time.monotonic()
    out = scratch / part.key
    out.mkdir(mode=0o700)
    flags = ["-trimpath", "-buildvcs=false", "-mod=readonly", "-modcacherw", "-ldflags", part.ldflags]
    done = subprocess.run(
        [go, "build", *flags, "-o", str(out / part.file), part.package],
        cwd=part.module,
        env=_environment(scratch),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=_be_modest,
        check=False,
    )
    if done.returncode != 0:
        said = [line for line in done.stdout.splitlines() if not line.startswith("go: downloading ")]
        raise BuildError(
            "\n".join([f"go build of {part.name} {part.version} ended with {done.returncode}", *said[-40:]])
        )
    (out / part.file).chmod(0o700)
    shutil.rmtree(part.path.parent, ignore_errors=True)
    out.rename(part.path.parent)
    print(f"  {time.monotonic() - begun:.0f} s, {part.path.stat().st_size / 1e6:.0f} MB", flush=True)


def _environment(scratch: Path) -> dict[str, str]:
    """The user's settings of modules and proxies, without flags of theirs, and with caches that go away."""
    kept = {name: value for name, value in os.environ.items() if name not in ("GOFLAGS", "GOOS", "GOARCH")}
    own = {"GOCACHE": str(scratch / "go-build"), "GOMODCACHE": str(scratch / "go-mod"), "GOTMPDIR": str(scratch)}
    return {**kept, **own, "GOFLAGS": "", "CGO_ENABLED": "0", "GOWORK": "off", "GOTELEMETRY": "off"}


def _be_modest() -> None:
    os.nice(max(_NICE - os.nice(0), 0))
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def _prune(root: Path) -> None:
    """Remove what no build or test run has asked for in a month."""
    for folder in root.iterdir():
        if folder.is_dir() and time.time() - folder.stat().st_mtime > _UNUSED_SECONDS:
            print(f"removing {folder.name}: unused for a month")
            shutil.rmtree(folder)
