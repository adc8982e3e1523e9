"""What `allot explain` proposes: the change that a person would make, tried before it is shown."""

from __future__ import annotations

import pytest

from allot.testing.builders import DRIVER
from allot.testing.manifests import a_class_manifest, a_request_manifest
from tests.unit.cli.explain_objects import (
    CLASS,
    NODE,
    Object,
    a_gpu,
    allocated,
    changes,
    explain,
    my_claim,
    my_pod,
    node_with,
    of_pod,
    problem,
    slice_of,
)

MODEL = {"model": {"string": "A100"}}
MINE = "node-1: claim default/mine"
TAINTS = [
    {"key": "example.com/broken", "value": "yes", "effect": "NoSchedule"},
    {"key": "example.com/drain", "effect": "NoExecute"},
]


def selects(*expressions: str) -> list[Object]:
    return [{"cel": {"expression": each}} for each in expressions]


def shared(memory: Object | None = None) -> Object:
    capacity = {"memory": memory or {"value": "80Gi"}}
    return slice_of(
        "node-1", {"name": "gpu-0", "capacity": capacity, "allowMultipleAllocations": True}
    )


def asks(name: str, **capacity: str) -> Object:
    return a_request_manifest(name, capacity={"requests": capacity})


def derives(name: str, expression: str) -> list[Object]:
    return [{"name": name, "expression": expression}]


SHARE: Object = {
    "shareID": "6e7a5a4e-0000-4000-8000-000000000001",
    "consumedCapacity": {"memory": "5377024880"},
}
STEPS = {
    "value": "10Gi",
    "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}},
}
HELD = allocated(my_claim(a_request_manifest("gpu"), name="other"), **SHARE)


