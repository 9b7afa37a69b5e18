"""`stackhold rollback`: after failed, stopped and half rolled back runs, with real processes on a real emulator."""

from __future__ import annotations

import json
import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.inventory import inventory
from tests.stories.cdkd_stack import rebuilt
from tests.stories.scene import EXAMPLES, wait_until
from tests.stories.slow_chain import CHAIN, NAMES, STACK, Chain, chain_in

from stackhold.testing.proxy import Answer, Rule, SlowProxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.stories.scene import Running, Scene

pytestmark = [pytest.mark.emulator, pytest.mark.story]

REFUSED = Answer(403, "AccessDeniedException", "not you")
TABLE = """
Resources:
  Data:
    Type: AWS::DynamoDB::Table
    Properties:
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
  Name: {Type: "AWS::SSM::Parameter", DependsOn: Data, Properties: {Type: String, Value: x}}
"""


@pytest.fixture
def chain(scene: Scene) -> Iterator[Chain]:
    with chain_in(scene) as made:
        yield made


def rollback(chain: Chain, *flags: str) -> Running:
    """Start a rollback through the proxy."""
    return chain.scene.start("rollback", STACK, *flags, env={"AWS_ENDPOINT_URL": chain.proxy.url})


def interrupted(chain: Chain) -> None:
    """A first deploy that a signal stopped with two of three parameters made."""
    held = chain.hold()
    running = chain.deploy()
    held.wait_reached()
    running.signal(signal.SIGTERM)
    chain.wait_told("stopping")
    held.release()
    stopped = running.finish()
    assert stopped.code == 143
    assert "Or undo it with: stackhold rollback chain --region us-east-1 --state " in stopped.err
    assert chain.in_cloud() == chain.recorded() == {"First", "Second"}


def values(chain: Chain) -> dict[str, str]:
    """Every parameter that exists, with its value."""
    found = chain.scene.client("ssm").get_parameters_by_path(Path="/", Recursive=True)["Parameters"]
    found += chain.scene.client("ssm").get_parameters(Names=["chain-first-anew", *NAMES.values()])["Parameters"]
    return {each["Name"]: each["Value"] for each in found}


def deletes(chain: Chain) -> int:
    """The deletes that reached the emulator."""
    return chain.proxy.count(service="ssm", operation="DeleteParameter*", forwarded=True)


def test_an_interrupted_first_deploy_is_undone_and_leaves_nothing(chain: Chain) -> None:
    interrupted(chain)
    result = rollback(chain, "--json").finish()
    assert result.code == 0, result.err
    told = result.json()
    assert (told["outcome"], told["counts"]) == ("succeeded", {"delete": 2})
    assert {each["action"] for each in told["plan"]["resources"]} == {"delete"}
    assert chain.in_cloud() == set()
    assert chain.scene.lock(STACK) is None
    assert not [name for name in ("state.json", "rollback-journal.json", "run.json", "lock.json") if chain.has(name)]
    again = chain.scene.run("rollback", STACK)
    assert "nothing to roll back" in again.out
    chain.converges()


def test_dependents_go_first(chain: Chain) -> None:
    interrupted(chain)
    held = chain.proxy.add(Rule(service="ssm", operation="DeleteParameter*", hold=threading.Event(), times=1))
    running = rollback(chain)
    held.wait_reached()
    assert chain.in_cloud() == {"First", "Second"}
    assert chain.proxy.count(service="ssm", operation="DeleteParameter*") == 1
    held.release()
    assert running.finish().code == 0
    assert chain.in_cloud() == set()


def failed_update(chain: Chain) -> None:
    """An update that replaces the first, changes the second and fails at the third, and does not go back."""
    chain.deployed()
    changed = CHAIN.replace("Name: chain-first,", "Name: chain-first-anew,").replace("Value: two", "Value: 2")
    chain.scene.write("chain.yaml", changed.replace("Value: three", "Value: 3"))
    chain.proxy.add(Rule(service="ssm", operation="PutParameter", skip=2, times=1, answer=REFUSED))
    result = chain.deploy("--no-rollback").finish()
    assert result.code == 2
    assert "stackhold rollback chain" in result.err
    assert values(chain) == {
        "chain-first": "one",
        "chain-first-anew": "one",
        "chain-second": "2",
        "chain-third": "three",
    }


