"""What is wrong with a template before anybody was asked anything: no call, no lock, no record.

The template is planned as a new stack's, with stand-ins for what only the account knows. Where its shape cannot
depend on those or on the record (no conditions, no mappings, every parameter given), an objection is certain; so is
one to a parameter that is given.
Otherwise it is a doubt: whoever has the record and the account's answers plans again and lets that decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from stackhold.engines.cloudformation.graph import edges
from stackhold.engines.cloudformation.planner import plan_deploy
from stackhold.engines.cloudformation.resources.registry import handler_for
from stackhold.engines.cloudformation.schema import has_attribute
from stackhold.engines.cloudformation.template import evaluate
from stackhold.engines.cloudformation.template.desired import Inputs
from stackhold.engines.cloudformation.template.parameters import check_given
from stackhold.errors import Bug, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackhold.engines.cloudformation.route import Native
    from stackhold.engines.cloudformation.template import Template
    from stackhold.engines.cloudformation.template.desired import Facts
    from stackhold.model.ids import LogicalId, Region, StackName

_ACCOUNT = "000000000000"


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a template cannot be deployed. Not certain: the record or the account may make it right."""

    error: InputError
    is_certain: bool


def objection_to(
    template: Template,
    *,
    stack: StackName,
    region: Region,
    parameters: Mapping[str, str],
    tags: Mapping[str, str],
    allow_replace: frozenset[LogicalId] = frozenset(),
    native: Native = handler_for,
) -> Objection | None:
    """The first thing that is wrong with a template by itself; None when nothing is."""
    try:
        check_given(template, parameters)
    except InputError as error:
        return Objection(error, is_certain=True)
    facts = _StandIns()
    inputs = Inputs(
        stack=stack,
        region=region,
        account=_ACCOUNT,
        partition="aws",
        url_suffix="amazonaws.com",
        stack_id=f"arn:aws:cloudformation:{region}:{_ACCOUNT}:stack/{stack}/{_ACCOUNT}",
        parameters=parameters,
        facts=facts,
    )
    try:
        desired = evaluate(template, inputs, check=has_attribute)
        plan_deploy(
            desired,
            None,
            needs=edges(desired),
            attribute=_nothing_recorded,
            native=native,
            allow_replace=allow_replace,
            stack_tags=tags,
        )
    except InputError as error:
        return Objection(error, is_certain=not facts.were_asked and _stands_alone(template, parameters))
    return None


def _stands_alone(template: Template, parameters: Mapping[str, str]) -> bool:
    """Whether neither the account nor a recorded parameter can change what the template asks for."""
    has_choices = any(template.section(name).entries for name in ("Conditions", "Mappings"))
    return not has_choices and template.section("Parameters").entries.keys() <= parameters.keys()


def _nothing_recorded(*_: object) -> NoReturn:
    raise Bug("an attribute of a recorded resource was asked for, and nothing is recorded")


class _StandIns:
    """Answers of the right kind in place of the account's."""

    def __init__(self) -> None:
        self.were_asked = False

    def availability_zones(self, region: str) -> list[str]:
        """As many as any region has."""
        self.were_asked = True
        return [f"{region}{letter}" for letter in "abcdef"]

    def ssm_parameter(self, name: str) -> str:
        """Some text."""
        self.were_asked = True
        return name

    def existing(self, type_name: str, values: Sequence[str]) -> frozenset[str]:
        """All of them."""
        self.were_asked = True
        return frozenset(values)


if TYPE_CHECKING:
    _: type[Facts] = _StandIns
