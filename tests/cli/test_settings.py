from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stackhold.cli.settings import Settings, load_settings
from stackhold.cli.store_address import BucketAddress, DirectoryAddress
from stackhold.errors import InputError, PolicyInvalid

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def load(
    cwd: Path, *, flags: Mapping[str, str | None] | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    return load_settings(flags or {}, environ=environ or {}, cwd=cwd)


def test_nothing_set_gives_the_defaults_without_a_source(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert settings.store.value == DirectoryAddress(tmp_path / ".stackhold", is_default=True)
    assert settings.store.value.url == "file:.stackhold"
    assert settings.state_prefix.value == "stackhold"
    assert (settings.deadline.ms, settings.deadline.source) == (3_600_000, "")
    assert settings.lock_timeout is None
    assert settings.grace.ms == 600_000
    assert (settings.lock_ttl.ms, settings.lock_renew.ms) == (1_800_000, 120_000)
    assert settings.stop_poll.ms == 15_000
    assert settings.region.value is None


def test_a_flag_comes_before_the_environment_and_that_before_the_file(tmp_path: Path) -> None:
    (tmp_path / "stackhold.toml").write_text('deadline = "1h"\nregion = "eu-west-1"\ngrace = 8\n')
    environ = {"STACKHOLD_DEADLINE": "10m", "STACKHOLD_GRACE": "9"}
    settings = load(tmp_path, flags={"deadline": "5m"}, environ=environ)
    assert (settings.deadline.ms, settings.deadline.source) == (300_000, "--deadline")
    assert (settings.grace.ms, settings.grace.source) == (9_000, "STACKHOLD_GRACE")
    assert settings.region.value == "eu-west-1"
    assert settings.region.source == f"region in {tmp_path / 'stackhold.toml'}"


def test_the_file_is_found_in_a_parent_and_its_directory_store_starts_there(tmp_path: Path) -> None:
    (tmp_path / "stackhold.toml").write_text('state = "file:shared"\n')
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert load(below).store.value == DirectoryAddress(tmp_path / "shared")


def test_our_region_variable_comes_before_those_of_aws(tmp_path: Path) -> None:
    environ = {"AWS_REGION": "us-east-2", "AWS_DEFAULT_REGION": "us-west-2"}
    assert load(tmp_path, environ=environ).region.value == "us-east-2"
    assert load(tmp_path, environ={**environ, "STACKHOLD_REGION": "eu-west-1"}).region.value == "eu-west-1"


@pytest.mark.parametrize(("setting", "variable"), [("region", "AWS_REGION"), ("profile", "AWS_DEFAULT_PROFILE")])
def test_the_file_comes_before_the_variables_of_aws_and_after_our_own(
    tmp_path: Path, setting: str, variable: str
) -> None:
    (tmp_path / "stackhold.toml").write_text(f'{setting} = "eu-west-1"\n')
    environ = {variable: "us-east-2"}
    found = getattr(load(tmp_path, environ=environ), setting)
    assert (found.value, found.source) == ("eu-west-1", f"{setting} in {tmp_path / 'stackhold.toml'}")
    ours = {**environ, f"STACKHOLD_{setting.upper()}": "eu-north-1"}
    assert getattr(load(tmp_path, environ=ours), setting).value == "eu-north-1"
    assert getattr(load(tmp_path, flags={setting: "eu-south-1"}, environ=ours), setting).value == "eu-south-1"


def test_an_empty_variable_counts_as_not_set(tmp_path: Path) -> None:
    assert load(tmp_path, environ={"STACKHOLD_STATE": ""}).store.value.url == "file:.stackhold"


def test_a_bad_value_is_refused_naming_its_source(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="STACKHOLD_DEADLINE: 'soon' is no duration"):
        load(tmp_path, environ={"STACKHOLD_DEADLINE": "soon"})
    (tmp_path / "stackhold.toml").write_text('lock_timeout = "never"\n')
    with pytest.raises(InputError, match=r"stackhold\.toml: lock_timeout: 'never' is no duration"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("deadline = ", "is not valid TOML"),
        ("dedline = 5", "dedline is no setting"),
        ("deadline = [1]", "deadline must be text or a number"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_by_name(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "stackhold.toml").write_text(content)
    with pytest.raises(InputError, match=reason):
        load(tmp_path)


def test_tags_of_the_file_are_read_as_texts(tmp_path: Path) -> None:
    assert load(tmp_path).tags is None
    (tmp_path / "stackhold.toml").write_text('region = "eu-west-1"\n[tags]\nteam = "pay"\n"cost:centre" = "7"\n')
    assert load(tmp_path).tags == {"team": "pay", "cost:centre": "7"}
    for wrong in ("tags = 1\n", "[tags]\nteam = 1\n", "[tags.team]\na = 'b'\n"):
        (tmp_path / "stackhold.toml").write_text(wrong)
        with pytest.raises(InputError, match=r"stackhold\.toml: \[tags\] must be a table of texts"):
            load(tmp_path)


def test_a_bucket_is_named_without_a_path(tmp_path: Path) -> None:
    assert load(tmp_path, flags={"state": "s3://acme-state"}).store.value == BucketAddress("acme-state")
    with pytest.raises(InputError, match="--state-prefix"):
        load(tmp_path, flags={"state": "s3://acme-state/team"})


@pytest.mark.parametrize("state", ["acme", "gs://x", "file:", "s3://", "s3://a"])
def test_what_names_no_store_is_refused(tmp_path: Path, state: str) -> None:
    with pytest.raises(InputError, match="--state: "):
        load(tmp_path, flags={"state": state})


@pytest.mark.parametrize("prefix", ["../x", "/a", "a/", "a//b", "a b", "", "."])
def test_a_prefix_that_could_leave_its_place_is_refused(tmp_path: Path, prefix: str) -> None:
    with pytest.raises(InputError, match="--state-prefix: "):
        load(tmp_path, flags={"state_prefix": prefix})


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ({"lock_ttl": "4s", "lock_renew": "2s"}, r"renewal interval \(2 s, from --lock-renew\) must be below half"),
        (
            {"lock_ttl": "3m"},
            r"\(2 m 0 s, the built-in default\) must be below half of its ttl \(3 m 0 s, from --lock-ttl",
        ),
        ({"lock_renew": "0"}, "must be below half"),
        ({"grace": "0"}, "the grace"),
        ({"stop_poll": "0"}, r"a stop request \(0.0 s, from --stop-poll\) must be longer"),
    ],
)
def test_lock_times_that_cannot_keep_a_lock_are_refused(
    tmp_path: Path, flags: Mapping[str, str | None], reason: str
) -> None:
    with pytest.raises(PolicyInvalid, match=reason):
        load(tmp_path, flags=flags)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("deadline = " + "[" * 100_000, "nested too deeply"),
        ("deadline = " + "9" * 5_000, "is not valid TOML"),
        ("deadline = 0x" + "f" * 5_000, "deadline is a number beyond all measure"),
        ("x" * 2_000_000, "cannot be read: it has more than"),
    ],
)
def test_a_file_that_no_reader_should_trust_is_refused_by_name(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "stackhold.toml").write_text(content)
    with pytest.raises(InputError, match=reason) as raised:
        load(tmp_path)
    assert "stackhold.toml" in raised.value.message


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "stackhold.toml").write_text('deadline = "5m"\n', encoding="utf-8-sig")
    assert load(tmp_path).deadline.ms == 300_000


