"""What a state knows, and what a killed step made that it does not."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from stackhold.engines.terraform.diagnostics import Touch, Touched
from stackhold.engines.terraform.state_document import Unrecorded, recorded_ids, unrecorded
from stackhold.errors import InputError


def resource(kind: str, name: str, *instances: dict[str, Any], module: str = "", mode: str = "managed") -> Any:
    found = {"mode": mode, "type": kind, "name": name, "instances": list(instances)}
    return {**found, "module": module} if module else found


def state(*resources: Any) -> bytes:
    return json.dumps({"version": 4, "resources": list(resources)}).encode()


def instance(identity: object, key: object = None) -> dict[str, Any]:
    found: dict[str, Any] = {"attributes": {"id": identity}}
    return found if key is None else {**found, "index_key": key}


def created(address: str, touch: Touch, identity: str = "") -> Touched:
    return Touched(address, "create", touch, "id", identity)


def test_addresses_are_those_of_the_stream() -> None:
    known = recorded_ids(
        state(
            resource("probe_thing", "one", instance("t-1")),
            resource("probe_thing", "many", instance("t-2", 0), instance("t-3", 1)),
            resource("probe_thing", "named", instance("t-4", 'a "b"'), module='module.net["x"]'),
            resource("probe_info", "data", instance("d-1"), mode="data"),
        )
    )
    assert known == {
        "probe_thing.one": {"t-1"},
        "probe_thing.many[0]": {"t-2"},
        "probe_thing.many[1]": {"t-3"},
        'module.net["x"].probe_thing.named["a \\"b\\""]': {"t-4"},
    }


def test_a_deposed_object_is_known_beside_the_new_one() -> None:
    both = resource("probe_thing", "one", instance("t-2"), {**instance("t-1"), "deposed": "0000abcd"})
    assert recorded_ids(state(both)) == {"probe_thing.one": {"t-1", "t-2"}}


def test_an_empty_state_knows_nothing() -> None:
    assert recorded_ids(b" \n") == {}


@pytest.mark.parametrize("text", [b"{", b"[]", b'{"resources": [1]}', b'{"resources": 1}'])
def test_what_is_no_state_is_an_error(text: bytes) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        recorded_ids(text)


def test_a_resource_without_instances_knows_nothing() -> None:
    assert recorded_ids(b'{"resources": [{"mode": "managed"}]}') == {}


def test_what_was_made_and_is_not_recorded_is_named_with_its_id() -> None:
    touched = [created("a.b", Touch.DONE, "t-1"), created("a.c", Touch.DONE, "t-2"), created("a.d", Touch.STARTED)]
    found = unrecorded(touched, {"a.b": frozenset({"t-1"})})
    assert found == (Unrecorded("a.c", "t-2"), Unrecorded("a.d", ""))
    assert "terraform import 'a.c' 't-2'" in found[0].sentence("terraform")
    assert "may have been made" in found[1].sentence("tofu")


def test_what_only_a_run_of_ours_can_take_on_comes_with_a_block_for_the_module() -> None:
    made = Unrecorded('a.b["c"]', 'x"${y}')
    assert made.sentence("tofu", by_block=True).endswith('import {\n    to = a.b["c"]\n    id = "x\\"$${y}"\n  }')
    assert "may have been made" in Unrecorded("a.b", "").sentence("tofu", by_block=True)


def test_a_command_that_takes_something_on_is_quoted_for_a_shell() -> None:
    made = Unrecorded('a.b["it\'s"]', "$(x)")
    assert shlex.split(made.sentence("tofu").partition(": ")[2]) == ["tofu", "import", made.address, made.identity]


def test_a_failed_create_is_the_providers_to_record() -> None:
    assert unrecorded([created("a.b", Touch.FAILED)], {}) == ()


def test_the_old_one_of_a_replacement_says_nothing_of_the_new_one() -> None:
    gone = Touched("a.b", "delete", Touch.STARTED, "id", "t-1")
    new = created("a.b", Touch.STARTED)
    assert unrecorded([new, gone], {"a.b": frozenset({"t-1"})}) == (Unrecorded("a.b", ""),)
    assert unrecorded([new, gone], {"a.b": frozenset({"t-1", "t-2"})}) == ()


def test_a_create_that_was_started_and_is_recorded_under_its_address_has_come_to_its_end() -> None:
    assert unrecorded([created("a.b", Touch.STARTED)], {"a.b": frozenset({"t-9"})}) == ()


def test_a_resource_without_an_id_is_known_by_its_address() -> None:
    assert unrecorded([created("a.b", Touch.DONE)], {"a.b": frozenset()}) == ()
    assert unrecorded([created("a.b", Touch.DONE)], {}) == (Unrecorded("a.b", ""),)
