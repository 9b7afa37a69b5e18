"""A Terraform stack is run, listed and found like any other, with its workspace in place of a region."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stackhold.errors import InputError, RecordUnreadable
from stackhold.model.ids import Region, RunId, StackName, stack_name, workspace_name
from stackhold.model.run import Outcome, RunIdentity
from stackhold.ports.store import Stored
from stackhold.runs.guard import GuardedRun, RunSettings, Stops
from stackhold.runs.inspect import find_region, list_stacks, read_stack, run_ids
from stackhold.runs.layout import Keys, terraform_prefix
from stackhold.runs.records import decode_own
from stackhold.testing.clock import FakeClock
from stackhold.testing.engine import DONE, ScriptedEngine, create
from stackhold.testing.memory_store import MemoryStore
from stackhold.testing.reporter import RecordingReporter

if TYPE_CHECKING:
    from stackhold.ports.engine import Run, WorkResult

PREFIX = "stackhold"
TF = terraform_prefix(PREFIX)


def play(store: MemoryStore, prefix: str, stack: str, place: Region) -> None:
    def script(run: Run) -> WorkResult:
        create(run, "A")
        return DONE

    identity = RunIdentity(
        RunId("20260319T080000000Z-0badcafe"), stack_name(stack), place, "apply", "ada@laptop:1", "terraform", "0"
    )
    run = GuardedRun(
        store=store,
        prefix=prefix,
        clock=store.clock,
        reporter=RecordingReporter(),
        settings=RunSettings(),
        identity=identity,
        stops=Stops(),
    )
    assert run.run(ScriptedEngine(script, ("A",))).outcome is Outcome.SUCCEEDED


@pytest.fixture
def store() -> MemoryStore:
    """A stack of AWS called `tf`, and Terraform stacks, one of them called as a region."""
    store = MemoryStore(FakeClock())
    play(store, PREFIX, "tf", Region("eu-west-1"))
    for stack, workspace in (("network", "default"), ("network", "prod"), ("eu-west-1", "default")):
        play(store, TF, stack, workspace_name(workspace))
    return store


def listed(store: MemoryStore, prefix: str) -> list[tuple[str, str]]:
    return [(view.keys.stack, view.keys.region) for view in list_stacks(store, store.clock, prefix=prefix)]


def test_each_kind_is_listed_under_its_own_prefix(store: MemoryStore) -> None:
    assert listed(store, PREFIX) == [("tf", "eu-west-1")]
    assert listed(store, TF) == [("eu-west-1", "default"), ("network", "default"), ("network", "prod")]


def test_a_terraform_stack_is_read_with_its_record_and_runs(store: MemoryStore) -> None:
    keys = Keys(TF, stack_name("network"), workspace_name("prod"))
    view = read_stack(store, store.clock, keys)
    assert view.record is not None
    assert view.record.required().region == "prod"
    assert len(run_ids(store, keys)) == 1


def test_the_only_workspace_is_found_and_of_several_one_must_be_named(store: MemoryStore) -> None:
    assert find_region(store, prefix=TF, stack=StackName("eu-west-1")) == "default"
    assert find_region(store, prefix=PREFIX, stack=StackName("tf")) == "eu-west-1"
    with pytest.raises(InputError, match="default, prod"):
        find_region(store, prefix=TF, stack=StackName("network"))


def test_a_record_of_another_workspace_is_not_taken_for_this_one_s(store: MemoryStore) -> None:
    found = store.read(Keys(TF, stack_name("network"), workspace_name("prod")).record)
    assert isinstance(found, Stored)
    with pytest.raises(RecordUnreadable, match="network in prod"):
        decode_own(found.data, Keys(TF, stack_name("network"), workspace_name("default")))
