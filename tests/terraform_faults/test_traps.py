"""The traps of the runtimes: each would have an apply do what nobody wanted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.terraform_faults.scenes import PAIR, assert_free, recorded
from tests.terraform_faults.yard import BUCKET

if TYPE_CHECKING:
    from tests.terraform_faults.yard import Plot

pytestmark = [pytest.mark.runtimes, pytest.mark.slow]

PARTIAL = """
terraform {
  backend "s3" {
    region                      = "us-east-1"
    use_lockfile                = true
    use_path_style              = true
    skip_credentials_validation = true
    skip_metadata_api_check     = true
    skip_requesting_account_id  = true
    skip_region_validation      = true
  }
}
"""


def applied(plot: Plot, *args: str) -> None:
    ended = plot.run("apply", "--yes", *args)
    assert ended.code == 0, ended.told()


def test_arguments_from_the_environment_have_no_effect_and_are_named(own: Plot) -> None:
    own.write(PAIR)
    applied(own)
    ended = own.run("apply", "--yes", env={"TF_CLI_ARGS_plan": "-destroy", "TF_CLI_ARGS": "-destroy"})
    assert ended.code == 0, ended.told()
    assert "TF_CLI_ARGS_plan" in ended.err
    assert own.probe.names() == ["first", "second"]
    assert own.probe.deleted("first") == 0


@pytest.mark.parametrize("text", ["value = \n", 'value = "x" value\n', 'value = ["not", "a", "string"]\n'])
def test_broken_variables_never_end_in_an_apply(own: Plot, text: str) -> None:
    own.write(PAIR)
    (own.module / "terraform.tfvars").write_text(text)
    ended = own.run("apply", "--yes", "--json")
    assert ended.code == 1, ended.told()
    assert json.loads(ended.out)["plan"]["error"]["step"] in ("init", "plan")
    assert own.probe.requests("create") == []
    assert_free(own)


def test_a_saved_plan_that_is_stale_never_applies_after_a_restore(in_bucket: Plot) -> None:
    in_bucket.write(PAIR)
    applied(in_bucket)
    backup = in_bucket.folder / "backup.tfstate"
    backup.write_bytes(in_bucket.object(in_bucket.key))
    in_bucket.write(PAIR.replace('default = "one"', 'default = "two"'))
    applied(in_bucket)
    saved = in_bucket.by_hand("plan", "-destroy", "-out=saved")
    assert saved.returncode == 0, saved.stderr
    at_plan = in_bucket.state()["serial"]
    ended = in_bucket.run("restore", "--from", str(backup), "--yes")
    assert ended.code == 0, ended.told()
    assert in_bucket.state()["serial"] > at_plan
    stale = in_bucket.by_hand("apply", "saved")
    assert stale.returncode == 1, stale.stdout
    assert in_bucket.probe.names() == ["first", "second"]


def test_a_selected_workspace_and_the_settings_of_a_partial_backend_survive(in_bucket: Plot) -> None:
    in_bucket.write(PAIR)
    (in_bucket.module / "backend.tf").write_text(PARTIAL)
    settings = ("--backend-config", f"bucket={BUCKET}", "--backend-config", f"key={in_bucket.key}")
    applied(in_bucket, *settings)
    applied(in_bucket)
    assert recorded(in_bucket) == ["probe_thing.first", "probe_thing.second"]
    assert in_bucket.by_hand("workspace", "new", "blue").returncode == 0
    applied(in_bucket)
    assert in_bucket.probe.names() == ["first", "first", "second", "second"]
    assert json.loads(in_bucket.object(f"env:/blue/{in_bucket.key}"))["resources"]
    blue = in_bucket.stored("").parent / "blue" / "events"
    assert list(blue.glob("*.json"))
    assert in_bucket.by_hand("workspace", "show").stdout.strip() == "blue"
    assert_free(in_bucket)
