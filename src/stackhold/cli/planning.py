"""From a TEMPLATE argument to an engine that can plan it: shared by the verbs that need a template."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from stackhold.cli.parameters import load_parameters, parse_pairs
from stackhold.cli.source import Source, find_source
from stackhold.engines.cloudformation.engine import DeployEngine
from stackhold.engines.cloudformation.preflight import objection_to
from stackhold.engines.cloudformation.tag_rules import refuse_reserved_keys
from stackhold.engines.cloudformation.template import parse_template
from stackhold.errors import InputError, StackholdError
from stackhold.model.ids import LogicalId

if TYPE_CHECKING:
    from stackhold.cli.options import Invocation
    from stackhold.cli.wiring import Wiring
    from stackhold.engines.cloudformation.bench import DeployOptions
    from stackhold.model.ids import Region
    from stackhold.model.run import RunIdentity


@dataclass(frozen=True, slots=True)
class Target:
    """One stack in one region, and the engine that makes it what its template says."""

    source: Source
    region: Region
    engine: DeployEngine
    doubt: InputError | None = None
    """What seems to be wrong with the template, unless record or account say otherwise."""


def target(call: Invocation, wiring: Wiring, options: dict[str, object], *, deploy: DeployOptions) -> Target:
    """Read the template and everything given with it; raises `InputError` and `TemplateError` before any call."""
    cwd = call.surroundings.cwd
    source = find_source(
        str(options["template"]),
        selected=_maybe(options["selected"]),
        named=_maybe(options["stack_name"]),
        cwd=cwd,
    )
    given = _tags(call, options)
    refuse_reserved_keys(source.tags, given_by="the tags of the app")
    refuse_reserved_keys(given or {}, given_by="--tag" if options["tags"] else "the project's tags")
    parameters = load_parameters(_texts(options["parameters_files"]), _texts(options["parameters"]), cwd=cwd)
    template = parse_template(source.file)
    region = _region(call, wiring, source)
    tags, allow_replace = {**source.tags, **(given or {})}, frozenset(map(LogicalId, _texts(options["replace"])))
    objection = objection_to(
        template, stack=source.stack, region=region, parameters=parameters, tags=tags, allow_replace=allow_replace
    )
    if objection is not None and objection.is_certain:
        raise objection.error
    aws = wiring.session.aws(region)
    if source.account is not None and source.account != aws.account():
        raise InputError(
            f"{source.stack} is for account {source.account}, but the credentials are of account {aws.account()}",
            hint="Choose other credentials, such as with --profile.",
        )
    engine = DeployEngine(
        template=template,
        parameters=parameters,
        tags=given,
        app_tags=source.tags,
        aws=aws,
        url_suffix=wiring.session.dns_names(region)[1],
        options=deploy,
        allow_replace=allow_replace,
    )
    return Target(source, region, engine, doubt=objection.error if objection is not None else None)


def settle_doubt(wanted: Target, wiring: Wiring, identity: RunIdentity) -> None:
    """Raise what is wrong with a doubtful template, by the record as it is now: before a lock is taken for nothing.

    Where record or account cannot be had, the doubt itself is raised.
    """
    if wanted.doubt is None:
        return
    from stackhold.runs.inspect import read_record

    try:
        found = read_record(wiring.store, wiring.keys(wanted.source.stack, wanted.region))
        record = found.required() if found is not None else None
        wiring.session.aws(wanted.region).account()
    except StackholdError as error:
        raise wanted.doubt from error
    wanted.engine.plan(record, identity)


def _tags(call: Invocation, options: dict[str, object]) -> dict[str, str] | None:
    """The tags that are given, by flags or by the project's file; None keeps those of the last deploy."""
    pairs = _texts(options["tags"])
    if options["no_tags"]:
        if pairs:
            raise click.UsageError("--tag and --no-tags contradict each other; give one of them")
        return {}
    return parse_pairs(pairs, flag="--tag") if pairs else call.settings.tags


def _region(call: Invocation, wiring: Wiring, source: Source) -> Region:
    """The region that the app fixed, else the one that is named."""
    named = call.settings.region
    if source.region is None:
        return wiring.region_for_new()
    if named.value is not None and named.source.startswith("--") and named.value != source.region:
        raise InputError(
            f"the app puts {source.stack} into {source.region}, but {named.source} names {named.value}",
            hint="Leave --region out, or change the app.",
        )
    return source.region


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, tuple) else ()


def _maybe(value: object) -> str | None:
    return None if value is None else str(value)
