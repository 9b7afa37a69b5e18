"""Every native handler, through the life of a resource, on the emulators that behave as AWS for its type."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stackhold.engines.cloudformation.resources import finding
from stackhold.engines.cloudformation.resources.handler import FoundBy, Lost, Settle
from stackhold.engines.cloudformation.resources.registry import handler_for, native_types
from stackhold.model.ids import TypeName

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.engines.cloudformation.resources.conftest import World
    from tests.engines.cloudformation.resources.sample import Given, Sample

    from stackhold.engines.cloudformation.resources.handler import Handler, Made, Seen, Want
    from stackhold.model.ids import PhysicalId

MODULES = sorted(path.stem for path in (Path(__file__).parent / "samples").glob("[a-z]*.py"))
SAMPLES: list[Sample] = [
    sample
    for module in MODULES
    for sample in importlib.import_module(f"tests.engines.cloudformation.resources.samples.{module}").SAMPLES
]


def _cases(samples: list[Sample], *kinds: str) -> list[Any]:
    return [
        pytest.param(kind, sample, id=f"{kind}-{sample.label}")
        for sample in samples
        for kind in kinds
        if kind in sample.emulators
    ]


def _found_by(sample: Sample) -> FoundBy | None:
    handler = handler_for(TypeName(sample.type))
    return handler.found_by if handler else None


CASES = _cases(SAMPLES, "ministack", "moto")
"""Both emulators; moto takes a second to forget everything, so it runs only the test that says most."""
FIRST_CASES = _cases([sample for sample in SAMPLES if sample.emulators[0] == "ministack"], "ministack")
FIRST_CASES += _cases([sample for sample in SAMPLES if sample.emulators == ("moto",)], "moto")
TAGGED_SAMPLES = [s for s in SAMPLES if s.tags and "Ownership" not in s.blind.get("ministack", ())]
TAGGED = _cases(TAGGED_SAMPLES, "ministack")
NAMED = _cases([sample for sample in TAGGED_SAMPLES if _found_by(sample) is FoundBy.NAME], "ministack")
"""Resources that a second create of the same run meets under their own name."""
pytestmark = pytest.mark.emulator


class Life:
    """One resource of a sample, with what the engine would remember of it."""

    def __init__(self, world: World, sample: Sample) -> None:
        handler = handler_for(TypeName(sample.type))
        assert handler is not None
        self.world = world
        self.sample = sample
        self.handler: Handler = handler
        self.given: Given = sample.prepare(world.client) if sample.prepare else {}
        self.properties = sample.properties(self.given)
        self.before = sample.count(world.client, self.given)
        self.blind = sample.blind.get(world.emulator.kind, frozenset())

    def want(self, properties: dict[str, Any], **more: Any) -> Want:
        rule = self.handler.name_rule
        name = ""
        if rule is not None:
            made_up = "suite-thing-0a1b2c3d4e5f" + (rule.suffix(properties) if rule.suffix else "")
            name = properties.get(rule.property, made_up)
        return self.world.want(properties, name=name, **more)

    def lost(self, **more: Any) -> Lost:
        """What a run file would know of this resource's create."""
        want = self.want(self.properties)
        fields: dict[str, Any] = {
            "logical_id": want.logical_id,
            "name": want.name,
            "is_own_name": "Ownership" in self.blind,
            "tags": want.tags,
            "place": self.handler.place(self.properties),
            "stack": frozenset(_texts(dict(self.given))),
        }
        return Lost(**{**fields, **more})

    def find(self, **more: Any) -> PhysicalId | None:
        return self.handler.find(self.world.context, self.lost(**more))

    def create(self) -> Made:
        made = self.handler.create(self.world.context, self.want(self.properties))
        self.settle(made, self.properties)
        return made

    def settle(self, made: Made, properties: dict[str, Any]) -> None:
        if made.is_settled:
            return
        for _ in range(200):
            state, _later = self.handler.settled(self.world.context, made.physical_id, properties)
            if state is Settle.DONE:
                return
            self.world.context.wait(100)
        raise AssertionError("it never settled")

    def update(self, physical_id: PhysicalId, old: dict[str, Any], new: dict[str, Any], **more: Any) -> Made:
        made = self.handler.update(self.world.context, physical_id, old, self.want(new, **more))
        self.settle(made, new)
        return made

    def read(self, physical_id: PhysicalId, properties: dict[str, Any]) -> Seen | None:
        return self.handler.read(self.world.context, physical_id, properties)

    def seen(self, physical_id: PhysicalId, properties: dict[str, Any]) -> Seen:
        seen = self.read(physical_id, properties)
        assert seen is not None
        return seen

    def count(self) -> int:
        return self.sample.count(self.world.client, self.given) - self.before

    def unread(self) -> frozenset[str]:
        return frozenset(self.blind) | self.handler.write_only

    def assert_shows(self, seen: Seen, properties: dict[str, Any]) -> None:
        compared = {name: value for name, value in properties.items() if name not in self.unread()}
        got = {name: seen.properties.get(name) for name in compared}
        assert _comparable(got) == _comparable(compared)


