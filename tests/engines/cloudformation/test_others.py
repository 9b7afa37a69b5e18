"""What is another's by its tags is never deleted: not by going back, not at the end of a deploy, not by a destroy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from tests.engines.cloudformation.stage import Stage, ThingHandler

from stackhold.engines.cloudformation.bench import DeployOptions
from stackhold.engines.cloudformation.resources import finding
from stackhold.errors import ResourceFailed
from stackhold.model.events import EventKind
from stackhold.model.exit_codes import ExitCode
from stackhold.model.ids import LogicalId
from stackhold.model.run import IntentState

if TYPE_CHECKING:
    from stackhold.engines.cloudformation.resources.handler import Context, Lost, Made, Want
    from stackhold.engines.cloudformation.values import Props
    from stackhold.model.ids import PhysicalId

A, B = LogicalId("A"), LogicalId("B")
THEIRS = {
    "stackhold:stack": "other",
    "stackhold:region": "eu-west-1",
    "stackhold:run": "r",
    "stackhold:logical-id": "X",
}


class Taking(ThingHandler):
    """Things with tags, whose create could have met another's."""

    takes_over: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.tags: dict[str, dict[str, str]] = {}
        self.looks = 0
        self.blind = False
        """Whether the look after a create fails."""

    def create(self, ctx: Context, want: Want) -> Made:
        made = super().create(ctx, want)
        self.tags.setdefault(want.name, dict(want.tags))
        if self.blind:
            raise ResourceFailed("its tags could not be read")
        return made

    def tags_there(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Any:
        self.looks += 1
        return self.tags.get(physical_id)

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        there = self.tags.get(lost.name) if self.read(ctx, lost.name, {}) is not None else None  # type: ignore[arg-type]
        return finding.named(lost, lost.name, there)


@pytest.fixture
def taking() -> Taking:
    """The handler of the stage."""
    return Taking()


@pytest.fixture
def stage(taking: Taking) -> Stage:
    """A stage of things with tags."""
    return Stage(handler=taking)


def warned(stage: Stage) -> str:
    """All warnings."""
    return "\n".join(event.message for event in stage.run.events if event.kind is EventKind.WARNING)


def test_going_back_deletes_what_carries_the_tags_that_the_create_was_sent_with(stage: Stage, taking: Taking) -> None:
    stage.cloud.refuse("CreateThing", "b")
    result = stage.deploy(A={"Name": "a"}, B={"Name": "b", "after": ["A"]})
    assert result.exit_code is ExitCode.FAILED
    assert not stage.cloud.things
    assert taking.looks == 1


@pytest.mark.parametrize("differs", ["stackhold:stack", "stackhold:run", "stackhold:logical-id"])
def test_going_back_leaves_what_carries_another_stacks_or_runs_tags_by_now_and_forgets_it(
    stage: Stage, taking: Taking, differs: str
) -> None:
    created = taking.create

    def create(ctx: Context, want: Want) -> Made:
        made = created(ctx, want)
        taking.tags[want.name] = {**want.tags, differs: "another"}
        return made

    taking.create = create  # type: ignore[method-assign]
    stage.cloud.refuse("CreateThing", "b")
    result = stage.deploy(A={"Name": "a"}, B={"Name": "b", "after": ["A"]})
    assert set(stage.cloud.things) == {"a"}
    assert result.exit_code is ExitCode.FAILED
    assert result.record_gone
    resources: Any = result.summary["resources"]
    [told] = [entry for entry in resources if entry["logicalId"] == "A"]
    assert told["wentBack"] == "left to its owner"
    assert "by its tags it is" in told["reason"]
    assert "a is not deleted" in warned(stage)


def test_going_back_does_not_look_at_what_has_a_generated_name(stage: Stage, taking: Taking) -> None:
    stage.cloud.refuse("CreateThing", "b")
    stage.deploy(A={}, B={"Name": "b", "after": ["A"]})
    assert not stage.cloud.things
    assert taking.looks == 0


@pytest.mark.parametrize("options", [DeployOptions(baseline=False), DeployOptions(baseline=False, rollback=False)])
def test_a_create_that_was_answered_and_could_not_be_looked_at_is_deleted_only_if_it_is_ours(
    stage: Stage, taking: Taking, options: DeployOptions
) -> None:
    stage.options, taking.blind = options, True
    stage.deploy(A={"Name": "a"})
    assert not stage.cloud.things

    stage.begin()
    taking.tags = {"b": dict(THEIRS)}
    result = stage.deploy(B={"Name": "b"})
    assert set(stage.cloud.things) == {"b"}
    assert result.exit_code is ExitCode.PARTLY
    assert stage.run.marks[B] is IntentState.UNKNOWN
    assert B not in stage.run.record.resources
    assert not stage.run.record.pending_deletes


def test_a_destroy_lets_go_of_another_stacks(stage: Stage, taking: Taking) -> None:
    stage.has(A={"Name": "a"}, B={"Name": "b"})
    taking.tags["a"] = dict(THEIRS)
    result = stage.destroy()
    assert set(stage.cloud.things) == {"a"}
    assert result.record_gone
    assert result.exit_code is ExitCode.DONE
    assert "a is not deleted: by its tags it is stack other's (eu-west-1), as its X" in warned(stage)


def test_a_destroy_deletes_what_an_earlier_run_of_the_stack_made_and_what_has_no_ownership_tags(
    stage: Stage, taking: Taking
) -> None:
    stage.has(A={"Name": "a"}, B={"Name": "b"})
    taking.tags["a"]["stackhold:run"] = "an-earlier-one"
    taking.tags["b"] = {"team": "blue"}
    assert stage.destroy().exit_code is ExitCode.DONE
    assert not stage.cloud.things


def test_a_deploy_that_takes_a_resource_away_lets_go_of_another_stacks(stage: Stage, taking: Taking) -> None:
    stage.has(A={"Name": "a"}, B={"Name": "b"})
    taking.tags["b"] = dict(THEIRS)
    result = stage.deploy(A={"Name": "a"})
    assert set(stage.cloud.things) == {"a", "b"}
    assert result.exit_code is ExitCode.DONE
    assert set(stage.run.record.resources) == {A}
    assert not stage.run.record.pending_deletes


def test_an_old_one_that_would_have_to_go_first_stays_when_it_is_another_stacks(stage: Stage, taking: Taking) -> None:
    stage.has(A={"Name": "a", "Kind": "x"})
    taking.tags["a"] = dict(THEIRS)
    result = stage.deploy(A={"Name": "a", "Kind": "y", "old_first": True})
    assert "by its tags it is stack other's" in result.error
    assert set(stage.cloud.things) == {"a"}
    assert ("DeleteThing", "a") not in stage.cloud.changes()
