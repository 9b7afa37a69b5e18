"""Versions of a state are written once, in every kind of store, and found again by their number."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, cast

import boto3
import pytest

from stackhold.adapters.aws import AwsSession
from stackhold.adapters.clock import SystemClock
from stackhold.adapters.files import DirectoryStore
from stackhold.adapters.s3 import S3Store
from stackhold.errors import InputError, StoreConflict, StoreUnanswered
from stackhold.model.ids import stack_name, workspace_name
from stackhold.runs.layout import Keys, terraform_prefix
from stackhold.runs.state_versions import StoreStateVersions
from stackhold.testing.clock import FakeClock
from stackhold.testing.memory_store import Fault, MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

    from stackhold.ports.store import Store
    from stackhold.testing.emulators import Emulator

KEYS = Keys(terraform_prefix("stackhold"), stack_name("network"), workspace_name("default"))


def bucket(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> Store:
    for name, value in emulator.environment().items():
        monkeypatch.setenv(name, value)
    client = boto3.client(
        "s3",
        endpoint_url=emulator.url,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    client.create_bucket(Bucket="states")
    return S3Store("states", session=AwsSession(region=None, profile=None), clock=SystemClock())


@pytest.fixture(params=["memory", "directory", pytest.param("ministack", marks=pytest.mark.emulator)])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    if request.param == "memory":
        return MemoryStore(FakeClock())
    if request.param == "directory":
        return DirectoryStore(tmp_path, clock=SystemClock())
    return bucket(cast("Emulator", request.getfixturevalue("ministack")), monkeypatch)


def of(store: Store) -> StoreStateVersions:
    return StoreStateVersions(store, KEYS, SystemClock())


def test_a_version_is_read_as_it_was_written_and_listed_by_number(store: Store) -> None:
    versions = of(store)
    assert versions.list() == []
    for sequence in (2, 10, 1):
        versions.append(sequence, b"state %d" % sequence)
    assert [(entry.sequence, entry.size) for entry in versions.list()] == [(1, 7), (2, 7), (10, 8)]
    assert versions.read(10) == b"state 10"


def test_a_version_is_never_written_again_but_the_same_bytes_are_as_good(store: Store) -> None:
    versions = of(store)
    versions.append(1, b"first")
    versions.append(1, b"first")
    with pytest.raises(StoreConflict):
        versions.append(1, b"second")
    assert versions.read(1) == b"first"


def test_a_version_that_is_not_there_is_named(store: Store) -> None:
    with pytest.raises(InputError, match=r"network \(default\) has no state version 7"):
        of(store).read(7)


def test_of_several_writers_of_one_number_one_wins(store: Store) -> None:
    versions = of(store)

    def write(writer: int) -> bool:
        try:
            versions.append(1, b"writer %d" % writer)
        except StoreConflict:
            return False
        return True

    with ThreadPoolExecutor(8) as writers:
        won = list(writers.map(write, range(8)))
    assert won.count(True) == 1
    assert versions.read(1) == b"writer %d" % won.index(True)


def test_what_is_no_version_is_not_listed() -> None:
    store = MemoryStore(FakeClock())
    for name in ("1.tfstate", "00000001.tfstate.bak", "x/00000001.tfstate", "٠٠٠٠٠٠٠١.tfstate", "00000001.tfstate"):
        store.put(KEYS.state_versions + name, b"x")
    assert [entry.sequence for entry in of(store).list()] == [1]


def test_numbers_of_more_than_eight_digits_are_listed_in_order() -> None:
    versions = of(MemoryStore(FakeClock()))
    for sequence in (99_999_999, 100_000_000):
        versions.append(sequence, b"x")
    assert [entry.sequence for entry in versions.list()] == [99_999_999, 100_000_000]


def test_a_version_whose_answer_is_lost_is_found_to_be_there() -> None:
    store = MemoryStore(FakeClock(), plan=[Fault.LOSE_ANSWER])
    versions = StoreStateVersions(store, KEYS, store.clock)
    versions.append(1, b"first")
    assert versions.read(1) == b"first"


def test_a_version_that_never_arrives_is_not_taken_for_written() -> None:
    store = MemoryStore(FakeClock(), plan=lambda call: Fault.LOSE_REQUEST if call.method == "write" else Fault.NONE)
    with pytest.raises(StoreUnanswered):
        StoreStateVersions(store, KEYS, store.clock).append(1, b"first")
