"""A state says its lineage and serial without being understood, and can be given another serial alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines.terraform.states import LINEAGE, encrypted, state

from stackhold.engines.terraform.state_facts import StateFacts, facts_of, renumbered, serial_of
from stackhold.errors import InputError


def test_a_state_says_what_it_is() -> None:
    assert facts_of(state(7, "a", "b")) == StateFacts(LINEAGE, 7, "1.11.4", 2)


def test_only_managed_objects_count_each_of_them() -> None:
    document = json.loads(state(1, "a"))
    document["resources"][0]["instances"] = [{}, {"deposed": "0badcafe"}]
    document["resources"].append({"mode": "data", "instances": [{}]})
    assert facts_of(json.dumps(document).encode()).resources == 2


def test_an_encrypted_state_shows_lineage_and_serial() -> None:
    facts = facts_of(encrypted(12))
    assert (facts.lineage, facts.serial, facts.is_encrypted, facts.resources) == (LINEAGE, 12, True, None)


@pytest.mark.parametrize("version", [1, 3, 5, 99])
def test_another_format_is_refused_with_its_number(version: int) -> None:
    with pytest.raises(InputError, match=f"the backup has format {version}; format 4"):
        serial_of(state(1, version=version), what="the backup")


@pytest.mark.parametrize(
    "data",
    [
        b"", b"  \n", b"{", b"[]", b"null", b'"text"', b"{}", b'{"version": "4"}', b'{"version": 4, "serial": "1"}',
        b'{"version": 4, "resources": {}}', b"\xff\xfe", b"[" * 100_000, b'{"version":4} {}',
    ],
)  # fmt: skip
def test_what_is_no_state_is_refused(data: bytes) -> None:
    with pytest.raises(InputError):
        facts_of(data)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_a_new_serial_changes_nothing_else(before: int, after: int) -> None:
    document = json.loads(state(before, "a"))
    document["big"] = 123456789012345678901234567890
    document["precise"] = 0.1
    document["resources"][0]["instances"][0]["attributes"]["serial"] = before
    text = json.dumps(document).encode().replace(b"0.1", b"1.000000000000000000001")
    changed = renumbered(text, serial=after)
    assert serial_of(changed) == (LINEAGE, after)
    assert b"1.000000000000000000001" in changed
    assert json.loads(changed) == json.loads(text) | {"serial": after}


def test_an_encrypted_state_keeps_its_serial_since_it_is_sealed_in() -> None:
    assert renumbered(encrypted(3), serial=9) == encrypted(3)