@pytest.mark.parametrize(
    ("objects", "proposed"),
    [
        pytest.param(
            [
                slice_of("node-1", a_gpu("gpu-0"), a_gpu("gpu-1")),
                my_claim(*(a_request_manifest(each, allocationMode="All") for each in "ab")),
            ],
            [f"{MINE}: do without request b", f"{MINE}: do without request a"],
            id="all-and-all",
        ),
        pytest.param(
            [
                slice_of("node-1", a_gpu("gpu-0"), a_gpu("gpu-1")),
                my_claim(a_request_manifest("a"), a_request_manifest("b", allocationMode="All")),
            ],
            [f"{MINE}, request b: ask for 1 device instead of all"],
            id="one-and-all",
        ),
        pytest.param(
            [
                slice_of("node-1", *(a_gpu(f"gpu-{number:02}") for number in range(40))),
                my_claim(a_request_manifest("a", allocationMode="All")),
            ],
            [f"{MINE}, request a: ask for 32 devices instead of all"],
            id="all-are-too-many",
        ),
        pytest.param(
            [shared(), my_claim(asks("a", memory="50Gi"), asks("b", memory="50Gi"))],
            [f"{MINE}, request b: ask for 30Gi of memory instead of 50Gi"],
            id="what-the-other-request-leaves",
        ),
        pytest.param(
            [shared(STEPS), HELD, my_claim(asks("a", memory="6Gi"))],
            [f"{MINE}, request a: ask for 4Gi of memory instead of 6Gi"],
            id="whole-steps-of-what-is-left",
        ),
        pytest.param(
            [shared(STEPS), HELD, my_claim(asks("a", memory="600Gi"))],
            [f"{MINE}, request a: ask for 4Gi of memory instead of 600Gi"],
            id="more-than-there-is",
        ),
        pytest.param(
            [shared(), HELD, my_claim(a_request_manifest("a"))],
            [f"{MINE}, request a: ask for 76792Mi of memory instead of 80Gi"],
            id="all-of-it-because-nothing-is-stated",
        ),
        pytest.param(
            [shared(), my_claim(asks("a", **{f"{DRIVER}/memory": "10Gi"}))],
            [f"{MINE}, request a: ask for capacity memory instead of {DRIVER}/memory"],
            id="qualified-capacity",
        ),
        pytest.param(
            [shared(), my_claim(asks("a", memroy="10Gi"))],
            [f"{MINE}, request a: ask for capacity memory instead of memroy"],
            id="misspelled-capacity",
        ),
        pytest.param(
            [slice_of("node-1", a_gpu("gpu-0", taints=TAINTS)), my_claim(a_request_manifest("a"))],
            [
                (
                    f"{MINE}, request a: tolerate the taints example.com/broken:NoSchedule and"
                    " example.com/drain:NoExecute"
                )
            ],
            id="two-taints",
        ),
        pytest.param(
            [
                slice_of("node-1", a_gpu("gpu-0", attributes=MODEL)),
                my_claim(
                    a_request_manifest(
                        "a", selectors=selects(f"device.attributes['{DRIVER}']['modell'] == 'A100'")
                    )
                ),
            ],
            [
                f"{MINE}, request a: write {DRIVER}/model instead of {DRIVER}/modell in selector #0",
                (
                    f"{MINE}, request a: do without selector #0"
                    f" (device.attributes['{DRIVER}']['modell'] == 'A100')"
                ),
            ],
            id="typo-in-brackets",
        ),
        pytest.param(
            [
                slice_of("node-1", a_gpu("gpu-0", attributes=MODEL)),
                my_claim(
                    a_request_manifest(
                        "a", derivedAttributes=derives("x", f"device.attributes['{DRIVER}'].modle")
                    ),
                    constraints=[{"matchAttribute": "x"}],
                ),
            ],
            [
                (
                    f"{MINE}, request a: write {DRIVER}/model instead of {DRIVER}/modle in derived"
                    " attribute x"
                ),
                f"{MINE}: do not require x to match (constraint #0)",
            ],
            id="typo-in-a-derived-attribute",
        ),
        pytest.param(
            [
                slice_of("node-1", a_gpu("gpu-0", numa=0), a_gpu("gpu-1", numa=0)),
                my_claim(
                    a_request_manifest("a", count=2),
                    constraints=[{"matchAttribute": f"{DRIVER}/nuna"}],
                ),
            ],
            [
                f"{MINE}: write {DRIVER}/numa instead of {DRIVER}/nuna in constraint #0",
                f"{MINE}: do not require {DRIVER}/nuna to match (constraint #0)",
            ],
            id="misspelled-attribute-of-a-constraint",
        ),
        pytest.param(
            [
                slice_of("node-1", a_gpu("gpu-0"), a_gpu("gpu-1")),
                my_claim(
                    a_request_manifest("a", derivedAttributes=derives("example.com/x", "1")),
                    a_request_manifest("b"),
                    constraints=[{"matchAttribute": "example.com/x"}],
                ),
            ],
            [
                f"{MINE}, request b: derive example.com/x as request a does",
                f"{MINE}: do not require example.com/x to match (constraint #0)",
            ],
            id="only-one-side-derives",
        ),
        pytest.param(
            [
                slice_of("node-1", a_gpu("gpu-0"), a_gpu("gpu-1")),
                my_claim(
                    a_request_manifest("a", derivedAttributes=derives("x", "1")),
                    a_request_manifest("b", derivedAttributes=derives("x", "'1'")),
                    constraints=[{"matchAttribute": "x"}],
                ),
            ],
            [
                f"{MINE}, request a: convert derived attribute x with string()",
                f"{MINE}, request b: convert derived attribute x with int()",
                f"{MINE}: do not require x to match (constraint #0)",
            ],
            id="types",
        ),
    ],
)
def test_changes_that_help(objects: list[Object], proposed: list[str]) -> None:
    found = of_pod(NODE, *objects, my_pod())

    own = [each for each in changes(found) if "more device" not in each and "release" not in each]
    assert own == proposed
    assert found["verdict"].endswith(f"What would help: {found['proposals'][0]['change']}.")


def test_too_many_devices_in_mode_all() -> None:
    gpus = slice_of("node-1", *(a_gpu(f"gpu-{number:02}") for number in range(40)))
    found = of_pod(NODE, gpus, my_claim(a_request_manifest("a", allocationMode="All")), my_pod())

    assert problem(found) == (
        "Pod default/pod cannot be scheduled: request a of claim default/mine wants all devices;"
        " number of requested devices 40 exceeds the claim limit of 32."
    )


