"""The webhook's certificate: when it is due, and how it is made.

The manager is its own authority. The authority lives ten years, what it signs one year; each is renewed when a third
of its life is left. A new authority does not touch the certificate that is served: the bundle, by which the API server
trusts, holds the new and the old authority, and only when that bundle is published is anything signed by the new one.
So there is no moment at which the API server refuses what any replica serves.

`next_step` decides and reads no clock. Keys are made here and nowhere else; they are shown in no message.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as NoBase64
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING

from stackhold.kube.names import Label
from stackhold.model.instant import HOUR, Instant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, CertificateBuilder, KeyUsage, Name

    from stackhold.model.values import JsonMap

SECRET = "captf-webhook-server-cert"
DAY = 24 * HOUR
AUTHORITY_LIFE = 3650 * DAY
CERTIFICATE_LIFE = 365 * DAY
_SKEW = HOUR
"""A certificate is valid a little before it was made: clocks of other machines may be behind."""
_KEYS = ("ca.crt", "ca.key", "tls.crt", "tls.key")


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        """Without the key."""
        return f"Pair({len(self.certificate)} bytes, key hidden)"


@dataclass(frozen=True, slots=True)
class Held:
    """What the Secret holds: who signs, what is served, and whom the API server is to trust, the newest first."""

    authority: Pair
    serving: Pair
    bundle: bytes


class Step(Enum):
    """What is to be done next about the certificate."""

    MAKE_ALL = "make all"
    """Nothing usable is there."""
    RENEW_AUTHORITY = "renew the authority"
    PUBLISH = "publish the bundle"
    """The API server does not know the bundle yet."""
    RENEW_CERTIFICATE = "renew the certificate"
    KEEP = "keep"


def next_step(held: Held | None, *, published: bytes, names: Sequence[str], now: Instant) -> Step:
    """What is due, one thing at a time. `published` is the bundle that the API server has; `names` are those served.

    Publishing goes before a new certificate: what is signed must be trusted first.
    """
    if held is None:
        return Step.MAKE_ALL
    if _is_due(_parsed(held.authority), now):
        return Step.RENEW_AUTHORITY
    if published.strip() != held.bundle.strip():
        return Step.PUBLISH
    serving = _parsed(held.serving)
    if _is_due(serving, now) or _names_of(serving) != sorted(names):
        return Step.RENEW_CERTIFICATE
    return Step.KEEP


def make_all(*, names: Sequence[str], now: Instant) -> Held:
    """A new authority and a certificate of it."""
    authority = _new_authority(now)
    return Held(authority, _signed(authority, names, now), authority.certificate)


def with_new_authority(held: Held, *, now: Instant) -> Held:
    """A new authority that is trusted beside the one before; what is served stays as it is."""
    authority = _new_authority(now)
    return Held(authority, held.serving, authority.certificate + held.authority.certificate)


def with_new_certificate(held: Held, *, names: Sequence[str], now: Instant) -> Held:
    """Another certificate of the same authority."""
    return Held(held.authority, _signed(held.authority, names, now), held.bundle)


def names_of_service(service: str, namespace: str) -> list[str]:
    """The names under which the API server calls a service."""
    return [f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local"]


def secret(held: Held, *, namespace: str) -> JsonMap:
    """The Secret that holds it, for all replicas."""
    values = (held.bundle, held.authority.key, held.serving.certificate, held.serving.key)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": SECRET, "namespace": namespace, "labels": {Label.MANAGED: "true"}},
        "data": {key: b64encode(value).decode() for key, value in zip(_KEYS, values, strict=True)},
    }


def from_secret(data: JsonMap) -> Held | None:
    """What the `data` of the Secret holds; None when anything of it is missing, damaged or does not fit together."""
    try:
        bundle, authority_key, certificate, key = (b64decode(str(data[name]), validate=True) for name in _KEYS)
    except (KeyError, NoBase64):
        return None
    first = bundle.partition(_END)[0] + _END + b"\n"
    held = Held(Pair(first, authority_key), Pair(certificate, key), bundle)
    return held if _fits(held) else None


_END = b"-----END CERTIFICATE-----"


def _fits(held: Held) -> bool:
    """Whether both keys belong to their certificates, and what is served was signed by somebody in the bundle."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    try:
        pairs_fit = all(
            _key(pair).public_key() == _parsed(pair).public_key() for pair in (held.authority, held.serving)
        )
        serving = _parsed(held.serving)
        for authority in x509.load_pem_x509_certificates(held.bundle):
            try:
                serving.verify_directly_issued_by(authority)
            except (InvalidSignature, ValueError):
                continue
            return pairs_fit
    except (ValueError, TypeError):
        return False
    return False


def _new_authority(now: Instant) -> Pair:
    from cryptography import x509

    key = _new_key()
    name = _name(f"stackhold webhook {now}")
    built = (
        _builder(name, name, key, now, AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(may_sign_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _pair(built, key, key)


def _signed(authority: Pair, names: Sequence[str], now: Instant) -> Pair:
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    key, signer = _new_key(), _key(authority)
    known_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    built = (
        _builder(_name(names[0][:64]), _parsed(authority).subject, key, now, CERTIFICATE_LIFE)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(may_sign_certificates=False), critical=True)
        .add_extension(known_by, critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
    )
    return _pair(built, key, signer)


def _builder(subject: Name, issuer: Name, key: EllipticCurvePrivateKey, now: Instant, life: int) -> CertificateBuilder:
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_moment(now - _SKEW))
        .not_valid_after(_moment(now + life))
    )


def _usage(*, may_sign_certificates: bool) -> KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not may_sign_certificates,
        key_cert_sign=may_sign_certificates,
        crl_sign=may_sign_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pair(built: CertificateBuilder, key: EllipticCurvePrivateKey, signer: EllipticCurvePrivateKey) -> Pair:
    from cryptography.hazmat.primitives import hashes, serialization

    certificate = built.sign(signer, hashes.SHA256())
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _key(pair: Pair) -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key(pair.key, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("a key of another sort than ours")
    return key


def _parsed(pair: Pair) -> Certificate:
    from cryptography import x509

    return x509.load_pem_x509_certificate(pair.certificate)


def _name(text: str) -> Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _names_of(certificate: Certificate) -> list[str]:
    from cryptography import x509

    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return sorted(found.value.get_values_for_type(x509.DNSName))


def _is_due(certificate: Certificate, now: Instant) -> bool:
    """Whether less than a third of its life is left."""
    begin, end = (_millis(at) for at in (certificate.not_valid_before_utc, certificate.not_valid_after_utc))
    return (end - now) * 3 < end - begin


def _moment(at: int) -> datetime:
    return datetime.fromtimestamp(at // 1000, UTC)


def _millis(at: datetime) -> int:
    return int(at.timestamp()) * 1000
