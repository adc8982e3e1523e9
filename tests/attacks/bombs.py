"""Claims and devices that the API accepts and that are hard to decide about.

Each function gives the objects of one attack, in the order in which they are created. The pod comes last.
"""

from __future__ import annotations

from itertools import cycle, islice, pairwise
from random import Random
from typing import Final

from tests.attacks import expressions
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

COUNTERS_PER_SET: Final = 32
MAX_REQUESTS: Final = 32
ATTRIBUTE: Final = f'device.attributes["{DRIVER}"]'


# --- searches ---


def exclusive_counters(devices: int = 44, counters: int = 64, count: int = 24) -> list[Manifest]:
    """Each counter is there once and two devices need it: an independent set of so many is wanted."""
    random = Random(1)  # noqa: S311 - always the same problem
    needs: list[dict[str, set[int]]] = [{} for _ in range(devices)]
    for counter in range(counters):
        group, number = f"set-{counter // COUNTERS_PER_SET}", counter % COUNTERS_PER_SET
        for each in random.sample(range(devices), 2):
            needs[each].setdefault(group, set()).add(number)
    made = [
        device(f"d{index}", consumesCounters=[_uses(*each) for each in sorted(need.items())])
        for index, need in enumerate(needs)
    ]
    sets = [
        {"name": f"set-{number}", "counters": _counters(range(COUNTERS_PER_SET))}
        for number in range(-(-counters // COUNTERS_PER_SET))
    ]
    return _attack(slices(made, shared_counters=sets), claim([request("some", count)]))


def _uses(counter_set: str, numbers: set[int]) -> Manifest:
    return {"counterSet": counter_set, "counters": _counters(sorted(numbers))}


def _counters(numbers: range | list[int]) -> Manifest:
    return {f"c{number}": {"value": "1"} for number in numbers}


def results_limit(devices: int = 40) -> list[Manifest]:
    """More devices than a claim can hold, unless the first request takes an alternative that does not exist."""
    made = [
        device(f"d{index}", allowMultipleAllocations=True, capacity=_capacity("units", index + 1))
        for index in range(devices)
    ]
    requests = [
        alternatives("a", alternative("many", 15), alternative("none", 1, "false")),
        alternatives("b", alternative("most", 20)),
    ]
    return _attack(slices(made), claim(requests))


def too_few_values(requests: int = 32, devices: int = 64) -> list[Manifest]:
    """Every request wants another value, and there is one value less than requests."""
    made = [device(f"d{index}", {"value": index % (requests - 1)}) for index in range(devices)]
    names = [f"r{number}" for number in range(requests)]
    wanted = claim([request(name) for name in names], [distinct("value", *names)])
    return _attack(slices(made), wanted)


def too_few_alike(requests: int = 16, groups: int = 8) -> list[Manifest]:
    """All requests want the same value, and each value is there once too seldom; two more constraints get in the way."""
    made = [
        device(f"d{index}", {"value": index % groups, "half": index % 2, "index": index})
        for index in range((requests - 1) * groups)
    ]
    names = [f"r{number}" for number in range(requests)]
    constraints = [
        match("value", *names),
        match("half", *names[: requests // 2]),
        distinct("index", *names),
    ]
    return _attack(slices(made), claim([request(name) for name in names], constraints))


def chain(requests: int = 32, devices: int = 60, values: int = 7) -> list[Manifest]:
    """Neighbours must be alike in one respect and differ in another; that the chain cannot close shows at its end."""
    random = Random(7)  # noqa: S311 - always the same problem
    made = [
        device(
            f"d{index}",
            {"same": index % 3, "other": random.randrange(values), "last": index == devices - 1},
        )
        for index in range(devices)
    ]
    names = [f"r{number}" for number in range(requests)]
    asked = [request(name) for name in names[:-1]]
    asked.append(request(names[-1], 1, f"{ATTRIBUTE}.last && {ATTRIBUTE}.same == 5"))
    pairs = pairwise(names)
    constraints = [
        (match("same", *pair) if number % 2 else distinct("other", *pair))
        for number, pair in enumerate(pairs)
    ]
    return _attack(slices(made), claim(asked, constraints))


def packing(devices: int = 9, requests: int = 26) -> list[Manifest]:
    """Shares that fill all devices but for a little, and never quite fit: bin packing."""
    sizes = list(islice(cycle((41, 37, 29, 26)), requests))
    total = sum(sizes)
    made = [
        device(
            f"d{index}",
            allowMultipleAllocations=True,
            capacity=_capacity("units", total // devices + 2),
        )
        for index in range(devices)
    ]
    asked = [
        request(f"r{number}", capacity={"requests": {"units": str(size)}})
        for number, size in enumerate(sizes)
    ]
    return _attack(slices(made), claim(asked))


def many_alternatives(requests: int = 16, choices: int = 8, devices: int = 48) -> list[Manifest]:
    """Every request has several alternatives, all of them possible for themselves; together they are not."""
    made = [
        device(f"d{index}", {"tier": index % choices, "value": index % (requests - 1)})
        for index in range(devices)
    ]
    names = [f"r{number}" for number in range(requests)]
    asked = [
        alternatives(
            name,
            *(
                alternative(f"t{tier}", 1, f"{ATTRIBUTE}.tier == {(tier + number) % choices}")
                for tier in range(choices)
            ),
        )
        for number, name in enumerate(names)
    ]
    constraints = [distinct("value", *names), match("tier", names[0], names[-1])]
    return _attack(slices(made), claim(asked, constraints))


def all_devices(requests: int = 8, devices: int = 31) -> list[Manifest]:
    """All devices of some kind, as one of several alternatives, with constraints that the last device breaks."""
    made = [
        device(f"d{index}", {"kind": index % requests, "value": int(index == devices - 1)})
        for index in range(devices)
    ]
    names = [f"r{number}" for number in range(requests)]
    asked = [
        alternatives(
            name,
            alternative("all", 0, f"{ATTRIBUTE}.kind >= {number % 2}"),
            alternative("own", 0, f"{ATTRIBUTE}.kind == {number}"),
            alternative("one", 1, f"{ATTRIBUTE}.kind == {number}"),
            alternative("two", 2),
        )
        for number, name in enumerate(names)
    ]
    asked.append(request("last", 1, f"{ATTRIBUTE}.value == 1"))
    return _attack(slices(made), claim(asked, [match("value", *names, "last")]))


def _capacity(name: str, value: int) -> Manifest:
    return {name: {"value": str(value)}}


# --- expressions ---


def slow_selectors(kind: str, devices: int = 48, selectors: int = 1) -> list[Manifest]:
    """Selectors as dear as the API allows, for devices that all differ. Only the last one is false."""
    expression = expressions.dearest(kind)
    asked = request("slow", 1, *_each_different(expression, selectors))
    return _attack(slices(_different(devices)), claim([asked]))


def slow_class(kind: str, devices: int = 48, selectors: int = 8) -> list[Manifest]:
    """The same in the class."""
    expression = expressions.dearest(kind)
    made = slices(_different(devices))
    return [
        *made,
        device_class(*_each_different(expression, selectors)),
        claim([request("slow")]),
        pod(),
    ]


def slow_derived(kind: str, devices: int = 48, requests: int = 8) -> list[Manifest]:
    """The same in derived attributes (KEP-6080) that a constraint compares; the limit is for all of a claim together."""
    expression = f"string({expressions.dearest(kind, 0.95 / requests)})"
    names = [f"slow-{number}" for number in range(requests)]
    asked = [
        request(name, derivedAttributes=[{"name": "derived", "expression": expression}])
        for name in names
    ]
    constraints = [{"distinctAttribute": "derived", "requests": names}]
    return _attack(slices(_different(devices)), claim(asked, constraints))


def slow_extended_resource(kind: str, devices: int = 48, selectors: int = 8) -> list[Manifest]:
    """The same in a class whose devices serve an extended resource, for a pod that never mentions claims."""
    slow = device_class(*_each_different(expressions.dearest(kind), selectors))
    slow["spec"]["extendedResourceName"] = "bomb.example.com/device"
    wanted = pod()
    del wanted["spec"]["resourceClaims"]
    amount = {"bomb.example.com/device": "2"}
    wanted["spec"]["containers"][0]["resources"] = {"requests": amount, "limits": amount}
    return [*slices(_different(devices)), slow, wanted]


def late_error(kind: str, devices: int = 48) -> list[Manifest]:
    """An expression that takes its time before it fails, on every device."""
    missing = f'{ATTRIBUTE}["missing"] == 1'
    expression = f"!({expressions.dearest(kind)}) && {missing}"
    return _attack(slices(_different(devices)), claim([request("late", 1, expression)]))


def _each_different(expression: str, count: int) -> list[str]:
    """The same cost, but not the same text, so that none is remembered for another. All are true but the last."""
    true = [f"!({expression}) && {ATTRIBUTE}.index != {-1 - number}" for number in range(count - 1)]
    return [*true, expression]


def _different(count: int) -> list[Manifest]:
    return [device(f"d{index}", expressions.attributes_of(index)) for index in range(count)]


# --- many pods ---


def many_at_once(pods: int = 12) -> list[Manifest]:
    """Many pods, each with two claims that are hard together and like no other's."""
    *published, _claim, _pod = exclusive_counters()
    made: list[Manifest] = []
    for number in range(pods):
        bomb = pod(f"bomb-{number}", f"first-{number}")
        second = {"name": "more", "resourceClaimName": f"second-{number}"}
        bomb["spec"]["resourceClaims"].append(second)
        made += [
            claim([request(f"some-{number}", 12)], name=f"first-{number}"),
            claim([request(f"more-{number}", 12)], name=f"second-{number}"),
            bomb,
        ]
    return [*published, *made]


def shared_claim(pods: int = 257) -> list[Manifest]:
    """More pods than one claim may have."""
    made = slices([device("d0")])
    return [
        *made,
        device_class(),
        claim([request("one")]),
        *(pod(f"sharing-{number}") for number in range(pods)),
    ]


def hopeless_claims(pods: int) -> list[Manifest]:
    """A class of devices that do not exist, and so many pods with claims of their own for one of them."""
    return [
        *slices([device("d0")]),
        device_class("false"),
        *(claim([request("none")], name=f"hopeless-{number}") for number in range(pods)),
        *(pod(f"hopeless-{number}", f"hopeless-{number}") for number in range(pods)),
    ]


def status_pools(pools: int = 200, devices: int = 4, capacities: int = 32) -> list[Manifest]:
    """Pools whose status is long to compute and to write down."""
    many = {f"capacity{number}": {"value": f"{number + 1}Gi"} for number in range(capacities)}
    made = [device(f"d{index}", capacity=many) for index in range(devices)]
    return [each for number in range(pools) for each in slices(made, pool=f"pool-{number}")]


def _attack(published: list[Manifest], wanted: Manifest) -> list[Manifest]:
    return [*published, device_class(), wanted, pod()]
