"""A lock that cdkd wrote, which has neither id nor ttl: respected while it may be live, and our own beside its ways."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from tests.stories.both_stores import STACK, wall_ms
from tests.stories.scene import wait_until

from stackhold.testing.proxy import Rule

if TYPE_CHECKING:
    from tests.stories.both_stores import Line

pytestmark = [pytest.mark.emulator, pytest.mark.story]

CDKD = "maria@ci-7:4711"
MINUTE = 60_000


def cdkd_lock(*, expires_in_ms: int) -> bytes:
    """What cdkd writes for a lock of half an hour."""
    expires_at = wall_ms() + expires_in_ms
    lock = {"owner": CDKD, "timestamp": expires_at - 30 * MINUTE, "expiresAt": expires_at, "operation": "deploy"}
    return json.dumps(lock, indent=2).encode()


def rest(line: Line, name: str) -> None:
    """Let an object have rested for 31 minutes, as its store tells it."""
    if line.objects.is_local:
        moment = wall_ms() / 1000 - 31 * 60
        os.utime(line.objects.path(name), (moment, moment))
    else:
        line.proxy.add(Rule(service="s3", path=f"*/{STACK}/*/{name}", age_ms=31 * MINUTE))


def test_a_live_one_is_respected_and_named(line: Line) -> None:
    lock = cdkd_lock(expires_in_ms=20 * MINUTE)
    line.objects.put("lock.json", lock)
    rest(line, "lock.json")
    refused = line.deploy("--lock-timeout", "0", by=line.proxy).finish()
    assert refused.code == 1
    assert f"holder   {CDKD}, deploy, since" in refused.err
    assert "by a tool that may not renew; expires" in refused.err
    assert "stackhold force-unlock line" in refused.err
    assert line.objects.read("lock.json") == lock
    assert line.objects.read("state.json") is None
    assert line.in_cloud() == set()


def test_an_expired_one_is_taken_over_once_lock_and_record_have_rested(line: Line) -> None:
    assert line.deploy().finish().code == 0
    lock = cdkd_lock(expires_in_ms=-MINUTE)
    line.objects.put("lock.json", lock)
    for rested in ("lock.json", "state.json"):
        refused = line.deploy("--lock-timeout", "0", made="two", by=line.proxy).finish()
        assert refused.code == 1
        assert f"holder   {CDKD}, deploy" in refused.err
        assert "by a tool that may not renew; expired" in refused.err
        assert line.objects.read("lock.json") == lock
        rest(line, rested)

    result = line.deploy("--lock-timeout", "0", made="two", by=line.proxy).finish()
    assert result.code == 0, result.err
    assert f"warning: took over the lock of {CDKD} (deploy), which had expired" in result.out + result.err
    assert line.objects.recorded() == {"First": "line-first-two", "Second": "line-second-two"}
    assert line.objects.lock() is None


@pytest.mark.parametrize("is_taken", [False, True], ids=["and-free", "and-taken"])
def test_a_run_whose_lock_was_deleted_without_a_condition_stands_down(line: Line, is_taken: bool) -> None:
    held = line.hold()
    run = line.deploy("--lock-renew", "1s", "--json", by=line.proxy)
    run.wait_caught(held)
    wait_until(lambda: set(line.objects.recorded()) == {"First"}, "the first save")
    line.objects.drop("lock.json")
    theirs = cdkd_lock(expires_in_ms=30 * MINUTE) if is_taken else None
    if theirs is not None:
        line.objects.put("lock.json", theirs)
    run.wait_said(f"the lock is lost to {CDKD}" if is_taken else "the lock is lost; nobody holds it now")

    held.release()
    stopped = run.finish()
    assert stopped.code == stopped.json()["exitCode"] == 1
    assert stopped.json()["outcome"] == "lock-lost"
    assert (f"the lock was lost; {CDKD} holds it now" if is_taken else "nobody holds it now") in stopped.err
    assert line.objects.read("lock.json") == theirs
    assert line.proxy.count(service="ssm", operation="PutParameter") == 2
    assert line.in_cloud() == {"line-first-one", "line-second-one"}
    assert set(line.objects.recorded()) == {"First", "Second"}
