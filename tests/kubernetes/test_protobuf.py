"""Protobuf with the real thing: kube-apiserver's bytes and ours, our components on it, Go's programs on ours."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from allot.api.protobuf.envelope import (
    MEDIA_TYPE,
    decode_document,
    encode_document,
    open_envelope,
)
from allot.testing.http_client import Address
from tests.attacks.clusters import KUBERNETES, Cluster, made_cluster

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        KUBERNETES not in os.environ, reason=f"{KUBERNETES} names no directory with its programs"
    ),
]
OBJECTS = Path(__file__).parents[1] / "conformance" / "data" / "protobuf-objects.yaml"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/opaque/resourceclaims"
PODS = "/api/v1/namespaces/opaque/pods"
PARAMETERS = ('{ "a":1}', '{"b":1,"a":2}', '{"a":"<&>"}')
WAIT_SECONDS = 120.0


@pytest.fixture(scope="module")
def kubernetes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """kube-apiserver, with our scheduler, controllers and nodes."""
    with made_cluster("kubernetes", tmp_path_factory.mktemp("kubernetes")) as cluster:
        cluster.start()
        yield cluster


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with made_cluster("up", tmp_path_factory.mktemp("ours")) as cluster:
        cluster.start()
        yield cluster


def ask(
    address: Address,
    method: str,
    path: str,
    body: bytes | None = None,
    accept: str = "application/json",
) -> tuple[int, bytes]:
    connection = http.client.HTTPSConnection(
        address.host, address.port, timeout=60, context=address.context
    )
    headers = {"Authorization": f"Bearer {address.token}", "Accept": accept}
    if body is not None:
        headers["Content-Type"] = "application/json"
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def eventually(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"timed out waiting for {what}"
        time.sleep(0.2)


def plain(value: Any) -> Any:
    """YAML's values as JSON has them."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def collection(address: Address, document: dict[str, Any]) -> str | None:
    """The path under which objects of this kind are created; None if its version is not served."""
    api_version = document["apiVersion"]
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    code, found_resources = ask(address, "GET", root)
    if code != 200:
        return None
    served = json.loads(found_resources)["resources"]
    (found,) = (
        each for each in served if each["kind"] == document["kind"] and "/" not in each["name"]
    )
    namespace = document["metadata"].get("namespace")
    return (
        f"{root}/namespaces/{namespace}/{found['name']}" if namespace else f"{root}/{found['name']}"
    )


def test_every_kind_is_written_as_kube_apiserver_writes_it(kubernetes: Cluster) -> None:
    address = kubernetes.address
    compared = 0
    for loaded in yaml.safe_load_all(OBJECTS.read_text()):
        document = plain(loaded)
        path = collection(address, document)
        if path is None:
            continue
        body = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
        if ask(address, "POST", path, body)[0] >= 400:
            continue  # such as pods of a service account that no controller has made
        path = f"{path}/{document['metadata']['name']}"
        for _ in range(5):
            shown = json.loads(ask(address, "GET", path)[1])
            message = ask(address, "GET", path, accept=MEDIA_TYPE)[1]
            if (
                shown["metadata"]["resourceVersion"]
                == (decode_document(message)["metadata"]["resourceVersion"])
            ):
                break  # not changed in between
        gvk = open_envelope(message).gvk
        assert encode_document(shown, gvk) == message, path
        assert encode_document(decode_document(message), gvk) == message, path
        compared += 1
    assert compared > 40


