"""The directory store: the stores' own suite, and what only a directory can do wrong."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path, PurePosixPath

import pytest

from stackhold.adapters.clock import SystemClock
from stackhold.adapters.files import DirectoryStore
from stackhold.adapters.filesystems import mounted_kind
from stackhold.errors import StoreConflict, StoreRefused, StoreUnreachable
from stackhold.ports.store import Absent, Store, Stored, Version
from stackhold.testing.clock import FakeClock
from stackhold.testing.store_suite import Opening, StoreSuite

OPEN = """
from pathlib import Path
from stackhold.adapters.clock import SystemClock
from stackhold.adapters.files import DirectoryStore
store = DirectoryStore(Path({root!r}), clock=SystemClock())
"""


class TestDirectoryStore(StoreSuite):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return DirectoryStore(tmp_path / "state", clock=SystemClock())

    @pytest.fixture
    def opening(self, tmp_path: Path) -> Opening:
        return Opening(OPEN.format(root=str(tmp_path / "state")))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "state"


@pytest.fixture
def store(root: Path) -> DirectoryStore:
    return DirectoryStore(root, clock=SystemClock())


def modes(root: Path) -> set[tuple[str, str]]:
    return {
        ("folder" if path.is_dir() else "file", oct(stat.S_IMODE(path.stat().st_mode)))
        for path in [root, *root.rglob("*")]
    }


@pytest.mark.parametrize("umask", ["0o000", "0o077", "0o777"])
def test_files_are_0600_and_folders_0700_whatever_the_umask(root: Path, umask: str) -> None:
    code = OPEN.format(root=str(root)) + f"import os; os.umask({umask}); store.write('a/b/c', b'1', expect=None)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert modes(root) == {("file", "0o600"), ("folder", "0o700")}
    assert (root / "a" / "b" / ".lock").exists()


def test_a_replaced_file_keeps_its_mode(store: DirectoryStore, root: Path) -> None:
    version = store.write("a", b"1", expect=None).version
    (root / "a").chmod(0o644)
    store.write("a", b"2", expect=version)
    assert modes(root) == {("file", "0o600"), ("folder", "0o700")}


def test_nothing_is_made_by_reading_and_listing(store: DirectoryStore, root: Path) -> None:
    assert isinstance(store.read("a/b"), Absent)
    assert list(store.list("")) == []
    with pytest.raises(StoreConflict):
        store.delete("a/b", expect=Version("x"))
    assert not root.parent.exists()


def test_temporary_files_of_a_killed_writer_are_removed_and_never_listed(store: DirectoryStore, root: Path) -> None:
    root.mkdir(parents=True)
    leftover = root / ".tmp-0123"
    leftover.write_bytes(b"half")
    assert list(store.list("")) == []
    store.write("a", b"1", expect=None)
    assert not leftover.exists()


def test_a_hand_edit_is_another_version(store: DirectoryStore, root: Path) -> None:
    version = store.write("a", b"1", expect=None).version
    (root / "a").write_bytes(b"edited")
    with pytest.raises(StoreConflict):
        store.write("a", b"2", expect=version)
    assert (root / "a").read_bytes() == b"edited"


def test_a_file_in_place_of_the_directory_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("I am a file")
    store = DirectoryStore(tmp_path / "state", clock=SystemClock())
    for act in (
        lambda: store.read("a"),
        lambda: store.write("a", b"1", expect=None),
        lambda: store.delete("a", expect=Version("x")),
        lambda: list(store.list("")),
        store.prepare,
    ):
        with pytest.raises(StoreRefused, match="not a directory") as refused:
            act()
        assert "\n" not in refused.value.message
    assert (tmp_path / "state").read_text() == "I am a file"


def test_a_folder_in_place_of_an_object_is_not_taken_for_no_object(store: DirectoryStore) -> None:
    store.write("a/b", b"1", expect=None)
    with pytest.raises(StoreRefused, match=r"there is a directory of that name \(.*/a\)"):
        store.read("a")
    with pytest.raises((StoreRefused, StoreConflict)):
        store.write("a", b"1", expect=None)


def test_a_symbolic_link_is_not_followed(store: DirectoryStore, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"not state")
    store.prepare()
    (root / "a").symlink_to(outside)
    with pytest.raises(StoreRefused, match="symbolic link"):
        store.read("a")
    assert list(store.list("")) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_cannot_be_written_is_refused(root: Path) -> None:
    root.mkdir(parents=True)
    root.chmod(0o500)
    with pytest.raises(StoreRefused, match="access is denied"):
        DirectoryStore(root, clock=SystemClock()).write("a", b"1", expect=None)


def test_a_write_that_runs_out_of_room_leaves_the_old_object_and_no_rubbish(root: Path) -> None:
    code = OPEN.format(root=str(root)) + (
        "import signal, resource\n"
        "from stackhold.errors import StoreRefused\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "version = store.write('a', b'old', expect=None).version\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n"
        "    store.write('a', b'x' * 5000, expect=version)\n"
        "except StoreRefused as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "File too large" in done.stdout
    assert sorted(path.name for path in root.iterdir()) == [".lock", "a"]
    assert (root / "a").read_bytes() == b"old"
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000


def test_a_writer_killed_at_any_moment_leaves_a_whole_object_and_a_free_lock(store: DirectoryStore, root: Path) -> None:
    code = OPEN.format(root=str(root)) + (
        "version = store.read('a').version\n"
        "print('go', flush=True)\n"
        "for turn in range(10**6):\n"
        "    version = store.write('a', (str(turn) + '.').encode() * 4000, expect=version).version\n"
    )
    version = store.write("a", b"begin." * 4000, expect=None).version
    for _ in range(6):
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            changed = False
            while not changed:
                found = store.read("a")
                assert isinstance(found, Stored)
                changed = found.version != version
            writer.send_signal(signal.SIGKILL)
        found = store.read("a")
        assert isinstance(found, Stored)
        parts = set(found.data.split(b".")) - {b""}
        assert len(parts) == 1
        assert found.data.count(b".") == 4000
        version = found.version
    DirectoryStore(root, clock=SystemClock()).write("a", b"after", expect=version)
    assert sorted(path.name for path in root.iterdir()) == [".lock", "a"]


def test_readers_never_see_half_an_object(store: DirectoryStore) -> None:
    version = store.write("a", b"0" * 50_000, expect=None).version
    seen: set[bytes] = set()
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            found = store.read("a")
            assert isinstance(found, Stored)
            seen.add(found.data)

    reader = threading.Thread(target=look)
    reader.start()
    for turn in range(60):
        version = store.write("a", str(turn % 10).encode() * 50_000, expect=version).version
    over.set()
    reader.join(10)
    assert all(len(set(data)) == 1 and len(data) == 50_000 for data in seen)


def test_a_lock_that_is_held_for_ever_is_reported_after_a_while(root: Path) -> None:
    store = DirectoryStore(root, clock=FakeClock(), busy_ms=60)
    store.prepare()
    began = SystemClock().boot()
    with (root / ".lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(StoreUnreachable, match="another process"):
            store.write("a", b"1", expect=None)
    assert 60 <= SystemClock().boot() - began < 5_000
    store.write("a", b"1", expect=None)


def test_the_lock_file_is_never_replaced(store: DirectoryStore, root: Path) -> None:
    version = store.write("a", b"1", expect=None).version
    before = (root / ".lock").stat().st_ino
    store.delete("a", expect=version)
    DirectoryStore(root, clock=SystemClock()).write("a", b"2", expect=None)
    assert (root / ".lock").stat().st_ino == before


MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 22 0:33 / /home rw,nosuid shared:2 master:3 - nfs4 filer:/home rw
41 40 8:2 / /home/local rw - xfs /dev/sdb1 rw
42 22 0:40 / /mnt/with\\040space rw shared:9 - fuse.sshfs host: rw
43 22 0:41 / /mnt/c rw - 9p C: rw
44 43 8:9 / /mnt/c rw - ext4 /dev/sdc rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/state", "ext4"),
        ("/home/maria/app/.stackhold", "nfs4"),
        ("/home", "nfs4"),
        ("/homes", "ext4"),
        ("/home/local/x", "xfs"),
        ("/mnt/with space/x", "fuse.sshfs"),
        ("/mnt/c/x", "ext4"),
    ],
)
def test_the_innermost_and_latest_mount_decides_the_kind_of_file_system(path: str, kind: str) -> None:
    assert mounted_kind(MOUNTS, PurePosixPath(path)) == kind


def test_importing_the_directory_store_loads_neither_botocore_nor_urllib3() -> None:
    code = "import sys, stackhold.adapters.files; print([n for n in ('botocore', 'urllib3') if n in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "[]\n"


def test_a_pipe_in_the_place_of_an_object_is_refused_and_not_waited_for(store: DirectoryStore, root: Path) -> None:
    store.write("a/b.json", b"1", expect=None)
    (root / "a" / "b.json").unlink()
    os.mkfifo(root / "a" / "b.json")
    with pytest.raises(StoreRefused, match="it is no file"):
        store.read("a/b.json")
