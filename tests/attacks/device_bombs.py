"""More claims and devices that are hard to decide about: knapsacks, policies, taints, many pools and many claims.

Each function gives the objects of one attack, in the order in which they are created. The pod comes last.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from tests.attacks.manifests import (
    DRIVER,
    Manifest,
    alternative,
    alternatives,
    claim,
    device,
    device_class,
    distinct,
    match,
    pod,
    request,
    slices,
)

ATTRIBUTE: Final = f'device.attributes["{DRIVER}"]'
TAINT_RULES: Final = "resource.k8s.io/v1beta2"


def knapsack(devices: int = 60, counters: int = 16, count: int = 21) -> list[Manifest]:
    """Devices that consume amounts of every counter: a knapsack in so many dimensions."""
    random = Random(3)  # noqa: S311 - always the same problem
    names = [f"c{number}" for number in range(counters)]
    made = []
    for index in range(devices):
        amounts = {name: {"value": str(random.randrange(30, 70))} for name in names}
        made.append(
            device(f"d{index}", consumesCounters=[{"counterSet": "all", "counters": amounts}])
        )
    total = {name: {"value": str(count * 46)} for name in names}
    published = slices(made, shared_counters=[{"name": "all", "counters": total}])
    return [*published, device_class(), claim([request("some", count)]), pod()]


def derived_search(requests: int = 12, devices: int = 64) -> list[Manifest]:
    """Derived attributes (KEP-6080) that must be alike in one way and differ in two: none fits, and no value says so."""
    made = [device(f"d{index}", {"a": index % 8, "b": index // 8}) for index in range(devices)]
    names = [f"r{number}" for number in range(requests)]
    derived = [
        {"name": "sum", "expression": f"string(({ATTRIBUTE}.a + {ATTRIBUTE}.b) % 11)"},
        {"name": "product", "expression": f"string(({ATTRIBUTE}.a * {ATTRIBUTE}.b) % 13)"},
        {"name": "parity", "expression": f"string(({ATTRIBUTE}.a + {ATTRIBUTE}.b) % 2)"},
    ]
    asked = [request(name, derivedAttributes=derived) for name in names]
    constraints: list[Manifest] = [
        {"distinctAttribute": "sum", "requests": names},
        {"distinctAttribute": "product", "requests": names},
        {"matchAttribute": "parity", "requests": names},
    ]
    return [*slices(made), device_class(), claim(asked, constraints), pod()]


def request_policies(devices: int = 64, requests: int = 32, capacities: int = 24) -> list[Manifest]:
    """Consumable capacities whose policies round every amount up, in shares that never quite fit together."""
    random = Random(5)  # noqa: S311 - always the same problem
    values = [str(each * 7) for each in range(1, 11)]
    policies: list[Manifest] = [
        {"default": "7", "validValues": values},
        {"default": "3", "validRange": {"min": "3", "max": "95", "step": "4"}},
    ]
    capacity = {
        f"c{number}": {"value": "97", "requestPolicy": policies[number % 2]}
        for number in range(capacities)
    }
    made = [
        device(f"d{index}", {"index": index}, allowMultipleAllocations=True, capacity=capacity)
        for index in range(devices)
    ]
    asked = [
        request(
            f"r{number}",
            capacity={
                "requests": {
                    f"c{each}": str(random.randrange(34, 60)) for each in range(capacities)
                }
            },
        )
        for number in range(requests)
    ]
    few = f"{ATTRIBUTE}.index < {requests // 2 - 1}"
    for each in asked:
        each["exactly"]["selectors"] = [{"cel": {"expression": few}}]
    return [*slices(made), device_class(), claim(asked), pod()]


def claims_of_alternatives(claims: int = 24, requests: int = 32) -> list[Manifest]:
    """A pod with so many claims of 32 requests with eight alternatives each; only all of them together do not fit."""
    made = [
        device(f"d{index}", {"tier": index % 8, "index": index})
        for index in range(claims * requests - 1)
    ]
    tiers = [
        alternative(f"t{tier}", 1, f"{ATTRIBUTE}.tier == {tier}", f"{ATTRIBUTE}.index >= 0")
        for tier in range(8)
    ]
    names = [f"bomb-{number}" for number in range(claims)]
    asked = [alternatives(f"r{number}", *tiers) for number in range(requests)]
    return [
        *slices(made),
        device_class(),
        *(claim(asked, name=name) for name in names),
        pod_with_claims(names),
    ]


def pod_with_claims(names: list[str], name: str = "bomb") -> Manifest:
    found = pod(name)
    found["spec"]["containers"][0]["resources"] = {}
    found["spec"]["resourceClaims"] = [{"name": each, "resourceClaimName": each} for each in names]
    return found


def hundred_claims(claims: int = 100, devices: int = 128) -> list[Manifest]:
    """A pod with a hundred claims that compete for devices which exclude each other in pairs."""
    made = [device(f"d{index}", {"value": index % 3, "index": index}) for index in range(devices)]
    names = [f"bomb-{number}" for number in range(claims)]
    asked = [request("one"), request("two", 1, f"{ATTRIBUTE}.value != 1")]
    constraints = [match("value", "one", "two"), distinct("index", "one", "two")]
    return [
        *slices(made),
        device_class(),
        *(claim(asked, constraints, name) for name in names),
        pod_with_claims(names),
    ]


def all_of_many_pools(pools: int = 400, requests: int = 32) -> list[Manifest]:
    """All devices of any pool, in every request, of pools with one device each: more than a claim can hold."""
    published: list[Manifest] = []
    for number in range(pools):
        published += slices([device("d0", {"index": number})], pool=f"pool-{number:03}")
    asked = [
        alternatives(
            f"r{number}",
            alternative("all", 0),
            alternative("half", 0, f"{ATTRIBUTE}.index % 2 == 0"),
            alternative("few", 0, f"{ATTRIBUTE}.index % 50 == {number}"),
        )
        for number in range(requests)
    ]
    return [*published, device_class(), claim(asked), pod()]


def admin_access(devices: int = 512, claims: int = 64) -> list[Manifest]:
    """Claims with admin access for all devices, which none of them takes away; too many for one claim."""
    made = [device(f"d{index}", {"index": index}) for index in range(devices)]
    names = [f"bomb-{number}" for number in range(claims)]
    asked = [
        request(
            f"r{number}", 0, f"{ATTRIBUTE}.index % {devices // 8} == {number}", adminAccess=True
        )
        for number in range(4)
    ]
    asked.append(request("all", 32, adminAccess=True))
    return [
        *slices(made),
        device_class(),
        *(claim(asked, name=name) for name in names),
        pod_with_claims(names),
    ]


def taint_rules(rules: int = 2000, devices: int = 1024) -> list[Manifest]:
    """So many rules that taint every device there is, and a claim that tolerates some of them."""
    made = [device(f"d{index}", {"index": index}) for index in range(devices)]
    tolerations = [
        {"key": f"example.com/rule-{number}", "operator": "Exists"} for number in range(16)
    ]
    wanted = claim([request("one", 4, tolerations=tolerations)])
    return [
        *slices(made),
        device_class(),
        *(taint_rule(number, driver=DRIVER) for number in range(rules)),
        wanted,
        pod(),
    ]


def taint_rule(number: int, effect: str = "NoExecute", **selector: Any) -> Manifest:
    taint = {"key": f"example.com/rule-{number}", "value": "v", "effect": effect}
    return {
        "apiVersion": TAINT_RULES,
        "kind": "DeviceTaintRule",
        "metadata": {"name": f"bomb-{number}"},
        "spec": {"deviceSelector": selector, "taint": taint},
    }


def many_devices(devices: int = 100_000, per_slice: int = 128) -> list[Manifest]:
    """So many devices on one node, each like the others, with a class of their own."""
    made = [device(f"d{index}", {"index": index % 16}) for index in range(devices)]
    return [*slices(made, per_slice=per_slice), device_class()]
