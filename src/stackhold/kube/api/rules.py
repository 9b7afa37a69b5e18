"""The rules of a Job policy that one policy can be held to by itself, in CEL, and the facts that they rest on.

None of them names `oldSelf`: a policy that was stored before a rule existed then never blocks the removal of a
finalizer. The webhook says the same from the same facts, with the whole story.
"""

from stackhold.kube.api.shapes import Rule

DEFAULT_DEADLINE = 3600
DEADLINE_RANGE = (1, 86400)
DEFAULT_LOCK_TIMEOUT = 300
LOCK_TIMEOUT_RANGE = (0, 3600)
DEFAULT_HISTORY = 3
HISTORY_RANGE = (0, 100)

SAFE_SELINUX_TYPES = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
SAFE_SYSCTLS = (
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_syncookies",
)

_TENS = ((10000, ""), (1000, " % 10"), (100, " % 10"), (10, " % 10"))

ROOT = "must not allow root: the container holds cloud credentials"
CONFINED = "must not be Unconfined"
BASELINE = "must stay within the baseline of the Pod Security Standards"


def _effective(field: str, default: int) -> str:
    return f"(has(self.{field}) ? self.{field} : {default})"


def _in_words(field: str) -> str:
    """A number of at most five digits as text.

    `string()` is of no use: the API server takes its result for unboundedly long and refuses what it is part of. A
    part of a constant is at most as long as the constant. A longer number makes the expression fail, and the rule's
    plain message is shown beside the complaint about the range.
    """
    value = f"self.{field}"
    digits = [f"({value} >= {ten} ? {_digit(f'{value} / {ten}{rest}')} : '')" for ten, rest in _TENS]
    return " + ".join((*digits, _digit(f"{value} % 10")))


def _digit(number: str) -> str:
    return f"'0123456789'.substring({number}, {number} + 1)"


def _origin(field: str, default: int) -> str:
    return f"(has(self.{field}) ? 'configured ' + {_in_words(field)} : 'built-in default {default}')"


CLOCKS = Rule(
    f"{_effective('lockTimeoutSeconds', DEFAULT_LOCK_TIMEOUT)}"
    f" < {_effective('activeDeadlineSeconds', DEFAULT_DEADLINE)}",
    "lockTimeoutSeconds must be less than activeDeadlineSeconds;"
    f" unset, they are {DEFAULT_LOCK_TIMEOUT} and {DEFAULT_DEADLINE}",
    "'lockTimeoutSeconds (' + " + _origin("lockTimeoutSeconds", DEFAULT_LOCK_TIMEOUT) + " + ') must be less than"
    " activeDeadlineSeconds (' + " + _origin("activeDeadlineSeconds", DEFAULT_DEADLINE) + " + ')'",
)


def _never(field: str, value: str, message: str) -> Rule:
    """The field, which may have parents, must not have the value."""
    parts = field.split(".")
    paths = [".".join(parts[: n + 1]) for n in range(len(parts))]
    unset = " || ".join(f"!has(self.{path})" for path in paths)
    return Rule(f"{unset} || self.{field} != {value}", f"{field} {message}", field=f".{field}")


def _listed(values: tuple[str, ...]) -> str:
    return "[" + ", ".join(f"'{value}'" for value in values) + "]"


_SHARED = (
    _never("runAsNonRoot", "false", ROOT),
    _never("runAsUser", "0", ROOT),
    _never("seccompProfile.type", "'Unconfined'", CONFINED),
    _never("appArmorProfile.type", "'Unconfined'", CONFINED),
    _never("windowsOptions.hostProcess", "true", "must not be true"),
    Rule(
        "!has(self.seLinuxOptions) || !has(self.seLinuxOptions.type)"
        f" || self.seLinuxOptions.type in {_listed(SAFE_SELINUX_TYPES)}",
        f"seLinuxOptions.type {BASELINE}",
        field=".seLinuxOptions.type",
    ),
    *(
        Rule(
            f"!has(self.seLinuxOptions) || !has(self.seLinuxOptions.{part}) || self.seLinuxOptions.{part} == ''",
            f"seLinuxOptions.{part} must not be set",
            field=f".seLinuxOptions.{part}",
        )
        for part in ("user", "role")
    ),
)

CONTAINER_RULES = (
    _never("privileged", "true", "must not be true"),
    _never("allowPrivilegeEscalation", "true", "must not be true"),
    Rule(
        "!has(self.capabilities) || !has(self.capabilities.add) || size(self.capabilities.add) == 0",
        "capabilities.add must be empty",
        field=".capabilities.add",
    ),
    _never("readOnlyRootFilesystem", "false", "must not be false"),
    _never("procMount", "'Unmasked'", "must not be Unmasked"),
    *_SHARED,
)

POD_RULES = (
    *_SHARED,
    Rule(
        f"!has(self.sysctls) || self.sysctls.all(sysctl, sysctl.name in {_listed(SAFE_SYSCTLS)})",
        f"sysctls {BASELINE}",
        field=".sysctls",
    ),
)