def test_an_update_that_replaces_and_failed_is_undone(chain: Chain) -> None:
    failed_update(chain)
    shown = chain.scene.run("rollback", STACK, "--json").json()
    assert {each["logicalId"]: each["action"] for each in shown["plan"]["resources"]} == {
        "First": "put back",
        "Second": "restore",
    }
    assert values(chain) == {"chain-first": "one", "chain-second": "two", "chain-third": "three"}
    assert not chain.has("rollback-journal.json")
    record = chain.scene.record(STACK)
    assert record["resources"]["First"]["physicalId"] == "chain-first"
    assert "pendingDeletes" not in record
    chain.scene.write("chain.yaml", CHAIN)
    assert chain.scene.run("deploy", "chain.yaml", "--json").json()["isEmpty"] is True


def test_what_cannot_be_deleted_stays_in_the_journal_and_a_second_rollback_completes(chain: Chain) -> None:
    failed_update(chain)
    refusal = chain.proxy.add(Rule(service="ssm", operation="DeleteParameter*", answer=REFUSED))
    partly = rollback(chain).finish()
    assert partly.code == 2
    assert "not you" in partly.err
    assert "--orphan" in partly.err
    assert chain.scene.lock(STACK) is None
    [segment] = chain.stored("rollback-journal.json")["segments"]
    assert segment["reason"] == "rollback-partial"
    assert [each["logicalId"] for each in segment["operations"]] == ["First"]
    assert values(chain)["chain-second"] == "two"
    chain.proxy.remove(refusal)
    done = rollback(chain).finish()
    assert done.code == 0, done.err
    assert values(chain) == {"chain-first": "one", "chain-second": "two", "chain-third": "three"}
    assert not chain.has("rollback-journal.json")


def test_a_rollback_of_what_a_deploy_could_undo_only_in_part_completes_it(chain: Chain) -> None:
    chain.proxy.add(Rule(service="ssm", operation="PutParameter", skip=2, times=1, answer=REFUSED))
    refusal = chain.proxy.add(Rule(service="ssm", operation="DeleteParameter*", answer=REFUSED))
    assert chain.deploy().finish().code == 2
    assert chain.in_cloud() == chain.recorded() == {"First", "Second"}
    chain.proxy.remove(refusal)
    assert rollback(chain).finish().code == 0
    assert chain.in_cloud() == set()
    assert not chain.has("state.json")


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_rollback_that_is_cut_short_goes_on_and_deletes_nothing_twice(chain: Chain, signum: signal.Signals) -> None:
    interrupted(chain)
    held = chain.proxy.add(
        Rule(service="ssm", operation="DeleteParameter*", skip=1, times=1, hold=threading.Event(), drop="before")
        if signum is signal.SIGKILL
        else Rule(service="ssm", operation="DeleteParameter*", times=1, hold=threading.Event())
    )
    running = rollback(chain)
    held.wait_reached()
    if signum is signal.SIGKILL:
        wait_until(lambda: chain.recorded() == {"First"}, "the save of the first delete")
    running.signal(signum)
    if signum is not signal.SIGKILL:
        chain.wait_told("stopping")
    held.release()
    stopped = running.finish()
    assert stopped.code == {signal.SIGINT: 130, signal.SIGTERM: 143}.get(signum, -9)
    assert chain.recorded() == {"First"}
    if signum is signal.SIGKILL:
        chain.scene.run("force-unlock", STACK, "--yes")
    else:
        assert "Run the same rollback again" in stopped.err
        assert chain.scene.lock(STACK) is None
        assert [each["logicalId"] for each in chain.stored("rollback-journal.json")["segments"][0]["operations"]] == [
            "First"
        ]
    assert rollback(chain).finish().code == 0
    assert chain.in_cloud() == set()
    assert deletes(chain) == 2
    assert not chain.has("rollback-journal.json")
    assert not chain.has("state.json")


def test_a_held_lock_is_tried_three_more_times(chain: Chain) -> None:
    interrupted(chain)
    chain.proxy.reset()
    held = chain.hold(skip=0)
    deploying = chain.deploy()
    held.wait_reached()
    lock = chain.scene.lock(STACK)
    assert lock is not None
    at_once = rollback(chain, "--lock-timeout", "0").finish()
    assert at_once.code == 1
    refused = rollback(chain).finish()
    assert refused.code == 1
    assert "tried 4 times in 6 s" in refused.err
    assert lock["owner"] in refused.err
    waiting = rollback(chain, "--lock-timeout", "50s")
    held.release()
    assert deploying.finish().code == 0
    waited = waiting.finish()
    assert waited.code == 0
    assert "nothing to roll back" in waited.out


