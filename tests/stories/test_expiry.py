"""What becomes of a lock with time: a dead holder's is taken over, a live one's outlives its ttl by far."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.stories.both_stores import SHORT, STACK, owner_of
from tests.stories.scene import wait_until

if TYPE_CHECKING:
    from tests.stories.both_stores import Line

pytestmark = [pytest.mark.emulator, pytest.mark.story, pytest.mark.slow]

LONGER_THAN_THREE_TTLS = "13s"


def test_a_killed_holders_lock_expires_and_is_taken_over_naming_it_and_what_it_left(line: Line) -> None:
    line.warm()
    first = line.kill_at_second(*SHORT)
    left = line.objects.held()
    assert left["owner"] == owner_of(first)
    refused = line.scene.run("destroy", STACK, "--yes", expect=1)
    assert owner_of(first) in refused.err
    assert line.objects.lock() == left

    second = line.deploy("--lock-timeout", "50s", made="two")
    second.wait_said(f"waiting for the lock, held by {owner_of(first)}")
    result = second.finish()
    assert result.code == 0, result.err
    said = result.out + result.err
    assert f"warning: took over the lock of {owner_of(first)} (deploy), which had expired" in said
    assert "an earlier run did not settle" in said
    assert "Second (create line-second-one)" in said
    assert line.objects.recorded() == {"First": "line-first-two", "Second": "line-second-two"}
    carried = line.objects.json("run.json")
    assert carried is not None
    assert {(each["logicalId"], each["name"]) for each in carried["intents"]} >= {("Second", "line-second-one")}
    assert line.objects.lock() is None
    last = line.objects.runs()[-1]
    assert last["outcome"] == "succeeded"
    assert "lock-taken-over" in {each["kind"] for each in last["events"]}


def test_a_renewed_lock_outlives_its_first_expiry_by_far(line: Line) -> None:
    line.warm()
    held = line.hold_table()
    first = line.deploy(*SHORT, by=line.proxy)
    held.wait_reached()
    begun = line.objects.held()

    refused = line.deploy("--lock-timeout", LONGER_THAN_THREE_TTLS, made="two").finish()
    assert refused.code == 1
    assert f"waited {LONGER_THAN_THREE_TTLS[:-1]} s, all of --lock-timeout" in refused.err
    assert f"holder   {owner_of(first)}, deploy" in refused.err
    now = line.objects.held()
    assert now["id"] == begun["id"]
    assert now["timestamp"] == begun["timestamp"]
    assert now["expiresAt"] - begun["expiresAt"] > 3 * now["ttl"] - 1_000
    assert now["serial"] > begun["serial"] + 5

    line.proxy.remove(held)
    result = first.finish()
    assert result.code == 0, result.err
    wait_until(lambda: line.objects.lock() is None, "the release")
    assert line.objects.recorded()["Table"] == "line-table"
