"""What the guard adds to an unchanged Terraform module: `stackhold tf apply --yes` beside the same steps by hand.

Both take turns on copies of one module, and the medians of the differences of the pairs are shown, so that a busy
machine falls out. By hand means `version`, `init`, `validate` and `plan` with the arguments that stackhold gives them.
The runner's memory is its own: what the runtime needs is the same with and without it.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Measured, measure, measure_apart
from stackhold.engines.terraform.runtime import find_runtime
from stackhold.engines.terraform.steps import Approval, Operation, Script, When, steps, version_step
from stackhold.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackhold.testing import emulators

STACKHOLD = str(Path(sys.executable).parent / "stackhold")
BUCKET = "bench-guard"
MODULE = """\
resource "terraform_data" "made" {
  count = 10
  input = "value-${count.index}"
}
"""
OWN = """\
terraform {
  backend "local" {}
}
"""
_WAIT_S = 300


@dataclass(frozen=True, slots=True)
class Case:
    """One row: where stackhold's store is, and whether the module has a backend of its own."""

    name: str
    store: str
    has_backend: bool


@dataclass(frozen=True, slots=True)
class Added:
    """What a row shows: seconds by hand, and the medians of what stackhold takes beyond them."""

    by_hand: float
    wall: float
    cpu: float
    peak: float


def command_words(environment: dict[str, str]) -> tuple[str, ...] | None:
    """The runtime, as stackhold itself finds it; None where there is none."""
    try:
        return find_runtime((), environment.get("PATH", "")).command
    except InputError:
        return None


def rows(
    words: tuple[str, ...], emulator: emulators.Emulator, folder: Path, rounds: int
) -> Iterator[tuple[str, Added]]:
    """The rows of the table, each measured when it is asked for."""
    environment = {**emulator.environment(), "CHECKPOINT_DISABLE": "1", "XDG_CACHE_HOME": str(folder / "cache")}
    subprocess.run(
        [STACKHOLD, "bootstrap", "--state", f"s3://{BUCKET}"], env=environment, check=True, stdout=subprocess.DEVNULL
    )
    for number, case in enumerate(cases(folder)):
        place = folder / f"case{number}"
        place.mkdir()
        yield case.name, _added(case, words, environment, place, rounds)


def cases(folder: Path) -> tuple[Case, ...]:
    """Both stores, each with a module that keeps its state itself and with one that leaves that to the store."""
    directory, bucket = f"file:{folder / 'store'}", f"s3://{BUCKET}"
    return (
        Case("directory store, local backend", directory, has_backend=True),
        Case("directory store as the backend", directory, has_backend=False),
        Case("S3 store, local backend", bucket, has_backend=True),
        Case("S3 store as the backend", bucket, has_backend=False),
    )


def _added(case: Case, words: tuple[str, ...], environment: dict[str, str], place: Path, rounds: int) -> Added:
    guarded = _module(place / "guarded", MODULE + (OWN if case.has_backend else ""))
    plain = _module(place / "plain", MODULE + OWN)
    bins = [f"--bin={word}" for word in words]
    apply = [STACKHOLD, "tf", "apply", str(guarded), "--stack", place.name, "--state", case.store, "--yes", *bins]
    by_hand = list(_steps(words, place / "plan"))
    measure(apply, environment)
    for step in ((*words, "init"), (*words, "apply", "-auto-approve")):
        measure(step, environment, folder=plain)
    pairs: list[tuple[Measured, Measured]] = []
    for number in range(rounds + 1):
        turns = [lambda: _in_turn(by_hand, environment, plain), lambda: measure_apart(apply, environment)]
        if number % 2:
            ours, theirs = turns[1](), turns[0]()
        else:
            theirs, ours = turns[0](), turns[1]()
        if number:  # the first round warms up
            pairs.append((theirs, ours))
    return Added(
        by_hand=statistics.median(theirs.wall for theirs, _ in pairs),
        wall=statistics.median(ours.wall - theirs.wall for theirs, ours in pairs),
        cpu=statistics.median(ours.cpu - theirs.cpu for theirs, ours in pairs),
        peak=statistics.median(ours.peak for _, ours in pairs),
    )


def _module(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "main.tf").write_text(text, encoding="utf-8")
    return folder


def _steps(words: tuple[str, ...], plan: Path) -> Iterator[tuple[str, ...]]:
    """The steps that an unchanged module comes to, as stackhold asks for them."""
    script = Script(Operation.APPLY, _WAIT_S, plan_file=str(plan), approval=Approval.PLAN)
    for step in (version_step(), *steps(script)):
        if step.when is When.ALWAYS:
            yield (*words, *step.args)


def _in_turn(commands: list[tuple[str, ...]], environment: dict[str, str], folder: Path) -> Measured:
    done = [measure(command, environment, folder=folder) for command in commands]
    return Measured(
        wall=sum(each.wall for each in done),
        cpu=sum(each.cpu for each in done),
        peak=max(each.peak for each in done),
    )


def table(emulator: emulators.Emulator, environment: dict[str, str], folder: Path, rounds: int) -> Iterator[str]:
    """The table's lines, one after the other as they are measured."""
    words = command_words(environment)
    if words is None:
        yield "no Terraform and no OpenTofu here: what the guard adds to them is not measured"
        return
    yield f"What the guard adds to an unchanged Terraform module, medians of {rounds} pairs"
    yield ""
    yield "| | by hand: wall s | added: wall s | added: CPU s | the runner's peak MB |"
    yield "|---|---|---|---|---|"
    for name, added in rows(words, emulator, folder, rounds):
        yield f"| {name} | {added.by_hand:.2f} | {added.wall:.2f} | {added.cpu:.2f} | {added.peak:.0f} |"
