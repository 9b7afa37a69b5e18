"""Keys stay below their prefix, and a listing finds its way back to stacks."""

from __future__ import annotations

import pytest

from stackhold.errors import InputError
from stackhold.model.ids import RunId, region_name, stack_name
from stackhold.model.instant import Instant
from stackhold.ports.store import Entry
from stackhold.runs.layout import Keys, check_prefix, exports_key, parse_key, stacks

KEYS = Keys("stackhold", stack_name("wide"), region_name("us-east-1"))


def test_keys_are_those_of_the_shared_layout() -> None:
    assert KEYS.record == "stackhold/wide/us-east-1/state.json"
    assert KEYS.lock == "stackhold/wide/us-east-1/lock.json"
    assert KEYS.run_file == "stackhold/wide/us-east-1/run.json"
    assert KEYS.journal == "stackhold/wide/us-east-1/rollback-journal.json"
    assert KEYS.stop_request == "stackhold/wide/us-east-1/stop-request.json"
    assert KEYS.event(RunId("r1")) == "stackhold/wide/us-east-1/events/r1.json"
    assert exports_key("cdkd", KEYS.region) == "cdkd/_index/us-east-1/exports.json"


def test_backups_sort_by_time_then_serial() -> None:
    keys = [KEYS.backup(Instant(at), serial) for at, serial in [(1_000_000, 9), (1_000_001, 1), (1_000_001, 10)]]
    assert keys == sorted(keys)


def test_a_listing_is_sorted_by_stack() -> None:
    names = [KEYS.record, KEYS.lock, KEYS.event(RunId("r1")), "stackhold/_index/us-east-1/exports.json", "other/x/y/z"]
    found = stacks("stackhold", [Entry(name, Instant(1), 2) for name in names])
    assert {keys: set(rest) for keys, rest in found.items()} == {KEYS: {"state.json", "lock.json", "events/r1.json"}}


@pytest.mark.parametrize("key", ["stackhold/wide", "stackhold/wide/us-east-1/", "stackhold/../us-east-1/state.json"])
def test_a_key_that_is_not_of_a_stack_is_left_out(key: str) -> None:
    assert parse_key("stackhold", key) is None


@pytest.mark.parametrize("prefix", ["", "/a", "a/", "a//b", "..", "a/../b", "a\nb", "a\\b"])
def test_a_prefix_that_could_leave_its_place_is_refused(prefix: str) -> None:
    with pytest.raises(InputError):
        check_prefix(prefix)
