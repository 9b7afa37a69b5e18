"""Templates as text, worked out under inputs that a test can change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stackhold.engines.cloudformation.template import evaluate, parse_text
from stackhold.engines.cloudformation.template.desired import Inputs
from stackhold.errors import AwsError, TemplateError
from stackhold.model.ids import LogicalId, Region, StackName

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stackhold.engines.cloudformation.template.desired import DesiredStack


THREE = """\
Resources:
  B: {Type: AWS::SQS::Queue}
  C: {Type: AWS::SNS::Topic}
  A:
    Type: AWS::Test::Thing
    Properties:
"""


class FixedFacts:
    """Facts of an account that has two zones and one SSM parameter."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.refused: dict[str, str] = {}
        """Error codes by what was asked for."""

    def availability_zones(self, region: str) -> list[str]:
        self.asked.append(region)
        return [f"{region}a", f"{region}b"]

    def ssm_parameter(self, name: str) -> str:
        self.asked.append(name)
        if name in self.refused:
            raise AwsError(service="ssm", operation="GetParameter", code=self.refused[name], reason="no")
        return {"/list": "a, b", "/secret": "{{resolve:ssm:x}}"}.get(name, f"value of {name}")

    def existing(self, type_name: str, values: Sequence[str]) -> frozenset[str]:
        self.asked.append(f"{type_name}: {', '.join(values)}")
        if type_name in self.refused:
            raise AwsError(service="ec2", operation="Describe", code=self.refused[type_name], reason="no")
        return frozenset(value for value in values if not value.startswith("gone"))


def _inputs(**changes: Any) -> Inputs:
    settings: dict[str, Any] = {
        "stack": StackName("Shop"),
        "region": Region("eu-west-1"),
        "account": "123456789012",
        "partition": "aws",
        "url_suffix": "amazonaws.com",
        "stack_id": "arn:aws:cloudformation:eu-west-1:123456789012:stack/Shop/0a",
        "facts": FixedFacts(),
        **changes,
    }
    return Inputs(**settings)


@pytest.fixture
def inputs() -> Callable[..., Inputs]:
    return _inputs


@pytest.fixture
def desired() -> Callable[..., DesiredStack]:
    """Works out a template's text; keywords change the inputs."""

    def build(text: str, *, file: str = "t.yaml", check: Any = None, **changes: Any) -> DesiredStack:
        return evaluate(parse_text(text, file=file), _inputs(**changes), check=check)

    return build


@pytest.fixture
def value(desired: Callable[..., DesiredStack]) -> Callable[..., Any]:
    """What one YAML expression comes out as, as the property `P` of a resource `A`; `B` and `C` are other resources."""

    def build(expression: str, *, more: str = "", **changes: Any) -> Any:
        text = f"{THREE}      P: {expression}\n{more}"
        return desired(text, **changes).resources[LogicalId("A")].properties["P"]

    return build


@pytest.fixture
def value_refusal(value: Callable[..., Any]) -> Callable[..., TemplateError]:
    """The error that one YAML expression gives in that place."""

    def build(expression: str, **changes: Any) -> TemplateError:
        with pytest.raises(TemplateError) as caught:
            value(expression, **changes)
        return caught.value

    return build


@pytest.fixture
def refusal(desired: Callable[..., DesiredStack]) -> Callable[..., TemplateError]:
    """The error that a template's text gives."""

    def build(text: str, **changes: Any) -> TemplateError:
        with pytest.raises(TemplateError) as caught:
            desired(text, **changes)
        return caught.value

    return build
