"""The Cloud Control handler against the test server, through the real `Aws` port over HTTP."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from stackhold.adapters.aws import AwsSession
from stackhold.engines.cloudformation.patience import PatientAws, Trace
from stackhold.engines.cloudformation.resources.cloud_control import CloudControl
from stackhold.engines.cloudformation.resources.handler import Context, Lost, Want
from stackhold.errors import AwsError, ResourceFailed, StoodDown
from stackhold.model.ids import LogicalId, PhysicalId, Region, StackName, TypeName
from stackhold.testing.cloud_control_server import CloudControlServer, ServedType, cloud_control_server
from stackhold.testing.emulators import CREDENTIALS

if TYPE_CHECKING:
    from collections.abc import Iterator

STREAM = TypeName("AWS::Kinesis::Stream")
SECRET = TypeName("AWS::SecretsManager::Secret")
FILTER = TypeName("AWS::Logs::MetricFilter")
JOB = TypeName("AWS::Glue::Job")
GROUP = TypeName("AWS::AutoScaling::AutoScalingGroup")

TYPES: dict[str, ServedType] = {
    STREAM: ServedType(
        identifier=("Name",),
        made_up={"Arn": "arn:aws:kinesis:us-east-1:123456789012:stream/{id}"},
        create_only=frozenset({"Name"}),
        defaults={"RetentionPeriodHours": 24},
    ),
    SECRET: ServedType(identifier=("Id",), create_only=frozenset({"Name"}), write_only=frozenset({"SecretString"})),
    FILTER: ServedType(
        identifier=("LogGroupName", "FilterName"), create_only=frozenset({"LogGroupName", "FilterName"})
    ),
    JOB: ServedType(identifier=("Name",), create_only=frozenset({"Name"})),
    GROUP: ServedType(identifier=("AutoScalingGroupName",)),
}
OWNERSHIP = {"stackhold:stack": "Shop", "stackhold:logical-id": "Thing"}
TOKEN = "0123456789abcdef0123456789abcdef"


def want(properties: dict[str, Any], **changes: Any) -> Want:
    plain = Want(logical_id=LogicalId("Thing"), properties=properties, name="", token=TOKEN, tags=OWNERSHIP)
    return replace(plain, **changes)


@dataclass
class Scene:
    """A server, and a handler's context whose waits are noted instead of waited."""

    server: CloudControlServer
    aws: Any
    waits: list[int] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)
    trace: Trace = field(default_factory=Trace)
    gives_up_after: int | None = None

    @property
    def context(self) -> Context:
        guarded = self.aws.guarded(self.trace.guard(lambda: None))
        return Context(
            aws=PatientAws(guarded, wait=self.wait, changed=self.is_changed, trace=self.trace),
            stack=StackName("Shop"),
            region=Region("us-east-1"),
            account="123456789012",
            partition="aws",
            wait=self.wait,
            changed=self.is_changed,
            note=self.trace.note,
            made_nothing=self.trace.made_nothing,
        )

    def wait(self, ms: int) -> None:
        if self.gives_up_after is not None and len(self.waits) >= self.gives_up_after:
            raise StoodDown("waits are given up")
        self.waits.append(ms)

    def is_changed(self, text: str) -> bool:
        return text in self.changed

    def operations(self) -> list[str]:
        return [operation for operation, _ in self.server.model.calls]

    def sent(self, operation: str) -> list[dict[str, Any]]:
        return [body for name, body in self.server.model.calls if name == operation]

    def state(self, type_name: str, identifier: str) -> dict[str, Any]:
        return self.server.model.resources[type_name, identifier]


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[CloudControlServer, Any]]:
    """One server for all tests, and the account that calls it."""
    with cloud_control_server(TYPES) as server, pytest.MonkeyPatch.context() as environment:
        for name, value in {**CREDENTIALS, **server.environment()}.items():
            environment.setenv(name, value)
        yield server, AwsSession(region="us-east-1", profile=None).aws()


@pytest.fixture
def scene(served: tuple[CloudControlServer, Any]) -> Scene:
    server, aws = served
    server.reset()
    server.model.retry_after_s = None
    return Scene(server, aws)


