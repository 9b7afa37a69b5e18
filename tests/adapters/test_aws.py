"""The account as the engine calls it, against ministack behind a proxy that throttles, loses and skews."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from stackhold.adapters.aws import AwsSession, Timeouts
from stackhold.errors import AwsError, Bug, CloudError, InputError, OutcomeUnknown, StackholdError, StoodDown
from stackhold.model.ids import Region
from stackhold.ports.aws import Aws, Resend
from stackhold.testing.clock import FakeClock
from stackhold.testing.proxy import Answer, Rule, SlowProxy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stackhold.testing.emulators import Emulator

pytestmark = pytest.mark.emulator


@pytest.fixture
def session(ministack: Emulator, proxy: SlowProxy, connect: Callable[..., AwsSession]) -> AwsSession:
    return connect(ministack, url=proxy.url)


@pytest.fixture
def aws(session: AwsSession) -> Aws:
    session.clock = FakeClock()
    return session.aws()


def queues(emulator: Emulator) -> list[str]:
    client = boto3.client(
        "sqs", endpoint_url=emulator.url, region_name="us-east-1", aws_access_key_id="t", aws_secret_access_key="t"
    )
    return [url.rsplit("/", 1)[1] for url in client.list_queues().get("QueueUrls", [])]


def test_an_answer_is_plain_data_without_metadata(aws: Aws) -> None:
    aws.call("s3", "CreateBucket", {"Bucket": "plain-data"})
    aws.call("s3", "PutObject", {"Bucket": "plain-data", "Key": "k", "Body": b"bytes"})
    answer = aws.call("s3", "GetObject", {"Bucket": "plain-data", "Key": "k"})
    assert answer["Body"] == b"bytes"
    assert "ResponseMetadata" not in answer


def test_a_refusal_is_one_error_with_its_facts(aws: Aws) -> None:
    with pytest.raises(AwsError) as refused:
        aws.call("lambda", "GetFunction", {"FunctionName": "none-such"})
    error = refused.value
    assert (error.service, error.operation, error.code) == ("lambda", "GetFunction", "ResourceNotFoundException")
    assert (error.status, error.sent_before) == (404, False)


def test_wrong_parameters_are_refused_before_anything_is_sent(aws: Aws, proxy: SlowProxy) -> None:
    with pytest.raises(AwsError, match=r"ParamValidation.*QueueName") as refused:
        aws.call("sqs", "CreateQueue", {"Name": "q"})
    assert "\n" not in str(refused.value)
    assert proxy.calls == []


def test_names_that_botocore_does_not_know_are_our_bug(aws: Aws) -> None:
    with pytest.raises(Bug):
        aws.call("sqs", "MakeQueue", {})
    with pytest.raises(Bug):
        aws.call("no-such-service", "Get", {})


@pytest.mark.parametrize("resend", Resend)
def test_throttling_is_waited_out(aws: Aws, proxy: SlowProxy, ministack: Emulator, resend: Resend) -> None:
    proxy.add(Rule(operation="CreateQueue", times=8, answer=Answer(400, "ThrottlingException")))
    aws.call("sqs", "CreateQueue", {"QueueName": "slowly"}, resend=resend)
    assert proxy.count(operation="CreateQueue") == 9
    assert queues(ministack) == ["slowly"]


def test_before_each_try_but_the_first_the_caller_looks(aws: Aws, proxy: SlowProxy, ministack: Emulator) -> None:
    looks: list[int] = []
    proxy.add(Rule(operation="CreateQueue", times=3, answer=Answer(400, "ThrottlingException")))
    aws.call(
        "sqs", "CreateQueue", {"QueueName": "seen"}, look=lambda: looks.append(proxy.count(operation="CreateQueue"))
    )
    assert looks == [1, 2, 3]
    assert queues(ministack) == ["seen"]


@pytest.mark.parametrize(("lost", "sent_before"), [(0, False), (1, True)])
def test_a_look_that_finds_the_way_barred_ends_the_call_without_another_try(
    aws: Aws, proxy: SlowProxy, lost: int, sent_before: bool
) -> None:
    def look() -> None:
        if proxy.count(operation="CreateQueue") == 2:
            raise AwsError(service="sqs", operation="CreateQueue", code="QueueNameExists", reason="taken")

    proxy.add(Rule(operation="CreateQueue", times=lost, drop="before"))
    proxy.add(Rule(operation="CreateQueue", answer=Answer(400, "ThrottlingException")))
    with pytest.raises(AwsError, match="taken") as barred:
        aws.call("sqs", "CreateQueue", {"QueueName": "taken"}, look=look)
    assert proxy.count(operation="CreateQueue") == 2
    assert barred.value.sent_before is sent_before


def test_a_look_that_fails_after_a_lost_try_leaves_the_call_unknown(aws: Aws, proxy: SlowProxy) -> None:
    def look() -> None:
        raise CloudError("sqs:GetQueueUrl was not answered")

    proxy.add(Rule(operation="CreateQueue", drop="before"))
    with pytest.raises(OutcomeUnknown, match="no further try"):
        aws.call("sqs", "CreateQueue", {"QueueName": "taken"}, look=look)
    proxy.reset()
    proxy.add(Rule(operation="CreateQueue", answer=Answer(400, "ThrottlingException")))
    with pytest.raises(CloudError, match="was not answered") as failed:
        aws.call("sqs", "CreateQueue", {"QueueName": "taken"}, look=look)
    assert not isinstance(failed.value, OutcomeUnknown)


def test_throttling_that_outlasts_the_budget_is_the_refusal_it_is(
    aws: Aws, session: AwsSession, proxy: SlowProxy
) -> None:
    proxy.add(Rule(answer=Answer(400, "ThrottlingException")))
    began = session.clock.boot()
    with pytest.raises(AwsError, match="ThrottlingException"):
        aws.call("sqs", "ListQueues", {})
    assert 180_000 < session.clock.boot() - began < 240_000


@pytest.mark.parametrize("drop", ["before", "after"])
def test_a_lost_answer_to_what_may_be_resent_is_sent_again(
    aws: Aws, proxy: SlowProxy, ministack: Emulator, drop: Any
) -> None:
    proxy.add(Rule(operation="CreateQueue", times=2, drop=drop))
    aws.call("sqs", "CreateQueue", {"QueueName": "again"})
    assert proxy.count(operation="CreateQueue") == 3
    assert queues(ministack) == ["again"]


@pytest.mark.parametrize(("drop", "landed"), [("before", 0), ("after", 1)])
def test_a_lost_answer_to_what_must_not_be_resent_is_unknown(
    aws: Aws, proxy: SlowProxy, ministack: Emulator, drop: Any, landed: int
) -> None:
    proxy.add(Rule(operation="CreateQueue", drop=drop))
    with pytest.raises(OutcomeUnknown) as unknown:
        aws.call("sqs", "CreateQueue", {"QueueName": "once"}, resend=Resend.NEVER)
    assert (unknown.value.service, unknown.value.operation) == ("sqs", "CreateQueue")
    assert proxy.count(operation="CreateQueue") == 1
    assert len(queues(ministack)) == landed


def test_a_server_error_to_what_must_not_be_resent_is_unknown(aws: Aws, proxy: SlowProxy) -> None:
    proxy.add(Rule(answer=Answer(500, "InternalFailure")))
    with pytest.raises(OutcomeUnknown, match="InternalFailure"):
        aws.call("ec2", "CreateVpc", {"CidrBlock": "10.0.0.0/16"}, resend=Resend.NEVER)
    assert proxy.count() == 1


def test_a_refusal_after_a_lost_answer_says_that_it_may_be_our_own(aws: Aws, proxy: SlowProxy) -> None:
    params = {"TableName": "twice", "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
              "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}], "BillingMode": "PAY_PER_REQUEST"}  # fmt: skip
    proxy.add(Rule(operation="CreateTable", times=1, drop="after"))
    with pytest.raises(AwsError, match="ResourceInUse") as refused:
        aws.call("dynamodb", "CreateTable", params)
    assert refused.value.sent_before


def test_answers_that_stay_lost_leave_a_change_unknown_and_a_read_failed(aws: Aws, proxy: SlowProxy) -> None:
    proxy.add(Rule(drop="before"))
    with pytest.raises(OutcomeUnknown):
        aws.call("sqs", "CreateQueue", {"QueueName": "q"})
    assert proxy.count(operation="CreateQueue") == 10
    with pytest.raises(CloudError, match="was not answered") as failed:
        aws.call("sqs", "ListQueues", {})
    assert not isinstance(failed.value, OutcomeUnknown)


def test_a_hanging_call_is_over_within_its_budget(
    ministack: Emulator, proxy: SlowProxy, connect: Callable[..., AwsSession]
) -> None:
    aws = connect(ministack, url=proxy.url, timeouts=Timeouts.within(600)).aws()
    proxy.add(Rule(delay_ms=4_000))
    began = time.monotonic()
    with pytest.raises(OutcomeUnknown):
        aws.call("sqs", "CreateQueue", {"QueueName": "q"})
    assert time.monotonic() - began < 2.5


def test_nobody_listening_is_reported_without_a_refusal(
    ministack: Emulator, connect: Callable[..., AwsSession]
) -> None:
    session = connect(ministack, url="http://127.0.0.1:9")
    session.clock = FakeClock()
    for resend in Resend:
        with pytest.raises(CloudError, match="could not be sent") as failed:
            session.aws().call("sqs", "CreateQueue", {"QueueName": "q"}, resend=resend)
        assert not isinstance(failed.value, AwsError | OutcomeUnknown)


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_an_hour_off_is_corrected_once_for_all_services(aws: Aws, proxy: SlowProxy, hours: int) -> None:
    proxy.skew_ms, proxy.refuses_skewed = hours * 3_600_000, True
    aws.call("s3", "CreateBucket", {"Bucket": "skewed-bucket"}, resend=Resend.NEVER)
    aws.call("sqs", "CreateQueue", {"QueueName": "q"})
    aws.call("ec2", "DescribeVpcs", {})
    assert [call.status for call in proxy.calls] == [403, 200, 200, 200]


@pytest.mark.parametrize(
    ("service", "operation"), [("sqs", "ListQueues"), ("sns", "ListTopics"), ("ec2", "DescribeVpcs")]
)
def test_each_protocols_word_for_a_wrong_clock_is_understood(
    aws: Aws, proxy: SlowProxy, service: str, operation: str
) -> None:
    proxy.skew_ms, proxy.refuses_skewed = 3_600_000, True
    aws.call(service, operation, {})
    assert proxy.count() == 2


def test_threads_that_meet_the_wrong_clock_together_all_get_through(aws: Aws, proxy: SlowProxy) -> None:
    proxy.skew_ms, proxy.refuses_skewed = 3_600_000, True
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: aws.call("sqs", "CreateQueue", {"QueueName": f"q{n}"}), range(8)))


def test_a_wrong_secret_is_not_taken_for_a_wrong_clock(aws: Aws, proxy: SlowProxy) -> None:
    proxy.add(Rule(answer=Answer(403, "SignatureDoesNotMatch")))
    with pytest.raises(AwsError, match="SignatureDoesNotMatch"):
        aws.call("sns", "ListTopics", {})
    assert proxy.count() == 1


def test_the_check_runs_before_each_send_and_stops_it(aws: Aws, proxy: SlowProxy) -> None:
    seen: list[int] = []

    def check() -> None:
        seen.append(proxy.count())
        if proxy.count() >= 2:
            raise StoodDown("the lock is not provably ours")

    proxy.add(Rule(answer=Answer(400, "ThrottlingException")))
    with pytest.raises(StoodDown):
        aws.guarded(check).call("sqs", "ListQueues", {})
    assert proxy.count() == 2
    assert set(seen) == {0, 1, 2}


def test_a_stop_after_a_lost_answer_leaves_the_call_unknown(aws: Aws, proxy: SlowProxy) -> None:
    def check() -> None:
        if proxy.count() >= 1:
            raise StoodDown("over")

    proxy.add(Rule(drop="after"))
    with pytest.raises(OutcomeUnknown, match="over"):
        aws.guarded(check).call("sqs", "CreateQueue", {"QueueName": "q"})
    assert proxy.count() == 1


def test_the_account_is_asked_once_whoever_asks(session: AwsSession, proxy: SlowProxy) -> None:
    views = [session.aws(), session.aws(Region("eu-west-1")), session.aws().guarded(lambda: None)]
    with ThreadPoolExecutor(9) as pool:
        accounts = set(pool.map(lambda view: view.account(), views * 3))
    assert accounts == {"000000000000"}
    assert proxy.count(operation="GetCallerIdentity") == 1


def test_an_account_that_is_not_answered_is_reported_within_half_a_minute(
    aws: Aws, session: AwsSession, proxy: SlowProxy
) -> None:
    proxy.add(Rule(drop="before"))
    began = session.clock.boot()
    with pytest.raises(CloudError, match="sts:GetCallerIdentity was not answered"):
        aws.account()
    assert session.clock.boot() - began < 30_000


def test_a_read_is_paged_to_its_end(aws: Aws, proxy: SlowProxy) -> None:
    for number in range(5):
        aws.call("ssm", "PutParameter", {"Name": f"/p/{number}", "Value": "v", "Type": "String"})
    pages = list(aws.pages("ssm", "DescribeParameters", {"MaxResults": 2}))
    assert [len(page["Parameters"]) for page in pages] == [2, 2, 1]
    assert proxy.count(operation="DescribeParameters") == 3


def test_what_has_no_pages_is_one_page(aws: Aws) -> None:
    assert len(list(aws.pages("dynamodb", "DescribeLimits", {}))) == 1


def test_throttled_pages_are_tried_again(aws: Aws, proxy: SlowProxy) -> None:
    proxy.add(Rule(operation="ListTopics", times=2, answer=Answer(400, "Throttling")))
    assert len(list(aws.pages("sns", "ListTopics", {}))) == 1


def test_concurrency_shrinks_while_a_service_throttles(session: AwsSession, proxy: SlowProxy) -> None:
    inside, most, lock = 0, 0, threading.Lock()

    def enter(_: object) -> None:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)

    def leave(_: object) -> None:
        nonlocal inside
        with lock:
            inside -= 1

    aws = session.aws(max_workers=8)
    throttle = proxy.add(Rule(operation="ListQueues", times=6, answer=Answer(400, "ThrottlingException")))
    proxy.add(Rule(operation="ListQueues", delay_ms=20, before=enter, after=leave))
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: aws.call("sqs", "ListQueues", {}), range(24)))
    assert throttle.caught == 6
    assert most <= 8


def test_a_bucket_name_never_becomes_part_of_a_local_host(
    ministack: Emulator,
    proxy: SlowProxy,
    connect: Callable[..., AwsSession],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = connect(ministack, url=proxy.url.replace("127.0.0.1", "localhost"))
    config = tmp_path / "config"
    config.write_text("[default]\ns3 =\n  addressing_style = virtual\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    session.aws().call("s3", "CreateBucket", {"Bucket": "in-the-path"})
    assert [call.named.path for call in proxy.calls] == ["/in-the-path"]


def test_an_endpoint_of_one_service_counts_for_it_alone(
    ministack: Emulator, proxy: SlowProxy, connect: Callable[..., AwsSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = connect(ministack)
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", proxy.url)
    session.aws().call("sqs", "ListQueues", {})
    session.aws().call("sns", "ListTopics", {})
    assert [call.name for call in proxy.calls] == ["sqs:ListQueues"]
    assert session.endpoint("sqs") == proxy.url


def test_the_region_comes_from_the_flag_then_the_environment_then_the_profile(
    ministack: Emulator, connect: Callable[..., AwsSession], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(ministack)
    config = tmp_path / "config"
    config.write_text("[profile away]\nregion = sa-east-1\n[default]\nregion = eu-north-1\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert AwsSession(region="cn-north-1", profile=None).region == "cn-north-1"
    assert AwsSession(region="cn-north-1", profile=None).url_suffix == "amazonaws.com.cn"
    assert AwsSession(region=None, profile=None).region == "eu-west-1"
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    assert AwsSession(region=None, profile=None).region == "eu-north-1"
    assert AwsSession(region=None, profile="away").region == "sa-east-1"
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.setenv(name, "")
    assert AwsSession(region=None, profile=None).region == "eu-north-1"
    assert AwsSession(region=None, profile="away").region == "sa-east-1"


def test_what_is_missing_or_wrong_in_the_settings_is_one_line_with_a_hint(
    ministack: Emulator, connect: Callable[..., AwsSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(ministack)
    with pytest.raises(InputError, match="no AWS profile 'nobody'"):
        AwsSession(region="us-east-1", profile="nobody").aws().account()
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(InputError, match="no region is named") as refused:
        _ = AwsSession(region=None, profile=None).region
    assert "--region" in refused.value.hint
    with pytest.raises(InputError, match="is no region"):
        _ = AwsSession(region="../x", profile=None).region
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(InputError, match="credentials"):
        AwsSession(region="us-east-1", profile=None).aws().account()
    assert os.environ["AWS_ENDPOINT_URL"]


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        ("AWS_ENDPOINT_URL", "@127.0.0.1:1"),
        ("AWS_ENDPOINT_URL", "@127.0.0.1:nonsense"),
        ("AWS_ENDPOINT_URL", "/@127.0.0.1:1"),
        ("AWS_ENDPOINT_URL", "@[::1"),
        ("HTTP_PROXY", "@127.0.0.1:1"),
        ("HTTP_PROXY", "@127.0.0.1:nonsense"),
    ],
)
def test_the_credentials_of_an_endpoint_or_a_proxy_are_in_no_error(
    ministack: Emulator, connect: Callable[..., AwsSession], monkeypatch: pytest.MonkeyPatch, name: str, rest: str
) -> None:
    connect(ministack)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://192.0.2.1")
    monkeypatch.setenv(name, f"http://user:s3cr3tpw{rest}")
    session = AwsSession(region="us-east-1", profile=None, timeouts=Timeouts.within(2_000))
    with pytest.raises(StackholdError) as failed:
        session.aws().call("sqs", "ListQueues", {})
    assert "s3cr3tpw" not in f"{failed.value.message} {failed.value.hint} {vars(failed.value)}"


@pytest.mark.parametrize(
    ("region", "partition", "suffix"),
    [
        ("us-east-1", "aws", "amazonaws.com"),
        ("cn-northwest-1", "aws-cn", "amazonaws.com.cn"),
        ("us-gov-west-1", "aws-us-gov", "amazonaws.com"),
        ("eu-nowhere-9", "aws", "amazonaws.com"),
    ],
)
def test_a_regions_partition_and_suffix(session: AwsSession, region: str, partition: str, suffix: str) -> None:
    assert session.dns_names(Region(region)) == (partition, suffix)
    assert session.aws(Region(region)).partition == partition


def test_botocore_reads_the_same_model_through_the_quick_loader(session: AwsSession) -> None:
    from botocore.loaders import Loader

    for kind in ("service-2", "endpoint-rule-set-1", "paginators-1"):
        assert session.loader().load_service_model("sqs", kind) == Loader().load_service_model("sqs", kind)
