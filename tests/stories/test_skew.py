"""Clocks that are an hour off change nothing on S3: every age is the difference of two times of one answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.stories.both_stores import owner_of, wall_ms
from tests.stories.scene import wait_until

from stackhold.testing.proxy import Rule, SlowProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.stories.both_stores import Line

pytestmark = [pytest.mark.emulator, pytest.mark.story]

HOUR = 3_600_000
MINUTE = 60_000
TTL = 30 * MINUTE
SKEWS = [pytest.param(HOUR, id="an-hour-ahead"), pytest.param(-HOUR, id="an-hour-behind")]


@pytest.fixture
def other(bucket_line: Line) -> Iterator[SlowProxy]:
    """A second proxy before the same emulator: the server as another host's clock sees it."""
    with SlowProxy(bucket_line.scene.emulator.url) as proxy:
        yield proxy


def skew(proxy: SlowProxy, ms: int) -> None:
    proxy.skew_ms, proxy.refuses_skewed = ms, True


def refusals(proxy: SlowProxy, operation: str = "*") -> int:
    """How many requests the proxy refused because their signature's time is off."""
    return proxy.count(operation=operation) - proxy.count(operation=operation, forwarded=True)


@pytest.mark.parametrize("off", SKEWS)
def test_a_deploy_signs_again_and_its_live_lock_stays_its_own(bucket_line: Line, other: SlowProxy, off: int) -> None:
    line = bucket_line
    skew(line.proxy, off)
    skew(other, -off)
    held = line.hold()
    first = line.deploy(by=line.proxy)
    first.wait_caught(held)
    assert line.proxy.count(service="ssm", forwarded=True) >= 1
    assert refusals(line.proxy, "GetCallerIdentity") >= 1

    def is_corrected() -> bool:
        lock = line.objects.held()
        server = wall_ms() + off
        return all(abs(time - server) < MINUTE for time in (lock["expiresAt"] - TTL, lock["timestamp"]))

    wait_until(is_corrected, "an expiresAt in the server's time", seconds=20)
    lock = line.objects.held()
    for whose in (None, other, line.proxy):
        refused = line.deploy("--lock-timeout", "0", made="two", by=whose).finish()
        assert refused.code == 1
        assert f"holder   {owner_of(first)}, deploy" in refused.err
        assert "alive    renewed" in refused.err
    assert line.objects.held()["id"] == lock["id"]

    held.release()
    result = first.finish()
    assert result.code == 0, result.err
    assert line.objects.recorded() == {"First": "line-first-one", "Second": "line-second-one"}
    assert line.in_cloud() == {"line-first-one", "line-second-one"}
    assert line.objects.lock() is None
    again = line.deploy("--json", by=other).finish()
    assert again.code == 0
    assert again.json()["isEmpty"] is True


@pytest.mark.parametrize("off", SKEWS)
def test_a_deploy_whose_clock_goes_wrong_while_it_works_saves_and_releases(bucket_line: Line, off: int) -> None:
    line = bucket_line
    held = line.hold()
    first = line.deploy(by=line.proxy)
    first.wait_caught(held)
    lock = line.objects.held()
    skew(line.proxy, off)
    held.release()
    result = first.finish()
    assert result.code == 0, result.err
    assert refusals(line.proxy) >= 1
    assert line.objects.recorded() == {"First": "line-first-one", "Second": "line-second-one"}
    assert line.objects.lock() is None
    record = line.objects.json("state.json")
    assert record is not None
    assert record["lockId"] == lock["id"]


@pytest.mark.parametrize("off", SKEWS)
def test_a_dead_holders_lock_is_taken_over_after_its_ttl_and_no_sooner(
    bucket_line: Line, other: SlowProxy, off: int
) -> None:
    line = bucket_line
    skew(line.proxy, off)
    skew(other, -off)
    first = line.kill_at_second()
    for silent_ms in (0, 29 * MINUTE):
        aged = other.add(Rule(service="s3", path="*/lock.json", age_ms=silent_ms))
        refused = line.deploy("--lock-timeout", "0", made="two", by=other).finish()
        assert refused.code == 1
        assert f"holder   {owner_of(first)}, deploy" in refused.err
        other.remove(aged)
    line.scene.run("state", "list", "--long", env={"AWS_ENDPOINT_URL": other.url})
    assert refusals(other, "ListObjectsV2") >= 1
    other.add(Rule(service="s3", path="*/lock.json", age_ms=31 * MINUTE))
    result = line.deploy("--lock-timeout", "0", made="two", by=other).finish()
    assert result.code == 0, result.err
    assert f"took over the lock of {owner_of(first)}" in result.out + result.err
    assert line.objects.recorded() == {"First": "line-first-two", "Second": "line-second-two"}
    assert line.objects.lock() is None
