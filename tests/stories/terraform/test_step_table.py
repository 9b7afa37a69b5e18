"""The step table, flag by flag: what each operation asks of the runtime, as a recording wrapper saw it."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest
from tests.stories.terraform import samples

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.stories.terraform.tf_scene import TfScene

pytestmark = [pytest.mark.story, pytest.mark.slow]

WAIT = "-lock-timeout=7s"
VERSION = ["version", "-json"]
VALIDATE = ["validate", "-json"]
INIT = ["init", "-no-color", "-input=false", WAIT]
KEYED = ("--plan-key-file", "key", "--guard-deletes")


def recorded(scene: TfScene) -> list[list[str]]:
    """The calls so far, with the plan file and the backup under short names; forgets them."""
    plan = {str(file.parent / "plan") for file in scene.folder.rglob("streams")} | {str(scene.folder / "work" / "plan")}
    calls = [[_short(word, scene.folder) for word in call] for call in scene.calls()]
    scene.record_calls()
    assert plan
    return calls


def _short(word: str, folder: Path) -> str:
    flag, _, file = word.rpartition("=")
    if not file.startswith(str(folder)):
        return word
    name = file.rpartition("/")[2]
    return f"{flag}={name}" if flag else name


def planned(*flags: str) -> list[str]:
    """A plan that is saved."""
    return ["plan", "-json", "-input=false", "-detailed-exitcode", *flags, WAIT, "-out=plan"]


def job(scene: TfScene, operation: str, *flags: str, expect: int = 0) -> Sequence[Sequence[str]]:
    """The calls of one Job."""
    scene.job(operation, "--lock-timeout", "7s", *flags, expect=expect)
    return recorded(scene)


@pytest.fixture
def wrapped(tf: TfScene) -> TfScene:
    """A scene on a local backend, with every call recorded."""
    tf.write(samples.LOCAL + samples.REPLACED + 'output "value" {\n  value = var.value\n}\n')
    (tf.folder / "key").write_bytes(b"key of the plans' hashes")
    tf.record_calls()
    return tf


def test_a_job_asks_for_the_steps_of_the_table_and_nothing_else(wrapped: TfScene) -> None:
    show = ["show", "-json", "plan"]
    refresh = ["apply", "-json", "-input=false", "-refresh-only", "-auto-approve", WAIT]

    assert job(wrapped, "plan") == [VERSION, INIT, VALIDATE, planned(), show]
    assert job(wrapped, "apply", *KEYED) == [
        VERSION,
        INIT,
        VALIDATE,
        planned(),
        show,
        ["apply", "-json", "-input=false", WAIT, "plan"],
    ]
    assert job(wrapped, "apply", *KEYED) == [VERSION, INIT, VALIDATE, planned()]
    assert job(wrapped, "apply") == [
        VERSION,
        INIT,
        VALIDATE,
        ["apply", "-json", "-input=false", "-auto-approve", WAIT],
    ]
    assert job(wrapped, "plan") == [VERSION, INIT, VALIDATE, planned()]
    assert job(wrapped, "refresh") == [VERSION, INIT, refresh]
    assert job(wrapped, "drift") == [VERSION, INIT, refresh, planned("-refresh=false")]
    assert job(wrapped, "apply", "--force-unlock", "4711", "--backend-config", "path=kept.tfstate") == [
        VERSION,
        [*INIT, "-backend-config=path=kept.tfstate"],
        ["force-unlock", "-force", "4711"],
        VALIDATE,
        ["apply", "-json", "-input=false", "-auto-approve", WAIT],
    ]
    backup = wrapped.folder / "backup.gz"
    backup.write_bytes(gzip.compress((wrapped.module / "kept.tfstate").read_bytes()))
    assert job(wrapped, "destroy") == [
        VERSION,
        INIT,
        ["destroy", "-json", "-input=false", "-auto-approve", WAIT],
    ]
    restored = ("--restore-chunks", "backup.gz", "--restore-resources", "1")
    assert job(wrapped, "restore", *restored) == [
        VERSION,
        INIT,
        ["state", "push", "-force", WAIT, "backup.tfstate"],
        ["state", "list"],
    ]


def test_a_blocked_job_ends_with_the_plan_shown(wrapped: TfScene) -> None:
    job(wrapped, "apply")
    wrapped.write(samples.LOCAL)
    show = ["show", "-json", "plan"]

    assert job(wrapped, "apply", *KEYED, expect=1) == [VERSION, INIT, VALIDATE, planned(), show]


def test_a_laptop_plans_shows_and_applies_that_very_file(wrapped: TfScene) -> None:
    show = ["show", "-json", "plan"]
    for_people = ["show", "-no-color", "plan"]
    change = ["apply", "-json", "-input=false", WAIT, "plan"]
    wait = ("--lock-timeout", "7s")

    wrapped.tf("apply", *wait)
    assert recorded(wrapped) == [VERSION, INIT, VALIDATE, planned(), show, for_people, change]
    wrapped.tf("apply", *wait)
    assert recorded(wrapped) == [VERSION, INIT, VALIDATE, planned()]
    wrapped.tf("plan", *wait, "--replace", "terraform_data.thing")
    assert recorded(wrapped) == [VERSION, INIT, VALIDATE, planned("-replace=terraform_data.thing"), show, for_people]
    wrapped.tf("drift", *wait)
    refresh = ["apply", "-json", "-input=false", "-refresh-only", "-auto-approve", WAIT]
    assert recorded(wrapped) == [VERSION, INIT, refresh, planned("-refresh=false")]
    backup = wrapped.folder / "backup.tfstate"
    backup.write_bytes((wrapped.module / "kept.tfstate").read_bytes())
    wrapped.tf("destroy", *wait)
    assert recorded(wrapped) == [VERSION, INIT, planned("-destroy"), show, for_people, change]
    wrapped.tf("restore", *wait, "--from", str(backup))
    assert recorded(wrapped) == [
        VERSION,
        INIT,
        ["state", "pull"],
        ["state", "push", "-force", WAIT, "backup.tfstate"],
        ["state", "list"],
    ]
    wrapped.tf("refresh", *wait)
    assert recorded(wrapped) == [VERSION, INIT, refresh]
