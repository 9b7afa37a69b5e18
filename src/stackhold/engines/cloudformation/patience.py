"""Which refusals pass by themselves, and how long to wait for that.

A refusal is judged by its code, the call, and what this run has changed: a role made a second ago may not be known
to Lambda yet, while the same code about an old role is a real error. Deletes that something still hangs on are
tried for minutes and then fail, naming what blocks them where that can be asked. Throttling and lost answers are
not judged here; the `Aws` port has dealt with them.
"""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from stackhold.engines.cloudformation.blockers import Blockers, blockers_of
from stackhold.errors import AwsError
from stackhold.model.instant import MINUTE, SECOND
from stackhold.ports.aws import Resend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from stackhold.model.ids import Region
    from stackhold.ports.aws import Aws

IAM_BUDGET_MS: Final = 2 * MINUTE
READ_BUDGET_MS: Final = MINUTE
BUSY_BUDGET_MS: Final = 10 * MINUTE
SAME_NAME_BUDGET_MS: Final = 75 * SECOND
"""SQS keeps a deleted queue's name for 60 s."""
MOMENT_MS: Final = 10 * SECOND
"""Who watches is told of a wait that is longer."""
DELETE_BUDGET_MS: Final = 5 * MINUTE
INTERFACE_BUDGET_MS: Final = 30 * MINUTE
"""Network interfaces of Lambda functions go 20 minutes and more after their function."""

_DELETING = re.compile(r"(Delete|Detach|Disassociate|Release|Remove|Deregister|Revoke|Terminate|Unsubscribe|Untag)")
_READING = re.compile(r"(Get|Describe|List|Head|Lookup|Search|BatchGet)")
_NEVER = re.compile(r"BucketNotEmpty|RepositoryNotEmpty|.*AlreadyExists|.*AlreadyOwnedByYou|.*Duplicate.*|NotUpdatable")
_IDENTITY_KEY = re.compile(r"role|profile|principal|policyarn|aws", re.IGNORECASE)
_DEEPEST_DOCUMENT: Final = 64 * 1024


class Kind(Enum):
    """What a call does."""

    READ = "read"
    CHANGE = "change"
    DELETE = "delete"


class About(Enum):
    """What of this run a call must name before its refusal counts as a delay."""

    NOTHING = "nothing"
    IDENTITY = "a role, profile or principal"
    ANYTHING = "any resource"


@dataclass(frozen=True, slots=True)
class Rule:
    """One class of refusals that pass. `says` must be found in the message where a code is shared with real errors."""

    name: str
    codes: str
    kinds: frozenset[Kind]
    budget_ms: int
    services: frozenset[str] | None = None
    operations: str = ""
    about: About = About.NOTHING
    says: str = ""
    first_ms: int = 500
    longest_ms: int = 5 * SECOND


