"""Kills runner, runtime and provider of `stackhold tf apply` together, at moments that a seed chooses.

`python -m tests.terraform_faults.kill --count 100 --backend s3 --runtime tofu`. After the lock's expiry the next run
clears the state lock that was left when it is proved to be the dead run's, else reports it with its command, never
another's (some rounds put a foreign one there); and it names all that the cloud holds and the state does not know. Then
everything is resolved as the run said, and a last apply converges. Rounds mostly wait, so several are played at a time.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shlex
import signal
import sys
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from tests.faults.rounds import Outcome, options, play
from tests.runtimes.modules import PROVIDERS
from tests.runtimes.probe_server import Fault
from tests.terraform_faults.yard import (
    Plot,
    Stuck,
    descendants,
    members,
    runtime_named,
    session_of,
    wait_until,
    yard,
)

if TYPE_CHECKING:
    import argparse
    import subprocess

    from tests.terraform_faults.yard import Ended, Yard

FLAGS: Final = ("--lock-ttl", "6s", "--lock-renew", "1s", "--lock-timeout", "60s")
_NAMES: Final = ("a", "b", "c", "d", "e-0", "e-1")
_SPEEDS: Final = (0.0, 0.0, 0.1, 0.3, 0.8, 1.5)
_LONG_SPEEDS: Final = (5.0, 7.0, 9.0)
_LONG_SHARE: Final = 0.1
_CHANGE_SHARE: Final = 0.35
_FOREIGN_SHARE: Final = 0.2
_ANYWHERE_SHARE: Final = 0.2
_LAND_SECONDS: Final = 40.0
_IMPORT: Final = re.compile(r"import '([^']+)' '([^']+)'")
_BLOCK: Final = re.compile(r'(?=import \{\s+to = \S+\s+id = "([^"]+)")(import \{[^}]*\})')
_IMPORTS: Final = "imports.tf"


def module_text(*, kind: str, extra: bool) -> str:
    """Six things: two chains, and two made by count. Another kind replaces two of them; `extra` is one more."""
    more = 'resource "probe_thing" "f" {\n  name = "f"\n}\n' if extra else ""
    return f"""{PROVIDERS.replace('time  = { source = "hashicorp/time" }', "")}
