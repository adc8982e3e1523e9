"""Validation takes steps in proportion to the length of lists: a request may have a hundred thousand items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import pytest

from allot.api.core import Pod, PodParts, PodSpec
from allot.api.decoding import from_value
from allot.api.raw import RawObject
from allot.validation.certificates import validate_signing_request
from allot.validation.container_volumes import validate_devices, validate_mounts
from allot.validation.containers import validate_containers
from allot.validation.core_objects import validate_runtime_class
from allot.validation.fields import FieldError, FieldPath
from allot.validation.lists import identity, repeated
from allot.validation.nodes import validate_node_update
from allot.validation.pod import validate_pod_spec
from allot.validation.pod_annotations import validate_pod_annotations
from allot.validation.pod_placement import validate_pod_placement
from allot.validation.pod_status import validate_pod_status
from allot.validation.pod_status_basics import validate_pod_status_update
from allot.validation.profile_annotations import APP_ARMOR
from allot.validation.service_addresses import validate_addresses
from tests.step_counts import counted, steps, with_counted_texts

SPEC = FieldPath("spec")
ITEMS = 150


def spread(count: int) -> Iterator[FieldError]:
    constraints = [
        {"topologyKey": f"k{n}", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        for n in range(count)
    ]
    spec = with_counted_texts({"topologySpreadConstraints": constraints})
    return validate_pod_placement(spec, SPEC)


def label_keys(count: int) -> Iterator[FieldError]:
    term = {
        "topologyKey": "a",
        "labelSelector": {},
        "matchLabelKeys": [f"a{n}" for n in range(count)],
        "mismatchLabelKeys": [f"b{n}" for n in range(count)],
    }
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return validate_pod_placement(with_counted_texts({"affinity": affinity}), SPEC)


def mounted_container(count: int) -> dict[str, Any]:
    container: dict[str, Any] = with_counted_texts(
        {
            "volumeMounts": [{"name": f"a{n}", "mountPath": f"/a{n}"} for n in range(count)],
            "volumeDevices": [{"name": f"b{n}", "devicePath": f"/b{n}"} for n in range(count)],
        }
    )
    return container


def typed_spec(document: dict[str, Any]) -> PodSpec:
    return msgspec.convert(document, PodSpec, dec_hook=from_value)


def container_claims(count: int) -> Iterator[FieldError]:
    """Requests of claims first, then whole claims that the pod does not have."""
    claims = [{"name": f"a{n}", "request": "r"} for n in range(count)]
    claims += [{"name": f"b{n}"} for n in range(count)]
    containers = [{"name": "c", "resources": {"claims": claims}}]
    known = [{"name": f"c{n}", "resourceClaimName": "x"} for n in range(count)]
    return validate_pod_spec(typed_spec({"containers": containers, "resourceClaims": known}))


def ephemeral_claims(count: int) -> Iterator[FieldError]:
    claims = [{"name": f"a{n}"} for n in range(count)]
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "ephemeralContainers": [{"name": "e", "image": "i", "resources": {"claims": claims}}],
        "resourceClaims": [{"name": f"c{n}", "resourceClaimName": "x"} for n in range(count)],
    }
    return validate_containers(with_counted_texts(spec), SPEC)


def app_armor(count: int) -> Iterator[FieldError]:
    annotations = {f"{APP_ARMOR}c{n}": "unconfined" for n in range(count)}
    spec = {"containers": [{"name": f"c{n}"} for n in range(count)]}
    return validate_pod_annotations(annotations, spec)


def pod_status(count: int) -> Iterator[FieldError]:
    used = [{"name": f"c{n}"} for n in range(count)]
    health = [{"name": f"claim:c{n}", "resources": []} for n in range(count)]
    pod = {
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {
            "containers": [{"name": "c", "resources": {"claims": used}}],
            "resourceClaims": [
                {"name": f"c{n}", "resourceClaimName": f"x{n}"} for n in range(count)
            ],
        },
        "status": {
            "containerStatuses": [{"name": "c", "allocatedResourcesStatus": health}],
            "nodeAllocatableResourceClaimStatuses": [
                {"resourceClaimName": f"x{n}"} for n in range(count)
            ],
        },
    }
    return validate_pod_status(msgspec.convert(pod, PodParts, dec_hook=from_value))


def pod_addresses(count: int) -> Iterable[FieldError]:
    status = {
        "podIP": "10.0.0.0",
        "podIPs": [{"ip": f"10.0.{n // 250}.{n % 250}"} for n in range(count)],
    }
    old = Pod({"metadata": {"name": "p"}, "spec": {}, "status": {}})
    new = Pod({"metadata": {"name": "p"}, "spec": {}, "status": with_counted_texts(status)})
    return validate_pod_status_update(new, old)


def node(count: int) -> Iterator[FieldError]:
    addresses = counted([{"type": "InternalIP", "address": f"a{n}"} for n in range(count)])
    features = with_counted_texts(sorted(f"A{n}" for n in range(count)))
    status = {"addresses": addresses, "declaredFeatures": features}
    old = RawObject({"metadata": {"name": "n"}, "spec": {}})
    return validate_node_update(
        RawObject({"metadata": {"name": "n"}, "spec": {}, "status": status}), old
    )


def runtime_class(count: int) -> Iterator[FieldError]:
    tolerations = counted([{"key": f"k{n}", "operator": "Exists"} for n in range(count)])
    scheduling = {"tolerations": tolerations}
    return validate_runtime_class(
        RawObject({"metadata": {"name": "r"}, "handler": "h", "scheduling": scheduling})
    )


def usages(count: int) -> Iterator[FieldError]:
    spec = {"usages": with_counted_texts([f"u{n}" for n in range(count)]), "signerName": "a.b/c"}
    return validate_signing_request(RawObject({"metadata": {"name": "c"}, "spec": spec}))


@pytest.mark.parametrize(
    "validate",
    [
        spread,
        label_keys,
        container_claims,
        ephemeral_claims,
        app_armor,
        pod_status,
        pod_addresses,
        node,
        runtime_class,
        usages,
        lambda count: validate_mounts(mounted_container(count), {}, SPEC),
        lambda count: validate_devices(mounted_container(count), {}, SPEC),
    ],
)
def test_twice_as_many_items_take_twice_as_many_steps(
    validate: Callable[[int], Iterable[FieldError]],
) -> None:
    some, more = list(validate(ITEMS)), list(validate(2 * ITEMS))  # fills caches
    assert len(some) <= len(more)
    once, twice = steps(lambda: validate(ITEMS)), steps(lambda: validate(2 * ITEMS))
    assert once > ITEMS
    assert twice < 2.5 * once


def test_families_of_services_are_looked_up() -> None:
    spec = {"ipFamilies": ["IPv4"] * 3, "clusterIP": "None", "type": "ClusterIP"}
    found = [str(error) for error in validate_addresses(spec) if "ipFamilies" in str(error)]
    assert found == [
        'spec.ipFamilies[1]: Duplicate value: "IPv4"',
        'spec.ipFamilies[2]: Duplicate value: "IPv4"',
    ]


def test_errors_about_unknown_claims_share_their_text() -> None:
    """It lists all claims of the pod: with hundreds of errors it would fill the memory."""
    details = {
        id(error.detail) for error in container_claims(5) if "must be one of" in error.detail
    }
    assert len(details) == 1
    details = {
        id(error.detail) for error in ephemeral_claims(5) if "must be one of" in error.detail
    }
    assert len(details) == 1


def test_repeated_items() -> None:
    assert list(repeated(["a", "b", "a", "a"])) == [False, False, True, True]
    assert identity({"a": 1, "b": [{"c": None}]}) == identity({"b": [{"c": None}], "a": 1})
    assert identity({"a": 1}) != identity({"a": 2})
