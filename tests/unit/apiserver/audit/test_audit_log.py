"""What is logged of requests, and how files are rotated."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from allot.api.identities import GroupVersionKind
from allot.api.protobuf.envelope import MAGIC, MEDIA_TYPE, encode_document
from allot.apiserver.audit import log_file
from allot.apiserver.audit.auditor import Auditor
from allot.apiserver.audit.log_file import LogFile, Rotation
from allot.apiserver.audit.policy import AuditPolicy, AuditRule, Level
from allot.testing.servers import LocalServer

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
MAPS = "/api/v1/namespaces/default/configmaps"


class Lines:
    """A log in memory."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def write(self, lines: bytes) -> None:
        self.events += [json.loads(line) for line in lines.splitlines()]

    def close(self) -> None:
        pass


def logged(level: Level, *asked: tuple[str, str, Any, dict[str, str]]) -> list[dict[str, Any]]:
    lines = Lines()
    policy = AuditPolicy((AuditRule(level),), frozenset({"RequestReceived"}))

    async def run() -> None:
        auditor = Auditor(policy, lines, lambda: NOW)
        async with LocalServer(auditor=auditor) as server:
            for method, path, body, headers in asked:
                await server.ask(method, path, body, headers=headers)
        auditor.close()

    asyncio.run(run())
    return lines.events


A_MAP = {"metadata": {"name": "m"}, "data": {"a": "b"}}
CREATE = ("POST", f"{MAPS}?dryRun=All", A_MAP, {"user-agent": "me", "audit-id": "mine"})


def test_metadata() -> None:
    (event,) = logged(Level.METADATA, CREATE)

    assert event == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": "mine",
        "stage": "ResponseComplete",
        "requestURI": f"{MAPS}?dryRun=All",
        "verb": "create",
        "user": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
        "sourceIPs": ["127.0.0.1"],
        "userAgent": "me",
        "objectRef": {"resource": "configmaps", "namespace": "default", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 201},
        "requestReceivedTimestamp": "2026-01-02T03:04:05.678901Z",
        "stageTimestamp": "2026-01-02T03:04:05.678901Z",
        "annotations": {
            "authorization.k8s.io/decision": "allow",
            "authorization.k8s.io/reason": "",
        },
    }


def test_request_and_response() -> None:
    (with_request,) = logged(Level.REQUEST, CREATE)
    (with_both,) = logged(Level.REQUEST_RESPONSE, CREATE)

    assert with_request["requestObject"] == A_MAP
    assert "responseObject" not in with_request
    assert with_both["responseObject"]["data"] == {"a": "b"}


def test_an_event_is_one_line_however_the_body_is_written() -> None:
    body = json.dumps(A_MAP, indent=1).encode() + b"\n"
    (event,) = logged(Level.REQUEST, ("POST", MAPS, body, {}))
    (other,) = logged(Level.REQUEST, ("POST", MAPS, b"no: json", {}))

    assert event["requestObject"] == A_MAP
    assert "requestObject" not in other


def test_nothing() -> None:
    assert logged(Level.NONE, CREATE) == []


def test_refusals_say_who_was_refused_what() -> None:
    forbidden, unknown = logged(
        Level.METADATA,
        ("GET", f"{MAPS}/m", None, {"impersonate-user": "zoe"}),
        ("GET", f"{MAPS}/m", None, {"authorization": "Bearer wrong", "user-agent": "me"}),
    )

    assert forbidden["impersonatedUser"]["username"] == "zoe"
    assert forbidden["responseStatus"]["code"] == 403
    assert "cannot get resource" in forbidden["responseStatus"]["message"]
    assert forbidden["annotations"]["authorization.k8s.io/decision"] == "forbid"
    assert (unknown["user"], unknown["responseStatus"]["code"]) == ({}, 401)
    assert (unknown["stage"], unknown["verb"]) == ("ResponseStarted", "get")
    assert unknown["userAgent"] == "me"
    assert unknown["objectRef"] == {
        "resource": "configmaps", "namespace": "default", "name": "m", "apiVersion": "v1",
    }  # fmt: skip


