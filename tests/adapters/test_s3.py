"""The bucket store on two emulators, and behind a proxy that loses, delays, denies and forgets conditions."""

from __future__ import annotations

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from stackhold.adapters.aws import AwsSession, Timeouts
from stackhold.adapters.clock import SystemClock
from stackhold.adapters.s3 import S3Store, create_state_bucket, default_bucket_name, is_aws
from stackhold.adapters.s3_proof import MARKER_KEY, marks
from stackhold.errors import InputError, StoreConflict, StoreRefused, StoreUnanswered, StoreUnreachable
from stackhold.model.ids import Region
from stackhold.ports.store import Absent, Store, Stored
from stackhold.testing.clock import FakeClock
from stackhold.testing.proxy import Answer, Rule, SlowProxy
from stackhold.testing.store_suite import Opening, StoreSuite

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.testing.emulators import Emulator

pytestmark = pytest.mark.emulator

BUCKET = "state-of-things"
OPEN = """
from stackhold.adapters.aws import AwsSession
from stackhold.adapters.clock import SystemClock
from stackhold.adapters.s3 import S3Store
store = S3Store({bucket!r}, session=AwsSession(region=None, profile=None), clock=SystemClock())
"""


def boto(emulator: Emulator, url: str | None = None) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=url or emulator.url,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )


def opened(session: AwsSession, bucket: str = BUCKET) -> S3Store:
    return S3Store(bucket, session=session, clock=FakeClock(), answer_ms=300)


class BucketSuite(StoreSuite):
    """On an emulator that is not emptied between tests, which moto takes long for: each has a bucket of its own."""

    @pytest.fixture
    def emulator(self) -> Emulator:
        raise NotImplementedError

    @pytest.fixture
    def bucket(self, emulator: Emulator) -> str:
        name = f"state-{SystemClock().nonce()}"
        boto(emulator).create_bucket(Bucket=name)
        return name

    @pytest.fixture
    def store(self, emulator: Emulator, bucket: str, connect: Callable[..., AwsSession]) -> Store:
        return S3Store(bucket, session=connect(emulator), clock=SystemClock())

    @pytest.fixture
    def opening(self, emulator: Emulator, bucket: str) -> Opening:
        return Opening(OPEN.format(bucket=bucket), emulator.environment())

    def test_conditions_are_proved_once_and_marked(self, store: Store, emulator: Emulator, bucket: str) -> None:
        store.prepare()
        keys = [item["Key"] for item in boto(emulator).list_objects_v2(Bucket=bucket)["Contents"]]
        assert keys == [MARKER_KEY]
        found = store.read(MARKER_KEY)
        assert isinstance(found, Stored)
        assert marks(found.data, emulator.url)
        assert not marks(found.data, "http://another.example")

    def test_a_state_bucket_is_made_whole_and_making_it_again_changes_nothing(
        self, emulator: Emulator, connect: Callable[..., AwsSession]
    ) -> None:
        session = connect(emulator)
        emulator.reset()
        first = create_state_bucket(session)
        assert first.created
        assert first.bucket == default_bucket_name(session.aws().account(), "us-east-1")
        client = boto(emulator)
        assert client.get_bucket_versioning(Bucket=first.bucket)["Status"] == "Enabled"
        rules = client.get_bucket_encryption(Bucket=first.bucket)["ServerSideEncryptionConfiguration"]["Rules"]
        assert rules[0]["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"
        closed = client.get_public_access_block(Bucket=first.bucket)["PublicAccessBlockConfiguration"]
        assert set(closed.values()) == {True}
        again = create_state_bucket(session)
        assert not again.created
        assert [step for step in again.steps if "turned on" in step] == []
        policy_set = [step for step in again.steps if step.startswith("policy set")]
        assert bool(policy_set) == (emulator.kind == "ministack"), "moto ignores conditions in policies"
        store = S3Store(first.bucket, session=session, clock=SystemClock())
        store.write("stackhold/x/lock.json", b"1", expect=None)


class TestOnMinistack(BucketSuite):
    @pytest.fixture
    def emulator(self, ministack_session: Emulator) -> Emulator:
        return ministack_session


class TestOnMoto(BucketSuite):
    @pytest.fixture
    def emulator(self, moto_session: Emulator) -> Emulator:
        return moto_session


@pytest.fixture
def session(ministack: Emulator, proxy: SlowProxy, connect: Callable[..., AwsSession]) -> AwsSession:
    boto(ministack).create_bucket(Bucket=BUCKET)
    return connect(ministack, url=proxy.url)


@pytest.fixture
def store(session: AwsSession) -> S3Store:
    return opened(session)


def test_each_operation_is_one_request(store: S3Store, proxy: SlowProxy) -> None:
    version = store.write("a", b"1", expect=None).version
    version = store.write("a", b"2", expect=version).version
    store.read("a")
    list(store.list("a"))
    store.delete("a", expect=version)
    assert [call.named.operation for call in proxy.calls] == [
        "PutObject", "PutObject", "GetObject", "ListObjectsV2", "DeleteObject",
    ]  # fmt: skip


def test_a_listing_goes_on_past_the_first_page(store: S3Store, ministack: Emulator, proxy: SlowProxy) -> None:
    client = boto(ministack)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: client.put_object(Bucket=BUCKET, Key=f"many/{n:04}", Body=b""), range(1005)))
    assert [entry.key for entry in store.list("many/")] == [f"many/{n:04}" for n in range(1005)]
    assert proxy.count(operation="ListObjectsV2") >= 2


