"""When a lock is stale, and what a run that wants it does next."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stackhold.decide.lock import FOREIGN_SILENCE, Held, Verdict, is_stale, next_pause, next_step, silence
from stackhold.model.ids import LockId
from stackhold.model.instant import CLOCK_SLACK, MINUTE, BootInstant, Instant, Millis
from stackhold.model.lock import Lock

NOW = Instant(1_796_061_700_000)
TTL = Millis(30 * MINUTE)
OURS = Lock("a@b:1", NOW, Instant(NOW + TTL), "deploy", LockId("f" * 32), TTL, 1)
FOREIGN = Lock("a@b:1", NOW, Instant(NOW + TTL), "deploy")

boots = st.integers(1, 2**40).map(BootInstant)
spans = st.integers(0, 2**40)
held_locks = st.builds(
    Held,
    lock=st.sampled_from([None, OURS, FOREIGN]),
    silent_ms=spans,
    store_now=st.integers(1, 2**42).map(Instant),
    record_silent_ms=st.none() | spans,
)


@given(silent_ms=st.integers(0, TTL + CLOCK_SLACK - 1), now=boots, deadline_at=boots, may_wait=st.booleans())
def test_a_lock_that_is_not_stale_is_never_taken_over(
    silent_ms: int, now: BootInstant, deadline_at: BootInstant, may_wait: bool
) -> None:
    held = Held(OURS, silent_ms, NOW)
    step = next_step(held, may_wait=may_wait, now=now, deadline_at=deadline_at)
    assert step in {Verdict.WAIT, Verdict.GIVE_UP}


@given(held=st.none() | held_locks, now=boots, late=spans, may_wait=st.booleans())
def test_a_run_past_its_deadline_never_starts(held: Held | None, now: BootInstant, late: int, may_wait: bool) -> None:
    deadline_at = BootInstant(now - late)
    assert next_step(held, may_wait=may_wait, now=now, deadline_at=deadline_at) is Verdict.GIVE_UP


@given(held=st.none() | held_locks, now=boots, may_wait=st.booleans())
def test_every_verdict_fits_what_was_read(held: Held | None, now: BootInstant, may_wait: bool) -> None:
    step = next_step(held, may_wait=may_wait, now=now, deadline_at=BootInstant(now + 1))
    if held is None:
        assert step is Verdict.ACQUIRE
    elif is_stale(held):
        assert step is Verdict.TAKE_OVER
    else:
        assert step is (Verdict.WAIT if may_wait else Verdict.GIVE_UP)


@given(silent_ms=spans, store_now=st.integers(1, 2**42).map(Instant), record=st.none() | spans)
def test_a_foreign_lock_is_only_stale_when_expired_and_left_alone(
    silent_ms: int, store_now: Instant, record: int | None
) -> None:
    stale = is_stale(Held(FOREIGN, silent_ms, store_now, record))
    assert stale == (
        FOREIGN.expires_at is not None
        and FOREIGN.expires_at < store_now
        and silent_ms >= FOREIGN_SILENCE
        and (record is None or record >= FOREIGN_SILENCE)
    )


@given(held=held_locks)
def test_what_cannot_be_read_or_has_no_expiry_is_held_for_ever(held: Held) -> None:
    for lock in (None, Lock("a@b:1", NOW, None, "deploy")):
        assert not is_stale(Held(lock, held.silent_ms, held.store_now, held.record_silent_ms))


@given(boot=boots, modified=st.integers(1, 2**42).map(Instant), store_now=st.integers(1, 2**42).map(Instant))
def test_within_one_boot_the_boot_clock_counts_and_elsewhere_the_store(
    boot: BootInstant, modified: Instant, store_now: Instant
) -> None:
    lock = Lock("a", NOW, None, "deploy", LockId("f"), TTL, 1, boot_id="b", boot_ms=BootInstant(1000))
    same = silence(lock, modified=modified, store_now=store_now, boot=boot, boot_id="b")
    other = silence(lock, modified=modified, store_now=store_now, boot=boot, boot_id="c")
    assert same == max(0, boot - 1000)
    assert other == max(0, store_now - modified)


@given(left=st.integers(1, 10**7))
def test_pauses_double_up_to_the_longest_and_never_pass_the_end(left: int) -> None:
    pauses = [next_pause(looks=looks, first_ms=200, longest_ms=5000, left_ms=left) for looks in range(8)]
    assert pauses == [min(span, left) for span in (200, 400, 800, 1600, 3200, 5000, 5000, 5000)]
