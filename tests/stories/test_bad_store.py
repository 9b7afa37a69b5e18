"""What the store holds is damaged, or the store or the account says no: a clear reason, exit 1, nothing overwritten."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest
from tests.stories.both_stores import BUCKET, in_bucket
from tests.stories.scene import STACKHOLD, Result

from stackhold.testing.proxy import Answer, Rule, SlowProxy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.stories.scene import Scene

pytestmark = [pytest.mark.emulator, pytest.mark.story]

TEMPLATE = "Resources:\n  Name: {Type: 'AWS::SSM::Parameter', Properties: {Type: String, Value: x}}\n"
CHANGED = TEMPLATE.replace("Value: x", "Value: y")
IMPATIENT = ("--lock-ttl", "12s", "--lock-renew", "2s")
"""A call may then last less than two seconds."""
WRITERS = (["deploy", "t.yaml"], ["destroy", "t", "--yes"])
READERS = (["diff", "t.yaml"], ["drift", "t"], ["state", "show", "t"], ["state", "resources", "t"])
ALL = (
    *WRITERS,
    *READERS[:2],
    ["state", "list"],
    ["state", "info"],
    ["events", "t"],
    ["cancel", "t"],
    ["force-unlock", "t"],
)


def through(scene: Scene, *args: str, rules: Iterable[Rule] = (), env: dict[str, str] | None = None) -> Result:
    """A command that must fail by one reason on stderr, with rules between it and the emulator."""
    with SlowProxy(scene.emulator.url) as proxy:
        for rule in rules:
            proxy.add(rule)
        return refused(scene, *args, env={"AWS_ENDPOINT_URL": proxy.url, **(env or {})})


def refused(scene: Scene, *args: str, env: dict[str, str] | None = None) -> Result:
    """A command that must fail by one reason on stderr."""
    result = scene.start(*args, env=env).finish(30)
    assert result.code == 1, (args, result)
    assert result.err.startswith("stackhold: "), (args, result.err)
    assert "internal error" not in result.err
    assert "Traceback" not in result.err
    return result


def names(scene: Scene) -> list[str]:
    """The parameters in the cloud."""
    return [each["Name"] for each in scene.client("ssm").describe_parameters()["Parameters"]]


def keys(scene: Scene) -> list[str]:
    """The keys of all stacks in the bucket, but for what runs tell of themselves."""
    found = scene.client("s3").list_objects_v2(Bucket=BUCKET, Prefix="stackhold/").get("Contents", [])
    return [each["Key"] for each in found if "/events/" not in each["Key"]]


def objects(scene: Scene) -> dict[str, bytes]:
    """The stack's objects in its folder, but for what runs tell of themselves."""
    folder = scene.file("t").parent
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*.json")}
    return {name: path.read_bytes() for name, path in found.items() if not name.startswith("events/")}


def deployed(scene: Scene) -> bytes:
    """A stack of one parameter; its record's bytes. The template then asks for a change."""
    scene.write("t.yaml", TEMPLATE)
    scene.run("deploy", "t.yaml")
    scene.write("t.yaml", CHANGED)
    return scene.file("t").read_bytes()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: data[: len(data) // 2], "state.json cannot be read: it ends in the middle (line "),
        (lambda _: b"", "state.json cannot be read: it is empty (line 1, column 1)"),
        (lambda data: b"X" + data, "state.json cannot be read: it is no JSON (line 1, column 1)"),
        (lambda _: b"[]", "state.json cannot be read: the whole document should be an object, but is a list"),
        (lambda data: data.replace(b'"version": 8', b'"version": 9'), "state.json has format version 9"),
        (lambda data: data.replace(b'"resources": {', b'"resources": 5, "x": {'), "resources should be an object"),
        (lambda data: data.replace(b'"stackName": "t"', b'"stackName": "u"'), "is the record of u in us-east-1"),
    ],
    ids=["truncated", "empty", "no JSON", "a list", "version 9", "misshapen", "of another stack"],
)
def test_a_record_that_cannot_be_used_is_named_and_never_overwritten(scene: Scene, damage: object, reason: str) -> None:
    assert callable(damage)
    scene.file("t").write_bytes(damage(deployed(scene)))
    before, in_cloud = objects(scene), names(scene)
    for args in WRITERS:
        result = refused(scene, *args)
        assert reason in result.err.splitlines()[0]
        assert "Nothing was overwritten" in result.err
    assert objects(scene) == before
    assert names(scene) == in_cloud


