"""A stack that cdkd deployed, taken over under its own prefix: nothing to do, then one change, then its end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.inventory import inventory
from tests.stories.cdkd_stack import rebuilt

from stackhold.testing.proxy import SlowProxy

if TYPE_CHECKING:
    from tests.stories.scene import Scene

pytestmark = [pytest.mark.emulator, pytest.mark.story]

STACK = "Serverless"
QUEUE = "Queue4A7E3555"
READS = ("Get", "List", "Describe")


def object_of(scene: Scene, stack: str, name: str) -> Path:
    """Where an object of a stack lies below cdkd's prefix."""
    return Path(scene.state.removeprefix("file:")) / "cdkd" / stack / "us-east-1" / name


def put(scene: Scene, stack: str, name: str, text: str) -> Path:
    """Put an object there."""
    path = object_of(scene, stack, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def index_of(scene: Scene) -> Path:
    """cdkd's index of exports."""
    return Path(scene.state.removeprefix("file:")) / "cdkd" / "_index" / "us-east-1" / "exports.json"


@pytest.fixture
def template(cases: Path) -> Path:
    """What cdkd had deployed."""
    return cases / "serverless.template.json"


@pytest.fixture
def empty(scene: Scene) -> dict[str, list[str]]:
    """What is in the cloud before the stack."""
    scene.client("sqs").create_queue(QueueName="someone-elses")
    return inventory(scene.client)


@pytest.fixture
def taken_over(scene: Scene, cases: Path, empty: dict[str, list[str]]) -> Scene:
    """A scene with cdkd's stack in the cloud and its record in the store; all commands look below its prefix."""
    scene.environment["STACKHOLD_STATE_PREFIX"] = "cdkd"
    record = (cases / "records" / "serverless.state.json").read_text()
    put(scene, STACK, "state.json", rebuilt(scene.client, record))
    index_of(scene).parent.mkdir(parents=True)
    shutil.copy(cases / "records" / "exports.json", index_of(scene))
    return scene


def recorded(scene: Scene) -> dict[str, Any]:
    """The record as it lies in the store."""
    found: dict[str, Any] = json.loads(object_of(scene, STACK, "state.json").read_text())
    return found


def writes(proxy: SlowProxy) -> list[str]:
    """The calls that changed something."""
    return [call.name for call in proxy.calls if not call.named.operation.startswith(READS)]


def test_the_same_template_changes_nothing(taken_over: Scene, template: Path) -> None:
    scene = taken_over
    before = object_of(scene, STACK, "state.json").read_bytes()
    shown = scene.run("diff", str(template), "--stack-name", STACK, "--fail")
    assert "nothing to change, 22 resources as recorded" in shown.out
    with SlowProxy(scene.emulator.url) as proxy:
        again = scene.run("deploy", str(template), "--stack-name", STACK, "--json", env={"AWS_ENDPOINT_URL": proxy.url})
        assert again.json()["isEmpty"] is True
        assert not writes(proxy)
    assert object_of(scene, STACK, "state.json").read_bytes() == before
    assert scene.run("drift", STACK, "--json").json()["isDrifted"] is False


def test_a_change_of_one_property_updates_one_resource_and_keeps_what_cdkd_knows(
    taken_over: Scene, template: Path
) -> None:
    scene = taken_over
    before = recorded(scene)
    before["resources"][QUEUE]["deploymentNote"] = {"kept": [1, 2]}
    put(scene, STACK, "state.json", json.dumps(before))
    changed = json.loads(template.read_text())
    changed["Resources"][QUEUE]["Properties"]["VisibilityTimeout"] = 90
    scene.write("changed.json", json.dumps(changed))
    with SlowProxy(scene.emulator.url) as proxy:
        done = scene.run(
            "deploy", "changed.json", "--stack-name", STACK, "--json", env={"AWS_ENDPOINT_URL": proxy.url}
        ).json()
        assert done["counts"] == {"update": 1}
        assert writes(proxy) == ["sqs:SetQueueAttributes"]
    after = recorded(scene)
    assert (after["version"], after["stackName"], after["region"]) == (8, STACK, "us-east-1")
    assert after["outputs"] == before["outputs"]
    assert after["resources"][QUEUE]["properties"] == {"VisibilityTimeout": 90}
    assert after["resources"][QUEUE]["observedProperties"]["VisibilityTimeout"] == 90
    for field in ("physicalId", "resourceType", "attributes", "deletionPolicy", "provisionedBy", "deploymentNote"):
        assert after["resources"][QUEUE][field] == before["resources"][QUEUE][field]
    assert {name: each for name, each in after["resources"].items() if name != QUEUE} == {
        name: each for name, each in before["resources"].items() if name != QUEUE
    }
    assert scene.run("diff", "changed.json", "--stack-name", STACK, "--fail").code == 0
    assert scene.run("drift", STACK, "--json").json()["isDrifted"] is False


def test_a_destroy_removes_all_of_it_and_nothing_else(taken_over: Scene, empty: dict[str, list[str]]) -> None:
    scene = taken_over
    gone = scene.run("destroy", STACK, "--yes", "--json").json()
    assert gone["counts"] == {"delete": 22}
    assert inventory(scene.client) == empty
    assert not object_of(scene, STACK, "state.json").exists()
    assert not object_of(scene, STACK, "lock.json").exists()
    assert json.loads(index_of(scene).read_text())["exports"] == {}


@pytest.fixture
def interrupted(scene: Scene, cases: Path) -> Scene:
    """A scene with what an interrupted run of cdkd, which is still going, has left in the store."""
    scene.environment["STACKHOLD_STATE_PREFIX"] = "cdkd"
    records = cases / "records"
    put(scene, "Api", "state.json", (records / "interrupted.state.json").read_text())
    put(scene, "Api", "rollback-journal.json", (records / "interrupted.rollback-journal.json").read_text())
    put(scene, "Api", "lock.json", (records / "lock.json").read_text())
    return scene


def stored(scene: Scene) -> dict[str, bytes]:
    """All objects below cdkd's prefix, but for what our own runs tell of themselves."""
    root = Path(scene.state.removeprefix("file:")) / "cdkd"
    found = {str(path.relative_to(root)): path for path in root.rglob("*.json")}
    return {name: path.read_bytes() for name, path in found.items() if "/events/" not in name}


def test_reading_an_interrupted_stack_leaves_record_journal_and_lock_as_they_are(
    interrupted: Scene, template: Path
) -> None:
    scene = interrupted
    before = stored(scene)
    assert len(before) == 3
    [listed] = scene.run("state", "list", "--long", "--json").json()["stacks"]
    assert (listed["stack"], listed["resources"]) == ("Api", 21)
    assert listed["lock"]["owner"] == "maria@ci-7:4711"
    shown = scene.run("state", "show", "Api", "--json").json()
    assert shown["state"] == json.loads(before["Api/us-east-1/state.json"])
    assert len(scene.run("state", "resources", "Api", "--json").json()["resources"]) == 21
    planned = scene.run("diff", str(template), "--stack-name", "Api", "--json").json()
    assert planned["counts"]["create"] == 1
    assert scene.run("drift", "Api", "--json", expect=1).json()["isDrifted"] is True
    scene.run("events", "Api")
    assert stored(scene) == before


def test_the_lock_of_a_running_cdkd_is_respected(interrupted: Scene) -> None:
    before = stored(interrupted)
    said = interrupted.run("destroy", "Api", "--yes", expect=1).err
    assert "maria@ci-7:4711" in said
    assert "--state-prefix cdkd" in said
    assert stored(interrupted) == before
