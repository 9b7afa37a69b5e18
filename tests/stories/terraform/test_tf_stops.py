"""How a run of a Terraform module stops in the middle of an apply, on modules without any provider."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest
from tests.stories.scene import wait_until
from tests.stories.terraform.tf_scene import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.stories.scene import Result, Running
    from tests.stories.terraform.tf_scene import TfScene

pytestmark = [pytest.mark.story, pytest.mark.slow]

MODULE = """
resource "terraform_data" "quick" {
  provisioner "local-exec" {
    command = "echo made >> quick"
  }
}
resource "terraform_data" "slow" {
  depends_on = [terraform_data.quick]
  provisioner "local-exec" {
    command = "echo $$ > began; %s"
  }
}
"""


def begun(tf: TfScene, *flags: str) -> Running:
    """An apply that has come to what takes for ever."""
    tf.write(MODULE % "exec sleep 600")
    started = tf.start("tf", "apply", str(tf.module), "--yes", "--json", *flags, *tf.bin)
    began = tf.module / "began"
    wait_until(lambda: started.process.poll() is not None or began.exists(), "the slow part", seconds=PATIENCE_SECONDS)
    assert started.process.poll() is None, started.finish()
    return started


def stack(tf: TfScene, name: str) -> Path:
    return tf.folder / "store" / "stackhold" / "tf" / "module" / "default" / name


def recorded(tf: TfScene) -> list[str]:
    """What the state has, by name."""
    record = json.loads(stack(tf, "state.json").read_text())
    sequence = int(record["resources"]["state"]["physicalId"])
    state: dict[str, Any] = json.loads(stack(tf, f"terraform/{sequence:08d}.tfstate").read_text())
    return sorted(resource["name"] for resource in state["resources"] if resource["instances"])


def assert_ended(tf: TfScene) -> None:
    """What the slow part had started is gone, and so is the lock."""
    pid = int((tf.module / "began").read_text())
    wait_until(lambda: not _is_sleeping(pid), "the end of the slow part")
    assert not list(tf.module.glob("stackhold_*"))


def _is_sleeping(pid: int) -> bool:
    from pathlib import Path

    try:
        return b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def assert_converges(tf: TfScene, *flags: str) -> None:
    """A further apply needs no hand on it, and makes nothing twice."""
    tf.write(MODULE % "true")
    tf.tf("apply", *flags)
    assert recorded(tf) == ["quick", "slow"]
    assert (tf.module / "quick").read_text().split() == ["made"]
    assert not stack(tf, "lock.json").exists()
    assert not stack(tf, "run.json").exists()
    assert not list(tf.module.glob("errored*"))


def assert_stopped(tf: TfScene, ended: Result, code: int, outcome: str) -> None:
    assert ended.code == code, ended
    document = ended.json()
    assert document["outcome"] == outcome
    assert document["plan"]["error"]["kind"] == "interrupted"
    assert document["plan"]["error"]["step"] == "apply"
    assert "quick" in recorded(tf)
    assert not stack(tf, "lock.json").exists()
    assert_ended(tf)


def test_a_deadline_ends_an_apply_and_keeps_what_was_made(tf: TfScene) -> None:
    ended = begun(tf, "--deadline", "20s", "--lock-timeout", "5s").finish(PATIENCE_SECONDS)
    assert_stopped(tf, ended, 124, "deadline-exceeded")
    assert_converges(tf)


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_first_signal_ends_an_apply_and_keeps_what_was_made(tf: TfScene, signum: signal.Signals, code: int) -> None:
    running = begun(tf)
    running.signal(signum)
    assert_stopped(tf, running.finish(PATIENCE_SECONDS), code, "interrupted")
    assert_converges(tf)


def test_a_runner_that_is_killed_takes_its_runtime_with_it_and_the_next_run_loses_nothing(tf: TfScene) -> None:
    times = ("--lock-ttl", "8s", "--lock-renew", "1s", "--lock-timeout", "60s")
    running = begun(tf, *times)
    running.signal(signal.SIGKILL)
    assert running.finish(PATIENCE_SECONDS).code == -signal.SIGKILL
    assert_converges(tf, *times)
    assert_ended(tf)


def test_a_job_that_is_stopped_says_so_in_its_result(tf: TfScene) -> None:
    tf.write((MODULE % "exec sleep 600").replace("resource", 'terraform {\n  backend "local" {}\n}\nresource', 1))
    result = tf.folder / "result.json"
    places = ("--module", str(tf.module), "--workdir", str(tf.folder / "work"), "--result", str(result))
    running = tf.start("runner", "run", "--op", "apply", *places, *tf.bin)
    wait_until(
        lambda: running.process.poll() is not None or (tf.module / "began").exists(),
        "the slow part",
        seconds=PATIENCE_SECONDS,
    )
    running.signal(signal.SIGTERM)
    ended = running.finish(PATIENCE_SECONDS)
    assert ended.code == 1, ended
    error = json.loads(result.read_text())["error"]
    assert (error["kind"], error["step"]) == ("interrupted", "apply")
    assert_ended(tf)