resource "probe_thing" "a" {{
  name = "a"
}}
resource "probe_thing" "b" {{
  name = "b"
  kind = "{kind}"
}}
resource "probe_thing" "c" {{
  name  = "c"
  value = probe_thing.a.id
}}
resource "probe_thing" "d" {{
  name  = "d"
  kind  = "{kind}"
  value = "{kind}"
}}
resource "probe_thing" "e" {{
  count = 2
  name  = "e-${{count.index}}"
  value = count.index == 0 ? probe_thing.c.id : "{kind}"
}}
{more}"""


@dataclass
class Round:
    """One round on its plot."""

    plot: Plot
    chance: random.Random
    problems: list[str] = field(default_factory=list)
    ran: list[Ended] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def play(self) -> str:
        """Play it; how it went in a word."""
        plot, chance = self.plot, self.chance
        is_change = chance.random() < _CHANGE_SHARE
        plot.write(module_text(kind="plain", extra=False))
        if is_change:
            self._good("apply", "--yes")
            plot.write(module_text(kind="fancy", extra=True))
        self._slow_down()
        met = self._killed()
        plot.probe.clear_faults()
        self._landed()
        foreign = self._foreign_lock()
        before = plot.lock()
        how = self._recovered(before, foreign)
        self._settled("ab" + "cd" + ("f" if is_change else ""))
        return f"{'changing' if is_change else 'making'}, {met}: {how}"

    def _slow_down(self) -> None:
        self.is_long = self.chance.random() < _LONG_SHARE
        for name in (*_NAMES, "f"):
            for operation in ("create", "delete", "update"):
                speeds = _LONG_SPEEDS if self.is_long else _SPEEDS
                slow, done_first = self.chance.choice(speeds), self.chance.random() < 0.5
                if slow:
                    self.plot.probe.add(Fault(operation, name, slow=slow, done_first=done_first))

    def _killed(self) -> str:
        """Kill an apply at the moment that the seed chooses; what it met."""
        process = self.plot.start("apply", "--yes", *FLAGS)
        changes = self._changes()
        if self.chance.random() < _ANYWHERE_SHARE:
            met = "somewhere"
            after = self.chance.uniform(0, 5.0)
        else:
            met = "in its changes"
            count = self.chance.randrange(1, 5)
            after = self.chance.uniform(0, 22.0 if self.is_long else 1.0)
            with contextlib.suppress(Stuck):
                wait_until(lambda: process.poll() is not None or self._changes() >= changes + count, "changes")
        until = time.monotonic() + after
        while time.monotonic() < until and process.poll() is None:
            time.sleep(0.005)
        if process.poll() is not None:
            met = "over before"
        self._kill(process)
        self.ran.append(self.plot.end(process))
        return met

    def _kill(self, process: subprocess.Popen[str]) -> None:
        """Runner, runtime and providers at once: the runner must not see the others die, nor they have time to act."""
        with contextlib.suppress(ProcessLookupError):
            if process.poll() is None:
                os.kill(process.pid, signal.SIGSTOP)
        below = descendants(process.pid)
        sessions = {session_of(pid) for pid in below} - {session_of(process.pid), 0}
        for pid in (*below, process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while left := [pid for each in sessions for pid in members(each)]:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.plot.probe.end_providers()
        process.wait(30)

    def _changes(self) -> int:
        return sum(len(self.plot.probe.requests(operation)) for operation in ("create", "update", "delete"))

    def _landed(self) -> None:
        """Wait until all that was in flight has been carried out: the cloud finishes what it was asked."""

        def has_landed() -> bool:
            told = self.plot.probe.told()
            asked = Counter(request["operation"] for request in told["requests"])
            return bool(
                sum(told["created"].values()) >= asked["create"] and sum(told["deleted"].values()) >= asked["delete"]
            )

        wait_until(has_landed, "what was in flight", seconds=_LAND_SECONDS)

    def _foreign_lock(self) -> bool:
        """In some rounds another's lock is there when the next run comes."""
        if self.plot.backend != "s3" or self.chance.random() >= _FOREIGN_SHARE:
            return False
        lock = self.plot.lock() or {"Operation": "OperationTypeApply", "Path": f"states/{self.plot.key}", "Info": ""}
        is_later = self.chance.random() < 0.5
        who = lock.get("Who", "somebody@elsewhere") if is_later else "somebody@elsewhere"
        created = datetime.now(UTC).isoformat().replace("+00:00", "Z") if is_later else _LONG_AGO
        lock |= {"ID": str(uuid.uuid4()), "Who": who, "Created": created, "Version": "1.12.6"}
        self.plot.put(f"{self.plot.key}.tflock", json.dumps(lock).encode())
        return True

    def _recovered(self, before: dict[str, Any], foreign: bool) -> str:
        """Run again and hold that run to what it must do; then do as it says."""
        operation = self.chance.choice(("apply", "plan", "refresh"))
        ended = self._next(operation)
        how = "nothing was locked"
        if before:
            how = self._judge_lock(ended, before, foreign=foreign)
        elif ended.code:
            self.problems.append(f"the next run failed: {ended.told()}")
        self._judge_names(ended)
        if self.plot.lock():
            self._unlock_as_told(ended, before["ID"])
            ended = self._next(operation)
            if ended.code:
                self.problems.append(f"the run after the lock was cleared failed: {ended.told()}")
            self._judge_names(ended)
        self._resolve(ended)
        return how

    def _next(self, operation: str) -> Ended:
        yes = ("--yes",) if operation == "apply" else ()
        ended = self.plot.run(operation, *yes, *FLAGS)
        self.ran.append(ended)
        return ended

    def _judge_lock(self, ended: Ended, before: dict[str, Any], *, foreign: bool) -> str:
        after, lock_id = self.plot.lock(), before["ID"]
        if not after:
            if foreign:
                self.problems.append(f"another's lock {before} was cleared: {ended.told()}")
            if ended.code:
                self.problems.append(f"the next run failed: {ended.told()}")
            return "cleared"
        if after != before:
            self.problems.append(f"the lock {before} has become {after}")
        if ended.code != 1 or not re.search(rf"force-unlock .*{re.escape(lock_id)}", ended.said):
            self.problems.append(f"the lock {before} was not reported with its command: {ended.told()}")
        folders = list((self.plot.folder / "cache" / "stackhold" / "tf").glob("*/*"))
        if len(folders) > 1:
            self.problems.append(f"a run that only met a lock has kept a folder: {folders}")
        return "another's reported" if foreign else "reported"

    def _unlock_as_told(self, ended: Ended, lock_id: str) -> None:
        """Clear the lock by the very command that the run gave, which asks before it does so."""
        told = re.search(rf"^\s*(stackhold tf force-unlock .*{re.escape(lock_id)}.*)$", ended.said, re.MULTILINE)
        if told is None:
            self.problems.append(f"no command that clears the lock was given: {ended.told()}")
            self.plot.by_hand("force-unlock", "-force", lock_id)
            return
        done = self.plot.command_line(*shlex.split(told[1])[1:], "--yes")
        if done.code or self.plot.lock():
            self.problems.append(f"the lock cannot be cleared as told: {done.told()}")

    def unknown(self) -> dict[str, str]:
        """Per id of a thing that the state does not know, its address."""
        known = self.plot.ids()
        return {thing.id: _address_of(thing.name) for thing in self.plot.probe.things() if thing.id not in known}

    def _judge_names(self, ended: Ended) -> None:
        """All that the cloud holds and the state does not know is named, and nothing as unknown that it knows."""
        unknown, known = self.unknown(), self.plot.ids()
        self.counts["unknown"] += len(unknown)
        for identity, address in unknown.items():
            if not any(_names(line, address, identity) for line in ended.said.splitlines()):
                self.problems.append(f"{address} {identity} is not named: {ended.told()}")
            else:
                self.counts["named"] += 1
        told = [identity for _, identity in _IMPORT.findall(ended.said)]
        for identity in (*told, *(found[1] for found in _BLOCK.finditer(ended.said))):
            if identity in known:
                self.problems.append(f"{identity} is named and the state knows it: {ended.told()}")

    def _resolve(self, ended: Ended) -> None:
        """As the run says: take on what is still missing, and remove what has been made again."""
        missing = {address for address in map(_address_of, _NAMES) if address not in self.plot.ids().values()}
        blocks = {found[1]: found[2] for found in _BLOCK.finditer(ended.said)}
        told = {identity: address for address, identity in _IMPORT.findall(ended.said)}
        for identity, address in self.unknown().items():
            if address not in missing:
                self.plot.probe.remove_id(identity)
                continue
            missing.discard(address)
            if identity in told:
                self._imported(address, identity)
            elif identity in blocks:
                with (self.plot.module / _IMPORTS).open("a") as file:
                    file.write(f"{blocks[identity]}\n")
                self.counts["imported"] += 1
            else:
                self.plot.probe.remove_id(identity)

    def _imported(self, address: str, identity: str) -> None:
        done = self.plot.by_hand("import", address, identity)
        if done.returncode:
            self.problems.append(f"{address} {identity} cannot be taken on: {done.stdout}{done.stderr}")
        self.counts["imported"] += 1

    def _good(self, operation: str, *args: str) -> Ended:
        ended = self.plot.run(operation, *args, *FLAGS)
        self.ran.append(ended)
        if ended.code:
            self.problems.append(ended.told())
        return ended

    def _settled(self, names: str) -> None:
        """A last apply brings everything where the module wants it, once each, and leaves nothing behind."""
        plot = self.plot
        self._good("apply", "--yes")
        (plot.module / _IMPORTS).unlink(missing_ok=True)
        want = sorted([*names, "e-0", "e-1"])
        if plot.probe.names() != want:
            self.problems.append(f"there is {plot.probe.names()} instead of {want}: {self.ran[-1].told()}")
        if sorted(plot.ids()) != sorted(thing.id for thing in plot.probe.things()):
            self.problems.append(f"the state has {plot.ids()}, there is {plot.probe.things()}")
        if plot.lock() or plot.stored("lock.json").exists():
            self.problems.append("a lock is still there")
        left = [path.name for path in plot.module.iterdir() if path.name.startswith(("stackhold_", "errored"))]
        left += [str(path) for path in (plot.folder / "cache").rglob("*") if path.is_file()]
        if left:
            self.problems.append(f"left behind: {left}")
        if plot.probe.providers():
            self.problems.append("a provider is still at work")
        self.problems += [f"an error in our own code: {each.told()}" for each in self.ran if "Traceback" in each.err]


