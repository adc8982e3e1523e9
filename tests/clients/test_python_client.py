"""The official Python client: typed calls, patches, pages, selectors, errors and watches."""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client, config, watch
from kubernetes.client import ApiClient, ApiException
from kubernetes.informer import SharedInformer

from tests.clients.api_server import RunningServer

pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

POD = {
    "metadata": {"name": "p", "labels": {"app": "x"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
CLAIM_SPEC = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
OLD_CLAIM_SPEC = {"devices": {"requests": [{"name": "gpu", "deviceClassName": "gpu"}]}}
SLICE_SPEC = {
    "driver": "gpu.example.com",
    "nodeName": "node-1",
    "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
    "devices": [
        {
            "name": "gpu-0",
            "attributes": {"model": {"string": "A"}, "index": {"int": 0}},
            "capacity": {"memory": {"value": "40Gi"}},
        }
    ],
}


@pytest.fixture(scope="module")
def api(server: RunningServer) -> Iterator[ApiClient]:
    with config.new_client_from_config(str(server.kubeconfig)) as connected:
        yield connected


@pytest.fixture
def core(api: ApiClient) -> Any:
    return client.CoreV1Api(api)


def refused(problem: pytest.ExceptionInfo[ApiException]) -> tuple[int | None, str]:
    """The code and the reason in the Status that came with it."""
    status = json.loads(problem.value.body or "{}")
    assert (status["kind"], status["status"]) == ("Status", "Failure")
    assert status["code"] == problem.value.status
    assert status["message"]
    return problem.value.status, status["reason"]


def test_version(api: ApiClient) -> None:
    version = client.VersionApi(api).get_code()

    assert (version.major, version.minor) == ("1", "38")


def test_object_lives_through_every_verb(core: Any, namespace: str) -> None:
    body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="a"), data={"k": "v"})
    created = core.create_namespaced_config_map(namespace, body)
    assert created.metadata.uid
    assert core.read_namespaced_config_map("a", namespace) == created

    merged = core.patch_namespaced_config_map("a", namespace, {"data": {"l": "w"}})
    assert merged.data == {"k": "v", "l": "w"}
    operations = [{"op": "remove", "path": "/data/k"}]
    assert core.patch_namespaced_config_map("a", namespace, operations).data == {"l": "w"}

    latest = core.read_namespaced_config_map("a", namespace)
    latest.data = {"only": "this"}
    replaced = core.replace_namespaced_config_map("a", namespace, latest)
    assert replaced.data == {"only": "this"}
    with pytest.raises(ApiException) as stale:
        core.replace_namespaced_config_map("a", namespace, latest)
    assert refused(stale) == (409, "Conflict")

    gone = core.delete_namespaced_config_map("a", namespace)
    assert gone["status"] == "Success"
    with pytest.raises(ApiException) as missing:
        core.read_namespaced_config_map("a", namespace)
    assert refused(missing) == (404, "NotFound")


def test_strategic_patch_merges_lists_by_key(core: Any, namespace: str) -> None:
    core.create_namespaced_pod(namespace, POD)

    patched = core.patch_namespaced_pod(
        "p", namespace, {"spec": {"containers": [{"name": "c", "image": "j"}]}}
    )
    status = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    core.patch_namespaced_pod_status("p", namespace, status)
    status["status"]["conditions"] = [{"type": "Other", "status": "True"}]
    pod = core.patch_namespaced_pod_status("p", namespace, status)

    assert [(c.name, c.image) for c in patched.spec.containers] == [("c", "j")]
    assert {c.type: c.status for c in pod.status.conditions} == {"Ready": "False", "Other": "True"}


def test_binding_and_eviction(core: Any, namespace: str) -> None:
    core.create_namespaced_pod(namespace, POD)
    binding = client.V1Binding(
        metadata=client.V1ObjectMeta(name="p"),
        target=client.V1ObjectReference(kind="Node", name="node-1"),
    )
    # The server answers with a Status, as Kubernetes does, which is no Binding.
    core.create_namespaced_pod_binding("p", namespace, binding, _preload_content=False)
    assert core.read_namespaced_pod("p", namespace).spec.node_name == "node-1"
    with pytest.raises(ApiException) as again:
        core.create_namespaced_pod_binding("p", namespace, binding)
    assert refused(again) == (409, "Conflict")

    core.patch_namespaced_pod_status("p", namespace, {"status": {"phase": "Running"}})
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="p"))
    core.create_namespaced_pod_eviction("p", namespace, eviction, _preload_content=False)
    leaving = core.read_namespaced_pod("p", namespace)
    assert leaving.metadata.deletion_timestamp is not None
    assert "DisruptionTarget" in [c.type for c in leaving.status.conditions]
    core.delete_namespaced_pod("p", namespace, grace_period_seconds=0)
    assert core.list_namespaced_pod(namespace).items == []


