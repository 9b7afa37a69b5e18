from __future__ import annotations

import pytest

from stackhold.kube.images import image_refusal

DIGEST = "sha256:" + "3f" * 32


@pytest.mark.parametrize(
    "reference",
    [
        "busybox",
        "library/busybox:1.37",
        "ghcr.io/example/cluster-module:v1.4.0",
        f"ghcr.io/example/cluster-module@{DIGEST}",
        f"ghcr.io/example/cluster-module:v1@{DIGEST}",
        "localhost/x",
        "localhost:5000/x:y",
        "[::1]:5000/x/y",
        "registry.example:443/a__b/c-d.e_f:V_1.0-x",
        "REGISTRY/x",
        "127.0.0.1:5000/a",
    ],
)
def test_a_reference_of_an_image_is_taken(reference: str) -> None:
    assert image_refusal(reference) is None


@pytest.mark.parametrize(
    "reference",
    [
        "",
        " ",
        "busybox:",
        "busybox:a b",
        "busybox:-1",
        "busybox:" + "x" * 129,
        "Busybox",
        "ghcr.io/Example/x",
        "ghcr.io//x",
        "ghcr.io/x/",
        "/x",
        "x@sha256:abc",
        "x@md5:" + "0" * 32,
        f"x@{DIGEST.upper()}",
        "-x.io/y",
        "a___b",
        "https://ghcr.io/x",
        "ghcr.io/" + "x" * 300,
        "a" * 64,
        "x.io:port/y",
        "caf\u00e9",
    ],
)
def test_what_names_no_image_is_told_why(reference: str) -> None:
    assert image_refusal(reference)
