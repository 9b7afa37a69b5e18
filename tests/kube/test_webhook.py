"""The webhook's server over real TLS on loopback."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from stackhold.errors import InputError
from stackhold.kube import certificates
from stackhold.kube.webhook import LARGEST_BODY, PATH, Webhook
from stackhold.model.instant import Instant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackhold.model.values import JsonMap

NOW = Instant(1_796_083_200_000)
HELD = certificates.make_all(names=["localhost"], now=NOW)


def answer(document: JsonMap) -> JsonMap:
    match document.get("please"):
        case "fail":
            raise RuntimeError("a secret detail")
        case "refuse":
            raise InputError("this is no review")
    return {"asked": document}


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    server = Webhook(answer, HELD.serving, host="127.0.0.1", port=0)
    server.start()
    yield server
    server.close()


def trusting(bundle: bytes) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=bundle.decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


def post(
    webhook: Webhook, body: bytes, *, path: str = PATH, bundle: bytes = HELD.bundle, length: str | None = None
) -> tuple[int, bytes]:
    connection = http.client.HTTPSConnection("localhost", webhook.port, context=trusting(bundle), timeout=20)
    try:
        headers = {"Content-Length": str(len(body)) if length is None else length}
        connection.request("POST", path, body=body, headers=headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_a_review_is_answered_over_a_certificate_that_its_bundle_trusts(webhook: Webhook) -> None:
    status, body = post(webhook, json.dumps({"a": "\u00fc"}).encode(), path=f"{PATH}?timeout=10s")
    assert (status, json.loads(body)) == (200, {"asked": {"a": "\u00fc"}})


@pytest.mark.parametrize(
    ("body", "path", "length", "status"),
    [
        (b"{}", "/other", None, 404),
        (b"{", PATH, None, 400),
        (b"\xff", PATH, None, 400),
        (b'{"please": "refuse"}', PATH, None, 400),
        (b'{"please": "fail"}', PATH, None, 500),
        (b"[" * 100_000, PATH, None, 400),
        (b"", PATH, str(LARGEST_BODY + 1), 413),
        (b"", PATH, "much", 411),
    ],
)
def test_what_is_no_review_is_refused_without_details(
    webhook: Webhook, body: bytes, path: str, length: str | None, status: int
) -> None:
    found, said = post(webhook, body, path=path, length=length)
    assert found == status
    assert b"secret" not in said


def test_a_client_that_says_nothing_keeps_no_other_waiting(webhook: Webhook) -> None:
    with socket.create_connection(("127.0.0.1", webhook.port)), socket.create_connection(("127.0.0.1", webhook.port)):
        assert post(webhook, b"{}")[0] == 200


def test_a_renewed_certificate_is_served_at_once(webhook: Webhook) -> None:
    other: Any = certificates.make_all(names=["localhost"], now=NOW)
    webhook.use(other.serving)
    assert post(webhook, b"{}", bundle=other.bundle)[0] == 200
    with pytest.raises(ssl.SSLCertVerificationError):
        post(webhook, b"{}")


def test_a_closed_webhook_gives_its_port_back() -> None:
    server = Webhook(answer, HELD.serving, host="127.0.0.1", port=0)
    server.start()
    port = server.port
    server.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
