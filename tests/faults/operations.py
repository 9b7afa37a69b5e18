"""The operations of the fault bench: what stands before, which command is disturbed, which one follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.faults.points import STACK
from tests.stories.scene import EXAMPLES

from stackhold.testing.proxy import Answer, Rule

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.faults.stage import Stage

_CHANGES: Final = {
    "serverless": (
        ("{AttributeName: orderId, AttributeType: S}", "{AttributeName: id, AttributeType: S}"),
        ("{AttributeName: orderId, KeyType: HASH}", "{AttributeName: id, KeyType: HASH}"),
        (
            "      VisibilityTimeout: 90\n",
            '      QueueName: !Sub "${AWS::StackName}-work"\n      VisibilityTimeout: 95\n',
        ),
        ("      MessageRetentionPeriod: 1209600", "      MessageRetentionPeriod: 1209000"),
        (
            "  FunctionRole:\n    Type: AWS::IAM::Role\n    Properties:\n",
            "  FunctionRole:\n    Type: AWS::IAM::Role\n    Properties:\n      Path: /orders/\n",
        ),
        (
            "      Description: Tidies up old orders\n",
            '      Name: !Sub "${AWS::StackName}-daily"\n      Description: Tidies up\n',
        ),
        ("      StageName: $default\n", "      StageName: live\n"),
        ("      RouteKey: POST /orders\n", "      RouteKey: PUT /orders\n"),
        (
            """  GetOrder:
    Type: AWS::ApiGatewayV2::Route
    Properties:
      ApiId: !Ref Api
      RouteKey: GET /orders/{id}
      Target: !Join ["/", [integrations, !Ref ApiIntegration]]
""",
            """  ListOrders:
    Type: AWS::ApiGatewayV2::Route
    Properties:
      ApiId: !Ref Api
      RouteKey: GET /orders
      Target: !Join ["/", [integrations, !Ref ApiIntegration]]
""",
        ),
        ("      RetentionInDays: 3\n", "      RetentionInDays: 7\n"),
    )
}
"""Replaces a table, a queue with all that hangs on it, a role, a rule and a stage; changes, adds and removes others."""
_LAST: Final = """  Last:
    Type: AWS::SSM::Parameter
    DependsOn: [FulfilFromQueue, PlacedToFulfilment, ApiStage, ListOrders, PostOrder, EveryDayMayInvoke, ApiMayInvoke]
    Properties: {Type: String, Value: done}
"""


@dataclass(frozen=True)
class Operation:
    """One operation. `prepare` makes what stands before it; `command` is disturbed, and then repeated."""

    name: str
    prepare: Callable[[Stage], None]
    command: tuple[str, ...]


class Unprepared(Exception):
    """A command that should prepare the stage went wrong."""


def operation(name: str, template: str, folder: Path) -> Operation:
    """One of `deploy`, `update`, `destroy`, `rollback` of an example's stack; its templates are written to `folder`."""
    first, second = folder / "first.yaml", folder / "second.yaml"
    text = (EXAMPLES / f"{template}.yaml").read_text()
    first.write_text(text)
    for old, new in _CHANGES[template]:
        if text.count(old) != 1:
            raise Unprepared(f"the example {template} does not say once: {old}")
        text = text.replace(old, new)
    second.write_text(text.replace("\nOutputs:\n", f"\n{_LAST}\nOutputs:\n") if name == "rollback" else text)
    deploy = ("deploy", str(first), "--stack-name", STACK, "--yes")
    update = ("deploy", str(second), "--stack-name", STACK, "--yes")

    def deployed(on: Stage) -> None:
        _run(on, deploy)

    def failed(on: Stage) -> None:
        _run(on, deploy)
        denied = Rule(service="ssm", operation="PutParameter", answer=Answer(400, "AccessDeniedException", "not you"))
        on.proxy.add(denied)
        _run(on, (*update, "--no-rollback"), fails=True)
        on.proxy.remove(denied)

    operations = {
        "deploy": Operation("deploy", lambda _: None, deploy),
        "update": Operation("update", deployed, update),
        "destroy": Operation("destroy", deployed, ("destroy", STACK, "--yes")),
        "rollback": Operation("rollback", failed, ("rollback", STACK, "--yes")),
    }
    return operations[name]


def _run(on: Stage, args: tuple[str, ...], *, fails: bool = False) -> None:
    ended = on.run(*args)
    if (ended.code != 0) is not fails:
        raise Unprepared(ended.told())
