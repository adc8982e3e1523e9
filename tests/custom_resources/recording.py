"""Sends the scenarios to a kube-apiserver and keeps its answers.

`python -m tests.custom_resources.recording KUBECONFIG [SCENARIO...]`; scenarios that are not named keep their answers.
"""

from __future__ import annotations

import gzip
import http.client
import json
import re
import ssl
import sys
import time
from pathlib import Path
from typing import Any

from tests.custom_resources.scenarios import SCENARIOS
from tests.custom_resources.steps import CRDS, Step

RECORDED = Path(__file__).parent / "data" / "kube-apiserver-1.38.json.gz"
AGENT = "tester/1.0 (linux)"
WAIT_SECONDS = 20


def encoded(body: Any) -> bytes | None:
    if body is None or isinstance(body, str):
        return None if body is None else body.encode()
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
        self._headers = {"Authorization": f"Bearer {token[1]}", "User-Agent": AGENT}

    def ask(self, step: Step, group: str, namespace: str) -> dict[str, Any]:
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            answer = self._ask(step, group, namespace)
            if not step.until or step.until in answer["text"] or time.monotonic() > deadline:
                answer["met"] = not step.until or step.until in answer.pop("text")
                answer.pop("text", None)
                return answer
            time.sleep(0.2)

    def _ask(self, step: Step, group: str, namespace: str) -> dict[str, Any]:
        headers = {**self._headers, "Content-Type": step.type, "Accept": step.accept}
        path = step.path.replace("GRP", group).replace("/NS/", f"/{namespace}/")
        body = encoded(step.body)
        if body is not None:
            body = body.replace(b"GRP", group.encode()).replace(b'"NS"', f'"{namespace}"'.encode())
        try:
            self._http.request(step.method, path, body, headers)
            answer = self._http.getresponse()
        except http.client.HTTPException as error:  # it panics on a few requests
            sys.stderr.write(f"{step.method} {path}: {error!r}\n")
            self._http.close()
            return {"code": 0, "body": "", "warnings": [], "text": step.until}
        text = answer.read().decode(errors="replace").replace(group, "GRP")
        text = text.replace(namespace, "NS")
        warnings = [each.replace(group, "GRP") for each in answer.headers.get_all("Warning") or []]
        try:
            document = json.loads(text)
        except ValueError:
            document = text
        return {"code": answer.status, "body": document, "warnings": warnings, "text": text}


def record(kubeconfig: Path, names: list[str]) -> dict[str, list[dict[str, Any]]]:
    connection = Connection(kubeconfig)
    found = {}
    for number, (name, steps) in enumerate(SCENARIOS.items()):
        if names and name not in names:
            continue
        group, namespace = f"g{number}.example.com", f"custom-{number}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        connection.ask(Step("POST", "/api/v1/namespaces", body), group, namespace)
        found[name] = [connection.ask(step, group, namespace) for step in steps]
        for answer, step in zip(found[name], steps, strict=True):
            if not answer["met"]:
                sys.stderr.write(f"{name}: {step.method} {step.path}: no {step.until}\n")
        everything = connection.ask(Step("GET", CRDS), group, namespace)["body"]["items"]
        for each in everything:
            connection.ask(Step("DELETE", f"{CRDS}/{each['metadata']['name']}"), group, namespace)
    return found


if __name__ == "__main__":
    recorded = json.loads(gzip.decompress(RECORDED.read_bytes())) if RECORDED.exists() else {}
    recorded |= record(Path(sys.argv[1]), sys.argv[2:])
    answers = json.dumps({name: recorded[name] for name in SCENARIOS}, separators=(",", ":"))
    RECORDED.parent.mkdir(exist_ok=True)
    RECORDED.write_bytes(gzip.compress(answers.encode(), mtime=0))
