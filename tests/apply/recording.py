"""Sends the scenarios to a kube-apiserver and keeps its answers: `python -m tests.apply.recording KUBECONFIG`."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import ssl
import sys
from pathlib import Path
from typing import Any

from tests.apply.scenarios import SCENARIOS, Step

RECORDED = Path(__file__).parent / "data" / "kube-apiserver-1.38.json.gz"


def encoded(body: Any) -> bytes | None:
    """A body as it is sent. Opaque JSON is compared by its bytes, so that it is compact."""
    if body is None:
        return None
    if isinstance(body, str):
        return body.encode()
    return json.dumps(body, separators=(",", ":")).encode()


class Connection:
    """A kube-apiserver on this machine, with a token."""

    def __init__(self, kubeconfig: Path) -> None:
        text = kubeconfig.read_text(encoding="utf-8")
        address = re.search(r"https://([\d.]+):(\d+)", text)
        token = re.search(r"token: (\S+?)\}", text)
        assert address is not None
        assert token is not None
        context = ssl._create_unverified_context()  # noqa: S323 - a server started for the recording
        self._http = http.client.HTTPSConnection(address[1], int(address[2]), context=context)
        self._headers = {"Authorization": f"Bearer {token[1]}", "Accept": "application/json"}

    def ask(self, step: Step, namespace: str) -> dict[str, Any]:
        headers = {**self._headers, "Content-Type": step.type, "User-Agent": step.agent}
        path = step.path.replace("/NS/", f"/{namespace}/")
        body = encoded(step.body)
        if body is not None:
            body = body.replace(b'"NS"', f'"{namespace}"'.encode())
        self._http.request(step.method, path, body, headers)
        answer = self._http.getresponse()
        text = answer.read().decode().replace(namespace, "NS")
        warnings = answer.headers.get_all("Warning") or []
        try:
            document = json.loads(text)
        except ValueError:
            document = text
        return {"code": answer.status, "body": document, "warnings": warnings}


def record(kubeconfig: Path) -> dict[str, list[dict[str, Any]]]:
    connection = Connection(kubeconfig)
    found = {}
    for number, (name, steps) in enumerate(SCENARIOS.items()):
        namespace = f"apply-{number}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        connection.ask(Step("POST", "/api/v1/namespaces", body), namespace)
        found[name] = [connection.ask(step, namespace) for step in steps]
    return found


if __name__ == "__main__":
    answers = json.dumps(record(Path(sys.argv[1])), separators=(",", ":"))
    RECORDED.parent.mkdir(exist_ok=True)
    RECORDED.write_bytes(gzip.compress(answers.encode(), mtime=0))
