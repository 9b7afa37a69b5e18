"""Which store `--state` names: a directory (`file:DIR`) or a bucket (`s3://BUCKET`).

The text that a user would type again is kept beside the meaning. In messages the default directory of the current
folder keeps its short name; a printed command must reach the same store from any folder, so there it is absolute.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from stackhold.model.user_info import without_user_info

DEFAULT_FOLDER = ".stackhold"
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")
_PREFIX = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*")


@dataclass(frozen=True, slots=True)
class DirectoryAddress:
    """A directory, absolute. `is_default`: it is `.stackhold` of the folder that the command runs in."""

    path: Path
    is_default: bool = False

    @property
    def url(self) -> str:
        """As a user of the current folder names it."""
        return "file:" + (DEFAULT_FOLDER if self.is_default else str(self.path))

    @property
    def url_anywhere(self) -> str:
        """As it is named from any folder."""
        return f"file:{self.path}"


@dataclass(frozen=True, slots=True)
class BucketAddress:
    """A bucket."""

    bucket: str

    @property
    def url(self) -> str:
        """As a user names it."""
        return f"s3://{self.bucket}"

    @property
    def url_anywhere(self) -> str:
        """The same from any folder."""
        return self.url


StoreAddress = DirectoryAddress | BucketAddress


def parse_store(text: str, *, base: Path, cwd: Path) -> StoreAddress:
    """The store that a text names; a relative directory starts at `base`. Raises `ValueError` with a sentence."""
    shown = without_user_info(text)
    if text.startswith("s3://"):
        bucket, _, rest = text.removeprefix("s3://").partition("/")
        if rest:
            raise ValueError(f"{shown!r} has a path after the bucket; give it with --state-prefix")
        if not _BUCKET.fullmatch(bucket):
            raise ValueError(f"{shown.removeprefix('s3://')!r} is no bucket name")
        return BucketAddress(bucket)
    folder = text.removeprefix("file:")
    if folder == text or not folder or "\0" in folder:
        raise ValueError(f"{shown!r} names no store; write file:DIR or s3://BUCKET")
    try:
        path = Path(folder.removeprefix("//") if folder.startswith("///") else folder).expanduser()
        absolute = (base / path).resolve()
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else _without_path(error)
        raise ValueError(f"{shown!r} names no directory: {reason}") from error
    return DirectoryAddress(absolute, is_default=absolute == _resolved(cwd / DEFAULT_FOLDER))


def _resolved(path: Path) -> Path:
    """Where a path leads, or the path itself where it leads nowhere."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path


def _without_path(error: Exception) -> str:
    """What a path that has no end, or a home that is not known, is called; `pathlib` says it in an odd way."""
    return "its symbolic links lead in a circle" if "loop" in str(error) else "there is no such home folder"


def parse_prefix(text: str) -> str:
    """The first part of every key; raises `ValueError` with a sentence."""
    if not _PREFIX.fullmatch(text):
        raise ValueError(f"{text!r} is no prefix: letters, digits, `.`, `_`, `-`, in parts between slashes")
    return text
