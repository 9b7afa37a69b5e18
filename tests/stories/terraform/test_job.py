"""`stackhold runner run`: every operation, its result document and its exit codes."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest
from tests.stories.terraform import samples

if TYPE_CHECKING:
    from typing import Any

    from tests.stories.terraform.tf_scene import TfScene

pytestmark = [pytest.mark.story, pytest.mark.slow]

KEY = ("--plan-key-file", "key")
GUARDED = ("--guard-deletes", *KEY)
STATE = "kept.tfstate"


@pytest.fixture
def job(tf: TfScene) -> TfScene:
    """A module with a local backend, and a key of plans' hashes. Values come as a Job's do: by a file."""
    tf.write(samples.LOCAL + samples.REPLACED)
    (tf.folder / "key").write_bytes(b"key of the plans' hashes")
    return tf


def value(job: TfScene, text: str) -> None:
    """Another value of the variable."""
    job.write(json.dumps({"value": text}), "terraform.tfvars.json")


def state(job: TfScene) -> dict[str, Any]:
    """The state in the module's folder."""
    found: dict[str, Any] = json.loads((job.module / STATE).read_bytes())
    return found


def thing(job: TfScene) -> str:
    """The value that the state has."""
    found: str = state(job)["resources"][0]["instances"][0]["attributes"]["triggers_replace"]["value"]
    return found


def test_every_operation_ends_with_its_result_document(job: TfScene) -> None:
    applied = job.job("apply")
    assert (applied["op"], applied["changes"]["add"]) == ("apply", 1)
    assert [step["name"] for step in applied["steps"]] == ["version", "init", "validate", "apply"]
    assert all(step["exit"] == 0 for step in applied["steps"])
    assert applied["runtime"]["version"] == job.runtime.version
    assert job.job("refresh")["error"] is None
    assert job.job("drift")["drift"]["detected"] is False

    value(job, "two")
    assert job.job("plan", *KEY)["plan"]["replace"] == 1
    drift = job.job("drift")["drift"]
    assert (drift["detected"], drift["replace"]) == (True, 1)
    backup = job.folder / "backup.gz"
    backup.write_bytes(gzip.compress((job.module / STATE).read_bytes()))
    assert job.job("destroy")["changes"]["destroy"] == 1
    assert state(job)["resources"] == []

    job.job("restore", "--restore-chunks", "backup.gz", "--restore-resources", "1")
    assert thing(job) == "one"


def test_a_replacement_is_blocked_until_that_very_plan_or_its_inputs_are_approved(job: TfScene) -> None:
    job.job("apply", *GUARDED)
    value(job, "two")

    blocked = job.job("apply", *GUARDED, expect=1)

    assert (blocked["error"]["kind"], blocked["plan"]["replace"]) == ("blocked", 1)
    assert thing(job) == "one"
    other = job.job("apply", *GUARDED, "--allow-deletes-hash", "0" * 64, expect=1)
    assert other["error"]["kind"] == "blocked"
    assert other["plan"]["hash"] == blocked["plan"]["hash"]
    approved = job.job("apply", *GUARDED, "--allow-deletes-hash", blocked["plan"]["hash"])
    assert approved["changes"]["add"] == 1
    assert thing(job) == "two"
    value(job, "three")
    inputs = ("--inputs-hash", "of-three")
    job.job("apply", *GUARDED, *inputs, "--allow-deletes-hash", "of-two", expect=1)
    job.job("apply", *GUARDED, *inputs, "--allow-deletes-hash", "of-three")
    assert thing(job) == "three"


def test_only_the_plan_that_is_expected_is_applied(job: TfScene) -> None:
    job.job("apply")
    value(job, "two")
    expected = job.job("plan", *KEY)["plan"]["hash"]
    value(job, "three")

    changed = job.job("apply", *KEY, "--expect-plan", expected, expect=1)
    assert changed["error"]["kind"] == "plan-changed"
    assert thing(job) == "one"

    value(job, "two")
    job.job("apply", *KEY, "--expect-plan", expected)
    assert thing(job) == "two"


def test_a_failure_says_in_which_step_and_why(job: TfScene) -> None:
    job.write(samples.LOCAL + 'resource "terraform_data" "thing" {\n  input = var.missing\n}\n')

    broken = job.job("apply", expect=1)

    assert (broken["error"]["kind"], broken["error"]["step"]) == ("step", "validate")
    assert "undeclared input variable" in broken["error"]["tail"]
    assert not (job.module / STATE).exists()


def test_a_broken_file_of_values_never_ends_in_an_apply(job: TfScene) -> None:
    job.write("value = \n", "terraform.tfvars")

    for flags in ((), GUARDED):
        broken = job.job("apply", *flags, expect=1)
        assert broken["error"]["kind"] == "step"
        assert not (job.module / STATE).exists()


def test_a_folder_without_a_module_is_the_images_fault(job: TfScene) -> None:
    (job.module / "main.tf").unlink()

    assert job.job("apply", expect=1)["error"]["kind"] == "image-layout"


def test_usage_errors_end_with_2(job: TfScene) -> None:
    job.run("runner", "run", "--op", "explode", expect=2)
    job.run("runner", "run", "--op", "plan", expect=2)


def test_a_result_with_many_resources_keeps_to_its_size(job: TfScene) -> None:
    job.write(samples.LOCAL + 'resource "terraform_data" "of_a_rather_long_name" {\n  count = 300\n}\n')

    document = job.job("plan", *KEY)

    assert document["plan"]["create"] == 300
    assert len(document["plan"]["hash"]) == 64
