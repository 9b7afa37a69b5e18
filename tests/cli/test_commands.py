"""The verbs that need AWS, as real processes: what each says, as text and as JSON, and its exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.stories.scene import Scene

INDEX = "stackhold/_index/us-east-1/exports.json"

pytestmark = [pytest.mark.emulator, pytest.mark.story, pytest.mark.xdist_group("cli-commands")]


def template(*, timeout: int = 30, key: str = "id", with_table: bool = True) -> str:
    resources: dict[str, Any] = {
        "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": timeout}},
        "Topic": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": {"Ref": "Name"}}},
    }
    if with_table:
        resources["Table"] = {
            "Type": "AWS::DynamoDB::Table",
            "Properties": {
                "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
            },
        }
    return json.dumps(
        {
            "Parameters": {"Name": {"Type": "String", "Default": "shop"}},
            "Resources": resources,
            "Outputs": {"Arn": {"Value": {"Fn::GetAtt": ["Queue", "Arn"]}}},
        }
    )


def test_a_stacks_life_told_in_documents(scene: Scene) -> None:
    scene.write("shop.json", template())
    planned = scene.run("diff", "shop.json", "--json").json()
    assert planned["counts"] == {"create": 3}
    assert scene.run("diff", "shop.json", "--fail", expect=1).out.startswith("shop (us-east-1): 3 to create")

    made = scene.run("deploy", "shop.json", "--json").json()
    assert (made["outcome"], made["exitCode"], made["counts"]) == ("succeeded", 0, {"create": 3})
    assert made["plan"]["counts"] == {"create": 3}
    assert made["outputs"]["Arn"].startswith("arn:aws:sqs:us-east-1:")
    assert {each["logicalId"] for each in made["resources"]} == {"Queue", "Topic", "Table"}
    assert isinstance(made["serial"], int)

    again = scene.run("deploy", "shop.json", "--json").json()
    assert (again["isEmpty"], again["changed"]) == (True, False)
    assert scene.run("diff", "shop.json", "--fail").out == (
        "shop (us-east-1): nothing to change, 3 resources as recorded\n"
    )
    assert scene.run("drift", "shop", "--json").json()["isDrifted"] is False

    [listed] = scene.run("state", "list", "--long", "--json").json()["stacks"]
    assert (listed["stack"], listed["resources"], listed["lock"]) == ("shop", 3, None)
    runs = scene.run("events", "shop", "--json").json()["runs"]
    assert [run["outcome"] for run in runs] == ["succeeded", "succeeded"]
    assert runs[0]["runId"] == made["runId"]

    gone = scene.run("destroy", "shop", "--yes", "--json").json()
    assert (gone["outcome"], gone["counts"]) == ("succeeded", {"delete": 3})
    assert scene.run("state", "list", "--json").json() == {"stacks": []}
    assert "no stack shop in us-east-1 in " in scene.run("destroy", "shop", "--yes", expect=1).err


def test_a_change_made_by_hand_is_drift(scene: Scene) -> None:
    scene.write("shop.json", template())
    scene.run("deploy", "shop.json")
    sqs = scene.client("sqs")
    [url] = sqs.list_queues(QueueNamePrefix="shop-")["QueueUrls"]
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "7"})
    found = scene.run("drift", "shop", expect=1)
    assert "VisibilityTimeout: 30 → 7" in found.out
    [drifted] = [
        each for each in scene.run("drift", "shop", "--json", expect=1).json()["resources"] if each["differences"]
    ]
    assert drifted["differences"] == [{"path": "VisibilityTimeout", "recorded": 30, "observed": 7}]


def test_a_plan_that_loses_data_is_blocked_where_nobody_can_say_yes(scene: Scene) -> None:
    scene.write("shop.json", template())
    scene.run("deploy", "shop.json")
    scene.write("shop.json", template(key="other"))
    blocked = scene.run("deploy", "shop.json", "--json", expect=1)
    assert blocked.json()["outcome"] == "blocked"
    assert blocked.json()["changed"] is False
    assert "the data of Table (replace) would be lost" in blocked.err
    assert "--yes" in blocked.err
    assert scene.run("diff", "shop.json").out.count("[stateful]") == 1
    replaced = scene.run("deploy", "shop.json", "--yes", "--json").json()
    assert replaced["counts"] == {"replace": 1, "delete": 1}
    assert [run["outcome"] for run in scene.run("events", "shop", "--json").json()["runs"]] == [
        "succeeded",
        "blocked",
        "succeeded",
    ]


def test_a_destroy_that_nobody_approves_changes_nothing(scene: Scene) -> None:
    scene.write("shop.json", template(with_table=False))
    scene.run("deploy", "shop.json")
    refused = scene.run("destroy", "shop", expect=1)
    assert "nobody can be asked here whether to destroy shop (us-east-1)" in refused.err
    assert scene.record("shop")["resources"].keys() == {"Queue", "Topic"}


def test_parameters_tags_and_the_name_reach_the_stack(scene: Scene) -> None:
    scene.write("shop.json", template(with_table=False))
    scene.write("p.json", '[{"ParameterKey": "Name", "ParameterValue": "from a file"}]')
    scene.run("deploy", "shop.json", "--stack-name", "other", "--parameters-file", "p.json", "--tag", "team=a")
    assert scene.record("other")["parameters"]["Name"] == "from a file"
    changed = scene.run("diff", "shop.json", "--stack-name", "other", "--parameter", "Name=pair", "--tag", "team=a")
    assert 'parameter Name: "from a file" → "pair"' in changed.out
    wrong = scene.run("diff", "shop.json", "--parameter", "Nam=x", expect=1)
    assert "parameters that the template does not have: Nam" in wrong.err
    reserved = scene.run("diff", "shop.json", "--tag", "stackhold:stack=x", expect=1)
    assert "--tag: the tag 'stackhold:stack' begins with stackhold:, which is reserved" in reserved.err


def exports_of(scene: Scene) -> Any:
    """The exports that the index of the scene's store lists."""
    if scene.state.startswith("s3://"):
        found = scene.client("s3").get_object(Bucket=scene.state.removeprefix("s3://"), Key=INDEX)["Body"].read()
        return json.loads(found)["exports"]
    return json.loads((Path(scene.state.removeprefix("file:")) / INDEX).read_text())["exports"]