def test_a_create_waits_for_success_and_gives_identifier_attributes_and_baseline(scene: Scene) -> None:
    made = CloudControl(STREAM).create(scene.context, want({"Name": "orders", "ShardCount": 1}))
    assert made.physical_id == "orders"
    assert made.attributes["Arn"] == "arn:aws:kinesis:us-east-1:123456789012:stream/orders"
    assert made.observed == {"Name": "orders", "ShardCount": 1, "RetentionPeriodHours": 24, "Tags": []}
    assert scene.operations() == [
        "CreateResource",
        "GetResourceRequestStatus",
        "GetResourceRequestStatus",
        "GetResource",
    ]
    assert scene.waits == [250, 500]
    assert scene.sent("CreateResource")[0]["ClientToken"] == TOKEN
    assert scene.trace.physical_id == "orders"


def test_tags_of_all_layers_are_sent_in_the_types_own_shape(scene: Scene) -> None:
    layers = {"stack_tags": {"team": "a", "own": "stack"}}
    own = [{"Key": "own", "Value": "x"}]
    CloudControl(STREAM).create(scene.context, want({"Name": "s", "Tags": own}, **layers))
    assert {tag["Key"]: tag["Value"] for tag in scene.state(STREAM, "s")["Tags"]} == {
        "team": "a",
        "own": "x",
        **OWNERSHIP,
    }
    CloudControl(JOB).create(scene.context, want({"Name": "j", "Tags": {"own": "x"}}, token="1" * 32, **layers))
    assert scene.state(JOB, "j")["Tags"] == {"team": "a", "own": "x", **OWNERSHIP}
    grouped = [{"Key": "own", "Value": "x", "PropagateAtLaunch": True}]
    properties = {"AutoScalingGroupName": "g", "Tags": grouped}
    CloudControl(GROUP).create(scene.context, want(properties, token="2" * 32))
    assert [tag["PropagateAtLaunch"] for tag in scene.state(GROUP, "g")["Tags"]] == [True, False, False]


def test_a_type_without_tags_gets_none_and_a_compound_identifier_is_kept(scene: Scene) -> None:
    made = CloudControl(FILTER).create(scene.context, want({"LogGroupName": "g", "FilterName": "f"}))
    assert made.physical_id == "g|f"
    assert scene.state(FILTER, "g|f") == {"LogGroupName": "g", "FilterName": "f"}


def test_a_lost_answer_does_not_make_a_second_resource(scene: Scene) -> None:
    scene.server.lose_answers("CreateResource")
    made = CloudControl(SECRET).create(scene.context, want({"Name": "n", "SecretString": "x"}))
    assert len(scene.sent("CreateResource")) == 2
    assert [key for key in scene.server.model.resources if key[0] == SECRET] == [(SECRET, made.physical_id)]


def test_the_same_create_again_is_the_same_resource_until_the_token_is_forgotten(scene: Scene) -> None:
    handler = CloudControl(SECRET)
    first = handler.create(scene.context, want({"Name": "n"}))
    assert handler.create(scene.context, want({"Name": "n"})).physical_id == first.physical_id
    with pytest.raises(AwsError) as caught:
        handler.create(scene.context, want({"Name": "other"}))
    assert caught.value.code == "ClientTokenConflictException"
    scene.server.model.forget_tokens()
    assert handler.create(scene.context, want({"Name": "n"})).physical_id != first.physical_id


def test_a_read_hides_what_no_template_wrote(scene: Scene) -> None:
    handler = CloudControl(STREAM)
    handler.create(scene.context, want({"Name": "s", "Tags": [{"Key": "own", "Value": "x"}]}))
    seen = handler.read(scene.context, PhysicalId("s"), {})
    assert seen is not None
    assert seen.properties == {"Name": "s", "RetentionPeriodHours": 24, "Tags": [{"Key": "own", "Value": "x"}]}
    assert set(seen.attributes) == {"Arn", "Name"}


def test_a_read_of_what_is_gone_gives_none(scene: Scene) -> None:
    assert CloudControl(STREAM).read(scene.context, PhysicalId("nothing"), {}) is None


def test_an_update_sends_a_patch_that_leads_to_what_is_wanted(scene: Scene) -> None:
    handler = CloudControl(STREAM)
    old = {"Name": "s", "ShardCount": 1, "StreamModeDetails": {"StreamMode": "PROVISIONED"}}
    new = {"Name": "s", "ShardCount": 2, "RetentionPeriodHours": 48, "Tags": [{"Key": "k", "Value": "v"}]}
    handler.create(scene.context, want(old))
    made = handler.update(scene.context, PhysicalId("s"), old, want(new))
    state = scene.state(STREAM, "s")
    assert (state["ShardCount"], state["RetentionPeriodHours"]) == (2, 48)
    assert "StreamModeDetails" not in state
    assert {tag["Key"] for tag in state["Tags"]} == {"k", *OWNERSHIP}
    assert made.physical_id == "s"
    assert made.observed is not None
    assert made.observed["ShardCount"] == 2
    assert "/Name" not in scene.sent("UpdateResource")[0]["PatchDocument"]


