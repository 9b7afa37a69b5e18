"""A stack that others import from is not destroyed, and whoever does is named."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stackhold.errors import InputError
from stackhold.model import codec
from stackhold.model.exit_codes import ExitCode
from stackhold.model.ids import LogicalId, Region, StackName
from stackhold.model.record import DropResource, StateRecord
from stackhold.runs.layout import Keys
from stackhold.testing.engine import DONE, ScriptedEngine, thing
from stackhold.testing.run_scene import KEYS, RunScene

if TYPE_CHECKING:
    from stackhold.ports.engine import Run, WorkResult


def recorded(scene: RunScene, stack: str, *, outputs: dict[str, str] | None = None, **extra: object) -> Keys:
    keys = Keys(KEYS.prefix, StackName(stack), KEYS.region)
    resources = {LogicalId("A"): thing("a-1")}
    record = StateRecord(keys.stack, Region(keys.region), resources=resources, outputs=outputs or {}, extra=extra)
    scene.store.put(keys.record, codec.encode_record(record))
    return keys


def imports(source: str = "Shop", region: str = "eu-west-1", name: str = "Url") -> list[dict[str, str]]:
    return [{"sourceStack": source, "sourceRegion": region, "exportName": name}]


def drop(run: Run) -> WorkResult:
    run.save([DropResource(LogicalId("A"))])
    return replace(DONE, record_gone=True)


DESTROY = ScriptedEngine(drop, ("A",))


def test_a_destroy_of_what_others_import_is_refused_by_their_names_and_changes_nothing() -> None:
    scene = RunScene()
    recorded(scene, "Shop", outputs={"Url": "u"})
    recorded(scene, "Web", imports=imports())
    recorded(scene, "Admin", imports=[*imports(), *imports(name="Table"), *imports("Else", name="X")])
    before = scene.data(KEYS.record)
    with pytest.raises(InputError, match="exports what others import") as refused:
        scene.play(DESTROY, operation="destroy")
    assert "Admin (eu-west-1) imports Url, Table; Web (eu-west-1) imports Url" in refused.value.message
    assert "first" in refused.value.hint
    assert scene.data(KEYS.record) == before
    assert scene.lock is None


@pytest.mark.parametrize("taken", [imports("Else"), imports(region="us-east-1"), "odd", [1]])
def test_imports_from_elsewhere_hold_no_destroy_up(taken: object) -> None:
    scene = RunScene()
    recorded(scene, "Shop", outputs={"Url": "u"})
    recorded(scene, "Web", imports=taken)
    assert scene.play(DESTROY, operation="destroy").exit_code is ExitCode.DONE
    assert scene.record is None


def test_a_stack_without_outputs_is_destroyed_without_a_look_at_others() -> None:
    scene = RunScene()
    recorded(scene, "Shop")
    recorded(scene, "Web", imports=imports())
    assert scene.play(DESTROY, operation="destroy").exit_code is ExitCode.DONE


def test_a_record_of_others_that_cannot_be_read_is_said_and_holds_nothing_up() -> None:
    scene = RunScene()
    recorded(scene, "Shop", outputs={"Url": "u"})
    scene.store.put(recorded(scene, "Web").record, b"{ not")
    report = scene.play(DESTROY, operation="destroy")
    assert report.exit_code is ExitCode.DONE
    assert any("Web (eu-west-1)" in warning for warning in report.warnings)


def test_a_deploy_asks_nobody() -> None:
    scene = RunScene()
    recorded(scene, "Shop", outputs={"Url": "u"})
    recorded(scene, "Web", imports=imports())
    assert scene.play(ScriptedEngine(drop, ("A",))).exit_code is ExitCode.DONE
