"""What client-go sends: reflectors, metadata informers and cached discovery, request for request.

There is no Go here, so the requests are written down as they were recorded from kube-scheduler,
kube-controller-manager and kubectl.
"""

from __future__ import annotations

from typing import Any

import pytest

from allot.api.protobuf.envelope import decode_document
from allot.apiserver.kinds.resources import RESOURCES
from tests.clients.api_server import RunningServer

WATCH_LIST = "watch=true&allowWatchBookmarks=true&sendInitialEvents=true"
NOT_OLDER = "resourceVersionMatch=NotOlderThan"
INITIAL_END = "k8s.io/initial-events-end"
PROTOBUF = "application/vnd.kubernetes.protobuf"
METADATA = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def create(server: RunningServer, namespace: str, name: str, **labels: str) -> str:
    """The resourceVersion of a new config map."""
    document = {"metadata": {"name": name, "labels": labels}}
    answer = server.request("POST", maps(namespace), document)
    assert answer.code == 201, answer
    return str(answer.json["metadata"]["resourceVersion"])


def version(event: dict[str, Any]) -> int:
    return int(event["object"]["metadata"]["resourceVersion"])


def shown(event: dict[str, Any]) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"].get("name", "")


def test_watch_list_streams_what_is_there_and_then_what_happens(
    server: RunningServer, namespace: str
) -> None:
    for name in ("a", "b"):
        create(server, namespace, name)

    events = server.watch(f"{maps(namespace)}?{WATCH_LIST}&{NOT_OLDER}&timeoutSeconds=5")
    first, second, bookmark = next(events), next(events), next(events)
    create(server, namespace, "c")
    later = next(events)

    assert [shown(first), shown(second)] == [("ADDED", "a"), ("ADDED", "b")]
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["annotations"] == {INITIAL_END: "true"}
    assert bookmark["object"]["kind"] == "ConfigMap"
    assert version(bookmark) >= version(second)
    assert shown(later) == ("ADDED", "c")
    assert version(later) > version(bookmark)


def test_watch_list_of_nothing_says_so_at_once(server: RunningServer, namespace: str) -> None:
    events = server.watch(f"{maps(namespace)}?{WATCH_LIST}&{NOT_OLDER}&timeoutSeconds=5")

    assert next(events)["object"]["metadata"]["annotations"] == {INITIAL_END: "true"}


def test_watch_list_without_a_match_is_refused(server: RunningServer, namespace: str) -> None:
    answer = server.request("GET", f"{maps(namespace)}?{WATCH_LIST}")

    assert (answer.code, answer.json["reason"]) == (422, "Invalid")


def test_list_then_watch(server: RunningServer, namespace: str) -> None:
    """The older way: LIST from the cache, then WATCH from its version until the server ends it."""
    create(server, namespace, "a")
    listed = server.request("GET", f"{maps(namespace)}?limit=500&resourceVersion=0").json
    since = listed["metadata"]["resourceVersion"]
    create(server, namespace, "b")
    server.request("DELETE", f"{maps(namespace)}/a")

    query = f"allowWatchBookmarks=true&resourceVersion={since}&timeoutSeconds=1&watch=true"
    events = list(server.watch(f"{maps(namespace)}?{query}"))

    assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]
    assert [shown(event) for event in events if event["type"] != "BOOKMARK"] == [
        ("ADDED", "b"),
        ("DELETED", "a"),
    ]
    assert int(since) < version(events[0]) < version(events[1])
    assert all(event["object"]["apiVersion"] == "v1" for event in events)


def test_watch_sees_objects_enter_and_leave_its_selector(
    server: RunningServer, namespace: str
) -> None:
    since = create(server, namespace, "a", app="y")
    path = f"{maps(namespace)}/a"
    for app in ("x", "x", "y"):
        labels = {"metadata": {"labels": {"app": app, "seen": app}}}
        server.request("PATCH", path, labels, "application/merge-patch+json")
    server.request("DELETE", path)

    query = f"watch=true&labelSelector=app%3Dx&resourceVersion={since}&timeoutSeconds=1"
    events = list(server.watch(f"{maps(namespace)}?{query}"))

    assert [shown(event) for event in events] == [("ADDED", "a"), ("DELETED", "a")]


def test_versions_that_cannot_be_served(server: RunningServer, namespace: str) -> None:
    future = server.request("GET", f"{maps(namespace)}?resourceVersion=99999999")
    bad_token = server.request("GET", f"{maps(namespace)}?limit=500&continue=nonsense")

    assert (future.code, future.json["reason"]) == (504, "Timeout")
    assert future.json["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert bad_token.code == 400


def listable(server: RunningServer) -> list[str]:
    """The paths of all resources that discovery says can be listed and watched, in every version."""
    paths = []
    for root in ("/api", "/apis"):
        groups = server.request("GET", root, headers={"Accept": AGGREGATED}).json["items"]
        for group in groups:
            for served in group["versions"]:
                name = group["metadata"].get("name", "")
                place = "/".join(part for part in (root, name, served["version"]) if part)
                paths += [
                    f"{place}/{resource['resource']}"
                    for resource in served["resources"]
                    if {"list", "watch"} <= set(resource["verbs"])
                ]
    return paths


def test_metadata_informers_on_everything(server: RunningServer, namespace: str) -> None:
    """As the garbage collector does: metadata only, in protobuf or in JSON."""
    paths = listable(server)
    stored = [resource for resource in RESOURCES if resource.is_stored]
    # Other tests may have defined custom resources.
    assert len(paths) >= sum(len(resource.versions) for resource in stored)
    accept_list = f"application/json;{METADATA_LIST},application/json"
    accept = f"application/json;{METADATA},application/json"
    for path in paths:
        answer = server.request(
            "GET", f"{path}?limit=500&resourceVersion=0", headers={"Accept": accept_list}
        )
        assert answer.code == 200, path
        listed = answer.json
        headers = {"Accept": f"{PROTOBUF};{METADATA_LIST},{accept_list}"}
        messages = server.request("GET", f"{path}?limit=500&resourceVersion=0", headers=headers)
        assert decode_document(messages.body)["kind"] == "PartialObjectMetadataList", path
        assert listed["kind"] == "PartialObjectMetadataList", path
        assert all(set(item) == {"kind", "apiVersion", "metadata"} for item in listed["items"])
        query = f"{WATCH_LIST}&{NOT_OLDER}&timeoutSeconds=5"
        events = server.watch(f"{path}?{query}", headers={"Accept": accept})
        for event in events:
            assert event["object"]["kind"] == "PartialObjectMetadata", path
            if event["type"] == "BOOKMARK":
                break
        events.close()  # type: ignore[attr-defined]


def test_discovery_is_cached(server: RunningServer) -> None:
    for root in ("/api", "/apis"):
        accept = f"{AGGREGATED},application/json"
        first = server.request("GET", root, headers={"Accept": accept})
        headers = {"Accept": accept, "If-None-Match": first.headers["etag"]}
        again = server.request("GET", root, headers=headers)
        older = server.request("GET", root, headers={"Accept": AGGREGATED.replace("v2", "v2beta1")})
        classic = server.request("GET", root)

        assert first.headers["content-type"] == AGGREGATED
        assert "Accept" in first.headers["vary"]
        assert (again.code, again.body) == (304, b"")
        assert older.code == 200
        assert classic.json["kind"] in ("APIVersions", "APIGroupList")


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version/", "/openapi/v3"])
def test_what_is_asked_for_at_the_start(server: RunningServer, path: str) -> None:
    assert server.request("GET", path).code == 200
