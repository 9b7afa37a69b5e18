"""What a run loses in the middle of an apply: its life, its lock, its backend. Nothing is made twice."""

from __future__ import annotations

import json
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.runtimes.probe_server import Fault
from tests.terraform_faults.scenes import assert_free, assert_gone, begun, converged, recorded, run_file, runtime_of
from tests.terraform_faults.yard import wait_until

from stackhold.testing.proxy import Answer, Rule, SlowProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.terraform_faults.yard import Plot

pytestmark = [pytest.mark.runtimes, pytest.mark.slow]

HANGS = Fault("create", "second", times=1, hang=True)
STUBBORN = {"PROBE_STUBBORN": "1"}


def test_the_runtime_stops_by_itself_when_its_runner_is_killed_and_nothing_is_lost(plot: Plot) -> None:
    process = begun(plot, HANGS, env=STUBBORN)
    assert runtime_of(process)
    process.kill()
    plot.end(process)
    plot.probe.release()
    ended = converged(plot)
    assert (plot.probe.created("first"), plot.probe.created("second")) == (1, 1), ended.told()
    assert "may have been made" not in ended.said
    assert " import " not in ended.said
    assert not run_file(plot)
    assert_free(plot)


def test_a_run_that_loses_its_lock_stops_its_runtime_and_writes_over_nothing(own: Plot) -> None:
    process = begun(own, HANGS, env=STUBBORN)
    lock = own.stored("lock.json")
    other = json.loads(lock.read_text()) | {"id": "f" * 32, "owner": "somebody@elsewhere:1"}
    lock.write_text(json.dumps(other))
    versions = sorted(own.stored("terraform").glob("*.tfstate"))
    wait_until(lambda: "lost" in own.said(process) or process.poll() is not None, "the loss to be seen")
    own.probe.release()
    ended = own.end(process)
    assert ended.code == 1, ended.told()
    assert json.loads(lock.read_text()) == other
    assert recorded(own) == [], (versions, ended.told())
    assert_gone(own)
    lock.unlink()
    converged(own)
    assert (own.probe.created("first"), own.probe.created("second")) == (1, 1)
    assert_free(own)


def test_a_lock_that_is_gone_stops_the_run_too(in_bucket: Plot) -> None:
    process = begun(in_bucket, HANGS)
    in_bucket.stored("lock.json").unlink()
    ended = in_bucket.end(process)
    assert ended.code == 1, ended.told()
    assert recorded(in_bucket) == ["probe_thing.first"]
    assert_gone(in_bucket)
    converged(in_bucket)
    assert in_bucket.probe.created("first") == 1


@contextmanager
def store_away(plot: Plot) -> Iterator[None]:
    """Where the versions of the state belong there is a file, so that none can be written."""
    folder = plot.stored("terraform")
    aside = folder.with_name("aside")
    if folder.exists():
        folder.rename(aside)
    folder.write_text("")
    try:
        yield
    finally:
        folder.unlink()
        if aside.exists():
            aside.rename(folder)


def test_a_final_write_that_the_store_does_not_take_never_ends_in_a_second_create(own: Plot) -> None:
    process = begun(own, HANGS)
    with store_away(own):
        own.probe.release()
        ended = own.end(process)
        assert ended.code in (1, 2), ended.told()
    assert own.probe.names() == ["first", "second"]
    after = converged(own)
    assert (own.probe.created("first"), own.probe.created("second")) == (1, 1), ended.told() + after.told()
    assert_free(own)
    assert not list(own.module.glob("errored*"))


def test_a_final_write_that_the_bucket_does_not_take_never_ends_in_a_second_create(in_bucket: Plot) -> None:
    assert in_bucket.emulator is not None
    with SlowProxy(in_bucket.emulator.url) as proxy:
        process = begun(in_bucket, HANGS, env={"AWS_ENDPOINT_URL": proxy.url})
        proxy.add(Rule(service="s3", operation="PutObject", path="*.tfstate", answer=Answer(403, "AccessDenied")))
        in_bucket.probe.release()
        ended = in_bucket.end(process)
    assert ended.code in (1, 2), ended.told()
    assert in_bucket.probe.names() == ["first", "second"]
    assert (in_bucket.module / "errored.tfstate").exists(), ended.told()
    assert (in_bucket.module / "errored.tfstate").stat().st_mode & 0o777 == 0o600
    after = converged(in_bucket)
    assert (in_bucket.probe.created("first"), in_bucket.probe.created("second")) == (1, 1), after.told()
    assert_free(in_bucket)
    assert not list(in_bucket.module.glob("errored*"))


def test_a_state_that_cannot_be_pushed_yet_ends_the_run_before_any_plan(in_bucket: Plot) -> None:
    assert in_bucket.emulator is not None
    with SlowProxy(in_bucket.emulator.url) as proxy:
        env = {"AWS_ENDPOINT_URL": proxy.url}
        process = begun(in_bucket, HANGS, env=env)
        proxy.add(Rule(service="s3", operation="PutObject", path="*.tfstate", answer=Answer(403, "AccessDenied")))
        process.send_signal(signal.SIGTERM)
        in_bucket.probe.release()
        assert in_bucket.end(process).code == 143
        in_bucket.probe.clear_faults()
        ended = in_bucket.run("apply", "--yes", env=env)
        assert ended.code == 1, ended.told()
        assert "errored.tfstate" in ended.said
    assert in_bucket.probe.created("first") == 1
    converged(in_bucket)
    assert in_bucket.probe.created("first") == 1
