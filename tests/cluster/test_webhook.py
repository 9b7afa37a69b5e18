"""A real API server asks the webhook over its own certificate, and passes on what it says."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest
from tests.cluster.definitions import install, path_of, thing
from tests.cluster.waiting import wait_for

from stackhold.kube import certificates
from stackhold.kube.admission import Requester, review
from stackhold.kube.names import GROUP, VERSION, Annotation
from stackhold.kube.webhook import PATH, Webhook
from stackhold.model.instant import Instant
from stackhold.testing.kube_node import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackhold.kube.certificates import Held
    from stackhold.testing.kube_node import Api

pytestmark = pytest.mark.cluster

Document = dict[str, Any]
LEAST: Document = {"source": {"image": "ghcr.io/example/module:v1"}}
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
NAME = "test-of-stackhold"
KINDS = ["terraformmachines", "terraformmachinetemplates", "terraformclusteridentities"]
NOW = Instant(1_796_083_200_000)


class _Nothing:
    """Nobody refers to anything, and nobody may read Secrets."""

    def may_get_secret(self, requester: Requester, *, namespace: str, name: str) -> bool:
        return False

    def machine_of(self, *, namespace: str, name: str) -> str | None:
        return "md-0" if name == "owned" else None

    def is_paused(self, *, namespace: str, cluster: str) -> bool:
        return False

    def user_of_identity(self, name: str) -> str | None:
        return None


def configuration(held: Held, port: int) -> Document:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": [
            {
                "name": "validation.stackhold.test.io",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "clientConfig": {
                    "url": f"https://localhost:{port}{PATH}",
                    "caBundle": b64encode(held.bundle).decode(),
                },
                "rules": [
                    {
                        "apiGroups": [GROUP],
                        "apiVersions": [VERSION],
                        "resources": KINDS,
                        "operations": ["CREATE", "UPDATE", "DELETE"],
                    }
                ],
            }
        ],
    }


@pytest.fixture(scope="module")
def held() -> Held:
    return certificates.make_all(names=["localhost"], now=NOW)


@pytest.fixture(scope="module")
def webhook(api: Api, held: Held) -> Iterator[Webhook]:
    install(api)
    server = Webhook(
        lambda document: review(document, manager="the-manager", reads=_Nothing()),
        held.serving,
        host="127.0.0.1",
        port=0,
    )
    server.start()
    api.create(WEBHOOKS, configuration(held, server.port))
    bad = thing("TerraformMachine", "probe", {**LEAST, "variables": {"count": 1}})
    wait_for(lambda: said(api, "default", bad) is not None, "the webhook to be asked")
    yield server
    api.delete(f"{WEBHOOKS}/{NAME}")
    server.close()


def said(api: Api, namespace: str, new: Document) -> str | None:
    """What becomes of a creation that only seems to be one."""
    try:
        api.create(path_of(new["kind"], namespace) + "?dryRun=All", new)
    except ApiError as error:
        return str(error)
    return None


@pytest.mark.usefixtures("webhook")
def test_what_no_rule_of_a_definition_can_see_is_refused_with_all_that_is_wrong(api: Api, namespace: str) -> None:
    spec = {"source": {"image": "NOT/An Image"}, "variables": {"machine_name": "s3cret", "captf_x": 1}}
    message = said(api, namespace, thing("TerraformMachine", "m", spec)) or "it was taken"
    assert message.startswith("422 Invalid: ")
    for part in ("spec.source.image", "spec.variables[machine_name]", "spec.variables[captf_x]"):
        assert part in message
    assert "s3cret" not in message


@pytest.mark.usefixtures("webhook")
def test_a_machines_variables_cannot_be_renamed_either(api: Api, namespace: str) -> None:
    path = path_of("TerraformMachine", namespace)
    api.create(path, thing("TerraformMachine", "m", {**LEAST, "variables": {"a": 1}}))
    with pytest.raises(ApiError, match=r"spec.variables: cannot be changed"):
        api.merge(f"{path}/m", {"spec": {"variables": {"a": None, "b": 1}}})
    with pytest.raises(ApiError, match=r"spec.providerID: is for the manager to set"):
        api.merge(f"{path}/m", {"spec": {"providerID": "x"}})
    api.merge(f"{path}/m", {"metadata": {"labels": {"a": "b"}}, "spec": {"jobs": {"activeDeadlineSeconds": 900}}})
    api.delete(f"{path}/m")


@pytest.mark.usefixtures("webhook")
def test_a_template_changes_in_a_dry_run_of_a_topology_alone(api: Api, namespace: str) -> None:
    path = path_of("TerraformMachineTemplate", namespace)
    api.create(path, thing("TerraformMachineTemplate", "t", {"template": {"spec": LEAST}}))
    change: Document = {"spec": {"template": {"spec": {"drift": {"intervalSeconds": 60}}}}}
    with pytest.raises(ApiError, match="create a new TerraformMachineTemplate instead"):
        api.merge(f"{path}/t", change)
    marked = {**change, "metadata": {"annotations": {Annotation.TOPOLOGY_DRY_RUN: ""}}}
    api.merge(f"{path}/t?dryRun=All", marked)
    with pytest.raises(ApiError, match="create a new TerraformMachineTemplate instead"):
        api.merge(f"{path}/t", marked)


@pytest.mark.usefixtures("webhook")
def test_an_identity_is_made_by_one_who_may_read_its_secret(api: Api) -> None:
    spec = {"secretRef": {"name": "aws", "namespace": "keys"}}
    message = said(api, "", thing("TerraformClusterIdentity", "aws", spec)) or "it was taken"
    assert "may not get Secret keys/aws" in message


@pytest.mark.usefixtures("webhook")
def test_a_machine_with_an_owner_is_not_deleted(api: Api, namespace: str) -> None:
    path = path_of("TerraformMachine", namespace)
    api.create(path, thing("TerraformMachine", "owned", LEAST))
    with pytest.raises(ApiError, match=r"403 Forbidden: .*Machine md-0 still refers to it"):
        api.delete(f"{path}/owned")


def test_a_renewal_is_never_noticed(api: Api, namespace: str, webhook: Webhook, held: Held) -> None:
    bad = thing("TerraformMachine", "m", {**LEAST, "variables": {"count": 1}})
    renewed = certificates.with_new_authority(held, now=NOW)
    assert "spec.variables[count]" in (said(api, namespace, bad) or "")
    api.merge(f"{WEBHOOKS}/{NAME}", {"webhooks": configuration(renewed, webhook.port)["webhooks"]})
    webhook.use(certificates.with_new_certificate(held, names=["localhost"], now=NOW).serving)
    assert "spec.variables[count]" in (said(api, namespace, bad) or "")
    webhook.use(certificates.with_new_certificate(renewed, names=["localhost"], now=NOW).serving)
    wait_for(lambda: "spec.variables[count]" in (said(api, namespace, bad) or ""), "the new authority to be trusted")
