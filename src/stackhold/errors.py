"""Everything that stackhold raises on purpose, split by what the reader does next.

    StackholdError
    ├── InputError              mend the input and run again
    │   ├── TemplateError         a template: file, line, logical id
    │   ├── PolicyInvalid         the two clocks contradict each other
    │   ├── RecordUnreadable      a stored object is not what it should be
    │   └── RecordTooNew          a stored object of a version that we must not rewrite
    ├── LockHeld                wait, or clear the lock of a process that is gone
    ├── CloudError              look at the cloud
    │   ├── AwsError              AWS refused: a definite answer with a code
    │   ├── OutcomeUnknown        a request was sent and no answer came: neither success nor failure
    │   ├── ResourceFailed        a resource reached a failed state or never settled
    │   └── StoreError            the store of records and locks
    │       ├── StoreConflict       a condition was refused: the object is not the version we named
    │       ├── StoreUnanswered     a write was sent and no answer came: read to learn what happened
    │       ├── StoreUnreachable    nothing answered, or nobody is there
    │       └── StoreRefused        missing, denied, wrong region, or a server that ignores conditions
    ├── LockLost                another holds our lock now, or nobody does
    ├── StoodDown               we cannot prove that we still hold the lock, so nothing more starts
    └── Bug                     our own mistake: please report it

A message is one line that says what stopped. Facts are attributes. `hint` is the safe next step or command.
"""

from __future__ import annotations


class StackholdError(Exception):
    """The root. `hint` is the safe next step, shown below the message; empty when there is none."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InputError(StackholdError):
    """Something that the user wrote or named is wrong; nothing was changed."""


class TemplateError(InputError):
    """A template cannot be used. `line` and `column` count from 1, 0 when unknown."""

    def __init__(
        self, message: str, *, file: str = "", line: int = 0, column: int = 0, logical_id: str = "", hint: str = ""
    ) -> None:
        where = file + (f":{line}" if line else "") + (f":{column}" if line and column else "")
        parts = [part for part in (where, logical_id, message) if part]
        super().__init__(": ".join(parts), hint=hint)
        self.reason = message
        self.file = file
        self.line = line
        self.column = column
        self.logical_id = logical_id


class PolicyInvalid(InputError):
    """The lock wait is not below the deadline, or a clock is out of its range."""


class RecordUnreadable(InputError):
    """A stored object is truncated, hand-edited or of another shape. `key` names it in the store."""

    def __init__(self, message: str, *, key: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.key = key


class RecordTooNew(InputError):
    """A stored object has a format version that this release does not know, so it must not rewrite it."""


class LockHeld(StackholdError):
    """Another run holds the stack's lock and it is not stale.

    `details` are the lines that describe holder and liveness, made where the facts are known.
    """

    def __init__(self, message: str, *, details: tuple[str, ...] = (), hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.details = details


class CloudError(StackholdError):
    """The cloud, or the store in it, did not do what was asked."""


_CREDENTIAL_CODES = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "InvalidToken",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "SignatureDoesNotMatch",
        "TokenRefreshRequired",
        "UnrecognizedClientException",
    }
)


class AwsError(CloudError):
    """AWS refused a call. Sort by `code` and `operation`, never by the message.

    `status` is the HTTP status, `service` botocore's service name, `operation` the API's operation name.
    `sent_before` is true when an earlier try of this very call had been sent without an answer: an
    "already exists" may then be our own doing.
    """

    def __init__(
        self,
        *,
        service: str,
        operation: str,
        code: str,
        reason: str,
        status: int = 0,
        request_id: str = "",
        sent_before: bool = False,
        hint: str = "",
    ) -> None:
        super().__init__(f"{service}:{operation} was refused: {code}: {reason}", hint=hint)
        self.service = service
        self.operation = operation
        self.code = code
        self.reason = reason
        self.status = status
        self.request_id = request_id
        self.sent_before = sent_before

    @property
    def refuses_credentials(self) -> bool:
        """Whether the credentials themselves are no good, so that every other call would be refused too."""
        return self.code in _CREDENTIAL_CODES


class OutcomeUnknown(CloudError):
    """A request was sent and its answer lost: the change may have happened, or may happen yet."""

    def __init__(self, *, service: str, operation: str, reason: str, hint: str = "") -> None:
        super().__init__(f"{service}:{operation} was sent and not answered: {reason}", hint=hint)
        self.service = service
        self.operation = operation
        self.reason = reason


class ResourceFailed(CloudError):
    """A resource reached a failed state, or did not settle in its time."""


class StoreError(CloudError):
    """The store of records and locks did not do what was asked. `key` is the object, when one is meant."""

    def __init__(self, message: str, *, key: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.key = key


class StoreConflict(StoreError):
    """A conditional write or delete was refused, or answered so that only a read can tell what happened."""


class StoreUnanswered(StoreError):
    """A write may or may not have reached the store. Read the object to learn which."""


class StoreUnreachable(StoreError):
    """No answer to a read, or no connection at all, after bounded retries. Nothing was written."""


class StoreRefused(StoreError):
    """The store answered that it will not: missing, denied, wrong region, conditions ignored, disk full."""


class LockLost(StackholdError):
    """The lock is not ours any more. `holder` names who has it now, empty when nobody does."""

    def __init__(self, message: str, *, holder: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.holder = holder


class StoodDown(StackholdError):
    """Raised in place of a call that must not start: stopped, past a margin, or the lock is not provably ours."""


class Bug(StackholdError):
    """An invariant of our own broke."""