_CHANGES = frozenset({Kind.CHANGE})
_WRITES = frozenset({Kind.CHANGE, Kind.DELETE})
_DELETES = frozenset({Kind.DELETE})
_IAM_WORDS = r"\brole\b|profile|principal|assume|permission|authorized|policy"

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        name="IAM propagation",
        codes=r"InvalidParameterValue(Exception)?|ClientException|ValidationException|ValidationError"
        r"|MalformedPolicy.*|InvalidPolicy.*|InvalidAttributeValue|InvalidParameter(Exception)?|AccessDenied.*",
        kinds=_CHANGES,
        about=About.IDENTITY,
        says=_IAM_WORDS,
        first_ms=1 * SECOND,
        budget_ms=IAM_BUDGET_MS,
    ),
    Rule(
        name="IAM propagation",
        services=frozenset({"lambda"}),
        operations=r"(Create|Update)EventSourceMapping",
        codes=r"InvalidParameterValueException",
        kinds=_CHANGES,
        about=About.ANYTHING,
        says=_IAM_WORDS,
        first_ms=1 * SECOND,
        budget_ms=IAM_BUDGET_MS,
    ),
    Rule(
        name="what was just made is not seen everywhere yet",
        codes=r"Invalid\w*\.NotFound|NatGatewayNotFound",
        services=frozenset({"ec2"}),
        kinds=frozenset({Kind.READ}),
        about=About.ANYTHING,
        first_ms=200,
        budget_ms=READ_BUDGET_MS,
    ),
    Rule(
        name="what was just made is not seen everywhere yet",
        codes=r"Invalid\w*\.NotFound|NatGatewayNotFound|NoSuchEntity(Exception)?|NoSuchBucket|ResourceNotFoundException"
        r"|NotFound(Exception)?|(AWS\.SimpleQueueService\.NonExistentQueue|QueueDoesNotExist)",
        kinds=_CHANGES,
        about=About.ANYTHING,
        first_ms=200,
        budget_ms=READ_BUDGET_MS,
    ),
    Rule(
        name="busy",
        services=frozenset({"lambda"}),
        operations=r"(Update|Publish|Put|Delete|Remove|AddPermission|Tag|Untag)\w*",
        codes=r"ResourceConflictException",
        says=r"progress|\bstate\b|currently|pending|concurren|try again|update",
        kinds=_WRITES,
        budget_ms=BUSY_BUDGET_MS,
    ),
    Rule(
        name="busy",
        services=frozenset({"lambda"}),
        operations=r"(Update|Delete)EventSourceMapping",
        codes=r"ResourceInUseException",
        kinds=_WRITES,
        budget_ms=BUSY_BUDGET_MS,
    ),
    Rule(
        name="busy",
        services=frozenset({"dynamodb", "kinesis"}),
        operations=r"(?!Create)\w+",
        codes=r"ResourceInUseException|ContinuousBackupsUnavailableException",
        kinds=_WRITES,
        budget_ms=BUSY_BUDGET_MS,
    ),
    Rule(
        name="busy",
        services=frozenset({"dynamodb", "kinesis"}),
        codes=r"LimitExceededException",
        says=r"simultaneous|concurrent|at (a|one|any) time|CREATING|in parallel",
        kinds=_WRITES,
        budget_ms=BUSY_BUDGET_MS,
    ),
    Rule(
        name="name still taken",
        services=frozenset({"sqs"}),
        codes=r"(AWS\.SimpleQueueService\.)?QueueDeletedRecently",
        kinds=_CHANGES,
        first_ms=5 * SECOND,
        budget_ms=SAME_NAME_BUDGET_MS,
    ),
    Rule(
        name="busy",
        services=frozenset({"rds", "docdb", "neptune"}),
        codes=r"Invalid\w*State(Fault)?",
        kinds=_WRITES,
        budget_ms=BUSY_BUDGET_MS,
    ),
    Rule(
        name="busy",
        codes=r"OperationAborted|ConcurrentModification.*|ConcurrentUpdateException|StateMachineDeleting"
        r"|ConcurrentOperationException|PriorRequestNotComplete|OptimisticLockException",
        kinds=_WRITES,
        budget_ms=BUSY_BUDGET_MS,
    ),
    Rule(
        name="still in use",
        services=frozenset({"ec2"}),
        operations=r"DeleteSubnet|DeleteSecurityGroup",
        codes=r"DependencyViolation|InvalidGroup\.InUse",
        kinds=_DELETES,
        budget_ms=INTERFACE_BUDGET_MS,
        longest_ms=15 * SECOND,
    ),
    Rule(
        name="still in use",
        codes=r"DependencyViolation|DeleteConflict(Exception)?|ResourceInUse(Exception)?|FileSystemInUse"
        r"|CacheSubnetGroupInUse|ClusterContains\w*|InvalidIPAddress\.InUse|AuthFailure\.ElasticIpInUse",
        kinds=_DELETES,
        budget_ms=DELETE_BUDGET_MS,
    ),
)


