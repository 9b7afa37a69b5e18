"""New ids where old ones stood: only as words of their own."""

from __future__ import annotations

import pytest

from stackhold.engines.cloudformation.moved import Moves
from stackhold.model.ids import PhysicalId, TypeName
from stackhold.model.record import ResourceRecord


def queue(physical_id: str, **attributes: object) -> ResourceRecord:
    return ResourceRecord(PhysicalId(physical_id), TypeName("AWS::SQS::Queue"), {}, attributes)


def moves() -> Moves:
    made = Moves()
    old = queue(
        "shop-Work-one", Arn="arn:aws:sqs:eu-west-1:1:shop-Work-one", Nested={"Id": "vpc-0001"}, Same="kept-as-is"
    )
    new = queue(
        "shop-Work-two", Arn="arn:aws:sqs:eu-west-1:1:shop-Work-two", Nested={"Id": "vpc-0002"}, Same="kept-as-is"
    )
    made.add(old, new)
    made.add(queue("short"), queue("other"))
    return made


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("shop-Work-one", "shop-Work-two"),
        ("arn:aws:sqs:eu-west-1:1:shop-Work-one", "arn:aws:sqs:eu-west-1:1:shop-Work-two"),
        ("https://sqs/1/shop-Work-one/x", "https://sqs/1/shop-Work-two/x"),
        (["vpc-0001", {"Id": "vpc-0001"}], ["vpc-0002", {"Id": "vpc-0002"}]),
        ("shop-Work-one-more", "shop-Work-one-more"),
        ("my-shop-Work-one", "my-shop-Work-one"),
        ("shop-Work-ones", "shop-Work-ones"),
        ("short", "short"),
        ("kept-as-is", "kept-as-is"),
        (7, 7),
        (None, None),
        (True, True),
    ],
)
def test_an_old_id_is_replaced_where_it_is_a_word_of_its_own(value: object, wanted: object) -> None:
    assert moves().applied({"P": value}) == {"P": wanted}


def test_without_moves_nothing_changes() -> None:
    assert Moves().applied({"P": "shop-Work-one"}) == {"P": "shop-Work-one"}
