"""`stackhold tf` as a command: what options become, whom it asks, what it refuses, what it shows."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest
from tests.cli.tf_desk import TfDesk
from tests.engines.terraform.plans import change

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.story]

S3 = 'terraform {\n  backend "s3" {}\n}\n'


@pytest.fixture
def desk(tmp_path: Path) -> TfDesk:
    return TfDesk(tmp_path)


def _options(call: list[str]) -> list[str]:
    """The arguments of a call but for those with a path of the run's own."""
    return [each for each in call if not each.startswith("-out=") and not each.endswith("/plan")]


def test_options_become_arguments_of_the_steps_that_take_them(desk: TfDesk) -> None:
    desk.write("shop/main.tf", S3)
    desk.write("prod.tfvars", "")
    desk.finds_a_create()
    chosen = ("--var-file=prod.tfvars", "--target=terraform_data.a", "--replace=terraform_data.b")
    desk.tf("apply", "--yes", "--backend-config=bucket=mine", "--lock-timeout=90s", *chosen)
    init, validate, plan, show, shown, apply = desk.calls()
    assert _options(init) == ["init", "-no-color", "-input=false", "-lock-timeout=90s", "-backend-config=bucket=mine"]
    assert validate == ["validate", "-json"]
    assert _options(plan) == [
        "plan",
        "-json",
        "-input=false",
        "-detailed-exitcode",
        f"-var-file={desk.folder / 'prod.tfvars'}",
        "-target=terraform_data.a",
        "-replace=terraform_data.b",
        "-lock-timeout=90s",
    ]
    assert show[:2] == ["show", "-json"]
    assert shown[:2] == ["show", "-no-color"]
    assert _options(apply) == ["apply", "-json", "-input=false", "-lock-timeout=90s"]


@pytest.mark.parametrize(
    ("operation", "steps"),
    [
        ("plan", ["init", "validate", "plan", "show", "show"]),
        ("apply", ["init", "validate", "plan", "show", "show", "apply"]),
        ("destroy", ["init", "plan", "show", "show", "apply"]),
        ("refresh", ["init", "apply"]),
        ("drift", ["init", "apply", "plan", "show"]),
    ],
)
def test_each_operation_takes_its_steps(desk: TfDesk, operation: str, steps: list[str]) -> None:
    desk.finds_a_create()
    yes = ("--yes",) if operation in ("apply", "destroy") else ()
    desk.tf(operation, *yes)
    assert [call[0] for call in desk.calls()] == steps


def test_a_restore_of_a_file_to_a_backend_pushes_it_with_a_higher_serial(desk: TfDesk) -> None:
    desk.write("shop/main.tf", S3)
    backup = desk.write("old.tfstate", json.dumps({"version": 4, "serial": 3, "lineage": "x", "resources": []}))
    desk.say("state-pull", {"version": 4, "serial": 8, "lineage": "x", "resources": []})
    desk.tf("restore", "--from", "old.tfstate", "--yes")
    assert [" ".join(call[:2]) for call in desk.calls()][1:] == ["state pull", "state push", "state list"]
    assert json.loads(backup.read_text())["serial"] == 3


@pytest.mark.parametrize("operation", ["apply", "destroy"])
def test_where_nobody_can_answer_nothing_is_locked_or_started(desk: TfDesk, operation: str) -> None:
    refused = desk.tf(operation, expect=1)
    assert f"nobody can be asked here whether to {operation} shop (default); nothing was changed" in refused.err
    assert "--yes" in refused.err
    assert desk.calls() == []
    assert not (desk.folder / "store").exists()


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_a_person_sees_the_plan_before_the_question_and_decides(desk: TfDesk, answer: str, code: int) -> None:
    desk.finds_a_create()
    done = desk.tf("apply", expect=code, answer=answer)
    assert "+   create   terraform_data.a" in done.out
    assert "Apply this plan? [y/N]" in done.err
    assert [call[0] for call in desk.calls()].count("apply") == (1 if code == 0 else 0)
    if code:
        assert "tf apply blocked" in done.out