class Touched:
    """The physical ids, names and ARNs that this run has created or changed. Thread-safe."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._lock = threading.Lock()

    def add(self, physical_id: str, attributes: Mapping[str, Any] | None = None) -> None:
        """Remember a resource by its id and by every attribute that names it."""
        names = {physical_id}
        for key, value in (attributes or {}).items():
            if isinstance(value, str) and key.endswith(("Arn", "Id", "Name", "Url")):
                names.add(value)
        with self._lock:
            self._names |= names

    def forget(self, physical_id: str) -> None:
        """A resource that is about to be deleted: from now on "not found" means gone."""
        with self._lock:
            self._names = {name for name in self._names if name != physical_id and _tail(name) != physical_id}

    def __call__(self, text: str) -> bool:
        """Whether this text, or the name at the end of this ARN, is one of them."""
        with self._lock:
            return text in self._names or (text.startswith("arn:") and _tail(text) in self._names)


def kind_of(operation: str) -> Kind:
    """What a call does, by the verb that its name starts with."""
    if _DELETING.match(operation):
        return Kind.DELETE
    return Kind.READ if _READING.match(operation) else Kind.CHANGE


def rule_for(error: AwsError, params: Mapping[str, Any], changed: Callable[[str], bool]) -> Rule | None:
    """The rule under which this refusal passes by itself; None: it is final."""
    if _NEVER.fullmatch(error.code):
        return None
    kind = kind_of(error.operation)
    for rule in RULES:
        if _fits(rule, error, kind) and _is_about(rule.about, params, changed):
            return rule
    return None


def _fits(rule: Rule, error: AwsError, kind: Kind) -> bool:
    return (
        kind in rule.kinds
        and (rule.services is None or error.service in rule.services)
        and re.fullmatch(rule.codes, error.code) is not None
        and (not rule.operations or re.fullmatch(rule.operations, error.operation) is not None)
        and (not rule.says or re.search(rule.says, error.reason, re.IGNORECASE) is not None)
    )


def _is_about(about: About, params: Mapping[str, Any], changed: Callable[[str], bool]) -> bool:
    if about is About.NOTHING:
        return True
    only_identities = about is About.IDENTITY
    return any(changed(text) for key, text in _texts(params) if not only_identities or _is_identity(key, text))


def _is_identity(key: str, text: str) -> bool:
    return ":iam::" in text or _IDENTITY_KEY.search(key) is not None


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text with the key it stands under, inside JSON documents too."""
    match value:
        case str():
            yield key, value
            if value[:1] in "{[" and len(value) <= _DEEPEST_DOCUMENT:
                try:
                    document = json.loads(value)
                except (ValueError, RecursionError):
                    return
                yield from _texts(document, key)
        case dict():
            for name, item in value.items():
                yield from _texts(item, str(name))
        case list() | tuple():
            for item in value:
                yield from _texts(item, key)


def _tail(arn: str) -> str:
    return re.split(r"[/:]", arn)[-1]


class Trace:
    """What one operation has sent, and what AWS has carried out of it. Used by one thread."""

    def __init__(self) -> None:
        self.changes = 0
        """Calls other than reads that were carried out."""
        self.is_unclear = False
        """Whether such a call was sent and its outcome is not known."""
        self.physical_id: str | None = None
        """What a create has made, when it says so before it is through."""
        self._was_sent = False

    @property
    def left_something(self) -> bool:
        """Whether the world may differ from before the operation."""
        return self.changes > 0 or self.is_unclear

    def guard(self, check: Callable[[], None]) -> Callable[[], None]:
        """`check`, noting that a request went out whenever it lets one go."""

        def checked() -> None:
            check()
            self._was_sent = True

        return checked

    def note(self, physical_id: str) -> None:
        """A create has made this and goes on with it."""
        self.physical_id = physical_id

    def made_nothing(self) -> None:
        """Nothing came of what was carried out so far: AWS refused it in the end, or it met another's."""
        self.changes = 0
        self.physical_id = None

    def begin(self) -> None:
        """A change is about to be called."""
        self._was_sent = False

    def end(self, problem: Exception | None) -> None:
        """It was answered, refused or given up."""
        if problem is None:
            self.changes += 1
        elif isinstance(problem, AwsError):
            self.is_unclear = self.is_unclear or problem.sent_before
        else:
            self.is_unclear = self.is_unclear or self._was_sent


