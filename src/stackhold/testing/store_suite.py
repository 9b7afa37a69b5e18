"""What every store must do, as tests: subclass `StoreSuite`, give it a `store`, and let pytest collect it.

    class TestMyStore(StoreSuite):
        @pytest.fixture
        def store(self) -> Store: ...

A store that several processes can open also gives `opening`: Python source that binds `store`, run in eight
real processes for the races. Without it, eight threads race. An adapter is believed only once it passes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from stackhold.errors import InputError, StoreConflict
from stackhold.ports.store import Absent, Stored, Version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stackhold.ports.store import Store

Move = tuple[str, str, str, str | None]
"""Method, key, data and the version that is expected."""
FORBIDDEN = (
    "", "/suite/a", "suite//a", "suite/a/", "../a", "suite/../../a", "suite/./a", "suite/a\nb", "suite/\x00",
    "suite/.lock", "suite/.tmp-1", "suite/back\\slash", "suite/" + "x" * 300,
)  # fmt: skip
"""Keys that no store takes."""
RACERS = 8
ROUNDS = 6
_MINUTE = 60_000

_RACER = """
import json, sys
from stackhold.errors import StoreConflict
for line in sys.stdin:
    method, key, data, expect = json.loads(line)
    try:
        if method == "delete":
            store.delete(key, expect=expect)
            print("done", flush=True)
        elif method == "write":
            print(store.write(key, data.encode(), expect=expect).version, flush=True)
        else:
            store.read(key)
            print("ready", flush=True)
    except StoreConflict:
        print("conflict", flush=True)
