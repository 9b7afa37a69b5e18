"""What `stackhold tf` says of input that cannot be: modules, runtimes, states, and runtimes that talk nonsense."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.cli.tf_desk import MODULE, TfDesk
from tests.runtimes.fixtures import embedded as embedded_runtime

if TYPE_CHECKING:
    from pathlib import Path

    from tests.runtimes.catalogue import Runtime

pytestmark = [pytest.mark.story]
embedded = embedded_runtime


@pytest.fixture
def desk(tmp_path: Path) -> TfDesk:
    return TfDesk(tmp_path)


def state(**fields: object) -> str:
    return json.dumps({"version": 4, "terraform_version": "1.9.0", "serial": 1, "lineage": "x", **fields})


def test_a_folder_without_a_module_is_named(desk: TfDesk) -> None:
    (desk.folder / "empty").mkdir()
    assert f"{desk.folder / 'empty'} holds no configuration files" in desk.run("tf", "plan", "empty", expect=1).err
    assert f"there is no directory {desk.folder / 'nowhere'}" in desk.run("tf", "plan", "nowhere", expect=1).err
    assert "is a file, not the folder" in desk.run("tf", "plan", "shop/main.tf", expect=1).err


def test_a_module_that_declares_a_backend_twice_is_refused_with_both_places(desk: TfDesk) -> None:
    desk.write("shop/a.tf", 'terraform {\n  backend "local" {}\n}\n')
    desk.write("shop/b.tf", 'terraform {\n  backend "s3" {}\n}\n')
    refused = desk.tf("plan", expect=1)
    assert "declares more than one backend: 'local' at a.tf:2 and 's3' at b.tf:2" in refused.err
    assert desk.calls() == []


def test_a_runtime_that_is_not_there_is_named(desk: TfDesk) -> None:
    refused = desk.run("tf", "plan", "shop", "--bin", "no-such-runtime", expect=1)
    assert "no program named 'no-such-runtime' is on PATH" in refused.err
    assert not (desk.folder / "store").exists()


def test_a_file_that_is_not_there_is_named_before_anything_is_locked(desk: TfDesk) -> None:
    for option in ("--var-file=gone.tfvars", "--backend-config=gone.hcl"):
        assert f"{desk.folder / 'gone'}" in desk.tf("plan", option, expect=1).err
    assert not (desk.folder / "store").exists()


@pytest.mark.parametrize(
    "said",
    ["panic: runtime error\n", '{"type": "diagnostic", "diagnostic": 7}\n', "\x00\x1b[31m{\n", '{"type": "version"'],
)
def test_a_stream_that_is_no_json_is_a_failure_with_its_exit_code(desk: TfDesk, said: str) -> None:
    desk.say("plan", said, code=3)
    failed = desk.tf("plan", "--json", expect=1)
    assert failed.json()["plan"]["error"] == {
        "kind": "step",
        "step": "plan",
        "tail": failed.json()["plan"]["error"]["tail"],
    }
    assert failed.json()["plan"]["steps"][-1] == {"name": "plan", "exit": 3, "seconds": 0}
    assert "\x1b" not in failed.err


def test_text_between_the_events_of_a_good_step_does_no_harm(desk: TfDesk) -> None:
    desk.finds_a_create()
    desk.say("plan", "There are some problems with the CLI configuration\n", {"type": "log", "@message": "x"}, code=2)
    assert "+   create   terraform_data.a" in desk.tf("plan").out


def test_a_plan_that_cannot_be_read_is_never_applied(desk: TfDesk) -> None:
    desk.finds_a_create()
    desk.say("show", "not json")
    desk.tf("apply", "--yes", expect=1)
    desk.say("show", {"format_version": "9.0"})
    assert "format" in desk.tf("apply", "--yes", expect=1).err
    assert "apply" not in [call[0] for call in desk.calls()]


def test_a_local_state_is_not_passed_over(desk: TfDesk) -> None:
    file = desk.write("shop/terraform.tfstate", state())
    refused = desk.tf("plan", expect=1)
    assert "holds the state of an earlier run without stackhold" in refused.err
    assert "--adopt-local-state" in refused.err
    assert file.exists()


@pytest.mark.parametrize(("text", "said"), [(state(version=5), "5"), ("not json", "JSON"), ("[]", ""), ("", "")])
def test_a_local_state_that_is_none_we_know_is_not_taken_in(desk: TfDesk, text: str, said: str) -> None:
    file = desk.write("shop/terraform.tfstate", text)
    refused = desk.tf("plan", "--adopt-local-state", expect=1)
    assert said in refused.err
    assert file.read_text() == text
    assert desk.calls() == []


def test_a_local_state_is_taken_in_once_and_kept_as_a_backup(desk: TfDesk) -> None:
    desk.finds()
    desk.write("shop/terraform.tfstate", state())
    desk.tf("plan", "--adopt-local-state")
    assert (desk.folder / "shop" / "terraform.tfstate.before-stackhold").read_text() == state()
    [version] = desk.run("tf", "restore", "shop", "--json").json()["versions"]
    assert (version["version"], version["isCurrent"]) == (1, True)
    desk.write("shop/terraform.tfstate", state())
    assert "the store has a state of this stack already" in desk.tf("plan", "--adopt-local-state", expect=1).err


def test_a_state_of_a_newer_format_in_a_backend_is_refused_in_the_runtimes_words(
    desk: TfDesk, embedded: Runtime
) -> None:
    desk.write("shop/main.tf", f'terraform {{\n  backend "local" {{}}\n}}\n{MODULE}')
    desk.write("shop/terraform.tfstate", state(version=5))
    refused = desk.run("tf", "apply", "shop", "--yes", expect=1)
    assert "Unsupported state file format" in refused.err
    assert "Nothing was changed." in refused.err


def test_what_to_restore_is_named_once_and_must_be_there(desk: TfDesk) -> None:
    twice = desk.run("tf", "restore", "shop", "--version", "1", "--from", "x", "--yes", expect=1)
    assert "--version and --from name two states" in twice.err
    assert (
        "shop (default) has no state version 7"
        in desk.run("tf", "restore", "shop", "--version", "7", "--yes", expect=1).err
    )
    assert "cannot be read" in desk.run("tf", "restore", "shop", "--from", "gone", "--yes", expect=1).err
    desk.run("tf", "restore", "shop", "--version", "0", "--yes", expect=64)
    desk.write("shop/main.tf", 'terraform {\n  backend "s3" {}\n}\n')
    assert (
        "the versions of the state are not in the store"
        in desk.run("tf", "restore", "shop", "--version", "1", "--yes", expect=1).err
    )
