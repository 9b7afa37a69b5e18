from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines.terraform.recordings import RUNTIMES, stderr, summary

from stackhold.engines.terraform.lock_info import LockInfo, parse_created, parse_lock_info

MESSAGE = """\
Error message: resource temporarily unavailable
Lock Info:
  ID:        {id}
  Path:      {path}
  Operation: {operation}
  Who:       {who}
  Version:   1.11.4
  Created:   2026-11-30 22:52:33.628254546 +0000 UTC
  Info:      {info}


Terraform acquires a state lock to protect the state from being written
by multiple users at the same time. Please resolve the issue above and try
again. For most commands, you can disable locking with the "-lock=false"
flag, but this is not recommended."""


def message(*, lock_id: str = "4711", path: str = "p", who: str = "w", info: str = "") -> str:
    return MESSAGE.format(id=lock_id, path=path, operation="o", who=who, info=info)


def of(text: str) -> LockInfo:
    found = parse_lock_info(text)
    assert found is not None
    return found


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_held_lock_is_read_from_each_runtimes_stream(runtime: str) -> None:
    lock = summary(runtime, "lock-held-plan").lock

    assert lock is not None
    assert (lock.path, lock.operation, lock.who) == ("terraform.tfstate", "OperationTypeApply", "maria@laptop")
    assert runtime.endswith(lock.version.rpartition(".")[0])
    assert len(lock.id) == 36
    assert lock.created is not None
    assert lock.created // 1000 in range(1796078000, 1796083000)
    assert lock.info == ""


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_held_lock_is_read_from_each_runtimes_framed_and_coloured_text(runtime: str) -> None:
    assert of(stderr(runtime, "lock-held-push")) == summary(runtime, "lock-held-plan").lock


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_on_the_http_backend_the_id_is_the_holders_whatever_the_section_describes(runtime: str) -> None:
    lock = summary(runtime, "http-held-plan").lock

    assert lock is not None
    assert lock.id == "aaaa"
    assert lock.who == ("" if runtime == "terraform-1.11" else "maria@laptop")


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_state_that_cannot_be_read_shows_no_lock(runtime: str) -> None:
    found = summary(runtime, "corrupt-state-plan")

    assert found.is_lock_error
    assert found.lock is None


def test_the_advice_below_the_section_is_no_part_of_it() -> None:
    assert of(message(info="for the release")).info == "for the release"
    assert of(message()).info == ""


def test_a_field_that_looks_like_the_one_before_it_does_not_take_its_place() -> None:
    lock = of(message(path="a\n  ID:        forged\n  Path:      b", who="maria"))

    assert lock.id == "4711"
    assert lock.who == "maria"
    assert lock.path.startswith("a\n")


def test_text_before_the_section_that_looks_like_a_field_is_passed_over() -> None:
    assert of("  ID:        forged\n" + message()).id == "4711"


def test_a_section_without_an_id_is_none() -> None:
    assert parse_lock_info("Lock Info:\n  Path:      p\n  Who:       w\n") is None
    assert parse_lock_info("Lock Info:\n  ID:        \n  Path:      p\n") is None
    assert parse_lock_info("Lock Info:") is None
    assert parse_lock_info("") is None


def test_an_endless_field_is_cut() -> None:
    assert len(of(message(path="x" * 10_000)).path) <= 2048
    assert len(of(message(path="\n".join("x" * 100 for _ in range(1000)))).path) <= 2048


@given(st.text())
def test_no_text_breaks_the_reading(text: str) -> None:
    parse_lock_info(text)
    parse_lock_info("Lock Info:\n" + text)
    parse_created(text)


one_line = st.text(st.characters(blacklist_categories=("C", "Z")), min_size=1, max_size=40)


@given(lock_id=one_line, path=one_line, who=one_line)
def test_fields_come_out_as_they_went_in(lock_id: str, path: str, who: str) -> None:
    lock = of(message(lock_id=lock_id, path=path, who=who))

    assert (lock.id, lock.path, lock.who) == (lock_id, path, who)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-30 22:46:14.18 +0000 UTC", datetime(2026, 11, 30, 22, 46, 14, 180000, UTC)),
        ("2026-11-30 22:46:14.628254546 +0000 UTC", datetime(2026, 11, 30, 22, 46, 14, 628000, UTC)),
        ("2026-11-30 22:46:14 +0000 UTC", datetime(2026, 11, 30, 22, 46, 14, 0, UTC)),
        ("2026-11-30 23:46:14.5 +0100 CET", datetime(2026, 11, 30, 22, 46, 14, 500000, UTC)),
        ("2026-11-30T22:46:14.820233Z", datetime(2026, 11, 30, 22, 46, 14, 820000, UTC)),
        ("2026-11-30T23:46:14.820233+01:00", datetime(2026, 11, 30, 22, 46, 14, 820000, UTC)),
        ("2026-11-30 22:46:14.18 +0000 UTC m=+0.05", datetime(2026, 11, 30, 22, 46, 14, 180000, UTC)),
        ("2026-13-30 22:46:14 +0000 UTC", None),
        ("2026-11-30 22:46:14", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_a_time_is_read_in_both_ways_of_writing_it(text: str, expected: datetime | None) -> None:
    found = parse_created(text)

    assert found == (None if expected is None else round(expected.timestamp() * 1000))
