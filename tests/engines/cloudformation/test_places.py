"""Where a resource is survives being written down, references included, and no secret goes along."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stackhold.engines.cloudformation.places import decoded, digest_of, encoded, place_of
from stackhold.engines.cloudformation.resources.registry import handler_for
from stackhold.engines.cloudformation.values import UNKNOWN, AttrOf, Base64Of, JoinOf, RefTo, SelectOf, SplitOf
from stackhold.model.ids import LogicalId, TypeName

names = st.sampled_from(["Api", "Table", "Topic"]).map(LogicalId)
plain = st.text(max_size=5) | st.integers() | st.booleans()
references = st.builds(RefTo, names) | st.builds(AttrOf, names, st.sampled_from(["Arn", "Name"]))
values: st.SearchStrategy[Any] = st.recursive(
    plain | references,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["Key", "Name", "Other"]), inner, max_size=3)
        | st.builds(JoinOf, st.text(max_size=1), st.lists(inner, max_size=3))
        | st.builds(SelectOf, st.integers(0, 3), st.lists(inner, max_size=3))
        | st.builds(SplitOf, st.text(min_size=1, max_size=1), inner)
        | st.builds(Base64Of, inner)
    ),
    max_leaves=8,
)


@given(values)
def test_a_value_with_references_is_the_same_after_it_was_stored(value: Any) -> None:
    assert decoded(json.loads(json.dumps(encoded(value)))) == value


def place(type_name: str, raw: dict[str, Any], **resolved: Any) -> Any:
    handler = handler_for(TypeName(type_name))
    assert handler is not None
    return place_of(handler, raw, {**raw, **resolved})


def test_what_is_not_known_yet_is_written_as_the_reference_that_it_is() -> None:
    raw = {"ApiId": RefTo(LogicalId("Api")), "RouteKey": "GET /", "Target": "t"}
    assert place("AWS::ApiGatewayV2::Route", raw, ApiId=UNKNOWN) == {"ApiId": {"Ref": "Api"}, "RouteKey": "GET /"}


def test_a_name_that_the_template_chose_belongs_to_the_place_while_it_is_not_known() -> None:
    raw = {"QueueName": JoinOf("-", [RefTo(LogicalId("Api")), "q"])}
    assert place("AWS::SQS::Queue", raw, QueueName=UNKNOWN) == {"QueueName": {"Fn::Join": ["-", [{"Ref": "Api"}, "q"]]}}
    assert place("AWS::SQS::Queue", {"QueueName": "q"}) == {}


def test_a_url_is_stored_as_a_digest_and_not_at_all_while_it_is_not_known() -> None:
    known = place("AWS::SNS::Subscription", {"TopicArn": "t", "Protocol": "https", "Endpoint": "https://a:secret@b/"})
    assert known["Endpoint"].keys() == {"sha256"}
    assert "secret" not in json.dumps(known)
    raw = {"TopicArn": "t", "Protocol": "https", "Endpoint": JoinOf("", ["https://a:secret@", RefTo(LogicalId("Api"))])}
    assert "Endpoint" not in place("AWS::SNS::Subscription", raw, Endpoint=UNKNOWN)


@given(values, values)
def test_equal_templates_have_one_digest_and_others_another(one: Any, other: Any) -> None:
    kind = TypeName("AWS::SQS::Queue")
    same = json.dumps(encoded(one), sort_keys=True) == json.dumps(encoded(other), sort_keys=True)
    assert (digest_of(kind, {"A": one}, {}) == digest_of(kind, {"A": other}, {})) is same
    assert digest_of(kind, {"A": one}, {}) != digest_of(kind, {"A": one}, {"team": "a"})
    assert digest_of(kind, {"A": one}, {}) != digest_of(TypeName("AWS::SNS::Topic"), {"A": one}, {})
