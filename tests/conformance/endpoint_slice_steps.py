"""EndpointSlices: their endpoints, addresses, hints and ports, and what of them may change.

    python -m tests.conformance.endpoint_slice_steps https://127.0.0.1:6443 TOKEN > answers.json

plays them on a fresh kube-apiserver v1.38 with `--disable-admission-plugins=ServiceAccount`, without a scheduler and a controller
manager. `gzip -9n` of what it prints is `data/endpoint-slices-recorded.json.gz`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from tests.conformance.subresource_steps import APPLY, JSON_PATCH, MERGE
from tests.conformance.wire_steps import STRATEGIC, Step, each, print_answers

Document = dict[str, Any]
ENDPOINT_SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
DRY_RUN = f"{ENDPOINT_SLICES}?dryRun=All"
ENDPOINT: Document = {"addresses": ["10.0.0.1"]}
FQDN = "FQDN"
ADDRESS_TYPES = each("IPv4", "IPv6", FQDN)
UNSPECIFIED = "0.0.0.0"  # noqa: S104 - nothing listens there
ADDRESSES = (
    "", " ", "10.0.0.1", "10.0.0.256", "010.0.0.1", "10.0.0.01", "127.0.0.1", "127.1.2.3", UNSPECIFIED, "169.254.1.1", "169.254.169.254",
    "224.0.0.1", "224.0.1.1", "239.0.0.1", "255.255.255.255", "240.0.0.1", "10.0.0", "10.0.0.1/24", "1", "::", "::1", "fe80::1", "ff02::1",
    "ff05::1", "ff01::1", "fd00::1", "FD00::1", "fd00:0::1", "fd00:0:0:0:0:0:0:1", "fd00::10.0.0.1", "fe80::1%eth0", "::ffff:10.0.0.1",
    "::ffff:127.0.0.1", "::ffff:169.254.1.1", "::10.0.0.1", "[fd00::1]", "2001:db8::1", "2001:DB8::1", "64:ff9b::1", "febf::1", "fec0::1", "FE80::1", "0::1", "0::0",
    "example.com", "Example.com", "a", "a_b", "a..b", "example.com.", "-a", "x" * 64, "x" * 254, "*.example.com", "é.com", "10.0.0.1 ", "a:b",
)  # fmt: skip


def endpoint_slice(address_type: Any = "IPv4", name: str = "s", **rest: Any) -> Document:
    return {"metadata": {"name": name}, "addressType": address_type} | rest


def types() -> Iterator[Step]:
    for address_type in each(None, "", "IP", "ipv4", "IPv4", "IPv6", "FQDN", "Foo", 5, []):
        yield Step("POST", DRY_RUN, endpoint_slice(address_type))
        yield Step(
            "POST", DRY_RUN, endpoint_slice(address_type, endpoints=[{}], ports=[{"port": 0}])
        )
        yield Step("POST", DRY_RUN, endpoint_slice(address_type, endpoints=[ENDPOINT]))
    yield Step("POST", DRY_RUN, {"metadata": {"name": "s"}})
    for name in ("a.b", "A", "a_b", "x" * 254, "1"):
        yield Step("POST", DRY_RUN, endpoint_slice(name=name))
    bad_labels = {"metadata": {"name": "s", "labels": {"a!": "b"}}}
    yield Step(
        "POST", DRY_RUN, endpoint_slice("Foo", endpoints=[{}], ports=[{"port": 0}]) | bad_labels
    )


def addresses() -> Iterator[Step]:
    for address_type in ADDRESS_TYPES:
        for address in ADDRESSES:
            endpoints = [{"addresses": [address]}]
            yield Step("POST", DRY_RUN, endpoint_slice(address_type, endpoints=endpoints))
        for listed in each(
            None, [], [None], ["10.0.0.1", "10.0.0.2"], ["10.0.0.1"] * 2, ["", ""], ["10.0.0.1", "x"], ["a.b", "a.b"], "x", [5],
            [f"10.0.0.{index}" for index in range(100)], [f"10.0.0.{index}" for index in range(101)],
            [f"fd00::{index}" for index in range(101)], ["x"] * 101,
        ):  # fmt: skip
            yield Step(
                "POST", DRY_RUN, endpoint_slice(address_type, endpoints=[{"addresses": listed}])
            )
    for address_type in ("Foo", ""):
        for address in ("", "x", "10.0.0.1"):
            yield Step(
                "POST", DRY_RUN, endpoint_slice(address_type, endpoints=[{"addresses": [address]}])
            )


def endpoints() -> Iterator[Step]:
    for listed in each(
        None, [], [None], [{}], [{}, {}], {}, "x", [ENDPOINT, ENDPOINT], [ENDPOINT, {"addresses": ["10.0.0.2"]}], [ENDPOINT] * 1000,
        [ENDPOINT] * 1001, [ENDPOINT | {"addresses": ["x"]}, ENDPOINT, {}],
    ):  # fmt: skip
        yield Step("POST", DRY_RUN, endpoint_slice(endpoints=listed))
    for change in _endpoint_changes():
        yield Step("POST", DRY_RUN, endpoint_slice(endpoints=[ENDPOINT | change]))
    bad = {
        "addresses": ["x"],
        "nodeName": "A_",
        "zone": "a!",
        "hostname": "a.b",
        "hints": {"forZones": [{}]},
        "deprecatedTopology": {"a": "b"},
    }
    yield Step(
        "POST",
        DRY_RUN,
        endpoint_slice(
            endpoints=[bad], ports=[{"name": "A_", "protocol": "x", "port": 0, "appProtocol": "!"}]
        ),
    )


def _endpoint_changes() -> Iterator[Document]:
    for conditions in each(
        None, {}, {"ready": True}, {"ready": None}, {"ready": False, "serving": False, "terminating": False}, {"foo": 1}, {"ready": "x"}, [],
    ):  # fmt: skip
        yield {"conditions": conditions}
    for hostname in each(None, "", "a", "A", "a.b", "a_b", "-a", "x" * 63, "x" * 64, "1", 5):
        yield {"hostname": hostname}
    for reference in each(
        None,
        {},
        {"kind": "Pod", "name": "p", "namespace": "default"},
        {"kind": ""},
        {"uid": "x", "fieldPath": "y"},
        {"foo": 1},
        [],
    ):
        yield {"targetRef": reference}
    for name in each(None, "", "n", "N", "a.b", "a_b", "-n", "x" * 253, "x" * 254, "a/b", "..", 5):
        yield {"nodeName": name}
    for zone in each(None, "", "z", "Z", "a.b", "a_b", "a!", "-a", "x" * 63, "x" * 64, "a/b", 5):
        yield {"zone": zone}
    for topology in each(
        None, {}, {"a": "b"}, {"kubernetes.io/hostname": "n"}, {"topology.kubernetes.io/zone": "z"}, {"a!": "b"}, {"a": "b!"},
        {f"k{index}": "v" for index in range(16)}, {f"k{index}": "v" for index in range(17)}, {"kubernetes.io/hostname": "n", "a": "b"},
        {"": ""}, {"x" * 64: "b"}, {"a": "x" * 64},
    ):  # fmt: skip
        yield {"deprecatedTopology": topology}
    yield {"deprecatedTopology": {"kubernetes.io/hostname": "n"}, "nodeName": "n"}
    yield {"deprecatedTopology": {"topology.kubernetes.io/zone": "z"}, "zone": "z"}
    for field in ("forZones", "forNodes"):
        for hints in each(
            None, [], [{}], [None], [{"name": ""}], [{"name": "a"}], [{"name": "a"}] * 2, [{"name": "a"}] * 3, [{"name": "A"}],
            [{"name": "a.b"}], [{"name": "a!"}], [{"name": "a!"}] * 2, [{"name": "x" * 64}], [{"name": "x" * 254}], [{"name": "a_b"}],
            [{"name": f"z{index}"} for index in range(8)], [{"name": f"z{index}"} for index in range(9)],
            [{"name": "a", "foo": 1}], {}, "x", [{}] * 9, [{}, {}],
        ):  # fmt: skip
            yield {"hints": {field: hints}}
    yield from each(
        {"hints": None},
        {"hints": {}},
        {"hints": {"foo": 1}},
        {"hints": []},
        {"foo": 1},
        {"nodeName": "A_", "zone": "a!", "hostname": "a.b"},
    )
    yield {"hints": {"forZones": [{}], "forNodes": [{}]}}


def ports() -> Iterator[Step]:
    for address_type in ADDRESS_TYPES:
        for listed in _port_lists():
            yield Step("POST", DRY_RUN, endpoint_slice(address_type, ports=listed))
    for port in each(
        *({"port": number} for number in each(None, 0, 1, 65535, 65536, -1, "80", 2**31)),
        *({"name": name} for name in each(
            None, "", "a", "A", "a.b", "a_b", "-a", "1", "123", "a--b", "x" * 15, "x" * 16, "x" * 63, "x" * 64, "http", "é", 5)),
        *({"protocol": protocol} for protocol in each(None, "", "TCP", "UDP", "SCTP", "tcp", "ICMP", "Foo", 5)),
        *({"appProtocol": protocol} for protocol in each(
            None, "", "http", "HTTP", "kubernetes.io/h2c", "a/b/c", "/a", "a/", "a!", "x" * 63, "x" * 64, "x" * 254 + "/a", "A.com/b", 5)),
        {"name": "A_", "protocol": "x", "port": 0, "appProtocol": "!"}, {"foo": 1},
    ):  # fmt: skip
        yield Step("POST", DRY_RUN, endpoint_slice(ports=[port]))


def _port_lists() -> tuple[Any, ...]:
    return each(
        None, [], [None], [{}], [{}, {}], {}, [{"port": 80}] * 2, [{"name": "a"}] * 2, [{"name": "a"}] * 3, [{"name": "a"}, {"name": "b"}],
        [{"name": "a", "port": 80}, {"name": "a", "protocol": "UDP"}], [{"name": "A_"}] * 2,
        [{"name": f"p{index}", "port": 80} for index in range(100)], [{"name": f"p{index}", "port": 80} for index in range(101)],
        [{"port": 80}] * 101, [{"name": f"p{index}"} for index in range(20001)],
        [{"name": "a"}, {}, {"name": "a"}, {}], [{"name": "a"}, {"name": "a", "protocol": "x", "appProtocol": "!"}],
    )  # fmt: skip


def updates() -> Iterator[Step]:
    path = f"{ENDPOINT_SLICES}/s"
    yield Step(
        "POST",
        ENDPOINT_SLICES,
        endpoint_slice(
            endpoints=[ENDPOINT | {"hints": {"forZones": [{"name": "z"}]}}], ports=[{"port": 80}]
        ),
    )
    yield Step("GET", path)
    for change in each(
        {"addressType": "IPv6"}, {"addressType": "FQDN"}, {"addressType": "Foo"}, {"addressType": ""}, {"addressType": None},
        {"addressType": "IPv6", "endpoints": [{"addresses": ["fd00::1"]}]}, {"addressType": "IPv6", "endpoints": []},
        {"endpoints": []}, {"endpoints": None}, {"endpoints": [{}]}, {"endpoints": [{"addresses": ["x"]}]}, {"ports": []},
        {"ports": None}, {"ports": [{"port": 0}]}, {"ports": [{"name": "A_"}]}, {"endpoints": [ENDPOINT | {"deprecatedTopology": {"a": "b"}}]},
        {"endpoints": [ENDPOINT, ENDPOINT]}, {"metadata": {"labels": {"a": "b"}}}, {"metadata": {"labels": {"a": "b"}}, "endpoints": []},
        {"metadata": {"annotations": {"a": "b"}}}, {"endpoints": [ENDPOINT | {"addresses": ["010.0.0.1"]}]},
        {"endpoints": [{"addresses": ["127.0.0.1"]}]}, {"addressType": "FQDN", "endpoints": [{}], "ports": [{"port": -1}]},
        {"endpoints": [ENDPOINT | {"hints": {"forZones": []}}]}, {"endpoints": [ENDPOINT | {"nodeName": "n", "zone": "z"}]},
    ):  # fmt: skip
        yield Step("PATCH", f"{path}?dryRun=All", change, MERGE)
        yield Step("PATCH", f"{path}?dryRun=All", change, STRATEGIC)
        whole = endpoint_slice(endpoints=[ENDPOINT], ports=[{"port": 80}]) | change
        yield Step(
            "PUT",
            f"{path}?dryRun=All",
            whole | {"metadata": {"name": "s"} | change.get("metadata", {})},
        )
        kind = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4"}
        yield Step("PATCH", f"{path}?dryRun=All&fieldManager=m&force=true", kind | change, APPLY)
    for patch in each(
        [{"op": "remove", "path": "/endpoints"}], [{"op": "remove", "path": "/ports"}], [{"op": "remove", "path": "/addressType"}],
        [{"op": "remove", "path": "/endpoints/0"}], [{"op": "replace", "path": "/ports/0/port", "value": 0}],
        [{"op": "test", "path": "/ports/0/name", "value": ""}], [{"op": "add", "path": "/endpoints/0/foo", "value": 0}],
    ):  # fmt: skip
        yield Step("PATCH", f"{path}?dryRun=All", patch, JSON_PATCH)
    yield from _unchanged_endpoints()
    yield Step("PATCH", path, {"endpoints": [], "ports": []}, MERGE)
    yield Step("GET", path)
    yield Step("GET", f"{ENDPOINT_SLICES}?labelSelector=!kubernetes.io/service-name")
    yield Step("PATCH", path, {"endpoints": None}, MERGE)
    yield Step("PATCH", path, {"endpoints": [ENDPOINT]}, MERGE)
    yield Step("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, MERGE)
    yield Step("PATCH", path, {"metadata": {"annotations": {"a": "b"}}}, MERGE)
    yield Step("GET", path)
    yield Step("DELETE", path)


def _unchanged_endpoints() -> Iterator[Step]:
    """Addresses are judged by a type that changes only if the endpoints change too."""
    first, second = {"addresses": ["010.0.0.1"]}, {"addresses": ["10.0.0.2"]}
    yield Step("POST", ENDPOINT_SLICES, endpoint_slice(FQDN, "f", endpoints=[first, second]))
    for listed in each(
        [first, second], [second, first], [first], [first, second, second], [first, second | {"conditions": {}}],
        [first, second | {"zone": "z"}], [first, second | {"nodeName": "A_"}],
    ):  # fmt: skip
        for address_type in ADDRESS_TYPES:
            change = {"addressType": address_type, "endpoints": listed}
            yield Step("PATCH", f"{ENDPOINT_SLICES}/f?dryRun=All", change, MERGE)
    yield Step("PATCH", f"{ENDPOINT_SLICES}/f", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    yield Step("DELETE", f"{ENDPOINT_SLICES}/f")


def combined() -> Iterator[Step]:
    """Mistakes of several rules: their order."""
    bad_port = {"name": "A_", "protocol": "x", "port": 0, "appProtocol": "!"}
    addresses = [f"10.0.0.{index}" for index in range(101)]
    hints = [{"name": f"z{index}"} for index in range(9)]
    for address_type in each("IPv4", "IPv6", FQDN, "Foo", ""):
        for listed in each(
            [{"nodeName": "A_"}, {"addresses": ["x"]}], [{"addresses": addresses, "nodeName": "A_"}, {}],
            [ENDPOINT | {"hints": {"forZones": hints, "forNodes": hints}, "hostname": "a.b"}],
            [ENDPOINT | {"hints": {"forZones": [{"name": "a!"}], "forNodes": [{"name": "a!"}]}, "hostname": "a.b"}],
            [{"addresses": ["."]}, {"addresses": ["a."]}, {"addresses": ["a.b.."]}], [{"addresses": ["x" * 254 + "_"]}],
        ):  # fmt: skip
            body = endpoint_slice(address_type, endpoints=listed, ports=[bad_port, bad_port])
            yield Step("POST", DRY_RUN, body)
    yield Step("POST", ENDPOINT_SLICES, endpoint_slice(name="e"))
    for address_type in each("IPv4", FQDN, "Foo", ""):
        change = {
            "addressType": address_type,
            "endpoints": [{"nodeName": "A_"}],
            "ports": [bad_port],
        }
        yield Step("PATCH", f"{ENDPOINT_SLICES}/e?dryRun=All", change, MERGE)
    yield Step("DELETE", f"{ENDPOINT_SLICES}/e")


def all_steps() -> list[Step]:
    return [
        step for part in (types, addresses, endpoints, ports, updates, combined) for step in part()
    ]


if __name__ == "__main__":
    print_answers(sys.argv[1], sys.argv[2], all_steps())
