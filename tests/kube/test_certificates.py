"""When the webhook's certificate is renewed, and that the API server trusts what is served at every moment."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st

from stackhold.kube import certificates
from stackhold.kube.certificates import (
    AUTHORITY_LIFE,
    CERTIFICATE_LIFE,
    DAY,
    Held,
    Step,
    from_secret,
    next_step,
    secret,
)
from stackhold.model.instant import Instant

NOW = Instant(1_796_083_200_000)
NAMES = certificates.names_of_service("captf-webhook", "captf-system")
HELD = certificates.make_all(names=NAMES, now=NOW)


def at(days: float) -> Instant:
    return Instant(NOW + int(days * DAY))


def step(
    held: Held | None = HELD, *, days: float = 0, published: bytes | None = None, names: list[str] = NAMES
) -> Step:
    shown = held.bundle if published is None and held else published or b""
    return next_step(held, published=shown, names=names, now=at(days))


def trusts(bundle: bytes, held: Held) -> bool:
    serving = x509.load_pem_x509_certificate(held.serving.certificate)
    for authority in x509.load_pem_x509_certificates(bundle):
        try:
            serving.verify_directly_issued_by(authority)
        except Exception:
            continue
        return True
    return False


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"held": None}, Step.MAKE_ALL),
        ({}, Step.KEEP),
        ({"published": b""}, Step.PUBLISH),
        ({"published": b"of somebody else"}, Step.PUBLISH),
        ({"days": 243}, Step.KEEP),
        ({"days": 244}, Step.RENEW_CERTIFICATE),
        ({"days": 400}, Step.RENEW_CERTIFICATE),
        ({"days": 2434}, Step.RENEW_AUTHORITY),
        ({"days": 5000}, Step.RENEW_AUTHORITY),
        ({"names": ["other.svc"]}, Step.RENEW_CERTIFICATE),
        ({"names": ["other.svc"], "published": b""}, Step.PUBLISH),
    ],
)
def test_one_thing_is_due_at_a_time(given: dict[str, Any], expected: Step) -> None:
    assert step(**given) is expected


def test_a_certificate_serves_the_names_of_its_service() -> None:
    serving = x509.load_pem_x509_certificate(HELD.serving.certificate)
    names = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [
        "captf-webhook.captf-system.svc",
        "captf-webhook.captf-system.svc.cluster.local",
    ]
    assert (serving.not_valid_after_utc.timestamp() * 1000) - NOW == CERTIFICATE_LIFE


def test_what_a_secret_holds_is_read_back() -> None:
    document: Any = secret(HELD, namespace="captf-system")
    assert from_secret(document["data"]) == HELD
    assert document["type"] == "kubernetes.io/tls"


@pytest.mark.parametrize("key", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
@pytest.mark.parametrize("damage", ["missing", "no base64", "no PEM", "of another"])
def test_a_damaged_secret_holds_nothing(key: str, damage: str) -> None:
    document: Any = secret(HELD, namespace="x")
    other: Any = secret(certificates.make_all(names=NAMES, now=NOW), namespace="x")
    data = dict(document["data"])
    data[key] = {"missing": "", "no base64": "!", "no PEM": "eHg=", "of another": other["data"][key]}[damage]
    if damage == "missing":
        del data[key]
    assert from_secret(data) is None


def test_a_new_authority_is_trusted_before_it_signs() -> None:
    renewed = certificates.with_new_authority(HELD, now=at(10))
    assert renewed.serving == HELD.serving
    assert trusts(HELD.bundle, renewed)
    assert trusts(renewed.bundle, renewed)
    assert step(renewed, days=300, published=HELD.bundle) is Step.PUBLISH
    assert step(renewed, days=300) is Step.RENEW_CERTIFICATE


@settings(max_examples=25, deadline=None)
@given(waits=st.lists(st.integers(0, 120), min_size=1, max_size=60))
def test_the_api_server_never_refuses_what_any_replica_serves(waits: list[int]) -> None:
    held, published, now = HELD, HELD.bundle, NOW
    for wait in waits:
        before, now = held, Instant(now + wait * DAY)
        match next_step(held, published=published, names=NAMES, now=now):
            case Step.RENEW_AUTHORITY:
                held = certificates.with_new_authority(held, now=now)
            case Step.PUBLISH:
                published = held.bundle
            case Step.RENEW_CERTIFICATE:
                held = certificates.with_new_certificate(held, names=NAMES, now=now)
            case _:
                pass
        assert trusts(published, before)
        assert trusts(published, held)


def test_a_key_is_shown_nowhere() -> None:
    assert "PRIVATE" not in repr(HELD)
    assert AUTHORITY_LIFE == 10 * CERTIFICATE_LIFE
