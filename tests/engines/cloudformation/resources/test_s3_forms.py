"""A bucket's configurations survive the way to S3 and back."""

from __future__ import annotations

from typing import Any

import pytest

from stackhold.engines.cloudformation.resources import s3_forms as forms

RULES: list[dict[str, Any]] = [
    {"Status": "Enabled", "ExpirationInDays": 3},
    {"Id": "a", "Status": "Enabled", "Prefix": "logs/", "ExpirationInDays": 3},
    {"Status": "Enabled", "TagFilters": [{"Key": "a", "Value": "b"}], "ExpiredObjectDeleteMarker": True},
    {
        "Status": "Disabled",
        "Prefix": "x/",
        "TagFilters": [{"Key": "a", "Value": "b"}, {"Key": "c", "Value": "d"}],
        "ObjectSizeGreaterThan": "10",
        "ObjectSizeLessThan": "100",
        "Transitions": [{"StorageClass": "GLACIER", "TransitionInDays": 1}],
    },
    {"Status": "Enabled", "NoncurrentVersionExpiration": {"NoncurrentDays": 2, "NewerNoncurrentVersions": 3}},
    {"Status": "Enabled", "NoncurrentVersionExpirationInDays": 4},
    {"Status": "Enabled", "NoncurrentVersionTransitions": [{"StorageClass": "GLACIER", "TransitionInDays": 1}]},
    {"Status": "Enabled", "Transition": {"StorageClass": "GLACIER", "TransitionInDays": 1}},
    {"Status": "Enabled", "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1}},
]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_lifecycle_rule_comes_back_as_it_was_written(rule: dict[str, Any]) -> None:
    declared = {"Rules": [rule]}
    sent = forms.lifecycle_to(declared)
    answer = {"Rules": [{"ID": "made-up", **sent["Rules"][0]}]}
    assert forms.lifecycle_from(answer, declared) == declared


def test_several_conditions_of_a_rule_are_sent_as_one() -> None:
    sent = forms.lifecycle_to({"Rules": [{"Status": "Enabled", "Prefix": "a", "ObjectSizeGreaterThan": "5"}]})
    assert sent["Rules"][0]["Filter"] == {"And": {"Prefix": "a", "ObjectSizeGreaterThan": 5}}


def test_a_website_comes_back_as_it_was_written() -> None:
    declared = {
        "IndexDocument": "i.html",
        "ErrorDocument": "e.html",
        "RoutingRules": [
            {"RedirectRule": {"HostName": "a.b"}, "RoutingRuleCondition": {"KeyPrefixEquals": "docs/"}},
        ],
    }
    assert forms.website_from(forms.website_to(declared)) == declared
    redirect = {"RedirectAllRequestsTo": {"HostName": "a.b", "Protocol": "https"}}
    assert forms.website_from(forms.website_to(redirect)) == redirect


def test_notifications_come_back_in_the_templates_order_and_case() -> None:
    def rule(name: str) -> dict[str, Any]:
        return {"S3Key": {"Rules": [{"Name": name, "Value": "in/"}]}}

    declared = {
        "LambdaConfigurations": [
            {"Event": "s3:ObjectCreated:*", "Function": "arn:f"},
            {"Event": "s3:ObjectRemoved:*", "Function": "arn:g", "Filter": rule("prefix")},
        ],
        "TopicConfigurations": [{"Event": "s3:ObjectRemoved:*", "Topic": "arn:t"}],
    }
    sent = forms.notification_to(declared)
    entries = sent["LambdaFunctionConfigurations"]
    entries[1]["Filter"]["Key"]["FilterRules"][0]["Name"] = "Prefix"
    answer = {**sent, "LambdaFunctionConfigurations": entries[::-1]}
    assert forms.notification_from(answer, declared) == declared


def test_no_notification_is_none() -> None:
    assert forms.notification_from({}, None) is None


def test_a_bucket_without_a_destination_logs_into_itself() -> None:
    sent = forms.logging_to({"LogFilePrefix": "l/"}, bucket="b")
    assert sent == {"LoggingEnabled": {"TargetBucket": "b", "TargetPrefix": "l/"}}
    assert forms.logging_from({}) is None


def test_encryption_types_that_s3_blocks_by_itself_are_no_difference() -> None:
    declared = {"ServerSideEncryptionConfiguration": [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]}
    answer = forms.encryption_to(declared)
    answer["Rules"][0]["BlockedEncryptionTypes"] = {"EncryptionType": ["SSE-C"]}
    assert forms.encryption_from(answer, declared) == declared
