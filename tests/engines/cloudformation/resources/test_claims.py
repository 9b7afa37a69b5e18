"""Creates that succeed on what is there already: whose it is decides, after the answer and before each further try."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from tests.engines.cloudformation.resources.scripted import scripted, wanted

from stackhold.engines.cloudformation.patience import PatientAws, Trace
from stackhold.engines.cloudformation.resources.registry import handler_for, native_types
from stackhold.errors import AwsError, ResourceFailed
from stackhold.model.ids import TypeName
from stackhold.testing.scripted_aws import ScriptedAws, refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackhold.engines.cloudformation.resources.handler import Handler, Made

OURS = {"stackhold:run": "run-1", "stackhold:logical-id": "Thing"}
THEIRS = {
    "stackhold:stack": "r3",
    "stackhold:region": "us-east-1",
    "stackhold:run": "run-9",
    "stackhold:logical-id": "T",
}
NOBODYS = {"team": "blue"}
URL = "http://sqs/000000000000/taken"
ARN = "arn:aws:events:us-east-1:000000000000:rule/taken"
HIDDEN = refused("DescribeRule", "ResourceNotFoundException")


def _list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _sns(*seen: Mapping[str, str] | None) -> dict[str, Sequence[Any]]:
    gone = refused("ListTagsForResource", "NotFound")
    return {
        "ListTagsForResource": [gone if tags is None else {"Tags": _list(tags)} for tags in seen],
        "CreateTopic": [{"TopicArn": "arn:aws:sns:us-east-1:000000000000:taken"}],
    }


def _sqs(*seen: Mapping[str, str] | None) -> dict[str, Sequence[Any]]:
    gone = refused("GetQueueUrl", "QueueDoesNotExist")
    return {
        "GetQueueUrl": [gone if tags is None else {"QueueUrl": URL} for tags in seen],
        "ListQueueTags": [{"Tags": dict(tags)} for tags in seen if tags is not None],
        "CreateQueue": [{"QueueUrl": URL}],
    }


def _events(*seen: Mapping[str, str] | None) -> dict[str, Sequence[Any]]:
    return {
        "DescribeRule": [HIDDEN if tags is None else {"Name": "taken", "Arn": ARN} for tags in seen],
        "ListTagsForResource": [{"Tags": _list(tags)} for tags in seen if tags is not None],
        "PutRule": [{"RuleArn": ARN}],
        "PutTargets": [{"FailedEntryCount": 0}],
    }


def _s3(*seen: Mapping[str, str] | None) -> dict[str, Sequence[Any]]:
    gone = refused("GetBucketTagging", "NoSuchBucket")
    return {
        "GetBucketTagging": [gone if tags is None else {"TagSet": _list(tags)} for tags in seen],
        "CreateBucket": [{}],
        "PutBucketVersioning": [{}],
    }


@dataclass
class Case:
    """A type whose create takes over what is there, and the answers that show these tags in turn."""

    type: str
    create: str
    then: str
    """A call that must come only once it is clear that the resource is ours."""
    properties: dict[str, Any]
    answers: Any

    @property
    def handler(self) -> Handler:
        found = handler_for(TypeName(self.type))
        assert found is not None
        return found


TOPIC = Case("AWS::SNS::Topic", "CreateTopic", "", {"TopicName": "taken"}, _sns)
QUEUE = Case("AWS::SQS::Queue", "CreateQueue", "", {"QueueName": "taken"}, _sqs)
RULE = Case(
    "AWS::Events::Rule",
    "PutRule",
    "PutTargets",
    {"Name": "taken", "ScheduleExpression": "rate(1 hour)", "Targets": [{"Id": "One", "Arn": URL}]},
    _events,
)
BUCKET = Case(
    "AWS::S3::Bucket",
    "CreateBucket",
    "PutBucketVersioning",
    {"BucketName": "taken", "VersioningConfiguration": {"Status": "Enabled"}},
    _s3,
)
CASES = (TOPIC, QUEUE, RULE, BUCKET)
each = pytest.mark.parametrize("case", CASES, ids=lambda case: case.create)
each_with_tags = pytest.mark.parametrize("case", CASES[:3], ids=lambda case: case.create)


class Watched:
    """One create over scripted answers, as a run makes it."""

    def __init__(self, answers: Mapping[str, Sequence[Any]]) -> None:
        self.aws = ScriptedAws(answers)
        self.trace = Trace()
        self.noted: list[str] = []
        self.waited: list[int] = []

    def create(self, case: Case, properties: dict[str, Any]) -> Made:
        patient = PatientAws(self.aws, wait=self.waited.append, changed=lambda _: False, trace=self.trace)
        context = dataclasses.replace(
            scripted(self.aws),
            aws=patient,
            wait=self.waited.append,
            note=self._note,
            changed=lambda _: False,
            made_nothing=self.trace.made_nothing,
        )
        return case.handler.create(context, wanted(properties, name="taken"))

    def _note(self, physical_id: str) -> None:
        self.noted.append(physical_id)
        self.trace.note(physical_id)

    def made(self, operation: str) -> int:
        return len(self.aws.asked(operation))


def test_the_types_whose_create_takes_over_are_these() -> None:
    taking = {name for name in native_types() if (handler := handler_for(name)) is not None and handler.takes_over}
    assert taking == {case.type for case in CASES}


@each
def test_what_another_stack_made_in_between_is_refused_and_nothing_of_it_is_ours_to_undo(case: Case) -> None:
    watched = Watched(case.answers(None, THEIRS))
    with pytest.raises(AwsError, match=r"taken exists already .* the name is taken, it is stack r3's") as taken:
        watched.create(case, case.properties)
    assert "as its T" in taken.value.reason
    assert watched.made(case.create) == 1
    assert not case.then or watched.made(case.then) == 0
    assert watched.noted == []
    assert not watched.trace.left_something


@each_with_tags
def test_what_carries_nobodys_tags_after_the_create_is_not_ours_once_they_could_be_seen(case: Case) -> None:
    watched = Watched(case.answers(None, NOBODYS))
    with pytest.raises(AwsError, match="taken exists already and was not made by this run"):
        watched.create(case, case.properties)
    assert sum(watched.waited) >= 10_000
    assert not watched.trace.left_something


@each_with_tags
def test_tags_that_are_seen_late_are_waited_for(case: Case) -> None:
    watched = Watched(case.answers(None, None, NOBODYS, OURS))
    made = watched.create(case, case.properties)
    assert made.physical_id.endswith("taken")
    assert watched.made(case.create) == 1
    assert watched.trace.changes >= 1


@each
def test_what_was_made_and_is_never_seen_may_be_there_and_is_no_success(case: Case) -> None:
    watched = Watched(case.answers(None))
    with pytest.raises(ResourceFailed, match="cannot be seen"):
        watched.create(case, case.properties)
    assert watched.trace.left_something


def test_a_bucket_without_any_tags_counts_as_made_since_some_servers_keep_none_of_a_create() -> None:
    watched = Watched(BUCKET.answers(None, {}))
    watched.create(BUCKET, BUCKET.properties)
    assert watched.noted == ["taken"]
    assert watched.made("PutBucketVersioning") == 1
    assert watched.waited == []


@each
def test_a_generated_name_is_never_looked_at(case: Case) -> None:
    given = {name: value for name, value in case.properties.items() if not name.endswith("Name")}
    watched = Watched({name: answers for name, answers in case.answers(None).items() if not _is_read(name)})
    watched.create(case, given)
    assert watched.made(case.create) == 1


@each
def test_before_a_further_try_it_is_looked_again(case: Case) -> None:
    answers = dict(case.answers(None, THEIRS))
    answers[case.create] = [refused(case.create, "ConcurrentModificationException"), *answers[case.create]]
    watched = Watched(answers)
    with pytest.raises(AwsError, match="it is stack r3's"):
        watched.create(case, case.properties)
    assert watched.made(case.create) == 1
    assert not watched.trace.left_something


@each
def test_a_further_try_goes_out_while_nothing_has_the_name(case: Case) -> None:
    answers = dict(case.answers(None, None, OURS))
    answers[case.create] = [refused(case.create, "ConcurrentModificationException"), *answers[case.create]]
    watched = Watched(answers)
    watched.create(case, case.properties)
    assert watched.made(case.create) == 2


def test_a_rule_that_may_have_been_overwritten_is_not_said_to_be_untouched() -> None:
    with pytest.raises(AwsError) as before:
        Watched(RULE.answers(THEIRS)).create(RULE, RULE.properties)
    with pytest.raises(AwsError) as after:
        Watched(RULE.answers(None, THEIRS)).create(RULE, RULE.properties)
    assert "Nothing was changed on it" in before.value.hint
    assert "Nothing was changed on it" not in after.value.hint
    assert "drift" in after.value.hint


POLICY = Case(
    "AWS::IAM::Policy",
    "PutRolePolicy",
    "",
    {"PolicyName": "taken", "PolicyDocument": {"Statement": []}, "Roles": ["one", "two"]},
    lambda: {},
)


def test_an_inline_policy_that_another_puts_meanwhile_stays_and_what_was_put_beside_it_goes() -> None:
    none = refused("GetRolePolicy", "NoSuchEntity")
    throttled = refused("PutRolePolicy", "ConcurrentModificationException")
    watched = Watched(
        {
            "GetRolePolicy": [none, none, {"PolicyDocument": '{"Statement": [{"Effect": "Deny"}]}'}],
            "PutRolePolicy": [{}, throttled],
            "DeleteRolePolicy": [{}],
        }
    )
    with pytest.raises(AwsError, match="inline policy taken of two exists already"):
        watched.create(POLICY, POLICY.properties)
    assert watched.made("PutRolePolicy") == 2
    assert watched.aws.asked("DeleteRolePolicy") == [{"RoleName": "one", "PolicyName": "taken"}]
    assert not watched.trace.left_something
    assert watched.trace.physical_id is None


def _is_read(operation: str) -> bool:
    return operation.startswith(("Get", "List", "Describe"))
