"""A stack from its first deploy to its destroy: nothing to do in between, nothing left at the end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.inventory import inventory
from tests.stories.scene import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.stories.scene import Scene

pytestmark = [pytest.mark.emulator, pytest.mark.story]

BUCKET = "records-of-the-story"
QUEUE = {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 45}}


def lives_through(scene: Scene, template: Path, *, stack: str) -> None:
    """Deploy, deploy again, look for drift, destroy: what the cloud and the store hold after each."""
    someone_elses(scene)
    before = inventory(scene.client)
    made = scene.run("deploy", str(template), "--stack-name", stack, "--json").json()
    assert (made["outcome"], made["exitCode"]) == ("succeeded", 0)
    assert made["counts"].keys() == {"create"}
    held = inventory(scene.client)
    assert held != before
    assert all(set(before[kind]) <= set(held[kind]) for kind in before)

    stored = objects(scene, stack)
    assert "state.json" in stored
    assert not {"lock.json", "run.json", "rollback-journal.json"} & stored.keys()
    again = scene.run("deploy", str(template), "--stack-name", stack)
    assert "nothing to deploy" in again.out
    assert without_events(objects(scene, stack)) == without_events(stored)
    drift = scene.run("drift", stack, "--json").json()
    assert drift["isDrifted"] is False
    assert not [one for one in drift["resources"] if one["differences"] or one.get("reason")]
    assert inventory(scene.client) == held

    gone = scene.run("destroy", stack, "--yes", "--json").json()
    assert gone["counts"] == {"delete": made["counts"]["create"]}
    assert inventory(scene.client) == before
    assert not {name for name in objects(scene, stack) if "/" not in name}


def someone_elses(scene: Scene) -> None:
    """What is there already and must stay."""
    scene.client("sqs").create_queue(QueueName="someone-elses")
    scene.client("sns").create_topic(Name="someone-elses")
    scene.client("ssm").put_parameter(Name="someone-elses", Type="String", Value="x")
    scene.client("ec2").create_vpc(CidrBlock="10.99.0.0/16")


def objects(scene: Scene, stack: str) -> dict[str, bytes]:
    """What the store holds of a stack, by the name below its folder; `.lock` files of a directory left out."""
    if scene.state.startswith("s3://"):
        s3, prefix = scene.client("s3"), f"stackhold/{stack}/us-east-1/"
        keys = [item["Key"] for item in s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])]
        return {key.removeprefix(prefix): s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() for key in keys}
    folder = scene.file(stack).parent
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def without_events(stored: dict[str, bytes]) -> dict[str, bytes]:
    """What a run that changes nothing must not write."""
    return {name: data for name, data in stored.items() if not name.startswith("events/")}


def queues(scene: Scene) -> list[str]:
    """The URLs of all queues."""
    found: list[str] = scene.client("sqs").list_queues().get("QueueUrls", [])
    return found


def in_a_bucket(scene: Scene) -> None:
    """Keep the records in a bucket of the same emulator from now on."""
    scene.state = f"s3://{BUCKET}"
    scene.run("bootstrap")


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.glob("*.yaml")))
def test_an_example_deploys_stays_and_leaves_nothing(scene: Scene, example: str) -> None:
    lives_through(scene, EXAMPLES / example, stack="shop")


@pytest.mark.parametrize("case", ["wide", "serverless", "webapp"])
def test_a_real_template_deploys_stays_and_leaves_nothing(scene: Scene, cases: Path, case: str) -> None:
    lives_through(scene, cases / f"{case}.template.json", stack="shop")


def test_a_stack_lives_with_its_record_in_a_bucket(scene: Scene) -> None:
    in_a_bucket(scene)
    lives_through(scene, EXAMPLES / "wide.yaml", stack="shop")


def test_a_real_template_lives_with_its_record_in_a_bucket(scene: Scene, cases: Path) -> None:
    in_a_bucket(scene)
    lives_through(scene, cases / "serverless.template.json", stack="shop")


def test_the_wide_example_lives_on_moto(moto_scene: Scene) -> None:
    lives_through(moto_scene, EXAMPLES / "wide.yaml", stack="shop")


def test_the_real_wide_template_lives_on_moto(moto_scene: Scene, cases: Path) -> None:
    lives_through(moto_scene, cases / "wide.template.json", stack="shop")


def assembly(folder: Path, *, assets: dict[str, Any], resources: dict[str, Any] | None = None) -> Path:
    """A `cdk.out` directory with one stack, as `cdk synth` writes it."""
    out = folder / "cdk.out"
    out.mkdir()
    template = {"Resources": resources or {"Orders": QUEUE}}
    artifacts = {
        "Shop.assets": {"type": "cdk:asset-manifest", "properties": {"file": "Shop.assets.json"}},
        "Shop": {
            "type": "aws:cloudformation:stack",
            "environment": "aws://unknown-account/unknown-region",
            "properties": {
                "templateFile": "Shop.template.json",
                "stackTemplateAssetObjectUrl": "s3://cdk-hnb659fds-assets/0a.json",
            },
            "dependencies": ["Shop.assets"],
            "displayName": "Shop",
        },
    }
    own = {
        "displayName": "Shop Template",
        "source": {"path": "Shop.template.json", "packaging": "file"},
        "destinations": {"current": {"bucketName": "cdk-hnb659fds-assets", "objectKey": "0a.json"}},
    }
    manifest = {"version": "48.0.0", "files": {"0a": own, **assets}, "dockerImages": {}}
    (out / "manifest.json").write_text(json.dumps({"version": "48.0.0", "artifacts": artifacts}))
    (out / "Shop.assets.json").write_text(json.dumps(manifest))
    (out / "Shop.template.json").write_text(json.dumps(template))
    return out


def test_a_cdk_assembly_without_assets_deploys_under_its_own_name(scene: Scene) -> None:
    out = assembly(scene.folder, assets={})
    scene.run("deploy", str(out))
    [url] = queues(scene)
    assert scene.record("Shop")["resources"]["Orders"]["physicalId"] == url
    assert "nothing to deploy" in scene.run("deploy", str(out), "Shop").out
    scene.run("destroy", "Shop", "--yes")
    assert not queues(scene)


def test_a_cdk_assembly_with_an_asset_is_refused_by_its_name_before_anything_is_made(scene: Scene) -> None:
    code = {
        "displayName": "Shop/Api/Code",
        "source": {"path": "asset.1b2c", "packaging": "zip"},
        "destinations": {"current": {"bucketName": "cdk-hnb659fds-assets", "objectKey": "1b2c.zip"}},
    }
    out = assembly(scene.folder, assets={"1b2c": code})
    refused = scene.run("deploy", str(out), expect=1)
    assert "the stack Shop needs the asset 1b2c (asset.1b2c)" in refused.err
    assert not queues(scene)
    assert not objects(scene, "Shop")
    assert scene.run("state", "list", "--json").json() == {"stacks": []}