def lose_exports(scene: Scene) -> None:
    if scene.state.startswith("s3://"):
        scene.client("s3").delete_object(Bucket=scene.state.removeprefix("s3://"), Key=INDEX)
    else:
        (Path(scene.state.removeprefix("file:")) / INDEX).unlink()


def test_an_export_name_has_one_stack_and_a_lost_index_is_put_right(scene: Scene) -> None:
    document = json.loads(template(with_table=False))
    document["Outputs"]["Arn"]["Export"] = {"Name": "shared-arn"}
    scene.write("shop.json", json.dumps(document))
    scene.run("deploy", "shop.json", "--stack-name", "one")
    for verb in ("diff", "deploy"):
        refused = scene.run(verb, "shop.json", "--stack-name", "two", expect=1)
        assert "shared-arn is exported by one (us-east-1) already" in refused.err
    assert [one["stack"] for one in scene.run("state", "list", "--json").json()["stacks"]] == ["one"]

    before = exports_of(scene)
    lose_exports(scene)
    assert "the exports index did not list" in scene.run("deploy", "shop.json", "--stack-name", "one").out
    assert exports_of(scene) == before
    scene.run("destroy", "one", "--yes")
    scene.run("deploy", "shop.json", "--stack-name", "two")


def test_a_failed_deploy_is_undone_and_says_what_became_of_each_resource(scene: Scene) -> None:
    document = json.loads(template())
    document["Resources"]["Table"]["Properties"]["KeySchema"][0]["AttributeName"] = "nowhere"
    document["Resources"]["Table"]["DependsOn"] = "Queue"
    scene.write("shop.json", json.dumps(document))
    failed = scene.run("deploy", "shop.json", "--json", expect=1)
    assert failed.json()["outcome"] == "failed"
    assert failed.json()["failures"][0]["logicalId"] == "Table"
    assert "Queue" in failed.err
    assert "deleted again" in failed.err
    assert scene.client("sqs").list_queues().get("QueueUrls", []) == []
    kept = scene.run("deploy", "shop.json", "--no-rollback", expect=2)
    assert "Run the same deploy again to go on" in kept.err
    scene.run("destroy", "shop", "--yes")


def test_a_stack_of_a_cdk_app_is_deployed_by_its_name(scene: Scene) -> None:
    app = scene.folder / "cdk.out"
    app.mkdir()
    stack = {"type": "aws:cloudformation:stack", "environment": "aws://unknown-account/unknown-region"}
    artifacts = {
        name: {**stack, "properties": {"templateFile": f"{name}.template.json"}, "displayName": f"Prod/{name}"}
        for name in ("Api", "Db")
    }
    (app / "manifest.json").write_text(json.dumps({"version": "36.0.0", "artifacts": artifacts}))
    for name in artifacts:
        (app / f"{name}.template.json").write_text(template(with_table=False))
    assert "name one of: Prod/Api, Prod/Db" in scene.run("deploy", "cdk.out", expect=1).err
    assert scene.run("deploy", "cdk.out", "Prod/Db", "--json").json()["stack"] == "Db"


def test_clocks_that_contradict_each_other_start_no_run(scene: Scene) -> None:
    scene.write("shop.json", template())
    refused = scene.run("deploy", "shop.json", "--lock-timeout", "10m", "--deadline", "5m", expect=1)
    assert "the lock wait (600 s, from --lock-timeout) must be less than the deadline (300 s, from --deadline)" in (
        refused.err
    )
    assert scene.run("state", "list", "--json").json() == {"stacks": []}


def test_a_bucket_that_is_not_there_is_named_with_the_way_to_make_it(scene: Scene) -> None:
    scene.write("shop.json", template())
    refused = scene.run("deploy", "shop.json", "--state", "s3://nobody-made-this", expect=1)
    assert "nobody-made-this" in refused.err
    assert "stackhold bootstrap" in refused.err


def test_bootstrap_can_be_repeated_and_refuses_a_directory(scene: Scene) -> None:
    first = scene.run("bootstrap", "--state", "s3://made-twice", "--json").json()
    second = scene.run("bootstrap", "--state", "s3://made-twice", "--json").json()
    assert (first["created"], second["created"]) == (True, False)
    assert second["state"] == "s3://made-twice"
    refused = scene.run("bootstrap", "--state", "file:x", expect=1)
    assert "a directory needs no bootstrap" in refused.err
