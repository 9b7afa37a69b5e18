"""When a leftover state lock is provably a dead run's, and when it is only reported."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.engines.terraform.leftovers import Evidence, StepNote, beginning, note_from, proves, why_not
from stackhold.engines.terraform.lock_info import LockInfo
from stackhold.model.instant import Instant

NOTE = StepNote(
    run_id="20261130T100000000Z-00000001",
    step="apply",
    started_at=Instant(1_000),
    holder="maria@ci-7",
    backend="b1",
    directory="/job/net",
    workdir="/cache/net/run",
)
BEGINNING = beginning(NOTE.run_id, holder=NOTE.holder, workdir=NOTE.workdir)
EVIDENCE = Evidence(NOTE, first_past_lock=Instant(2_000))
LOCK = LockInfo("l-1", path="bucket/key", operation="OperationTypeApply", who="maria@ci-7", created=Instant(1_500))


def test_a_lock_made_while_the_dead_run_took_its_lock_is_its_own() -> None:
    assert proves(EVIDENCE, LOCK, backend="b1")


@pytest.mark.parametrize(
    ("evidence", "lock", "backend", "reason"),
    [
        (replace(EVIDENCE, is_running=True), LOCK, "b1", "still at work"),
        (replace(EVIDENCE, first_past_lock=None), LOCK, "b1", "nothing shows"),
        (EVIDENCE, LOCK, "b2", "another backend"),
        (replace(EVIDENCE, note=replace(NOTE, backend="")), LOCK, "", "another backend"),
        (replace(EVIDENCE, note=BEGINNING), LOCK, "b1", "had not come to take the lock"),
        (EVIDENCE, replace(LOCK, who="li@laptop"), "b1", "the lock is of li@laptop"),
        (EVIDENCE, replace(LOCK, who=""), "b1", "somebody unnamed"),
        (EVIDENCE, replace(LOCK, created=None), "b1", "not made while"),
        (EVIDENCE, replace(LOCK, created=Instant(999)), "b1", "not made while"),
        (EVIDENCE, replace(LOCK, created=Instant(2_001)), "b1", "not made while"),
    ],
)
def test_any_doubt_leaves_the_lock_alone_and_says_why(
    evidence: Evidence, lock: LockInfo, backend: str, reason: str
) -> None:
    assert not proves(evidence, lock, backend=backend)
    assert reason in why_not(evidence, lock, backend=backend)


@given(created=st.integers(0, 4_000))
def test_only_the_time_in_between_proves_it(created: int) -> None:
    lock = replace(LOCK, created=Instant(created))
    assert proves(EVIDENCE, lock, backend="b1") == (1_000 <= created <= 2_000)


def test_a_note_is_read_back_as_it_was_written() -> None:
    assert note_from(NOTE.document()) == NOTE
    assert note_from(BEGINNING.document()) == BEGINNING


@pytest.mark.parametrize("field", ["runId", "step", "startedAt", "holder", "backend", "directory", "workdir"])
def test_what_is_no_note_is_none(field: str) -> None:
    document = dict(NOTE.document())
    assert note_from({**document, field: ["?"]}) is None
    del document[field]
    assert note_from(document) is None
