"""Every setting of the command line, and where its value came from.

Flag before our own variable before `stackhold.toml` before a variable of AWS before the built-in default: what a
project says of itself counts more than what a shell says of every tool. Each value keeps its source, so that an error
can name it. Environment and folder are handed in; the only file read is `stackhold.toml`.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from stackhold.cli.durations import parse_duration
from stackhold.cli.store_address import DEFAULT_FOLDER, StoreAddress, parse_prefix, parse_store
from stackhold.errors import InputError, PolicyInvalid
from stackhold.model.ids import region_name
from stackhold.model.instant import MINUTE, SECOND, Millis, Span, words
from stackhold.ports.named_file import Unreadable, read_named_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from stackhold.model.ids import Region

T = TypeVar("T")

FILE_NAME = "stackhold.toml"
_MAX_BYTES = 1024 * 1024
_MAX_NUMBER = 10**18
TAGS = "tags"
DEFAULT_STORE = "file:.stackhold"
DEFAULT_DEADLINE = Millis(3600 * SECOND)
DEFAULT_GRACE = Millis(600 * SECOND)
DEFAULT_LOCK_TTL = Millis(30 * MINUTE)
DEFAULT_LOCK_RENEW = Millis(2 * MINUTE)
DEFAULT_STOP_POLL = Millis(15 * SECOND)

ENVIRONMENT: Mapping[str, tuple[str, ...]] = {
    "state": ("STACKHOLD_STATE",),
    "state_prefix": ("STACKHOLD_STATE_PREFIX",),
    "region": ("STACKHOLD_REGION", "AWS_REGION", "AWS_DEFAULT_REGION"),
    "profile": ("STACKHOLD_PROFILE", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"),
    "deadline": ("STACKHOLD_DEADLINE",),
    "lock_timeout": ("STACKHOLD_LOCK_TIMEOUT",),
    "grace": ("STACKHOLD_GRACE",),
    "lock_ttl": ("STACKHOLD_LOCK_TTL",),
    "lock_renew": ("STACKHOLD_LOCK_RENEW",),
    "stop_poll": ("STACKHOLD_STOP_POLL",),
    "allow_network_dir": ("STACKHOLD_ALLOW_NETWORK_DIR",),
}
"""The variables of each setting, the first one set wins; an empty one counts as not set. Those of AWS, which are no
word on this project, come after `stackhold.toml`."""
_OURS = "STACKHOLD_"


@dataclass(frozen=True, slots=True)
class Setting(Generic[T]):
    """A value and how it was set; an empty source is the built-in default."""

    value: T
    source: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """What one command runs with. `lock_timeout` is None where the command's own rule decides."""

    store: Setting[StoreAddress]
    state_prefix: Setting[str]
    region: Setting[str | None]
    profile: Setting[str | None]
    deadline: Span
    lock_timeout: Span | None
    grace: Span
    lock_ttl: Span
    lock_renew: Span
    stop_poll: Span
    allow_network_dir: bool
    tags: dict[str, str] | None = None
    """Of every resource, where no flag says otherwise; None where the file has no `[tags]`."""
    workspace: Region | None = None
    """For a Terraform stack: the workspace, which stands where other stacks have their region."""


def load_settings(flags: Mapping[str, str | None], *, environ: Mapping[str, str], cwd: Path) -> Settings:
    """Put the settings together; raises `InputError` naming the source of a value that cannot be used.

    `flags` are texts by setting name; None or absent where the flag was not given.
    """
    path = find_file(cwd)
    content = read_file(path) if path else {}
    tags = content.pop(TAGS, None)
    file = {name: _file_text(path, name, value) for name, value in _known(path, content)} if path else {}
    sources = _Sources(flags=flags, environ=environ, file=file, path=path)
    file_base = path.parent if path else cwd

    def store(text: str, source: str) -> StoreAddress:
        return parse_store(text, base=file_base if path and source == str(path) else cwd, cwd=cwd)

    def span(name: str, default: Millis) -> Span:
        found = sources.find(name, lambda text, _: parse_duration(text))
        return Span(found.value, found.source) if found else Span(default)

    ttl, renew = span("lock_ttl", DEFAULT_LOCK_TTL), span("lock_renew", DEFAULT_LOCK_RENEW)
    grace = span("grace", DEFAULT_GRACE)
    stop_poll = span("stop_poll", DEFAULT_STOP_POLL)
    _check_lock_times(ttl=ttl, renew=renew, grace=grace)
    _check_positive("interval of looking for a stop request", stop_poll)
    wait = sources.find("lock_timeout", lambda text, _: parse_duration(text))
    return Settings(
        store=sources.find("state", store) or _default_store(cwd),
        state_prefix=sources.find("state_prefix", lambda text, _: parse_prefix(text)) or Setting("stackhold"),
        region=_optional(sources.find("region", lambda text, _: _parse_region(text))),
        profile=_optional(sources.find("profile", lambda text, _: text)),
        deadline=span("deadline", DEFAULT_DEADLINE),
        lock_timeout=Span(wait.value, wait.source) if wait else None,
        grace=grace,
        lock_ttl=ttl,
        lock_renew=renew,
        stop_poll=stop_poll,
        allow_network_dir=_truth(sources.find("allow_network_dir", lambda text, _: _parse_bool(text))),
        tags=None if tags is None else _file_tags(path, tags),
    )