def test_a_record_that_cannot_be_read_is_an_error_of_who_asks_for_it_and_a_line_of_who_lists(scene: Scene) -> None:
    scene.file("t").write_bytes(deployed(scene)[:-40])
    for args in READERS:
        assert "state.json cannot be read: it ends in the middle" in refused(scene, *args).err
    assert "not readable" in scene.run("state", "show", "t", expect=1).out
    assert "not readable" in scene.run("state", "list").out
    assert scene.run("state", "info", "--json").json()["unreadable"] == 1


@pytest.mark.parametrize("name", ["run.json", "rollback-journal.json"])
def test_what_a_broken_run_left_is_not_written_over_when_it_cannot_be_read(scene: Scene, name: str) -> None:
    deployed(scene)
    scene.file("t", name).write_bytes(b'{"runId": "20')
    before, in_cloud = objects(scene), names(scene)
    for args in WRITERS:
        result = refused(scene, *args)
        assert f"{name} cannot be read: it ends in the middle" in result.err
        assert "backup" not in result.err
    assert objects(scene) == before
    assert names(scene) == in_cloud


@pytest.mark.parametrize(
    ("lock", "holder"),
    [
        (b"hello", "lock.json cannot be read: it is no JSON (line 1, column 1)"),
        (b"", "lock.json cannot be read: it is empty"),
        (b'{"owner": "maria@ci-7:4711", "operation": "deploy", "timestamp": 1710835200000}', "maria@ci-7:4711, deploy"),
        (
            b'{"owner": "maria@ci-7:4711", "operation": "deploy", "timestamp": 1, "expiresAt": "soon"}',
            "its expiresAt is not a number, so it counts as held until it is cleared",
        ),
    ],
    ids=["no JSON", "empty", "without expiresAt", "expiresAt is text"],
)
def test_a_lock_that_cannot_be_judged_counts_as_held_however_old_it_is(scene: Scene, lock: bytes, holder: str) -> None:
    deployed(scene)
    path, record = scene.file("t", "lock.json"), scene.file("t")
    path.write_bytes(lock)
    for old in (path, record):
        os.utime(old, (1_600_000_000, 1_600_000_000))
    before, in_cloud = objects(scene), names(scene)
    for args in (["deploy", "t.yaml", "--lock-timeout", "0"], WRITERS[1]):
        result = refused(scene, *args)
        assert result.err.startswith("stackhold: t (us-east-1) is locked")
        assert holder in result.err
    assert "held" in scene.run("state", "list", "--long").out or "maria" in scene.run("state", "list", "--long").out
    refused(scene, "cancel", "t")
    assert objects(scene) == before
    assert names(scene) == in_cloud

    printed = next(line for line in result.err.splitlines() if "force-unlock" in line)
    scene.run(*shlex.split(printed)[1:], "--yes")
    scene.run("deploy", "t.yaml")


def test_a_damaged_record_in_a_bucket_is_named_and_stays(scene: Scene) -> None:
    in_bucket(scene)
    scene.write("t.yaml", TEMPLATE)
    scene.run("deploy", "t.yaml")
    s3, key = scene.client("s3"), "stackhold/t/us-east-1/state.json"
    data = s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()[:-40]
    s3.put_object(Bucket=BUCKET, Key=key, Body=data)
    before = keys(scene)
    for args in WRITERS:
        assert f"{key} cannot be read: it ends in the middle" in refused(scene, *args).err
    assert s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == data
    assert keys(scene) == before


def test_a_bucket_that_is_missing_is_named_by_every_command(scene: Scene) -> None:
    scene.state = "s3://nobody-made-this"
    scene.write("t.yaml", TEMPLATE)
    for args in ALL:
        result = refused(scene, *args)
        assert result.err.startswith("stackhold: there is no bucket 'nobody-made-this'\n")
        assert "stackhold bootstrap --state s3://nobody-made-this" in result.err
    assert scene.client("s3").list_buckets()["Buckets"] == []
    assert names(scene) == []


