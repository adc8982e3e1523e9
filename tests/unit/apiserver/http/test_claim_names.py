"""The names of a pod's claims are applied as any other configuration is."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product
from typing import Any, Final

import msgspec
import pytest

from allot.apiserver.http.apply_bodies import read_configuration
from allot.apiserver.http.claim_names import read_claim_names, with_claim_names
from allot.apiserver.http.routes import Target
from allot.apiserver.http.server_side_apply import Configuration, apply_to
from allot.apiserver.watch_cache.caches import resource_named
from allot.apiserver.watch_cache.codecs import codec_for

PODS: Final = resource_named("", "pods")
STATUS: Final = Target(PODS, "v1", "default", "p", PODS.subresource("status"))
WHOLE: Final = Target(PODS, "v1", "default", "p", None)
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
TYPE: Final = {"apiVersion": "v1", "kind": "Pod"}
NEW: Final = {"phase": "Pending", "qosClass": "BestEffort"}
NAMES: Final = [{"name": "c", "resourceClaimName": "p-c-1"}]
METADATA: Final = {"uid": "u", "name": "p", "namespace": "default"}
SPEC: Final = {"containers": [{"name": "m", "image": "i"}]}


def an_entry(manager: str, fields: Any, **more: str) -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2025-12-31T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **more,
    }


CREATOR: Final = an_entry("creator", {"f:spec": {"f:hostname": {}}})
ENTRIES: Final[list[list[Any]]] = [
    [],
    [CREATOR],
    [CREATOR, an_entry("kubelet", {"f:status": {"f:phase": {}}}, subresource="status")],
    [CREATOR, an_entry("labeller", {"f:metadata": {"f:labels": {"f:a": {}}}})],
    [CREATOR, CREATOR],
    [an_entry("creator", {"f:spec": {"f:hostname": {}}}, apiVersion="v2")],
    [an_entry("applier", {"f:metadata": {"f:labels": {"f:a": {}}}}, operation="Apply"), CREATOR],
    [an_entry("creator", {})],
]
POD_STATUSES: Final[list[Any]] = [
    NEW,
    {"phase": "Pending"},
    {"phase": ""},
    {},
    None,
    {**NEW, "conditions": [{"type": "A", "status": "True", "lastProbeTime": None}]},
    {**NEW, "podIP": "10.0.0.1"},
    {**NEW, "resourceClaimStatuses": [{"name": "d"}]},
]


def body(statuses: Any = NAMES, metadata: Any = METADATA, **more: Any) -> bytes:
    found = {"metadata": metadata, "status": {"resourceClaimStatuses": statuses}, **more, **TYPE}
    return msgspec.json.encode(found)


def pod(status: Any, entries: list[Any], spec: Any = SPEC) -> Any:
    metadata = {**METADATA, "labels": {"a": "b"}, "managedFields": entries}
    data = {"metadata": metadata, "spec": spec, "status": status}
    if status is None:
        del data["status"]
    stored = codec_for(PODS).decode_stored(msgspec.json.encode(data))
    return stored.with_metadata(stored.metadata)


def applied(old: Any, given: bytes, manager: str, target: Target, *, short: bool) -> Any:
    """The pod after the apply, and its managers."""
    read = read_configuration(given)
    names = read.claim_names if short else None
    assert bool(names) or not short
    configuration = Configuration(read.document, manager, True, claim_names=names)
    new, managers = apply_to(old, configuration, target, NOW)
    return new.metadata, new.rest["spec"], list(new.rest["status"].items()), managers


@pytest.mark.parametrize("target", [STATUS, WHOLE], ids=["status", "whole"])
@pytest.mark.parametrize("manager", ["applier", "creator", "kubectl"])
def test_they_are_applied_as_any_configuration(target: Target, manager: str) -> None:
    bodies = [
        body(),
        body([*NAMES, {"name": "d", "resourceClaimName": "p-d-1"}]),
        body(metadata={"name": "p"}),
    ]
    taken = 0
    for status, entries, given in product(POD_STATUSES, ENTRIES, bodies):
        old = pod(status, entries)
        sent = read_claim_names(given)
        assert sent is not None
        document = msgspec.json.decode(given)
        taken += with_claim_names(old, sent, document, manager, target, NOW) is not None

        found = applied(old, given, manager, target, short=True)
        expected = applied(old, given, manager, target, short=False)

        assert msgspec.json.encode(found) == msgspec.json.encode(expected)
    assert bool(taken) == (target is STATUS and manager != "kubectl")


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(body([]), id="none"),
        pytest.param(body([{"name": "c"}]), id="no-claim"),
        pytest.param(body([{"name": "c", "resourceClaimName": None}]), id="null"),
        pytest.param(body([{**NAMES[0], "other": "a"}]), id="another-field"),
        pytest.param(body(spec={}), id="spec"),
        pytest.param(body(metadata={**METADATA, "labels": {}}), id="labels"),
        pytest.param(body([{**NAMES[0], "name": "c" * 1024}]), id="long"),
        pytest.param(body().replace(b'"c"', b'"c","name":"d"'), id="duplicate"),
        pytest.param(body().replace(b'"c"', b'"\\u0063"'), id="escaped"),
        pytest.param(body().replace(b"{", b"{ ", 1), id="space"),
        pytest.param(body().replace(b'"Pod"', b'"Node"'), id="another-kind"),
        pytest.param(body()[:-1], id="cut"),
    ],
)
def test_other_configurations_are_read_in_full(given: bytes) -> None:
    assert read_claim_names(given) is None


@pytest.mark.parametrize(
    ("given", "spec"),
    [
        pytest.param(body(metadata={**METADATA, "uid": "v"}), SPEC, id="another-uid"),
        pytest.param(body(metadata={**METADATA, "name": "q"}), SPEC, id="another-name"),
        pytest.param(body(metadata={**METADATA, "namespace": "q"}), SPEC, id="another-namespace"),
        pytest.param(body([*NAMES, *NAMES]), SPEC, id="name-twice"),
        pytest.param(body([{"name": "", "resourceClaimName": "a"}]), SPEC, id="no-name"),
        pytest.param(body(), {}, id="no-containers"),
    ],
)
def test_what_is_wrong_is_found_elsewhere(given: bytes, spec: Any) -> None:
    old, sent = pod(NEW, [CREATOR], spec), read_claim_names(given)
    assert sent is not None

    document = msgspec.json.decode(given)
    assert with_claim_names(old, sent, document, "applier", STATUS, NOW) is None
