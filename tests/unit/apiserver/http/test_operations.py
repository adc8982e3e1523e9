"""What requests have in common is found once, and differs where their targets do."""

from __future__ import annotations

import pytest

from allot.apiserver.http import operations
from allot.apiserver.http.flow_control import MUTATING, READ_ONLY
from allot.apiserver.http.metrics import Labels
from allot.apiserver.http.operations import operation_of
from allot.apiserver.http.routes import find_target, verb_of
from allot.apiserver.registry.served import BY_DEFAULT

PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/apis/resource.k8s.io/v1beta1/namespaces/default/resourceclaims"
PATHS = ("/api/v1/pods", PODS, f"{PODS}/p", f"{PODS}/p/status", f"{PODS}/p/binding", CLAIMS)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "BREW"])
@pytest.mark.parametrize("watch", [False, True])
def test_an_operation_is_what_its_method_does_there(path: str, method: str, watch: bool) -> None:
    target = find_target(path, BY_DEFAULT)
    assert target is not None
    verb = verb_of(method, target, watch=watch)
    for _ in range(2):
        found = operation_of(method, target, watch=watch)
        if verb is None:
            assert found is None
            continue
        assert found is not None
        assert found.verb == verb
        assert found.labels == operations.labels_of(target, verb)
        assert found.kind == (READ_ONLY if verb in ("get", "list", "watch") else MUTATING)
        assert bool(found.warning) == ("v1beta1" in path)
        assert found.renderer.version == target.version


def test_labels_say_how_much_a_request_is_about() -> None:
    def labels(path: str) -> Labels:
        target = find_target(path, BY_DEFAULT)
        assert target is not None
        found = operation_of("GET", target, watch=False)
        assert found is not None
        return found.labels

    assert labels("/api/v1/pods") == Labels("list", "", "v1", "pods", "", "cluster")
    assert labels(PODS) == Labels("list", "", "v1", "pods", "", "namespace")
    assert labels(f"{PODS}/p/status") == Labels("get", "", "v1", "pods", "status", "resource")


def test_methods_that_clients_make_up_are_not_kept() -> None:
    target = find_target(PODS, BY_DEFAULT)
    assert target is not None
    known = operations._operations(target.resource)
    before = len(known)
    assert all(operation_of(f"BREW{n}", target, watch=False) is None for n in range(100))
    assert len(known) == before