def test_both_times_come_from_the_server(store: S3Store, proxy: SlowProxy) -> None:
    proxy.skew_ms = -3_600_000
    written = store.write("a", b"1", expect=None)
    found = store.read("a")
    missing = store.read("b")
    assert isinstance(found, Stored)
    hour_ago = SystemClock().now() - 3_600_000
    for at in (written.now, found.now, found.modified, missing.now):
        assert abs(at - hour_ago) < 60_000
    assert 0 <= found.now - found.modified < 60_000


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_an_hour_off_is_corrected_from_the_answer(store: S3Store, proxy: SlowProxy, hours: int) -> None:
    proxy.skew_ms, proxy.refuses_skewed = hours * 3_600_000, True
    version = store.write("a", b"1", expect=None).version
    store.write("a", b"2", expect=version)
    assert isinstance(store.read("a"), Stored)
    assert [call.status for call in proxy.calls] == [403, 200, 200, 200]


@pytest.mark.parametrize(("drop", "landed"), [("before", False), ("after", True)])
def test_a_write_without_an_answer_is_never_sent_again(
    store: S3Store, proxy: SlowProxy, drop: Any, landed: bool
) -> None:
    rule = proxy.add(Rule(operation="PutObject", drop=drop))
    with pytest.raises(StoreUnanswered) as unanswered:
        store.write("a", b"1", expect=None)
    assert unanswered.value.key == "a"
    assert rule.caught == 1
    assert isinstance(store.read("a"), Stored) == landed


def test_a_delete_without_an_answer_is_never_sent_again(store: S3Store, proxy: SlowProxy) -> None:
    version = store.write("a", b"1", expect=None).version
    rule = proxy.add(Rule(operation="DeleteObject", drop="after"))
    with pytest.raises(StoreUnanswered):
        store.delete("a", expect=version)
    assert rule.caught == 1
    assert isinstance(store.read("a"), Absent)


def test_a_server_error_to_a_write_is_no_answer(store: S3Store, proxy: SlowProxy) -> None:
    rule = proxy.add(Rule(operation="PutObject", answer=Answer(500, "InternalError")))
    with pytest.raises(StoreUnanswered):
        store.write("a", b"1", expect=None)
    assert rule.caught == 1


def test_a_write_that_hangs_is_given_up_unanswered(store: S3Store, proxy: SlowProxy) -> None:
    proxy.add(Rule(operation="PutObject", delay_ms=5_000))
    began = time.monotonic()
    with pytest.raises(StoreUnanswered):
        store.write("a", b"1", expect=None)
    assert time.monotonic() - began < 4


@pytest.mark.parametrize("code", ["SlowDown", "ServiceUnavailable", "InternalError"])
def test_reads_are_tried_again(store: S3Store, proxy: SlowProxy, code: str) -> None:
    store.write("a", b"1", expect=None)
    proxy.add(Rule(operation="GetObject", times=1, answer=Answer(503, code)))
    assert isinstance(store.read("a"), Stored)


def test_a_throttled_write_is_sent_again_since_nothing_happened(store: S3Store, proxy: SlowProxy) -> None:
    proxy.add(Rule(operation="PutObject", times=2, answer=Answer(503, "SlowDown")))
    store.write("a", b"1", expect=None)
    assert proxy.count(operation="PutObject") == 3


