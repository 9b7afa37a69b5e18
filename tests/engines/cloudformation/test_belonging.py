"""A stack is worked on in its own account and partition only."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from tests.engines.cloudformation.stage import Stage

from stackhold.engines.cloudformation.belonging import Place, place_of_record, refuse_elsewhere
from stackhold.engines.cloudformation.drift import drift_stack
from stackhold.engines.cloudformation.engine import DeployEngine, DestroyEngine
from stackhold.engines.cloudformation.recover import Recoverer
from stackhold.engines.cloudformation.rollback import RollbackEngine
from stackhold.engines.cloudformation.template import parse_text
from stackhold.errors import InputError
from stackhold.model.ids import LogicalId, PhysicalId
from stackhold.testing.clock import FakeClock
from stackhold.testing.fake_cloud import FakeCloud
from stackhold.testing.scripted_run import ScriptedRun, identity

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.model.record import StateRecord

STACK_ID = "arn:aws:cloudformation:eu-west-1:123456789012:stack/shop/1"
TEMPLATE = "Resources: {A: {Type: AWS::SQS::Queue}}"


def others() -> FakeCloud:
    return FakeCloud(account="999999999999")


def recorded(*, stack_id: str | None = None, **arns: str) -> StateRecord:
    record = Stage().has(**{name: {} for name in arns or {"A": ""}}).record
    assert record is not None
    resources = {
        name: dataclasses.replace(item, attributes={"Arn": arns.get(name, "")})
        for name, item in record.resources.items()
    }
    return dataclasses.replace(record, resources=resources, stack_id=stack_id)


def deploy(aws: FakeCloud, record: StateRecord) -> object:
    template = parse_text(TEMPLATE, file="shop.yaml")
    engine = DeployEngine(template=template, parameters={}, tags={}, aws=aws, url_suffix="amazonaws.com")
    return engine.plan(record, identity())


def recover(aws: FakeCloud, record: StateRecord) -> object:
    recoverer = Recoverer(aws, lambda name: None)
    return recoverer.recover((), record, ScriptedRun(FakeClock(), record=record), may_still_land=False)


@pytest.mark.parametrize(
    "work",
    [
        deploy,
        recover,
        lambda aws, record: DestroyEngine(aws=aws).plan(record, identity()),
        lambda aws, record: RollbackEngine(aws=aws).plan_back(record, None, identity()),
        lambda aws, record: drift_stack(record, aws, native=lambda name: None),
    ],
    ids=["deploy", "recover", "destroy", "rollback", "drift"],
)
def test_no_command_works_on_a_stack_of_another_account(work: Callable[[FakeCloud, StateRecord], object]) -> None:
    aws = others()
    with pytest.raises(InputError, match=r"in account 123456789012, and these credentials are for 999999999999"):
        work(aws, recorded(stack_id=STACK_ID))
    assert not aws.log


def test_the_stacks_own_account_is_let_pass() -> None:
    refuse_elsewhere(FakeCloud(), recorded(stack_id=STACK_ID))
    refuse_elsewhere(FakeCloud(), None)


def test_a_record_without_a_stack_id_is_told_from_what_aws_gave() -> None:
    record = recorded(A="arn:aws:sqs:eu-west-1:123456789012:a", B="arn:aws:iam::123456789012:role/b")
    assert place_of_record(record) == Place("aws", "123456789012")
    with pytest.raises(InputError, match="999999999999"):
        refuse_elsewhere(others(), record)


@pytest.mark.parametrize(
    "arns",
    [
        {"A": ""},
        {"A": "arn:aws:iam::aws:policy/ReadOnlyAccess"},
        {"A": "arn:aws:sqs:us-east-1:111111111111:elsewhere"},
        {"A": "arn:aws:sqs:eu-west-1:111111111111:a", "B": "arn:aws:sqs:eu-west-1:222222222222:b"},
    ],
)
def test_a_record_that_does_not_say_or_says_two_things_is_let_pass(arns: dict[str, str]) -> None:
    record = recorded(**arns)
    assert place_of_record(record) is None
    refuse_elsewhere(others(), record)


def test_a_physical_id_that_is_an_arn_tells_the_account() -> None:
    record = recorded(A="")
    name = LogicalId("A")
    topic = dataclasses.replace(record.resources[name], physical_id=PhysicalId("arn:aws:sns:eu-west-1:123456789012:t"))
    assert place_of_record(dataclasses.replace(record, resources={name: topic})) == Place("aws", "123456789012")


def test_another_partition_is_refused() -> None:
    with pytest.raises(InputError, match="partition aws-cn"):
        refuse_elsewhere(FakeCloud(), recorded(stack_id=STACK_ID.replace("arn:aws:", "arn:aws-cn:")))
