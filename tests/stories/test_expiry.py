"""What becomes of a lock with time: a dead holder's is taken over, a live one's outlives its ttl by far."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.stories.both_stores import SHORT, SHORT_TTL_MS, STACK, owner_of
from tests.stories.scene import wait_until

from stackhold.testing.proxy import Rule

if TYPE_CHECKING:
    from tests.stories.both_stores import Line

pytestmark = [pytest.mark.emulator, pytest.mark.story, pytest.mark.slow]

LONGER_THAN_THREE_TTLS = "25s"


def test_a_killed_holders_lock_expires_and_is_taken_over_naming_it_and_what_it_left(line: Line) -> None:
    line.warm()
    first = line.kill_at_second(*SHORT)
    left = line.objects.held()
    assert left["owner"] == owner_of(first)
    second = line.deploy("--lock-timeout", "55s", made="two")
    result = second.finish()
    assert result.code == 0, result.err
    said = result.out + result.err
    assert f"warning: took over the lock of {owner_of(first)} (deploy), which had expired" in said
    assert "an earlier run did not settle" in said
    assert "Second (create line-second-one)" in said
    assert line.objects.recorded() == {"First": "line-first-two", "Second": "line-second-two"}
    assert line.objects.json("run.json") is None, "after an expiry a create that is absent will not land any more"
    assert line.objects.lock() is None
    last = line.objects.runs()[-1]
    assert last["outcome"] == "succeeded"
    assert last["lockId"] != left["id"]
    assert "lock-taken-over" in {each["kind"] for each in last["events"]}


def test_a_renewed_lock_outlives_its_first_expiry_by_far(line: Line) -> None:
    line.warm()
    held = line.hold_table()
    first = line.deploy(*SHORT, by=line.proxy)
    first.wait_caught(held)
    begun = line.objects.held()

    refused = line.deploy("--lock-timeout", LONGER_THAN_THREE_TTLS, made="two").finish()
    assert refused.code == 1
    assert f"waited {LONGER_THAN_THREE_TTLS[:-1]} s, all of --lock-timeout" in refused.err
    assert f"holder   {owner_of(first)}, deploy" in refused.err
    now = line.objects.held()
    assert now["id"] == begun["id"]
    assert now["timestamp"] == begun["timestamp"]
    assert now["expiresAt"] - begun["expiresAt"] > 2 * now["ttl"]
    assert now["serial"] > begun["serial"] + 5

    line.proxy.remove(held)
    result = first.finish()
    assert result.code == 0, result.err
    wait_until(lambda: line.objects.lock() is None, "the release")
    assert line.objects.recorded()["Table"] == "line-table"


def test_a_call_that_hangs_is_given_up_within_the_margin_of_a_short_ttl(line: Line) -> None:
    line.warm()
    held = line.hold()
    run = line.deploy(*SHORT, "--no-rollback", "--json", by=line.proxy)
    run.wait_caught(held)
    result = run.finish(timeout=20)
    assert result.code == 2, result.err
    second = next(each for each in result.json()["resources"] if each["logicalId"] == "Second")
    assert second["outcome"] == "failed"
    assert "ssm:PutParameter was sent and not answered" in second["error"]
    assert second["durationMs"] < SHORT_TTL_MS * 5 // 6
    assert line.proxy.count(service="ssm", operation="PutParameter") == 2
    left = line.objects.json("run.json")
    assert left is not None
    assert [(each["logicalId"], each["name"]) for each in left["intents"]] == [("Second", "line-second-one")]
    assert line.objects.lock() is None


def test_a_run_whose_renewals_are_never_answered_stands_down_before_anyone_may_take_over(bucket_line: Line) -> None:
    line = bucket_line
    line.warm()
    pending = line.hold_table()
    run = line.deploy(*SHORT, by=line.proxy)
    run.wait_caught(pending)
    begun = line.objects.held()
    line.proxy.add(Rule(service="s3", operation="PutObject", path="*/lock.json", drop="before"))
    stopped = run.finish(timeout=30)
    assert stopped.code == 1
    assert "the lock was not confirmed in time" in stopped.err
    assert "the lock was not released" in stopped.out + stopped.err
    assert f"stackhold force-unlock {STACK} " in stopped.out + stopped.err
    assert line.objects.held()["id"] == begun["id"]
    record = line.objects.json("state.json")
    assert record is not None
    assert set(record["resources"]) == {"First", "Second"}
    assert "line-table" in str(record["pendingDeletes"])
    assert line.objects.read("run.json") is not None