def find_file(cwd: Path) -> Path | None:
    """The nearest `stackhold.toml`, in the folder itself or above it, whatever it is: one that is no file is not
    passed over."""
    for folder in (cwd, *cwd.parents):
        candidate = folder / FILE_NAME
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            candidate.lstat()
            return candidate
    return None


def read_file(path: Path) -> dict[str, Any]:
    """What a file says; raises `InputError` naming it."""
    import tomllib

    try:
        return tomllib.loads(read_named_file(path, limit=_MAX_BYTES).decode("utf-8-sig"))
    except Unreadable as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    except ValueError as error:
        raise InputError(f"{path} is not valid TOML: {error}") from error
    except RecursionError as error:
        raise InputError(f"{path} is not valid TOML: it is nested too deeply") from error


def _default_store(cwd: Path) -> Setting[StoreAddress]:
    try:
        return Setting(parse_store(f"file:{DEFAULT_FOLDER}", base=cwd, cwd=cwd))
    except ValueError as error:
        raise InputError(f"the default store: {error}", hint="Name another with --state.") from error


def flag_name(setting: str) -> str:
    """The flag of a setting: `--lock-timeout` for `lock_timeout`."""
    return "--" + setting.replace("_", "-")


def _check_lock_times(*, ttl: Span, renew: Span, grace: Span) -> None:
    """A holder needs two chances to renew before it must stand down; a grace of nothing could save nothing."""
    if not 0 < renew.ms * 2 < ttl.ms:
        raise PolicyInvalid(
            f"the lock's renewal interval ({_span_words(renew)}) must be below half of its ttl ({_span_words(ttl)})",
            hint="Lower --lock-renew or raise --lock-ttl.",
        )
    _check_positive("grace", grace)


def _check_positive(name: str, span: Span) -> None:
    if span.ms <= 0:
        raise PolicyInvalid(f"the {name} ({_span_words(span)}) must be longer than nothing")


def _span_words(span: Span) -> str:
    return f"{words(span.ms)}, {f'from {span.source}' if span.source else 'the built-in default'}"


@dataclass(frozen=True, slots=True)
class _Sources:
    flags: Mapping[str, str | None]
    environ: Mapping[str, str]
    file: Mapping[str, str]
    path: Path | None

    def find(self, name: str, parse: Callable[[str, str], T]) -> Setting[T] | None:
        """The value from the first source that has it, parsed; None when no source has it."""
        for text, source in self._candidates(name):
            try:
                return Setting(parse(text, source), source if source != str(self.path) else f"{name} in {source}")
            except ValueError as error:
                raise InputError(
                    f"{source}: {name}: {error}" if source == str(self.path) else f"{source}: {error}"
                ) from error
        return None

    def _candidates(self, name: str) -> list[tuple[str, str]]:
        found = []
        flag = self.flags.get(name)
        if flag is not None:
            found.append((flag, flag_name(name)))
        variables = [(self.environ[each], each) for each in ENVIRONMENT[name] if self.environ.get(each)]
        found.extend(each for each in variables if each[1].startswith(_OURS))
        if name in self.file:
            found.append((self.file[name], str(self.path)))
        found.extend(each for each in variables if not each[1].startswith(_OURS))
        return found[:1]


def _optional(found: Setting[str] | None) -> Setting[str | None]:
    return Setting(found.value, found.source) if found else Setting(None)


def _truth(found: Setting[bool] | None) -> bool:
    return found.value if found else False


def _parse_region(text: str) -> str:
    try:
        return region_name(text)
    except InputError as error:
        raise ValueError(f"{error.message}; one is called such as eu-west-1") from error


def _parse_bool(text: str) -> bool:
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off"):
        return False
    raise ValueError(f"{text!r} is neither true nor false")


def _known(path: Path, content: Mapping[str, Any]) -> list[tuple[str, Any]]:
    for name in content:
        if name.replace("-", "_") not in ENVIRONMENT:
            known = ", ".join(sorted([*ENVIRONMENT, TAGS]))
            raise InputError(f"{path}: {name} is no setting; known are {known}")
    return [(name.replace("-", "_"), value) for name, value in content.items()]


def _file_text(path: Path, name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) > _MAX_NUMBER:
        raise InputError(f"{path}: {name} is a number beyond all measure")
    if isinstance(value, str | int | float):
        return str(value)
    raise InputError(f"{path}: {name} must be text or a number")


def _file_tags(path: Path | None, value: object) -> dict[str, str]:
    if isinstance(value, dict) and all(isinstance(each, str) for each in value.values()):
        return dict(value)
    raise InputError(f"{path}: [{TAGS}] must be a table of texts")
