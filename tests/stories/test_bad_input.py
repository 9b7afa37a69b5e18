"""What a user wrote is wrong: one line with the reason, exit 1 (64 for the command line), and nothing done."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from stackhold.testing.proxy import SlowProxy

if TYPE_CHECKING:
    from pathlib import Path

    from tests.stories.scene import Result, Scene

pytestmark = [pytest.mark.emulator, pytest.mark.story]

PARAMETER = "  Name: {Type: 'AWS::SSM::Parameter', Properties: {Type: String, Value: x}}\n"
GOOD = "Resources:\n" + PARAMETER
STAGED = "Parameters:\n  Stage: {Type: String, AllowedValues: [dev, prod]}\n" + GOOD
IN_VALUE = "Resources:\n  Name:\n    Type: AWS::SSM::Parameter\n    Properties:\n      Type: String\n      Value: "
OF_TYPE = "Resources:\n  Name:\n    Type: "

TEMPLATES = {
    "no YAML": ("Resources: [A\n", "t.yaml:2:1: not YAML"),
    "no mapping": ("- A\n- B\n", "t.yaml:1:1: not a template: a map of sections is expected, not a list"),
    "nothing": ("", "t.yaml:1:1: the template is empty"),
    "no resources": ("Description: x\n", "t.yaml:1:1: not a template: the section Resources is missing"),
    "a name twice": (GOOD + PARAMETER, "t.yaml:3:3: the key 'Name' stands twice"),
    "a circle": (
        GOOD
        + "  A: {Type: 'AWS::SSM::Parameter', Properties: {Type: String, Value: !Ref B}}\n"
        + "  B: {Type: 'AWS::SSM::Parameter', Properties: {Type: String, Value: !Ref A}}\n",
        "t.yaml:3: A: resources depend on each other in a circle: A (Properties.Value) -> B (Properties.Value) -> A",
    ),
    "an unknown reference": (
        IN_VALUE + "!Ref Nobody\n",
        "t.yaml:6:14: Name: Ref: there is no resource or parameter 'Nobody'",
    ),
    "an unknown dependency": (
        GOOD.replace("'AWS::SSM::Parameter'", "'AWS::SSM::Parameter', DependsOn: Nobody"),
        "Name: DependsOn: there is no resource 'Nobody'",
    ),
    "an unknown attribute": (
        IN_VALUE + "!GetAtt Queue.Length\n  Queue: {Type: 'AWS::SQS::Queue'}\n",
        "t.yaml:6:14: Name: AWS::SQS::Queue (Queue) has no attribute 'Length'",
    ),
    "an unknown function": (
        IN_VALUE + "{'Fn::Guess': 1}\n",
        "t.yaml:6:15: Name: unknown intrinsic function Fn::Guess",
    ),
    "a function to come": (
        IN_VALUE + "!ImportValue other\n",
        "t.yaml:6:14: Name: Fn::ImportValue is not supported",
    ),
    "a secret parameter": (
        "Parameters:\n  Word: {Type: String, NoEcho: true}\n" + GOOD,
        "Parameters.Word: NoEcho parameters are not supported",
    ),
    "a dynamic reference": (
        IN_VALUE + "'{{resolve:secretsmanager:word}}'\n",
        "t.yaml:6:14: Name: dynamic references ({{resolve:…}}) are not supported",
    ),
    "a transform": (
        "Transform: AWS::Serverless-2016-10-31\n" + GOOD,
        "t.yaml:1:1: Transform: transforms and macros are not supported",
    ),
    "a nested stack": (
        OF_TYPE + "AWS::CloudFormation::Stack\n    Properties: {TemplateURL: 'https://x/y'}\n",
        "t.yaml:3:5: Name: AWS::CloudFormation::Stack: nested stacks are not supported",
    ),
    "a custom resource": (
        OF_TYPE + "Custom::Migration\n    Properties: {ServiceToken: 'arn:x'}\n",
        "t.yaml:3:5: Name: Custom::Migration: custom resources are not supported",
    ),
    "an unknown property": (
        OF_TYPE + "AWS::SQS::Queue\n    Properties: {Lenght: 5}\n",
        "t.yaml:4: Name (AWS::SQS::Queue): Lenght is no property of it",
    ),
    "an unknown type": (
        OF_TYPE + "AWS::Nobody::Thing\n",
        "t.yaml:2: Name: the resource type AWS::Nobody::Thing is not supported",
    ),
    "a type that nobody serves": (
        OF_TYPE + "AWS::AppMesh::Mesh\n",
        "AWS::AppMesh::Mesh is not supported: it has no native handler, and Cloud Control cannot make it",
    ),
    "several faults": (
        IN_VALUE + "!Ref Nobody\n  Other: {Type: 'AWS::Nobody::Thing'}\n",
        "t.yaml:6:14: Name: Ref: there is no resource or parameter 'Nobody'",
    ),
}


def refused(scene: Scene, *args: str, code: int = 1, may_ask: bool = True, env: dict[str, str] | None = None) -> Result:
    """A command that must fail with one line of reason, having written nothing and asked for the account at most."""
    before = everything(scene.folder)
    with SlowProxy(scene.emulator.url) as proxy:
        result = scene.run(*args, expect=code, env={"AWS_ENDPOINT_URL": proxy.url, **(env or {})})
        calls = [call.name for call in proxy.calls]
    assert set(calls) <= ({"sts:GetCallerIdentity"} if may_ask else set())
    assert everything(scene.folder) == before
    assert result.out == ""
    first = result.err.splitlines()[0]
    assert first.startswith("stackhold: ")
    assert "internal error" not in result.err
    return result


def everything(folder: Path) -> dict[str, bytes]:
    """Every file and folder below, with contents, but for what runs tell of themselves."""
    found = [path for path in folder.rglob("*") if path.parent.name != "events"]
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in found}


@pytest.mark.parametrize("fault", TEMPLATES)
def test_a_template_that_is_wrong_is_refused_before_anything_is_asked_or_written(scene: Scene, fault: str) -> None:
    text, reason = TEMPLATES[fault]
    scene.write("t.yaml", text)
    assert reason in refused(scene, "deploy", "t.yaml", may_ask=False).err.splitlines()[0]


def test_what_is_wrong_with_a_recorded_stacks_template_leaves_its_record_and_its_lock_alone(scene: Scene) -> None:
    text = STAGED.replace("AllowedValues", "Default: dev, AllowedValues")
    scene.write("t.yaml", text)
    scene.run("deploy", "t.yaml", "-p", "Stage=prod")
    scene.write("t.yaml", text + "  Other: {Type: 'AWS::Nobody::Thing'}\n")
    assert "AWS::Nobody::Thing is not supported" in refused(scene, "deploy", "t.yaml").err
    scene.write("t.yaml", text.replace("dev, prod", "dev, test"))
    assert "Parameters.Stage" in refused(scene, "deploy", "t.yaml").err
    scene.write(
        "t.yaml", "Conditions: {C: !Equals [!Ref 'AWS::AccountId', '1']}\n" + text + "  Other: {Type: 'A::B'}\n"
    )
    assert "Other" in refused(scene, "deploy", "t.yaml").err


def test_a_fault_that_the_account_excludes_is_none(scene: Scene) -> None:
    """The resource that nobody serves is for another account than this one."""
    condition = (
        "Conditions: {Elsewhere: !Equals [!Ref 'AWS::AccountId', '000000000000'], Here: !Not [!Condition Elsewhere]}\n"
    )
    [zeros] = [scene.client("sts").get_caller_identity()["Account"]]
    other = "Elsewhere" if zeros != "000000000000" else "Here"
    scene.write("t.yaml", condition + GOOD + f"  Other: {{Type: 'AWS::Nobody::Thing', Condition: {other}}}\n")
    assert scene.run("deploy", "t.yaml", "--json").json()["counts"] == {"create": 1}


def test_a_wrong_parameter_is_named(scene: Scene) -> None:
    scene.write("t.yaml", STAGED)
    missing = refused(scene, "deploy", "t.yaml")
    assert "parameters without a value: Stage" in missing.err
    assert "--parameter Stage=VALUE" in missing.err
    assert (
        "the template does not have: Colour"
        in refused(scene, "deploy", "t.yaml", "-p", "Stage=dev", "-p", "Colour=red").err
    )
    assert "Parameters.Stage" in refused(scene, "deploy", "t.yaml", "-p", "Stage=test").err
    scene.write("p.json", '{"Stage": ["dev"')
    assert "p.json:1:17: it is not valid JSON" in refused(scene, "deploy", "t.yaml", "--parameters-file", "p.json").err
    assert "none.json cannot be read" in refused(scene, "deploy", "t.yaml", "--parameters-file", "none.json").err


@pytest.mark.parametrize(
    "command", ["destroy", "state show", "state resources", "drift", "events", "cancel", "force-unlock"]
)
def test_a_stack_named_like_a_path_is_no_stack(scene: Scene, command: str) -> None:
    said = refused(scene, *command.split(), "../x").err
    assert said.startswith("stackhold: '../x' is no stack name")


def test_names_that_would_leave_their_folder_are_refused_wherever_they_come_from(scene: Scene) -> None:
    scene.write("t.yaml", GOOD)
    scene.write("..t.yaml", GOOD)
    scene.write("a_b.yaml", GOOD)
    assert "'../x' is no stack name" in refused(scene, "deploy", "t.yaml", "--stack-name", "../x").err
    assert "'' is no stack name" in refused(scene, "deploy", "..t.yaml").err
    assert "'a_b' is no stack name" in refused(scene, "deploy", "a_b.yaml").err
    assert "--region: '../x' is no region" in refused(scene, "deploy", "t.yaml", "--region", "../x").err
    for verb in (["destroy", "t", "--yes"], ["state", "list"], ["state", "show", "t"]):
        assert "AWS_REGION: '../x' is no region" in refused(scene, *verb, env={"AWS_REGION": "../x"}).err
    assert "--state-prefix: 'a/../b' is no prefix" in refused(scene, "deploy", "t.yaml", "--state-prefix", "a/../b").err
    assert (
        "STACKHOLD_STATE_PREFIX: '..' is no prefix"
        in refused(scene, "state", "list", env={"STACKHOLD_STATE_PREFIX": ".."}).err
    )


def test_a_template_that_cannot_be_read_is_named(scene: Scene) -> None:
    (scene.folder / "empty").mkdir()
    (scene.folder / "cdk.out").mkdir()
    (scene.folder / "cdk.out" / "manifest.json").write_text("{}")
    (scene.folder / "bytes.yaml").write_bytes(b"\xff\xfe")
    scene.write("cut.json", '{"Resources": {')
    assert "none.yaml: the template cannot be read: No such file" in refused(scene, "deploy", "none.yaml").err
    assert "empty is a directory without a manifest.json" in refused(scene, "deploy", "empty").err
    assert "not the manifest of a CDK assembly" in refused(scene, "deploy", "cdk.out").err
    assert "bytes.yaml:1: the template is not UTF-8 text" in refused(scene, "deploy", "bytes.yaml").err
    assert "cut.json:1:16: not JSON" in refused(scene, "deploy", "cut.json").err
    scene.write("t.yaml", GOOD)
    assert "Other cannot be chosen from it" in refused(scene, "deploy", "t.yaml", "Other").err


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("state = \n", "is not valid TOML"),
        ("dedline = 3\n", "dedline is no setting; known are allow_network_dir, deadline"),
        ("deadline = 'soon'\n", "deadline: 'soon' is no duration"),
        ("[lock]\nttl = 1\n", "lock is no setting"),
        ("grace = [1]\n", "grace must be text or a number"),
        ("region = '../x'\n", "region: '../x' is no region"),
        ("state = 'gs://x'\n", "'gs://x' names no store; write file:DIR or s3://BUCKET"),
    ],
)
def test_a_wrong_settings_file_is_named_by_every_command(scene: Scene, text: str, reason: str) -> None:
    path = scene.write("stackhold.toml", text)
    scene.write("t.yaml", GOOD)
    nothing_else = {"STACKHOLD_STATE": "", "AWS_DEFAULT_REGION": ""}
    for args in (["deploy", "t.yaml"], ["state", "list"]):
        said = refused(scene, *args, env=nothing_else).err
        assert str(path) in said
        assert reason in said


@pytest.mark.parametrize(
    "args",
    [
        ["deploy", "t.yaml", "--deadline", "soon"],
        ["deploy", "t.yaml", "--lock-timeout", "-1"],
        ["deploy", "t.yaml", "--lock-timeout", "2h"],
        ["deploy", "t.yaml", "--deadline", "0"],
        ["rollback", "t", "--grace", "0"],
        ["deploy", "t.yaml", "--parameter", "Stage"],
        ["deploy", "t.yaml", "--nobody"],
        ["deploy"],
        ["nobody"],
        ["destroy"],
        ["state", "nobody"],
    ],
    ids=" ".join,
)
def test_a_command_line_that_cannot_be_understood_exits_64(scene: Scene, args: list[str]) -> None:
    scene.write("t.yaml", GOOD)
    assert "--help" in refused(scene, *args, code=64).err


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["--deadline", "5s", "--lock-timeout", "5s"], "must be less than the deadline (5 s, from --deadline)"),
        (["--lock-renew", "20m"], "must be below half of its ttl"),
        (["--state", "gs://x"], "--state: 'gs://x' names no store"),
        (["--profile", "nobody"], "there is no AWS profile 'nobody'"),
        (["--replace", "Nobody"], "--replace names Nobody, which the template does not have"),
    ],
)
def test_settings_that_cannot_be_are_refused(scene: Scene, args: list[str], reason: str) -> None:
    scene.write("t.yaml", GOOD)
    assert reason in refused(scene, "deploy", "t.yaml", *args).err


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("STACKHOLD_DEADLINE", "soon", "STACKHOLD_DEADLINE: 'soon' is no duration"),
        ("STACKHOLD_DEADLINE", "0", "the deadline (0 s, from STACKHOLD_DEADLINE) must be from 1 s to 86400 s"),
        (
            "STACKHOLD_LOCK_TIMEOUT",
            "2h",
            "the lock wait (7200 s, from STACKHOLD_LOCK_TIMEOUT) must be from 0 s to 3600 s",
        ),
    ],
)
def test_a_duration_that_cannot_be_names_the_variable_it_came_from(
    scene: Scene, variable: str, value: str, reason: str
) -> None:
    scene.write("t.yaml", GOOD)
    assert refused(scene, "deploy", "t.yaml", env={variable: value}).err.startswith(f"stackhold: {reason}")


def test_a_stack_that_nobody_recorded_leaves_no_trace_of_being_asked_for(scene: Scene) -> None:
    for args in (
        ["destroy", "nobody", "--yes"],
        ["drift", "nobody"],
        ["state", "show", "nobody"],
        ["events", "nobody"],
    ):
        assert "no stack nobody in us-east-1 in" in refused(scene, *args).err


def test_a_refusal_is_a_document_too(scene: Scene) -> None:
    scene.write("t.yaml", TEMPLATES["an unknown reference"][0])
    result = scene.run("deploy", "t.yaml", "--json", expect=1)
    error = json.loads(result.out)["error"]
    assert (error["kind"], error["file"], error["line"], error["logicalId"]) == ("TemplateError", "t.yaml", 6, "Name")