def test_an_answer_for_another_plan_is_none(desk: TfDesk) -> None:
    desk.finds_a_create()
    seen = desk.tf("plan", "--json").json()["plan"]["plan"]["hash"]
    desk.tf("apply", "--yes", "--expect-plan", seen)
    desk.finds(change("terraform_data.a", "delete"))
    other = desk.tf("apply", "--yes", "--expect-plan", seen, "--json", expect=1)
    assert other.json()["outcome"] == "plan-changed"
    assert other.json()["changed"] is False
    assert "approve that one" in other.err
    assert [call[0] for call in desk.calls()].count("apply") == 1


def test_nothing_to_do_is_said_and_nothing_is_asked(desk: TfDesk) -> None:
    desk.finds()
    assert "No changes: the infrastructure is what the module says." in desk.tf("apply", "--yes").out
    assert "Nothing to destroy: the state has no resources." in desk.tf("destroy", "--yes").out
    assert "No drift: what there is is what the state says." in desk.tf("drift").out


def test_outputs_are_shown_and_kept_nowhere(desk: TfDesk) -> None:
    desk.finds_a_create()
    outputs = {
        "url": {"sensitive": False, "type": "string", "value": "http-value-of-the-output"},
        "key": {"sensitive": True, "type": "string", "value": "secret-value-of-the-output"},
    }
    desk.say("apply", {"@message": "Outputs: 2", "@module": "terraform.ui", "type": "outputs", "outputs": outputs})
    done = desk.tf("apply", "--yes")
    assert '  url = "http-value-of-the-output"' in done.out
    assert "  key = (sensitive)" in done.out
    kept = [*(desk.folder / "store").rglob("*"), *(desk.folder / "home").rglob("*")]
    assert not [file for file in kept if file.is_file() and b"value-of-the-output" in file.read_bytes()]


def test_warnings_of_a_run_that_went_well_are_shown_once(desk: TfDesk) -> None:
    desk.finds_a_create()
    said = {"severity": "warning", "summary": "Old syntax", "detail": "Use the new one."}
    warning = {"@module": "terraform.ui", "type": "diagnostic", "diagnostic": said}
    desk.say("plan", warning, code=2)
    desk.say("apply", warning)
    done = desk.tf("apply", "--yes")
    assert done.err.count("warning: Old syntax\n  Use the new one.") == 1


def test_an_error_is_shown_with_its_place_and_what_to_do(desk: TfDesk) -> None:
    diagnostic = {
        "severity": "error",
        "summary": "Missing name",
        "detail": "It needs one.",
        "range": {"filename": "main.tf", "start": {"line": 2, "column": 3, "byte": 9}},
    }
    desk.say("validate", {"valid": False, "diagnostics": [diagnostic]}, code=1)
    failed = desk.tf("plan", expect=1)
    assert "error: Missing name (main.tf:2)\n  It needs one.\n" in failed.err
    assert "validate failed: main.tf:2: Missing name" in failed.err
    assert "Nothing was changed. Mend the cause and run the same tf plan again." in failed.err


def test_json_is_one_document_however_it_ends(desk: TfDesk) -> None:
    desk.finds_a_create()
    planned = desk.tf("plan", "--json").json()
    assert (planned["outcome"], planned["changed"], planned["plan"]["plan"]["create"]) == ("succeeded", False, 1)
    assert desk.tf("apply", "--json", expect=1).json()["exitCode"] == 1
    assert desk.tf("apply", "--yes", "--json").json()["changed"] is True
    desk.say("apply", code=1, err="no such thing\n")
    failed = desk.tf("apply", "--yes", "--json", expect=1).json()
    assert failed["plan"]["error"]["step"] == "apply"
    assert desk.run("tf", "plan", "nowhere", "--json", expect=1).json()["error"]["kind"] == "InputError"
    assert desk.run("tf", "plan", "--no-such-flag", "--json", expect=64).json()["error"]["kind"] == "UsageError"


