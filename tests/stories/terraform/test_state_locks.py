"""A state lock that somebody else holds: what 0 and 3 s do, what is said, and that it stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from tests.stories.scene import wait_until
from tests.stories.terraform import samples
from tests.stories.terraform.http_state import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.stories.terraform.tf_scene import TfScene

    from stackhold.testing import emulators

pytestmark = [pytest.mark.story, pytest.mark.slow]

HELD = {
    "ID": "5e2c5a8e-0f6f-4c0b-9f5c-2d9b1b2f7a11",
    "Operation": "OperationTypeApply",
    "Info": "",
    "Who": "somebody@elsewhere",
    "Version": "1.11.4",
    "Created": "2026-03-04T05:06:07.89Z",
    "Path": "module.tfstate",
}
SLACK_S = 12
"""How much longer than its wait a step may take on a machine that is busy."""


def fails_with(tf: TfScene, wait: str, said: tuple[str, ...], env: Mapping[str, str] | None = None) -> int:
    """Apply against the lock: `init` is fine, the plan is not, and everything is said; how long the plan took."""
    done = tf.run("tf", "apply", str(tf.module), "--yes", *tf.bin, "--json", "--lock-timeout", wait, expect=1, env=env)
    document = done.json()
    steps: dict[str, Any] = {step["name"]: step for step in document["plan"]["steps"]}
    assert steps["init"]["exit"] == 0
    assert list(steps)[-1] == "plan"
    assert document["plan"]["error"]["kind"] == "step"
    assert document["plan"]["error"]["step"] == "plan"
    for words in said:
        assert words in done.err, done.err
        assert words in document["plan"]["error"]["tail"]
    assert "force-unlock" not in steps
    seconds: int = steps["plan"]["seconds"]
    return seconds


FOREIGN = (HELD["Who"], HELD["Operation"], "2026-03-04")


def test_a_lock_on_an_http_backend(tf: TfScene) -> None:
    tf.write(samples.HTTP + samples.VALUE)
    with serving() as server:
        server.lock = dict(HELD)

        # Terraform 1.11 tells of the holder no more than the id, and shows its own lock beside it.
        said = (HELD["ID"],) if tf.runtime.version.startswith("1.11.") else FOREIGN
        assert fails_with(tf, "0", said, server.env) < 3
        assert 3 <= fails_with(tf, "3s", said, server.env) <= 3 + SLACK_S

        assert server.lock == HELD
        assert "UNLOCK" not in server.asked
        server.lock = None
        tf.tf("apply", env=server.env)


def test_a_lock_file_in_s3(tf: TfScene, bucket: emulators.Emulator) -> None:
    tf.write(samples.S3 + samples.VALUE)
    tf.environment |= bucket.environment()
    s3 = boto3.client(
        "s3", endpoint_url=bucket.url, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
    )
    lock = {"Bucket": "states", "Key": "module.tfstate.tflock"}
    s3.put_object(**lock, Body=json.dumps(HELD).encode())

    assert fails_with(tf, "0", FOREIGN) < 3
    assert 3 <= fails_with(tf, "3s", FOREIGN) <= 3 + SLACK_S

    assert json.loads(s3.get_object(**lock)["Body"].read()) == HELD
    s3.close()
    tf.tf("force-unlock", HELD["ID"])
    tf.tf("apply")


def test_a_lock_on_a_local_state_held_by_a_runtime_that_is_paused(tf: TfScene) -> None:
    tf.write(samples.LOCAL + samples.VALUE.replace("echo made >> made", "exec sleep 600"))
    with paused_holder(tf) as who:
        said = (who, "OperationTypeApply")

        assert fails_with(tf, "0", said) < 3
        assert 3 <= fails_with(tf, "3s", said) <= 3 + SLACK_S
        assert (tf.module / ".kept.tfstate.lock.info").exists()
    tf.write(samples.LOCAL + samples.VALUE)
    tf.tf("apply")


def test_a_lock_that_is_freed_in_time_is_taken(tf: TfScene) -> None:
    tf.write(samples.HTTP + samples.VALUE)
    with serving() as server:
        server.lock = dict(HELD)
        running = tf.start("tf", "apply", str(tf.module), "--yes", *tf.bin, "--lock-timeout", "60s", env=server.env)
        wait_until(lambda: server.asked.count("LOCK") >= 2, "a second try for the lock")
        with server.guard:
            server.lock = None

        assert running.finish(120).code == 0
        assert server.state is not None


def test_force_unlock_names_the_lock_that_it_clears_and_leaves_another_one(
    tf: TfScene, bucket: emulators.Emulator
) -> None:
    tf.write(samples.S3 + samples.VALUE)
    tf.environment |= bucket.environment()
    s3 = boto3.client(
        "s3", endpoint_url=bucket.url, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
    )
    lock = {"Bucket": "states", "Key": "module.tfstate.tflock"}
    s3.put_object(**lock, Body=json.dumps(HELD).encode())

    tf.tf("force-unlock", "0e2c5a8e-0f6f-4c0b-9f5c-2d9b1b2f7a11")
    assert json.loads(s3.get_object(**lock)["Body"].read()) == HELD
    tf.tf("force-unlock", HELD["ID"])
    assert s3.list_objects_v2(Bucket="states").get("KeyCount") == 0
    tf.tf("force-unlock", HELD["ID"])
    s3.close()


def test_force_unlock_without_an_id_is_about_our_own_lock(tf: TfScene) -> None:
    tf.write(samples.VALUE.replace("echo made >> made", "exec sleep 600"))
    running = tf.start("tf", "apply", str(tf.module), "--yes", *tf.bin)
    wait_until(lambda: "terraform_data.thing" in _events(tf), "the creation")
    os.kill(running.process.pid, signal.SIGKILL)
    running.finish()

    freed = tf.tf("force-unlock")

    assert freed["result"] == "deleted"
    assert tf.tf("force-unlock")["result"] == "absent"
    tf.write(samples.VALUE)
    tf.tf("apply")


def _events(tf: TfScene) -> str:
    found = [file.read_text() for file in (tf.folder / "cache").rglob("*.out")]
    return "\n".join(line for text in found for line in text.splitlines() if "apply_start" in line)


@contextmanager
def paused_holder(tf: TfScene) -> Iterator[str]:
    """The runtime itself, stopped in the middle of an apply; whose lock it is."""
    tf.tool("init")
    process = subprocess.Popen(
        [*tf.runtime.command, "apply", "-auto-approve"],
        cwd=tf.module,
        env=tf.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    info = tf.module / ".kept.tfstate.lock.info"
    try:
        wait_until(_is_whole(info), "the lock of the local state")
        os.kill(process.pid, signal.SIGSTOP)
        yield json.loads(info.read_bytes())["Who"]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _is_whole(info: Any) -> Callable[[], bool]:
    return lambda: info.exists() and info.read_bytes().endswith(b"}")
