"""An operator with a CustomResourceDefinition of its own, written with kopf, works against the server."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.api_server import RunningServer

pytest.importorskip("kopf")

OPERATOR = Path(__file__).with_name("operator_of_greetings.py")
WAIT_SECONDS = 120
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "greetings.greetings.example.com"},
    "spec": {
        "group": "greetings.example.com",
        "scope": "Namespaced",
        "names": {"plural": "greetings", "kind": "Greeting", "shortNames": ["gr"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {
                                    "name": {"type": "string"},
                                    "word": {"type": "string", "default": "Hello"},
                                },
                            },
                            "status": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            },
                        },
                    }
                },
            }
        ],
    },
}
GREETINGS = "/apis/greetings.example.com/v1/namespaces/{}/greetings"


def wait_for(what: Callable[[], Any], problem: Callable[[], str]) -> Any:
    deadline = time.monotonic() + WAIT_SECONDS
    while not (found := what()):
        assert time.monotonic() < deadline, problem()
        time.sleep(0.05)
    return found


@pytest.fixture
def operator(server: RunningServer, namespace: str, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """The operator, running; gives its log."""
    answer = server.request(
        "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION
    )
    assert answer.code in (201, 409), answer
    path = GREETINGS.format(namespace)
    wait_for(lambda: server.request("GET", path).code == 200, server.log)
    log = tmp_path / "operator.log"
    command = [sys.executable, "-m", "kopf", "run", str(OPERATOR), "-n", namespace, "--verbose"]
    environment = os.environ | {"KUBECONFIG": str(server.kubeconfig)}
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
    try:
        yield lambda: log.read_text(errors="replace")
    finally:
        process.terminate()
        process.wait(timeout=60)


@pytest.mark.timeout(300)
def test_an_operator(server: RunningServer, namespace: str, operator: Callable[[], str]) -> None:
    path = GREETINGS.format(namespace)
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    server.request(
        "POST",
        path,
        {
            "apiVersion": "greetings.example.com/v1",
            "kind": "Greeting",
            "metadata": {"name": "first"},
            "spec": {"name": "World"},
        },
    )

    def has_status(handler: str) -> Any:
        found = server.request("GET", f"{path}/first").json.get("status", {})
        return found.get(handler)

    made = wait_for(lambda: has_status("create"), operator)
    text = server.request("GET", f"{maps}/first-text").json
    server.request(
        "PATCH", f"{path}/first", {"spec": {"word": "Bye"}}, "application/merge-patch+json"
    )
    changed = wait_for(lambda: has_status("update/spec"), operator)
    server.request("DELETE", f"{path}/first")
    wait_for(lambda: server.request("GET", f"{path}/first").code == 404, operator)
    note = server.request("GET", f"{maps}/first-gone")

    assert made == {"text": "Hello, World!"}
    assert text["data"] == {"text": "Hello, World!"}
    assert text["metadata"]["ownerReferences"][0]["kind"] == "Greeting"
    assert changed == {"text": "Bye, World!"}
    assert note.code == 200