def test_throttling_without_end_is_reported(store: S3Store, proxy: SlowProxy) -> None:
    rule = proxy.add(Rule(answer=Answer(503, "SlowDown")))
    with pytest.raises(StoreUnreachable, match="slow down"):
        store.write("a", b"1", expect=None)
    assert rule.caught == 6


@pytest.mark.parametrize(
    ("status", "code"), [(409, "ConditionalRequestConflict"), (412, "PreconditionFailed"), (404, "NoSuchKey")]
)
def test_a_refused_condition_is_a_conflict(store: S3Store, proxy: SlowProxy, status: int, code: str) -> None:
    version = store.write("a", b"1", expect=None).version
    proxy.add(Rule(answer=Answer(status, code)))
    with pytest.raises(StoreConflict):
        store.write("a", b"2", expect=version)
    with pytest.raises(StoreConflict):
        store.delete("a", expect=version)


def test_a_missing_bucket_is_named_by_every_method(session: AwsSession) -> None:
    store = opened(session, "no-such-bucket")
    for act in (
        lambda: store.read("a"),
        lambda: store.write("a", b"1", expect=None),
        lambda: list(store.list("a")),
        store.prepare,
    ):
        with pytest.raises(StoreRefused, match="there is no bucket 'no-such-bucket'") as refused:
            act()
        assert "bootstrap --state s3://no-such-bucket" in refused.value.hint


def test_a_denied_bucket_is_named_with_what_is_needed(store: S3Store, proxy: SlowProxy) -> None:
    proxy.add(Rule(answer=Answer(403, "AccessDenied", "no")))
    for act in (lambda: store.read("a"), lambda: store.write("a", b"1", expect=None), lambda: list(store.list("a"))):
        with pytest.raises(StoreRefused, match="access to bucket 'state-of-things' is denied") as refused:
            act()
        assert "s3:GetObject" in refused.value.hint