def test_an_update_that_was_done_already_calls_nothing(scene: Scene) -> None:
    handler = CloudControl(STREAM)
    old = {"Name": "s", "Tags": [{"Key": "k", "Value": "v"}]}
    handler.create(scene.context, want(old))
    made = handler.update(scene.context, PhysicalId("s"), old, want(dict(old)))
    assert scene.sent("UpdateResource") == []
    assert made.attributes["Arn"].endswith("stream/s")


def test_write_only_properties_go_with_every_patch_and_never_alone(scene: Scene) -> None:
    handler = CloudControl(SECRET)
    old = {"Name": "n", "SecretString": "hush", "Description": "a"}
    made = handler.create(scene.context, want(old))
    handler.update(scene.context, made.physical_id, old, want({**old, "Description": "b"}))
    assert scene.state(SECRET, made.physical_id)["SecretString"] == "hush"
    tagged = {**old, "Description": "b", "Tags": [{"Key": "k", "Value": "v"}]}
    handler.update(scene.context, made.physical_id, {**old, "Description": "b"}, want(tagged))
    assert scene.state(SECRET, made.physical_id)["SecretString"] == "hush"
    handler.update(scene.context, made.physical_id, tagged, want(tagged))
    assert len(scene.sent("UpdateResource")) == 2


def test_two_updates_in_one_run_have_tokens_of_their_own(scene: Scene) -> None:
    handler = CloudControl(STREAM)
    one, two = {"Name": "s", "ShardCount": 1}, {"Name": "s", "ShardCount": 2}
    handler.create(scene.context, want(one))
    handler.update(scene.context, PhysicalId("s"), one, want(two))
    handler.update(scene.context, PhysicalId("s"), two, want(one))
    assert scene.state(STREAM, "s")["ShardCount"] == 1
    assert len({body["ClientToken"] for body in scene.sent("UpdateResource")}) == 2


def test_a_lost_answer_to_an_update_is_asked_for_again(scene: Scene) -> None:
    handler = CloudControl(STREAM)
    handler.create(scene.context, want({"Name": "s"}))
    scene.server.lose_answers("UpdateResource")
    handler.update(scene.context, PhysicalId("s"), {"Name": "s"}, want({"Name": "s", "ShardCount": 2}))
    assert scene.state(STREAM, "s")["ShardCount"] == 2


def test_an_update_of_what_is_gone_is_refused(scene: Scene) -> None:
    with pytest.raises(AwsError) as caught:
        CloudControl(STREAM).update(scene.context, PhysicalId("s"), {}, want({"ShardCount": 2}))
    assert caught.value.code == "ResourceNotFoundException"


def test_a_delete_waits_until_it_is_done_and_can_be_repeated(scene: Scene) -> None:
    handler = CloudControl(STREAM)
    handler.create(scene.context, want({"Name": "s"}))
    handler.delete(scene.context, PhysicalId("s"), {})
    assert scene.server.model.resources == {}
    handler.delete(scene.context, PhysicalId("s"), {})
    scene.server.model.refuse_next("DeleteResource", "ResourceNotFoundException")
    handler.delete(scene.context, PhysicalId("s"), {})


def test_a_second_resource_of_the_name_can_be_deleted_too(scene: Scene) -> None:
    handler = CloudControl(STREAM)
    for token in ("1" * 32, "2" * 32):
        handler.create(scene.context, want({"Name": "s"}, token=token))
        handler.delete(scene.context, PhysicalId("s"), {})
    assert scene.server.model.resources == {}


def test_a_delete_whose_answer_was_lost_waits_for_the_first_one(scene: Scene) -> None:
    handler = CloudControl(STREAM)
    handler.create(scene.context, want({"Name": "s"}))
    scene.server.lose_answers("DeleteResource")
    handler.delete(scene.context, PhysicalId("s"), {})
    assert scene.server.model.resources == {}