def test_a_typo_in_a_class_is_corrected_there() -> None:
    wrong = a_class_manifest("typo", f"device.attributes['{DRIVER}'].modell == 'A100'")
    gpus = slice_of("node-1", a_gpu("gpu-0", attributes=MODEL))
    claim = my_claim({"name": "a", "exactly": {"deviceClassName": "typo"}})
    found = of_pod(NODE, wrong, gpus, claim, my_pod())

    assert changes(found) == [
        f"node-1: class typo: write {DRIVER}/model instead of {DRIVER}/modell in selector #0"
    ]


def test_a_guard_for_a_class() -> None:
    wrong = a_class_manifest("typo", f"device.attributes['{DRIVER}'].model == 'A100' || false")
    gpus = slice_of("node-1", a_gpu("gpu-0", attributes={}), a_gpu("gpu-1", attributes=MODEL))
    claim = my_claim({"name": "a", "exactly": {"deviceClassName": "typo"}})
    found = of_pod(NODE, wrong, gpus, claim, my_pod())

    assert changes(found)[:1] == [
        (
            "node-1: class typo: put selector #0 in parentheses, and write"
            f" has(device.attributes['{DRIVER}'].model) && before it"
        )
    ]


def test_devices_without_a_similar_name_are_told_with_the_others() -> None:
    gpus = slice_of("node-1", a_gpu("gpu-0", attributes=MODEL), a_gpu("gpu-1"))
    expression = f"device.attributes['{DRIVER}'].modell == 'A100'"
    claim = my_claim(a_request_manifest("a", selectors=selects(expression)))
    found = of_pod(NODE, gpus, claim, my_pod())

    assert problem(found) == (
        "Pod default/pod cannot be scheduled: request a of claim default/mine finds 0 of 1 device;"
        f" gpu-0, gpu-1: selector #0 reads {DRIVER}/modell, which is not set: {expression};"
        f" did you mean {DRIVER}/model?"
    )


def test_an_alternative_whose_class_does_not_exist() -> None:
    alternatives = [
        {"name": "new", "deviceClassName": "gpus"},
        {"name": "old", "deviceClassName": "gpu", "count": 3},
    ]
    claim = my_claim({"name": "a", "firstAvailable": alternatives})
    found = of_pod(NODE, slice_of("node-1", a_gpu()), claim, my_pod())

    assert "a/new finds 0 of 1 device (device class gpus does not exist)" in found["verdict"]
    assert changes(found)[0] == f"{MINE}, request a/new: ask for class gpu instead of gpus"


def test_a_disabled_feature_is_the_cause() -> None:
    derived = a_request_manifest("a", derivedAttributes=derives("x", "1"))
    claim = my_claim(derived, constraints=[{"matchAttribute": "x"}])
    text = explain(
        "pod/pod",
        "--feature-gates",
        "DRADerivedAttributes=false",
        objects=[CLASS, NODE, slice_of("node-1", a_gpu()), claim, my_pod()],
    )

    assert (
        "gpu-0 does not have it; derived attributes are ignored, because feature gate"
        " DRADerivedAttributes is off. What would help: switch on feature gate"
        " DRADerivedAttributes." in text
    )


def test_a_change_that_leaves_an_error_on_another_node_is_no_help() -> None:
    """An error on any node keeps the pod from being scheduled at all."""
    right = slice_of("node-1", a_gpu("gpu-0", attributes=MODEL))
    without = slice_of("node-2", a_gpu("gpu-0", attributes={}))
    expression = f"device.attributes['{DRIVER}'].model == 'A100'"
    claim = my_claim(a_request_manifest("a", count=2, selectors=selects(expression)))
    found = of_pod(NODE, node_with("node-2"), right, without, claim, my_pod())

    assert found["proposals"] == []


# --- nodes ---


def test_taints_of_nodes() -> None:
    tainted = node_with("node-1")
    tainted["spec"] = {"taints": [{"key": "gpu", "value": "only", "effect": "NoSchedule"}]}
    claim = my_claim(a_request_manifest("a"))
    found = of_pod(tainted, slice_of("node-1", a_gpu()), claim, my_pod())

    assert problem(found) == (
        "Pod default/pod is pending: the only node does not take it (1 node(s) had untolerated"
        " taint(s)); the pod does not tolerate taint gpu=only:NoSchedule."
    )
    assert changes(found) == ["node-1: pod: tolerate the node taint gpu=only:NoSchedule"]