def test_pages_and_selectors(core: Any, namespace: str) -> None:
    for number in range(5):
        labels = {"parity": "even" if number % 2 == 0 else "odd"}
        metadata = client.V1ObjectMeta(name=f"c{number}", labels=labels)
        core.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata=metadata))

    first = core.list_namespaced_config_map(namespace, limit=2)
    core.delete_namespaced_config_map("c4", namespace)  # later pages show the first one's moment
    names = [item.metadata.name for item in first.items]
    assert first.metadata.remaining_item_count == 3
    page = first
    while page.metadata._continue:
        page = core.list_namespaced_config_map(
            namespace, limit=2, _continue=page.metadata._continue
        )
        assert page.metadata.resource_version == first.metadata.resource_version
        names += [item.metadata.name for item in page.items]
    even = core.list_namespaced_config_map(namespace, label_selector="parity in (even)")
    one = core.list_namespaced_config_map(namespace, field_selector="metadata.name=c1")

    assert names == ["c0", "c1", "c2", "c3", "c4"]
    assert [item.metadata.name for item in even.items] == ["c0", "c2"]
    assert [item.metadata.name for item in one.items] == ["c1"]


def test_delete_collection_takes_what_is_selected(core: Any, namespace: str) -> None:
    for name in ("a", "b"):
        metadata = client.V1ObjectMeta(name=name, labels={"name": name})
        core.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata=metadata))

    core.delete_collection_namespaced_config_map(namespace, label_selector="name=a")

    assert [i.metadata.name for i in core.list_namespaced_config_map(namespace).items] == ["b"]


def test_errors_carry_a_status(core: Any, namespace: str) -> None:
    with pytest.raises(ApiException) as invalid:
        core.create_namespaced_config_map(namespace, {"metadata": {"name": "A B"}})
    with pytest.raises(ApiException) as nowhere:
        core.create_namespaced_config_map("no-such", {"metadata": {"name": "a"}})
    with pytest.raises(ApiException) as selector:
        core.list_namespaced_config_map(namespace, label_selector="a in (")
    core.create_namespaced_pod(namespace, POD)
    with pytest.raises(ApiException) as twice:
        core.create_namespaced_pod(namespace, POD)

    assert refused(invalid) == (422, "Invalid")
    assert refused(nowhere) == (404, "NotFound")
    assert refused(selector) == (400, "BadRequest")
    assert refused(twice) == (409, "AlreadyExists")


def test_dry_run_writes_nothing(core: Any, namespace: str) -> None:
    body = {"metadata": {"generateName": "a-"}}
    shown = core.create_namespaced_config_map(namespace, body, dry_run="All")

    assert shown.metadata.name.startswith("a-")
    assert shown.metadata.resource_version is None
    assert core.list_namespaced_config_map(namespace).items == []


@pytest.mark.parametrize(
    ("version", "spec"),
    [("V1", CLAIM_SPEC), ("V1beta2", CLAIM_SPEC), ("V1beta1", OLD_CLAIM_SPEC)],
)
def test_claims_in_every_version(
    api: ApiClient, namespace: str, version: str, spec: dict[str, Any]
) -> None:
    resources = getattr(client, f"Resource{version}Api")(api)
    claim = {"metadata": {"name": "c"}, "spec": spec}
    created = resources.create_namespaced_resource_claim(namespace, claim)
    assert created.api_version == f"resource.k8s.io/{version.lower()}"

    created.metadata.finalizers = ["resource.kubernetes.io/delete-protection"]
    held = resources.replace_namespaced_resource_claim("c", namespace, created)
    held.status = {
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}],
        "allocation": {
            "devices": {
                "results": [
                    {
                        "request": "gpu",
                        "driver": "gpu.example.com",
                        "pool": namespace,
                        "device": version.lower(),
                    }
                ]
            }
        },
    }
    allocated = resources.replace_namespaced_resource_claim_status("c", namespace, held)
    assert allocated.status.allocation.devices.results[0].device == version.lower()
    assert allocated.spec == created.spec
    patch = {"status": {"reservedFor": [{"resource": "pods", "name": "q", "uid": "2"}]}}
    shared = resources.patch_namespaced_resource_claim_status("c", namespace, patch)
    assert {consumer.uid for consumer in shared.status.reserved_for} == {"1", "2"}
    assert resources.read_namespaced_resource_claim("c", namespace) == shared

    leaving = resources.delete_namespaced_resource_claim("c", namespace)
    assert leaving.metadata.deletion_timestamp is not None