def test_claims_with_any_opaque_parameters_are_allocated_and_released(kubernetes: Cluster) -> None:
    address = kubernetes.address
    spec = (
        '{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"ordinary.example.com"}}],'
        '"config":[{"opaque":{"driver":"ordinary.example.com","parameters":%s}}]}}'
    )
    namespace = b'{"metadata":{"name":"opaque"}}'
    assert ask(address, "POST", "/api/v1/namespaces", namespace)[0] == 201
    names = []
    for number, parameters in enumerate(PARAMETERS):
        name = f"opaque-{number}"
        claim = f'{{"metadata":{{"name":"{name}"}},"spec":{spec % parameters}}}'
        assert ask(address, "POST", CLAIMS, claim.encode())[0] == 201
        template = f'{{"metadata":{{"name":"{name}"}},"spec":{{"spec":{spec % parameters}}}}}'
        templates = CLAIMS.replace("resourceclaims", "resourceclaimtemplates")
        assert ask(address, "POST", templates, template.encode())[0] == 201
        for suffix, reference in (
            ("claim", "resourceClaimName"),
            ("template", "resourceClaimTemplateName"),
        ):
            names.append(f"{name}-{suffix}")
            pod = {
                "metadata": {"name": names[-1]},
                "spec": {
                    "containers": [{"name": "a", "image": "a"}],
                    "resourceClaims": [{"name": "x", reference: name}],
                },
            }
            code, answer = ask(address, "POST", PODS, json.dumps(pod).encode())
            assert code == 201, answer

    def phases() -> set[str]:
        pods = json.loads(ask(address, "GET", PODS)[1])["items"]
        return {pod["status"]["phase"] for pod in pods if pod["metadata"]["name"] in names}

    eventually(lambda: phases() == {"Running"}, "all pods to run")
    claims = json.loads(ask(address, "GET", CLAIMS)[1])["items"]
    assert all(claim["status"].get("reservedFor") for claim in claims)
    for name in names:
        ask(address, "DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")

    def released() -> bool:
        left = json.loads(ask(address, "GET", CLAIMS)[1])["items"]
        return len(left) == len(PARAMETERS) and not any(
            claim["metadata"].get("finalizers") or claim["status"].get("allocation")
            for claim in left
        )

    eventually(released, "all claims to be released")


def program(name: str, *arguments: str, cluster: Cluster) -> list[str]:
    return [
        str(Path(os.environ[KUBERNETES]) / name),
        "--kubeconfig",
        str(cluster.kubeconfig),
        *arguments,
    ]


CREATIONS = (
    "namespace kubectl-ns", "deployment d --image=a", "quota q --hard=pods=100", "configmap c --from-literal=a=b",
    "sa s", "token s", "job j --image=a", "clusterrole r --verb=get --resource=pods",
    "rolebinding b --clusterrole=r --user=u", "pdb p --selector=a=b --min-available=1",
    "service clusterip svc --tcp=80", "secret generic s --from-literal=a=b",
    "cronjob cj --image=a --schedule=@daily", "priorityclass pc --value=5",
)  # fmt: skip


@pytest.mark.parametrize("creation", CREATIONS)
def test_kubectl_creates_in_protobuf(ours: Cluster, creation: str) -> None:
    command = program("kubectl", "create", *creation.split(), cluster=ours)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_a_driver_in_go_publishes_and_repairs_its_slices(ours: Cluster, tmp_path: Path) -> None:
    address = ours.address
    node = {"metadata": {"name": "go-node"}}
    assert ask(address, "POST", "/api/v1/nodes", json.dumps(node).encode())[0] == 201
    for name in ("data/test-driver.cdi.k8s.io", "registration", "cdi"):
        (tmp_path / name).mkdir(parents=True)
    command = program(
        "dra-test-driver", "kubelet-plugin", "--node-name", "go-node",
        "--datadir", str(tmp_path / "data"), "--plugin-registration-path", str(tmp_path / "registration"),
        "--cdi-dir", str(tmp_path / "cdi"), cluster=ours,
    )  # fmt: skip

    def slices() -> list[dict[str, Any]]:
        path = "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3Dgo-node"
        found: list[dict[str, Any]] = json.loads(ask(address, "GET", path)[1])["items"]
        return found

    with (tmp_path / "log").open("wb") as log:
        driver = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        eventually(lambda: len(slices()) == 1, "the driver to publish")
        (published,) = slices()
        assert published["spec"]["devices"]
        changed = published | {"spec": published["spec"] | {"devices": []}}
        path = f"/apis/resource.k8s.io/v1/resourceslices/{published['metadata']['name']}"
        assert ask(address, "PUT", path, json.dumps(changed).encode())[0] == 200
        expected = published["spec"]["devices"]
        eventually(
            lambda: any(each["spec"].get("devices") == expected for each in slices()),
            "the driver to repair its slice",
        )
    finally:
        driver.kill()
        driver.wait(60)
