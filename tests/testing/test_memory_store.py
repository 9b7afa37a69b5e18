"""The store double: it passes the stores' own suite, and fails exactly as it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stackhold.errors import StoreConflict, StoreRefused, StoreUnanswered, StoreUnreachable
from stackhold.ports.store import Absent, Stored, Version
from stackhold.testing.clock import START, FakeClock
from stackhold.testing.memory_store import Fault, MemoryStore, StoreCall
from stackhold.testing.store_suite import StoreSuite

if TYPE_CHECKING:
    from stackhold.ports.store import Store


class TestMemoryStore(StoreSuite):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore(FakeClock())


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(FakeClock())


def data_of(store: MemoryStore, key: str) -> bytes | None:
    found = store.read(key)
    return found.data if isinstance(found, Stored) else None


def test_a_lost_request_changes_nothing_and_says_that_it_does_not_know(store: MemoryStore) -> None:
    store.plan([Fault.LOSE_REQUEST])
    with pytest.raises(StoreUnanswered):
        store.write("a", b"1", expect=None)
    assert data_of(store, "a") is None


def test_a_lost_answer_leaves_the_write_done(store: MemoryStore) -> None:
    store.plan([Fault.LOSE_ANSWER])
    with pytest.raises(StoreUnanswered):
        store.write("a", b"1", expect=None)
    assert data_of(store, "a") == b"1"


def test_a_lost_answer_hides_a_refusal_too(store: MemoryStore) -> None:
    store.put("a", b"0")
    store.plan([Fault.LOSE_ANSWER])
    with pytest.raises(StoreUnanswered):
        store.write("a", b"1", expect=None)
    assert data_of(store, "a") == b"0"


def test_a_late_write_lands_when_told_if_its_condition_still_holds(store: MemoryStore) -> None:
    store.plan([Fault.LAND_LATE, Fault.LAND_LATE])
    for data in (b"1", b"2"):
        with pytest.raises(StoreUnanswered):
            store.write("a", data, expect=None)
    assert data_of(store, "a") is None
    assert store.land() == 1
    assert data_of(store, "a") == b"1"
    assert store.land() == 0


def test_a_late_delete_lands_only_on_its_version(store: MemoryStore) -> None:
    version = store.put("a", b"1")
    store.plan([Fault.LAND_LATE])
    with pytest.raises(StoreUnanswered):
        store.delete("a", expect=version)
    store.put("a", b"2")
    assert store.land() == 0
    assert data_of(store, "a") == b"2"


def test_a_stale_read_shows_the_version_before(store: MemoryStore) -> None:
    store.put("a", b"1")
    store.put("a", b"2")
    store.put("new", b"1")
    store.plan([Fault.STALE, Fault.STALE])
    assert data_of(store, "a") == b"1"
    assert data_of(store, "new") is None
    assert data_of(store, "a") == b"2"


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault.UNREACHABLE, StoreUnreachable),
        (Fault.THROTTLE, StoreUnreachable),
        (Fault.REFUSE, StoreRefused),
        (Fault.CONFLICT, StoreConflict),
    ],
)
def test_a_refused_write_changes_nothing(store: MemoryStore, fault: Fault, error: type[Exception]) -> None:
    store.plan([fault])
    with pytest.raises(error):
        store.write("a", b"1", expect=None)
    assert data_of(store, "a") is None


def test_a_plan_may_be_a_function_of_the_call(store: MemoryStore) -> None:
    store.plan(lambda call: Fault.REFUSE if call.key.startswith("locked/") else Fault.NONE)
    store.write("free/a", b"1", expect=None)
    with pytest.raises(StoreRefused):
        store.read("locked/a")


def test_calls_are_kept_in_order(store: MemoryStore) -> None:
    version = store.write("a", b"1", expect=None).version
    store.delete("a", expect=version)
    assert store.calls == [StoreCall("write", "a", b"1", None), StoreCall("delete", "a", None, version)]


def test_the_stores_time_is_its_own() -> None:
    clock = FakeClock()
    store = MemoryStore(clock, skew_ms=3_600_000, whole_seconds=True)
    clock.advance(1234)
    assert store.read("a") == Absent(now=store.store_time())
    assert store.store_time() == START + 3_600_000 + 1000


def test_two_clients_share_contents_and_store_time_but_not_faults() -> None:
    store = MemoryStore(FakeClock(), skew_ms=500)
    other = store.sharing(FakeClock(start=START), plan=[Fault.UNREACHABLE])
    store.put("a", b"1")
    with pytest.raises(StoreUnreachable):
        other.read("a")
    assert data_of(other, "a") == b"1"
    assert other.store_time() == store.store_time()
    with pytest.raises(StoreConflict):
        other.write("a", b"2", expect=Version("not this"))
