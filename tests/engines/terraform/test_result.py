from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines.terraform.results import HASH, WHOLE, tail

from stackhold.engines.terraform.result import (
    Failure,
    FailureKind,
    ResultDocument,
    decode,
    encode,
)
from stackhold.errors import InputError


def test_the_document_has_this_shape() -> None:
    assert json.loads(encode(WHOLE)) == {
        "version": 1,
        "op": "apply",
        "image": {"ref": "registry.example/module@sha256:1234", "providersMirror": "/providers"},
        "runtime": {"command": "tofu", "version": "1.12.6"},
        "steps": [
            {"name": "init", "exit": 0, "seconds": 3},
            {"name": "plan", "exit": 2, "seconds": 7},
            {"name": "apply", "exit": -9, "seconds": 12},
        ],
        "drift": {
            "detected": True,
            "create": 1,
            "update": 2,
            "replace": 3,
            "delete": 4,
            "resources": [{"address": "a.b", "action": "update"}],
        },
        "error": {"kind": "step", "step": "apply", "tail": "main.tf:2: a.b: no\nand more"},
        "changes": {"add": 1, "change": 2, "destroy": 3, "import": 4},
        "plan": {
            "hash": HASH,
            "create": 1,
            "update": 2,
            "replace": 3,
            "delete": 4,
            "import": 5,
            "move": 6,
            "forget": 7,
            "outputChanges": 8,
            "resources": [{"address": "a.b", "action": "delete"}, {"address": "é", "action": "create"}],
        },
    }


def test_a_document_comes_back_as_it_was() -> None:
    assert decode(encode(WHOLE)) == WHOLE
    assert decode(encode(ResultDocument("plan"))) == ResultDocument("plan")


def test_success_is_an_error_of_null() -> None:
    assert json.loads(encode(ResultDocument("plan")))["error"] is None


def test_control_characters_do_not_reach_whoever_shows_it() -> None:
    document = ResultDocument("apply", error=Failure(FailureKind.STEP, "apply", "a\x1b[31mb\u2028c\x00"))

    assert tail(decode(encode(document))) == "a [31mb c "


def _broken(**fields: Any) -> bytes:
    return json.dumps({**json.loads(encode(WHOLE)), **fields}).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b"[" * 100_000,
        _broken(version=2),
        _broken(op=1),
        _broken(steps=None),
        _broken(steps=[1]),
        _broken(steps=[{"name": "init", "exit": True, "seconds": 1}]),
        _broken(error={"kind": "another", "step": ""}),
        _broken(error=[]),
        _broken(plan={}),
        _broken(plan={"hash": HASH}),
        _broken(drift={"detected": 1, "resources": []}),
        _broken(changes={"add": 1}),
        _broken(image={"ref": None}),
    ],
)
def test_what_is_no_result_document_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="result document"):
        decode(data)


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reading(data: bytes) -> None:
    with pytest.raises(InputError):
        decode(data)


def test_a_field_of_a_later_release_is_passed_over() -> None:
    assert decode(_broken(unheard="of")) == WHOLE
