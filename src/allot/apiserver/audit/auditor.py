"""Writes audit events for requests, in Kubernetes' format."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, Final, Protocol

import msgspec

from allot.api.protobuf.envelope import MAGIC, decode_document
from allot.api.protobuf.wire import ProtobufError
from allot.apiserver.audit.policy import AuditPolicy, Level
from allot.apiserver.auth.access_reviews import user_info
from allot.apiserver.auth.authentication import User
from allot.apiserver.auth.authorization import Attributes, Decision

log = logging.getLogger(__name__)

FLUSH_SECONDS: Final = 0.05
"""The time for which requests are buffered before their lines are written."""
RECEIVED: Final = "RequestReceived"
STARTED: Final = (RECEIVED, "ResponseStarted")
COMPLETED: Final = (RECEIVED, "ResponseComplete")
COMPLETED_LATER: Final = ("ResponseComplete",)
UNAUTHENTICATED: Final = ("ResponseStarted",)
LOOPBACK: Final = "127.0.0.1"
MAX_BODY_BYTES: Final = 1 << 20
"""The size of buffered bodies from which they are written at once."""
_NO_USER: Final = User("")


class Sink(Protocol):
    """The destination of lines."""

    def write(self, lines: bytes) -> None: ...

    def close(self) -> None: ...


class Audited(msgspec.Struct):
    """The facts of a request, collected while it is served. They are formatted when they are written."""

    path: bytes
    query: bytes
    client: tuple[str, int] | None
    received: datetime
    audit_id: str = ""
    user_agent: str = ""
    version: str = ""
    user: User | None = None
    impersonated: User | None = None
    attributes: Attributes | None = None
    decision: Decision | None = None
    request_body: bytes = b""
    annotations: dict[str, str] = {}
    """Of admission; those of authorization are added."""

    @property
    def uri(self) -> str:
        path = self.path.decode("latin-1")
        return f"{path}?{self.query.decode('latin-1')}" if self.query else path


class AuditedResponse(Protocol):
    """The response."""

    @property
    def code(self) -> int: ...

    @property
    def body(self) -> bytes: ...


class _Logged(msgspec.Struct, frozen=True):
    """Stages of a request that are to be written."""

    audited: Audited
    stages: tuple[str, ...]
    now: datetime
    code: int = 200
    body: bytes = b""


class Auditor:
    """Logs requests as selected by a policy. The clock is in UTC.

    Lines are formatted when they are written, many at once: that takes less time than after every response.
    """

    def __init__(self, policy: AuditPolicy, sink: Sink, now: Callable[[], datetime]) -> None:
        self._policy = policy
        self._keeps_bodies = policy.max_level > Level.METADATA
        self._sink = sink
        self._now = now
        self._logged: list[_Logged] = []
        self._body_bytes = 0

    def begin(self, scope: Mapping[str, Any], headers: Mapping[str, str], audit_id: str) -> Audited:
        """A request that has arrived, as ASGI describes it; its headers as text."""
        return Audited(
            scope["raw_path"],
            scope["query_string"],
            scope.get("client"),
            self._now(),
            audit_id,
            headers.get("user-agent", ""),
        )

    def started(self, audited: Audited) -> None:
        """Logs that the response to a watch has started."""
        self._log(_Logged(audited, STARTED, self._now()))

    def completed(self, audited: Audited, response: AuditedResponse | None) -> None:
        """Logs that the response is complete; None stands for that of a watch."""
        code, body = 200, b""
        if response is not None:
            code = response.code
            body = response.body if self._keeps_bodies or code >= 400 else b""
        if audited.user is None:
            # Requests without a valid user have one stage in Kubernetes, and this one.
            stages: tuple[str, ...] = UNAUTHENTICATED
        else:
            stages = COMPLETED_LATER if response is None else COMPLETED
        self._log(_Logged(audited, stages, self._now(), code, body))

    def close(self) -> None:
        self._flush()
        self._sink.close()

    def _log(self, logged: _Logged) -> None:
        if not self._logged:
            asyncio.get_running_loop().call_later(FLUSH_SECONDS, self._flush)
        self._logged.append(logged)
        if self._keeps_bodies:
            self._body_bytes += len(logged.audited.request_body) + len(logged.body)
            if self._body_bytes > MAX_BODY_BYTES:
                self._flush()
        else:
            logged.audited.request_body = b""

    def _flush(self) -> None:
        if self._logged:
            logged, self._logged, self._body_bytes = self._logged, [], 0
            lines: list[bytes] = []
            for each in logged:
                try:
                    lines += self._lines(each)
                except Exception:
                    log.exception("audit event of %s was not written", each.audited.uri)
            if lines:
                self._sink.write(b"".join(lines))

    def _lines(self, logged: _Logged) -> list[bytes]:
        audited, now, code, body = logged.audited, logged.now, logged.code, logged.body
        user, impersonated = audited.user, audited.impersonated
        attributes = audited.attributes or Attributes("", audited.path.decode("latin-1"))
        level, omitted = self._policy.decide(impersonated or user or _NO_USER, attributes)
        lines: list[bytes] = []
        if level is Level.NONE:
            return lines
        resource = attributes.resource
        received = audited.received if audited.received.microsecond else _text(audited.received)
        event = _Event(
            "Event",
            "audit.k8s.io/v1",
            level.shown,
            audited.audit_id,
            RECEIVED,
            audited.uri,
            attributes.verb,
            _user(user),
            msgspec.UNSET if impersonated is None else _user(impersonated),
            (audited.client[0] if audited.client else LOOPBACK,),
            audited.user_agent,
            request_received_timestamp=received,
            stage_timestamp=received,
        )
        if resource:
            plural, _, part = resource.partition("/") if "/" in resource else (resource, "", "")
            event.object_ref = _ObjectRef(
                plural,
                attributes.namespace,
                attributes.name,
                attributes.group,
                audited.version,
                part,
            )
        for stage in logged.stages:
            if stage in omitted:
                continue
            if stage != RECEIVED:
                event.stage = stage
                event.stage_timestamp = now if now.microsecond else _text(now)
                event.response_status = _only_code(code) if code < 400 else _status(code, body)
                if level is not Level.METADATA:
                    _add_bodies(event, audited.request_body, body, level)
                if audited.decision is not None:
                    event.annotations = _annotations(*audited.decision)
                    if audited.annotations:
                        event.annotations = _with_more(event.annotations, audited.annotations)
            lines.append(_encode(event) + b"\n")
        return lines


def _add_bodies(event: _Event, request_body: bytes, response_body: bytes, level: Level) -> None:
    event.request_object = decoded(request_body)
    if level is Level.REQUEST_RESPONSE:
        event.response_object = decoded(response_body)


class _ObjectRef(msgspec.Struct, omit_defaults=True, rename="camel", gc=False):
    resource: str
    namespace: str = ""
    name: str = ""
    api_group: str = ""
    api_version: str = ""
    subresource: str = ""


class _Event(msgspec.Struct, omit_defaults=True, rename="camel"):
    """An event as it is written. A request has one, which changes from stage to stage."""

    kind: str
    api_version: str
    level: str
    audit_id: str = msgspec.field(name="auditID")
    stage: str
    request_uri: str = msgspec.field(name="requestURI")
    verb: str
    user: Any
    impersonated_user: Any
    source_ips: tuple[str, ...] = msgspec.field(name="sourceIPs")
    user_agent: str = ""
    object_ref: _ObjectRef | None = None
    response_status: Any = None
    request_object: Any = None
    response_object: Any = None
    request_received_timestamp: datetime | str = ""
    stage_timestamp: datetime | str = ""
    annotations: msgspec.Raw | None = None


_encode: Final = msgspec.json.Encoder().encode


def _status(code: int, body: bytes) -> Any:
    """The Status of a failure; only the code if the body has none."""
    found = decoded(body)
    if not isinstance(found, dict):
        return _only_code(code)
    shown: dict[str, Any] = {"metadata": {}}
    for name in ("status", "message", "reason", "details"):
        if name in found:
            shown[name] = found[name]
    return {**shown, "code": code}


@cache
def _only_code(code: int) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode({"metadata": {}, "code": code}))


@lru_cache(maxsize=1024)
def _annotations(allowed: bool, reason: str) -> msgspec.Raw:
    """Cached, because most requests are allowed for the same few reasons."""
    shown = {
        "authorization.k8s.io/decision": "allow" if allowed else "forbid",
        "authorization.k8s.io/reason": reason,
    }
    return msgspec.Raw(msgspec.json.encode(shown))


def _with_more(annotations: msgspec.Raw, more: Mapping[str, str]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode({**msgspec.json.decode(annotations), **more}))


def _text(moment: datetime) -> str:
    """A time with six zeroes after the second, which encoding leaves out."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000000Z")


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
