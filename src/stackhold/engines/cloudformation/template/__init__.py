"""The template language: text in, desired resources out. Pure but for reading the files it is told to read."""

from stackhold.engines.cloudformation.template.resolve import references, resolve

__all__ = ["references", "resolve"]
