"""What a security context in a policy must not say: the pod holds cloud credentials and starts hardened.

Only what is said is looked at. An image that runs as root by itself is not seen here. The same facts stand in the
definitions as CEL; here they come with the field and the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from stackhold.kube.api.rules import BASELINE, CONFINED, ROOT, SAFE_SELINUX_TYPES, SAFE_SYSCTLS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stackhold.model.values import JsonMap

_NEVER: tuple[tuple[str, object, str], ...] = (
    ("runAsNonRoot", False, ROOT),
    ("runAsUser", 0, ROOT),
    ("seccompProfile.type", "Unconfined", CONFINED),
    ("appArmorProfile.type", "Unconfined", CONFINED),
    ("windowsOptions.hostProcess", True, "must not be true"),
)
_NEVER_IN_CONTAINER: tuple[tuple[str, object, str], ...] = (
    ("privileged", True, "must not be true"),
    ("allowPrivilegeEscalation", True, "must not be true"),
    ("readOnlyRootFilesystem", False, "must not be false"),
    ("procMount", "Unmasked", "must not be Unmasked"),
)


def weakenings(context: JsonMap | None, *, is_pod: bool = False) -> tuple[tuple[str, str], ...]:
    """Every field of a security context that weakens the hardened defaults, with what is wrong with it."""
    if not context:
        return ()
    never = _NEVER if is_pod else (*_NEVER_IN_CONTAINER, *_NEVER)
    found = [(field, said) for field, value, said in never if _is(_at(context, field), value)]
    found.extend(_of_selinux(context))
    if is_pod:
        found.extend(_of_sysctls(context))
    elif _at(context, "capabilities.add"):
        found.append(("capabilities.add", "must be empty"))
    return tuple(found)


def _of_selinux(context: JsonMap) -> Iterator[tuple[str, str]]:
    if (_at(context, "seLinuxOptions.type") or "") not in SAFE_SELINUX_TYPES:
        yield "seLinuxOptions.type", BASELINE
    for part in ("user", "role"):
        if _at(context, f"seLinuxOptions.{part}"):
            yield f"seLinuxOptions.{part}", "must not be set"


def _of_sysctls(context: JsonMap) -> Iterator[tuple[str, str]]:
    entries = cast("Sequence[JsonMap]", context.get("sysctls") or ())
    for position, entry in enumerate(entries):
        if entry.get("name") not in SAFE_SYSCTLS:
            yield f"sysctls[{position}]", f"{entry.get('name')} {BASELINE}"


def _at(context: JsonMap, path: str) -> object:
    """What stands at a path; None when it or a parent of it is not set."""
    found: object = context
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _is(found: object, value: object) -> bool:
    """Whether a field has a value; `0` is not `false`."""
    return type(found) is type(value) and found == value
