"""What a root module declares, as its runtime would read it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from stackhold.engines.terraform.module import Declared, inspect_module
from stackhold.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

S3 = 'terraform {\n  backend "s3" {}\n}\n'
LOCAL = 'terraform {\n  backend "local" {}\n}\n'
CLOUD = "terraform {\n  cloud {\n  }\n}\n"
NOTHING = 'resource "terraform_data" "a" {}\n'


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def kind(folder: Path, product: str = "") -> str:
    backend = inspect_module(folder, product=product).backend
    return "" if backend is None else backend.kind


def test_a_module_without_a_backend_has_none(tmp_path: Path) -> None:
    facts = inspect_module(write(tmp_path, main__tf=NOTHING, vars__tf="", a__tfvars="", notes__md=S3))
    assert (facts.files, facts.backends, facts.backend) == (("main.tf", "vars.tf"), (), None)
    assert facts.has_configuration
    assert facts.directory == tmp_path


def test_a_backend_is_named_with_its_place(tmp_path: Path) -> None:
    facts = inspect_module(write(tmp_path, a__tf=NOTHING, main__tf="\n" + S3))
    assert facts.backend == Declared("s3", "main.tf", 3)
    assert facts.backend.where == "main.tf:3"


def test_a_cloud_block_is_a_backend(tmp_path: Path) -> None:
    assert kind(write(tmp_path, main__tf=CLOUD)) == "cloud"


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"terraform": {"backend": {"s3": {"key": "x"}}}}, "s3"),
        ({"terraform": [{"required_version": ">= 1"}, {"backend": {"s3": [{}]}}]}, "s3"),
        ({"terraform": {"backend": [{"gcs": {}}]}}, "gcs"),
        ({"terraform": {"cloud": {"organization": "acme"}}}, "cloud"),
        ({"//": {"terraform": {"backend": {"s3": {}}}}}, ""),
        ({"resource": {"backend": {"s3": {}}}}, ""),
        ({"terraform": {"backend": {}}}, ""),
        ({"terraform": "x"}, ""),
        ([{"terraform": {"backend": {"s3": {}}}}], "s3"),
    ],
)
def test_the_json_form_is_read_as_well(tmp_path: Path, document: object, expected: str) -> None:
    assert kind(write(tmp_path, main__tf__json=json.dumps(document))) == expected


def test_in_json_the_line_is_that_of_the_key(tmp_path: Path) -> None:
    text = json.dumps({"terraform": {"backend": {"s3": {}}}}, indent=2)
    facts = inspect_module(write(tmp_path, main__tf__json=text))
    assert facts.backend is not None
    assert facts.backend.where == "main.tf.json:3"


@pytest.mark.parametrize(
    ("files", "places"),
    [
        ({"a__tf": S3, "b__tf": LOCAL}, "'s3' at a.tf:2 and 'local' at b.tf:2"),
        ({"a__tf": S3 + S3}, "'s3' at a.tf:2 and 's3' at a.tf:5"),
        ({"a__tf": S3, "b__tf": CLOUD}, "'s3' at a.tf:2 and 'cloud' at b.tf:2"),
        ({"a__tf__json": '{"terraform":{"backend":{"s3":{},"gcs":{}}}}'}, "'s3' at .* and 'gcs' at"),
        ({"a__tf__json": '{"terraform":{"backend":{"s3":{}}},\n"terraform":{"backend":{"s3":{}}}}'}, "json:1 .*json:2"),
        ({"a_override__tf": S3 + LOCAL, "main__tf": ""}, "'s3' at a_override.tf:2 and 'local' at a_override.tf:5"),
    ],
)
def test_two_backends_are_refused_with_both_places(tmp_path: Path, files: dict[str, str], places: str) -> None:
    with pytest.raises(InputError, match=places):
        inspect_module(write(tmp_path, **files))


@pytest.mark.parametrize("name", ["override__tf", "z_override__tf", "override__tofu", "override__tf__json"])
def test_an_override_takes_the_place_of_what_the_module_declares(tmp_path: Path, name: str) -> None:
    text = '{"terraform":{"backend":{"local":{}}}}' if name.endswith("json") else LOCAL
    facts = inspect_module(write(tmp_path, main__tf=S3, **{name: text}))
    assert facts.backend is not None
    assert (facts.backend.kind, facts.backend.is_override, len(facts.backends)) == ("local", True, 2)


def test_the_last_of_several_overrides_counts(tmp_path: Path) -> None:
    assert kind(write(tmp_path, main__tf=NOTHING, a_override__tf=S3, b_override__tf=LOCAL)) == "local"


def test_only_opentofu_reads_tofu_files_and_it_prefers_them(tmp_path: Path) -> None:
    write(tmp_path, main__tf=S3, main__tofu=LOCAL, other__tofu__json="{}", other__tf__json=S3)
    assert (kind(tmp_path, "terraform"), kind(tmp_path, "opentofu"), kind(tmp_path)) == ("s3", "local", "local")
    assert inspect_module(tmp_path, product="opentofu").files == ("main.tofu", "other.tofu.json")
    assert inspect_module(tmp_path, product="terraform").files == ("main.tf", "other.tf.json")


def test_what_editors_leave_about_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, main__tf=S3)
    for name in (".#main.tf", "#main.tf#", "main.tf~", ".hidden.tf"):
        (tmp_path / name).write_text(LOCAL)
    (tmp_path / "folder.tf").mkdir()
    assert inspect_module(tmp_path).files == ("main.tf",)


def test_a_mark_at_the_beginning_and_bytes_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "main.tf").write_bytes(b"\xef\xbb\xbf" + S3.encode() + b"# \xff\n")
    assert kind(tmp_path) == "s3"


@pytest.mark.parametrize("text", ['{"terraform": {"backend": ', "[" * 100_000, "", "null", "3"])
def test_json_that_is_broken_is_left_to_the_runtime(tmp_path: Path, text: str) -> None:
    assert kind(write(tmp_path, main__tf__json=text)) == ""


def test_what_is_no_root_module_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "modules").mkdir()
    for folder, reason in [
        (tmp_path / "no", "there is no directory .*no"),
        (file, "is a file, not the folder"),
        (empty, "holds no configuration files"),
    ]:
        with pytest.raises(InputError, match=reason):
            inspect_module(folder)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    write(tmp_path, main__tf=NOTHING)
    (tmp_path / "gone.tf").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"gone.tf cannot be read: No such file"):
        inspect_module(tmp_path)


def test_a_relative_folder_is_given_back_in_full(tmp_path: Path) -> None:
    write(tmp_path, main__tf=NOTHING)
    (tmp_path / "sub").mkdir()
    assert inspect_module(tmp_path / "sub" / "..").directory == tmp_path
    here = inspect_module(type(tmp_path)(os.path.relpath(tmp_path))).directory
    assert here == tmp_path