"""


@dataclass(frozen=True, slots=True)
class Opening:
    """How another process opens the same store: source that binds `store`, and what its environment adds."""

    source: str
    environment: dict[str, str] = field(default_factory=dict)


class StoreSuite:
    """The conformance suite. Every key it uses begins with `suite/`."""

    @pytest.fixture
    def store(self) -> Store:
        """The store under test, empty."""
        raise NotImplementedError

    @pytest.fixture
    def opening(self, store: Store) -> Opening | None:
        """How other processes open it; None where they cannot."""
        return None

    @pytest.fixture
    def race(self, store: Store, opening: Opening | None) -> Iterator[Callable[[list[Move]], list[str]]]:
        """Do up to eight things at once; gives their results: a version, `done` or `conflict`."""
        if opening is None:
            yield lambda moves: _race_threads(store, moves)
            return
        with _Racers(opening) as racers:
            yield racers.race

    def test_what_is_not_there_reads_as_absent_with_the_stores_time(self, store: Store) -> None:
        """A missing object is an answer, not an error."""
        found = store.read("suite/nothing/here.json")
        assert isinstance(found, Absent)
        assert found.now > _MINUTE

    def test_what_is_written_is_read_back_whole_with_its_version(self, store: Store) -> None:
        """Bytes in, the same bytes and version out."""
        written = store.write("suite/a.json", b'{"a": 1}\n', expect=None)
        found = _stored(store, "suite/a.json")
        assert (found.data, found.version) == (b'{"a": 1}\n', written.version)

    def test_a_create_never_overwrites(self, store: Store) -> None:
        """Create-if-absent is refused on anything that exists."""
        store.write("suite/a", b"first", expect=None)
        with pytest.raises(StoreConflict) as refused:
            store.write("suite/a", b"second", expect=None)
        assert refused.value.key == "suite/a"
        assert _stored(store, "suite/a").data == b"first"

    def test_a_replace_needs_the_version_that_is_there(self, store: Store) -> None:
        """Replace-if-match takes the current version and refuses an older one."""
        first = store.write("suite/a", b"first", expect=None)
        second = store.write("suite/a", b"second", expect=first.version)
        assert second.version != first.version
        with pytest.raises(StoreConflict):
            store.write("suite/a", b"third", expect=first.version)
        found = _stored(store, "suite/a")
        assert (found.data, found.version) == (b"second", second.version)

    def test_a_replace_of_nothing_creates_nothing(self, store: Store) -> None:
        """A version of an object that is gone matches nothing."""
        first = store.write("suite/a", b"first", expect=None)
        store.delete("suite/a", expect=first.version)
        with pytest.raises(StoreConflict):
            store.write("suite/a", b"second", expect=first.version)
        assert isinstance(store.read("suite/a"), Absent)

    def test_a_delete_needs_the_version_that_is_there(self, store: Store) -> None:
        """Delete-if-match refuses an older version and removes the current one."""
        first = store.write("suite/a", b"first", expect=None)
        second = store.write("suite/a", b"second", expect=first.version)
        with pytest.raises(StoreConflict):
            store.delete("suite/a", expect=first.version)
        assert _stored(store, "suite/a").data == b"second"
        store.delete("suite/a", expect=second.version)
        assert isinstance(store.read("suite/a"), Absent)

    def test_a_delete_of_nothing_is_a_conflict(self, store: Store) -> None:
        """What is gone is not the version that was named."""
        first = store.write("suite/a", b"first", expect=None)
        store.delete("suite/a", expect=first.version)
        with pytest.raises(StoreConflict):
            store.delete("suite/a", expect=first.version)
        with pytest.raises(StoreConflict):
            store.delete("suite/never/was", expect=first.version)

    def test_what_was_deleted_can_be_created_again(self, store: Store) -> None:
        """A lock is taken and released many times."""
        for turn in range(3):
            written = store.write("suite/lock.json", f"turn {turn}".encode(), expect=None)
            store.delete("suite/lock.json", expect=written.version)
        assert isinstance(store.read("suite/lock.json"), Absent)

    def test_different_bytes_have_different_versions(self, store: Store) -> None:
        """A version tells writes apart that differ in one byte."""
        versions = {store.write(f"suite/{n}", b"x" * 100 + bytes([n]), expect=None).version for n in range(20)}
        assert len(versions) == 20

    @pytest.mark.parametrize("size", [0, 1, 65_537, 6_000_000])
    def test_any_size_comes_back_whole(self, store: Store, size: int) -> None:
        """From nothing to the record of a very large stack."""
        data = (bytes(range(256)) * (size // 256 + 1))[:size]
        version = store.write("suite/sized", data, expect=None).version
        assert _stored(store, "suite/sized").data == data
        data += b"!"
        store.write("suite/sized", data, expect=version)
        assert _stored(store, "suite/sized").data == data

    @pytest.mark.parametrize(
        "key", ["suite/ünï cödé/日本語/🔒.json", "suite/a+b&c=d%20e?f#g/~h'i(j)*!@$,;:.json", "suite/.dot/-dash"]
    )
    def test_keys_keep_their_characters(self, store: Store, key: str) -> None:
        """What is not forbidden is kept as it is, in listings too."""
        version = store.write(key, key.encode(), expect=None).version
        assert _stored(store, key).data == key.encode()
        assert [entry.key for entry in store.list("suite/")] == [key]
        store.delete(key, expect=version)

    def test_keys_that_could_mean_another_place_are_refused(self, store: Store) -> None:
        """Before anything is touched, in every method that takes one."""
        for key in FORBIDDEN:
            with pytest.raises(InputError):
                store.read(key)
            with pytest.raises(InputError):
                store.write(key, b"x", expect=None)
            with pytest.raises(InputError):
                store.delete(key, expect=Version("v"))
        assert list(store.list("suite/")) == []

    def test_a_listing_is_by_key_and_knows_sizes(self, store: Store) -> None:
        """Sorted as text, whatever the order of writing, and below folders too."""
        keys = ["suite/s/b/2", "suite/s/a", "suite/s-t/x", "suite/s/b/10", "suite/s/a.json", "suite/other"]
        for number, key in enumerate(keys):
            store.write(key, b"x" * number, expect=None)
        listed = list(store.list("suite/s"))
        assert [entry.key for entry in listed] == sorted(keys[:5])
        assert {entry.key: entry.size for entry in listed} == {key: keys.index(key) for key in keys[:5]}
        assert [entry.key for entry in store.list("suite/s/")] == sorted(
            key for key in keys if key.startswith("suite/s/")
        )
        assert [entry.key for entry in store.list("suite/s/b/1")] == ["suite/s/b/10"]

    def test_a_listing_of_nothing_is_empty(self, store: Store) -> None:
        """A prefix that nothing has is no error."""
        assert list(store.list("suite/none/")) == []
        assert list(store.list("suite/none")) == []

    def test_what_was_deleted_is_not_listed(self, store: Store) -> None:
        """Nor is anything that a store keeps for itself."""
        kept = store.write("suite/l/kept", b"1", expect=None)
        gone = store.write("suite/l/gone", b"2", expect=None)
        store.delete("suite/l/gone", expect=gone.version)
        assert [entry.key for entry in store.list("suite/l/")] == ["suite/l/kept"]
        store.delete("suite/l/kept", expect=kept.version)
        assert list(store.list("suite/l/")) == []

    def test_the_stores_times_are_in_order(self, store: Store) -> None:
        """An object is not from the future, and its age is small just after it was written."""
        before = store.read("suite/t").now
        written = store.write("suite/t", b"1", expect=None)
        found = _stored(store, "suite/t")
        assert before <= written.now <= found.now
        assert -1000 <= found.now - found.modified < _MINUTE
        again = store.write("suite/t", b"2", expect=written.version)
        assert _stored(store, "suite/t").modified >= found.modified
        assert again.now >= written.now
        (entry,) = store.list("suite/t")
        assert abs(entry.modified - found.modified) < _MINUTE

    def test_preparing_twice_changes_nothing_that_a_listing_shows(self, store: Store) -> None:
        """It may leave its own mark, not under anybody's prefix."""
        store.prepare()
        store.prepare()
        assert list(store.list("suite/")) == []
        store.write("suite/after", b"1", expect=None)

    def test_of_eight_at_once_exactly_one_wins(self, store: Store, race: Callable[[list[Move]], list[str]]) -> None:
        """In every round: of eight creates, of eight replaces of one version, of eight deletes and replaces."""
        for turn in range(ROUNDS):
            key = f"suite/race/{turn}"
            created = self._one_winner(store, race, [("write", key, f"racer {n}", None) for n in range(RACERS)])
            replaced = self._one_winner(store, race, [("write", key, f"again {n}", created) for n in range(RACERS)])
            assert created != replaced
            last: list[Move] = [("delete" if n % 2 else "write", key, f"last {n}", replaced) for n in range(RACERS)]
            ended = self._one_winner(store, race, last)
            assert isinstance(store.read(key), Absent) == (ended == "done")

    def _one_winner(self, store: Store, race: Callable[[list[Move]], list[str]], moves: list[Move]) -> str:
        """Race, and see that what one racer was told is what is there."""
        results = race(moves)
        assert Counter(results)["conflict"] == RACERS - 1, results
        (result,) = set(results) - {"conflict"}
        if result != "done":
            found = _stored(store, moves[0][1])
            assert (found.version, found.data) == (result, moves[results.index(result)][2].encode())
        return result

    def test_compare_and_swap_loses_no_increment(self, store: Store) -> None:
        """Threads that each add to a counter, reading again when refused, add up."""
        store.write("suite/counter", b"0", expect=None)

        def add() -> None:
            for _ in range(5):
                while True:
                    found = _stored(store, "suite/counter")
                    try:
                        store.write("suite/counter", str(int(found.data) + 1).encode(), expect=found.version)
                        break
                    except StoreConflict:
                        continue

        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(add) for _ in range(4)]:
                done.result(60)
        assert _stored(store, "suite/counter").data == b"20"


