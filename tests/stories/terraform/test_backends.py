"""Modules with every kind of backend: applied twice, the second time with nothing to do, and destroyed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.stories.terraform import samples
from tests.stories.terraform.http_state import serving

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.stories.terraform.tf_scene import TfScene

    from stackhold.testing import emulators

pytestmark = [pytest.mark.story, pytest.mark.slow]


def live(tf: TfScene, env: Mapping[str, str] | None = None) -> None:
    """Apply, find nothing to do, change, destroy."""
    first = tf.tf("apply", env=env)
    assert first["counts"] == {"added": 1}
    again = tf.tf("apply", env=env)
    assert (again["counts"], again["outcome"]) == ({}, "succeeded")
    assert "plan" not in again["plan"]
    assert (tf.module / "made").read_text() == "made\n"
    gone = tf.tf("destroy", env=env)
    assert gone["counts"] == {"destroyed": 1}
    assert not list(tf.module.glob("stackhold_*"))
    assert not (tf.module / "errored.tfstate").exists()


def test_no_backend_with_a_directory_store(tf: TfScene) -> None:
    tf.write(samples.VALUE)
    live(tf)
    assert not (tf.module / "terraform.tfstate").exists()
    assert len(tf.versions()) >= 2


def test_no_backend_with_a_store_in_a_bucket(tf: TfScene, bucket: emulators.Emulator) -> None:
    tf.write(samples.VALUE)
    tf.state = "s3://store"
    tf.environment |= bucket.environment()
    live(tf)
    assert len(tf.versions()) >= 2


def test_a_local_backend(tf: TfScene) -> None:
    tf.write(samples.LOCAL + samples.VALUE)
    live(tf)
    assert json.loads((tf.module / "kept.tfstate").read_bytes())["resources"] == []


def test_an_http_backend_of_the_modules_own(tf: TfScene) -> None:
    tf.write(samples.HTTP + samples.VALUE)
    with serving() as server:
        live(tf, server.env)
        assert server.lock is None
        assert server.state is not None
        assert json.loads(server.state)["resources"] == []


def test_an_s3_backend_with_a_lock_file(tf: TfScene, bucket: emulators.Emulator) -> None:
    tf.write(samples.S3 + samples.VALUE)
    tf.environment |= bucket.environment()
    live(tf)


def test_a_backup_is_restored_above_every_serial_in_a_backend_of_the_modules_own(
    tf: TfScene, bucket: emulators.Emulator
) -> None:
    for backend in (samples.LOCAL, samples.S3):
        tf.write(backend + samples.VALUE)
        tf.environment |= bucket.environment()
        tf.tf("apply", "--stack", f"of-{len(backend)}")
        backup = tf.folder / "backup.tfstate"
        backup.write_text(tf.tool("state", "pull"))
        tf.tf("apply", "--stack", f"of-{len(backend)}", env={"TF_VAR_value": "two"})
        before = json.loads(tf.tool("state", "pull"))
        tf.tool("plan", "-out", str(tf.folder / "saved"), env={"TF_VAR_value": "three"})

        tf.tf("restore", "--stack", f"of-{len(backend)}", "--from", str(backup))

        now = json.loads(tf.tool("state", "pull"))
        assert now["outputs"]["value"]["value"] == "one"
        assert now["serial"] > before["serial"]
        tf.tool("apply", str(tf.folder / "saved"), code=1)
        assert json.loads(tf.tool("state", "pull"))["outputs"]["value"]["value"] == "one"
        tf.tf("destroy", "--stack", f"of-{len(backend)}")
        (tf.module / ".terraform" / "terraform.tfstate").unlink()
