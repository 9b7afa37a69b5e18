"""An account that answers each operation as a test wrote down: for states that no emulator ever shows.

A deletion that takes a while, an update that fails, an entry refused inside a successful answer. It knows no
service and keeps nothing; what it is asked is there to look at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackhold.errors import AwsError
from stackhold.model.ids import Region
from stackhold.ports.aws import Aws, Resend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


def refused(operation: str, code: str, *, service: str = "any", reason: str = "no") -> AwsError:
    """A refusal to put among the answers."""
    return AwsError(service=service, operation=operation, code=code, reason=reason, status=400)


@dataclass
class ScriptedAws:
    """Answers in turn, by operation; the last one of an operation is given for ever. Not for several threads."""

    answers: Mapping[str, Sequence[Mapping[str, Any] | AwsError]]
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    never_resent: set[str] = field(default_factory=set)
    """The operations that were called with `Resend.NEVER`."""

    @property
    def region(self) -> Region:
        """One of them."""
        return Region("us-east-1")

    @property
    def partition(self) -> str:
        """The usual one."""
        return "aws"

    def account(self) -> str:
        """The usual one of emulators."""
        return "000000000000"

    def guarded(self, check: Callable[[], None]) -> ScriptedAws:
        """Itself: nothing is ever in flight."""
        return self

    def pages(self, service: str, operation: str, params: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """One page."""
        yield self.call(service, operation, params)

    def call(
        self,
        service: str,
        operation: str,
        params: Mapping[str, Any],
        *,
        resend: Resend = Resend.SAFE,
        look: Callable[[], object] | None = None,
    ) -> dict[str, Any]:
        """The next answer of this operation; an operation without any is a mistake of the test."""
        if operation not in self.answers:
            raise AssertionError(f"nobody expected {service}:{operation} {dict(params)}")
        turn = sum(name == operation for name, _ in self.calls)
        self.calls.append((operation, dict(params)))
        if resend is Resend.NEVER:
            self.never_resent.add(operation)
        written = self.answers[operation]
        answer = written[min(turn, len(written) - 1)]
        if isinstance(answer, AwsError):
            raise answer
        return dict(answer)

    def asked(self, operation: str) -> list[dict[str, Any]]:
        """The parameters of every call of one operation."""
        return [params for name, params in self.calls if name == operation]


if TYPE_CHECKING:
    _: type[Aws] = ScriptedAws
