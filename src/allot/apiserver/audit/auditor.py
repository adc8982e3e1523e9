"""Writes audit events for requests, in Kubernetes' format."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from allot.api.protobuf.envelope import MAGIC, decode_document
from allot.api.protobuf.wire import ProtobufError
from allot.apiserver.audit.policy import AuditPolicy, Level
from allot.apiserver.auth.access_reviews import user_info
from allot.apiserver.auth.authentication import User
from allot.apiserver.auth.authorization import Attributes, Decision

FLUSH_SECONDS: Final = 0.05
"""The time for which lines are buffered before they are written."""


class Sink(Protocol):
    """The destination of lines."""

    def write(self, lines: bytes) -> None: ...

    def close(self) -> None: ...


class Audited(msgspec.Struct):
    """The facts of a request, collected while it is served."""

    uri: str
    received: datetime
    audit_id: str
    source: str = ""
    user_agent: str = ""
    version: str = ""
    user: User | None = None
    impersonated: User | None = None
    attributes: Attributes | None = None
    decision: Decision | None = None
    request_body: bytes = b""


class Answered(NamedTuple):
    """The response."""

    code: int
    body: bytes = b""


class Auditor:
    """Logs requests as selected by a policy. The clock is in UTC."""

    def __init__(self, policy: AuditPolicy, sink: Sink, now: Callable[[], datetime]) -> None:
        self._policy = policy
        self._sink = sink
        self._now = now
        self._lines: list[bytes] = []

    def begin(self, uri: str, audit_id: str) -> Audited:
        return Audited(uri, self._now(), audit_id)

    def started(self, audited: Audited) -> None:
        """Logs that the response to a watch has started."""
        self._log(audited, ("RequestReceived", "ResponseStarted"), Answered(200))

    def completed(self, audited: Audited, answered: Answered, *, is_stream: bool = False) -> None:
        """Logs that the response is complete."""
        if audited.user is None:
            # Requests without a valid user have one stage in Kubernetes, and this one.
            stages: tuple[str, ...] = ("ResponseStarted",)
        elif is_stream:
            stages = ("ResponseComplete",)
        else:
            stages = ("RequestReceived", "ResponseComplete")
        self._log(audited, stages, answered)

    def close(self) -> None:
        self._flush()
        self._sink.close()

    def _log(self, audited: Audited, stages: tuple[str, ...], answered: Answered) -> None:
        user = audited.user or User("")
        attributes = audited.attributes or Attributes("", audited.uri.partition("?")[0])
        level, omitted = self._policy.decide(audited.impersonated or user, attributes)
        if level is Level.NONE:
            return
        for stage in stages:
            if stage not in omitted:
                event = self._event(audited, attributes, level, stage, answered)
                if not self._lines:
                    asyncio.get_running_loop().call_later(FLUSH_SECONDS, self._flush)
                self._lines.append(msgspec.json.encode(event) + b"\n")

    def _flush(self) -> None:
        if self._lines:
            lines, self._lines = self._lines, []
            self._sink.write(b"".join(lines))

    def _event(
        self,
        audited: Audited,
        attributes: Attributes,
        level: Level,
        stage: str,
        answered: Answered,
    ) -> dict[str, Any]:
        event: dict[str, Any] = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": level.shown,
            "auditID": audited.audit_id,
            "stage": stage,
            "requestURI": audited.uri,
            "verb": attributes.verb,
            "user": _user(audited.user),
        }
        if audited.impersonated is not None:
            event["impersonatedUser"] = _user(audited.impersonated)
        event["sourceIPs"] = [audited.source]
        if audited.user_agent:
            event["userAgent"] = audited.user_agent
        if attributes.resource:
            event["objectRef"] = _object_ref(attributes, audited.version)
        if stage != "RequestReceived":
            event["responseStatus"] = _status(answered)
            if level >= Level.REQUEST and (sent := decoded(audited.request_body)) is not None:
                event["requestObject"] = sent
            if level >= Level.REQUEST_RESPONSE and (got := decoded(answered.body)) is not None:
                event["responseObject"] = got
        event["requestReceivedTimestamp"] = _micro(audited.received)
        event["stageTimestamp"] = _micro(
            audited.received if stage == "RequestReceived" else self._now()
        )
        if audited.decision is not None and stage != "RequestReceived":
            event["annotations"] = {
                "authorization.k8s.io/decision": "allow" if audited.decision.allowed else "forbid",
                "authorization.k8s.io/reason": audited.decision.reason,
            }
        return event


def _object_ref(attributes: Attributes, version: str) -> dict[str, str]:
    plural, _, part = attributes.resource.partition("/")
    reference = {
        "resource": plural,
        "namespace": attributes.namespace,
        "name": attributes.name,
        "apiGroup": attributes.group,
        "apiVersion": version,
        "subresource": part,
    }
    return {name: value for name, value in reference.items() if value}


def _status(answered: Answered) -> dict[str, Any]:
    """The Status of a failure; only the code of a success."""
    found = decoded(answered.body) if answered.code >= 400 else None
    if not isinstance(found, dict):
        return {"metadata": {}, "code": answered.code}
    shown: dict[str, Any] = {"metadata": {}}
    for name in ("status", "message", "reason", "details"):
        if name in found:
            shown[name] = found[name]
    return {**shown, "code": answered.code}


def _micro(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def _user(user: User | None) -> Any:
    if user is None:
        return {}
    return user_info(user) if user.extra else _plain_user(user.name, user.uid, user.groups)


@lru_cache(maxsize=1024)
def _plain_user(name: str, uid: str, groups: tuple[str, ...]) -> msgspec.Raw:
    """Cached, because most requests are from the same few users."""
    return msgspec.Raw(msgspec.json.encode(user_info(User(name, uid, groups))))


def decoded(body: bytes) -> Any:
    """The values in a body of JSON or protobuf; None if it is neither."""
    if not body:
        return None
    try:
        return decode_document(body) if body.startswith(MAGIC) else msgspec.json.decode(body)
    except (ProtobufError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