def test_requests_without_a_user_are_described_whatever_they_ask_for() -> None:
    wrong = {"authorization": "Bearer wrong"}
    watch, page, unserved, bad = logged(
        Level.METADATA,
        ("GET", f"{MAPS}?watch=1", None, wrong),
        ("GET", "/version", None, wrong),
        ("DELETE", "/apis/example.com/v1/things/t", None, wrong),
        ("GET", f"{MAPS}?a=%zz;", None, wrong),
    )

    assert [each["verb"] for each in (watch, page, unserved)] == ["watch", "get", "delete"]
    assert "objectRef" not in page
    assert unserved["objectRef"]["resource"] == "things"
    assert bad["responseStatus"]["code"] in (400, 401)


def test_protobuf_is_shown_as_json() -> None:
    protobuf = {"content-type": MEDIA_TYPE, "accept": MEDIA_TYPE}
    body = encode_document({"metadata": {"name": "m"}, "data": {"a": "b"}}, CONFIG_MAP)
    created, again, missing, broken = logged(
        Level.REQUEST_RESPONSE,
        ("POST", MAPS, body, protobuf),
        ("POST", MAPS, body, protobuf),
        ("GET", f"{MAPS}/other", None, protobuf),
        ("POST", MAPS, MAGIC + b"\xff\xff", protobuf),
    )

    assert created["requestObject"]["data"] == created["responseObject"]["data"] == {"a": "b"}
    assert again["responseStatus"]["reason"] == "AlreadyExists"
    assert missing["responseStatus"] == {
        "metadata": {},
        "status": "Failure",
        "message": 'configmaps "other" not found',
        "reason": "NotFound",
        "details": {"name": "other", "kind": "configmaps"},
        "code": 404,
    }
    assert "requestObject" not in broken
    assert broken["responseStatus"]["reason"] == "BadRequest"


def test_a_watch_has_two_stages() -> None:
    lines = Lines()

    async def run() -> None:
        auditor = Auditor(AuditPolicy((AuditRule(Level.METADATA),)), lines, lambda: NOW)
        async with LocalServer(auditor=auditor) as server, server.watch(MAPS):
            pass
        auditor.close()

    asyncio.run(run())
    stages = [event["stage"] for event in lines.events]
    assert stages == ["RequestReceived", "ResponseStarted", "ResponseComplete"]


def test_a_large_file_is_replaced_and_old_ones_go(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(log_file, "MEGABYTE", 10)
    now = [NOW]
    log = LogFile(tmp_path / "audit.log", Rotation(1, max_backups=2), lambda: now[0])
    for number in range(5):
        log.write(b"%d-------\n" % number)
        now[0] += timedelta(seconds=1)
    log.close()

    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        "audit-2026-01-02T03-04-08.678.log",
        "audit-2026-01-02T03-04-09.678.log",
        "audit.log",
    ]
    assert (tmp_path / "audit.log").read_bytes() == b"4-------\n"
    assert (tmp_path / "audit.log").stat().st_mode & 0o077 == 0


def test_old_files_go_by_their_age(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(log_file, "MEGABYTE", 10)
    now = [NOW]
    log = LogFile(tmp_path / "audit.log", Rotation(1, max_age_days=2), lambda: now[0])
    for number in range(5):
        log.write(b"%d-------\n" % number)
        now[0] += timedelta(hours=30)
    log.close()

    assert len(list(tmp_path.iterdir())) == 3  # this one, and those of 0 and 30 hours ago


def test_a_file_is_continued(tmp_path: Path) -> None:
    for line in (b"one\n", b"two\n"):
        log = LogFile(tmp_path / "audit.log", Rotation(), lambda: NOW)
        log.write(line)
        log.close()

    assert (tmp_path / "audit.log").read_bytes() == b"one\ntwo\n"
