"""Keys stay below their prefix, and a listing finds its way back to stacks."""

from __future__ import annotations

import pytest

from stackhold.errors import InputError
from stackhold.model.ids import RunId, region_name, stack_name, workspace_name
from stackhold.model.instant import Instant
from stackhold.ports.store import Entry
from stackhold.runs.layout import Keys, check_prefix, exports_key, parse_key, stacks, terraform_prefix

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


@pytest.mark.parametrize("prefix", ["", "/a", "a/", "a//b", "..", "a/../b", "a\nb", "a\\b", "acme/tf"])
def test_a_prefix_that_could_leave_its_place_is_refused(prefix: str) -> None:
    with pytest.raises(InputError):
        check_prefix(prefix)


TF = Keys(terraform_prefix("stackhold"), stack_name("network"), workspace_name("default"))


def test_a_terraform_stack_has_its_workspace_in_place_of_a_region() -> None:
    assert TF.record == "stackhold/tf/network/default/state.json"
    assert TF.state_version(7) == "stackhold/tf/network/default/terraform/00000007.tfstate"


@pytest.mark.parametrize("name", ["default", "eu-west-1", "a", "1", "Team_A.v2~x", "-", "x" * 90, "..."])
def test_a_terraform_listing_finds_every_workspace(name: str) -> None:
    keys = Keys("stackhold/tf", stack_name("network"), workspace_name(name))
    assert parse_key("stackhold/tf", keys.record) == (keys, "state.json")
    assert parse_key("stackhold/tf", keys.state_version(1)) == (keys, "terraform/00000001.tfstate")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a b", "x" * 91, "é", "a\n", "events", "backups", "state.json", ".lock", ".tmp-1"]
)
def test_a_workspace_that_could_leave_its_place_or_hide_an_object_is_refused(name: str) -> None:
    with pytest.raises(InputError):
        workspace_name(name)


def test_terraform_stacks_are_no_stacks_of_aws_nor_the_other_way_round() -> None:
    """Also where a stack of AWS is called `tf`, and a Terraform stack as a region."""
    aws = Keys("stackhold", stack_name("tf"), region_name("eu-west-1"))
    odd = Keys("stackhold/tf", stack_name("eu-west-1"), workspace_name("prod"))
    mine = {aws: {"state.json", "events/r1.json", "backups/b-1.json"}}
    theirs = {keys: {"state.json", "events/r1.json", "terraform/00000001.tfstate"} for keys in (TF, odd)}
    entries = [Entry(keys.root + rest, Instant(1), 2) for keys, names in (mine | theirs).items() for rest in names]

    def found(prefix: str) -> dict[Keys, set[str]]:
        return {keys: set(names) for keys, names in stacks(prefix, entries).items()}

    assert found("stackhold") == mine
    assert found("stackhold/tf") == theirs
