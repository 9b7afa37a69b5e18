"""The bucket store: conditional requests on S3, or on a server that speaks its language.

Conditions are S3's own: `If-None-Match: *` to create, `If-Match` to replace and delete, with the ETag as it came.
Times are `Date` and `Last-Modified` of one answer. Reads are tried again a few times; a write that was sent is
never sent again here: its outcome is for the caller to read. A server that is not AWS is trusted only once it
has been seen to honour all three conditions.
"""

from __future__ import annotations

import random
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from stackhold.adapters.aws_failures import LOGIN_HINT, Failure, Kind, header_date, sort_failure
from stackhold.adapters.s3_bucket import BucketReport, default_bucket_name, set_up_bucket
from stackhold.adapters.s3_proof import MARKER_KEY, PROBE_PREFIX, marker, marks, prove_conditions
from stackhold.errors import StoreConflict, StoreError, StoreRefused, StoreUnanswered, StoreUnreachable
from stackhold.model.instant import Instant
from stackhold.ports.keys import checked_key, checked_prefix
from stackhold.ports.store import Absent, Entry, Stored, StoreFacts, Version, Written

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stackhold.adapters.aws import AwsSession
    from stackhold.model.ids import Region
    from stackhold.ports.clock import Clock
    from stackhold.ports.store import Store

__all__ = ["BucketReport", "S3Store", "create_state_bucket", "default_bucket_name"]

