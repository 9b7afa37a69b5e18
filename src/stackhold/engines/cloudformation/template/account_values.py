"""What the account must say about parameters: the value of an SSM parameter, and whether what a value names exists.

Each type is asked about once, with all its values, and only where a template has it. A refusal names the parameter and
its place; what is wrong with the credentials or the network is no fault of the template and is left as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.engines.cloudformation.template.language import DYNAMIC_REFERENCE
from stackhold.engines.cloudformation.template.structure import label
from stackhold.errors import AwsError, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.template.desired import Inputs
    from stackhold.engines.cloudformation.template.parameter_rules import Declared
    from stackhold.engines.cloudformation.template.template import Template
    from stackhold.errors import TemplateError

_NO_SUCH_PARAMETER = frozenset({"ParameterNotFound", "ParameterVersionNotFound"})


def ssm_value(template: Template, entry: Declared, name: str, inputs: Inputs) -> str:
    """The value of the SSM parameter that a parameter names. Raises `TemplateError`."""
    if inputs.facts is None:
        raise _refusal(template, entry, "an SSM parameter's value cannot be read here")
    try:
        text = inputs.facts.ssm_parameter(name)
    except AwsError as error:
        if error.code in _NO_SUCH_PARAMETER:
            reason = f"there is no SSM parameter {name!r} in {inputs.region}"
            raise _refusal(template, entry, reason, hint=_give(entry, "a name")) from error
        raise _unread(template, entry, f"the SSM parameter {name!r} cannot be read", error) from error
    except InputError as error:
        raise _refusal(template, entry, error.message, hint=error.hint) from error
    if DYNAMIC_REFERENCE in text:
        raise _refusal(template, entry, "dynamic references ({{resolve:…}}) are not supported")
    return text


def check_exist(
    template: Template, declared: Mapping[str, Declared], values: Mapping[str, str | list[str]], inputs: Inputs
) -> None:
    """Raise `TemplateError` for values that must name something of the account and do not."""
    if inputs.facts is None:
        return
    named: dict[str, dict[str, list[str]]] = {}
    for name, value in values.items():
        if declared[name].aws_type:
            named.setdefault(declared[name].aws_type, {})[name] = [value] if isinstance(value, str) else value
    missing: list[tuple[Declared, str]] = []
    for type_name, users in named.items():
        asked = sorted({value for of_one in users.values() for value in of_one})
        first = declared[next(iter(users))]
        try:
            there = inputs.facts.existing(type_name, asked)
        except AwsError as error:
            raise _unread(
                template, first, f"it cannot be looked up whether {', '.join(asked)} exists", error
            ) from error
        missing += [
            (declared[name], f"there is no {type_name.removeprefix('AWS::')} {value!r} in {inputs.region}")
            for name, of_one in users.items()
            for value in of_one
            if value not in there
        ]
    if missing:
        first, reason = missing[0]
        others = [f"{label('Parameters', entry.name)}: {why}" for entry, why in missing[1:]]
        raise _refusal(template, first, "; ".join([reason, *others]), hint=_give(first, "one that exists"))


def _give(entry: Declared, what: str) -> str:
    return f"Give {what} with --parameter {entry.name}=VALUE."


def _refusal(template: Template, entry: Declared, reason: str, *, hint: str = "") -> TemplateError:
    return template.error(reason, entry.place, logical_id=label("Parameters", entry.name), hint=hint)


def _unread(template: Template, entry: Declared, reason: str, error: AwsError) -> AwsError | TemplateError:
    """The account refused to answer."""
    if error.refuses_credentials:
        return error
    return _refusal(template, entry, f"{reason}: {error.message}", hint=error.hint)
