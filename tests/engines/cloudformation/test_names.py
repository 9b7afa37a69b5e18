from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from stackhold.engines.cloudformation.names import (
    is_ownership_tag,
    ownership_tags,
    physical_name,
    token_for,
    without_system_tags,
)
from stackhold.engines.cloudformation.resources.handler import NameRule
from stackhold.model.ids import LogicalId, Region, RunId, StackName

stacks = st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,127}", fullmatch=True).map(StackName)
logical_ids = st.from_regex(r"[A-Za-z0-9]{1,255}", fullmatch=True).map(LogicalId)
limits = st.integers(28, 255)
RUN = RunId("20261130T180219995Z-0a1b2c3d")
EAST = Region("us-east-1")
PAYMENTS = StackName("Payments")
QUEUE = LogicalId("Queue")


def name(
    rule: NameRule,
    stack: StackName = PAYMENTS,
    logical_id: LogicalId = QUEUE,
    *,
    run_id: RunId = RUN,
    region: Region = EAST,
    replacement: int = 0,
    properties: dict[str, object] | None = None,
) -> str:
    return physical_name(
        rule,
        properties or {},
        account="123456789012",
        region=region,
        stack=stack,
        logical_id=logical_id,
        run_id=run_id,
        replacement=replacement,
    )


def test_a_name_reads_as_stack_logical_id_and_tail() -> None:
    assert re.fullmatch(r"Payments-Queue-[a-z0-9]{12}", name(NameRule("QueueName", 80)))


@given(stack=stacks, logical_id=logical_ids, limit=limits, lower=st.booleans())
def test_a_name_keeps_every_rule_of_every_type(
    stack: StackName, logical_id: LogicalId, limit: int, lower: bool
) -> None:
    made = name(NameRule("Name", limit, lower=lower), stack, logical_id)
    assert len(made) <= limit
    assert made[0].isalpha()
    assert "--" not in made
    assert not made.endswith("-")
    assert re.search(r"-[a-z0-9]{12}$", made)
    assert not lower or made == made.lower()


@given(stack=stacks, logical_id=logical_ids, limit=limits)
def test_a_suffix_is_never_cut_and_counts_towards_the_limit(
    stack: StackName, logical_id: LogicalId, limit: int
) -> None:
    made = name(NameRule("QueueName", limit, suffix=lambda _: ".fifo"), stack, logical_id)
    assert made.endswith(".fifo")
    assert len(made) <= limit


@given(stack=stacks, logical_id=logical_ids, limit=limits, begin=st.sampled_from(["aws", "SSM-", "sthree-", "xn--"]))
def test_a_generated_name_never_begins_with_what_aws_keeps_for_itself(
    stack: StackName, logical_id: LogicalId, limit: int, begin: str
) -> None:
    rule = NameRule("Name", limit, reserved=("aws", "ssm", "sthree-", "xn--"))
    made = name(rule, StackName(begin + stack), logical_id)
    assert not rule.reserved_part(made)
    assert len(made) <= limit


@given(stack=stacks, logical_id=logical_ids, limit=limits)
def test_a_short_stack_leaves_its_room_to_the_logical_id(stack: StackName, logical_id: LogicalId, limit: int) -> None:
    stack = StackName(re.sub("-+", "-", stack).strip("-"))
    made = name(NameRule("Name", limit), stack, logical_id)
    assert len(made) >= min(limit - 2, len(stack) + len(logical_id) + 14)


def test_another_run_replacement_or_region_gets_another_name_of_the_same_head() -> None:
    rule = NameRule("BucketName", 63, lower=True)
    names = {
        name(rule),
        name(rule, run_id=RunId("20261130T180219996Z-0a1b2c3d")),
        name(rule, replacement=1),
        name(rule, region=Region("eu-west-1")),
    }
    assert len(names) == 4
    assert {made[:-12] for made in names} == {"payments-queue-"}


def test_the_same_run_always_gives_the_same_name() -> None:
    assert name(NameRule("QueueName", 80)) == name(NameRule("QueueName", 80))


def test_a_name_in_the_template_is_taken_as_it_is() -> None:
    assert name(NameRule("QueueName", 8), properties={"QueueName": "a--much-longer-name-"}) == "a--much-longer-name-"


@given(stack=stacks, logical_id=logical_ids, replacement=st.integers(0, 9))
def test_a_token_is_32_lower_hex_characters_and_differs_per_replacement(
    stack: StackName, logical_id: LogicalId, replacement: int
) -> None:
    def token(count: int) -> str:
        return token_for(
            account="123456789012", region=EAST, stack=stack, logical_id=logical_id, run_id=RUN, replacement=count
        )

    assert re.fullmatch(r"[0-9a-f]{32}", token(replacement))
    assert token(replacement) != token(replacement + 1)


def test_ownership_tags_say_who_made_it_and_are_no_property() -> None:
    tags = ownership_tags(PAYMENTS, EAST, RUN, QUEUE)
    assert tags == {
        "stackhold:stack": "Payments",
        "stackhold:region": "us-east-1",
        "stackhold:run": RUN,
        "stackhold:logical-id": "Queue",
    }
    assert all(is_ownership_tag(key) for key in tags)
    assert without_system_tags({**tags, "aws:cloudformation:stack-name": "x", "Env": "dev"}) == {"Env": "dev"}


def test_a_tag_of_ours_in_name_only_stays() -> None:
    assert without_system_tags({"stackhold:team": "pay", "awsome": "1"}) == {"stackhold:team": "pay", "awsome": "1"}