def test_an_orphan_stays_in_the_cloud_and_nothing_speaks_of_it_any_more(chain: Chain) -> None:
    interrupted(chain)
    wrong = rollback(chain, "--orphan", "Fourth").finish()
    assert wrong.code == 1
    assert "Fourth" in wrong.err
    result = rollback(chain, "--orphan", "Second").finish()
    assert result.code == 0, result.err
    assert "chain-second (--orphan)" in result.out
    assert chain.in_cloud() == {"Second"}
    assert not chain.has("state.json")
    assert not chain.has("rollback-journal.json")


def test_what_was_given_up_in_flight_is_left_until_its_revert_is_asked_for(chain: Chain) -> None:
    chain.deployed()
    chain.scene.write("chain.yaml", CHAIN.replace("Value: one", "Value: 1").replace("Value: two", "Value: 2"))
    held = chain.hold()
    running = chain.deploy("--grace", "4")
    held.wait_reached()
    running.signal(signal.SIGTERM)
    assert running.finish(timeout=6).code == 143
    held.release()
    wait_until(lambda: values(chain)["chain-second"] == "2", "the late update")
    partly = rollback(chain).finish()
    assert partly.code == 2
    assert "--revert-failed" in partly.err
    assert values(chain) == {"chain-first": "1", "chain-second": "2", "chain-third": "three"}
    done = rollback(chain, "--revert-failed").finish()
    assert done.code == 0, done.err
    assert values(chain) == {"chain-first": "one", "chain-second": "two", "chain-third": "three"}
    assert not chain.has("rollback-journal.json")


def recorded_first(chain: Chain) -> str | None:
    """The physical id of the first as recorded; None when it is not."""
    if not chain.has("state.json"):
        return None
    found: str | None = chain.stored("state.json")["resources"].get("First", {}).get("physicalId")
    return found


def killed(chain: Chain) -> None:
    """A deploy that is killed while its second call is on its way; the call is carried out, the lock cleared."""
    before, before_first = values(chain), recorded_first(chain)
    held = chain.hold()
    running = chain.deploy()
    held.wait_reached()
    wait_until(lambda: chain.has("state.json") and recorded_first(chain) != before_first, "the save of the first")
    running.signal(signal.SIGKILL)
    assert running.finish().code == -signal.SIGKILL
    held.release()
    wait_until(lambda: len(values(chain).items() - before.items()) == 2, "the late call")
    chain.scene.run("force-unlock", STACK, "--yes")
    assert not chain.has("rollback-journal.json")


def test_a_killed_first_deploy_is_undone(chain: Chain) -> None:
    killed(chain)
    assert chain.in_cloud() == {"First", "Second"}
    result = rollback(chain).finish()
    assert result.code == 0, result.err
    assert chain.in_cloud() == set()
    assert not chain.has("rollback-journal.json")
    assert not chain.has("state.json")
    chain.deployed()


def test_a_killed_update_is_undone(chain: Chain) -> None:
    chain.deployed()
    changed = CHAIN.replace("Name: chain-first,", "Name: chain-first-anew,").replace("Value: two", "Value: 2")
    chain.scene.write("chain.yaml", changed)
    killed(chain)
    result = rollback(chain).finish()
    assert result.code == 0, result.err
    assert values(chain) == {"chain-first": "one", "chain-second": "two", "chain-third": "three"}
    assert not chain.has("rollback-journal.json")
    chain.scene.write("chain.yaml", CHAIN)
    chain.deployed()


def test_data_is_never_deleted_without_a_yes(scene: Scene) -> None:
    before = inventory(scene.client)
    scene.write("data.yaml", TABLE)
    with SlowProxy(scene.emulator.url) as proxy:
        through = {"AWS_ENDPOINT_URL": proxy.url}
        proxy.add(Rule(service="ssm", operation="PutParameter", answer=REFUSED))
        scene.run("deploy", "data.yaml", "--no-rollback", expect=2, env=through)
    blocked = scene.run("rollback", "data", expect=1)
    assert "the data of Data would be lost, and nobody can be asked here; nothing was changed" in blocked.err
    assert "[stateful]" in blocked.out
    assert len(scene.client("dynamodb").list_tables()["TableNames"]) == 1
    scene.run("rollback", "data", "--yes")
    assert inventory(scene.client) == before


