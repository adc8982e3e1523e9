"""Plays admission cases on an API server, for a real one to be recorded and for ours to be compared.

    python -m tests.conformance.admission_steps https://127.0.0.1:6443 TOKEN > answers.json

plays them on a fresh kube-apiserver v1.38 with `--disable-admission-plugins=ServiceAccount` and all DRA feature gates on.
`gzip -9n` of what it prints is `data/admission-recorded.json.gz`.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote, urlparse

from tests.conformance.admission_bad_objects import BAD_OBJECTS, path_of
from tests.conformance.admission_cases import POLICIES, Body, Case, Request, config_map
from tests.conformance.admission_mutation_cases import MUTATIONS, WEBHOOKS
from tests.conformance.admission_webhook import WebhookServer, webhook_server

CASES = [*POLICIES, *MUTATIONS, *WEBHOOKS, *BAD_OBJECTS]
SETTLE_SECONDS = 8.0
"""The time after which a real API server surely knows its policies."""

RBAC = "rbac.authorization.k8s.io"
SETUP = [
    Request("POST", f"/apis/{RBAC}/v1/clusterroles", {"kind": "ClusterRole", "apiVersion": f"{RBAC}/v1", "metadata": {"name": "admission-cases"}, "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]}),
    Request("POST", f"/apis/{RBAC}/v1/clusterrolebindings", {"kind": "ClusterRoleBinding", "apiVersion": f"{RBAC}/v1", "metadata": {"name": "admission-cases"}, "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "admission-cases"}, "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "alice"}]}),
    Request("POST", "/api/v1/namespaces/default/configmaps", config_map("vap-elsewhere")),
]  # fmt: skip


class Answer(NamedTuple):
    """As much of an answer as is compared."""

    case: str
    code: int
    body: Any
    warnings: list[str]
    review: Any


Ask = Callable[[Request], Awaitable[tuple[int, Any, list[str]]]]


def headers_of(request: Request, token: str) -> Iterator[tuple[str, str]]:
    yield "authorization", f"Bearer {token}"
    yield "content-type", request.content_type
    yield "accept", "application/json"
    yield "user-agent", "cases"
    if request.user:
        yield "impersonate-user", request.user
    for group in request.groups:
        yield "impersonate-group", group
    for key, value in request.extra:
        yield f"impersonate-extra-{quote(key, safe='')}", value


async def play(ask: Ask, hooks: WebhookServer, settle: Callable[[], None]) -> list[Answer]:
    """The answers to all requests of all cases."""
    answers: list[Answer] = []
    for request in SETUP:
        await _must(ask, request)
    for case in CASES:
        if case.config or "{ns}" in str(case.requests):
            await _must(
                ask,
                Request(
                    "POST",
                    "/api/v1/namespaces",
                    {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": case.name}},
                ),
            )
        for request in case.before:
            await _must(ask, placed(request, case, hooks))
    for case in CASES:
        for config in case.config:
            code, body, warnings = await ask(
                placed(Request("POST", path_of(config), config), case, hooks)
            )
            answers.append(Answer(case.name, code, _plain(body, hooks), _own(warnings), None))
    settle()
    for case in CASES:
        for request in case.requests:
            hooks.take_review()
            code, body, warnings = await ask(placed(request, case, hooks))
            seen = _plain(body, hooks) if isinstance(body, dict) else body
            review = _review(hooks.take_review()) if len(case.config) == 1 else None
            answers.append(Answer(case.name, code, seen, _own(warnings), review))
    return answers


async def _must(ask: Ask, request: Request) -> None:
    code, body, _ = await ask(request)
    if code not in (200, 201):
        raise AssertionError(f"{request}: {code} {body}")


def placed(request: Request, case: Case, hooks: WebhookServer) -> Request:
    """The request in the namespace of its case, with the webhook server's address and CA."""
    body = request.body
    if body is not None:
        text = json.dumps(body).replace("{ns}", case.name)
        text = text.replace('"URL', f'"{hooks.url}').replace('"CA"', f'"{hooks.ca}"')
        body = json.loads(text)
    return request._replace(path=request.path.replace("{ns}", case.name), body=body)


_VOLATILE = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
    "selfLink",
    "deletionTimestamp",
)


def _plain(body: Body, hooks: WebhookServer) -> Any:
    """An answer without what differs from run to run."""
    text = json.dumps(body).replace(hooks.ca, "CA")
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID", text)
    text = re.sub(r"127\.0\.0\.1:\d{2,}", "127.0.0.1:PORT", text)
    text = re.sub(r"127\.0\.0\.1:PORT->127\.0\.0\.1:PORT", "ADDRESSES", text)
    text = re.sub(r'\\"g-[a-z0-9]{5}\\"', r'\\"g-\\"', text)
    text = re.sub(r"\bg-[a-z0-9]{5}\b", "g-", text)
    made = json.loads(text)
    kind = made.get("kind")
    if kind == "Status":
        (made.get("details") or {}).pop("uid", None)
        return made
    return _without(made, kind)


def _without(made: Body, kind: str) -> Body:
    metadata = made.get("metadata") or {}
    for name in _VOLATILE:
        metadata.pop(name, None)
    if kind == "TokenRequest":
        made.pop("status", None)
    if kind == "Pod":
        spec = made["spec"]
        kept = (
            "containers",
            "initContainers",
            "tolerations",
            "terminationGracePeriodSeconds",
            "priorityClassName",
        )
        made["spec"] = {name: spec[name] for name in kept if name in spec}
        made["spec"]["containers"] = [
            {k: v for k, v in c.items() if k in ("name", "image", "env")}
            for c in spec["containers"]
        ]
        made.pop("status", None)
    if kind.endswith("List"):
        return {"kind": kind, "items": [_without(item, "") for item in made["items"]]}
    if kind == "Scale":
        made.pop("status", None)
    return made


def _own(warnings: list[str]) -> list[str]:
    """Without those about versions that will be removed, which we do not send."""
    return [text for text in warnings if "is deprecated in" not in text]


def _review(seen: Any) -> Any:
    """The review that a webhook got, without what differs from run to run."""
    if seen is None:
        return None
    request = seen["review"]["request"]
    request.pop("uid")
    request["userInfo"].pop("uid", None)
    for name in ("object", "oldObject"):
        metadata = (request.get(name) or {}).get("metadata") or {}
        for volatile in _VOLATILE:
            if volatile in metadata:
                metadata[volatile] = "..."
        metadata.pop("managedFields", None)
    return seen


def main() -> None:
    address = urlparse(sys.argv[1])
    context = ssl._create_unverified_context()  # noqa: S323 - a server on loopback

    async def ask(request: Request) -> tuple[int, Any, list[str]]:
        connection = http.client.HTTPSConnection(
            address.hostname or "", address.port, context=context, timeout=60
        )
        body = None if request.body is None else json.dumps(request.body)
        connection.putrequest(request.method, request.path, skip_accept_encoding=True)
        for name, value in headers_of(request, sys.argv[2]):
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("content-length", str(len(body.encode())))
        connection.endheaders(body.encode() if body is not None else None)
        response = connection.getresponse()
        content = response.read()
        warnings = response.headers.get_all("warning") or []
        connection.close()
        try:
            return response.status, json.loads(content), warnings
        except ValueError:
            return response.status, content.decode(), warnings

    import asyncio

    with webhook_server() as hooks:
        answers = asyncio.run(play(ask, hooks, lambda: time.sleep(SETTLE_SECONDS)))
    json.dump(answers, sys.stdout, indent=0)


if __name__ == "__main__":
    main()
