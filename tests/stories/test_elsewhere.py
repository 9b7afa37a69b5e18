"""What commands say when they cannot see a stack's resources, see another account's, or meet what others put there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.stories.scene import Scene

pytestmark = [pytest.mark.emulator, pytest.mark.story]

QUEUE = "Resources: {Queue: {Type: AWS::SQS::Queue}, Log: {Type: AWS::Logs::LogGroup}}"
OTHERS = {"AWS_ACCESS_KEY_ID": "210987654321", "AWS_SECRET_ACCESS_KEY": "x"}
ROLE = """
Resources:
  Role:
    Type: AWS::IAM::Role
    Properties:
      RoleName: worked-by-hand
      AssumeRolePolicyDocument:
        Statement: [{Effect: Allow, Action: "sts:AssumeRole", Principal: {Service: lambda.amazonaws.com}}]
  Store: {Type: AWS::S3::Bucket, Properties: {BucketName: filled-by-hand}}
"""
ANYTHING = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}'
NO_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "",
    "AWS_SECRET_ACCESS_KEY": "",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_SHARED_CREDENTIALS_FILE": "none",
    "AWS_CONFIG_FILE": "none",
}


def test_drift_without_credentials_or_with_nobody_there_is_an_error_and_no_report(scene: Scene) -> None:
    scene.write("app.yaml", QUEUE)
    scene.run("deploy", "app.yaml")
    blind = scene.run("drift", "app", expect=1, env=NO_CREDENTIALS)
    assert "no usable AWS credentials" in blind.err
    dead = scene.run("drift", "app", expect=1, env={"AWS_ENDPOINT_URL": "http://127.0.0.1:9"})
    assert "could not be sent" in dead.err
    assert blind.out == dead.out == ""


def test_drift_that_cannot_read_one_service_is_incomplete_and_says_so(scene: Scene) -> None:
    scene.write("app.yaml", QUEUE)
    scene.run("deploy", "app.yaml")
    gone = {"AWS_ENDPOINT_URL_SQS": "http://127.0.0.1:9"}
    assert (
        "INCOMPLETE, no drift in what could be read: 1 in sync, 1 not read"
        in scene.run("drift", "app", expect=2, env=gone).out
    )
    found = scene.run("drift", "app", "--json", expect=2, env=gone).json()
    assert (found["isDrifted"], found["isComplete"]) == (False, False)
    assert scene.run("drift", "app", "--json").json()["isComplete"] is True


def test_no_command_works_on_a_stack_with_the_credentials_of_another_account(scene: Scene) -> None:
    scene.write("app.yaml", QUEUE)
    scene.run("deploy", "app.yaml")
    before = scene.record("app")
    for command in ("drift app", "destroy app --yes", "deploy app.yaml", "diff app.yaml", "rollback app --yes"):
        said = scene.run(*command.split(), expect=1, env=OTHERS).err
        assert "is in account 000000000000, and these credentials are for 210987654321" in said, command
    assert scene.record("app") == before
    assert scene.lock("app") is None
    scene.run("destroy", "app", "--yes")


def test_a_destroy_that_others_block_says_what_it_waits_for_and_what_is_in_the_way(scene: Scene) -> None:
    scene.write("app.yaml", ROLE)
    scene.run("deploy", "app.yaml")
    iam, s3 = scene.client("iam"), scene.client("s3")
    iam.put_role_policy(RoleName="worked-by-hand", PolicyName="debug", PolicyDocument=ANYTHING)
    s3.put_object(Bucket="filled-by-hand", Key="a", Body=b"a")
    said = scene.run("destroy", "app", "--yes", expect=2)
    assert "in use by inline policy debug" in said.err
    assert "aws iam delete-role-policy" in said.err
    assert "aws s3 rm s3://filled-by-hand --recursive" in said.err
    iam.delete_role_policy(RoleName="worked-by-hand", PolicyName="debug")
    s3.delete_object(Bucket="filled-by-hand", Key="a")
    scene.run("destroy", "app", "--yes")


def test_what_was_deleted_by_hand_is_made_anew_on_request(scene: Scene) -> None:
    scene.write("app.yaml", QUEUE)
    scene.run("deploy", "app.yaml")
    refused = scene.run("deploy", "app.yaml", "--replace", "Queue", "--yes", expect=1)
    assert "--replace Queue: no change of the template replaces it, and it is there as recorded" in refused.err
    old = scene.record("app")["resources"]["Queue"]["physicalId"]
    scene.client("sqs").delete_queue(QueueUrl=old)
    assert "1 deleted" in scene.run("drift", "app", expect=1).out
    scene.run("deploy", "app.yaml", "--replace", "Queue", "--yes")
    assert scene.record("app")["resources"]["Queue"]["physicalId"] != old
    assert scene.run("drift", "app", "--json").json()["isDrifted"] is False
    scene.run("destroy", "app", "--yes")
