"""What the model is worth: each rule left out, one at a time, on a copy of the source, must break a promise.

A mutant is a list of replacements of source text. The text must be there, so that a mutant cannot quietly become
the product itself when the code changes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FOUND = re.compile(r"VIOLATION after (\d+) steps, seed (\d+): (.*)")


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement in a file below `src/stackhold`."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """A rule left out."""

    name: str
    rule: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the model made of a mutant."""

    mutant: Mutant
    steps: int
    seed: int
    violation: str
    """Empty when the mutant survived."""


_THERE = "there.version if isinstance(there := self._store.read({key}), Stored) else None"
_CLOCK = """
class _OtherClock:
    def __init__(self, clock: Clock) -> None:
        self.now, self.sleep, self.nonce, self.boot_id = clock.now, clock.sleep, clock.nonce, clock.boot_id
        self.boot = clock.{boot}


@dataclass(frozen=True, slots=True)
class RunParts:
"""


def _counting_on(boot: str) -> tuple[Edit, ...]:
    return (
        Edit("runs/parts.py", "\n@dataclass(frozen=True, slots=True)\nclass RunParts:\n", _CLOCK.format(boot=boot)),
        Edit("runs/parts.py", "        keys = Keys(", "        clock = _OtherClock(clock)\n        keys = Keys("),
    )


MUTANTS = (
    Mutant(
        "renews without comparing",
        "Renew by compare-and-swap",
        (
            Edit(
                "runs/lock.py",
                "written = self._store.write(self._keys.lock, data, expect=self._version)",
                f"written = self._store.write(self._keys.lock, data, expect={_THERE.format(key='self._keys.lock')})",
            ),
        ),
    ),
    Mutant(
        "releases whatever is there",
        "A delete that only succeeds on our version",
        (
            Edit(
                "runs/lock.py",
                "found = resolve.delete(self._store, self._keys.lock, expect=self._version, clock=self._clock)\n"
                "            if found is None:",
                f"found = resolve.delete(self._store, self._keys.lock, "
                f"expect=({_THERE.format(key='self._keys.lock')}) or self._version, clock=self._clock)\n"
                "            if found is None:",
            ),
        ),
    ),
    Mutant(
        "locks with equal bytes",
        "No two writes have equal bytes",
        (Edit("runs/lock.py", "        self._serial += 1\n        now", "        now"),),
    ),
    Mutant(
        "records with equal bytes",
        "No two writes have equal bytes",
        (
            Edit(
                "decide/record.py",
                "        lock_id=lock_id,\n        generation=generation,\n        serial=base.serial + 1,\n"
                "        last_modified=now,\n",
                "",
            ),
        ),
    ),
    Mutant(
        "acts without a stamp",
        "Every run stamps the record before its first call",
        (
            Edit(
                "runs/begin.py",
                "        expect = base.found.version if isinstance(base.found, Stored) else None\n",
                "        expect = base.found.version if isinstance(base.found, Stored) else None\n"
                "        if isinstance(base.found, Stored):\n"
                "            return Written(base.found.version, base.found.now)\n",
            ),
        ),
    ),
    Mutant(
        "judges age by its own clock",
        "Both times from the same GET: no laptop's clock matters",
        (Edit("runs/liveness.py", "store_now=found.now, boot", "store_now=clock.now(), boot"),),
    ),
    Mutant(
        "believes expiresAt",
        "Both times from the same GET: no laptop's clock matters",
        (
            Edit(
                "decide/lock.py",
                "        return held.silent_ms >= lock.ttl + CLOCK_SLACK\n",
                "        return lock.expires_at is not None and lock.expires_at < held.store_now\n",
            ),
        ),
    ),
    Mutant("counts the ttl on the wall clock", "The ttl counts on the boot clock", _counting_on("now")),
    Mutant("counts the ttl on a clock that sleep stops", "The ttl counts on the boot clock", _counting_on("awake")),
    Mutant(
        "counts the ttl from the answer",
        "From before sending the last confirmed write",
        (
            Edit(
                "runs/heartbeat.py",
                "                self._fence.confirm(sent_at)",
                "                self._fence.confirm(self._clock.boot())",
            ),
        ),
    ),
    Mutant(
        "stands down without a margin",
        "Stands down at ttl - 300 s",
        (
            Edit(
                "decide/fence.py",
                "stand_down_ms=ttl_ms - min(_LONGEST_BEFORE_STAND_DOWN, ttl_ms // 6)",
                "stand_down_ms=ttl_ms",
            ),
            Edit("decide/fence.py", "cut_ms=ttl_ms - min(_LONGEST_BEFORE_CUT, ttl_ms // 30)", "cut_ms=ttl_ms"),
        ),
    ),
    Mutant(
        "checks only before operations",
        "Checked directly before each call",
        (
            Edit(
                "runs/control.py",
                "        if cause is None:\n            return\n        if cause is StopCause.LOCK_LOST",
                "        if cause is not self:\n            return\n        if cause is StopCause.LOCK_LOST",
            ),
        ),
    ),
    Mutant(
        "stands up again",
        "Standing down is one-way",
        (Edit("decide/fence.py", "    return before\n", "    return Fence.OPEN\n"),),
    ),
    Mutant(
        "writes the run file without comparing",
        "run.json is written and deleted only by compare-and-swap",
        (
            Edit(
                "runs/run_file.py",
                "            encode_run_file(file),\n            expect=self._version,\n",
                f"            encode_run_file(file),\n            expect={_THERE.format(key='self._keys.run_file')},\n",
            ),
        ),
    ),
    Mutant(
        "writes the run file without the lock",
        "run.json is written and deleted only by a run that holds the lock",
        (
            Edit("runs/parts.py", "may_send=lambda: not control.is_lock_lost", "may_send=lambda: True"),
            Edit(
                "runs/settle.py",
                "if result is not None and self._is_ours() and not self.saver.failure:",
                "if result is not None and not self.saver.failure:",
            ),
        ),
    ),
    Mutant(
        "one entry per logical id",
        "One entry per physical identity",
        (
            Edit(
                "runs/run_file.py",
                "            intents=(*self._own, *self._carried),\n",
                "            intents=tuple({one.logical_id: one for one in (*self._carried, *self._own)}.values()),\n",
            ),
        ),
    ),
    Mutant(
        "forgets what it could not resolve",
        "A successor's run.json replaces the leftover and carries every unresolved entry on",
        (
            Edit(
                "runs/run_file.py",
                "            intents=(*self._own, *self._carried),\n",
                "            intents=self._own,\n",
            ),
        ),
    ),
    Mutant(
        "resolves what it could not look for",
        "run.json is deleted only when every entry is resolved in a confirmed save",
        (Edit("decide/intents.py", "identity_of(intent) in unknown_now or (may_land", "(may_land"),),
    ),
    Mutant(
        "keeps recorded what is gone",
        "A delete that is gone: drop it from the record",
        (
            Edit(
                "runs/recovery.py",
                "saver.save(recovery.changes)",
                'saver.save([one for one in recovery.changes if not type(one).__name__.startswith("Drop")])',
            ),
        ),
    ),
    Mutant(
        "drops an absent create at once",
        "An absent create found with a free lock stays until one ttl after it was first seen",
        (
            Edit(
                "decide/intents.py",
                "        may_land = not is_after_expiry and looked_at - since < ttl\n",
                "        may_land = False\n",
            ),
        ),
    ),
    Mutant(
        "takes a lock over by deleting it",
        "Takes over by compare-and-swap, never delete-then-create",
        (
            Edit(
                "runs/lock.py",
                "        expect = found.version if isinstance(found, Stored) else None\n        try:\n            wri",
                "        expect = None\n"
                "        there = lock._store.read(lock._keys.lock)\n"
                "        if isinstance(there, Stored) and isinstance(found, Stored):\n"
                "            resolve.delete(lock._store, lock._keys.lock, expect=there.version, clock=self._clock)\n"
                "        try:\n            wri",
            ),
        ),
    ),
    Mutant(
        "saves over a foreign write",
        "Apply only our unsaved changes to what is there now",
        (
            Edit(
                "runs/saver.py",
                "        self._confirmed = Confirmed(theirs, found.version)\n",
                "        self._confirmed = Confirmed(before, found.version)\n",
            ),
        ),
    ),
    Mutant(
        "leaves a late lock",
        "A run whose acquisition was ever unanswered reads the lock once after its release",
        (Edit("runs/lock.py", "            lock._was_unanswered = True\n", ""),),
    ),
)