def drifted(address: str, action: str) -> dict[str, object]:
    """The event of the stream that says so."""
    resource = {"addr": address, "resource_type": "terraform_data", "resource_name": "a"}
    change = {"resource": resource, "action": action}
    return {"@message": "drift", "@module": "terraform.ui", "type": "resource_drift", "change": change}


def test_drift_exits_1_and_names_what_an_apply_would_do(desk: TfDesk) -> None:
    desk.finds(change("terraform_data.a", "update"))
    desk.say("apply", drifted("terraform_data.a", "update"))
    found = desk.tf("drift", "--json", expect=1)
    assert found.json()["plan"]["drift"] == {
        "detected": True,
        "create": 0,
        "update": 1,
        "replace": 0,
        "delete": 0,
        "resources": [{"address": "terraform_data.a", "action": "update"}],
    }
    assert "~   update   terraform_data.a" in found.err
    assert f"stackhold tf plan {desk.folder / 'shop'}" in found.err


def test_what_is_only_not_applied_yet_is_no_drift(desk: TfDesk) -> None:
    desk.finds(change("terraform_data.a", "update"))
    done = desk.tf("drift")
    assert "No drift: what there is is what the state says." in done.out
    assert "An apply would do: 1 to update" in done.out


def test_the_plan_is_shown_as_the_runtime_shows_it(desk: TfDesk) -> None:
    desk.finds_a_create()
    desk.say("show-plan", "\n  # terraform_data.a will be created\n\nPlan: 1 to add.\n")
    done = desk.tf("plan")
    assert "  # terraform_data.a will be created\n\nPlan: 1 to add.\nHash: " in done.out
    assert "+   create" not in done.out


def test_nothing_to_do_is_not_the_plan_that_was_approved(desk: TfDesk) -> None:
    desk.finds()
    done = desk.tf("apply", "--yes", "--expect-plan", "0badc0de", "--json", expect=1)
    assert done.json()["outcome"] == "plan-changed"
    assert "there is nothing to do" in done.err


def test_a_module_of_another_folder_with_the_same_name_is_refused_before_anything(desk: TfDesk) -> None:
    desk.finds_a_create()
    desk.tf("apply", "--yes")
    desk.write("other/shop/main.tf", "")
    calls = len(desk.calls())
    refused = desk.run("tf", "apply", "other/shop", "--yes", *desk.scripted, expect=1)
    assert "their folders have one name" in refused.err
    assert "--stack NAME" in refused.err
    assert len(desk.calls()) == calls
    desk.run("tf", "apply", "other/shop", "--yes", "--stack", "shop", *desk.scripted)
    assert "their folders have one name" in desk.tf("apply", "--yes", expect=1).err


def test_two_checkouts_of_a_repository_are_one_module(desk: TfDesk) -> None:
    desk.finds_a_create()
    for checkout in ("one", "two"):
        desk.write(f"{checkout}/.git", "")
        desk.write(f"{checkout}/net/shop/main.tf", "")
        desk.run("tf", "apply", f"{checkout}/net/shop", "--yes", *desk.scripted)


def test_without_a_store_named_it_is_in_the_modules_folder_from_wherever_it_is_called(desk: TfDesk) -> None:
    desk.environment["STACKHOLD_STATE"] = ""
    desk.tf("plan")
    assert (desk.folder / "shop/.stackhold/stackhold/tf/shop/default/state.json").exists()
    assert not (desk.folder / ".stackhold").exists()


def test_what_a_runtime_says_where_it_has_no_diagnostics_is_shown_as_it_is(desk: TfDesk) -> None:
    desk.say("init", code=1, err="Error: Failed to query\n\n  could not reach the registry of nobody/zz\n")
    failed = desk.tf("plan", expect=1)
    assert "could not reach the registry of nobody/zz" in failed.err