def test_a_cordoned_node_is_not_talked_around() -> None:
    cordoned = node_with("node-1")
    unschedulable = "node.kubernetes.io/unschedulable"
    cordoned["spec"] = {
        "unschedulable": True,
        "taints": [{"key": unschedulable, "effect": "NoSchedule"}],
    }
    claim = my_claim(a_request_manifest("a"))
    found = of_pod(cordoned, slice_of("node-1", a_gpu()), claim, my_pod())

    assert changes(found) == []


def test_two_labels_that_no_node_has() -> None:
    claim = my_claim(a_request_manifest("a"))
    pod = my_pod(nodeSelector={"zone": "a", "tier": "gold"})
    found = of_pod(NODE, slice_of("node-1", a_gpu()), claim, pod)

    assert changes(found) == ["node-1: pod: do without the nodeSelector tier=gold and zone=a"]


# --- errors ---

READS_MODEL = f"device.attributes['{DRIVER}'].model == 'A100'"
HAS_MODEL = f"has(device.attributes['{DRIVER}'].model)"
NOT_EVERYWHERE = slice_of("node-1", a_gpu("gpu-0", attributes=MODEL), a_gpu("gpu-1", attributes={}))


def test_an_error_in_mode_all() -> None:
    all_of_a_model = a_request_manifest("a", allocationMode="All", selectors=selects(READS_MODEL))
    found = of_pod(NODE, NOT_EVERYWHERE, my_claim(all_of_a_model), my_pod())

    assert problem(found) == (
        "Pod default/pod cannot be scheduled: request a of claim default/mine wants all devices;"
        f" gpu-1: selector #0 reads {DRIVER}/model, which is not set: {READS_MODEL};"
        " guard it with has(), or with .? and orValue()."
    )
    assert changes(found)[0] == f"{MINE}, request a: write {HAS_MODEL} && before selector #0"


@pytest.mark.parametrize("mode", ["All", "ExactCount"])
def test_an_error_in_one_alternative_is_not_blamed_on_another(mode: str) -> None:
    failing = {"name": "a", "deviceClassName": "gpu", "selectors": selects(READS_MODEL)}
    mode_of_a = {"allocationMode": "All"} if mode == "All" else {"count": 2}
    alternatives = [failing | mode_of_a, {"name": "b", "deviceClassName": "gpu"}]
    claim = my_claim({"name": "gpu", "firstAvailable": alternatives})
    found = of_pod(NODE, NOT_EVERYWHERE, claim, my_pod())

    how_far = "wants all devices" if mode == "All" else "finds 1 of 2 devices"
    assert problem(found) == (
        "Pod default/pod cannot be scheduled: request gpu of claim default/mine cannot be decided:"
        f" gpu/a {how_far} (gpu-1: selector #0 reads {DRIVER}/model, which is not set:"
        f" {READS_MODEL}; guard it with has(), or with .? and orValue())."
    )
    assert f"{MINE}: use only alternative gpu/b" in changes(found)


def test_an_error_that_occurs_only_after_a_conflict() -> None:
    """The last alternative of the first claim is tried because the second claim does not fit."""
    failing = {"name": "b", "deviceClassName": "gpu", "selectors": selects(READS_MODEL)}
    alternatives = [{"name": "a", "deviceClassName": "gpu"}, failing]
    first = my_claim({"name": "gpu", "firstAvailable": alternatives}, name="first")
    second = my_claim(a_request_manifest("gpu", count=3), name="second")
    entries = [{"name": each, "resourceClaimName": each} for each in ("first", "second")]
    found = of_pod(NODE, NOT_EVERYWHERE, first, second, my_pod("pod", *entries))

    assert problem(found) == (
        "Pod default/pod cannot be scheduled: request gpu of claim default/second finds 2 of 3"
        " devices; there are no more devices."
    )
    assert found["proposals"]
