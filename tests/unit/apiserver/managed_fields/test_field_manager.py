"""Applied configurations: which of their parts are compared with the object, and which only say which object it is."""

from __future__ import annotations

from typing import Any, Final

import pytest

from allot.apiserver.http.field_managers import field_manager_for
from allot.apiserver.managed_fields.updater import ApplyConflictError
from allot.apiserver.watch_cache.caches import resource_named

NOW: Final = "2026-01-01T00:00:00Z"
PODS: Final = resource_named("", "pods")
CLAIMS: Final = resource_named("resource.k8s.io", "resourceclaims")
POD: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default", "labels": {"a": "b"}},
    "spec": {"containers": [{"name": "m", "image": "i"}]},
    "status": {"phase": "Pending"},
}
IDENTITY: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default"},
}
STATUS: Final = {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "p-c"}]}


def an_entry(manager: str, operation: str, fields: Any, **more: Any) -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "v1",
        "time": NOW,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **more,
    }


CREATOR: Final = an_entry("creator", "Update", {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}})


def applied(entries: list[dict[str, Any]], config: dict[str, Any], *, force: bool = False) -> Any:
    manager = field_manager_for(PODS, "v1", "status")
    return manager.applied(POD, entries, config, "applier", NOW, force=force)


def fields_of(manager: str, entries: list[dict[str, Any]]) -> Any:
    return next((entry["fieldsV1"] for entry in entries if entry["manager"] == manager), None)


def test_what_nobody_else_owns_is_added() -> None:
    merged = applied([CREATOR], {**IDENTITY, "status": STATUS})

    item: dict[str, Any] = {".": {}, "f:name": {}, "f:resourceClaimName": {}}
    assert merged.document == {**POD, "status": {"phase": "Pending", **STATUS}}
    assert fields_of("applier", merged.entries) == {
        "f:status": {"f:resourceClaimStatuses": {'k:{"name":"c"}': item}}
    }
    assert fields_of("creator", merged.entries) == CREATOR["fieldsV1"]


@pytest.mark.parametrize("force", [False, True])
def test_others_may_own_a_field_of_the_same_part(force: bool) -> None:
    kubelet = an_entry("kubelet", "Update", {"f:status": {"f:phase": {}, "f:message": {}}})
    config = {**IDENTITY, "status": {**STATUS, "phase": "Running"}}
    if not force:
        with pytest.raises(ApplyConflictError):
            applied([kubelet], config)
        return

    merged = applied([kubelet], config, force=True)

    assert fields_of("kubelet", merged.entries) == {"f:status": {"f:message": {}}}


def test_owners_of_a_version_that_is_not_served_are_dropped() -> None:
    unknown = an_entry("old", "Update", {"f:spec": {"f:old": {}}}, apiVersion="v0")

    merged = applied([CREATOR, unknown], {**IDENTITY, "status": STATUS})

    assert fields_of("old", merged.entries) is None


def test_others_may_own_the_same_field_in_another_version() -> None:
    manager = field_manager_for(CLAIMS, "v1", "status")
    consumer = {"resource": "pods", "name": "p", "uid": "u"}
    live = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "d"}}]}},
        "status": {"reservedFor": [consumer]},
    }
    item: dict[str, Any] = {'k:{"uid":"u"}': {".": {}, "f:name": {}, "f:resource": {}, "f:uid": {}}}
    entry = an_entry("other", "Update", {"f:status": {"f:reservedFor": item}}) | {
        "apiVersion": "resource.k8s.io/v1beta1"
    }
    config = {**live, "status": {"reservedFor": [{**consumer, "name": "q"}]}}
    del config["spec"]

    with pytest.raises(ApplyConflictError):
        manager.applied(live, [entry], config, "applier", NOW, force=False)


def test_the_name_stays_though_the_applier_is_said_to_own_it() -> None:
    """Clients may write any managedFields."""
    fields: dict[str, Any] = {"f:metadata": {"f:name": {}, "f:labels": {"f:a": {}}}}
    mine = an_entry("applier", "Apply", fields, subresource="status")

    merged = applied([CREATOR, mine], {**IDENTITY, "status": STATUS})

    assert merged.document["metadata"] == POD["metadata"]


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"name": "q", "namespace": "default"}, id="another-name"),
        pytest.param({"name": "p", "labels": {"a": "c"}}, id="a-label"),
    ],
)
def test_metadata_that_says_more_is_applied(metadata: dict[str, Any]) -> None:
    merged = applied([], {**IDENTITY, "metadata": metadata, "status": STATUS}, force=True)

    assert merged.document["metadata"] == {**POD["metadata"], **metadata}


def test_a_label_that_the_object_has_is_owned() -> None:
    merged = applied([CREATOR], {**IDENTITY, "metadata": POD["metadata"], "status": STATUS})

    assert fields_of("applier", merged.entries)["f:metadata"] == {"f:labels": {"f:a": {}}}


def test_the_last_applied_configuration_is_the_whole() -> None:
    """kubectl's annotation has also the fields that say which object it is."""
    last_applied = "kubectl.kubernetes.io/last-applied-configuration"
    live = {**POD, "metadata": {**POD["metadata"], "annotations": {last_applied: "{}"}}}
    config = {**IDENTITY, "status": STATUS}
    manager = field_manager_for(PODS, "v1", "status")

    merged = manager.applied(live, [CREATOR], config, "kubectl", NOW, force=False)

    written = merged.document["metadata"]["annotations"][last_applied]
    assert '"kind":"Pod"' in written
    assert '"name":"p"' in written


@pytest.mark.parametrize(
    ("live", "new"),
    [
        pytest.param({"status": {}}, {"status": STATUS}, id="new-status"),
        pytest.param({"status": {}}, {"status": None}, id="null-is-empty"),
        pytest.param({"status": {}}, {"status": {"phase": None}}, id="null-in-status"),
        pytest.param({"status": {}}, {"status": STATUS, "other": 1}, id="not-in-the-schema"),
        pytest.param({"status": {"phase": "Pending"}}, {"status": STATUS}, id="removed"),
        pytest.param({"status": {}, "metadata": {"labels": {"a": "b"}}}, {}, id="all-removed"),
        pytest.param({"metadata": {}}, {"metadata": {"ownerReferences": []}}, id="ignored"),
        pytest.param(
            {"spec": {"containers": None}},
            {"spec": {"containers": [{"name": "m", "image": "i"}], "nodeName": "n"}},
            id="empty-spec",
        ),
        pytest.param({"spec": {}}, {"spec": {"containers": None}}, id="empty-and-completed"),
    ],
)
@pytest.mark.parametrize("part", ["", "status"])
def test_what_was_empty_is_compared_like_anything_else(part: str, live: Any, new: Any) -> None:
    manager = field_manager_for(PODS, "v1", part)
    updater = manager._updater

    found = manager._compared(live, new)

    expected = updater.compared(*manager._both_completed(live, new))
    assert (found.removed, found.changed) == (expected.removed, expected.changed)