def _stored(store: Store, key: str) -> Stored:
    found = store.read(key)
    assert isinstance(found, Stored), f"{key} is absent"
    return found


def _race_threads(store: Store, moves: list[Move]) -> list[str]:
    start = threading.Barrier(len(moves))

    def run(move: Move) -> str:
        method, key, data, expect = move
        start.wait(30)
        try:
            if method == "delete":
                store.delete(key, expect=Version(expect or ""))
                return "done"
            return str(store.write(key, data.encode(), expect=Version(expect) if expect else None).version)
        except StoreConflict:
            return "conflict"

    with ThreadPoolExecutor(len(moves)) as pool:
        return list(pool.map(run, moves))


class _Racers:
    """Eight processes that have the store open and wait for the word."""

    def __init__(self, opening: Opening) -> None:
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-c", opening.source + _RACER],
                env={**os.environ, **opening.environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(RACERS)
        ]

    def __enter__(self) -> _Racers:
        try:
            assert self.race([("read", "suite/warm", "", None)] * RACERS) == ["ready"] * RACERS
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()

    def race(self, moves: list[Move]) -> list[str]:
        """Send each process its move, then collect what each says."""
        for process, move in zip(self._processes, moves, strict=True):
            assert process.stdin is not None
            process.stdin.write(json.dumps(move) + "\n")
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.flush()
        results = []
        for process in self._processes:
            assert process.stdout is not None
            results.append(process.stdout.readline().strip())
        return results
