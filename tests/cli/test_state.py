from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.cli.typing_scene import Shell
from tests.runs.lock_scene import LOCK_ID, OWNER, LockScene, keys

from stackhold.adapters.clock import SystemClock
from stackhold.adapters.files import DirectoryStore
from stackhold.model.codec import encode_record
from stackhold.model.ids import LogicalId, PhysicalId, TypeName
from stackhold.model.record import ResourceRecord, StateRecord

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def scene(shell: Shell) -> LockScene:
    clock = SystemClock()
    return LockScene(store=DirectoryStore(shell.cwd / ".stackhold", clock=clock), clock=clock)


def test_an_empty_store_lists_nothing_and_makes_nothing(shell: Shell) -> None:
    assert shell.type("state", "list").out == "No stacks in file:.stackhold.\n"
    assert shell.type("state", "list", "--json").json() == {"stacks": []}
    assert list(shell.cwd.iterdir()) == []


def test_the_list_shows_resources_and_with_long_the_lock(shell: Shell, scene: LockScene) -> None:
    scene.record()
    scene.lock()
    scene.record(keys("orders"), resources=5)
    short = shell.type("state", "list")
    assert [line.split()[:3] for line in short.out.splitlines()] == [
        ["STACK", "REGION", "RESOURCES"],
        ["orders", "eu-west-1", "5"],
        ["payments", "eu-west-1", "2"],
    ]
    assert OWNER not in short.out
    long = shell.type("state", "list", "--long").out.splitlines()[2]
    assert f"{OWNER}, deploy, for 10 s, expires in " in long
    [orders, payments] = shell.type("state", "list", "--long", "--json").json()["stacks"]
    assert (orders["isLocked"], orders["lock"]) == (False, None)
    assert payments["lock"]["owner"] == OWNER
    assert payments["lock"]["isStale"] is False


def test_a_stack_with_only_a_lock_is_listed(shell: Shell, scene: LockScene) -> None:
    scene.lock()
    [found] = shell.type("state", "list", "--json").json()["stacks"]
    assert (found["stack"], found["isLocked"], found["resources"]) == ("payments", True, 0)


def test_show_gives_state_lock_and_children_as_stored(shell: Shell, scene: LockScene) -> None:
    scene.record()
    scene.lock()
    shown = shell.type("state", "show", "payments", "--json").json()
    assert sorted(shown) == ["children", "lock", "state"]
    assert shown["children"] == []
    assert shown["lock"]["id"] == LOCK_ID
    assert sorted(shown["state"]["resources"]) == ["Queue0", "Queue1"]


def test_show_keeps_fields_that_we_do_not_know(shell: Shell, scene: LockScene) -> None:
    scene.put(
        scene.keys.record,
        b'{"version": 8, "region": "eu-west-1", "stackName": "payments", "resources": {}, "outputs": {},'
        b' "lastModified": 5, "theirs": {"a": [1]}}',
    )
    assert shell.type("state", "show", "payments", "--json").json()["state"]["theirs"] == {"a": [1]}


def test_show_of_a_truncated_record_exits_1_with_json_and_shows_the_reason_without(
    shell: Shell, scene: LockScene
) -> None:
    scene.put(scene.keys.record, b'{"version": 8, "resou')
    typed = shell.type("state", "show", "payments", "--json")
    assert typed.code == 1
    assert typed.json()["error"]["kind"] == "RecordUnreadable"
    assert typed.json()["error"]["key"] == "stackhold/payments/eu-west-1/state.json"
    assert "not readable" in shell.type("state", "show", "payments").out


def test_resources_are_listed(shell: Shell, scene: LockScene) -> None:
    scene.record()
    assert "Queue0      AWS::SQS::Queue  q-0" in shell.type("state", "resources", "payments").out
    found = shell.type("state", "resources", "payments", "--json").json()["resources"]
    assert [each["physicalId"] for each in found] == ["q-0", "q-1"]


def test_info_names_the_store_who_set_it_and_counts(tmp_path: Path, scene: LockScene) -> None:
    scene.record()
    scene.lock()
    state = f"file:{tmp_path / '.stackhold'}"
    info = Shell(tmp_path / "..", {"STACKHOLD_STATE": state}).type("state", "info", "--json").json()
    assert info["setBy"] == "STACKHOLD_STATE"
    assert info["store"] == state
    assert (info["stacks"], info["resources"], info["locks"], info["unreadable"]) == (1, 2, 1, 0)


