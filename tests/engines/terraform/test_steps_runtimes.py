"""The step table on the real runtimes: each takes every flag, and rejects `-lock-timeout` where we leave it out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.runtimes import catalogue

from stackhold.engines.terraform.diagnostics import Verdict, judge
from stackhold.engines.terraform.steps import (
    Approval,
    Operation,
    Script,
    Step,
    force_unlock_step,
    state_pull_step,
    steps,
    version_step,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Take = Callable[[tuple[str, ...]], tuple[int, str]]

pytestmark = pytest.mark.slow

STATE = '{"version":4,"terraform_version":"1.6.0","serial":1,"lineage":"x","outputs":{},"resources":[]}'


@pytest.fixture(
    params=["embedded", "terraform", pytest.param("opentofu", marks=pytest.mark.runtimes)],
)
def take(request: pytest.FixtureRequest, tmp_path: Path) -> Take:
    """Takes one step of a small module on a runtime: exit code, and all that it printed."""
    runtime = catalogue.find(request.param)
    if runtime is None:
        pytest.skip(f"this machine has no runtime {request.param!r}")
    env = catalogue.environment(catalogue.bare_cli_config(tmp_path))
    module = tmp_path / "module"
    module.mkdir()
    (module / "main.tf").write_text('resource "terraform_data" "a" {}\n', encoding="utf-8")
    (tmp_path / "backup").write_text(STATE, encoding="utf-8")

    def taken(args: tuple[str, ...]) -> tuple[int, str]:
        done = runtime.run(*args, folder=module, env=env)
        return done.returncode, done.stdout + done.stderr

    return taken


def table(folder: Path) -> list[Step]:
    """Every step of every operation once, in an order in which each can be taken."""
    found: dict[tuple[str, ...], Step] = {}
    for operation in Operation:
        for approval in Approval:
            script = Script(
                operation, 3, plan_file=str(folder / "plan"), approval=approval, backup=str(folder / "backup")
            )
            found.update({step.args: step for step in steps(script)})
    return [version_step(), *found.values(), state_pull_step(), force_unlock_step("4711")]


def rejects(output: str) -> bool:
    """Whether a runtime says that it does not know a flag, or does not know how to take it."""
    return "flag provided but not defined" in output or "Usage:" in output


def test_a_runtime_takes_every_step_as_the_table_has_it(take: Take, tmp_path: Path) -> None:
    for step in table(tmp_path):
        code, output = take(step.args)

        assert not rejects(output), step.args
        verdict = judge(step, exit_code=code, summary=None, stderr=output)
        assert verdict in {Verdict.OK, Verdict.CHANGES}, (step.args, output)


def test_a_runtime_rejects_a_lock_timeout_on_exactly_the_steps_that_get_none(take: Take, tmp_path: Path) -> None:
    take(steps(Script(Operation.REFRESH, 0))[0].args)
    for step in table(tmp_path):
        if not step.takes_lock:
            words = 2 if step.args[0] == "state" else 1

            code, output = take((*step.args[:words], "-lock-timeout=3s", *step.args[words:]))

            assert code != 0
            assert rejects(output), (step.args, output)
