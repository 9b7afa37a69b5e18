"""Reads botocore's service descriptions quicker and smaller than botocore does by itself.

Two things cost most when a client is made: parsing the description into ordered dictionaries, and walking the
folders of all services to learn which exist. Here a plain parse keeps the order just as well, and only the
folder of the service that is asked for is looked at. What is found, and where, is decided by botocore's loader.
"""

from __future__ import annotations

import os
from typing import Any

import msgspec
from botocore.exceptions import DataNotFoundError
from botocore.loaders import JSONFileLoader, Loader


class _QuickFiles(JSONFileLoader):  # type: ignore[misc]  # botocore has no types
    def _load_file(self, full_path: str, open_method: Any) -> Any:  # noqa: ANN401  # botocore's own shape
        if not os.path.isfile(full_path):
            return None
        with open_method(full_path, "rb") as file:
            return msgspec.json.decode(file.read())


class _Services:
    """Answers whether a service is known without listing all of them."""

    def __init__(self, loader: QuickLoader, type_name: str) -> None:
        self._loader = loader
        self._type_name = type_name

    def __contains__(self, service: object) -> bool:
        try:
            return bool(self._loader.list_api_versions(service, self._type_name))
        except DataNotFoundError:
            return False

    def __iter__(self) -> Any:  # noqa: ANN401  # botocore joins the names into its error
        return iter(())


class QuickLoader(Loader):  # type: ignore[misc]  # botocore has no types
    """Botocore's loader, `AWS_DATA_PATH` included, with both costs removed."""

    def __init__(self, data_path: str | None = None) -> None:
        paths = [os.path.expanduser(os.path.expandvars(part)) for part in (data_path or "").split(os.pathsep) if part]
        super().__init__(extra_search_paths=[*paths], file_loader=_QuickFiles())

    def list_available_services(self, type_name: str) -> Any:  # noqa: ANN401  # a container is enough for botocore
        """Which services have this kind of file: a container that is asked, never listed."""
        return _Services(self, type_name)

    def pagination(self, service: str, operation: str) -> dict[str, Any] | None:
        """How an operation is paged, or None when it is not."""
        try:
            model = self.load_service_model(service, "paginators-1")
        except DataNotFoundError:
            return None
        found = model["pagination"].get(operation)
        return dict(found) if found is not None else None


def dns_names(loader: QuickLoader, region: str) -> tuple[str, str]:
    """The partition of a region and the suffix of its endpoints' names."""
    import re

    partitions = loader.load_data("partitions")["partitions"]
    for partition in partitions:
        if region in partition["regions"] or re.match(partition["regionRegex"], region):
            return partition["id"], partition["outputs"]["dnsSuffix"]
    return "aws", "amazonaws.com"
