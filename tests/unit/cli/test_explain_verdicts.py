"""Verdicts of `allot explain`: the requests and constraints that cannot be satisfied together, and what to change."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from allot.allocation import explain as explain_devices
from allot.api.identities import ObjectKey
from allot.cli.snapshots import snapshot_of_files
from allot.features import DEFAULTS
from allot.scheduler.configuration import SchedulerConfiguration
from allot.scheduler.explain import device_explainer, proposals
from allot.scheduler.explain.effort import Effort
from allot.scheduler.explain.object_explainer import ObjectExplainer
from allot.scheduler.explain.static_scheduler import DEVICE_KINDS, StaticScheduler
from allot.testing.builders import DRIVER
from allot.testing.manifests import a_class_manifest, a_dra_manifest, a_request_manifest
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
    of_claim,
    of_pod,
    problem,
    slice_of,
)

NIC_DRIVER = "nic.example.com"
NIC_CLASS = a_class_manifest("nic", f"device.driver == '{NIC_DRIVER}'")
NUMA = "resource.kubernetes.io/numa"
PENDING = (
    "Pod default/pod is pending: the only node does not take it (1 cannot allocate all claims); "
)
MATCH = [{"matchAttribute": NUMA}]


def selects(expression: str) -> list[Object]:
    return [{"cel": {"expression": expression}}]


def gpus(*numa: int) -> Object:
    devices = [
        a_gpu(f"gpu-{number}", attributes={NUMA: {"int": value}})
        for number, value in enumerate(numa)
    ]
    return slice_of("node-1", *devices)


def nics(*numa: Object) -> Object:
    devices = [
        {"name": f"nic-{number}", "attributes": {NUMA: value}} for number, value in enumerate(numa)
    ]
    slice_ = slice_of("node-1", *devices)
    slice_["metadata"]["name"] = "nics"
    slice_["spec"]["driver"] = NIC_DRIVER
    return slice_


SHARE: Object = {
    "shareID": "6e7a5a4e-0000-4000-8000-000000000001",
    "consumedCapacity": {"memory": "5377024880"},
}


@pytest.mark.parametrize(
    ("objects", "verdict", "change"),
    [
        pytest.param(
            [
                gpus(0, 1),
                nics({"int": 2}, {"int": 3}),
                my_claim(
                    a_request_manifest("nic", "nic"), a_request_manifest("gpu"), constraints=MATCH
                ),
            ],
            f"requests nic and gpu of claim default/mine cannot meet matchAttribute {NUMA} together:"
            " nic: nic-0 has 2, nic-1 has 3; gpu: gpu-0 has 0, gpu-1 has 1.",
            f"claim default/mine: do not require {NUMA} to match (constraint #0)",
            id="match-between-requests",
        ),
        pytest.param(
            [
                gpus(0, 1),
                nics({"string": "0"}, {"string": "1"}),
                my_claim(
                    a_request_manifest("nic", "nic"), a_request_manifest("gpu"), constraints=MATCH
                ),
            ],
            f"requests nic and gpu of claim default/mine cannot meet matchAttribute {NUMA} together:"
            ' nic: nic-0 has "0" (string), nic-1 has "1" (string);'
            " gpu: gpu-0 has 0 (int), gpu-1 has 1 (int).",
            f"claim default/mine: do not require {NUMA} to match (constraint #0)",
            id="types-differ",
        ),
        pytest.param(
            [gpus(0, 1), my_claim(a_request_manifest("gpu", count=2), constraints=MATCH)],
            f"request gpu of claim default/mine cannot meet matchAttribute {NUMA}:"
            " gpu-0 has 0, gpu-1 has 1.",
            "claim default/mine, request gpu: ask for 1 device instead of 2",
            id="match-within-a-request",
        ),
        pytest.param(
            [
                gpus(0, 1),
                nics({"int": 0}),
                my_claim(
                    a_request_manifest("a"),
                    a_request_manifest(
                        "b", "nic", selectors=selects(f"device.driver == '{DRIVER}'")
                    ),
                ),
            ],
            "request b of claim default/mine finds 0 of 1 device; selector #0 is false for nic-0"
            f" (driver = \"{NIC_DRIVER}\"): device.driver == '{DRIVER}'.",
            f"claim default/mine, request b: do without selector #0 (device.driver == '{DRIVER}')",
            id="a-later-request",
        ),
        pytest.param(
            [gpus(0, 1), my_claim(a_request_manifest("a"), a_request_manifest("b", count=2))],
            "requests a and b of claim default/mine cannot be satisfied together:"
            " b finds 1 of 2 devices; gpu-0: taken by request a of claim default/mine.",
            "claim default/mine, request b: ask for 1 device instead of 2",
            id="together-too-many",
        ),
        pytest.param(
            [
                gpus(0, 1),
                my_claim(
                    a_request_manifest("a", allocationMode="All"),
                    a_request_manifest("b", allocationMode="All"),
                ),
            ],
            "requests a and b of claim default/mine cannot be satisfied together:"
            " b finds 0 of 2 devices; gpu-0, gpu-1: taken by request a of claim default/mine.",
            None,
            id="all-and-all",
        ),
        pytest.param(
            [
                gpus(0, 1, 2, 2),
                my_claim(
                    *(a_request_manifest(name) for name in "abcd"),
                    constraints=[{"distinctAttribute": NUMA}],
                ),
            ],
            "requests a, b, c and d of claim default/mine cannot meet"
            f" distinctAttribute {NUMA} together:"
            " gpu-0 has 0, gpu-1 has 1, gpu-2 and gpu-3 have 2.",
            f"claim default/mine: do not require {NUMA} to be distinct (constraint #0)",
            id="distinct",
        ),
        pytest.param(
            [
                slice_of("node-1", a_gpu(allowMultipleAllocations=True)),
                my_claim(
                    a_request_manifest("gpu", count=2, capacity={"requests": {"memory": "1Gi"}})
                ),
            ],
            "request gpu of claim default/mine finds 1 of 2 devices;"
            " gpu-0: already in this request, which never gets one device twice.",
            "claim default/mine, request gpu: ask for 1 device instead of 2",
            id="one-shared-device-twice",
        ),
        pytest.param(
            [
                slice_of("node-1", a_gpu(memory="10Gi", allowMultipleAllocations=True)),
                allocated(my_claim(name="other"), **SHARE),
                my_claim(a_request_manifest("gpu", capacity={"requests": {"memory": "6Gi"}})),
            ],
            "request gpu of claim default/mine finds 0 of 1 device;"
            " gpu-0: capacity memory: 6Gi requested, 5112Mi of 10Gi left.",
            "claim default/mine, request gpu: ask for 5112Mi of memory instead of 6Gi",
            id="capacity-in-units-for-people",
        ),
    ],
)
def test_requests_and_constraints_that_cannot_be_satisfied(
    objects: list[Object], verdict: str, change: str | None
) -> None:
    found = of_pod(NODE, NIC_CLASS, *objects, my_pod())

    assert problem(found) == f"{PENDING}{verdict}"
    advice = [f" What would help: {each['change']}." for each in found["proposals"][:1]]
    assert found["verdict"] == "".join([problem(found), *advice])
    assert found["nodes"][0]["conflict"]["proof"] == "Irreducible"
    if change is not None:
        assert f"node-1: {change}" in changes(found)


def test_the_values_are_in_the_structured_form() -> None:
    found = of_pod(
        NODE,
        NIC_CLASS,
        gpus(0),
        nics({"string": "0"}),
        my_claim(a_request_manifest("nic", "nic"), a_request_manifest("gpu"), constraints=MATCH),
        my_pod(),
    )

    conflict = found["nodes"][0]["conflict"]
    assert [each["request"] for each in conflict["requests"]] == ["nic", "gpu"]
    (constraint,) = conflict["constraints"]
    assert (constraint["constraint"], constraint["attribute"]) == (0, NUMA)
    assert constraint["sides"][0]["values"] == [
        {"value": {"value": "0", "type": "string"}, "devices": [f"{NIC_DRIVER}/node-1/nic-0"]}
    ]
    (refusal, _) = found["nodes"][0]["requests"][1]["refusals"]
    assert refusal["because"] == {
        "kind": "ConstraintUnmet",
        "attribute": NUMA,
        "mustMatch": True,
        "value": {"value": "0", "type": "int"},
        "others": [
            {
                "device": f"{NIC_DRIVER}/node-1/nic-0",
                "value": {"value": "0", "type": "string"},
            }
        ],
    }
    assert found["proposals"][0]["action"]["kind"] == "WithoutConstraint"


def test_constraints_on_two_attributes_tell_the_values_of_each() -> None:
    pcie = "example.com/pcie"

    def device(name: str, numa: int, switch: int) -> Object:
        return a_gpu(name, attributes={NUMA: {"int": numa}, pcie: {"int": switch}})

    found = of_pod(
        NODE,
        slice_of("node-1", device("gpu-0", 0, 1), device("gpu-1", 0, 1), device("gpu-2", 1, 2)),
        my_claim(
            a_request_manifest("gpu", count=2),
            constraints=[{"matchAttribute": NUMA}, {"distinctAttribute": pcie}],
        ),
        my_pod(),
    )

    assert problem(found) == (
        f"{PENDING}request gpu of claim default/mine cannot meet matchAttribute {NUMA} and"
        f" distinctAttribute {pcie} together: for {NUMA}, gpu-0 and gpu-1 have 0, gpu-2 has 1;"
        f" for {pcie}, gpu-0 and gpu-1 have 1, gpu-2 has 2."
    )


def test_constraints_on_alternatives_are_told_apart_and_only_with_what_they_cover() -> None:
    two = {"name": "two", "deviceClassName": "gpu", "count": 2}
    near = {
        "name": "near",
        "deviceClassName": "gpu",
        "selectors": selects("device.attributes['resource.kubernetes.io'].numa == 0"),
    }
    found = of_pod(
        NODE,
        NIC_CLASS,
        gpus(0, 0, 1),
        nics({"int": 1}, {"int": 2}),
        my_claim(
            {"name": "gpu", "firstAvailable": [two, near]},
            a_request_manifest("nic", "nic"),
            constraints=[
                {"requests": ["gpu/two", "nic"], "matchAttribute": NUMA},
                {"requests": ["gpu/near", "nic"], "matchAttribute": NUMA},
            ],
        ),
        my_pod(),
    )

    assert problem(found) == (
        f"{PENDING}requests gpu and nic of claim default/mine cannot meet matchAttribute {NUMA}"
        " (constraints #0 and #1) together: gpu/two: gpu-0 and gpu-1 have 0, gpu-2 has 1;"
        " nic: nic-0 has 1, nic-1 has 2; gpu/near: gpu-0 and gpu-1 have 0."
    )


def test_requests_of_different_claims_are_told_apart() -> None:
    entries = [{"name": name, "resourceClaimName": name} for name in ("a", "b")]
    claims = [my_claim(a_request_manifest("gpu"), name=name) for name in ("a", "b")]

    found = of_pod(NODE, gpus(0), *claims, my_pod("pod", *entries))

    assert problem(found) == (
        f"{PENDING}request gpu of claim default/a and request gpu of claim default/b cannot be"
        " satisfied together: request gpu of claim default/b finds 0 of 1 device; gpu-0: taken by"
        " request gpu of claim default/a."
    )


def test_an_attribute_with_a_typo_is_reported_once() -> None:
    expression = f"device.attributes['{DRIVER}'].nuam == 0"
    objects = [
        NODE,
        slice_of("node-1", a_gpu("gpu-0"), a_gpu("gpu-1")),
        my_claim(a_request_manifest("gpu", selectors=selects(expression))),
        my_pod(),
    ]
    found = of_pod(*objects)
    shown = explain("pod/pod", objects=[CLASS, *objects])

    assert problem(found) == (
        "Pod default/pod cannot be scheduled: request gpu of claim default/mine finds 0 of 1"
        f" device; gpu-0, gpu-1: selector #0 reads {DRIVER}/nuam, which is not set: {expression};"
        f" did you mean {DRIVER}/numa?"
    )
    assert changes(found)[0] == (
        "node-1: claim default/mine, request gpu:"
        f" write {DRIVER}/numa instead of {DRIVER}/nuam in selector #0"
    )
    assert "CEL runtime error" not in shown
    assert "filter plugin" not in shown


def test_an_attribute_that_some_devices_lack() -> None:
    expression = f"device.attributes['{DRIVER}'].numa == 1"
    found = of_pod(
        NODE,
        slice_of("node-1", a_gpu("gpu-0", attributes={}), a_gpu("gpu-1", numa=1)),
        my_claim(a_request_manifest("gpu", selectors=selects(expression))),
        my_pod(),
    )

    assert f"gpu-0: selector #0 reads {DRIVER}/numa, which is not set" in found["verdict"]
    assert "guard it with has(), or with .? and orValue()" in found["verdict"]


def derives(name: str, expression: str) -> Object:
    derived = {"name": "example.com/zone", "expression": expression}
    return a_request_manifest(name, derivedAttributes=[derived])


DERIVED_MATCH = [{"matchAttribute": "example.com/zone"}]


def test_a_guard_helps_where_a_node_without_the_attribute_spoils_it_for_all() -> None:
    """The right device is on node-2; that the expression fails on node-1 keeps the pod from both."""
    anything = a_class_manifest("anything")
    expression = f'device.attributes["{DRIVER}"].model == "big"'
    request = a_request_manifest("gpu", "anything", selectors=selects(expression))
    model = {f"{DRIVER}/model": {"string": "big"}}

    found = of_pod(
        NODE,
        node_with("node-2"),
        anything,
        slice_of("node-1", a_gpu()),
        slice_of("node-2", a_gpu(attributes=model)),
        my_claim(request),
        my_pod(),
    )

    guard = f'has(device.attributes["{DRIVER}"].model)'
    change = f"claim default/mine, request gpu: write {guard} && before selector #0"
    assert found["state"] == "Failed"
    assert changes(found)[0] == f"node-2: {change}"
    assert found["verdict"].endswith(f" What would help: {change}.")
    assert found["proposals"][0]["action"]["kind"] == "GuardedSelector"


def test_a_guard_is_no_help_if_no_node_has_the_device() -> None:
    anything = a_class_manifest("anything")
    expression = f'device.attributes["{DRIVER}"].model == "big"'
    request = a_request_manifest("gpu", "anything", selectors=selects(expression))

    found = of_pod(NODE, anything, slice_of("node-1", a_gpu()), my_claim(request), my_pod())

    kinds = {each["action"]["kind"] for each in found["proposals"]}
    assert kinds == {"WithoutSelector"}


def test_derived_attributes_of_different_types() -> None:
    found = of_pod(
        NODE,
        gpus(0, 1),
        my_claim(derives("a", "1"), derives("b", "'1'"), constraints=DERIVED_MATCH),
        my_pod(),
    )

    assert problem(found).endswith(
        "cannot meet matchAttribute example.com/zone together:"
        ' a: gpu-0 and gpu-1 have 1 (int); b: gpu-0 and gpu-1 have "1" (string).'
    )


def test_only_one_side_derives() -> None:
    found = of_pod(
        NODE,
        gpus(0, 1),
        my_claim(derives("a", "1"), a_request_manifest("b"), constraints=DERIVED_MATCH),
        my_pod(),
    )

    assert problem(found).endswith(
        "request b of claim default/mine cannot meet matchAttribute example.com/zone:"
        " gpu-0 and gpu-1 do not have it."
    )


def test_a_derived_attribute_that_fails() -> None:
    expression = f"device.attributes['{DRIVER}'].nope"
    found = of_pod(
        NODE,
        gpus(0, 1),
        my_claim(derives("a", expression), a_request_manifest("b"), constraints=DERIVED_MATCH),
        my_pod(),
    )

    assert (
        "request a of claim default/mine finds 0 of 1 device; gpu-0, gpu-1:"
        f" derived attribute example.com/zone reads {DRIVER}/nope, which is not set: {expression}"
        in found["verdict"]
    )


def test_more_devices_than_a_claim_can_have() -> None:
    requests = [a_request_manifest(f"r{number}", count=11) for number in range(3)]
    found = of_pod(NODE, gpus(*range(33)), my_claim(*requests), my_pod())

    assert problem(found) == (
        "Pod default/pod cannot be scheduled: requests r0, r1 and r2 of claim default/mine cannot be"
        " satisfied together: r2 finds 0 of 11 devices;"
        " number of requested devices 33 exceeds the claim limit of 32."
    )


def test_all_devices_and_a_constraint_that_they_break() -> None:
    found = of_pod(
        NODE,
        gpus(0, 1),
        my_claim(a_request_manifest("gpu", allocationMode="All"), constraints=MATCH),
        my_pod(),
    )

    assert problem(found) == (
        "Pod default/pod cannot be scheduled: request gpu of claim default/mine cannot meet"
        f" matchAttribute {NUMA}: gpu-0 has 0, gpu-1 has 1."
    )
    assert changes(found) == [
        "node-1: claim default/mine, request gpu: ask for 1 device instead of all",
        f"node-1: claim default/mine: do not require {NUMA} to match (constraint #0)",
    ]


# --- the nearest node ---


def test_the_nearest_node_has_the_fewest_requests_in_conflict_then_devices_short_then_its_name() -> (
    None
):
    claim = my_claim(a_request_manifest("a", count=2), a_request_manifest("b", count=2))
    nodes = {
        "node-a": [],  # no devices of the class
        "node-b": [a_gpu("gpu-0")],  # request a is short of one
        "node-c": [a_gpu(f"gpu-{number}") for number in range(3)],  # both requests together
        "node-d": [a_gpu("gpu-0")],
    }
    found = of_pod(
        *(node_with(name) for name in nodes),
        *(slice_of(name, *devices) for name, devices in nodes.items() if devices),
        claim,
        my_pod(),
    )

    assert [node["node"] for node in found["nodes"]] == ["node-b", "node-d", "node-c", "node-a"]
    assert "on node node-b, which comes nearest, request a" in found["verdict"]


def test_nodes_that_look_alike_are_explained_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(*arguments: Any, **options: Any) -> Any:
        asked.append(arguments)
        return explain_devices(*arguments, **options)

    monkeypatch.setattr(device_explainer, "explain", counted)
    monkeypatch.setattr(proposals, "explain", counted)
    names = [f"node-{number}" for number in range(20)]
    found = of_pod(
        *map(node_with, names),
        *(slice_of(name, a_gpu("gpu-0"), a_gpu("gpu-1")) for name in names),
        *(allocated(my_claim(name=f"of-{name}"), node=name) for name in names),
        my_claim(a_request_manifest("gpu", count=2)),
        my_pod(),
    )

    assert len(asked) == 2, "once to say why, once for what would help"
    refusals = [node["requests"][0]["refusals"] for node in found["nodes"]]
    assert [(each["reason"], each["devices"]) for (each,) in refusals] == [
        (f"held by claim default/of-{node['node']}", [f"{DRIVER}/{node['node']}/gpu-0"])
        for node in found["nodes"]
    ]


# --- node selectors ---


def test_a_node_selector_that_no_node_meets() -> None:
    found = of_pod(
        node_with("node-1", zone="a"),
        node_with("node-2", zone="b"),
        slice_of("node-1", a_gpu()),
        my_claim(),
        my_pod(nodeSelector={"zone": "c"}),
    )

    assert changes(found) == [
        "node-1: pod, nodeSelector: ask for zone=a instead of c",
        "node-1: pod, nodeSelector: do without zone=c",
    ]
    assert found["notes"] == []


def test_a_node_selector_against_an_affinity() -> None:
    zone = [{"key": "zone", "operator": "In", "values": ["b"]}]
    required = {"nodeSelectorTerms": [{"matchExpressions": zone}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}

    found = of_pod(
        node_with("node-1", zone="a"),
        slice_of("node-1", a_gpu()),
        my_claim(),
        my_pod(nodeSelector={"zone": "a"}, affinity=affinity),
    )

    assert changes(found) == ["node-1: pod: do without the required node affinity"]


def test_names_of_nodes_are_never_placeholders() -> None:
    label = "kubernetes.io/hostname"
    names = ("node-1", "node-2")
    shown = explain(
        "pod/pod",
        objects=[
            CLASS,
            *(node_with(name, **{label: name}) for name in names),
            slice_of("node-1", a_gpu()),
            my_claim(),
            my_pod(nodeSelector={label: "gone"}),
        ],
    )

    assert "<node>" not in shown
    assert f"the pod asks for {label}=gone, and here it is node-1 (on node-1)" in shown
    assert f"- pod, nodeSelector: ask for {label}=node-1 instead of gone" in shown


# --- alternatives ---


def test_why_an_allocated_claim_has_not_got_a_better_alternative() -> None:
    alternatives = [
        {"name": "four", "deviceClassName": "gpu", "count": 4},
        {"name": "two", "deviceClassName": "gpu", "count": 2},
        {"name": "one", "deviceClassName": "gpu", "count": 1},
    ]
    claim = my_claim({"name": "gpu", "firstAvailable": alternatives})
    objects = [
        NODE,
        slice_of("node-1", a_gpu("gpu-0"), a_gpu("gpu-1"), a_gpu("gpu-2")),
        allocated(claim, request="gpu/one"),
        allocated(my_claim(name="other"), "gpu-1"),
    ]

    found = of_claim(*objects)
    shown = explain("claim/mine", objects=[CLASS, *objects])

    four, two = found["summary"]["preferred"]
    assert (four["request"], two["request"]) == ("gpu/four", "gpu/two")
    assert four["reason"] == (
        "request gpu of claim default/mine finds 2 of 4 devices; gpu-1: held by claim default/other"
    )
    assert two["reason"] == "", "gpu-2 is free"
    assert "  not gpu/four, which comes before: now, request gpu of claim default/mine" in shown
    assert (
        "  not gpu/two, which comes before: it was not available then; now it is, on node node-1"
        in shown
    )


# --- what is shown ---


def test_devices_of_other_classes_are_shown_on_request() -> None:
    objects = [
        CLASS,
        NIC_CLASS,
        NODE,
        gpus(0),
        nics({"int": 0}),
        my_claim(a_request_manifest("gpu", count=2)),
        my_pod(),
    ]

    short = explain("pod/pod", objects=objects)
    long = explain("pod/pod", "--all", objects=objects)

    assert "nic-0" not in short
    assert "request gpu: 1 of 2 devices found; there are no more of its class here\n" in short
    assert "nic-0: class gpu: selector #0 is false" in long
    assert short.index("What would help") < short.index("Why, node by node")


def test_asking_does_not_change_the_model(tmp_path: Path) -> None:
    """A claim that is to be made from a template is made for the question only."""
    spec = {"devices": {"requests": [a_request_manifest("gpu")]}}
    template = a_dra_manifest("ResourceClaimTemplate", "template", {"spec": spec})
    pod = my_pod("pod", {"name": "gpu", "resourceClaimTemplateName": "template"})
    file = tmp_path / "all.yaml"
    file.write_text(yaml.safe_dump_all([CLASS, NODE, gpus(0), template, pod]))
    now = datetime.now(UTC)
    snapshot = snapshot_of_files([str(file)], DEVICE_KINDS)
    model = StaticScheduler(snapshot, SchedulerConfiguration(), DEFAULTS, lambda: now)
    info = model.pods[ObjectKey("default", "pod")]

    answers = [ObjectExplainer(model, Effort()).of_pod(info) for _ in range(2)]

    assert answers[0] == answers[1]
    assert answers[0].verdict.endswith("it would fit on node node-1.")
    assert model.claim(ObjectKey("default", "pod-gpu")) is None


def test_without_time_nothing_is_said_to_be_proven(tmp_path: Path) -> None:
    claim = my_claim(a_request_manifest("a"), a_request_manifest("b", count=2))
    file = tmp_path / "all.yaml"
    file.write_text(yaml.safe_dump_all([CLASS, NODE, gpus(0, 1), claim, my_pod()]))
    now = datetime.now(UTC)
    snapshot = snapshot_of_files([str(file)], DEVICE_KINDS)
    model = StaticScheduler(snapshot, SchedulerConfiguration(), DEFAULTS, lambda: now)
    info = model.pods[ObjectKey("default", "pod")]
    no_time = Effort(stopwatch=lambda: lambda: True)

    found = ObjectExplainer(model, no_time).of_pod(info)

    assert found.verdict == (
        f"{PENDING}it is not proven which requests cannot be satisfied together: the time for that"
        " ended."
    )
    assert found.notes == (
        "0 nodes were looked at closely, 1 was not.",
        "Not everything that might help was tried.",
    )
