from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.apiserver.admission.chain import AdmissionAttributes
from allot.apiserver.admission.node_restriction import NodeRestriction
from allot.apiserver.api_errors import ApiError
from allot.apiserver.auth.authorization import Authorizer
from allot.apiserver.auth.node_graph import NodeGraph
from allot.apiserver.kinds.request import Caller, RequestInfo
from allot.apiserver.watch_cache.caches import resource_named

REQUESTS = resource_named("certificates.k8s.io", "podcertificaterequests")
PODS = {
    "own": {
        "metadata": {"uid": "u1"},
        "spec": {"nodeName": "n1", "serviceAccountName": "default"},
    },
    "other": {
        "metadata": {"uid": "u2"},
        "spec": {"nodeName": "n2", "serviceAccountName": "default"},
    },
}


class Pods:
    """A node graph that knows these pods only."""

    def value(self, _group: str, _plural: str, _namespace: str, name: str) -> Any:
        return PODS.get(name)


def admit(**spec: str) -> None:
    wanted = {"nodeName": "n1", "podName": "own", "podUID": "u1", "serviceAccountName": "default"}
    request = RawObject({"metadata": {"name": "r"}, "spec": wanted | spec})
    caller = Caller("system:node:n1", {}, lambda _: True, ("system:nodes",))
    attributes = AdmissionAttributes(
        "create",
        REQUESTS,
        ObjectKey("default", "r"),
        request,
        None,
        RequestInfo(caller, "v1", "create"),
    )
    plugin = NodeRestriction(cast("NodeGraph", Pods()), cast("Authorizer", None))
    asyncio.run(plugin.validate(attributes))


def test_a_kubelet_asks_for_a_certificate_of_its_own_pod() -> None:
    admit()


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"nodeName": "n2"}, 'NodeName="n2", which is not the requesting node "n1"'),
        ({"podName": "absent"}, "is not a pod with the UID"),
        ({"podUID": "u9"}, "is not a pod with the UID"),
        ({"podName": "other", "podUID": "u2"}, "is not a pod of the requesting node"),
        ({"serviceAccountName": "admin"}, "is not the account"),
    ],
)
def test_a_kubelet_cannot_ask_for_others(spec: dict[str, str], problem: str) -> None:
    with pytest.raises(ApiError, match="forbidden") as caught:
        admit(**spec)

    assert problem in str(caught.value)
