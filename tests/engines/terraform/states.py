"""States for tests, as the runtimes write them."""

from __future__ import annotations

import json

LINEAGE = "6f3c1f5e-0000-4000-8000-000000000001"


def state(
    serial: int, *names: str, lineage: str = LINEAGE, version: int = 4, terraform_version: str = "1.11.4"
) -> bytes:
    """A state with so many resources."""
    resources = [
        {
            "mode": "managed",
            "type": "terraform_data",
            "name": name,
            "provider": 'provider["terraform.io/builtin/terraform"]',
            "instances": [{"schema_version": 0, "attributes": {"id": f"id-{name}"}}],
        }
        for name in names
    ]
    document = {
        "version": version,
        "terraform_version": terraform_version,
        "serial": serial,
        "lineage": lineage,
        "outputs": {},
        "resources": resources,
        "check_results": None,
    }
    return json.dumps(document, indent=2).encode()


def encrypted(serial: int, *, lineage: str = LINEAGE) -> bytes:
    """A state that OpenTofu has sealed."""
    return json.dumps(
        {
            "serial": serial,
            "lineage": lineage,
            "meta": {"key_provider.pbkdf2.k": "eyJzYWx0Ijoi"},
            "encrypted_data": "c2VhbGVk",
            "encryption_version": "v0",
        }
    ).encode()
