"""Applied configurations: which of their parts are compared with the object, and which only say which object it is."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any, Final

import msgspec
import pytest

from allot.apiserver.http.field_managers import field_manager_for
from allot.apiserver.managed_fields import managers
from allot.apiserver.managed_fields.comparison import Comparison
from allot.apiserver.managed_fields.updated_objects import UpdatedDocument
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


UIDS: Final = {"name": "p", "namespace": "default", "uid": "u"}
KUBELET: Final = an_entry("kubelet", "Update", {"f:status": {"f:phase": {}}}, subresource="status")
ENTRIES: Final = [
    CREATOR,
    KUBELET,
    an_entry("labels", "Apply", {"f:metadata": {"f:labels": {"f:b": {}}}}, time=""),
    an_entry("applier", "Apply", {"f:status": {"f:message": {}}}, subresource="status"),
    an_entry("applier", "Update", {"f:spec": {"f:nodeName": {}}}, time="2027-01-01T00:00:00Z"),
    an_entry("beta", "Update", {"f:spec": {"f:hostname": {}}}, apiVersion="v1beta1"),
    an_entry("nothing", "Update", {}),
    an_entry("applier", "Update", {"f:spec": {"f:subdomain": {}}}, time=""),
]
STATUSES: Final[list[dict[str, Any]]] = [
    {},
    {"status": {}},
    {"status": STATUS},
    {"status": {"phase": "Pending"}},
    {"status": {"phase": "Running", **STATUS}},
    {"status": {"phase": None}},
    {"status": {"phase": 1}},
    {"status": {"unknown": 1}},
    {"spec": {"nodeName": "n"}, "status": STATUS},
    {"spec": {"nodeName": "n"}},
    {"unknown": {}},
]
METADATA: Final[list[dict[str, Any]]] = [
    {"name": "p"},
    UIDS,
    {**UIDS, "uid": "v"},
    {**UIDS, "labels": {"a": "b"}},
]


def known_entries() -> list[list[dict[str, Any]]]:
    return [[CREATOR], *([*each] for n in (0, 2, 3) for each in combinations(ENTRIES, n))]


@pytest.mark.parametrize("part", ["", "status"])
@pytest.mark.parametrize("name", ["applier", "kubectl"])
def test_what_is_applied_alone_is_applied_as_to_the_whole_object(part: str, name: str) -> None:
    manager = field_manager_for(PODS, "v1", part)
    without_status = {name: value for name, value in POD.items() if name != "status"}
    taken = 0
    for stored, known, metadata, parts in product(
        (POD, without_status), known_entries(), METADATA, STATUSES
    ):
        live = {**stored, "metadata": {**UIDS, "labels": {"a": "b"}}}
        config = {**IDENTITY, "metadata": metadata, **parts}
        bare = {name: value for name, value in live.items() if name != "metadata"}

        alone = manager.applied_alone(bare, UIDS, known, config, name, NOW)

        if alone is not None:
            whole = manager.applied(live, known, config, name, NOW, force=False)
            found = {**alone.document, "metadata": live["metadata"]}
            assert (found, alone.entries, alone.changed) == whole
            assert msgspec.json.encode(alone.entries) == msgspec.json.encode(whole.entries)
            taken += 1
    assert bool(taken) == (name != "kubectl")


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({**IDENTITY, "kind": "Node", "status": STATUS}, id="another-kind"),
        pytest.param({**IDENTITY, "apiVersion": "v2", "status": STATUS}, id="another-version"),
        pytest.param({"kind": "Pod", "apiVersion": "v1", "status": STATUS}, id="no-metadata"),
    ],
)
def test_a_configuration_for_something_else_is_not_applied_alone(config: dict[str, Any]) -> None:
    manager = field_manager_for(PODS, "v1", "status")

    assert manager.applied_alone(POD, UIDS, [CREATOR], config, "applier", NOW) is None


FIELD_SETS: Final[list[dict[str, Any]]] = [
    {},
    {"f:status": {".": {}, "f:phase": {}}},
    {"f:status": {"f:message": {}}},
    {"f:metadata": {"f:labels": {"f:a": {}}}},
    {"f:metadata": {"f:labels": {"f:c": {}}}},
    {"f:metadata": {"f:name": {}}, "f:spec": {"f:nodeName": {}}},
]


@pytest.mark.parametrize("name", ["applier", "kubelet", "creator", ""])
def test_a_new_manager_is_added_as_if_owners_were_compared(name: str) -> None:
    manager = field_manager_for(PODS, "v1", "status")
    many = [{**KUBELET, "manager": f"m{number}"} for number in range(managers.MAX_UPDATERS)]
    later = "2026-01-01T00:00:01Z"
    kept = filter(manager._can_stay, known_entries())
    for known, fields in product([*kept, many, many[1:]], product(FIELD_SETS, repeat=3)):
        comparison = Comparison(*fields)
        owners = managers.decode_stored(known)
        changed = manager._with_changes(comparison, owners, name, later)

        found = manager._after_plain_update(known, comparison, name, later)

        expected = managers.encode(managers.capped(changed))
        assert msgspec.json.encode(found) == msgspec.json.encode(expected)


def test_of_two_entries_of_a_manager_the_last_counts() -> None:
    """As after an apply to the scale endpoint, which leaves the replicas in an entry of their own."""
    manager = field_manager_for(PODS, "v1", "status")
    first = an_entry("creator", "Update", {"f:spec": {"f:hostname": {}}}, time="")
    new = {**POD, "status": {**POD["status"], "message": "m"}}

    entries = manager.updated(UpdatedDocument(POD, new), [first, CREATOR], (), "other", NOW)

    assert [entry["manager"] for entry in entries] == ["creator", "other"]
    assert entries[0] == CREATOR


def test_long_names_of_fields_are_not_remembered() -> None:
    """Custom resources may have any fields."""
    manager = field_manager_for(PODS, "v1", "")
    known = manager._new_objects._known_names

    for length in (10, 10_000):
        name = "x" * length
        entries = manager.created({**POD, name: 1}, (), "creator", NOW)
        assert [*entries[0]["fieldsV1"]] == ["f:metadata", "f:spec"]

        assert any(name in names for names in known) == (length == 10)
