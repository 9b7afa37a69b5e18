"""A module in a folder that may not be written: run through an overlay, with its state in the store."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.stories.scene import wait_until
from tests.stories.terraform import samples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.stories.terraform.tf_scene import TfScene

pytestmark = [pytest.mark.story, pytest.mark.slow]

NEAR = """\
module "near" {
  source = "../near"
}
"""
HELD_UP = samples.VALUE.replace("echo made >> made", "touch ${var.marks}/begun; exec sleep 600") + (
    'variable "marks" {\n  type = string\n}\n'
)


@pytest.fixture
def read_only(tf: TfScene) -> Iterator[TfScene]:
    """A scene whose module may not be written once `seal` was called: by its mode, or for root by a read-only mount."""
    yield tf
    if os.geteuid() == 0:
        subprocess.run(["umount", "-l", str(tf.module)], check=False, stderr=subprocess.DEVNULL)
    else:
        tf.module.chmod(0o700)


def seal(tf: TfScene) -> None:
    """Let nobody write into the module any more."""
    if os.geteuid() != 0:
        tf.module.chmod(0o500)
        return
    mount = shutil.which("mount")
    folder = str(tf.module)
    for command in (["--bind", folder, folder], ["-o", "remount,bind,ro", folder]):
        done = None if mount is None else subprocess.run([mount, *command], check=False, capture_output=True, text=True)
        if done is None or done.returncode != 0:
            pytest.skip(f"root may write everywhere, and nothing can be mounted here: {done and done.stderr.strip()}")
    with pytest.raises(OSError, match="Read-only"):
        (tf.module / "probe").touch()


def test_it_lives_through_the_overlay_with_modules_beside_it(read_only: TfScene) -> None:
    tf = read_only
    near = tf.folder / "near"
    near.mkdir()
    (near / "main.tf").write_text('resource "terraform_data" "beside" {\n  input = "near"\n}\n', encoding="utf-8")
    tf.write(NEAR + samples.FROM_FILE)
    tf.write("one", "wanted")
    seal(tf)

    assert tf.tf("apply")["counts"] == {"added": 2}
    assert tf.tf("apply")["counts"] == {}
    assert tf.tf("drift")["plan"]["drift"]["detected"] is False
    assert {each["type"] for each in tf.current_state()["resources"]} == {"terraform_data"}
    assert tf.tf("destroy")["counts"] == {"destroyed": 2}
    assert sorted(each.name for each in tf.module.iterdir()) == ["main.tf", "wanted"]
    assert not list((tf.folder / "cache").rglob("stackhold-module-*"))


def test_a_state_that_could_not_be_written_is_taken_up_by_the_next_run(read_only: TfScene) -> None:
    tf = read_only
    tf.write(HELD_UP)
    seal(tf)
    marks = {"TF_VAR_marks": str(tf.folder)}
    running = tf.start(
        "tf", "apply", str(tf.module), "--yes", *tf.bin, "--lock-ttl", "3s", "--lock-renew", "1s", env=marks
    )
    wait_until(lambda: (tf.folder / "begun").exists(), "the creation")
    running.process.kill()
    running.finish()

    wait_until(lambda: _errored(tf), "the state that the runtime could write nowhere else")
    again = tf.run("tf", "refresh", str(tf.module), *tf.bin, "--lock-timeout", "60s", env=marks)

    state = tf.current_state()
    assert [each["type"] for each in state["resources"]] == ["terraform_data"]
    assert "took up the state" in again.err + again.out
    assert _errored(tf) == []


def _errored(tf: TfScene) -> list[Path]:
    return sorted((tf.folder / "cache").rglob("errored*.tfstate"))