def test_something_called_as_the_file_is_that_is_none_is_not_passed_over(tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    settings = tmp_path / "stackhold.toml"
    settings.mkdir()
    with pytest.raises(InputError, match=r"stackhold\.toml cannot be read: Is a directory"):
        load(below)
    settings.rmdir()
    os.mkfifo(settings)
    with pytest.raises(InputError, match=r"cannot be read: it is a pipe"):
        load(below)
    settings.unlink()
    settings.symlink_to("nowhere")
    with pytest.raises(InputError, match=r"cannot be read: No such file"):
        load(below)


def test_a_directory_store_that_leads_nowhere_is_refused_by_its_source(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(
        InputError, match="--state: 'file:loop/x' names no directory: its symbolic links lead in a circle"
    ):
        load(tmp_path, flags={"state": "file:loop/x"})
    with pytest.raises(InputError, match="--state: 'file:~nobody-here/x' names no directory: there is no such home"):
        load(tmp_path, flags={"state": "file:~nobody-here/x"})
    (tmp_path / ".stackhold").symlink_to(".stackhold")
    assert load(tmp_path, flags={"state": "file:there"}).store.value == DirectoryAddress(tmp_path / "there")
    with pytest.raises(InputError, match="its symbolic links lead in a circle"):
        load(tmp_path)
