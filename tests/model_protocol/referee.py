"""What the protocol promises, checked at every write that reaches the store and every call that reaches the cloud.

The referee sees what really happens and the true time; no writer does. A broken promise is kept as a sentence, and
whoever plays the model looks for one after every step.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.model_protocol.cloud import Call, Cloud, Verb
from tests.model_protocol.writers import Role

from stackhold.decide.lock import FOREIGN_SILENCE

if TYPE_CHECKING:
    from tests.model_protocol.writers import Writer

    from stackhold.runs.layout import Keys

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Write:
    """What one write left in an object, and when."""

    no: int
    writer: Writer
    document: Document
    at: int


@dataclass(slots=True)
class Referee:
    """Watches one stack."""

    keys: Keys
    cloud: Cloud
    store_skew: int = 0
    """How far the store's clock is ahead of true time."""
    is_time_steady: bool = True
    """False once the clock of a directory's machine was set: how long a late call may take is not known then."""
    violations: list[str] = field(default_factory=list)
    current: dict[str, Write] = field(default_factory=dict)
    excused: set[str] = field(default_factory=set)
    """Physical ids that another tool dropped from the record: nobody promises those."""
    relisted: set[str] = field(default_factory=set)
    """Physical ids that another tool put into the record: they may be long gone."""
    lost_to: dict[str, Role] = field(default_factory=dict)
    """Which kind of writer ended another's lock, by the lock's id."""
    _writes: int = 0

    def complain(self, text: str) -> None:
        """Keep a violation."""
        self.violations.append(text)

    @property
    def lock(self) -> Document | None:
        """The lock as it is."""
        found = self.current.get(self.keys.lock)
        return None if found is None else found.document

    @property
    def recorded(self) -> set[str]:
        """The physical ids in the record as it is."""
        found = self.current.get(self.keys.record)
        return set() if found is None else ids(found.document)

    @property
    def intents(self) -> list[Document]:
        """The entries of the run file as it is."""
        found = self.current.get(self.keys.run_file)
        return [] if found is None else list(found.document["intents"])

    def read(self, writer: Writer, key: str) -> None:
        """Somebody reads an object."""
        if (found := self.current.get(key)) is not None:
            writer.seen.add(found.no)

    def told(self, writer: Writer, data: bytes | None) -> None:
        """The answer to a read of the lock reaches its sender."""
        if writer.role is Role.RUN and writer.has_stamped:
            found = None if data is None else json.loads(data).get("id")
            writer.was_told = writer.was_told or found != writer.lock_id

    def wrote(
        self, writer: Writer, key: str, data: bytes | None, *, now: int, is_late: bool = False, knew: bool = False
    ) -> None:
        """A write (or, without data, a delete) has been carried out."""
        before = self.current.get(key)
        after = None
        if data is not None:
            self._writes += 1
            after = Write(self._writes, writer, json.loads(data), now)
        if key == self.keys.lock:
            self._lock(writer, before, after, now=now, is_late=is_late)
        elif key == self.keys.record:
            self._record(writer, before, after)
        elif key == self.keys.run_file:
            self._run_file(writer, before, after, now=now, knew=knew)
        if before is not None and before.no not in writer.seen and writer.role is Role.RUN:
            self.complain(f"{writer.name} replaced a version of {key} that it had not read")
        if after is None:
            self.current.pop(key, None)
        else:
            writer.seen.add(after.no)
            self.current[key] = after

    def started(self, call: Call) -> None:
        """A run starts a call: it has checked at this very moment."""
        run = call.sender
        if run.is_foreign:
            return
        what = f"{run.name} started to {call.verb.value} {call.name}"
        if run.has_stood_down:
            self.complain(f"{what} after it had stood down")
        if call.verb is Verb.LOOK:
            return
        if not run.has_stamped:
            self.complain(f"{what} before its stamp")
        if not run.has_listed:
            self.complain(f"{what} before its run file")
        if (why := self._has_no_lock(run)) and not self._is_excused(run):
            self.complain(f"{what} although its lock was {why}")

    def landed(self, call: Call) -> None:
        """A call is carried out within its budget: nobody may have taken the lock over meanwhile."""
        run = call.sender
        if not run.is_foreign and not call.is_frozen and self.lost_to.get(run.lock_id or "") is Role.RUN:
            self.complain(f"{run.name}'s call to {call.verb.value} {call.name} landed after its lock was taken over")

    def settled(self) -> None:
        """Nobody is at work and nothing is on its way: everything that exists is known."""
        if not self.is_time_steady:
            return
        known = self.recorded | self.excused
        for intent in self.intents:
            known |= {str(intent[name]) for name in ("name", "physicalId") if name in intent}
        for thing in self.cloud.things.values():
            if thing.is_promised and thing.name not in known:
                self.complain(f"{thing.name} exists, and neither record nor run file knows it")

    def converged(self, run: Writer) -> None:
        """After a few quiet runs all is as it should be."""
        if not run.ending.startswith("succeeded"):
            self.complain(f"{run.name}, with nothing in its way, ended: {run.ending}")
        if self.intents:
            self.complain(f"the run file is left with {[identity(intent) for intent in self.intents]}")
        if ghosts := self.recorded - set(self.cloud.things):
            self.complain(f"recorded and not there: {', '.join(sorted(ghosts))}")
        if twins := set(self.cloud.things) - self.recorded:
            self.complain(f"there and not recorded: {', '.join(sorted(twins))}")

    def ended(self, run: Writer) -> None:
        """A run ended by itself and warned of nothing: it left no lock that it could have seen."""
        is_there = run.lock_id is not None and self.lock is not None and self.lock.get("id") == run.lock_id
        if is_there and not run.has_late_lock:
            self.complain(f"{run.name} ended and left its lock behind")

    def _has_no_lock(self, run: Writer) -> str:
        lock = self.lock
        if lock is not None and lock.get("id") == run.lock_id:
            return ""
        role = self.lost_to.get(run.lock_id or "")
        return f"ended by a {role.value}" if role is not None else "released, or never there"

    def _is_excused(self, run: Writer) -> bool:
        """A forced unlock, or another tool's release: only until the run learns of it."""
        return self.lost_to.get(run.lock_id or "") in {Role.UNLOCKER, Role.FOREIGN} and not run.was_told

    def _lock(self, writer: Writer, before: Write | None, after: Write | None, *, now: int, is_late: bool) -> None:
        held = None if before is None else before.document
        made = None if after is None else after.document
        if writer.role is Role.RUN and made is not None:
            writer.lock_id = made["id"]
        is_ended = held is not None and (made is None or made.get("id") != held.get("id"))
        if held is not None and is_ended and held.get("id") != writer.lock_id:
            self.lost_to[held.get("id") or ""] = writer.role
        if writer.role is not Role.RUN:
            return
        if held is None:
            if writer.has_stamped and not is_late:
                self.complain(f"{writer.name} created its lock again")
        elif held.get("id") == writer.lock_id and held.get("id") is not None:
            if made is not None and made["serial"] <= held["serial"]:
                self.complain(f"{writer.name} wrote its lock with serial {made['serial']} over {held['serial']}")
        elif made is None:
            self.complain(f"{writer.name} deleted a lock that is not its own")
        else:
            assert before is not None
            self._taken_over(writer, before, now=now)

    def _taken_over(self, writer: Writer, before: Write, *, now: int) -> None:
        held = before.document
        silent = now - before.at
        if "bootId" in held:
            clock = writer.host.clock
            is_live = held["bootId"] == clock.boot_id() and clock.boot() - held["bootMs"] < held["ttl"]
        elif "id" in held:
            is_live = silent < held["ttl"]
        else:
            record = self.current.get(self.keys.record)
            has_read_it = record is not None and record.no in writer.seen
            record_silent = now - record.at if record is not None and has_read_it else FOREIGN_SILENCE
            is_live = held["expiresAt"] >= now + self.store_skew or min(silent, record_silent) < FOREIGN_SILENCE
        if is_live:
            self.complain(f"{writer.name} took over the live lock of {before.writer.name}, silent for {silent} ms")

    def _record(self, writer: Writer, before: Write | None, after: Write | None) -> None:
        was = {} if before is None else before.document
        made = {} if after is None else after.document
        lost = ids(was) - ids(made) - self.cloud.gone - self.excused
        if writer.role is not Role.RUN:
            self.excused |= lost
            self.relisted |= ids(made) - ids(was)
            return
        if lost:
            self.complain(f"{writer.name} lost {', '.join(sorted(lost))} from the record")
        if after is None:
            return
        if made.get("serial", 0) <= was.get("serial", 0):
            self.complain(f"{writer.name} wrote serial {made.get('serial')} over {was.get('serial')}")
        if not writer.has_stamped and made.get("generation", 0) <= (was.get("generation") or 0):
            self.complain(f"{writer.name} stamped generation {made.get('generation')} over {was.get('generation')}")
        writer.has_stamped = True

    def _run_file(self, writer: Writer, before: Write | None, after: Write | None, *, now: int, knew: bool) -> None:
        if knew:
            self.complain(f"{writer.name} wrote the run file although it knew that its lock was lost")
        if after is not None:
            writer.has_listed = True
        kept = [] if after is None else [identity(intent) for intent in after.document["intents"]]
        for intent in [] if before is None else before.document["intents"]:
            if identity(intent) not in kept and (why := self._is_open(intent, now=now)):
                self.complain(f"{writer.name} dropped an intent of {intent['runId']}: {why}")

    def _is_open(self, intent: Document, *, now: int) -> str:
        """Why an intent must not be forgotten yet; empty when it may."""
        recorded = self.recorded
        if not self.is_time_steady:
            return ""
        if intent["kind"] == "create":
            name = intent["name"]
            if name in recorded or name in self.excused:
                return ""
            thing = self.cloud.things.get(name)
            if thing is not None and thing.is_promised:
                return f"{name} exists and is in no record"
            return f"{name} may still be created" if self.cloud.is_flying(name, Verb.CREATE, now=now) else ""
        name = intent["physicalId"]
        if intent["kind"] == "delete" and name in recorded - self.relisted:
            if name in self.cloud.gone - self.cloud.gone_abroad:
                return f"{name} is gone and still recorded"
            return (
                f"{name} may still be deleted and is recorded"
                if self.cloud.is_flying(name, Verb.DELETE, now=now)
                else ""
            )
        return ""


def ids(record: Document) -> set[str]:
    """All physical ids in a record."""
    found = {resource["physicalId"] for resource in record.get("resources", {}).values()}
    return found | {pending["resource"]["physicalId"] for pending in record.get("pendingDeletes", [])}


def identity(intent: Document) -> tuple[str, str]:
    """What an entry of a run file speaks of."""
    return intent["kind"], intent.get("name") or intent["physicalId"]
