from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stackhold.model.ids import LockId, Region, StackName
from stackhold.model.instant import Instant, Millis
from stackhold.model.lock import Lock
from stackhold.runs.lock_messages import held_error, holder_lines, waited_words

GOLDEN = Path(__file__).parents[1] / "golden" / "cli"
NOW = Instant(1_764_494_740_000)  # 2025-11-30T09:25:40Z
OURS = Lock(
    owner="maria@ci-runner-14:4711",
    timestamp=Instant(NOW - 780_000),
    expires_at=Instant(NOW + 1_760_000),
    operation="deploy",
    id=LockId("a" * 32),
    ttl=Millis(1_800_000),
    serial=7,
)
FOREIGN = replace(OURS, id=None, ttl=None, serial=0)
COMMAND = "stackhold force-unlock payments --region eu-west-1 --state s3://acme-state"


def text(
    lock: Lock | None,
    *,
    waited: str = "",
    silent_ms: int = 40_000,
    unreadable: str = "",
    pid_gone: int | None = None,
) -> str:
    error = held_error(
        stack=StackName("payments"),
        region=Region("eu-west-1"),
        lock=lock,
        silent_ms=silent_ms,
        now=NOW,
        waited=waited,
        unlock_command=COMMAND,
        unreadable=unreadable,
        pid_gone=pid_gone,
    )
    return "\n".join([f"stackhold: {error}", *(f"  {line}" for line in error.details), error.hint, ""])


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("held-waited", text(OURS, waited=waited_words(300_000, setting="--lock-timeout"))),
        ("held-tried", text(OURS, waited=waited_words(6_000, setting=None, tries=4))),
        ("held-at-once", text(OURS, waited=waited_words(0, setting=None))),
        ("held-gone", text(OURS, waited=waited_words(6_000, setting=None, tries=4), pid_gone=4711)),
        ("held-foreign", text(FOREIGN)),
        ("held-no-expiry", text(replace(FOREIGN, expires_at=None))),
        ("held-unreadable", text(None, unreadable="stackhold/payments/eu-west-1/lock.json is not JSON at byte 17")),
    ],
)
def test_the_held_error_reads_as_agreed(name: str, shown: str) -> None:
    assert shown == (GOLDEN / f"{name}.txt").read_text()


def test_a_lock_of_another_day_shows_its_date() -> None:
    old = replace(OURS, timestamp=Instant(NOW - 172_800_000))
    assert "since 2025-11-28T09:25:40.000Z" in holder_lines(old, silent_ms=1, now=NOW)[0]


def test_a_holder_that_was_silent_for_its_ttl_is_not_called_renewed() -> None:
    line = holder_lines(OURS, silent_ms=1_801_000, now=NOW)[1]
    assert "silent for 30 m 1 s" in line
    assert "renewed" not in line


def test_no_wait_says_nothing_about_waiting() -> None:
    assert waited_words(0, setting="--lock-timeout") == ""


def test_a_lock_that_is_silent_for_longer_than_its_ttl_is_not_said_to_have_expired_at_a_time_to_come() -> None:
    edited = replace(OURS, ttl=Millis(1_000))
    assert holder_lines(edited, silent_ms=40_000, now=NOW)[1] == (
        "alive    silent for 40 s, longer than its ttl of 1 s; so it has expired"
    )
    past = replace(edited, expires_at=Instant(NOW - 1_000))
    assert "expired 09:25:39Z" in holder_lines(past, silent_ms=40_000, now=NOW)[1]
