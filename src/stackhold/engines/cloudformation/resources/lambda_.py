"""Lambda functions, permissions and event source mappings, as the registry names them.

Each lives in a file of its own, since each has its own rules for being found again and for settling.
"""

from __future__ import annotations

from stackhold.engines.cloudformation.resources.lambda_function import Function
from stackhold.engines.cloudformation.resources.lambda_mapping import EventSourceMapping
from stackhold.engines.cloudformation.resources.lambda_permission import Permission

__all__ = ["EventSourceMapping", "Function", "Permission"]
