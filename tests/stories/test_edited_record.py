"""A record that somebody edits, removes or damages by hand while a run works: nothing is lost, and it is said."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from tests.stories.scene import wait_until
from tests.stories.slow_chain import STACK, chain_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.stories.scene import Result, Scene
    from tests.stories.slow_chain import Chain

pytestmark = [pytest.mark.emulator, pytest.mark.story]

THEIRS = "chain-theirs"


@pytest.fixture
def chain(scene: Scene) -> Iterator[Chain]:
    with chain_in(scene) as made:
        yield made


def edited(chain: Chain, edit: Any) -> Result:
    """A deploy under which the record changes when it has made the first of three."""
    held = chain.hold()
    running = chain.deploy()
    held.wait_reached()
    wait_until(lambda: chain.recorded() == {"First"}, "the first to be recorded")
    edit(chain.scene.file(STACK))
    held.release()
    return running.finish()


def test_a_resource_that_is_added_by_hand_stays_recorded_beside_what_the_run_made(chain: Chain) -> None:
    chain.scene.client("ssm").put_parameter(Name=THEIRS, Type="String", Value="x")

    def edit(path: Path) -> None:
        record = json.loads(path.read_text())
        record["resources"]["Theirs"] = {**record["resources"]["First"], "physicalId": THEIRS}
        path.write_text(json.dumps(record))

    result = edited(chain, edit)
    assert result.code == 1
    assert "changed by someone else" in result.err
    assert chain.recorded() == {*chain.in_cloud(), "Theirs"}
    assert chain.scene.lock(STACK) is None
    chain.converges()
    assert not chain.scene.client("ssm").get_parameters(Names=[THEIRS])["Parameters"], "recorded, and in no template"


def test_a_remark_that_is_added_by_hand_stays_and_stops_nothing(chain: Chain) -> None:
    def edit(path: Path) -> None:
        path.write_text(json.dumps({**json.loads(path.read_text()), "remark": "by hand"}))

    assert edited(chain, edit).code == 0
    assert chain.stored("state.json")["remark"] == "by hand"
    assert chain.recorded() == chain.in_cloud() == {"First", "Second", "Third"}
    chain.converges()


def test_a_record_that_is_removed_by_hand_gets_what_was_not_in_it_yet_and_the_removal_is_said(chain: Chain) -> None:
    result = edited(chain, lambda path: path.unlink())
    assert result.code == 1
    assert chain.scene.lock(STACK) is None
    assert chain.in_cloud() - chain.recorded() == {"First"}
    assert any("was deleted by someone else" in warning for warning in chain.last_run()["warnings"])
    assert "was deleted by someone else" in result.out + result.err
    assert "These exist and are in no record:\n  First chain-first\n" in result.err


def test_a_store_that_is_removed_under_a_run_is_said_to_be_gone_with_all_that_exists(chain: Chain) -> None:
    result = edited(chain, lambda path: shutil.rmtree(path.parents[2]))
    assert result.code == 1
    assert "the lock was lost; nobody holds it now" in result.err
    assert "the record is gone" in result.out + result.err
    assert "another's" not in result.out + result.err
    named = result.err.split("These exist and are in no record:\n")[1]
    assert all(f"{name} chain-{name.lower()}" in named for name in chain.in_cloud())
    assert "is recorded" not in result.err


def test_a_record_that_is_damaged_by_hand_is_not_overwritten(chain: Chain) -> None:
    result = edited(chain, lambda path: path.write_text("{"))
    assert result.code == 1
    assert chain.scene.file(STACK).read_text() == "{"
    assert "could not be saved" in result.err
    unrecorded = chain.in_cloud() - {"First"}
    assert all(f"chain-{name.lower()}" in result.err for name in unrecorded), result.err
    assert chain.scene.lock(STACK) is None