ANSWER_MS = 5_000
"""How long the first try of a read waits for an answer; the next wait twice as long each."""
_TRIES = {Kind.LOST: 2, Kind.UNSENT: 3, Kind.THROTTLED: 6}
_DELETED = 204
_OTHER_REGION = frozenset(
    {
        "PermanentRedirect",
        "AuthorizationHeaderMalformed",
        "IllegalLocationConstraintException",
        "301",
        "307",
        "Redirect",
    }
)
_CREDENTIALS = frozenset(
    {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired"}
)


class S3Store:
    """A `Store` in a bucket. Thread-safe."""

    def __init__(
        self,
        bucket: str,
        *,
        session: AwsSession,
        clock: Clock,
        region: Region | None = None,
        answer_ms: int = ANSWER_MS,
    ) -> None:
        """`region` is where requests go first, by default the session's; the bucket's own is followed once known."""
        self._bucket = bucket
        self._session = session
        self._clock = clock
        self._region = region
        self._answer_ms = answer_ms
        self._facts = StoreFacts(url=f"s3://{bucket}", is_local=False)

    @property
    def facts(self) -> StoreFacts:
        """Its name; it is not of this machine."""
        return self._facts

    def read(self, key: str) -> Stored | Absent:
        """The object, its ETag, and both times, from one GET."""
        checked_key(key)
        try:
            answer = self._read("GetObject", key, {"Key": key})
        except _Missing as missing:
            return Absent(missing.now)
        version = _version(answer)
        if version is None:
            raise self._unusable(key)
        return Stored(answer["Body"], version, self._modified(answer, key), self._date(answer, key))

    def write(self, key: str, data: bytes, *, expect: Version | None) -> Written:
        """One conditional PUT."""
        checked_key(key)
        condition = {"IfNoneMatch": "*"} if expect is None else {"IfMatch": str(expect)}
        answer = self._change("PutObject", key, {"Body": data, "ContentType": "application/json", **condition})
        version = _version(answer)
        if version is None:
            raise StoreUnanswered(f"{self._facts.url}: a write of {key} was answered without an ETag", key=key)
        return Written(version, self._date(answer, key))

    def delete(self, key: str, *, expect: Version) -> None:
        """One conditional DELETE."""
        checked_key(key)
        answer = self._change("DeleteObject", key, {"IfMatch": str(expect)})
        if answer.get("ResponseMetadata", {}).get("HTTPStatusCode") != _DELETED:
            raise StoreUnanswered(f"{self._facts.url}: a delete of {key} was answered with something odd", key=key)

    def list(self, prefix: str) -> Iterator[Entry]:
        """Every object below, page by page, in the bucket's order, which is by key."""
        checked_prefix(prefix)
        params: dict[str, Any] = {"Prefix": prefix}
        while True:
            try:
                answer = self._read("ListObjectsV2", prefix, params)
            except _Missing as missing:
                raise self._refused(missing.failure, missing.headers, prefix) from missing
            yield from self._entries(answer, prefix)
            if not answer.get("IsTruncated"):
                return
            token = answer.get("NextContinuationToken")
            if not token or token == params.get("ContinuationToken"):
                raise self._unusable(prefix)
            params = {"Prefix": prefix, "ContinuationToken": token}

    def _entries(self, answer: Mapping[str, Any], prefix: str) -> Sequence[Entry]:
        """One page of a listing."""
        if not {"Name", "KeyCount", "IsTruncated"} & answer.keys():
            raise self._unusable(prefix)
        try:
            return [
                Entry(item["Key"], Instant(int(item["LastModified"].timestamp() * 1000)), int(item["Size"]))
                for item in answer.get("Contents", [])
            ]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._unusable(prefix) from error

    def prepare(self) -> None:
        """Prove the conditions of a server that is not AWS, unless a mark in the bucket says that it was done."""
        endpoint = self._session.endpoint("s3")
        if endpoint is not None and not is_aws(endpoint):
            found = self.read(MARKER_KEY)
            if not (isinstance(found, Stored) and marks(found.data, endpoint)):
                self.prove()

    def prove(self) -> None:
        """See for oneself that all three conditions are honoured, and leave the mark; `StoreRefused` if not."""
        endpoint = self._session.endpoint("s3") or "https://s3.amazonaws.com"
        key = f"{PROBE_PREFIX}{self._clock.nonce()}"
        try:
            prove_conditions(self, key, server=endpoint, bucket=self._bucket)
        except StoreError:
            self._remove(key)
            raise
        found = self.read(MARKER_KEY)
        if isinstance(found, Stored) and marks(found.data, endpoint):
            return
        try:
            expect = found.version if isinstance(found, Stored) else None
            self.write(MARKER_KEY, marker(endpoint, self._clock.now()), expect=expect)
        except (StoreConflict, StoreUnanswered):
            return

    def _remove(self, key: str) -> None:
        """Best effort: whatever a proof left, without a condition."""
        try:
            self._change("DeleteObject", key, {})
        except StoreError:
            return

    def _read(self, operation: str, key: str, params: Mapping[str, Any]) -> dict[str, Any]:
        return self._tried(operation, key, params, is_write=False)

    def _change(self, operation: str, key: str, params: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return self._tried(operation, key, {"Key": key, **params}, is_write=True)
        except _Missing as missing:
            raise StoreConflict(f"{self._facts.url}: {key} is gone", key=key) from missing

    def _tried(self, operation: str, key: str, params: Mapping[str, Any], *, is_write: bool) -> dict[str, Any]:
        """Send, and send again what may be: anything that surely did nothing, and reads."""
        tries = dict.fromkeys(Kind, 0)
        began = self._clock.boot()
        while True:
            signed_with = self._session.clock_offset_ms
            left = self._session.timeouts.budget - (self._clock.boot() - began)
            try:
                return self._sent(operation, params, read_ms=self._read_ms(tries[Kind.LOST], left, is_write=is_write))
            except Exception as error:
                failure = sort_failure(error, service="s3")
                tries[failure.kind] += 1
                if (
                    failure.kind is Kind.CLOCK
                    and tries[Kind.CLOCK] <= 2
                    and self._session.correct_clock(failure.server_ms, signed_with=signed_with)
                ):
                    continue
                wait = min(8_000, 100 * 2 ** sum(tries.values()))
                over_at = began + self._session.timeouts.budget - self._session.timeouts.connect
                may_wait = self._clock.boot() + wait < over_at
                if (failure.kind is Kind.LOST and is_write) or not self._once_more(tries, failure) or not may_wait:
                    raise self._given_up(failure, error, key, is_write=is_write) from error
                self._clock.sleep(wait // 2 + int(random.random() * wait / 2))

    def _once_more(self, tries: Mapping[Kind, int], failure: Failure) -> bool:
        return tries[failure.kind] < _TRIES.get(failure.kind, 0)

    def _read_ms(self, lost: int, left_ms: int, *, is_write: bool) -> int:
        patience = 4 * self._answer_ms if is_write else self._answer_ms * 2**lost
        return max(1, min(patience, left_ms - self._session.timeouts.connect))

    def _sent(self, operation: str, params: Mapping[str, Any], *, read_ms: int) -> dict[str, Any]:
        answer = self._session.send(
            "s3", operation, {"Bucket": self._bucket, **params}, region=self._region, read_ms=read_ms
        )
        if "Body" in answer:
            answer["Body"] = answer["Body"].read()
        return answer

    def _given_up(self, failure: Failure, error: Exception, key: str, *, is_write: bool) -> Exception:
        """What a failure that is not tried again means to the caller."""
        response: Mapping[str, Any] = getattr(error, "response", {}) or {}
        headers = response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        url = self._facts.url
        match failure.kind:
            case Kind.LOST if is_write:
                return StoreUnanswered(f"{url}: no answer to a write of {key}: {failure.reason}", key=key)
            case Kind.LOST | Kind.UNSENT:
                return StoreUnreachable(
                    f"{url} does not answer: {failure.reason}",
                    key=key,
                    hint="Check the network and the endpoint (AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, --region).",
                )
            case Kind.THROTTLED:
                return StoreUnreachable(f"{url} keeps asking to slow down ({failure.code})", key=key)
            case _:
                if is_write and failure.status in {409, 412}:
                    return StoreConflict(f"{url}: {key} is not the version that was named ({failure.code})", key=key)
                if failure.code in {"NoSuchKey", "404"} and failure.status == 404:
                    return _Missing(self._date(response, key), failure, headers)
                return self._refused(failure, headers, key)

    def _refused(self, failure: Failure, headers: Mapping[str, str], key: str) -> StoreRefused:
        bucket = self._bucket
        if failure.code == "NoSuchBucket" or failure.status == 404:
            return StoreRefused(
                f"there is no bucket {bucket!r}",
                key=key,
                hint=f"Make it with `stackhold bootstrap --state s3://{bucket}`, or name another with --state.",
            )
        if failure.code in _OTHER_REGION or failure.status in {301, 307}:
            where = headers.get("x-amz-bucket-region")
            return StoreRefused(
                f"bucket {bucket!r} is in {'region ' + where if where else 'another region'}, "
                f"not in {self._region or self._session.region}",
                key=key,
                hint=f"Use a bucket of the region, or sign for {where or 'its own'} (AWS_REGION).",
            )
        if failure.code in _CREDENTIALS:
            return StoreRefused(
                f"bucket {bucket!r} does not accept these credentials: {failure.code}: {failure.reason}",
                key=key,
                hint=LOGIN_HINT,
            )
        if failure.status in {401, 403}:
            return StoreRefused(
                f"access to bucket {bucket!r} is denied: {failure.code}: {failure.reason}",
                key=key,
                hint="The credentials need s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket on it.",
            )
        return StoreRefused(f"bucket {bucket!r} refuses {key}: {failure.code}: {failure.reason}", key=key)

    def _unusable(self, key: str) -> StoreRefused:
        """For an answer that says yes and is none of S3's."""
        return StoreRefused(
            f"{self._facts.url}: a read of {key} was answered with something that S3 does not say",
            key=key,
            hint="Check the endpoint (AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL) and what stands between.",
        )

    def _date(self, answer: Mapping[str, Any], key: str) -> Instant:
        date = header_date(answer)
        if date is None:
            raise StoreRefused(
                f"the server of bucket {self._bucket!r} gives no Date, so no lock's age is known", key=key
            )
        return Instant(date)

    def _modified(self, answer: Mapping[str, Any], key: str) -> Instant:
        try:
            text = answer["ResponseMetadata"]["HTTPHeaders"]["last-modified"]
            return Instant(int(parsedate_to_datetime(text).timestamp()) * 1000)
        except (KeyError, ValueError):
            raise StoreRefused(
                f"the server of bucket {self._bucket!r} gives no Last-Modified, so no lock's age is known", key=key
            ) from None


def _version(answer: Mapping[str, Any]) -> Version | None:
    """The object's version; None in an answer that gives none."""
    etag = answer.get("ETag")
    return Version(etag) if isinstance(etag, str) and etag else None


class _Missing(Exception):
    """A 404 for a key; never leaves this module."""

    def __init__(self, now: Instant, failure: Failure, headers: Mapping[str, str]) -> None:
        super().__init__()
        self.now = now
        self.failure = failure
        self.headers = headers


def is_aws(endpoint: str) -> bool:
    """Whether an endpoint is AWS's own, which documents all three conditions."""
    host = urlsplit(endpoint).hostname or ""
    return any(
        host == suffix or host.endswith("." + suffix) for suffix in ("amazonaws.com", "amazonaws.com.cn", "api.aws")
    )


def create_state_bucket(
    session: AwsSession, bucket: str | None = None, *, region: Region | None = None, clock: Clock | None = None
) -> BucketReport:
    """Make, or complete, a bucket for records and locks, and prove that it keeps its conditions.

    Versioned, encrypted, closed to the public and to other accounts. Can be repeated: what is as it should be is
    left alone. Raises `StoreRefused` when the bucket is not ours or the server ignores conditions.
    """
    region = region or session.region
    aws = session.aws(region)
    account = aws.account()
    name = bucket or default_bucket_name(account, region)
    endpoint = session.endpoint("s3")
    report = set_up_bucket(
        aws, name, account=account, trusts_policies=endpoint is None or is_aws(endpoint), is_tls=_is_tls(endpoint)
    )
    S3Store(name, session=session, clock=clock or session.clock, region=region).prove()
    return report.with_step("conditional writes and deletes are honoured")


def _is_tls(endpoint: str | None) -> bool:
    return endpoint is None or endpoint.startswith("https:")


if TYPE_CHECKING:
    _: type[Store] = S3Store
