"""The scheduler's own pages: health, metrics, and why a pod is pending (for those who have the token)."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec
from prometheus_client import generate_latest

from allot.api.identities import ObjectKey
from allot.scheduler.assembly import SchedulerProcess
from allot.scheduler.state.pods import PodInfo

Message = MutableMapping[str, Any]
Answer = tuple[int, str, bytes]

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"


class Pages:
    """An ASGI application. Without a token nobody may see `/debug`."""

    def __init__(self, process: SchedulerProcess, token: str = "") -> None:
        self._process = process
        self._token = token

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        if scope["type"] != "http":
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        code, content_type, body = self.answer(
            scope["method"], scope["path"], headers.get(b"authorization", b"").decode("latin-1")
        )
        await send(
            {
                "type": "http.response.start",
                "status": code,
                "headers": [
                    (b"content-type", content_type.encode()),
                    (b"content-length", str(len(body)).encode()),
                ],
            }
        )
        await send({"type": "http.response.body", "body": body})

    def answer(self, method: str, path: str, authorization: str = "") -> Answer:
        """Code, content type and body."""
        if method not in ("GET", "HEAD"):
            return 405, TEXT, b"only GET is possible\n"
        match [part for part in path.split("/") if part]:
            case ["healthz" | "livez"]:
                return 200, TEXT, b"ok"
            case ["readyz"]:
                if self._process.informers.has_synced:
                    return 200, TEXT, b"ok"
                return 500, TEXT, b"the cluster is still being read\n"
            case ["metrics"]:
                content = generate_latest(self._process.metrics.registry)
                return 200, "text/plain; version=0.0.4; charset=utf-8", content
            case ["debug", "explain", namespace, name]:
                if not self._may_debug(authorization):
                    return 403, TEXT, b"this page needs the debug token\n"
                return self._explained(ObjectKey(namespace, name))
        return 404, TEXT, b"404 page not found\n"

    def _may_debug(self, authorization: str) -> bool:
        expected = f"Bearer {self._token}"
        return bool(self._token) and hmac.compare_digest(authorization.encode(), expected.encode())

    def _explained(self, key: ObjectKey) -> Answer:
        pod = self._find(key)
        if pod is None:
            return 404, TEXT, f"pod {key} does not wait for this scheduler\n".encode()
        profile = self._process.profiles[pod.scheduler_name]
        explanation = self._process.explainer.explain(profile, pod)
        return 200, JSON, msgspec.json.encode(explanation.as_json())

    def _find(self, key: ObjectKey) -> PodInfo | None:
        return next(
            (queued.pod for queued in self._process.queue.pods() if queued.pod.key == key), None
        )
