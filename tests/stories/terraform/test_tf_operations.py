"""Every operation of `stackhold tf` on every runtime, on a module that declares no backend."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.stories.terraform import samples

if TYPE_CHECKING:
    from tests.runtimes.probe_server import ProbeServer
    from tests.stories.terraform.tf_scene import TfScene

pytestmark = [pytest.mark.story, pytest.mark.slow]

THING = """\
terraform {
  required_providers {
    probe = { source = "stackhold/probe" }
  }
}

resource "probe_thing" "only" {
  name  = "only"
  value = "one"
  kind  = "plain"
}
"""
UNTOLD = THING.replace('  kind  = "plain"\n', "  lifecycle {\n    ignore_changes = [value]\n  }\n")


def test_a_module_is_planned_applied_and_destroyed(tf: TfScene) -> None:
    tf.write(samples.VALUE)

    planned = tf.tf("plan")
    assert planned["plan"]["plan"]["create"] == 1
    assert not (tf.module / "made").exists()

    applied = tf.tf("apply", "--expect-plan", planned["plan"]["plan"]["hash"])
    assert applied["outcome"] == "succeeded"
    assert applied["counts"] == {"added": 1}
    assert applied["plan"]["plan"]["hash"] == planned["plan"]["plan"]["hash"]

    again = tf.tf("apply")
    assert again["counts"] == {}
    assert [step["name"] for step in again["plan"]["steps"]] == ["version", "init", "validate", "plan"]

    gone = tf.tf("destroy")
    assert gone["counts"] == {"destroyed": 1}
    assert tf.current_state()["resources"] == []
    assert (tf.module / "made").read_text() == "made\n"
    assert sorted(each.name for each in tf.module.iterdir()) == sorted({".terraform", "made", "main.tf"})


def test_a_change_of_what_the_module_says_is_no_drift_but_something_to_apply(tf: TfScene) -> None:
    tf.write(samples.FROM_FILE)
    tf.write("one", "wanted")
    tf.tf("apply")
    assert tf.tf("drift")["plan"]["drift"]["detected"] is False

    tf.write("two", "wanted")
    found = tf.tf("drift")

    assert found["outcome"] == "succeeded"
    drift = found["plan"]["drift"]
    assert (drift["detected"], drift["update"]) == (False, 1)
    assert drift["resources"] == [{"address": "terraform_data.thing", "action": "update"}]
    tf.tf("apply")
    assert tf.tf("drift")["plan"]["drift"]["update"] == 0


def test_a_former_version_is_restored_and_no_plan_saved_before_applies_to_it(tf: TfScene) -> None:
    tf.write(samples.VALUE)
    tf.tf("apply")
    first = tf.versions()[-1]
    highest = tf.current_state()["serial"]
    tf.tf("apply", env={"TF_VAR_value": "two"})
    before = tf.current_state()
    assert before["outputs"]["value"]["value"] == "two"
    hash_before = tf.tf("plan", env={"TF_VAR_value": "three"})["plan"]["plan"]["hash"]

    restored = tf.tf("restore", "--version", str(first))

    assert restored["outcome"] == "succeeded"
    now = tf.current_state()
    assert now["outputs"]["value"]["value"] == "one"
    assert now["serial"] > before["serial"] > highest
    assert now["lineage"] == before["lineage"]
    refused = tf.tf("apply", "--expect-plan", hash_before, expect=1, env={"TF_VAR_value": "three"})
    assert refused["plan"]["error"]["kind"] == "plan-changed"
    assert tf.current_state()["outputs"]["value"]["value"] == "one"


def test_a_plan_that_is_not_the_one_expected_changes_nothing(tf: TfScene) -> None:
    tf.write(samples.VALUE)

    refused = tf.tf("apply", "--expect-plan", "0" * 64, expect=1)

    assert refused["plan"]["error"]["kind"] == "plan-changed"
    assert not (tf.module / "made").exists()
    assert tf.versions() == []
    tf.tf("apply")


def test_a_refresh_brings_the_state_up_to_what_there_is_and_no_more(tf: TfScene) -> None:
    tf.write(samples.FROM_FILE + 'output "seen" {\n  value = file("${path.module}/wanted")\n}\n')
    tf.write("one", "wanted")
    tf.tf("apply")
    tf.write("two", "wanted")

    tf.tf("refresh")

    state = tf.current_state()
    assert state["outputs"]["seen"]["value"] == "two"
    assert state["resources"][0]["instances"][0]["attributes"]["input"]["value"] == "one"


def test_a_run_leaves_no_file_of_its_own_and_shows_no_secret(tf: TfScene) -> None:
    tf.write(
        samples.VALUE.replace("type    = string", "type      = string\n  sensitive = true").replace(
            "value = terraform_data.thing.output", "value     = terraform_data.thing.output\n  sensitive = true"
        )
    )

    done = tf.run("tf", "apply", str(tf.module), "--yes", *tf.bin, env={"TF_VAR_value": "hidden-from-view"})

    assert "hidden-from-view" not in done.out + done.err
    assert not list(tf.module.glob("stackhold_*"))
    kept = [file for file in (tf.folder / "store").rglob("*") if file.is_file()]
    assert [file for file in kept if file.suffix != ".tfstate" and b"hidden-from-view" in file.read_bytes()] == []
    assert not list((tf.folder / "store").rglob("*.out"))


def test_a_word_of_the_runtimes_own_arguments_in_the_environment_has_no_effect(tf: TfScene) -> None:
    tf.write(samples.VALUE)
    tf.tf("apply")

    again = tf.run("tf", "apply", str(tf.module), "--yes", *tf.bin, "--json", env={"TF_CLI_ARGS_plan": "-destroy"})

    assert json.loads(again.out)["counts"] == {}
    assert "TF_CLI_ARGS_plan" in again.err


@pytest.mark.runtimes
def test_a_change_behind_the_states_back_is_drift_and_an_apply_puts_it_right(
    probed: TfScene, probe: ProbeServer
) -> None:
    probed.write(THING)
    probed.tf("apply")
    probed.tf("drift")
    probe.change("only", value="two")

    found = probed.tf("drift", expect=1)["plan"]["drift"]

    assert (found["detected"], found["update"]) == (True, 1)
    probed.tf("apply")
    assert probe.things()[0].value == "one"
    probed.tf("drift")
    probe.remove("only")
    found = probed.tf("drift", expect=1)["plan"]["drift"]
    assert (found["detected"], found["create"]) == (True, 1)
    probed.tf("destroy")
    assert probe.created("only") == 1


@pytest.mark.runtimes
def test_drift_that_the_module_does_not_mind_is_told_once_and_settled_by_the_refresh(
    probed: TfScene, probe: ProbeServer
) -> None:
    probed.write(UNTOLD)
    probed.tf("apply")
    probe.change("only", value="two")

    found = probed.tf("drift", expect=1)["plan"]["drift"]
    assert (found["detected"], found["update"]) == (True, 1)
    assert probed.tf("drift")["plan"]["drift"]["detected"] is False

    probe.change("only", value="three")
    probed.tf("refresh")
    assert probed.tf("drift")["plan"]["drift"]["detected"] is False
    assert probe.things()[0].value == "three"
    probed.tf("destroy")
    assert probe.names() == []