def test_a_bucket_of_another_region_is_found_there_once(
    ministack: Emulator, session: AwsSession, proxy: SlowProxy
) -> None:
    boto(ministack).create_bucket(Bucket="far-away", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    store = opened(session, "far-away")
    store.write("a", b"1", expect=None)
    assert isinstance(store.read("a"), Stored)
    assert [(call.named.region, call.status) for call in proxy.calls] == [
        ("us-east-1", 301), ("eu-west-1", 200), ("eu-west-1", 200),
    ]  # fmt: skip


def test_a_bucket_that_stays_in_another_region_is_refused_by_name(store: S3Store, proxy: SlowProxy) -> None:
    proxy.add(Rule(answer=Answer(301, "PermanentRedirect", headers=(("x-amz-bucket-region", "eu-west-1"),))))
    with pytest.raises(StoreRefused, match="'state-of-things' is in region eu-west-1, not in us-east-1"):
        store.read("a")


def test_an_endpoint_that_hangs_is_reported_in_bounded_time(
    ministack: Emulator, connect: Callable[..., AwsSession]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        session = connect(ministack, url=f"http://127.0.0.1:{silent.getsockname()[1]}")
        began = time.monotonic()
        with pytest.raises(StoreUnreachable, match="s3://state-of-things does not answer"):
            opened(session).read("a")
        assert time.monotonic() - began < 5


def test_an_endpoint_where_nobody_listens_is_reported(ministack: Emulator, connect: Callable[..., AwsSession]) -> None:
    store = opened(connect(ministack, url="http://127.0.0.1:9"))
    with pytest.raises(StoreUnreachable):
        store.write("a", b"1", expect=None)


def test_a_call_budget_is_kept(ministack: Emulator, proxy: SlowProxy, connect: Callable[..., AwsSession]) -> None:
    session = connect(ministack, url=proxy.url, timeouts=Timeouts.within(400))
    boto(ministack).create_bucket(Bucket=BUCKET)
    proxy.add(Rule(delay_ms=3_000))
    store = S3Store(BUCKET, session=session, clock=SystemClock())
    began = time.monotonic()
    with pytest.raises(StoreUnreachable):
        store.read("a")
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    ("header", "operation", "condition"),
    [
        ("If-None-Match", "PutObject", r"create if absent \(If-None-Match"),
        ("If-Match", "PutObject", r"replace if this version \(If-Match on PUT"),
        ("If-Match", "DeleteObject", r"delete if this version \(If-Match on DELETE"),
    ],
)
def test_a_server_that_ignores_a_condition_is_refused_by_name_and_nothing_stays(
    ministack: Emulator, store: S3Store, proxy: SlowProxy, header: str, operation: str, condition: str
) -> None:
    proxy.add(Rule(operation=operation, strip=(header,)))
    with pytest.raises(StoreRefused, match=f"ignores a condition.*{condition}") as refused:
        store.prepare()
    assert proxy.url in refused.value.message
    assert boto(ministack).list_objects_v2(Bucket=BUCKET).get("Contents", []) == []


def test_a_server_that_does_not_know_a_condition_is_refused_by_name(store: S3Store, proxy: SlowProxy) -> None:
    proxy.add(
        Rule(operation="PutObject", when=lambda _, m: bool(m.header("If-Match")), answer=Answer(501, "NotImplemented"))
    )
    with pytest.raises(StoreRefused, match=r"does not know a condition.*If-Match on PUT"):
        store.prepare()


def test_a_marked_bucket_is_prepared_with_one_read(store: S3Store, proxy: SlowProxy) -> None:
    store.prepare()
    before = proxy.count()
    store.prepare()
    assert [call.name for call in proxy.calls[before:]] == ["s3:GetObject"]


def test_a_mark_that_is_no_mark_is_proved_again(store: S3Store) -> None:
    store.write(MARKER_KEY, b"[]", expect=None)
    store.prepare()
    found = store.read(MARKER_KEY)
    assert isinstance(found, Stored)
    assert "provedAt" in json.loads(found.data)


@pytest.mark.parametrize(
    ("endpoint", "trusted"),
    [
        ("https://s3.eu-west-1.amazonaws.com", True),
        ("https://bucket.vpce-1.s3.us-east-1.vpce.amazonaws.com", True),
        ("https://s3.cn-north-1.amazonaws.com.cn", True),
        ("https://amazonaws.com.evil.example", False),
        ("https://notamazonaws.com", False),
        ("http://127.0.0.1:9000", False),
    ],
)
def test_only_awss_own_hosts_are_trusted_without_proof(endpoint: str, trusted: bool) -> None:
    assert is_aws(endpoint) == trusted


def test_missing_credentials_are_a_line_about_input(
    ministack: Emulator, connect: Callable[..., AwsSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = connect(ministack)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(InputError, match="credentials"):
        opened(session).read("a")


def test_a_state_bucket_that_belongs_to_somebody_else_is_refused(session: AwsSession, proxy: SlowProxy) -> None:
    proxy.add(Rule(operation="HeadBucket", answer=Answer(403, "AccessDenied")))
    with pytest.raises(StoreRefused, match="access is denied, or it belongs to another account"):
        create_state_bucket(session, "taken")


def test_a_state_bucket_in_another_region_is_refused(session: AwsSession, proxy: SlowProxy) -> None:
    there = Answer(200, headers=(("x-amz-bucket-region", "eu-west-1"),))
    proxy.add(Rule(operation="HeadBucket", answer=there))
    with pytest.raises(StoreRefused, match="exists in eu-west-1, not in us-east-1"):
        create_state_bucket(session, "elsewhere")


def test_a_state_bucket_can_be_made_where_no_region_is_set(
    ministack: Emulator, connect: Callable[..., AwsSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = connect(ministack)
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    report = create_state_bucket(session, region=Region("eu-west-1"))
    assert report.bucket == "stackhold-state-000000000000-eu-west-1"
    head = boto(ministack).head_bucket(Bucket=report.bucket)
    assert head["BucketRegion"] == "eu-west-1"


def test_a_policy_keeps_what_others_put_into_it(ministack: Emulator, session: AwsSession) -> None:
    theirs = {
        "Sid": "Theirs",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:GetObject",
        "Resource": f"arn:aws:s3:::{BUCKET}/private/*",
    }
    boto(ministack).put_bucket_policy(
        Bucket=BUCKET, Policy=json.dumps({"Version": "2012-10-17", "Statement": [theirs]})
    )
    create_state_bucket(session, BUCKET)
    sids = [item["Sid"] for item in json.loads(boto(ministack).get_bucket_policy(Bucket=BUCKET)["Policy"])["Statement"]]
    assert sids == ["Theirs", "StackholdDenyOtherAccounts"]
