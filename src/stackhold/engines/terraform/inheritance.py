"""What a run takes up from earlier ones that died: a state nobody could write, a leftover lock, unrecorded resources.

A state that a final write left in a file is pushed before anything is planned, or the plan would make everything in
it again. A leftover lock is cleared only when the dead run's notes and stream prove it to be that run's.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stackhold.engines.terraform import salvage
from stackhold.engines.terraform.evidence import STREAMS, redact_dumps
from stackhold.engines.terraform.leftovers import proves, why_not
from stackhold.engines.terraform.lock_words import held_by
from stackhold.engines.terraform.places import backend_digest
from stackhold.engines.terraform.state_document import recorded_ids, unrecorded
from stackhold.engines.terraform.state_facts import renumbered
from stackhold.engines.terraform.steps import force_unlock_step, push_step, state_pull_step, without_waiting
from stackhold.errors import CloudError, InputError
from stackhold.model.events import Event, EventKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stackhold.engines.terraform.leftovers import Evidence
    from stackhold.engines.terraform.lock_info import LockInfo
    from stackhold.engines.terraform.state_document import Unrecorded
    from stackhold.engines.terraform.steps import Script, Step
    from stackhold.engines.terraform.taking import StepEnd, Workshop

_MOST_NAMED: Final = 10


@dataclass(slots=True)
class Inheritance:
    """What earlier runs left, for one run."""

    workshop: Workshop
    script: Script
    left: Sequence[Evidence]
    take: Callable[[Step], StepEnd]
    notes: list[str] = field(default_factory=list)
    unrecorded: list[Unrecorded] = field(default_factory=list)
    is_settled: bool = False
    """Whether nothing of it is open any more."""
    must_keep_streams: bool = False
    """Whether a stream holds what is nowhere else."""
    _has_looked: bool = False

    def take_up_state(self, *, is_again: bool = False) -> None:
        """Push a state that a final write left in a file; name what no state knows.

        Raises `CloudError` when it cannot be pushed: to plan without it would make everything in it again.
        """
        for file in self._errored():
            self._take_up(file)
        if not is_again and self.left:
            self._name_unrecorded()

    def keep_emergency(self, state: bytes) -> None:
        """Keep a state that the runtime could write only into its stream; there it stays if nothing else will."""
        try:
            kept = salvage.keep_emergency(state, self.workshop.module, self.workshop.streams.parent)
        except (OSError, InputError) as error:
            self.must_keep_streams = True
            self.notes.append(
                f"the state could be written nowhere ({error}); it is in the stream, in {self.workshop.streams}, from "
                "which the next run takes it"
            )
            return
        self.notes.append(
            f"the state could be written nowhere and was kept in {kept}; it is pushed before the next plan"
        )

    def renumbered_push(self, step: Step) -> Step:
        """The push of a backup whose serial is above that of the state: no plan saved before applies then."""
        backup = Path(self.script.backup)
        data, current = backup.read_bytes(), self._pulled()
        serials = [salvage.serial_of(each)[1] for each in (data, current) if each is not None]
        copy = self.workshop.streams.parent / "backup.tfstate"
        copy.touch(mode=0o600)
        copy.write_bytes(renumbered(data, serial=max(serials) + 1))
        return replace(step, args=(*step.args[:-1], str(copy)))

    def rescue(self) -> None:
        """Keep a state that could not be written for its owner alone; out of an overlay, which goes when the run ends.

        Raises `InputError` when it cannot be read.
        """
        workshop = self.workshop
        file = salvage.errored_in(workshop.directory)
        if file is None:
            return
        if workshop.directory == workshop.module:
            self.notes.append(f"the state could not be written and is in {file}; the next run takes it up")
            return
        state = salvage.read_errored(file)
        if state is not None:
            self.keep_emergency(state)
            file.unlink()

    def _keep_dead_ones(self, evidence: Evidence, state: bytes) -> None:
        """Raises `CloudError` when it can be kept nowhere: a plan without it would make what it holds again."""
        streams = Path(evidence.note.workdir) / STREAMS
        try:
            salvage.keep_emergency(state, self.workshop.module, self.workshop.streams.parent)
        except OSError as error:
            raise CloudError(
                f"the state that the run {evidence.note.run_id} could write nowhere is in its stream ({streams}), and "
                f"it cannot be written to a file: {error.strerror}",
                hint="Nothing was planned, since a plan without it would make what it holds again. Make room, and run "
                "the same again.",
            ) from error
        redact_dumps(streams)

    def _errored(self) -> Sequence[Path]:
        """Every file with a state of this module that could not be written: in the module, or in an overlay of it.

        A state that is only in the stream of a dead run becomes such a file first.
        """
        workshop = self.workshop
        for each in self.left:
            if each.emergency_state is not None:
                self._keep_dead_ones(each, each.emergency_state)
        former = {Path(each.note.directory) for each in self.left if each.note.directory}
        overlays = {workshop.directory, *former} - {workshop.module}
        found = [*salvage.find_errored(workshop.module, workshop.streams.parent)]
        return [*found, *(file for each in sorted(overlays) if (file := salvage.errored_in(each)) is not None)]

    def take_first_locked(self, step: Step) -> StepEnd:
        """Take a step that waits for the state lock, without waiting for one that a dead run of ours has left."""
        if self._has_looked or not self.left:
            end = self.take(step)
            self.is_settled = self.is_settled or end.lock is None
            return end
        self._has_looked = True
        end = self.take(without_waiting(step))
        if end.lock is None:
            self.is_settled = True
            return end
        if not self._cleared(end.lock):
            return self.take(step)
        self.is_settled = True
        return self.take(step)

    def _cleared(self, lock: LockInfo) -> bool:
        backend = backend_digest(self.workshop.directory, self.workshop.env)
        owner = next((each for each in self.left if proves(each, lock, backend=backend)), None)
        if owner is None:
            reasons = "; ".join(dict.fromkeys(why_not(each, lock, backend=backend) for each in self.left))
            command = shlex.join((*self.workshop.command, "force-unlock", lock.id))
            self.notes.append(
                f"{held_by(lock)}; it is not cleared, since it is not proved to be of a run of stackhold that died "
                f"({reasons}). Once its holder is certainly gone: {command} (in {self.workshop.directory})"
            )
            return False
        end = self.take(force_unlock_step(lock.id))
        if not end.is_good:
            self.notes.append(
                f"the leftover state lock {lock.id} could not be cleared: {end.child.stderr.strip()[:200]}"
            )
            return False
        self.notes.append(f"cleared the state lock {lock.id}, which the run {owner.note.run_id} had left behind")
        return True

    def _take_up(self, file: Path) -> None:
        """Push a state that was left, or put it aside when the backend's has gone on since."""
        data = salvage.read_errored(file)
        current = self._pulled()
        if data is None:
            return
        match salvage.standing(data, current):
            case salvage.Standing.NEWER:
                self._push(file)
            case salvage.Standing.SAME:
                file.unlink(missing_ok=True)
            case salvage.Standing.OLDER:
                self._put_aside(file, data, current or b"")
            case salvage.Standing.OTHER:
                raise CloudError(
                    f"{file} holds a state that an earlier run could not write, and it is of another line than the one "
                    "that the backend has",
                    hint="Nothing was planned, since a plan without it might make what it holds again. Look at both, "
                    "and push the right one or move the file away.",
                )

    def _push(self, file: Path) -> None:
        step = push_step(self.script, str(file), force=False)
        self.workshop.host.note(step.name)
        end = self.take_first_locked(step)
        if not end.is_good:
            raise CloudError(
                f"{file} holds a state that an earlier run could not write, and it cannot be pushed: "
                f"{held_by(end.lock) if end.lock else end.child.stderr.strip()[:300] or f'exit {end.child.exit_code}'}",
                hint="Nothing was planned, since a plan without it would make what it holds again. Run the same again.",
            )
        file.unlink(missing_ok=True)
        self.notes.append(f"took up the state that an earlier run could not write ({file.name})")

    def _put_aside(self, file: Path, data: bytes, current: bytes) -> None:
        aside = file.with_name(f"{file.name}.{salvage.serial_of(data)[1]}")
        file.rename(aside)
        known = recorded_ids(current)
        lost = [
            f"{address} {', '.join(sorted(ids - known.get(address, frozenset())))}"
            for address, ids in recorded_ids(data).items()
            if ids - known.get(address, frozenset())
        ]
        holds = f"; only it knows {'; '.join(lost)}" if lost else ""
        self.notes.append(f"the backend's state has gone on since {file.name} was left; it is kept as {aside}{holds}")

    def _pulled(self) -> bytes | None:
        """The state that the backend has; None when it has none. Raises `CloudError`."""
        end = self.take(state_pull_step())
        if not end.is_good:
            raise CloudError(
                f"the state cannot be read: {end.child.stderr.strip()[:300] or f'exit {end.child.exit_code}'}",
                hint="Nothing was changed. Run the same again.",
            )
        return end.output if end.output.strip() else None

    def _name_unrecorded(self) -> None:
        touched = [each for evidence in self.left for each in evidence.touched]
        if not any(each.action == "create" for each in touched):
            return
        try:
            self.unrecorded.extend(unrecorded(touched, recorded_ids(self._pulled() or b"")))
        except (InputError, CloudError) as error:
            self.notes.append(f"what an earlier run may have made without recording it cannot be told: {error.message}")
        if self.unrecorded:
            self._warn()

    def _warn(self) -> None:
        """At once, since somebody may be asked soon whether to make it all again."""
        addresses = list(dict.fromkeys(each.address for each in self.unrecorded))
        more = f" and {len(addresses) - _MOST_NAMED} more" if len(addresses) > _MOST_NAMED else ""
        names = f"{', '.join(addresses[:_MOST_NAMED])}{more}"
        message = (
            f"an earlier run was killed before the state knew of {names}: a plan makes that again unless it is taken "
            "on before; how is said at the end"
        )
        host = self.workshop.host
        host.tell(Event(EventKind.WARNING, host.clock.now(), None, message))