def test_a_bucket_that_denies_access_is_named_by_every_command(scene: Scene) -> None:
    in_bucket(scene)
    scene.write("t.yaml", TEMPLATE)
    for args in (*WRITERS, ["state", "list"], ["bootstrap"]):
        denied = through(scene, *args, rules=[Rule(service="s3", answer=Answer(403, "AccessDenied", "not you"))])
        assert BUCKET in denied.err.splitlines()[0]
        assert "denied" in denied.err.splitlines()[0]
    assert keys(scene) == []
    assert names(scene) == []


def test_a_bucket_in_another_region_is_found_there_and_refused_where_that_is_not_told(scene: Scene) -> None:
    scene.client("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    scene.state = f"s3://{BUCKET}"
    scene.write("t.yaml", TEMPLATE)
    where = (("x-amz-bucket-region", "eu-west-1"),)
    for answer in (
        Answer(400, "AuthorizationHeaderMalformed", headers=where),
        Answer(301, "PermanentRedirect", headers=where),
    ):
        for args in (["deploy", "t.yaml"], ["state", "list"]):
            result = through(scene, *args, rules=[Rule(service="s3", answer=answer)])
            assert f"bucket '{BUCKET}' is in region eu-west-1" in result.err
    assert "exists in eu-west-1, not in us-east-1" in refused(scene, "bootstrap").err
    assert names(scene) == []

    scene.run("deploy", "t.yaml")
    assert scene.run("state", "list", "--json").json()["stacks"][0]["region"] == "us-east-1"
    scene.run("destroy", "t", "--yes")


def test_a_server_that_ignores_conditions_is_refused_by_name_before_the_first_lock(scene: Scene) -> None:
    in_bucket(scene)
    scene.write("t.yaml", TEMPLATE)
    for args in (["deploy", "t.yaml"], ["bootstrap"]):
        result = through(scene, *args, rules=[Rule(service="s3", strip=("If-",))])
        assert "ignores a condition" in result.err.splitlines()[0]
        assert "create if absent (If-None-Match: *)" in result.err.splitlines()[0]
    deletes = [Rule(service="s3", operation="DeleteObject", strip=("If-",))]
    assert "delete if this version (If-Match on DELETE)" in through(scene, "deploy", "t.yaml", rules=deletes).err
    assert scene.client("s3").list_objects_v2(Bucket=BUCKET).get("Contents", []) == []
    assert names(scene) == []


def test_an_endpoint_that_hangs_is_given_up_in_bounded_time(scene: Scene) -> None:
    in_bucket(scene)
    scene.write("t.yaml", TEMPLATE)
    for service, named in (("s3", f"s3://{BUCKET} does not answer"), ("sts", "sts:GetCallerIdentity was not answered")):
        held = threading.Event()
        result = through(scene, "deploy", "t.yaml", *IMPATIENT, rules=[Rule(service=service, hold=held)])
        assert named in result.err.splitlines()[0]
    held = threading.Event()
    impatient = {"STACKHOLD_LOCK_TTL": IMPATIENT[1], "STACKHOLD_LOCK_RENEW": IMPATIENT[3]}
    listing = through(scene, "state", "list", rules=[Rule(service="s3", hold=held)], env=impatient)
    assert f"s3://{BUCKET} does not answer" in listing.err
    assert not [key for key in keys(scene) if key.endswith(("lock.json", "state.json"))]
    assert names(scene) == []


def test_where_nothing_listens_the_endpoint_is_named(scene: Scene) -> None:
    scene.write("t.yaml", TEMPLATE)
    nowhere = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    local = refused(scene, "deploy", "t.yaml", env=nowhere)
    assert "sts:GetCallerIdentity could not be sent" in local.err
    assert "http://127.0.0.1:1" in local.err
    in_bucket(scene)
    assert f"s3://{BUCKET} does not answer" in refused(scene, "deploy", "t.yaml", env=nowhere).err
    assert scene.lock("t") is None
    assert keys(scene) == []


def test_without_credentials_nothing_is_locked_or_recorded(scene: Scene) -> None:
    scene.write("t.yaml", TEMPLATE)
    nobody = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    result = refused(scene, "deploy", "t.yaml", env=nobody)
    assert "no usable AWS credentials" in result.err
    assert "--profile" in result.err
    assert scene.lock("t") is None
    assert not scene.file("t").exists()
    in_bucket(scene)
    assert "no usable AWS credentials" in refused(scene, "state", "list", env=nobody).err


def test_credentials_that_are_refused_are_said_to_be_so(scene: Scene) -> None:
    in_bucket(scene)
    scene.write("t.yaml", TEMPLATE)
    for service in ("sts", "s3"):
        expired = Answer(403, "ExpiredToken", "The token has expired")
        result = through(scene, "deploy", "t.yaml", rules=[Rule(service=service, answer=expired)])
        assert "ExpiredToken: The token has expired" in result.err.splitlines()[0]
        assert "log in again" in result.err
        assert "s3:PutObject" not in result.err
    assert not [key for key in keys(scene) if key.endswith(("lock.json", "state.json"))]


@pytest.mark.parametrize("code", ["AccessDeniedException", "ExpiredTokenException"])
def test_a_create_that_is_denied_leaves_nothing_behind(scene: Scene, code: str) -> None:
    scene.write("t.yaml", TEMPLATE)
    denied = Rule(service="ssm", operation="PutParameter", answer=Answer(400, code, "not you"))
    result = through(scene, "deploy", "t.yaml", rules=[denied])
    assert f"Name: ssm:PutParameter was refused: {code}: not you" in result.err.splitlines()[0]
    assert scene.lock("t") is None
    assert not scene.file("t").exists()
    assert names(scene) == []


def test_a_place_that_can_hold_no_state_is_named(scene: Scene) -> None:
    scene.write("t.yaml", TEMPLATE)
    scene.write("file", "x")
    for state, reason in (
        ("file:file", "is not a directory"),
        ("file:file/below", "a part of the path is not a directory"),
        ("file:/proc/stackhold", "/proc/stackhold"),
    ):
        assert reason in refused(scene, "deploy", "t.yaml", "--state", state).err.splitlines()[0]
    assert (scene.folder / "file").read_text() == "x"
    assert names(scene) == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [("ro", "the file system is read-only"), ("nr_inodes=3", "the disk is full"), ("size=4k", "the disk is full")],
)
def test_a_disk_that_is_full_or_read_only_is_named_and_nothing_is_made(scene: Scene, options: str, reason: str) -> None:
    scene.write("t.yaml", TEMPLATE)
    result = deploy_on_tmpfs(scene, options)
    assert result.code == 1
    assert reason in result.err.splitlines()[0]
    assert names(scene) == []
    assert not re.search(r"(lock|state|run)\.json", result.out)


