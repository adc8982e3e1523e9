"""Asks a kube-apiserver about definitions whose conversion webhook answers badly, and keeps what it says.

`python -m tests.custom_resources.conversion_recording KUBECONFIG`
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

from tests.custom_resources.conversion_webhook import (
    CHANGES,
    RESULTS,
    STEPS,
    ConversionServer,
    conversion_server,
    definition,
    in_v1,
    widgets,
)
from tests.custom_resources.recording import Connection
from tests.custom_resources.steps import CRDS, Step

RECORDED = Path(__file__).parent / "data" / "conversion-webhooks-1.38.json"
PATHS = (
    "/convert", *CHANGES, *RESULTS, "/not-json", "/empty", "/error-500", "/error-404", "/status",
    "/other-review", "/unknown-review", "/no-response", "/other-request", "/too-few", "/too-many",
)  # fmt: skip
BUNDLES = {"not-pem": "bm90IHBlbQ==", "no-base64": "!!", "empty": ""}
CONVERSIONS: dict[str, dict[str, Any]] = {
    **{
        f"bundle-{name}": {"clientConfig": {"url": "https://h/x", "caBundle": bundle}}
        for name, bundle in BUNDLES.items()
    },
    "url-and-service": {
        "clientConfig": {"url": "https://h/x", "service": {"namespace": "n", "name": "s"}}
    },
    "neither": {"clientConfig": {}},
    "no-client": {"clientConfig": None},
    "url-no-host": {"clientConfig": {"url": "https:///x"}},
    "url-user": {"clientConfig": {"url": "https://me@h/x"}},
    "url-fragment": {"clientConfig": {"url": "https://h/x#f"}},
    "url-query": {"clientConfig": {"url": "https://h/x?q=1"}},
    "url-bad": {"clientConfig": {"url": "https://h/%zz"}},
    "url-empty": {"clientConfig": {"url": ""}},
    "service-empty": {"clientConfig": {"service": {}}},
    "service-path": {
        "clientConfig": {"service": {"namespace": "n", "name": "s", "path": "no-slash"}}
    },
    "service-path-empty-segment": {
        "clientConfig": {"service": {"namespace": "n", "name": "s", "path": "/a//b"}}
    },
    "service-path-bad": {
        "clientConfig": {"service": {"namespace": "n", "name": "s", "path": "/A_b"}}
    },
    "service-port": {"clientConfig": {"service": {"namespace": "n", "name": "s", "port": 70000}}},
    "no-versions": {"conversionReviewVersions": []},
    "unknown-versions": {"conversionReviewVersions": ["v7"]},
    "double-versions": {"conversionReviewVersions": ["v1", "v1"]},
    "bad-versions": {"conversionReviewVersions": ["v1", "V 1"]},
    "beta-versions": {"conversionReviewVersions": ["v7", "v1beta1"]},
}
"""Changes of `spec.conversion.webhook`."""


def validated(name: str) -> dict[str, Any]:
    client = {"service": {"namespace": "n", "name": "s"}}
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client} | CONVERSIONS[name]
    return definition({"strategy": "Webhook", "webhook": webhook})


def plain(answer: Any) -> Any:
    """An answer without what is different every time."""
    text = json.dumps(answer)
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text)
    text = re.sub(r'"resourceVersion": "\d+"', '"resourceVersion": "RV"', text)
    return json.loads(text)


def told(answer: dict[str, Any]) -> Any:
    body = answer["body"]
    shown = body.get("message") or {k: body[k] for k in ("items", "metadata", "spec") if k in body}
    return plain([answer["code"], shown])


def record(kubeconfig: Path, hook: ConversionServer) -> dict[str, Any]:
    connection = Connection(kubeconfig)
    found: dict[str, Any] = {"validation": {}, "answers": {}}
    for name in CONVERSIONS:
        query = Step("POST", f"{CRDS}?dryRun=All", validated(name))
        answer = connection.ask(query, "v.example.com", "default")
        found["validation"][name] = [answer["code"], answer["body"].get("message", "")]
    for number, path in enumerate(PATHS):
        group = f"c{number}.example.com"
        namespace = f"conversion-{number}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        connection.ask(Step("POST", "/api/v1/namespaces", body), group, namespace)
        connection.ask(Step("POST", CRDS, definition(hook.conversion(path))), group, namespace)
        connection.ask(Step("GET", widgets("v1"), until='"items":'), group, namespace)
        time.sleep(0.3)
        first = connection.ask(Step("POST", widgets("v1"), in_v1()), group, namespace)
        assert first["code"] == 201, first
        answers = found["answers"].setdefault(path, {})
        for name, step in STEPS.items():
            hook.reviews.clear()
            answers[name] = told(connection.ask(step, group, namespace))
            if path == "/convert" and name == "get":
                review = json.dumps(plain(hook.reviews[0]))
                found["review"] = json.loads(review.replace(group, "GRP").replace(namespace, "NS"))
    return found


if __name__ == "__main__":
    with conversion_server() as hook:
        answers = json.dumps(record(Path(sys.argv[1]), hook), indent=1)
    RECORDED.parent.mkdir(exist_ok=True)
    RECORDED.write_text(answers + "\n", encoding="utf-8")
