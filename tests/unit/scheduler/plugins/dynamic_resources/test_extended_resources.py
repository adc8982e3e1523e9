"""Which extended resources devices serve, and what the claim behind them asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api.classes import DeviceClass
from allot.scheduler.plugins.dynamic_resources.extended_resources import (
    NO_REQUESTS,
    ExtendedRequests,
    ServedByDevices,
    read_extended_requests,
    resources_from_devices,
    serve_with_devices,
)
from allot.scheduler.state.extended_resource_classes import ResourceClasses
from allot.scheduler.state.resources import read_pod_requests
from allot.testing.builders import a_class

GPU = "example.com/gpu"
NIC = "example.com/nic"
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu"
FOREIGN = "example.com/fpga"


def class_of(name: str, resource: str | None = None, second: int | None = None) -> DeviceClass:
    created = None if second is None else datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC)
    return a_class(name, created=created, extended_resource_name=resource)


def classes(*known: DeviceClass) -> ResourceClasses:
    index = ResourceClasses()
    for class_ in known:
        index.put(class_)
    return index


GPU_AND_NIC = classes(class_of("gpu", GPU), class_of("nic", NIC))

Requests = Mapping[str, int]


def a_spec(*containers: Requests, init: Iterable[Requests] = ()) -> dict[str, Any]:
    """Containers `c0`, …, and init containers `i0`, …; one that asks for `sidecar` is one."""
    return {
        "containers": [_container(f"c{n}", one) for n, one in enumerate(containers)],
        "initContainers": [_container(f"i{n}", one) for n, one in enumerate(init)],
    }


def _container(name: str, requests: Requests) -> dict[str, Any]:
    amounts = {key: str(amount) for key, amount in requests.items() if key != "sidecar"}
    always = {"restartPolicy": "Always"} if "sidecar" in requests else {}
    return {"name": name, "resources": {"requests": amounts}, **always}


def wanted_by(spec: dict[str, Any], known: ResourceClasses = GPU_AND_NIC) -> ExtendedRequests:
    scalars = read_pod_requests(spec, {}).requests.scalars
    return read_extended_requests(spec, scalars, known.class_of)


def shown(served: ServedByDevices) -> tuple[dict[str, int], dict[str, list[str]]]:
    """Devices by request; requests by container and resource, `c0 example.com/gpu`."""
    counts = {one.name: one.exactly.count for one in served.requests if one.exactly is not None}
    used: dict[str, list[str]] = {}
    for mapping in served.mappings:
        user = f"{mapping.container_name} {mapping.resource_name}"
        used.setdefault(user, []).append(mapping.request_name)
    return counts, used


# --- which class ---


@pytest.mark.parametrize(
    ("known", "resource", "class_name"),
    [
        pytest.param([class_of("a", GPU)], GPU, "a", id="explicit"),
        pytest.param([class_of("gpu")], IMPLICIT, "gpu", id="implicit"),
        pytest.param([class_of("gpu", GPU)], IMPLICIT, "gpu", id="implicit-beside-explicit"),
        pytest.param([class_of("other")], IMPLICIT, None, id="implicit-of-no-class"),
        pytest.param([class_of("a", NIC)], GPU, None, id="another-resource"),
        pytest.param([class_of("a", "")], "", None, id="no-resource"),
        pytest.param([class_of("a", GPU, 1), class_of("b", GPU, 2)], GPU, "b", id="newest"),
        pytest.param([class_of("b", GPU, 2), class_of("a", GPU, 1)], GPU, "b", id="newest-first"),
        pytest.param(
            [class_of("b", GPU, 1), class_of("a", GPU, 1)], GPU, "a", id="same-age-by-name"
        ),
    ],
)
def test_class_behind_a_resource(
    known: list[DeviceClass], resource: str, class_name: str | None
) -> None:
    assert classes(*known).class_of(resource) == class_name


def test_classes_follow_changes() -> None:
    index = classes(class_of("old", GPU, 1), class_of("new", GPU, 2))

    index.put(class_of("new", NIC, 2))
    assert (index.class_of(GPU), index.class_of(NIC)) == ("old", "new")

    index.remove("old")
    assert not index.is_backed(GPU)
    assert index.class_of("deviceclass.resource.kubernetes.io/old") is None

    index.put(class_of("new", None, 2))
    assert not index.is_backed(NIC)
    index.remove("never there")


# --- what a pod asks for ---


def test_requests_are_named_by_container_and_by_resource_among_all_its_requests() -> None:
    spec = a_spec(
        {"cpu": 1, GPU: 2, "memory": 1}, {NIC: 1, GPU: 1}, init=[{"cpu": 1}, {"a/b": 1, GPU: 1}]
    )

    requests = wanted_by(spec).requests

    assert [(one.container, one.request_name, one.amount) for one in requests] == [
        ("i1", "container-1-request-1", 1),
        ("c0", "container-2-request-1", 2),
        ("c1", "container-3-request-0", 1),
        ("c1", "container-3-request-1", 1),
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(a_spec({"cpu": 1, "hugepages-2Mi": 2}), NO_REQUESTS, id="ordinary"),
        pytest.param(a_spec({FOREIGN: 1}), NO_REQUESTS, id="no-class"),
        pytest.param(a_spec({GPU: 0}), NO_REQUESTS, id="zero"),
    ],
)
def test_nothing_for_devices_to_do(spec: dict[str, Any], expected: ExtendedRequests) -> None:
    assert wanted_by(spec) == expected


def test_zero_in_one_container_is_no_request() -> None:
    requests = wanted_by(a_spec({GPU: 0}, {GPU: 1})).requests

    assert [one.container for one in requests] == ["c1"]


@pytest.mark.parametrize(
    ("allocatable", "from_devices"),
    [
        pytest.param({}, None, id="lacks-what-no-class-serves"),
        pytest.param({FOREIGN: 0}, None, id="has-none-left-of-it"),
        pytest.param({FOREIGN: 1}, {GPU, NIC}, id="all-from-devices"),
        pytest.param({FOREIGN: 1, GPU: 4}, {NIC}, id="a-plugin-for-one"),
        pytest.param({FOREIGN: 1, GPU: 0}, {GPU, NIC}, id="a-plugin-with-nothing"),
        pytest.param({FOREIGN: 1, GPU: 1, NIC: 1}, set(), id="plugins-for-all"),
    ],
)
def test_what_devices_serve_on_a_node(
    allocatable: Mapping[str, int], from_devices: set[str] | None
) -> None:
    wanted = wanted_by(a_spec({GPU: 1, NIC: 1, FOREIGN: 1, "hugepages-2Mi": 2}))

    assert resources_from_devices(wanted, allocatable) == from_devices


# --- what the claim asks for ---


@pytest.mark.parametrize(
    ("spec", "devices", "used"),
    [
        pytest.param(
            a_spec({GPU: 2}),
            {"container-0-request-0": 2},
            {f"c0 {GPU}": ["container-0-request-0"]},
            id="one-container",
        ),
        pytest.param(
            a_spec({GPU: 1, NIC: 1}, {GPU: 1}),
            {
                "container-0-request-0": 1,
                "container-0-request-1": 1,
                "container-1-request-0": 1,
            },
            {
                f"c0 {GPU}": ["container-0-request-0"],
                f"c0 {NIC}": ["container-0-request-1"],
                f"c1 {GPU}": ["container-1-request-0"],
            },
            id="containers-run-together",
        ),
        pytest.param(
            a_spec({GPU: 2}, init=[{GPU: 1}]),
            {"container-1-request-0": 2},
            {f"i0 {GPU}": ["container-1-request-0"], f"c0 {GPU}": ["container-1-request-0"]},
            id="init-needs-less",
        ),
        pytest.param(
            a_spec({GPU: 1}, {GPU: 1}, init=[{GPU: 3}]),
            {
                "container-0-request-0": 1,
                "container-1-request-0": 1,
                "container-2-request-0": 1,
            },
            {
                f"i0 {GPU}": [
                    "container-1-request-0",
                    "container-2-request-0",
                    "container-0-request-0",
                ],
                f"c0 {GPU}": ["container-1-request-0"],
                f"c1 {GPU}": ["container-2-request-0"],
            },
            id="init-needs-more",
        ),
        pytest.param(
            a_spec({GPU: 1}, init=[{GPU: 2}, {GPU: 3}]),
            {
                "container-0-request-0": 1,
                "container-1-request-0": 1,
                "container-2-request-0": 1,
            },
            {
                f"i0 {GPU}": ["container-2-request-0", "container-0-request-0"],
                f"i1 {GPU}": [
                    "container-2-request-0",
                    "container-0-request-0",
                    "container-1-request-0",
                ],
                f"c0 {GPU}": ["container-2-request-0"],
            },
            id="inits-follow-each-other",
        ),
        pytest.param(
            a_spec({"cpu": 1}, init=[{GPU: 1, "sidecar": 1}, {GPU: 1}]),
            {"container-0-request-0": 1, "container-1-request-0": 1},
            {f"i0 {GPU}": ["container-0-request-0"], f"i1 {GPU}": ["container-1-request-0"]},
            id="a-sidecar-keeps-its-devices",
        ),
        pytest.param(
            a_spec({"cpu": 1}, init=[{GPU: 1}, {GPU: 1, "sidecar": 1}]),
            {"container-1-request-0": 1},
            {f"i0 {GPU}": ["container-1-request-0"], f"i1 {GPU}": ["container-1-request-0"]},
            id="a-sidecar-that-starts-later-lends-them",
        ),
        pytest.param(
            a_spec({GPU: 1}, init=[{IMPLICIT: 1}]),
            {"container-1-request-0": 1},
            {f"i0 {IMPLICIT}": ["container-1-request-0"], f"c0 {GPU}": ["container-1-request-0"]},
            id="two-names-of-one-class",
        ),
        pytest.param(
            a_spec({GPU: 1}, init=[{IMPLICIT: 1, GPU: 1}]),
            {"container-0-request-1": 1, "container-1-request-0": 1},
            {
                f"i0 {IMPLICIT}": ["container-1-request-0"],
                f"i0 {GPU}": ["container-0-request-1"],
                f"c0 {GPU}": ["container-1-request-0"],
            },
            id="both-names-in-one-init-container",
        ),
        pytest.param(
            a_spec({NIC: 1}, init=[{GPU: 1}]),
            {"container-0-request-0": 1, "container-1-request-0": 1},
            {f"i0 {GPU}": ["container-0-request-0"], f"c0 {NIC}": ["container-1-request-0"]},
            id="another-class-is-of-no-use",
        ),
    ],
)
def test_served_by_devices(
    spec: dict[str, Any], devices: dict[str, int], used: dict[str, list[str]]
) -> None:
    wanted = wanted_by(spec)

    assert shown(serve_with_devices(wanted, wanted.resources)) == (devices, used)


def test_what_plugins_serve_is_left_out() -> None:
    wanted = wanted_by(a_spec({GPU: 1, NIC: 1}))

    served = serve_with_devices(wanted, frozenset({NIC}))

    assert shown(served) == (
        {"container-0-request-1": 1},
        {f"c0 {NIC}": ["container-0-request-1"]},
    )


amounts = st.dictionaries(st.sampled_from([GPU, NIC, "cpu"]), st.integers(0, 4))
inits = st.lists(st.tuples(amounts, st.booleans()), max_size=3)


@given(st.lists(amounts, min_size=1, max_size=3), inits)
def test_every_container_has_enough_and_no_request_is_unused(
    containers: list[dict[str, int]], before: list[tuple[dict[str, int], bool]]
) -> None:
    """As many devices as the pod needs at its peak; containers that run together share none."""
    spec = a_spec(
        *containers, init=[one | ({"sidecar": 1} if sidecar else {}) for one, sidecar in before]
    )
    wanted = wanted_by(spec)
    counts, used = shown(serve_with_devices(wanted, wanted.resources))

    needed = dict(read_pod_requests(spec, {}).requests.scalars)
    class_by_request = {one.request_name: one.resource for one in wanted.requests}
    for resource in wanted.resources:
        asked = sum(count for name, count in counts.items() if class_by_request[name] == resource)
        assert asked == needed[resource]
    for request in wanted.requests:
        sources = used[f"{request.container} {request.resource}"]
        assert sum(counts[name] for name in sources) >= request.amount
        if not request.ends:
            assert sources == [request.request_name]
        earlier_sidecars = {
            one.request_name
            for one in wanted.requests
            if not one.ends and one.place < request.place and one.container.startswith("i")
        }
        assert not request.ends or not earlier_sidecars & set(sources)