@pytest.mark.parametrize(
    "command",
    [
        "state show",
        "state resources",
        "events",
        "drift",
        "destroy --yes",
        "rollback --yes",
        "cancel",
        "force-unlock --yes",
    ],
)
@pytest.mark.parametrize("region", [(), ("--region", "eu-west-1")])
def test_a_stack_that_is_nowhere_is_said_to_be_and_nothing_is_made(
    tmp_path: Path, command: str, region: tuple[str, ...]
) -> None:
    typed = Shell(tmp_path).type(*command.split(), "nobody", *region)
    where = " in eu-west-1" if region else ""
    assert (typed.code, typed.err.splitlines()[0]) == (1, f"stackhold: no stack nobody{where} in file:.stackhold")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["state list --long", "state info"])
def test_looking_at_a_store_that_is_not_there_makes_none(tmp_path: Path, command: str) -> None:
    assert Shell(tmp_path, {"AWS_REGION": "eu-west-1"}).type(*command.split()).code == 0
    assert list(tmp_path.iterdir()) == []


def terraform_record(scene: LockScene, stack: str, workspace: str, *, resources: int | None) -> None:
    """Put the record of a Terraform stack; without `resources` its state is not the store's."""
    where = keys(stack, workspace, prefix="stackhold/tf")
    properties = {} if resources is None else {"resources": resources}
    state = ResourceRecord(PhysicalId("3"), TypeName("Stackhold::Terraform::State"), properties)
    record = StateRecord(where.stack, where.region, {LogicalId("state"): state}, last_modified=scene.clock.now())
    scene.put(where.record, encode_record(record))


def test_both_kinds_of_stacks_are_listed_with_what_is_in_them(shell: Shell, scene: LockScene) -> None:
    scene.record()
    terraform_record(scene, "network", "default", resources=12)
    terraform_record(scene, "network", "prod", resources=None)
    terraform_record(scene, "emptied", "default", resources=0)
    assert [line.rsplit("  ", 1)[0].split() for line in shell.type("state", "list").out.splitlines()] == [
        ["STACK", "REGION", "RESOURCES"],
        ["emptied", "tf", "workspace", "default", "0"],
        ["network", "tf", "workspace", "default", "12"],
        ["network", "tf", "workspace", "prod", "?"],
        ["payments", "eu-west-1", "2"],
    ]
    found = shell.type("state", "list", "--json").json()["stacks"]
    assert [(each["kind"], each.get("workspace"), each["resources"]) for each in found] == [
        ("terraform", "default", 0),
        ("terraform", "default", 12),
        ("terraform", "prod", None),
        ("cloudformation", None, 2),
    ]
    only = shell.type("state", "list", "--workspace", "prod", "--json").json()["stacks"]
    assert [(each["stack"], each["workspace"]) for each in only] == [("network", "prod")]
    assert "stacks      4, 3 of them Terraform's\nresources   14\n" in shell.type("state", "info").out
    info = shell.type("state", "info", "--json").json()
    assert (info["stacks"], info["terraformStacks"], info["resources"]) == (4, 3, 14)


def test_who_misses_a_stack_is_told_where_one_of_that_name_is(shell: Shell, scene: LockScene) -> None:
    scene.record()
    terraform_record(scene, "network", "default", resources=12)
    for command in ("state show", "events", "drift", "destroy --yes", "rollback --yes", "cancel", "force-unlock --yes"):
        typed = shell.type(*command.split(), "payments", "--region", "us-east-1")
        assert (typed.code, typed.err) == (
            1,
            "stackhold: no stack payments in us-east-1 in file:.stackhold\nIt is in eu-west-1: --region eu-west-1\n",
        )
        for region in ((), ("--region", "us-east-1")):
            typed = shell.type(*command.split(), "network", *region)
            assert typed.code == 1
            assert "with --workspace default; it is changed from its module's folder, with: stackhold tf" in typed.err
    typed = shell.type("events", "network", "--workspace", "prod")
    assert typed.err == (
        "stackhold: no Terraform stack network in workspace prod in file:.stackhold\n"
        "It is in the workspace default: --workspace default\n"
    )
    typed = shell.type("state", "show", "payments", "--workspace", "default")
    assert typed.err.endswith("One is in eu-west-1: without --workspace, --region eu-west-1\n")


def test_a_stack_in_two_regions_must_be_told_apart(shell: Shell, scene: LockScene) -> None:
    scene.record()
    scene.record(keys("payments", "us-east-1"), resources=7)
    assert "recorded in eu-west-1, us-east-1" in shell.type("state", "show", "payments").err
    for flag in ("--region", "--stack-region"):
        found = shell.type("state", "resources", "payments", flag, "us-east-1", "--json").json()
        assert len(found["resources"]) == 7


def test_another_prefix_is_another_world(shell: Shell, scene: LockScene) -> None:
    scene.record(keys("payments", prefix="cdkd"))
    assert shell.type("state", "show", "payments").code == 1
    assert shell.type("state", "show", "payments", "--state-prefix", "cdkd").code == 0
