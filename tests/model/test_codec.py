"""What is read is written back the same, and what cannot be read is named with its place."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.errors import RecordTooNew, RecordUnreadable
from stackhold.model import codec
from stackhold.model.codec.document import text_of
from stackhold.model.ids import LockId, LogicalId, PhysicalId, Region, RunId, StackName, TypeName
from stackhold.model.instant import Instant
from stackhold.model.record import PendingDelete, ResourceRecord, StateRecord
from stackhold.model.run import Intended, Intent, IntentKind, RunFile

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN = Path(__file__).parents[1] / "golden" / "records"
CASES = os.environ.get("STACKHOLD_CASES")

CODECS: dict[str, tuple[Callable[..., object], Callable[..., bytes]]] = {
    "state.json": (codec.decode_record, codec.encode_record),
    "lock.json": (codec.decode_lock, codec.encode_lock),
    "rollback-journal.json": (codec.decode_journal, codec.encode_journal),
    "exports.json": (codec.decode_exports, codec.encode_exports),
    "run.json": (codec.decode_run_file, codec.encode_run_file),
    "stop-request.json": (codec.decode_stop_request, codec.encode_stop_request),
    "events.json": (codec.decode_run_log, codec.encode_run_log),
}


def there_and_back(name: str, data: bytes) -> bytes:
    decode, encode = next(pair for suffix, pair in CODECS.items() if name.endswith(suffix))
    return encode(decode(data, key=name))


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.name)
def test_our_own_golden_files_are_written_back_to_the_byte(path: Path) -> None:
    assert there_and_back(path.name, path.read_bytes()) == path.read_bytes()


@pytest.mark.skipif(CASES is None, reason="STACKHOLD_CASES does not name the shared cases")
@pytest.mark.parametrize(
    "name",
    [
        "serverless.state.json",
        "interrupted.state.json",
        "interrupted.rollback-journal.json",
        "lock.json",
        "exports.json",
    ],
)
def test_files_of_cdkd_are_written_back_to_the_byte(name: str) -> None:
    data = (Path(CASES or "") / "records" / name).read_bytes()
    assert there_and_back(name, data) == data


RECORD = {
    "version": 8,
    "region": "eu-west-1",
    "stackName": "Shop",
    "resources": {
        "Bucket": {
            "physicalId": "shop-bucket",
            "resourceType": "AWS::S3::Bucket",
            "properties": {"Näme": "Grüße"},
            "attributes": {},
        }
    },
    "outputs": {},
    "lastModified": 1_796_061_680_140,
}


def record_with(**changes: object) -> bytes:
    return text_of({**RECORD, **changes})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
unknown_fields = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(lambda name: "x-" + name), json_values, max_size=3
)


@given(top=unknown_fields, inner=unknown_fields, properties=st.dictionaries(st.text(max_size=4), json_values))
def test_unknown_fields_survive_at_every_level(
    top: dict[str, object], inner: dict[str, object], properties: dict[str, object]
) -> None:
    resource = {**RECORD["resources"]["Bucket"], "properties": properties, **inner}  # type: ignore[index]
    data = record_with(resources={"Bucket": resource}, **top)
    assert there_and_back("state.json", data) == data


def test_text_is_written_as_json_stringify_with_two_spaces_writes_it() -> None:
    expected = json.dumps(RECORD, indent=2, ensure_ascii=False).encode()
    assert there_and_back("state.json", expected) == expected


def test_a_pending_delete_is_kept() -> None:
    record: StateRecord = codec.decode_record(text_of(RECORD), key="state.json")
    [(logical_id, resource)] = record.resources.items()
    left = PendingDelete(logical_id, resource, "DependencyViolation")
    data = codec.encode_record(StateRecord(record.stack, record.region, pending_deletes=(left,)))
    assert codec.decode_record(data, key="state.json").pending_deletes == (left,)


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"", "it is empty (line 1, column 1)"),
        (b'{\n  "version": 8,\n  "reg', "it ends in the middle (line 3, column 7)"),
        (b'{\n  "version": 8,\n  nope', "it is no JSON (line 3, column 3)"),
        (b'{"a": "1e400", "\\"": 2,\n "ttl": -1e400}', "a number in it is out of range (line 2, column 9)"),
        (b'{"version": "\xff"}', "it is no UTF-8 text (line 1, column 14)"),
        (b"[]", "the whole document should be an object, but is a list"),
        (record_with(resources=[]), "resources should be an object, but is a list"),
        (record_with(resources={"B": {"resourceType": "x"}}), "resources.B.physicalId should be text, but is nothing"),
        (
            record_with(resources={"B": {"resourceType": "x", "physicalId": ""}}),
            "resources.B.physicalId should be a name, but is empty text",
        ),
        (record_with(lastModified="now"), "lastModified should be a whole number, but is text"),
        (record_with(pendingDeletes=[3]), "pendingDeletes.0 should be an object, but is a whole number"),
    ],
)
def test_an_unreadable_record_is_named_with_the_place(data: bytes, place: str) -> None:
    with pytest.raises(RecordUnreadable) as caught:
        codec.decode_record(data, key="s/Shop/eu-west-1/state.json")
    assert caught.value.key == "s/Shop/eu-west-1/state.json"
    assert caught.value.message.startswith("s/Shop/eu-west-1/state.json cannot be read: ")
    assert place in caught.value.message


@given(st.integers(0, len(text_of(RECORD)) - 1))
def test_a_truncated_record_is_never_taken_for_a_record(length: int) -> None:
    with pytest.raises(RecordUnreadable):
        codec.decode_record(text_of(RECORD)[:length], key="state.json")


def test_a_record_of_a_newer_version_is_refused() -> None:
    with pytest.raises(RecordTooNew, match="has format version 9"):
        codec.decode_record(record_with(version=9), key="state.json")


def test_a_record_of_an_older_version_is_read_when_its_shape_fits() -> None:
    assert codec.decode_record(record_with(version=7), key="state.json").version == 7


@pytest.mark.parametrize("expires", [None, "soon", True, [1], {}])
def test_an_expiry_that_is_no_number_means_held_for_ever(expires: object) -> None:
    lock = codec.decode_lock(
        text_of({"owner": "a@b:1", "timestamp": 5, "expiresAt": expires, "operation": "deploy"}), key="lock.json"
    )
    assert lock.expires_at is None


def test_a_lock_without_expiry_is_read() -> None:
    assert codec.decode_lock(text_of({"owner": "a@b:1", "timestamp": 5}), key="lock.json").expires_at is None


def test_a_lock_with_a_ttl_that_is_not_positive_is_unreadable() -> None:
    with pytest.raises(RecordUnreadable, match="ttl should be a positive number"):
        codec.decode_lock(text_of({"owner": "a", "timestamp": 5, "id": "n", "ttl": 0}), key="lock.json")


def test_a_log_may_hold_values_that_json_does_not_know() -> None:
    log = codec.decode_run_log((GOLDEN / "v1.events.json").read_bytes(), key="events.json")
    data = codec.encode_run_log(replace(log, summary={"path": Path("a/b")}))
    assert codec.decode_run_log(data, key="events.json").summary == {"path": "a/b"}


def test_what_a_run_intended_is_kept() -> None:
    intended = Intended(
        route="sdk",
        place={"ApiId": {"Ref": "Api"}},
        properties=("ApiId", "RouteKey"),
        dependencies=(),
        deletion_policy="Retain",
        update_replace_policy="Delete",
        is_own_name=True,
        replaces=PhysicalId("r-1"),
        keeps_old=True,
        old_first=True,
        replacement=1,
        digest="0a",
        is_again=True,
    )
    entries = tuple(
        Intent(LogicalId("R"), TypeName("T::T::T"), IntentKind.CREATE, RunId("r"), intended=each)
        for each in (None, Intended(), intended)
    )
    data = codec.encode_run_file(RunFile(RunId("r"), LockId("l"), 1, "deploy", "a@b:1", Instant(5), 7, entries))
    assert codec.decode_run_file(data, key="run.json").intents == entries


@pytest.mark.parametrize(("tags", "kept"), [({"team": "pay"}, {"team": "pay"}), ({}, None), (None, None)])
def test_the_tags_of_a_stack_are_kept_where_there_are_any(
    tags: dict[str, str] | None, kept: dict[str, str] | None
) -> None:
    data = codec.encode_record(StateRecord(StackName("s"), Region("r"), tags=tags))
    assert codec.decode_record(data, key="k").tags == kept
    assert (b'"tags"' in data) == bool(kept)


def test_an_adopted_resource_is_kept_as_such() -> None:
    adopted = ResourceRecord(PhysicalId("q"), TypeName("T::T::T"), {}, adopted_as="")
    record = StateRecord(StackName("s"), Region("eu-west-1"), {LogicalId("Q"): adopted})
    assert codec.decode_record(codec.encode_record(record), key="state.json").resources == record.resources


@pytest.mark.parametrize(("field", "value"), [("version", -5), ("version", 0), ("serial", -1), ("generation", -1)])
def test_a_record_does_not_count_below_where_counting_begins(field: str, value: int) -> None:
    document = {"version": 8, "region": "eu-west-1", "stackName": "s", "resources": {}, "lastModified": 1, field: value}
    with pytest.raises(RecordUnreadable, match=f"{field} should be . or more, but is the number {value}"):
        codec.decode_record(json.dumps(document).encode(), key="k")