_LONG_AGO: Final = "2026-01-01T00:00:00Z"


def _address_of(name: str) -> str:
    return f"probe_thing.e[{name[2:]}]" if name.startswith("e-") else f"probe_thing.{name}"


def _names(line: str, address: str, identity: str) -> bool:
    return address in line and (identity in line or "may have been made" in line)


@dataclass
class Killing:
    """Rounds in one yard."""

    yard: Yard
    counts: Counter[str] = field(default_factory=Counter)

    def play(self, seed: int) -> Outcome:
        """One round."""
        with self.yard.plot() as plot:
            played = Round(plot, random.Random(seed))
            try:
                how = played.play()
            except Stuck as stuck:
                how = "stuck"
                played.problems.append(str(stuck))
            if played.problems and played.ran:
                played.problems += [f"ran: {each.told()}" for each in played.ran[:2]]
            self.counts.update(played.counts)
            return Outcome(seed, how, tuple(played.problems))


def main() -> int:
    """Play."""
    asked = _options().parse_args()
    began = time.monotonic()
    runtime = runtime_named(asked.runtime)
    prog = "python -m tests.terraform_faults.kill"
    with yard(runtime, asked.backend) as ground:
        killing = Killing(ground)

        def replay(seed: int) -> str:
            return f"{prog} --count 1 --seed {seed} --backend {asked.backend} --runtime {asked.runtime}"

        seeds = range(asked.seed, asked.seed + asked.count)
        well, counts = play(killing.play, seeds, at_once=asked.at_once, replay=replay)
    for how in sorted(counts):
        print(f"  {how}: {counts[how]}")
    print(f"  unknown to the state: {killing.counts['unknown']}, of these named: {killing.counts['named']}")
    print(f"  taken on as they were told to be: {killing.counts['imported']}")
    print(f"kill of all, {asked.runtime}, {asked.backend}: {well} of {asked.count}, {time.monotonic() - began:.0f} s")
    return 0 if well == asked.count else 1


def _options() -> argparse.ArgumentParser:
    parser = options("tests.terraform_faults.kill", count=100, at_once=6)
    parser.add_argument("--backend", choices=("own", "s3"), default="own")
    parser.add_argument("--runtime", choices=("tofu", "terraform", "embedded"), default="tofu")
    return parser


if __name__ == "__main__":
    sys.exit(main())
