"""`stackhold runner run`: three exit codes of its own, and a result document that always is one."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.tf_desk import TfDesk
from tests.engines.terraform.plans import change

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.story]
FLAGS = {"--op": "apply", "--module": "shop", "--workdir": "work", "--result": "result.json"}
LIMIT = 4096


@pytest.fixture
def desk(tmp_path: Path) -> TfDesk:
    return TfDesk(tmp_path)


def job(desk: TfDesk, *more: str, expect: int = 0, **flags: str) -> dict[str, Any]:
    """Run one Job; its result document."""
    chosen = FLAGS | {f"--{name}": value for name, value in flags.items()}
    pairs = [word for pair in chosen.items() for word in pair]
    desk.run("runner", "run", *pairs, *more, *desk.scripted, expect=expect)
    data = (desk.folder / "result.json").read_bytes()
    (desk.folder / "result.json").unlink()
    assert len(data) <= LIMIT
    found: dict[str, Any] = json.loads(data)
    assert found["version"] == 1
    return found


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--op", "apply"),
        ("--op", "dance", "--module", "shop", "--workdir", "w", "--result", "r"),
        ("--op", "apply", "--module", "shop", "--workdir", "w", "--result", "r", "--lock-timeout", "soon"),
        ("--no-such-flag",),
    ],
)
def test_a_command_line_that_cannot_be_understood_exits_2(desk: TfDesk, words: tuple[str, ...]) -> None:
    assert "Usage: stackhold runner run" in desk.run("runner", "run", *words, expect=2).err


def test_an_apply_leaves_its_result_and_exits_0(desk: TfDesk) -> None:
    desk.say("apply", {"type": "change_summary", "changes": {"add": 1, "change": 0, "remove": 0, "operation": "apply"}})
    found = job(desk, "--image", "registry.example/shop:1")
    assert (found["op"], found["error"]) == ("apply", None)
    assert found["image"] == {"ref": "registry.example/shop:1", "providersMirror": ""}
    assert [step["name"] for step in found["steps"]] == ["version", "init", "validate", "apply"]
    assert found["changes"] == {"add": 1, "change": 0, "destroy": 0, "import": 0}
    assert found["runtime"]["version"] == "1.11.4"


def test_a_step_that_fails_is_named_and_exits_1(desk: TfDesk) -> None:
    desk.say("init", code=1, err="Error: no such provider\n")
    found = job(desk, expect=1)
    assert (found["error"]["kind"], found["error"]["step"]) == ("step", "init")
    assert "no such provider" in found["error"]["tail"]


def test_an_image_without_a_module_is_told_apart(desk: TfDesk) -> None:
    found = job(desk, module="nowhere", expect=1)
    assert found["error"]["kind"] == "image-layout"
    assert desk.calls() == []


@pytest.mark.parametrize("flag", [("--guard-deletes",), ("--expect-plan", "abc")])
def test_a_judged_apply_needs_the_key_of_its_hash(desk: TfDesk, flag: tuple[str, ...]) -> None:
    found = job(desk, *flag, expect=1)
    assert "the key of the plan's hash" in found["error"]["tail"]
    assert desk.calls() == []


def test_a_plan_that_deletes_is_blocked_until_its_hash_is_approved(desk: TfDesk) -> None:
    desk.write("key", "a key")
    desk.finds(change("terraform_data.a", "delete"))
    guarded = ("--guard-deletes", "--plan-key-file", "key")
    blocked = job(desk, *guarded, expect=1)
    assert blocked["error"]["kind"] == "blocked"
    assert "apply" not in [call[0] for call in desk.calls()]
    assert job(desk, *guarded, "--allow-deletes-hash", "other", expect=1)["error"]["kind"] == "blocked"
    assert job(desk, *guarded, "--allow-deletes-hash", blocked["plan"]["hash"])["error"] is None
    assert job(desk, *guarded, "--inputs-hash", "i", "--allow-deletes-hash", "i")["error"] is None
    changed = job(desk, *guarded, "--expect-plan", "other", expect=1)
    assert changed["error"]["kind"] == "plan-changed"


def test_a_backup_in_parts_is_pushed(desk: TfDesk) -> None:
    state = json.dumps({"version": 4, "serial": 1, "lineage": "x"}).encode()
    packed = gzip.compress(state)
    for number, piece in enumerate((packed[:10], packed[10:])):
        (desk.folder / f"part{number}").write_bytes(piece)
    job(desk, "--restore-chunks", "part0", "--restore-chunks", "part1", "--restore-resources", "1", op="restore")
    pushed = next(call for call in desk.calls() if call[:2] == ["state", "push"])
    assert (desk.folder / "work" / "backup.tfstate").read_bytes() == state
    assert pushed[-1].endswith("backup.tfstate")
    desk.say("state-list", "")
    lost = job(
        desk,
        "--restore-chunks",
        "part0",
        "--restore-chunks",
        "part1",
        "--restore-resources",
        "1",
        op="restore",
        expect=1,
    )
    assert "the state shows none" in lost["error"]["tail"]


BAD_PARTS = {
    "missing": None,
    "empty": b"",
    "not packed": b"no gzip",
    "no state": gzip.compress(b"no state", mtime=0),
    "cut short": gzip.compress(b"x" * 1000, mtime=0)[:-9],
}


@pytest.mark.parametrize("part", BAD_PARTS.values(), ids=BAD_PARTS)
def test_a_backup_that_cannot_be_unpacked_is_said(desk: TfDesk, part: bytes | None) -> None:
    if part is not None:
        (desk.folder / "part").write_bytes(part)
    found = job(desk, "--restore-chunks", "part", op="restore", expect=1)
    assert found["error"]["kind"] == "step"
    assert desk.calls() == []


def test_a_work_folder_that_cannot_be_made_is_said_in_the_result(desk: TfDesk) -> None:
    desk.write("taken", "")
    assert "taken" in job(desk, workdir="taken", expect=1)["error"]["tail"]


def test_a_result_that_can_go_nowhere_is_said_in_the_log(desk: TfDesk) -> None:
    pairs = [word for pair in (FLAGS | {"--result": "no/folder/r.json"}).items() for word in pair]
    failed = desk.run("runner", "run", *pairs, *desk.scripted, expect=1)
    assert "the result cannot be written to no/folder/r.json" in failed.err


def test_a_large_plan_and_long_errors_still_make_a_small_result(desk: TfDesk) -> None:
    desk.write("key", "a key")
    rows = [change(f"module.very_long_name_{'x' * 200}.terraform_data.a[{number}]", "delete") for number in range(500)]
    desk.finds(*rows)
    found = job(desk, "--guard-deletes", "--plan-key-file", "key", "--image", "i" * 5000, expect=1)
    assert (found["plan"]["delete"], found["error"]["kind"]) == (500, "blocked")
    said = {"severity": "error", "summary": "e" * 9000, "detail": "\\" * 9000}
    desk.say("plan", {"type": "diagnostic", "diagnostic": said}, code=1)
    assert len(job(desk, op="plan", expect=1)["error"]["tail"].encode()) <= 512


def test_no_setting_of_the_pods_environment_reaches_the_runtime_but_by_name_in_the_log(desk: TfDesk) -> None:
    desk.environment = {"TF_TOKEN_example": "s3cret"}
    pairs = [word for pair in FLAGS.items() for word in pair]
    said = desk.run("runner", "run", *pairs, *desk.scripted).err
    assert "left out of the runtime's environment: TF_TOKEN_example" in said
    assert "s3cret" not in said
