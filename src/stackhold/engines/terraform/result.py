"""The result document: what a run of the runner came to, in at most 4096 bytes of JSON.

It is the run's record where there is no store, and has to fit a container's termination message. What does not fit is
dropped, the least important first; it always parses.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from stackhold.engines.terraform.diagnostics import SUMMARY_LIMIT, cut
from stackhold.engines.terraform.planfile import DRIFT_LISTED, DriftSummary, PlannedChange, PlanSummary
from stackhold.engines.terraform.stream_summary import Changes
from stackhold.errors import Bug, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

RESULT_VERSION: Final = 1
RESULT_LIMIT: Final = 4096
PLAN_LISTED: Final = 50
STEPS_KEPT: Final = 64
_LARGEST: Final = 10**12
_CHANGE_COUNTS: Final = {"add": "add", "change": "change", "destroy": "destroy", "import": "import_"}
_DRIFT_COUNTS: Final = {"create": "create", "update": "update", "replace": "replace", "delete": "delete"}
_PLAN_COUNTS: Final = {
    **_DRIFT_COUNTS,
    "import": "import_",
    "move": "move",
    "forget": "forget",
    "outputChanges": "output_changes",
}


class FailureKind(StrEnum):
    """Why a run did not succeed."""

    IMAGE_LAYOUT = "image-layout"
    STEP = "step"
    INTERRUPTED = "interrupted"
    BLOCKED = "blocked"
    PLAN_CHANGED = "plan-changed"


@dataclass(frozen=True, slots=True)
class Image:
    """Where module and providers came from."""

    ref: str = ""
    providers_mirror: str = ""


@dataclass(frozen=True, slots=True)
class RuntimeUsed:
    """Which runtime carried the steps out."""

    command: str
    version: str = ""


@dataclass(frozen=True, slots=True)
class StepDone:
    """One step that was taken. `exit` is negative for a signal."""

    name: str
    exit: int
    seconds: int


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong. `tail` is a curated summary of at most 512 bytes."""

    kind: FailureKind
    step: str = ""
    tail: str = ""


@dataclass(frozen=True, slots=True)
class ResultDocument:
    """All of it. What is None was not done, or was dropped to make it fit."""

    op: str
    image: Image | None = None
    runtime: RuntimeUsed | None = None
    steps: tuple[StepDone, ...] = ()
    drift: DriftSummary | None = None
    error: Failure | None = None
    changes: Changes | None = None
    plan: PlanSummary | None = None


def encode(document: ResultDocument) -> bytes:
    """The document as JSON, at most RESULT_LIMIT bytes whatever is in it.

    Dropped in this order, as far as needed: changes, the error's tail, the ends of the lists of plan and drift, the
    oldest steps, what names image and runtime. Digest and counts stay.
    """
    fields = _fields(document)
    for _ in _ever_smaller(fields):
        data = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
        if len(data) <= RESULT_LIMIT:
            return data
    raise Bug("a result document cannot be made to fit")


