"""Which workspace is selected, and which backend a module was set up with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from stackhold.engines.terraform.places import backend_digest, workspace_of
from stackhold.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def set_up(module: Path, kind: str, config: dict[str, Any], *, folder: str = ".terraform") -> None:
    (module / folder).mkdir(exist_ok=True)
    document = {"backend": {"type": kind, "config": config, "hash": 1}}
    (module / folder / "terraform.tfstate").write_text(json.dumps(document))


def test_the_environment_comes_before_what_was_selected(tmp_path: Path) -> None:
    assert workspace_of(tmp_path, {}) == "default"
    (tmp_path / ".terraform").mkdir()
    (tmp_path / ".terraform/environment").write_text("staging\n")
    assert workspace_of(tmp_path, {}) == "staging"
    assert workspace_of(tmp_path, {"TF_WORKSPACE": "prod"}) == "prod"
    assert workspace_of(tmp_path, {"TF_DATA_DIR": "elsewhere"}) == "default"


def test_a_selection_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".terraform").mkdir()
    (tmp_path / ".terraform/environment").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="names the workspace"):
        workspace_of(tmp_path, {})


def test_one_place_has_one_digest_whatever_its_credentials(tmp_path: Path) -> None:
    assert backend_digest(tmp_path, {}) == ""
    set_up(tmp_path, "s3", {"bucket": "b", "key": "k", "secret_key": "one"})
    first = backend_digest(tmp_path, {})
    assert first
    set_up(tmp_path, "s3", {"bucket": "b", "key": "k", "secret_key": "two"})
    assert backend_digest(tmp_path, {}) == first
    assert backend_digest(tmp_path, {"TF_WORKSPACE": "prod"}) != first
    set_up(tmp_path, "s3", {"bucket": "b", "key": "other"})
    assert backend_digest(tmp_path, {}) != first


def test_an_http_backend_is_told_by_its_address_in_the_environment(tmp_path: Path) -> None:
    set_up(tmp_path, "http", {"address": None})
    one = backend_digest(tmp_path, {"TF_HTTP_ADDRESS": "https://a.example"})
    assert one != backend_digest(tmp_path, {"TF_HTTP_ADDRESS": "https://b.example"})


@pytest.mark.parametrize("text", ["{", "[]", '{"backend": 1}', '{"backend": {"type": "s3", "config": [1]}}'])
def test_a_damaged_data_folder_is_no_place(tmp_path: Path, text: str) -> None:
    (tmp_path / ".terraform").mkdir()
    (tmp_path / ".terraform/terraform.tfstate").write_text(text)
    assert backend_digest(tmp_path, {}) == ""