def mutated(mutant: Mutant) -> dict[str, str]:
    """The text of each file that a mutant changes; raises `LookupError` when what it leaves out is not there once."""
    texts: dict[str, str] = {}
    for edit in mutant.edits:
        text = texts.get(edit.file) or (ROOT / "src" / "stackhold" / edit.file).read_text(encoding="utf-8")
        if text.count(edit.old) != 1:
            raise LookupError(f"{mutant.name}: {edit.file} has {text.count(edit.old)} times: {edit.old}")
        texts[edit.file] = text.replace(edit.old, edit.new)
    return texts


def try_out(mutant: Mutant, *, steps: int, seed: int) -> Verdict:
    """Play the model over a copy of the source with the rule left out."""
    with tempfile.TemporaryDirectory(prefix="stackhold-mutant-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        for file, text in mutated(mutant).items():
            (source / "stackhold" / file).write_text(text, encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "tests.model_protocol", "--steps", str(steps), "--seed", str(seed)]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if found := _FOUND.search(done.stdout):
        return Verdict(mutant, int(found[1]), int(found[2]), found[3])
    if done.returncode:
        raise RuntimeError(f"{mutant.name}: {done.stderr}")
    return Verdict(mutant, steps, seed, "")


def table(verdicts: list[Verdict]) -> str:
    """The verdicts, a line each."""
    width = max(len(verdict.mutant.name) for verdict in verdicts)
    return "\n".join(
        f"{verdict.mutant.name:{width}}  "
        + (f"seed {verdict.seed}, {verdict.steps} steps: {verdict.violation}" if verdict.violation else "SURVIVED")
        for verdict in verdicts
    )