def decode(data: bytes) -> ResultDocument:
    """The document that `encode` wrote. Raises InputError for anything else."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError("the result document is not JSON") from error
    if not isinstance(found, dict) or found.get("version") != RESULT_VERSION:
        raise InputError(f"this is no result document of version {RESULT_VERSION}")
    try:
        return _document(found)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError("the result document is not of the shape that its version has") from error


def _ever_smaller(fields: dict[str, Any]) -> Iterator[None]:
    """Makes `fields` smaller, the least important first, and stops after each piece that is gone."""
    yield
    fields.pop("changes", None)
    yield
    error = fields["error"]
    if error is not None:
        error.pop("tail", None)
        yield
    lists = [fields[part]["resources"] for part in ("plan", "drift") if part in fields]
    while any(lists):
        max(lists, key=len).pop()
        yield
    while fields["steps"]:
        fields["steps"].pop(0)
        yield
    for name in ("image", "runtime"):
        fields.pop(name, None)
        yield


def _fields(document: ResultDocument) -> dict[str, Any]:
    """The document as it is written, with no text longer and no number larger than the format has room for."""
    image, runtime, error = document.image, document.runtime, document.error
    changes, plan, drift = document.changes, document.plan, document.drift
    fields: dict[str, Any] = {
        "version": RESULT_VERSION,
        "op": _text(document.op, 32),
        "image": image and {"ref": _text(image.ref, 512), "providersMirror": _text(image.providers_mirror, 256)},
        "runtime": runtime and {"command": _text(runtime.command, 256), "version": _text(runtime.version, 64)},
        "steps": [
            {"name": _text(each.name, 32), "exit": _number(each.exit), "seconds": _number(each.seconds)}
            for each in document.steps[-STEPS_KEPT:]
        ],
        "drift": drift and {"detected": drift.detected, **_counts(drift, _DRIFT_COUNTS), **_rows(drift, DRIFT_LISTED)},
        "changes": changes and _counts(changes, _CHANGE_COUNTS),
        "plan": plan and {"hash": _text(plan.hash, 128), **_counts(plan, _PLAN_COUNTS), **_rows(plan, PLAN_LISTED)},
    }
    fields = {name: each for name, each in fields.items() if each is not None}
    fields["error"] = error and _failure(error)
    return fields


def _failure(error: Failure) -> dict[str, Any]:
    tail = _text(error.tail, SUMMARY_LIMIT)
    return {"kind": error.kind.value, "step": _text(error.step, 32), **({"tail": tail} if tail else {})}


def _counts(of: object, names: Mapping[str, str]) -> dict[str, int]:
    return {name: _number(getattr(of, attribute)) for name, attribute in names.items()}


def _rows(of: PlanSummary | DriftSummary, limit: int) -> dict[str, Any]:
    rows = [{"address": _text(row.address, 256), "action": _text(row.action, 32)} for row in of.resources[:limit]]
    return {"resources": rows}


def _text(text: str, limit: int) -> str:
    """Text that takes at most `limit` bytes as JSON, without control characters but ends of lines."""
    plain = "".join(char if char.isprintable() or char == "\n" else " " for char in cut(text, limit))
    while len(json.dumps(plain, ensure_ascii=False).encode()) - 2 > limit:
        plain = plain[: len(plain) * 7 // 8]
    return plain


def _number(number: int) -> int:
    return max(-_LARGEST, min(_LARGEST, int(number)))


def _document(found: dict[str, Any]) -> ResultDocument:
    image, runtime, error = (_part(found, name) for name in ("image", "runtime", "error"))
    drift, changes, plan = (_part(found, name) for name in ("drift", "changes", "plan"))
    return ResultDocument(
        op=_str(found["op"]),
        image=None if image is None else Image(_str(image["ref"]), _str(image["providersMirror"])),
        runtime=None if runtime is None else RuntimeUsed(_str(runtime["command"]), _str(runtime["version"])),
        steps=tuple(StepDone(_str(each["name"]), _int(each["exit"]), _int(each["seconds"])) for each in found["steps"]),
        drift=None if drift is None else DriftSummary(_bool(drift["detected"]), **_kept(drift, _DRIFT_COUNTS)),
        error=None if error is None else _read_failure(error),
        changes=None if changes is None else Changes(*(_int(changes[name]) for name in _CHANGE_COUNTS)),
        plan=None if plan is None else PlanSummary(_str(plan["hash"]), **_kept(plan, _PLAN_COUNTS)),
    )


def _read_failure(error: dict[str, Any]) -> Failure:
    return Failure(FailureKind(error["kind"]), _str(error["step"]), _str(error.get("tail", "")))


def _kept(of: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    rows = tuple(PlannedChange(_str(row["address"]), _str(row["action"])) for row in of["resources"])
    return {**{attribute: _int(of[name]) for name, attribute in names.items()}, "resources": rows}


def _part(of: dict[str, Any], name: str) -> dict[str, Any] | None:
    found = of.get(name)
    if found is not None and not isinstance(found, dict):
        raise TypeError(name)
    return found


def _str(found: object) -> str:
    if not isinstance(found, str):
        raise TypeError(found)
    return found


def _int(found: object) -> int:
    if not isinstance(found, int) or isinstance(found, bool):
        raise TypeError(found)
    return found


def _bool(found: object) -> bool:
    if not isinstance(found, bool):
        raise TypeError(found)
    return found
