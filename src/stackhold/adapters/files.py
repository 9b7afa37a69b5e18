"""The directory store: one file per object, safe against crashes and against other processes of this machine.

An object's version is the SHA-256 of its bytes. Every change runs under `flock` on its folder's `.lock`, which
is never renamed or removed: read, compare, write a temporary file beside it, fsync, link or rename, fsync the
folder. Readers take no lock: a file is never changed in place, so they see an old or a new one, whole.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import stat
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from stackhold.adapters.clock import SystemClock
from stackhold.adapters.filesystems import network_kind
from stackhold.errors import StoreConflict, StoreRefused, StoreUnanswered, StoreUnreachable
from stackhold.model.instant import Instant, words
from stackhold.ports.keys import LOCK_NAME, TEMPORARY, checked_key, checked_prefix
from stackhold.ports.store import Absent, Entry, Stored, StoreFacts, Version, Written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackhold.ports.clock import Clock
    from stackhold.ports.store import Store

_NS = 1_000_000
BUSY_MS = 10_000
_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "access is denied",
    errno.EPERM: "access is denied",
    errno.ENOTDIR: "a part of the path is not a directory",
    errno.EISDIR: "there is a directory of that name",
    errno.ELOOP: "a part of the path is a symbolic link",
    errno.ENAMETOOLONG: "the name is too long",
}


class DirectoryStore:
    """A `Store` in a directory, made when first written to. Thread-safe and safe among processes."""

    def __init__(
        self, root: Path, *, clock: Clock, allow_network: bool = False, busy_ms: int = BUSY_MS, url: str = ""
    ) -> None:
        """`busy_ms` is how long another process may be in mid-write before we say so; `url` how a user names it."""
        self._facts = StoreFacts(url=url or f"file:{root}", is_local=True)
        self._root = Path(os.path.abspath(root))
        self._clock = clock
        self._others = SystemClock()
        self._busy_ms = busy_ms
        self._checked = allow_network
        self._swept: set[Path] = set()
        self._sweeping = threading.Lock()

    @property
    def facts(self) -> StoreFacts:
        """Its name; it is local."""
        return self._facts

    def read(self, key: str) -> Stored | Absent:
        """The object as it is. Both times are this machine's: the file's own and the wall clock."""
        path = self._path(key)
        with self._refusals(key):
            try:
                data, modified = _content(path)
            except FileNotFoundError:
                return Absent(self._clock.now())
            except NotADirectoryError:
                self._check_root(key)
                return Absent(self._clock.now())
        return Stored(data, _version(data), modified, self._clock.now())

    def write(self, key: str, data: bytes, *, expect: Version | None) -> Written:
        """Create by `link` or replace by rename, under the folder's lock."""
        path = self._path(key)
        with self._refusals(key):
            self._make_folder(path.parent)
            with self._locked(path.parent, key):
                self._compare(path, expect, key)
                temporary = self._written_beside(path, data)
                try:
                    self._put(temporary, path, create=expect is None, key=key)
                finally:
                    with contextlib.suppress(FileNotFoundError):
                        temporary.unlink()
                self._settle(path.parent, key)
        return Written(_version(data), self._clock.now())

    def delete(self, key: str, *, expect: Version) -> None:
        """Remove under the folder's lock."""
        path = self._path(key)
        with self._refusals(key):
            if not path.parent.is_dir():
                self._check_root(key)
                self._conflict(key)
            with self._locked(path.parent, key):
                self._compare(path, expect, key)
                path.unlink()
                self._settle(path.parent, key)

    def list(self, prefix: str) -> Iterator[Entry]:
        """Every object below, by key. What goes while it is being listed may or may not be in it."""
        parts, rest = checked_prefix(prefix)
        self._check_network()
        folder = self._root.joinpath(*parts)
        begin = "/".join(parts) + "/" if parts else ""
        with self._refusals(prefix):
            self._check_root(prefix)
            found = [entry for entry in _walk(folder, begin) if entry.key.startswith(begin + rest)]
        return iter(sorted(found, key=lambda entry: entry.key))

    def prepare(self) -> None:
        """Refuse a network file system; make the directory and see that it can be written."""
        self._check_network()
        with self._refusals(""):
            self._check_root("")
            self._make_folder(self._root)
            with self._locked(self._root, ""):
                pass

    def _path(self, key: str) -> Path:
        parts = checked_key(key)
        self._check_network()
        return self._root.joinpath(*parts)

    def _check_network(self) -> None:
        if self._checked:
            return
        kind = network_kind(self._root)
        if kind is not None:
            raise StoreRefused(
                f"{self._facts.url} is on a network file system ({kind}), where locks cannot be trusted",
                hint="Keep state in a bucket (--state s3://BUCKET), or accept the risk with --allow-network-dir.",
            )
        self._checked = True

    def _check_root(self, key: str) -> None:
        if self._root.exists() and not self._root.is_dir():
            raise StoreRefused(f"{self._facts.url} is not a directory", key=key)

    def _make_folder(self, folder: Path) -> None:
        """Make what is missing, 0700 whatever the umask, each made durable in its parent."""
        if folder.is_dir():
            return
        self._make_folder(folder.parent)
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            if not folder.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from None
            return
        os.chmod(folder, 0o700)
        _sync_folder(folder.parent)

    @contextlib.contextmanager
    def _locked(self, folder: Path, key: str) -> Iterator[None]:
        """Hold the folder's lock. Whoever holds it may remove temporary files: nobody else can be writing one."""
        lock = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            if stat.S_IMODE(os.fstat(lock).st_mode) != 0o600:
                with contextlib.suppress(PermissionError):
                    os.fchmod(lock, 0o600)
            self._wait_locked(lock, key)
            self._sweep(folder)
            yield
        finally:
            os.close(lock)

    def _wait_locked(self, lock: int, key: str) -> None:
        """Poll: a holder that is stopped in mid-write must not stop us for ever.

        By the machine's clock, whatever clock the store was given: the others live by it.
        """
        give_up = self._others.boot() + self._busy_ms
        pause = 1
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if self._others.boot() >= give_up:
                    raise StoreUnreachable(
                        f"{self._facts.url}: another process has been writing for {words(self._busy_ms)}", key=key
                    ) from None
            self._others.sleep(pause)
            pause = min(2 * pause, 50)

    def _sweep(self, folder: Path) -> None:
        """Remove temporary files that a killed process left; once per folder, under its lock."""
        with self._sweeping:
            if folder in self._swept:
                return
            self._swept.add(folder)
        for entry in os.scandir(folder):
            if entry.name.startswith(TEMPORARY):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)

    def _compare(self, path: Path, expect: Version | None, key: str) -> None:
        try:
            found: Version | None = _version(_content(path)[0])
        except FileNotFoundError:
            found = None
        if found != expect:
            self._conflict(key)

    def _written_beside(self, path: Path, data: bytes) -> Path:
        temporary = path.parent / f"{TEMPORARY}{self._clock.nonce()}"
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            try:
                os.fchmod(file, 0o600)
                left = memoryview(data)
                while left:
                    left = left[os.write(file, left) :]
                os.fsync(file)
            finally:
                os.close(file)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        return temporary

    def _put(self, temporary: Path, path: Path, *, create: bool, key: str) -> None:
        if not create:
            os.replace(temporary, path)
            return
        try:
            os.link(temporary, path)
        except FileExistsError:
            self._conflict(key)
        except OSError as error:
            if error.errno in {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS}:
                raise StoreRefused(
                    f"{self._facts.url}: this file system has no hard links, which a safe create needs",
                    key=key,
                    hint="Use a directory on another file system, or a bucket (--state s3://BUCKET).",
                ) from error
            raise

    def _settle(self, folder: Path, key: str) -> None:
        """Make the change durable. It is visible by now, so a failure here says neither done nor not done."""
        try:
            _sync_folder(folder)
        except OSError as error:
            raise StoreUnanswered(
                f"{self._facts.url}: {key} may not be on the disk: {error.strerror}", key=key
            ) from error

    def _conflict(self, key: str) -> NoReturn:
        raise StoreConflict(f"{self._facts.url}: {key} is not the version that was named", key=key)

    @contextlib.contextmanager
    def _refusals(self, key: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = _REASONS.get(error.errno or 0, error.strerror or str(error))
            where = error.filename or key or str(self._root)
            raise StoreRefused(f"{self._facts.url}: {reason} ({where})", key=key) from error


def _version(data: bytes) -> Version:
    return Version(hashlib.sha256(data).hexdigest())


def _content(path: Path) -> tuple[bytes, Instant]:
    """A file's bytes and its time, from one open file. What is no file, such as a pipe, is not waited for."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        facts = os.fstat(file)
        if stat.S_ISDIR(facts.st_mode):
            raise IsADirectoryError(errno.EISDIR, "it is a directory", str(path))
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "it is no file", str(path))
        with os.fdopen(file, "rb", closefd=False) as opened:
            return opened.read(), Instant(facts.st_mtime_ns // _NS)
    finally:
        os.close(file)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _walk(folder: Path, begin: str) -> Iterator[Entry]:
    try:
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        if entry.name == LOCK_NAME or entry.name.startswith(TEMPORARY):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), f"{begin}{entry.name}/")
        elif entry.is_file(follow_symlinks=False):
            with contextlib.suppress(FileNotFoundError):
                facts = entry.stat(follow_symlinks=False)
                yield Entry(begin + entry.name, Instant(facts.st_mtime_ns // _NS), facts.st_size)


if TYPE_CHECKING:
    _: type[Store] = DirectoryStore