class PatientAws:
    """An `Aws` whose calls are sent again while their refusal is one that passes. Everything else goes through."""

    def __init__(
        self,
        aws: Aws,
        *,
        wait: Callable[[int], None],
        changed: Callable[[str], bool],
        trace: Trace | None = None,
        waiting: Callable[[AwsError, str], None] = lambda error, why: None,
    ) -> None:
        """`wait` waits so many ms and raises `StoodDown` when waits are given up; `trace` is told of every change, and
        `waiting` once of each call that is waited for longer than a moment."""
        self._aws = aws
        self._waiting = waiting
        self._wait = wait
        self._changed = changed
        self._trace = trace or Trace()

    @property
    def region(self) -> Region:
        """The region that calls go to."""
        return self._aws.region

    @property
    def partition(self) -> str:
        """`aws`, `aws-cn`, …"""
        return self._aws.partition

    def account(self) -> str:
        """The account's 12 digits."""
        return self._aws.account()

    def guarded(self, check: Callable[[], None]) -> PatientAws:
        """The same patience over a guarded `Aws`."""
        return PatientAws(
            self._aws.guarded(check), wait=self._wait, changed=self._changed, trace=self._trace, waiting=self._waiting
        )

    def pages(self, service: str, operation: str, params: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """A read, page by page; not tried again here."""
        return self._aws.pages(service, operation, params)

    def call(
        self,
        service: str,
        operation: str,
        params: Mapping[str, Any],
        *,
        resend: Resend = Resend.SAFE,
        look: Callable[[], object] | None = None,
    ) -> dict[str, Any]:
        """One API call, waited for as long as its rule allows; then the last refusal, with what blocks it.

        A delete that something hangs on which does not go by itself is given up after a moment: what was taken off
        just now may be listed for that long.
        """
        waited = 0
        pause = 0
        is_said = False
        while True:
            try:
                return self._call_once(service, operation, params, resend, look)
            except AwsError as error:
                rule = rule_for(error, params, self._changed)
                if rule is None:
                    raise
                pause = min(max(rule.first_ms, pause * 2), rule.longest_ms)
                is_long = waited >= MOMENT_MS
                is_over = waited + pause > rule.budget_ms
                if is_over or (is_long and not is_said):
                    blockers = blockers_of(self._aws, error, params) if rule.name == "still in use" else Blockers()
                    if is_over or blockers.are_lasting:
                        raise _given_up(error, rule, waited, blockers) from error
                    self._waiting(error, rule.name + (f" by {blockers.text}" if blockers.names else ""))
                    is_said = True
            self._wait(pause)
            waited += pause
            if look is not None:
                look()

    def _call_once(
        self,
        service: str,
        operation: str,
        params: Mapping[str, Any],
        resend: Resend,
        look: Callable[[], object] | None,
    ) -> dict[str, Any]:
        if kind_of(operation) is Kind.READ:
            return self._aws.call(service, operation, params, resend=resend, look=look)
        self._trace.begin()
        try:
            answer = self._aws.call(service, operation, params, resend=resend, look=look)
        except Exception as problem:
            self._trace.end(problem)
            raise
        self._trace.end(None)
        return answer


def _given_up(error: AwsError, rule: Rule, waited: int, blockers: Blockers) -> AwsError:
    named = f"; in use by {blockers.text}" if blockers.names else ""
    return AwsError(
        service=error.service,
        operation=error.operation,
        code=error.code,
        reason=f"{error.reason} ({rule.name}; tried for {waited // SECOND} s{named})",
        status=error.status,
        request_id=error.request_id,
        sent_before=error.sent_before,
        hint=blockers.hint or error.hint,
    )