@pytest.mark.parametrize(
    "code",
    ["NotStabilized", "AccessDenied", "InvalidRequest", "ServiceLimitExceeded", "NotUpdatable", "InternalFailure"],
)
def test_a_handlers_failure_is_a_refusal_with_its_code_and_message(scene: Scene, code: str) -> None:
    scene.server.model.fail_next("CreateResource", code, "not this\n time")
    with pytest.raises(AwsError) as caught:
        CloudControl(STREAM).create(scene.context, want({"Name": "s"}))
    assert (caught.value.code, caught.value.operation) == (code, "CreateResource")
    assert caught.value.reason == "AWS::Kinesis::Stream: not this time"
    assert not scene.trace.left_something


def test_a_name_that_is_taken_is_not_ours_to_clean_up(scene: Scene) -> None:
    scene.server.model.resources[STREAM, "s"] = {"Name": "s"}
    with pytest.raises(AwsError) as caught:
        CloudControl(STREAM).create(scene.context, want({"Name": "s"}))
    assert caught.value.code == "AlreadyExists"
    assert scene.trace.physical_id is None
    assert not scene.trace.left_something


@pytest.mark.parametrize(
    ("type_name", "properties", "identifier"),
    [(STREAM, {"Name": "s"}, "s"), (FILTER, {"LogGroupName": "g", "FilterName": "f"}, "g|f")],
)
def test_what_a_failed_create_left_is_noted_when_it_is_ours(
    scene: Scene, type_name: TypeName, properties: dict[str, Any], identifier: str
) -> None:
    scene.server.model.fail_next("CreateResource", "NotStabilized", leaves=True)
    with pytest.raises(AwsError):
        CloudControl(type_name).create(scene.context, want(properties))
    assert scene.trace.physical_id == identifier


def test_what_a_failed_create_may_have_left_is_not_noted_without_proof(scene: Scene) -> None:
    scene.server.model.fail_next("CreateResource", "InternalFailure", leaves=True)
    with pytest.raises(AwsError):
        CloudControl(FILTER).create(scene.context, want({"LogGroupName": "g", "FilterName": "f"}))
    assert scene.trace.physical_id is None
    assert scene.trace.left_something


def test_a_throttled_request_is_made_again_under_another_token(scene: Scene) -> None:
    scene.server.model.fail_next("CreateResource", "Throttling", times=2)
    CloudControl(STREAM).create(scene.context, want({"Name": "s"}))
    tokens = [body["ClientToken"] for body in scene.sent("CreateResource")]
    assert tokens == [TOKEN, f"{TOKEN}-1", f"{TOKEN}-2"]
    assert list(scene.server.model.resources) == [(STREAM, "s")]


def test_throttling_is_not_waited_out_for_ever(scene: Scene) -> None:
    scene.server.model.fail_next("CreateResource", "Throttling", times=1000)
    with pytest.raises(AwsError) as caught:
        CloudControl(STREAM).create(scene.context, want({"Name": "s"}))
    assert caught.value.code == "Throttling"
    assert 9 * 60_000 < sum(scene.waits) < 12 * 60_000


def test_a_role_of_this_run_that_is_not_known_yet_is_waited_for(scene: Scene) -> None:
    role = "arn:aws:iam::123456789012:role/new"
    message = "The role cannot be assumed"
    scene.changed.add(role)
    scene.server.model.fail_next("CreateResource", "InvalidRequest", message, times=2)
    CloudControl(JOB).create(scene.context, want({"Name": "j", "Role": role}))
    assert len(scene.sent("CreateResource")) == 3
    scene.changed.clear()
    scene.server.model.fail_next("CreateResource", "InvalidRequest", message)
    with pytest.raises(AwsError):
        CloudControl(JOB).create(scene.context, want({"Name": "k", "Role": role}, token="1" * 32))


def test_a_resource_that_is_still_in_use_is_deleted_once_it_is_not(scene: Scene) -> None:
    handler = CloudControl(STREAM)
    handler.create(scene.context, want({"Name": "s"}))
    scene.server.model.fail_next("DeleteResource", "ResourceConflict", times=3)
    handler.delete(scene.context, PhysicalId("s"), {})
    assert scene.server.model.resources == {}


def test_a_cancelled_request_is_a_failure(scene: Scene) -> None:
    handler = CloudControl(STREAM)
    handler.create(scene.context, want({"Name": "s"}))
    context = replace(scene.context, wait=lambda ms: scene.server.model.cancel_all())
    with pytest.raises(AwsError) as caught:
        handler.delete(context, PhysicalId("s"), {})
    assert caught.value.code == "RequestCancelled"
    assert (STREAM, "s") in scene.server.model.resources


