"""Which stack a TEMPLATE argument means: a template file, or one stack of a `cdk.out` directory."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stackhold.engines.cloudformation.template import is_assembly, load_assembly
from stackhold.errors import InputError
from stackhold.model.ids import StackName, stack_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.model.ids import Region


@dataclass(frozen=True, slots=True)
class Source:
    """One stack to deploy: its template and what the app says about it."""

    file: Path
    stack: StackName
    region: Region | None = None
    """Fixed by the app; None when left open."""
    account: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


def find_source(template: str, *, selected: str | None, named: str | None, cwd: Path) -> Source:
    """The stack that is meant; raises `InputError` and `TemplateError`.

    `selected` chooses a stack of an assembly by name or display path, `named` is `--stack-name`.
    """
    path = cwd / template
    if os.path.isdir(path):
        return _from_assembly(path, template, selected=selected, named=named)
    if selected is not None:
        raise InputError(
            f"{template} is a template, which is one stack; {selected} cannot be chosen from it",
            hint="Name its stack with --stack-name.",
        )
    name = stack_name(
        named if named is not None else Path(template).name.partition(".")[0],
        hint="A stack is called as its file, up to the first dot, unless --stack-name says otherwise.",
    )
    shown = Path(template) if (Path.cwd() / template) == path else path
    return Source(file=shown, stack=name)


def _from_assembly(path: Path, shown: str, *, selected: str | None, named: str | None) -> Source:
    if not is_assembly(path):
        raise InputError(
            f"{shown} is a directory without a manifest.json, so it is no cdk.out",
            hint="Give a template file, or the directory that `cdk synth` wrote.",
        )
    if named is not None:
        raise InputError("--stack-name is for template files: the stacks of an app have their own names")
    stacks = load_assembly(path, only=None if selected is None else [selected])
    if not stacks:
        raise InputError(f"{shown} has no stacks")
    if len(stacks) > 1:
        names = ", ".join(stack.display_path for stack in stacks)
        raise InputError(f"{shown} has several stacks; name one of: {names}", hint=f"stackhold deploy {shown} STACK")
    [stack] = stacks
    return Source(
        file=stack.template_file,
        stack=stack.name,
        region=stack.environment_region,
        account=stack.account,
        tags=stack.tags,
    )