def test_an_interrupted_destroy_is_undone(chain: Chain) -> None:
    chain.deployed()
    before = values(chain)
    held = chain.proxy.add(Rule(service="ssm", operation="DeleteParameter*", skip=1, times=1, hold=threading.Event()))
    running = chain.destroy()
    held.wait_reached()
    running.signal(signal.SIGINT)
    chain.wait_told("stopping")
    held.release()
    assert running.finish().code == 130
    assert chain.in_cloud() == {"First"}
    assert rollback(chain).finish().code == 0
    assert values(chain) == before
    assert chain.scene.run("deploy", "chain.yaml", "--json").json()["isEmpty"] is True


def test_a_stopped_change_of_a_whole_application_is_undone_without_drift(scene: Scene) -> None:
    template = str(EXAMPLES / "serverless.yaml")
    scene.run("deploy", template, "--stack-name", "orders")
    before = inventory(scene.client)
    with SlowProxy(scene.emulator.url) as proxy:
        through = {"AWS_ENDPOINT_URL": proxy.url}
        held = proxy.add(Rule(operation="Update*", skip=1, times=1, hold=threading.Event()))
        running = scene.start("deploy", template, "--stack-name", "orders", "--parameter", "Stage=prod", env=through)
        held.wait_reached()
        running.signal(signal.SIGTERM)
        scene.wait_told("orders", "stopping")
        held.release()
        assert running.finish().code == 143
    done = scene.run("rollback", "orders", "--json").json()
    assert set(done["counts"]) == {"restore"}
    assert inventory(scene.client) == before
    assert not scene.file("orders", "rollback-journal.json").exists()
    scene.run("diff", template, "--stack-name", "orders", "--fail")
    assert scene.run("drift", "orders", "--json").json()["isDrifted"] is False


def test_a_stopped_first_deploy_of_a_whole_application_is_undone(scene: Scene) -> None:
    before = inventory(scene.client)
    with SlowProxy(scene.emulator.url) as proxy:
        held = proxy.add(Rule(operation="CreateEventSourceMapping*", times=1, hold=threading.Event()))
        running = scene.start(
            "deploy",
            str(EXAMPLES / "serverless.yaml"),
            "--stack-name",
            "orders",
            env={"AWS_ENDPOINT_URL": proxy.url},
        )
        held.wait_reached()
        running.signal(signal.SIGINT)
        scene.wait_told("orders", "stopping")
        held.release()
        assert running.finish().code == 130
    done = scene.run("rollback", "orders", "--yes", "--json").json()
    assert done["counts"]["delete"] > 10
    assert inventory(scene.client) == before
    assert not scene.file("orders").exists()


def test_a_destroy_that_completes_removes_the_journal(chain: Chain) -> None:
    interrupted(chain)
    chain.scene.run("destroy", STACK, "--yes")
    assert not chain.has("rollback-journal.json")
    assert "nothing to roll back" in chain.scene.run("rollback", STACK).out


def test_a_stack_that_nobody_knows_cannot_be_rolled_back(scene: Scene) -> None:
    assert "nowhere" in scene.run("rollback", "nowhere", expect=1).err
    assert "nowhere" in scene.run("rollback", "nowhere", "--region", "eu-west-1", expect=1).err


def test_what_an_interrupted_cdkd_left_is_undone(scene: Scene, cases: Path) -> None:
    scene.environment["STACKHOLD_STATE_PREFIX"] = "cdkd"
    scene.client("sqs").create_queue(QueueName="someone-elses")
    before = inventory(scene.client)
    records = cases / "records"
    record, journal = rebuilt_with_journal(scene, records)
    root = scene.folder / "state" / "cdkd" / "Api" / "us-east-1"
    root.mkdir(parents=True)
    (root / "state.json").write_text(record)
    (root / "rollback-journal.json").write_text(journal)
    done = scene.run("rollback", "Api", "--yes", "--json").json()
    assert done["counts"] == {"delete": 21}
    assert inventory(scene.client) == before
    assert not [path.name for path in root.iterdir() if path.suffix == ".json"]


def rebuilt_with_journal(scene: Scene, records: Path) -> tuple[str, str]:
    """The interrupted stack of cdkd, made again, with its record and its journal as they would have been written."""
    record = (records / "interrupted.state.json").read_text()
    journal = json.loads((records / "interrupted.rollback-journal.json").read_text())
    again = rebuilt(scene.client, record)
    resources: dict[str, Any] = json.loads(again)["resources"]
    for segment in journal["segments"]:
        for operation in segment["operations"]:
            resource = resources[operation["logicalId"]]
            operation["physicalId"], operation["properties"] = resource["physicalId"], resource["properties"]
    return again, json.dumps(journal)