def test_a_given_up_wait_leaves_the_request_to_itself(scene: Scene) -> None:
    scene.gives_up_after = 1
    with pytest.raises(StoodDown):
        CloudControl(STREAM).create(scene.context, want({"Name": "s"}))
    assert scene.trace.left_something
    scene.gives_up_after = None
    assert CloudControl(STREAM).create(scene.context, want({"Name": "s"})).physical_id == "s"
    assert len(scene.server.model.resources) == 1


def test_a_type_that_cannot_be_read_tells_its_attributes_by_the_requests_outcome(scene: Scene) -> None:
    scene.server.model.refuse_next("GetResource", "UnsupportedActionException")
    made = CloudControl(STREAM).create(scene.context, want({"Name": "s"}))
    assert made.attributes["Arn"].endswith("stream/s")


def test_a_resource_that_is_not_visible_at_once_is_looked_for_again(scene: Scene) -> None:
    scene.server.model.refuse_next("GetResource", "ResourceNotFoundException", times=2)
    assert CloudControl(STREAM).create(scene.context, want({"Name": "s"})).physical_id == "s"


def test_an_unknown_type_is_refused(scene: Scene) -> None:
    with pytest.raises(AwsError) as caught:
        CloudControl(TypeName("AWS::Nobody::Knows")).create(scene.context, want({}))
    assert caught.value.code == "TypeNotFoundException"


def test_advice_on_when_to_look_again_is_followed(scene: Scene) -> None:
    scene.server.model.retry_after_s = 7
    CloudControl(STREAM).create(scene.context, want({"Name": "s"}))
    assert scene.waits == [7000, 7000]


def test_a_handler_knows_its_types_properties_and_what_holds_data() -> None:
    stream = CloudControl(STREAM)
    assert (stream.type, stream.is_stateful) == (STREAM, True)
    assert {"Name", "ShardCount", "Tags"} <= stream.properties
    assert not CloudControl(FILTER).is_stateful
    assert stream.ref(PhysicalId("s"), {}, {}) == "s"


def lost(**changes: Any) -> Lost:
    plain = Lost(LogicalId("Thing"), "", is_own_name=False, tags=OWNERSHIP, place={})
    return replace(plain, **changes)


def test_a_lost_create_is_found_by_the_identifier_that_the_template_names_and_our_tags(scene: Scene) -> None:
    handler = CloudControl(STREAM)
    place = handler.place({"Name": "orders", "ShardCount": 1})
    assert place == {"Name": "orders"}
    assert handler.find(scene.context, lost(place=place)) is None
    handler.create(scene.context, want({"Name": "orders", "ShardCount": 1}))
    assert handler.find(scene.context, lost(place=place)) == "orders"
    assert handler.find(scene.context, lost(place=place, known=frozenset({PhysicalId("orders")}))) is None
    assert handler.find(scene.context, lost(place=place, tags={"stackhold:run": "another"})) is None


def test_one_that_aws_names_is_found_among_all_of_its_type_by_our_tags(scene: Scene) -> None:
    handler = CloudControl(SECRET)
    handler.create(scene.context, want({"Name": "theirs"}, tags={"stackhold:run": "another"}, token="1" * 32))
    made = handler.create(scene.context, want({"Name": "ours"}))
    assert handler.find(scene.context, lost()) == made.physical_id
    assert handler.find(scene.context, lost(known=frozenset({made.physical_id}))) is None
    assert "CreateResource" not in scene.operations()[-4:]


def test_one_without_tags_is_ours_only_as_a_part_of_another_resource_of_the_stack(scene: Scene) -> None:
    handler = CloudControl(FILTER)
    properties = {"LogGroupName": "web", "FilterName": "errors", "FilterPattern": ""}
    handler.create(scene.context, want(properties))
    place = handler.place(properties)
    assert handler.find(scene.context, lost(place=place, stack=frozenset({"web"}))) == "web|errors"
    with pytest.raises(ResourceFailed, match="could be anybody's"):
        handler.find(scene.context, lost(place=place))


def test_a_type_that_cannot_be_listed_says_that_nothing_can_tell(scene: Scene) -> None:
    scene.server.model.refuse_next("ListResources", "UnsupportedActionException", "cannot list")
    with pytest.raises(ResourceFailed, match="cannot list"):
        CloudControl(SECRET).find(scene.context, lost())
