"""The template language: text in, desired resources out. Pure but for reading the files it is told to read."""

from stackhold.engines.cloudformation.template.assembly import AssemblyStack, is_assembly, load_assembly
from stackhold.engines.cloudformation.template.evaluate import check_attributes, evaluate
from stackhold.engines.cloudformation.template.parse import parse_template, parse_text
from stackhold.engines.cloudformation.template.resolve import references, resolve
from stackhold.engines.cloudformation.template.template import Template

__all__ = [
    "AssemblyStack",
    "Template",
    "check_attributes",
    "evaluate",
    "is_assembly",
    "load_assembly",
    "parse_template",
    "parse_text",
    "references",
    "resolve",
]
