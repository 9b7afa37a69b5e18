"""No credentials of a URL stay in a text, and nothing else of it is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.model.user_info import without_user_info

SECRET = "s3cr3tpw"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f'endpoint URL: "http://user:{SECRET}@127.0.0.1:1/"', 'endpoint URL: "http://***@127.0.0.1:1/"'),
        (f"http://{SECRET}@h and https://a:{SECRET}@[::1]:80/x", "http://***@h and https://***@[::1]:80/x"),
        (f"http://u:{SECRET}@more@h/x", "http://***@h/x"),
        (f"Invalid endpoint: http://u:{SECRET}/x@h", "Invalid endpoint: http://***@h"),
        (f"git::https://{SECRET}@host/m.git?ref=v@1", "git::https://***@host/m.git?ref=v@1"),
        (f"s3://u:{SECRET}@bucket", "s3://***@bucket"),
    ],
)
def test_credentials_are_masked(text: str, masked: str) -> None:
    assert without_user_info(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "maria@ci-7:4711",
        "http://127.0.0.1:4566/a@b",
        "https://host/m.git?ref=v@1",
        "http://[::1]:80/x@y",
        "https://h:443 and maria@ci",
        "arn:aws:sns:us-east-1:0:t",
    ],
)
def test_what_is_no_user_info_stays(text: str) -> None:
    assert without_user_info(text) == text


@given(st.text(st.characters(codec="ascii", exclude_characters="\"'<>[] \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"), min_size=1))
def test_no_password_without_blanks_and_quotes_is_left(password: str) -> None:
    assert without_user_info(f"to http://u:x{password}@host/p failed") == "to http://***@host/p failed"