def test_a_disk_that_fills_up_under_a_run_leaves_nothing_unnamed(scene: Scene) -> None:
    """There is room for the stamp and the intents, none for what was made."""
    scene.write("t.yaml", TEMPLATE)
    result = deploy_on_tmpfs(scene, "size=12k")
    [made] = names(scene)
    assert result.code == 2
    assert "the disk is full" in result.err
    assert f"  Name {made}" in result.err
    assert "was undone" not in result.err
    assert "lock.json" not in result.out
    assert "run.json" in result.out


def deploy_on_tmpfs(scene: Scene, options: str) -> Result:
    """A deploy whose state folder is a small file system of its own; what is in it at the end stands in `out`."""
    folder = scene.folder / "state"
    folder.mkdir()
    mount = f"mount -t tmpfs -o {options} none {shlex.quote(str(folder))}"
    deploy = shlex.join([STACKHOLD, "deploy", "t.yaml"])
    in_own_mounts = ["unshare", "--mount", "sh", "-c"]
    try:
        subprocess.run([*in_own_mounts, mount], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting a file system is not permitted here")
    done = subprocess.run(
        [*in_own_mounts, f"{mount}; {deploy}; code=$?; find {shlex.quote(str(folder))} -type f; exit $code"],
        env=scene.env(),
        cwd=scene.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return Result(done.returncode, done.stdout, done.stderr)
