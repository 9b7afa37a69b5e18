"""Which refusals are waited for, for how long, and what is remembered of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.engines.cloudformation.patience import (
    DELETE_BUDGET_MS,
    IAM_BUDGET_MS,
    MOMENT_MS,
    RULES,
    Kind,
    PatientAws,
    Touched,
    Trace,
    kind_of,
    rule_for,
)
from stackhold.errors import AwsError, OutcomeUnknown, StoodDown
from stackhold.testing.fake_cloud import FakeCloud

if TYPE_CHECKING:
    from collections.abc import Mapping

ROLE = "arn:aws:iam::123456789012:role/shop-Role-1"
OURS = {ROLE, "shop-Role-1", "vpc-1", "fn", "table", "queue", "sg-1", "topic", "bucket"}
TRUST = '{"Statement":[{"Principal":{"AWS":"arn:aws:iam::123456789012:role/shop-Role-1"}}]}'


def refusal(service: str, operation: str, code: str, reason: str = "no") -> AwsError:
    return AwsError(service=service, operation=operation, code=code, reason=reason, status=400)


@pytest.mark.parametrize(
    ("service", "operation", "code", "reason", "params", "name"),
    [
        (
            "lambda",
            "CreateFunction",
            "InvalidParameterValueException",
            "The role defined for the function cannot be assumed by Lambda.",
            {"Role": ROLE},
            "IAM propagation",
        ),
        (
            "ecs",
            "CreateService",
            "ClientException",
            "Unable to assume the service role",
            {"role": ROLE},
            "IAM propagation",
        ),
        (
            "ec2",
            "RunInstances",
            "InvalidParameterValue",
            "Invalid IAM Instance Profile name",
            {"IamInstanceProfile": {"Arn": ROLE}},
            "IAM propagation",
        ),
        (
            "s3",
            "PutBucketPolicy",
            "MalformedPolicy",
            "Invalid principal in policy",
            {"Policy": TRUST},
            "IAM propagation",
        ),
        (
            "iam",
            "CreateRole",
            "MalformedPolicyDocument",
            "Invalid principal in policy",
            {"AssumeRolePolicyDocument": TRUST},
            "IAM propagation",
        ),
        (
            "lambda",
            "CreateEventSourceMapping",
            "InvalidParameterValueException",
            "The execution role does not have permissions",
            {"FunctionName": "fn"},
            "IAM propagation",
        ),
        (
            "ec2",
            "CreateSubnet",
            "InvalidVpcID.NotFound",
            "",
            {"VpcId": "vpc-1"},
            "what was just made is not seen everywhere yet",
        ),
        (
            "ec2",
            "DescribeVpcs",
            "InvalidVpcID.NotFound",
            "",
            {"VpcIds": ["vpc-1"]},
            "what was just made is not seen everywhere yet",
        ),
        (
            "iam",
            "PutRolePolicy",
            "NoSuchEntity",
            "",
            {"RoleName": "shop-Role-1"},
            "what was just made is not seen everywhere yet",
        ),
        ("lambda", "UpdateFunctionCode", "ResourceConflictException", "An update is in progress", {}, "busy"),
        (
            "lambda",
            "AddPermission",
            "ResourceConflictException",
            "The operation cannot be performed at this time. An update is in progress",
            {},
            "busy",
        ),
        ("dynamodb", "UpdateTable", "ResourceInUseException", "", {}, "busy"),
        ("dynamodb", "DeleteTable", "ResourceInUseException", "", {}, "busy"),
        ("dynamodb", "CreateTable", "LimitExceededException", "Too many tables created simultaneously", {}, "busy"),
        ("sqs", "CreateQueue", "AWS.SimpleQueueService.QueueDeletedRecently", "", {}, "name still taken"),
        ("rds", "ModifyDBInstance", "InvalidDBInstanceStateFault", "", {}, "busy"),
        ("s3", "CreateBucket", "OperationAborted", "", {}, "busy"),
        ("events", "PutTargets", "ConcurrentModificationException", "", {}, "busy"),
        ("stepfunctions", "CreateStateMachine", "StateMachineDeleting", "", {}, "busy"),
        ("ec2", "DeleteVpc", "DependencyViolation", "", {"VpcId": "vpc-1"}, "still in use"),
        ("iam", "DeleteRole", "DeleteConflict", "", {"RoleName": "shop-Role-1"}, "still in use"),
        ("efs", "DeleteFileSystem", "FileSystemInUse", "", {}, "still in use"),
    ],
)
def test_a_refusal_that_passes_is_waited_for(
    service: str, operation: str, code: str, reason: str, params: Mapping[str, Any], name: str
) -> None:
    rule = rule_for(refusal(service, operation, code, reason), params, OURS.__contains__)
    assert rule is not None
    assert rule.name == name


@pytest.mark.parametrize(
    ("service", "operation", "code", "reason", "params"),
    [
        (
            "lambda",
            "CreateFunction",
            "InvalidParameterValueException",
            "cannot be assumed",
            {"Role": "arn:aws:iam::1:role/old"},
        ),
        ("lambda", "CreateFunction", "InvalidParameterValueException", "Unsupported runtime", {"Role": ROLE}),
        ("lambda", "CreateFunction", "ResourceConflictException", "Function already exist: fn", {"FunctionName": "fn"}),
        (
            "lambda",
            "AddPermission",
            "ResourceConflictException",
            "The statement id (x) provided already exists.",
            {"FunctionName": "fn"},
        ),
        ("lambda", "GetPolicy", "ResourceNotFoundException", "", {"FunctionName": "fn"}),
        ("ec2", "CreateSubnet", "InvalidVpcID.NotFound", "", {"VpcId": "vpc-9"}),
        ("ec2", "DeleteVpc", "InvalidVpcID.NotFound", "", {"VpcId": "vpc-1"}),
        ("iam", "CreateRole", "MalformedPolicyDocument", "Syntax errors in policy", {"AssumeRolePolicyDocument": "{}"}),
        ("dynamodb", "CreateTable", "ResourceInUseException", "Table already exists", {"TableName": "table"}),
        ("iam", "CreateRole", "LimitExceeded", "quota", {"RoleName": "shop-Role-1"}),
        ("s3", "DeleteBucket", "BucketNotEmpty", "", {"Bucket": "bucket"}),
        ("ecr", "DeleteRepository", "RepositoryNotEmptyException", "", {}),
        ("logs", "CreateLogGroup", "ResourceAlreadyExistsException", "", {"logGroupName": "bucket"}),
        ("iam", "CreateRole", "EntityAlreadyExists", "role exists", {"RoleName": "shop-Role-1"}),
        ("ec2", "CreateVpc", "DependencyViolation", "", {"VpcId": "vpc-1"}),
        ("s3", "CreateBucket", "AccessDenied", "not authorized", {"Bucket": "bucket"}),
    ],
)
def test_a_real_error_is_never_waited_for(
    service: str, operation: str, code: str, reason: str, params: Mapping[str, Any]
) -> None:
    assert rule_for(refusal(service, operation, code, reason), params, OURS.__contains__) is None


def test_every_rule_has_a_budget_and_a_pause_below_it() -> None:
    assert all(0 < rule.first_ms <= rule.longest_ms < rule.budget_ms for rule in RULES)


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ("DescribeVpcs", Kind.READ),
        ("GetRole", Kind.READ),
        ("HeadBucket", Kind.READ),
        ("CreateVpc", Kind.CHANGE),
        ("PutRolePolicy", Kind.CHANGE),
        ("AttachInternetGateway", Kind.CHANGE),
        ("DeleteVpc", Kind.DELETE),
        ("DetachRolePolicy", Kind.DELETE),
        ("RemovePermission", Kind.DELETE),
    ],
)
def test_a_call_is_sorted_by_its_verb(operation: str, kind: Kind) -> None:
    assert kind_of(operation) is kind


class Patient:
    """A fake cloud behind patience, counting waits."""

    def __init__(self) -> None:
        self.cloud = FakeCloud()
        self.waits: list[int] = []
        self.trace = Trace()
        self.aws = PatientAws(
            self.cloud, wait=self.waits.append, changed=lambda text: text == "ours", trace=self.trace
        ).guarded(self.trace.guard(lambda: None))

    def create(self, name: str) -> None:
        self.aws.call("fake", "CreateThing", {"Name": name, "Properties": {}, "RoleArn": "ours"})


def test_a_call_is_sent_again_until_it_is_accepted() -> None:
    patient = Patient()
    patient.cloud.refuse("CreateThing", "x", code="AccessDenied", reason="role not authorized", times=3)
    patient.create("x")
    assert patient.waits == [1000, 2000, 4000]
    assert "x" in patient.cloud.things
    assert patient.trace.changes == 1


def test_a_call_that_is_never_accepted_ends_within_its_budget_with_the_last_refusal() -> None:
    patient = Patient()
    patient.cloud.refuse("CreateThing", "x", code="AccessDenied", reason="role not authorized", times=999)
    with pytest.raises(AwsError, match="IAM propagation; tried for") as caught:
        patient.create("x")
    assert caught.value.code == "AccessDenied"
    assert sum(patient.waits) <= IAM_BUDGET_MS
    assert sum(patient.waits) > IAM_BUDGET_MS - 6000
    assert not patient.trace.left_something


def test_a_wait_that_is_given_up_ends_the_call() -> None:
    cloud = FakeCloud()
    cloud.refuse("DeleteThing", "x", code="DependencyViolation", times=999)

    def stand_down(ms: int) -> None:
        raise StoodDown("no")

    with pytest.raises(StoodDown):
        PatientAws(cloud, wait=stand_down, changed=lambda text: False).call("fake", "DeleteThing", {"Name": "x"})


def test_a_delete_that_stays_refused_is_tried_for_minutes() -> None:
    patient = Patient()
    patient.cloud.refuse("DeleteThing", "x", code="DependencyViolation", times=999)
    with pytest.raises(AwsError, match="still in use"):
        patient.aws.call("fake", "DeleteThing", {"Name": "x"})
    assert DELETE_BUDGET_MS - 6000 < sum(patient.waits) <= DELETE_BUDGET_MS


class Ec2:
    """A cloud whose subnet has an interface of a function in it."""

    region = "eu-west-1"
    partition = "aws"

    def call(self, service: str, operation: str, params: Mapping[str, Any], **_: Any) -> dict[str, Any]:
        if operation == "DescribeNetworkInterfaces":
            assert params == {"Filters": [{"Name": "subnet-id", "Values": ["subnet-1"]}]}
            return {"NetworkInterfaces": [{"NetworkInterfaceId": "eni-1", "Description": "AWS Lambda VPC ENI-fn"}]}
        raise refusal(service, operation, "DependencyViolation", "has dependencies")


def test_a_delete_that_something_blocks_names_the_blockers() -> None:
    aws: Any = Ec2()
    patient = PatientAws(aws, wait=lambda ms: None, changed=lambda text: False)
    with pytest.raises(AwsError, match=r"in use by eni-1 \(AWS Lambda VPC ENI-fn\)"):
        patient.call("ec2", "DeleteSubnet", {"SubnetId": "subnet-1"})


class Iam:
    """A role that cannot be deleted; `on_it` are the inline policies on it."""

    region = "eu-west-1"
    partition = "aws"

    def __init__(self, *on_it: str) -> None:
        self._on_it = on_it
        self.looks = 0

    def call(self, service: str, operation: str, params: Mapping[str, Any], **_: Any) -> dict[str, Any]:
        raise refusal(service, operation, "DeleteConflict", "must delete policies first")

    def pages(self, service: str, operation: str, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        self.looks += 1
        return [{"PolicyNames": self._on_it} if operation == "ListRolePolicies" else {}]


def test_a_delete_that_is_blocked_by_what_never_goes_by_itself_is_given_up_after_a_moment() -> None:
    aws: Any = Iam("debug")
    waited: list[int] = []
    patient = PatientAws(aws, wait=waited.append, changed=lambda text: False)
    with pytest.raises(AwsError, match="in use by inline policy debug") as caught:
        patient.call("iam", "DeleteRole", {"RoleName": "r"})
    assert MOMENT_MS <= sum(waited) <= 2 * MOMENT_MS
    assert "delete-role-policy" in caught.value.hint


def test_a_long_wait_is_told_of_once_and_what_may_go_by_itself_is_waited_for() -> None:
    aws: Any = Iam()
    waited: list[int] = []
    told: list[tuple[int, str, str]] = []
    patient = PatientAws(
        aws,
        wait=waited.append,
        changed=lambda text: False,
        waiting=lambda error, why: told.append((sum(waited), error.code, why)),
    )
    with pytest.raises(AwsError, match="still in use; tried for"):
        patient.call("iam", "DeleteRole", {"RoleName": "r"})
    assert sum(waited) > DELETE_BUDGET_MS // 2
    assert [(code, why) for _, code, why in told] == [("DeleteConflict", "still in use")]
    assert told[0][0] <= 2 * MOMENT_MS


def test_a_trace_knows_what_was_carried_out_refused_lost_and_never_sent() -> None:
    patient = Patient()
    patient.cloud.refuse("CreateThing", "a")
    with pytest.raises(AwsError):
        patient.create("a")
    assert not patient.trace.left_something
    patient.cloud.lose("CreateThing", "b", is_carried_out=False)
    with pytest.raises(OutcomeUnknown):
        patient.create("b")
    assert patient.trace.is_unclear

    trace = Trace()

    def refuse() -> None:
        raise StoodDown("no")

    never = PatientAws(FakeCloud(), wait=lambda ms: None, changed=lambda text: False, trace=trace)
    with pytest.raises(StoodDown):
        never.guarded(trace.guard(refuse)).call("fake", "CreateThing", {"Name": "c", "Properties": {}})
    assert not trace.left_something


def test_reads_leave_nothing() -> None:
    patient = Patient()
    patient.create("x")
    before = patient.trace.changes
    patient.aws.call("fake", "GetThing", {"Name": "x"})
    assert patient.trace.changes == before


@given(st.text("abcdefghij0123456789-", min_size=1, max_size=20))
def test_a_resource_of_this_run_is_known_by_id_by_arn_and_by_the_name_in_an_arn_until_it_goes(name: str) -> None:
    touched = Touched()
    touched.add(name, {"Arn": f"arn:aws:fake:::thing/{name}", "Value": "unrelated"})
    assert touched(name)
    assert touched(f"arn:aws:fake:::thing/{name}")
    assert touched(f"arn:aws:other:eu-west-1:1:{name}")
    assert not touched("unrelated") or name == "unrelated"
    touched.forget(name)
    assert not touched(name)
    assert not touched(f"arn:aws:fake:::thing/{name}")
