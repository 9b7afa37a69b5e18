"""Where each object of a stack lies in a store: every key is made here, and nowhere else.

Names were validated when they became a `StackName` or a `Region`, so no key can leave its prefix. The layout is
shared with cdkd: a bucket that it uses is read with `--state-prefix cdkd`.

Terraform stacks lie below the same prefix in a folder of their own, `tf`, with the workspace in place of the region:
`terraform_prefix` is the prefix of all of them. A stack of AWS may be called `tf` all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackhold.errors import InputError
from stackhold.model.ids import region_name, stack_name, workspace_name
from stackhold.model.instant import iso

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackhold.model.ids import Region, RunId, StackName
    from stackhold.model.instant import Instant
    from stackhold.ports.store import Entry

DEFAULT_PREFIX = "stackhold"
INDEX = "_index"
RECORD = "state.json"
LOCK = "lock.json"
RUN_FILE = "run.json"
JOURNAL = "rollback-journal.json"
STOP_REQUEST = "stop-request.json"
BACKUPS = "backups/"
EVENTS = "events/"
STATE_VERSIONS = "terraform/"
TERRAFORM = "tf"
_FILES = frozenset({RECORD, LOCK, RUN_FILE, JOURNAL, STOP_REQUEST})


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one stack in one region, or of one Terraform stack in one workspace."""

    prefix: str
    stack: StackName
    region: Region

    @property
    def is_terraform(self) -> bool:
        """Whether it is a Terraform stack, whose `region` is its workspace."""
        return _is_terraform(self.prefix)

    @property
    def root(self) -> str:
        """What every key of this stack starts with, slash included."""
        return f"{self.prefix}/{self.stack}/{self.region}/"

    @property
    def record(self) -> str:
        """The state record."""
        return self.root + RECORD

    @property
    def lock(self) -> str:
        """The lock; absent when nobody holds it."""
        return self.root + LOCK

    @property
    def run_file(self) -> str:
        """The run in progress: its plan and intents."""
        return self.root + RUN_FILE

    @property
    def journal(self) -> str:
        """What `rollback` reads after a run that did not settle."""
        return self.root + JOURNAL

    @property
    def stop_request(self) -> str:
        """Asks the holder named in it to stop."""
        return self.root + STOP_REQUEST

    @property
    def backups(self) -> str:
        """The prefix of all backups."""
        return self.root + BACKUPS

    def backup(self, at: Instant, serial: int) -> str:
        """One former record: sorts by time, then by serial."""
        stamp = iso(at).replace("-", "").replace(":", "").replace(".", "")
        return f"{self.backups}{stamp}-{serial:08d}.json"

    @property
    def events(self) -> str:
        """The prefix of all run logs."""
        return self.root + EVENTS

    def event(self, run_id: RunId) -> str:
        """The log of one run, live or finished; run ids sort by time."""
        return f"{self.events}{run_id}.json"

    @property
    def state_versions(self) -> str:
        """The prefix of all versions of a Terraform state."""
        return self.root + STATE_VERSIONS

    def state_version(self, sequence: int) -> str:
        """One version of a Terraform state, counted from 1."""
        return f"{self.state_versions}{sequence:08d}.tfstate"


def exports_key(prefix: str, region: Region) -> str:
    """The exports index of one region."""
    return f"{prefix}/{INDEX}/{region}/exports.json"


def check_prefix(text: str) -> str:
    """Check `--state-prefix` before it becomes part of keys and paths; raises `InputError`."""
    parts = text.split("/")
    if not text or any(part in {"", ".", ".."} or not part.isprintable() or "\\" in part for part in parts):
        raise InputError(
            f"{text!r} is no state prefix: parts of printable characters between slashes, none of them '.' or '..'",
            hint="Leave --state-prefix out, or give a plain name such as stackhold.",
        )
    if _is_terraform(text):
        raise InputError(
            f"{text!r} is no state prefix: the Terraform stacks of the prefix before /{TERRAFORM} are there",
            hint=f"Give a prefix that does not end in /{TERRAFORM}.",
        )
    return text


def terraform_prefix(prefix: str) -> str:
    """The prefix of the Terraform stacks beside the stacks of a prefix."""
    return f"{prefix}/{TERRAFORM}"


def every_prefix(prefix: str) -> tuple[str, str]:
    """The prefix of the stacks of AWS and that of the Terraform stacks beside them; either of them may be given."""
    own = prefix.removesuffix(f"/{TERRAFORM}")
    return own, terraform_prefix(own)


def stacks_prefix(prefix: str) -> str:
    """What to list to see every stack of a prefix."""
    return f"{prefix}/"


def parse_key(prefix: str, key: str) -> tuple[Keys, str] | None:
    """The stack that a key belongs to and the rest of the key (`state.json`, `events/…`); None for anything else."""
    if not key.startswith(stacks_prefix(prefix)):
        return None
    parts = key[len(prefix) + 1 :].split("/", 2)
    if len(parts) != 3 or not parts[2]:
        return None
    stack, place, rest = parts
    if stack == TERRAFORM and not _is_terraform(prefix) and not _is_beside_record(rest):
        return None
    try:
        where = workspace_name(place) if _is_terraform(prefix) else region_name(place)
        return Keys(prefix, stack_name(stack), where), rest
    except InputError:
        return None


def _is_terraform(prefix: str) -> bool:
    """Whether a prefix is that of Terraform stacks."""
    return prefix.endswith(f"/{TERRAFORM}")


def _is_beside_record(rest: str) -> bool:
    """Whether this is an object of a stack in a region, not of a Terraform stack that is called as the region is."""
    return rest in _FILES or rest.startswith((BACKUPS, EVENTS))


def stacks(prefix: str, entries: Iterable[Entry]) -> Mapping[Keys, Mapping[str, Entry]]:
    """Sort a listing of `stacks_prefix(prefix)` by stack: per stack its objects by the rest of their key.

    Foreign objects (the index, other tools' folders with other names) are left out.
    """
    found: dict[Keys, dict[str, Entry]] = {}
    for entry in entries:
        parsed = parse_key(prefix, entry.key)
        if parsed is not None:
            keys, rest = parsed
            found.setdefault(keys, {})[rest] = entry
    return found