def test_slices_classes_and_templates(api: ApiClient, namespace: str) -> None:
    resources: Any = client.ResourceV1Api(api)
    resources.create_device_class(
        {
            "metadata": {"name": namespace},
            "spec": {"selectors": [{"cel": {"expression": "device.driver == 'a.b'"}}]},
        }
    )
    template = {"metadata": {"name": "t"}, "spec": {"spec": CLAIM_SPEC}}
    resources.create_namespaced_resource_claim_template(namespace, template)
    created = resources.create_resource_slice({"metadata": {"name": namespace}, "spec": SLICE_SPEC})
    selector = "spec.driver=gpu.example.com,spec.nodeName=node-1,spec.pool.name=node-1"
    found = resources.list_resource_slice(field_selector=selector)
    old: Any = client.ResourceV1beta1Api(api)
    seen = old.read_resource_slice(namespace)
    created.spec.pool.generation = 2
    newer = resources.replace_resource_slice(namespace, created)

    assert [item.metadata.name for item in found.items] == [namespace]
    assert seen.spec.devices[0].basic.capacity["memory"].value == "40Gi"
    assert newer.metadata.generation == 2
    resources.delete_resource_slice(namespace)
    resources.delete_device_class(namespace)


def test_pool_status_requests_and_taint_rules(api: ApiClient, namespace: str) -> None:
    resources: Any = client.ResourceV1alpha3Api(api)
    request = {"metadata": {"name": namespace}, "spec": {"driver": "gpu.example.com"}}
    resources.create_resource_pool_status_request(request)
    rule = {
        "metadata": {"name": namespace},
        "spec": {
            "deviceSelector": {"driver": "gpu.example.com"},
            "taint": {"key": "gpu.example.com/broken", "effect": "NoSchedule"},
        },
    }
    resources.create_device_taint_rule(rule)

    read = resources.read_resource_pool_status_request(namespace)
    seen: Any = client.ResourceV1Api(api).read_device_taint_rule(namespace)

    assert read.spec.driver == "gpu.example.com"
    assert seen.spec.taint.time_added is not None
    resources.delete_resource_pool_status_request(namespace)
    resources.delete_device_taint_rule(namespace)


# --- watches ---


def changes(core: Any, namespace: str) -> None:
    """Create, change and delete one config map."""
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "w"}})
    core.patch_namespaced_config_map("w", namespace, {"data": {"a": "b"}})
    core.delete_namespaced_config_map("w", namespace)


def test_watch_resumes_from_any_version(core: Any, namespace: str) -> None:
    before = core.list_namespaced_config_map(namespace).metadata.resource_version
    changes(core, namespace)

    def seen(version: str, count: int | None = None) -> list[tuple[str, str]]:
        stream = watch.Watch().stream(
            core.list_namespaced_config_map,
            namespace,
            resource_version=version,
            timeout_seconds=1,
        )
        return [
            (event["type"], event["object"].metadata.resource_version)
            for event in itertools.islice(stream, count)
        ]

    everything = seen(before)
    assert [type_ for type_, _ in everything] == ["ADDED", "MODIFIED", "DELETED"]
    for position, (_, version) in enumerate(everything, start=1):
        rest = everything[position:]
        assert seen(version, len(rest)) == rest


def test_watch_without_a_version_begins_with_what_is_there(core: Any, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "a"}})

    stream = watch.Watch().stream(core.list_namespaced_config_map, namespace, timeout_seconds=1)

    assert [(e["type"], e["object"].metadata.name) for e in stream] == [("ADDED", "a")]


def test_watch_that_asks_for_too_much(core: Any, namespace: str) -> None:
    stream = watch.Watch().stream(
        core.list_namespaced_config_map, namespace, resource_version="nonsense"
    )
    with pytest.raises(ApiException) as problem:
        next(iter(stream))

    assert problem.value.status == 400


def test_informer_follows(core: Any, namespace: str) -> None:
    seen: list[tuple[str, str]] = []
    done = threading.Event()

    def note(type_: str) -> Any:
        def handler(obj: Any) -> None:
            seen.append((type_, obj.metadata.name))
            if type_ == "DELETED":
                done.set()

        return handler

    core.create_namespaced_config_map(namespace, {"metadata": {"name": "old"}})
    informer = SharedInformer(core.list_namespaced_config_map, namespace=namespace)
    for type_ in ("ADDED", "MODIFIED", "DELETED"):
        informer.add_event_handler(type_, note(type_))
    informer.start()
    try:
        changes(core, namespace)
        assert done.wait(10), seen
    finally:
        informer.stop()

    assert seen[0] == ("ADDED", "old")
    assert seen[-1] == ("DELETED", "w")
