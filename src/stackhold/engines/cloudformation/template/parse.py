"""From a file to a checked `Template`: pick the syntax, read, refuse what is not supported."""

from __future__ import annotations

from pathlib import Path

from stackhold.engines.cloudformation.template.json_reader import read_json
from stackhold.engines.cloudformation.template.language import MAX_BYTES
from stackhold.engines.cloudformation.template.nodes import MapNode, Node, kind
from stackhold.engines.cloudformation.template.scan import check_language
from stackhold.engines.cloudformation.template.structure import check_structure
from stackhold.engines.cloudformation.template.template import Template
from stackhold.errors import TemplateError
from stackhold.ports.named_file import Unreadable, read_named_file

_BOM = b"\xef\xbb\xbf"


def parse_template(path: str | Path) -> Template:
    """Read and check a template file. Raises `TemplateError`, also when it cannot be read."""
    file = str(path)
    try:
        data = read_named_file(Path(path), limit=MAX_BYTES + len(_BOM))
    except Unreadable as error:
        raise TemplateError(f"the template cannot be read: {error}", file=file) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise TemplateError("the template is not UTF-8 text", file=file, line=line) from error
    return parse_text(text, file=file)


def parse_text(text: str, *, file: str) -> Template:
    """Check a template that was read already; `file` is its name in messages. Raises `TemplateError`."""
    text = text.removeprefix("\ufeff")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise TemplateError("the template holds half of a surrogate pair", file=file) from None
    if size > MAX_BYTES:
        raise TemplateError(f"the template has {size:,} bytes; the limit is {MAX_BYTES:,}", file=file)
    root, warnings = _read(text, file)
    if not isinstance(root, MapNode):
        raise TemplateError(
            f"not a template: a map of sections is expected, not {kind(root)}",
            file=file,
            line=root.place.line,
            column=root.place.column,
        )
    template = Template(file=file, root=root, warnings=warnings)
    check_structure(template)
    check_language(template)
    return template


def _read(text: str, file: str) -> tuple[Node, tuple[str, ...]]:
    """JSON where the name says so, or where the text is JSON; YAML otherwise."""
    if file.lower().endswith(".json"):
        return read_json(text, file)
    if text.lstrip().startswith("{"):
        try:
            return read_json(text, file)
        except TemplateError as error:
            if not error.reason.startswith("not JSON"):
                raise
    from stackhold.engines.cloudformation.template.yaml_reader import read_yaml

    return read_yaml(text, file)
