from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.engines.cloudformation.graph import edges, shortest_cycle, topological, without_cycles
from stackhold.engines.cloudformation.template import evaluate, parse_text
from stackhold.engines.cloudformation.template.desired import DesiredStack, Inputs
from stackhold.errors import Bug, TemplateError
from stackhold.model.ids import LogicalId, Region, StackName

NAMES = [LogicalId(name) for name in "abcdefgh"]


def worked_out(text: str) -> DesiredStack:
    inputs = Inputs(
        stack=StackName("Shop"),
        region=Region("eu-west-1"),
        account="123456789012",
        partition="aws",
        url_suffix="amazonaws.com",
        stack_id="arn:aws:x",
    )
    return evaluate(parse_text(text, file="t.yaml"), inputs)


def test_every_way_to_name_a_resource_is_an_edge() -> None:
    text = """
Resources:
  R: {Type: AWS::S3::Bucket}
  G: {Type: AWS::S3::Bucket}
  S: {Type: AWS::S3::Bucket}
  D: {Type: AWS::S3::Bucket}
  M: {Type: AWS::S3::Bucket}
  Shadowed: {Type: AWS::S3::Bucket}
  A:
    Type: AWS::S3::Bucket
    DependsOn: D
    Metadata: {optional: !Ref M}
    Properties:
      A: !Ref R
      B: [!Select [0, !Split [',', !GetAtt G.Arn]]]
      C: !Sub ['${S.Arn}${Shadowed}', {Shadowed: x}]
"""
    found = edges(worked_out(text))
    assert found[LogicalId("A")] == {"R", "G", "S", "D", "M"}
    assert all(not needs for name, needs in found.items() if name != "A")


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        (
            "  A: {Type: AWS::S3::Bucket, Properties: {P: !Ref A}}\n",
            "t.yaml:2: A: resources depend on each other in a circle: A (Properties.P) -> A",
        ),
        (
            "  A: {Type: AWS::S3::Bucket, DependsOn: A}\n",
            "t.yaml:2: A: resources depend on each other in a circle: A (DependsOn) -> A",
        ),
        (
            "  A: {Type: AWS::S3::Bucket, Properties: {P: [{Q: !Sub '${B.Arn}'}]}}\n"
            "  B: {Type: AWS::S3::Bucket, Metadata: {m: !Ref C}}\n"
            "  C: {Type: AWS::S3::Bucket, DependsOn: [A]}\n"
            "  D: {Type: AWS::S3::Bucket, DependsOn: [A]}\n",
            "t.yaml:2: A: resources depend on each other in a circle: "
            "A (Properties.P.0.Q) -> B (Metadata.m) -> C (DependsOn) -> A",
        ),
    ],
)
def test_a_cycle_is_one_error_with_its_paths(resources: str, message: str) -> None:
    with pytest.raises(TemplateError) as caught:
        edges(worked_out(f"Resources:\n{resources}"))
    assert caught.value.message == message


def graphs(*, acyclic: bool) -> st.SearchStrategy[dict[LogicalId, frozenset[LogicalId]]]:
    def needs(place: int) -> st.SearchStrategy[frozenset[LogicalId]]:
        allowed = NAMES[:place] if acyclic else NAMES
        return st.frozensets(st.sampled_from(allowed), max_size=3) if allowed else st.just(frozenset())

    return st.fixed_dictionaries({name: needs(place) for place, name in enumerate(NAMES)})


@given(graph=graphs(acyclic=True), order=st.permutations(NAMES))
def test_what_a_resource_needs_comes_before_it(
    graph: dict[LogicalId, frozenset[LogicalId]], order: list[LogicalId]
) -> None:
    ordered = topological({name: graph[name] for name in order})
    assert sorted(ordered) == sorted(NAMES)
    for place, name in enumerate(ordered):
        assert graph[name] <= set(ordered[:place])
    assert shortest_cycle(graph) == ()


@given(graph=graphs(acyclic=False))
def test_a_cycle_that_is_reported_is_one_and_none_is_shorter(graph: dict[LogicalId, frozenset[LogicalId]]) -> None:
    cycle = shortest_cycle(graph)
    if not cycle:
        assert len(topological(graph)) == len(graph)
        return
    for current, following in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
        assert following in graph[current]
    assert len(cycle) == min(length for name in graph if (length := _way_back(name, graph)))
    with pytest.raises(Bug):
        topological(graph)


def _way_back(start: LogicalId, graph: dict[LogicalId, frozenset[LogicalId]]) -> int | None:
    """The number of steps from a resource to itself, by the plainest search."""
    reached: frozenset[LogicalId] = frozenset({start})
    for steps in range(1, len(graph) + 1):
        reached = frozenset(need for name in reached for need in graph[name])
        if start in reached:
            return steps
    return None


def test_independent_resources_keep_the_order_of_the_template() -> None:
    assert topological({name: frozenset() for name in reversed(NAMES)}) == list(reversed(NAMES))


def test_a_need_that_is_not_there_is_ignored() -> None:
    assert topological({NAMES[0]: frozenset({NAMES[1]})}) == [NAMES[0]]


@given(graph=graphs(acyclic=False))
def test_a_graph_whose_cycles_are_broken_has_none_and_no_new_need(graph: dict[LogicalId, frozenset[LogicalId]]) -> None:
    left, broken = without_cycles(graph)
    assert shortest_cycle({name: frozenset(needs) for name, needs in left.items()}) == ()
    assert all(needs <= set(graph[name]) for name, needs in left.items())
    assert bool(broken) is bool(shortest_cycle({name: needs - {name} for name, needs in graph.items()}))