def _comparable(value: Any) -> Any:
    """Tags, and lists whose order no service keeps, compare as sets."""
    if isinstance(value, dict):
        return {key: _comparable(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((_comparable(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    return value


def _texts(value: Any) -> Iterable[str]:
    """Every text in what was prepared."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _foreign_keys(tags: Any) -> list[str]:
    keys: Iterable[str] = tags if isinstance(tags, dict) else (tag["Key"] for tag in tags or [])
    return [key for key in keys if key.startswith(("aws:", "stackhold:"))]


@pytest.mark.parametrize(("world", "sample"), CASES, indirect=["world"])
def test_a_resource_lives_as_declared_from_create_to_delete(world: World, sample: Sample) -> None:
    life = Life(world, sample)
    made = life.create()
    assert life.count() == 1
    life.assert_shows(life.seen(made.physical_id, life.properties), life.properties)

    changed = {**life.properties, **sample.update(life.given)}
    updated = life.update(made.physical_id, life.properties, changed)
    assert updated.physical_id == made.physical_id
    life.assert_shows(life.seen(made.physical_id, changed), changed)
    assert life.count() == 1

    reduced = {name: value for name, value in changed.items() if name not in sample.remove}
    life.update(made.physical_id, changed, reduced)
    seen = life.seen(made.physical_id, changed)
    life.assert_shows(seen, reduced)
    for name in sample.remove:
        if name not in life.unread() and f"Reset:{name}" not in life.blind:
            assert seen.properties.get(name) in (None, "", [], {}, life.handler.defaults.get(name)), name

    life.handler.delete(world.context, made.physical_id, reduced)
    assert life.read(made.physical_id, reduced) is None
    life.handler.delete(world.context, made.physical_id, reduced)
    assert life.count() == 0


@pytest.mark.parametrize(("world", "sample"), FIRST_CASES, indirect=["world"])
def test_every_call_after_the_create_can_be_made_again(world: World, sample: Sample) -> None:
    life = Life(world, sample)
    made = life.create()
    life.update(made.physical_id, life.properties, life.properties)
    life.update(made.physical_id, {}, life.properties)
    life.update(made.physical_id, {}, life.properties)
    assert life.count() == 1
    life.assert_shows(life.seen(made.physical_id, life.properties), life.properties)


@pytest.mark.parametrize(("world", "sample"), FIRST_CASES, indirect=["world"])
def test_two_reads_of_an_untouched_resource_show_no_difference(world: World, sample: Sample) -> None:
    life = Life(world, sample)
    made = life.create()
    first = life.seen(made.physical_id, life.properties)
    many = life.handler.read_many(world.context, {made.physical_id: life.properties})
    assert list(many) == [made.physical_id]
    assert _comparable(many[made.physical_id].properties) == _comparable(first.properties)
    if made.observed is not None:
        for name in made.observed.keys() & first.properties.keys() - life.unread():
            assert _comparable(made.observed[name]) == _comparable(first.properties[name]), name


@pytest.mark.parametrize(("world", "sample"), FIRST_CASES, indirect=["world"])
def test_a_bulk_read_leaves_out_what_does_not_exist(world: World, sample: Sample) -> None:
    life = Life(world, sample)
    made = life.create()
    life.handler.delete(world.context, made.physical_id, life.properties)
    assert life.handler.read_many(world.context, {made.physical_id: life.properties}) == {}


@pytest.mark.parametrize(("world", "sample"), FIRST_CASES, indirect=["world"])
def test_attributes_are_complete_and_ref_is_as_declared(world: World, sample: Sample) -> None:
    life = Life(world, sample)
    made = life.create()
    seen = life.seen(made.physical_id, life.properties)
    assert sample.attributes <= made.attributes.keys()
    assert sample.attributes <= seen.attributes.keys()
    for name in sample.attributes - life.handler.volatile_attributes:
        assert made.attributes[name] == seen.attributes[name], name
    ref = life.handler.ref(made.physical_id, life.properties, made.attributes)
    assert ref == sample.ref(made.physical_id, life.given)


@pytest.mark.parametrize(("world", "sample"), TAGGED, indirect=["world"])
def test_ownership_tags_are_in_aws_and_in_no_read(world: World, sample: Sample) -> None:
    assert sample.tags is not None
    life = Life(world, sample)
    made = life.create()
    ours = life.want(life.properties).tags
    assert ours.items() <= sample.tags(world.client, made.physical_id, life.given).items()
    changed = {**life.properties, **sample.update(life.given)}
    life.update(made.physical_id, life.properties, changed, run="run-2", stack_tags={"team": "a"})
    there = sample.tags(world.client, made.physical_id, life.given)
    assert ours.items() <= there.items()
    assert there["team"] == "a"
    assert _foreign_keys(life.seen(made.physical_id, changed).properties.get("Tags")) == []


@pytest.mark.parametrize(("world", "sample"), NAMED, indirect=["world"])
def test_a_create_that_finds_its_own_resource_takes_it_on(world: World, sample: Sample) -> None:
    life = Life(world, sample)
    first = life.create()
    again = life.create()
    assert again.physical_id == first.physical_id
    assert life.count() == 1
    life.assert_shows(life.seen(again.physical_id, life.properties), life.properties)


@pytest.mark.parametrize(("world", "sample"), CASES, indirect=["world"])
def test_a_create_that_nobody_heard_of_is_found_again(world: World, sample: Sample) -> None:
    life = Life(world, sample)
    assert life.find() is None
    made = life.create()
    assert life.find() == made.physical_id
    assert life.find(known=frozenset({made.physical_id})) is None
    life.handler.delete(world.context, made.physical_id, life.properties)
    assert life.find() is None


@pytest.mark.parametrize(("world", "sample"), TAGGED, indirect=["world"])
def test_what_another_run_made_is_never_taken_for_ours(world: World, sample: Sample) -> None:
    life = Life(world, sample)
    life.create()
    assert life.find(tags=life.want(life.properties, run="run-2").tags, stack=frozenset()) is None


@pytest.mark.parametrize(("world", "sample"), FIRST_CASES, indirect=["world"])
def test_what_was_found_can_be_read_by_place_and_names_and_brought_to_what_is_asked(
    world: World, sample: Sample
) -> None:
    life = Life(world, sample)
    made = life.create()
    seen = finding.read_found(
        life.handler, world.context, made.physical_id, names=life.properties, place=life.handler.place(life.properties)
    )
    assert seen is not None
    life.update(made.physical_id, {}, life.properties)
    life.assert_shows(life.seen(made.physical_id, life.properties), life.properties)
    kept = {name: value for name, value in seen.properties.items() if name in life.properties}
    life.handler.delete(world.context, made.physical_id, kept)
    assert life.count() == 0


@pytest.mark.parametrize("type_name", native_types())
def test_what_is_stored_to_find_a_resource_holds_no_url(type_name: TypeName) -> None:
    handler = handler_for(type_name)
    assert handler is not None
    secret = "https://user:secret@example.com/"
    place = handler.place(dict.fromkeys(handler.properties - set(handler.where) - {"Policies"}, secret))
    assert "secret" not in str(place)


@pytest.mark.parametrize("type_name", native_types())
def test_every_native_type_has_a_sample(type_name: TypeName) -> None:
    assert any(sample.type == type_name for sample in SAMPLES)