def test_a_lock_of_somebody_else_is_named_without_advice_to_do_without_locks(desk: TfDesk) -> None:
    desk.write("shop/main.tf", 'terraform {\n  backend "local" {}\n}\n')
    info = (
        "Lock Info:\n  ID:        7c1b\n  Path:      there.tfstate\n  Operation: OperationTypeApply\n"
        "  Who:       maria@ci\n  Version:   1.11.4\n  Created:   2026-01-02 03:04:05.6 +0000 UTC\n  Info:      \n"
    )
    diagnostic = {
        "severity": "error",
        "summary": "Error acquiring the state lock",
        "detail": f"{info}\nUse -lock=false",
    }
    desk.say("plan", {"@module": "terraform.ui", "type": "diagnostic", "diagnostic": diagnostic}, code=1)
    failed = desk.tf("plan", expect=1)
    assert "the state lock 7c1b is held by maria@ci for OperationTypeApply since 2026-01-02 03:04:05Z" in failed.err
    told = next(line for line in failed.err.splitlines() if line.lstrip().startswith("stackhold tf force-unlock"))
    assert told.split()[3:5] == [str(desk.folder / "shop"), "7c1b"]
    assert [word for word in shlex.split(told) if word in desk.scripted_words] == list(desk.scripted_words)
    assert "-lock=false" not in failed.err
    assert not [call for call in desk.calls() if call[0] == "force-unlock"]


def test_a_directory_store_with_a_remote_backend_is_said_once(desk: TfDesk) -> None:
    desk.finds_a_create()
    desk.write("shop/main.tf", S3)
    said = desk.tf("apply", "--yes").err
    assert said.count("the state is in the backend s3 (main.tf:2), and the lock of this run is only in file:") == 1
    assert "--state s3://" in said
    desk.write("shop/main.tf", 'terraform {\n  backend "local" {}\n}\n')
    assert "the state is in the backend" not in desk.tf("apply", "--yes").err


def test_what_the_runtime_does_not_get_is_named_without_its_value(desk: TfDesk) -> None:
    desk.finds()
    desk.environment = {"TF_LOG": "trace", "TF_CLI_ARGS_plan": "-destroy"}
    said = desk.tf("plan").err
    assert "left out of the runtime's environment: TF_CLI_ARGS_plan, TF_LOG" in said
    assert "-destroy" not in said


def test_a_workspace_needs_a_backend_that_has_them(desk: TfDesk) -> None:
    desk.environment = {"TF_WORKSPACE": "dev"}
    refused = desk.tf("plan", expect=1)
    assert (
        "the workspace dev is selected, and a module that declares no backend has only the default one" in refused.err
    )
    desk.write("shop/main.tf", S3)
    desk.finds()
    desk.tf("plan")
    [run] = desk.run("events", "shop", "--workspace", "dev", "--json").json()["runs"]
    assert run["outcome"] == "succeeded"


def test_a_folder_that_is_no_stack_name_needs_one(desk: TfDesk) -> None:
    desk.write("my module/main.tf", "")
    refused = desk.run("tf", "plan", "my module", *desk.scripted, expect=1)
    assert "'my module' is no stack name" in refused.err
    assert "--stack NAME" in refused.err
    desk.finds()
    desk.run("tf", "plan", "my module", "--stack", "mine", *desk.scripted)
    assert desk.run("events", "mine", "--workspace", "default", "--json").json()["runs"]


def test_a_state_lock_is_cleared_by_its_id_where_a_backend_can_have_one(desk: TfDesk) -> None:
    refused = desk.tf("force-unlock", "abc", "--yes", expect=1)
    assert "declares no backend, so no state lock of it outlives a run" in refused.err
    desk.write("shop/main.tf", S3)
    assert "The state lock is gone." in desk.tf("force-unlock", "abc", "--yes").out
    assert desk.calls()[-1] == ["force-unlock", "-force", "abc"]
    assert "shop (default) is not locked" in desk.tf("force-unlock", "--yes").out
