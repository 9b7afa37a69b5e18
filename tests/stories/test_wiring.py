"""Where settings come from, what a team's set-up leads to, and who may read what a run wrote."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.stories.both_stores import BUCKET
from tests.stories.slow_chain import CHAIN, STACK, chain_in

from stackhold.testing.proxy import Rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.stories.scene import Scene

pytestmark = [pytest.mark.emulator, pytest.mark.story]

TEMPLATE = "Resources:\n  Name: {Type: 'AWS::SSM::Parameter', Properties: {Type: String, Value: x}}\n"
UNSET = {"STACKHOLD_STATE": "", "AWS_DEFAULT_REGION": ""}


def info(scene: Scene, flags: list[str], env: dict[str, str]) -> dict[str, Any]:
    """Which store a command uses, and what set it."""
    found: dict[str, Any] = scene.run("state", "info", *flags, "--json", env=env).json()
    return found


def region(scene: Scene, flags: list[str], env: dict[str, str]) -> str:
    """Where a deploy would go."""
    return str(scene.run("diff", "t.yaml", *flags, "--json", env=env).json()["region"])


def last_run(scene: Scene, flags: list[str], env: dict[str, str]) -> dict[str, Any]:
    """What a deploy with these settings says of itself."""
    scene.run("deploy", "t.yaml", *flags, env=env)
    log: dict[str, Any] = scene.run("events", "t", "--json", env=env).json()["runs"][-1]
    return log


def refused_grace(scene: Scene, flags: list[str], env: dict[str, str]) -> str:
    """What names a grace of nothing: a flag is a usage error, everything else an input error that names its source."""
    if flags:
        return scene.run("deploy", "t.yaml", *flags, expect=64, env=env).err.split("'")[1]
    return scene.run("deploy", "t.yaml", expect=1, env=env).err.split(", from ")[1].split(")")[0]


SETTINGS: dict[
    str, tuple[str, str, Callable[[Scene, list[str], dict[str, str]], object], dict[str, tuple[str, object]]]
] = {
    "state": (
        "--state",
        "STACKHOLD_STATE",
        lambda scene, flags, env: Path(info(scene, flags, env)["store"].removeprefix("file:")).name,
        {"file": ("file:one", "one"), "env": ("file:two", "two"), "flag": ("file:three", "three")},
    ),
    "state_prefix": (
        "--state-prefix",
        "STACKHOLD_STATE_PREFIX",
        lambda scene, flags, env: info(scene, flags, env)["prefix"],
        {"file": ("one", "one"), "env": ("two", "two"), "flag": ("a/b", "a/b")},
    ),
    "region": (
        "--region",
        "STACKHOLD_REGION",
        region,
        {"file": ("eu-west-1", "eu-west-1"), "env": ("eu-west-2", "eu-west-2"), "flag": ("eu-west-3", "eu-west-3")},
    ),
    "deadline": (
        "--deadline",
        "STACKHOLD_DEADLINE",
        lambda scene, flags, env: last_run(scene, flags, env)["deadlineMs"],
        {"file": ("10m", 600_000), "env": ("700", 700_000), "flag": ("800s", 800_000)},
    ),
    "lock_timeout": (
        "--lock-timeout",
        "STACKHOLD_LOCK_TIMEOUT",
        lambda scene, flags, env: last_run(scene, flags, env)["lockWait"].split(",")[0],
        {"file": ("10s", "10 s"), "env": ("20", "20 s"), "flag": ("30s", "30 s")},
    ),
    "grace": (
        "--grace",
        "STACKHOLD_GRACE",
        refused_grace,
        {"file": ("0", "grace in "), "env": ("0", "STACKHOLD_GRACE"), "flag": ("0", "--grace")},
    ),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_flag_comes_before_a_variable_before_the_file(scene: Scene, setting: str) -> None:
    flag, variable, seen, values = SETTINGS[setting]
    scene.write("t.yaml", TEMPLATE)
    env = {**UNSET, "AWS_REGION": "us-east-1"} if setting != "region" else dict(UNSET)
    scene.write("stackhold.toml", f'{setting} = "{values["file"][0]}"\n')
    expected = values["file"][1]
    assert str(seen(scene, [], env)).startswith(str(expected))
    env[variable] = values["env"][0]
    assert seen(scene, [], env) == values["env"][1]
    assert seen(scene, [flag, values["flag"][0]], env) == values["flag"][1]


def test_without_any_setting_the_defaults_count(scene: Scene) -> None:
    scene.write("t.yaml", TEMPLATE)
    env = {**UNSET, "AWS_DEFAULT_REGION": "us-east-1"}
    assert info(scene, [], env) == {
        "store": "file:.stackhold",
        "setBy": "the built-in default",
        "prefix": "stackhold",
        "region": "us-east-1",
        "regionSetBy": "AWS_DEFAULT_REGION",
        "stacks": 0,
        "terraformStacks": 0,
        "resources": 0,
        "locks": 0,
        "unreadable": 0,
    }
    log = last_run(scene, [], env)
    assert (log["deadlineMs"], log["region"]) == (3_600_000, "us-east-1")
    assert (scene.folder / ".stackhold" / "stackhold" / "t" / "us-east-1" / "state.json").exists()


def test_the_file_of_a_project_counts_below_its_folder_and_a_folder_in_it_is_next_to_it(scene: Scene) -> None:
    scene.write("stackhold.toml", 'state = "file:records"\nregion = "eu-west-1"\n')
    below = scene.folder / "app" / "stacks"
    below.mkdir(parents=True)
    (below / "t.yaml").write_text(TEMPLATE)
    inner = type(scene)(emulator=scene.emulator, folder=below, state="", started=scene.started)
    inner.run("deploy", "t.yaml", env=UNSET)
    assert (scene.folder / "records" / "stackhold" / "t" / "eu-west-1" / "state.json").exists()
    assert scene.run("state", "list", "--json", env=UNSET).json()["stacks"][0]["stack"] == "t"
    elsewhere = {**UNSET, "AWS_REGION": "us-east-1"}
    assert region(inner, [], elsewhere) == "eu-west-1"
    found = info(inner, [], elsewhere)
    assert (found["region"], found["regionSetBy"]) == ("eu-west-1", f"region in {scene.folder / 'stackhold.toml'}")


def test_a_profile_brings_endpoint_region_and_credentials(scene: Scene) -> None:
    scene.write("t.yaml", TEMPLATE)
    config = scene.write(
        "aws-config",
        "[profile team]\n"
        f"region = eu-west-1\nendpoint_url = {scene.emulator.url}\n"
        "aws_access_key_id = 111122223333\naws_secret_access_key = x\n",
    )
    env = {
        **UNSET,
        "AWS_CONFIG_FILE": str(config),
        "AWS_ENDPOINT_URL": "",
        "AWS_ACCESS_KEY_ID": "",
        "AWS_SECRET_ACCESS_KEY": "",
    }
    assert region(scene, ["--profile", "team"], {**env, "AWS_PROFILE": ""}) == "eu-west-1"
    assert region(scene, [], {**env, "AWS_PROFILE": "team"}) == "eu-west-1"
    assert region(scene, ["--region", "eu-west-2"], {**env, "AWS_PROFILE": "team"}) == "eu-west-2"
    nobody = {**env, "AWS_PROFILE": ""}
    assert "no region is named" in scene.run("diff", "t.yaml", expect=1, env=nobody).err
    scene.write("stackhold.toml", 'profile = "team"\nstate = "file:state"\n')
    made = scene.run("deploy", "t.yaml", "--json", env=env).json()
    assert made["region"] == "eu-west-1"
    assert (
        "there is no AWS profile 'nobody'" in scene.run("diff", "t.yaml", "--profile", "nobody", expect=1, env=env).err
    )


@pytest.mark.parametrize("emulator", ["scene", "moto_scene"])
def test_a_bucket_is_bootstrapped_once_and_again_and_holds_stacks(
    request: pytest.FixtureRequest, emulator: str
) -> None:
    scene: Scene = request.getfixturevalue(emulator)
    scene.state = f"s3://{BUCKET}"
    scene.write("t.yaml", TEMPLATE)
    made = scene.run("bootstrap", "--json").json()
    again = scene.run("bootstrap", "--json").json()
    assert (made["created"], again["created"]) == (True, False)
    assert made["state"] == f"s3://{BUCKET}"
    assert "versioning is on" in again["steps"]
    assert again["steps"][-1] == "conditional writes and deletes are honoured"
    s3 = scene.client("s3")
    assert s3.get_bucket_versioning(Bucket=BUCKET)["Status"] == "Enabled"
    assert s3.get_public_access_block(Bucket=BUCKET)["PublicAccessBlockConfiguration"]["BlockPublicAcls"] is True

    scene.run("deploy", "t.yaml")
    assert list(scene.record("t")["resources"]) == ["Name"]
    scene.run("destroy", "t", "--yes")
    kept = [each["Key"] for each in s3.list_objects_v2(Bucket=BUCKET, Prefix="stackhold/").get("Contents", [])]
    assert not [key for key in kept if key.endswith(("state.json", "lock.json", "run.json"))]


def test_a_bucket_without_a_name_is_called_by_account_and_region(scene: Scene) -> None:
    account = scene.client("sts").get_caller_identity()["Account"]
    made = scene.run("bootstrap", "--region", "eu-west-1", "--json", env=UNSET).json()
    assert made["bucket"] == f"stackhold-state-{account}-eu-west-1"
    assert scene.run("state", "list", "--state", made["state"], "--json", env={"AWS_REGION": "eu-west-1"}).json() == {
        "stacks": []
    }


@pytest.mark.parametrize("store", ["folder", "bucket"])
def test_records_and_locks_can_be_looked_at_while_a_run_holds_the_lock(scene: Scene, store: str) -> None:
    if store == "bucket":
        scene.state = f"s3://{BUCKET}"
        scene.run("bootstrap")
    with chain_in(scene) as chain:
        held = chain.proxy.add(Rule(service="ssm", operation="PutParameter", skip=1, times=1, hold=threading.Event()))
        running = chain.deploy()
        held.wait_reached()
        [listed] = scene.run("state", "list", "--long", "--json").json()["stacks"]
        assert (listed["stack"], listed["isLocked"], listed["lock"]["operation"]) == (STACK, True, "deploy")
        assert listed["lock"]["owner"].endswith(f":{running.process.pid}")
        shown = scene.run("state", "show", STACK, "--json").json()
        assert shown["lock"]["owner"] == listed["lock"]["owner"]
        text = scene.run("state", "show", STACK).out
        assert f":{running.process.pid}, deploy, since " in text
        scene.run("state", "resources", STACK)
        assert scene.run("state", "info", "--json").json()["locks"] == 1
        scene.run("events", STACK)
        scene.run("diff", "chain.yaml")
        held.release()
        assert running.finish().code == 0
        assert scene.run("state", "info", "--json").json()["locks"] == 0
        assert chain.in_cloud() == {"First", "Second", "Third"}


def test_what_a_run_writes_is_for_its_user_alone_and_holds_no_credentials(scene: Scene) -> None:
    secret, token = "wJalrSECRETbPxRfiCYEXAMPLE", "IQoJTOKENb3JpZ2luX2VjE"
    env = {"AWS_ACCESS_KEY_ID": "111122223333", "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": token}
    before = os.umask(0)
    try:
        with chain_in(scene) as chain:
            held = chain.hold()
            running = chain.deploy(env=env)
            held.wait_reached()
            arguments = Path(f"/proc/{running.process.pid}/cmdline")
            typed = arguments.read_bytes().decode() if arguments.exists() else ""
            midway = contents(scene)
            held.release()
            done = running.finish()
            scene.write("chain.yaml", CHAIN.replace("value: three", "value: four"))
            scene.run("deploy", "chain.yaml", env=env)
    finally:
        os.umask(before)
    state = Path(scene.state.removeprefix("file:"))
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (state, *state.rglob("*"))}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    for text in (*midway, *contents(scene), typed, done.out, done.err):
        assert secret not in text
        assert token not in text


def contents(scene: Scene) -> list[str]:
    """The texts of all files of the store."""
    state = Path(scene.state.removeprefix("file:"))
    return [path.read_text() for path in state.rglob("*") if path.is_file()]
