"""`allot explain` from files: one story after the other."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from allot.api.core import Node, Pod
from allot.api.identities import ObjectKey
from allot.cli.errors import CommandError
from allot.cli.explain import explained, read_target
from allot.cli.main import allot
from allot.client import resources
from allot.client.snapshot import Snapshot
from allot.features import DEFAULTS
from allot.scheduler.configuration import SchedulerConfiguration
from allot.scheduler.explain.effort import Effort
from allot.scheduler.explain.object_explainer import ObjectExplainer
from allot.scheduler.explain.static_scheduler import StaticScheduler
from allot.testing.builders import DRIVER
from allot.testing.manifests import a_dra_manifest, a_request_manifest
from tests.unit.cli.explain_objects import (
    CLASS,
    NODE,
    Object,
    a_gpu,
    allocated,
    changes,
    exactly,
    explain,
    my_claim,
    my_pod,
    node_with,
    of_claim,
    of_pod,
    problem,
    reasons,
    slice_of,
)

# --- why devices cannot be had ---


def test_there_are_no_devices_at_all() -> None:
    shown = explain("pod/pod", objects=[CLASS, NODE, my_claim(), my_pod()])

    assert shown == (
        "Pod default/pod is pending: the only node does not take it (1 cannot allocate all claims);"
        " request gpu of claim default/mine finds 0 of 1 device; there are no devices.\n"
        "\n"
        "Note: No single change was found that would make it fit.\n"
        "\n"
        "Claims\n"
        "  gpu: default/mine (not allocated)\n"
        "\n"
        "Why, node by node\n"
        "  node node-1: cannot allocate all claims\n"
        "    claim default/mine, request gpu: 0 of 1 device found; there are none of its class here\n"
    )


def test_text_is_wrapped_to_a_width() -> None:
    objects = [CLASS, NODE, my_claim(), my_pod()]

    shown = explain("pod/pod", "--width", "60", objects=objects)

    assert max(map(len, shown.splitlines())) <= 60
    assert shown.split() == explain("pod/pod", objects=objects).split()


def test_devices_are_taken_and_by_whom() -> None:
    found = of_pod(
        NODE,
        slice_of("node-1", a_gpu("gpu-0"), a_gpu("gpu-1")),
        allocated(my_claim(name="first"), "gpu-0"),
        allocated(my_claim(name="second"), "gpu-1"),
        my_claim(),
        my_pod(),
    )

    assert problem(found).endswith(
        "finds 0 of 1 device; gpu-0, gpu-1: held by claims default/first, default/second."
    )
    assert reasons(found) == [
        ("held by claim default/first", ["gpu-0"]),
        ("held by claim default/second", ["gpu-1"]),
    ]
    assert "node-1: release claim default/first" in changes(found)


def test_a_selector_is_false_and_of_which_values() -> None:
    expression = f"device.capacity['{DRIVER}'].memory.compareTo(quantity('100Gi')) >= 0"
    found = of_pod(
        NODE,
        slice_of("node-1", a_gpu()),
        my_claim(exactly(selectors=[{"cel": {"expression": expression}}])),
        my_pod(),
    )

    assert reasons(found) == [
        (f"claim default/mine: selector #0 is false: {expression} (memory = 80Gi)", ["gpu-0"])
    ]
    assert changes(found) == [
        f"node-1: claim default/mine, request gpu: do without selector #0 ({expression})"
    ]


def test_what_is_left_of_a_capacity_is_too_small() -> None:
    share: Object = {
        "shareID": "6e7a5a4e-0000-4000-8000-000000000001",
        "consumedCapacity": {"memory": "60Gi"},
    }
    found = of_pod(
        NODE,
        slice_of("node-1", a_gpu(allowMultipleAllocations=True)),
        allocated(my_claim(name="other"), **share),
        my_claim(exactly(capacity={"requests": {"memory": "40Gi"}})),
        my_pod(),
    )

    assert reasons(found) == [("capacity memory: 40Gi requested, 20Gi of 80Gi left", ["gpu-0"])]
    assert (
        "node-1: claim default/mine, request gpu: ask for 20Gi of memory instead of 40Gi"
        in changes(found)
    )


def test_a_taint_is_not_tolerated() -> None:
    taint = {"key": "example.com/broken", "effect": "NoSchedule"}
    found = of_pod(NODE, slice_of("node-1", a_gpu(taints=[taint])), my_claim(), my_pod())

    assert reasons(found) == [("taint example.com/broken:NoSchedule is not tolerated", ["gpu-0"])]
    assert any("tolerate the taint" in change for change in changes(found))
    assert not any("more device" in change for change in changes(found))


@pytest.mark.parametrize("arguments", [("pod/pod",), ("claim/mine",), ("--all-pending",)])
def test_the_rule_that_taints_a_device_is_named(arguments: tuple[str, ...]) -> None:
    rule = a_dra_manifest(
        "DeviceTaintRule",
        "repair",
        spec={
            "deviceSelector": {"device": "gpu-0"},
            "taint": {"key": "example.com/broken", "effect": "NoSchedule"},
        },
    )
    objects = [CLASS, NODE, slice_of("node-1", a_gpu()), rule, my_claim(), my_pod()]

    shown = explain(*arguments, objects=objects)

    assert "NoSchedule is not tolerated (from DeviceTaintRule repair)" in shown
    assert "more device" not in shown


def test_a_constraint_cannot_be_met() -> None:
    found = of_pod(
        NODE,
        slice_of("node-1", a_gpu("gpu-0", numa=0), a_gpu("gpu-1", numa=1)),
        my_claim(exactly(count=2), constraints=[{"matchAttribute": f"{DRIVER}/numa"}]),
        my_pod(),
    )

    assert found["nodes"][0]["requests"][0]["found"] == 1
    assert reasons(found) == [
        (f"attribute {DRIVER}/numa = 1 must match: gpu-0 has 0", ["gpu-1"]),
    ]
    assert (
        f"node-1: claim default/mine: do not require {DRIVER}/numa to match (constraint #0)"
        in changes(found)
    )


def test_every_alternative_is_explained_and_the_best_is_in_the_verdict() -> None:
    alternatives = [
        {"name": "four", "deviceClassName": "gpu", "count": 4},
        {"name": "three", "deviceClassName": "gpu", "count": 3},
    ]
    found = of_pod(
        NODE,
        slice_of("node-1", a_gpu("gpu-0"), a_gpu("gpu-1")),
        my_claim({"name": "gpu", "firstAvailable": alternatives}),
        my_pod(),
    )

    requests = found["nodes"][0]["requests"]
    assert [(each["request"], each["found"], each["wanted"]) for each in requests] == [
        ("gpu/four", 2, 4),
        ("gpu/three", 2, 3),
    ]
    assert problem(found).endswith(
        "request gpu of claim default/mine has no alternative that fits:"
        " gpu/three finds 2 of 3 devices (there are no more devices);"
        " gpu/four finds 2 of 4 devices (there are no more devices)."
    )


def test_an_incomplete_pool_is_named() -> None:
    partial = slice_of("node-1", a_gpu())
    partial["spec"]["pool"]["resourceSliceCount"] = 2

    found = of_pod(NODE, partial, my_claim(), my_pod())

    assert found["nodes"][0]["details"] == [
        f"pool {DRIVER}/node-1 is incomplete: not all of its slices are here"
    ]


# --- why a node is no good, whatever its devices ---


def test_other_resources_are_short_by_how_much() -> None:
    busy = my_pod("busy", nodeName="node-1", resourceClaims=[])
    busy["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "6500m"}}
    pod = my_pod()
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}}

    found = of_pod(NODE, slice_of("node-1", a_gpu()), my_claim(), busy, pod)

    (node,) = found["nodes"]
    assert (node["plugin"], node["reasons"]) == ("NodeResourcesFit", ["Insufficient cpu"])
    assert node["details"] == ["cpu: 2 requested, 1500m of 8 left"]


def test_node_labels_do_not_match() -> None:
    pod = my_pod(
        nodeSelector={"disk": "ssd"},
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "zone", "operator": "In", "values": ["a", "b"]}
                            ]
                        }
                    ]
                }
            }
        },
    )

    found = of_pod(node_with("node-1", disk="hdd", zone="c"), my_claim(), pod)

    assert found["nodes"][0]["details"] == [
        "nodeSelector: the pod asks for disk=ssd, and here it is hdd",
        "node affinity: the pod asks for zone in (a, b), and here it is c",
    ]


def test_a_claim_ties_the_pod_to_another_node() -> None:
    found = of_pod(
        node_with("node-1"),
        node_with("node-2", disk="ssd"),
        slice_of("node-1", a_gpu()),
        allocated(my_claim()),
        my_pod(nodeSelector={"disk": "ssd"}),
    )

    tied = next(node for node in found["nodes"] if node["node"] == "node-2")
    assert tied["details"] == [
        "claim default/mine has gpu-0, which can be used on node node-1 only"
    ]
    assert found["nodes"][0] == tied, "it comes nearest"


def test_devices_are_not_all_that_is_wrong_with_a_node() -> None:
    alone = {
        "labelSelector": {"matchLabels": {"app": "x"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    required = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [alone]}}

    found = of_pod(
        NODE, slice_of("node-1", a_gpu()), my_claim(exactly(count=2)), my_pod(affinity=required)
    )

    assert found["nodes"][0]["plugin"] == "DynamicResources"
    assert found["nodes"][0]["besides"] == ["node(s) didn't match pod affinity rules"]
    assert found["proposals"] == [], "fewer devices would not make it fit"


def test_nodes_that_look_alike_are_one_line() -> None:
    names = [f"node-{number}" for number in range(1, 6)]
    holders = [allocated(my_claim(name=f"c-{name}"), node=name) for name in names]
    shown = explain(
        "pod/pod",
        objects=[
            CLASS,
            *map(node_with, names),
            *(slice_of(name, a_gpu()) for name in names),
            *holders,
            my_claim(),
            my_pod(),
        ],
    )

    assert (
        "  5 nodes (node-1, node-2, node-3 and 2 more): cannot allocate all claims\n"
        "    claim default/mine, request gpu: 0 of 1 device found\n"
        "      gpu-0: held by claims default/c-node-1, default/c-node-2, default/c-node-3 and 2 more\n"
    ) in shown
    assert "  on node node-1 (4 more look like it)\n    - " in shown


# --- pods with a node, and pods that no scheduler tries ---


def test_where_a_pod_is_and_with_which_devices() -> None:
    since = "2026-01-01T10:00:00Z"
    pod = my_pod(nodeName="node-1") | {
        "status": {
            "phase": "Running",
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": since}],
        }
    }
    found = of_pod(NODE, slice_of("node-1", a_gpu()), allocated(my_claim(), pod="pod"), pod)

    assert found["state"] == "Scheduled"
    assert found["verdict"] == "Pod default/pod is on node node-1 (Running)."
    assert found["since"] == since
    assert found["claims"][0]["devices"][0]["device"] == f"{DRIVER}/node-1/gpu-0"
    assert found["claims"][0]["reservedFor"] == ["pod/pod"]


FROM_TEMPLATE = {"name": "gpu", "resourceClaimTemplateName": "template"}
GOING = {"deletionTimestamp": "2026-01-01T10:00:00Z", "finalizers": ["x"]}


def going(obj: Object) -> Object:
    return obj | {"metadata": obj["metadata"] | GOING}


@pytest.mark.parametrize(
    ("pod", "state", "verdict"),
    [
        pytest.param(
            my_pod(nodeName="node-1") | {"status": {"phase": "Succeeded"}},
            "Finished",
            "Pod default/pod has ended on node node-1: Succeeded.",
            id="finished",
        ),
        pytest.param(
            going(my_pod(nodeName="node-1")),
            "Scheduled",
            "Pod default/pod is on node node-1 (Pending), and is being deleted.",
            id="terminating-on-a-node",
        ),
        pytest.param(
            going(my_pod()),
            "Terminating",
            "Pod default/pod is being deleted; it never had a node.",
            id="terminating",
        ),
    ],
)
def test_pods_that_are_past_it(pod: Object, state: str, verdict: str) -> None:
    found = of_pod(NODE, pod)

    assert (found["state"], found["verdict"]) == (state, verdict)


def test_claims_that_a_pod_cannot_use() -> None:
    being_deleted = of_pod(NODE, going(my_claim()), my_pod())
    of_another = my_pod("pod", FROM_TEMPLATE) | {
        "status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "mine"}]}
    }

    assert being_deleted["reason"] == "claim default/mine is being deleted"
    assert of_pod(NODE, my_claim(), of_another)["reason"] == (
        "claim default/mine was not made for this pod"
    )


def test_a_pod_that_fits_waits_for_its_scheduler() -> None:
    found = of_pod(NODE, slice_of("node-1", a_gpu()), my_claim(), my_pod(schedulerName="other"))

    assert found["state"] == "Fits"
    assert found["verdict"] == (
        "Pod default/pod fits on node node-1; it waits for scheduler other."
    )
    assert found["claims"][0]["devices"][0]["device"] == f"{DRIVER}/node-1/gpu-0"
    assert found["notes"] == [
        "Scheduler other is not known here; the pod is judged as one of default-scheduler."
    ]


def conditioned(*true: str) -> Object:
    """A claim whose device must be attached before the pod may use it."""
    claim = allocated(
        my_claim(),
        pod="pod",
        bindingConditions=["Attached"],
        bindingFailureConditions=["Broken"],
    )
    conditions = [
        {"type": name, "status": "True", "reason": "Because", "message": "of that"} for name in true
    ]
    device = {"driver": DRIVER, "pool": "node-1", "device": "gpu-0", "conditions": conditions}
    claim["status"]["devices"] = [device]
    return claim


def test_a_pod_waits_for_binding_conditions() -> None:
    pod = my_pod() | {"status": {"nominatedNodeName": "node-1"}}
    objects = [CLASS, NODE, slice_of("node-1", a_gpu()), conditioned(), pod]

    found = of_pod(*objects)
    shown = explain("pod/pod", objects=objects)

    assert (found["state"], found["node"]) == ("WaitingForDevices", "node-1")
    since = datetime.fromisoformat(found["since"])
    assert datetime.fromisoformat(found["deadline"]) - since == timedelta(minutes=10)
    assert found["verdict"] == (
        "Pod default/pod has devices on node node-1 and waits until they are ready:"
        f" {DRIVER}/node-1/gpu-0: Attached was never reported. The controller of driver {DRIVER}"
        " has to report this in status.devices of claim mine: check that it runs and may write there."
    )
    assert " left, assuming a bindingTimeout of 600 s)\n" in shown
    assert "      not ready: Attached was never reported\n" in shown


def test_devices_that_cannot_be_made_ready() -> None:
    found = of_pod(NODE, slice_of("node-1", a_gpu()), conditioned("Broken"), my_pod())

    assert found["state"] == "DoesNotFit"
    assert found["nodes"][0]["details"] == [
        (
            'claim default/mine: device binding failed: claim=mine, reason=Because, message="of that";'
            f" {DRIVER}/node-1/gpu-0: Broken"
        )
    ]
    assert found["claims"][0]["devices"][0]["failure"] == "Because: of that"


def test_a_missing_claim_and_one_with_a_similar_name() -> None:
    found = of_pod(NODE, my_claim(name="mine-1"), my_pod())

    assert (found["state"], found["reason"]) == ("Gated", "claim default/mine does not exist")
    assert found["verdict"].endswith(
        ". Create it, or create the pod again with resourceClaimName: mine-1 in entry gpu."
    )
    assert found["obstacles"] == [
        {"kind": "ClaimMissing", "entry": "gpu", "claim": "default/mine", "similar": ["mine-1"]}
    ]


def test_scheduling_gates() -> None:
    found = of_pod(NODE, my_pod(schedulingGates=[{"name": "example.com/quota"}], resourceClaims=[]))

    assert found["verdict"] == (
        "Pod default/pod is not being scheduled: it has scheduling gates: example.com/quota."
    )


@pytest.mark.parametrize(
    ("count", "outlook"),
    [
        (1, "would fit on node node-1."),
        (2, "would be pending: the only node does not take it (1 cannot allocate all claims)"),
    ],
)
def test_claims_that_are_to_be_made_from_templates(count: int, outlook: str) -> None:
    spec = {"devices": {"requests": [exactly(count=count)]}}
    template = a_dra_manifest("ResourceClaimTemplate", "template", {"spec": spec})

    found = of_pod(NODE, slice_of("node-1", a_gpu()), template, my_pod("pod", FROM_TEMPLATE))

    assert found["state"] == "Gated"
    assert found["reason"] == (
        "no claim has been made from template default/template for its entry gpu yet"
    )
    assert outlook in found["verdict"]


def test_a_template_that_is_not_there() -> None:
    found = of_pod(NODE, my_pod("pod", FROM_TEMPLATE))

    assert found["reason"] == "template default/template does not exist"


def test_a_class_that_is_not_there() -> None:
    found = of_pod(NODE, my_claim(exactly(deviceClassName="gpus")), my_pod())

    assert found["verdict"] == (
        "Pod default/pod is pending: request gpu: device class gpus does not exist."
        " Create device class gpus, or ask for gpu."
    )
    assert found["notes"] == []
    assert found["nodes"] == []


def test_extended_resources_that_devices_serve() -> None:
    pod = my_pod(resourceClaims=[])
    amount = {"deviceclass.resource.kubernetes.io/gpu": "2"}
    pod["spec"]["containers"][0]["resources"] = {"requests": amount, "limits": amount}

    found = of_pod(NODE, slice_of("node-1", a_gpu()), pod)

    (request,) = found["nodes"][0]["requests"]
    assert (request["found"], request["wanted"]) == (1, 2)


# --- claims ---


def test_a_claim_that_has_devices() -> None:
    found = of_claim(NODE, slice_of("node-1", a_gpu()), allocated(my_claim(), pod="pod"))

    assert found["state"] == "Allocated"
    assert found["verdict"] == (
        "Claim default/mine has 1 device, for node node-1; reserved for pod/pod."
    )


def test_a_claim_that_goes() -> None:
    found = of_claim(NODE, going(allocated(my_claim(), pod="pod")))

    assert (found["state"], found["verdict"]) == (
        "Terminating",
        "Claim default/mine is being deleted; it is still reserved for pod/pod.",
    )


def test_what_helps_on_one_of_two_nodes_that_look_alike_is_found() -> None:
    """The selector keeps both away, but only on one the device is free."""
    strict = exactly(selectors=[{"cel": {"expression": "false"}}])

    found = of_claim(
        NODE,
        node_with("node-2"),
        slice_of("node-1", a_gpu()),
        slice_of("node-2", a_gpu()),
        allocated(my_claim(name="other")),
        my_claim(strict),
    )

    assert changes(found) == [
        "node-2: claim default/mine, request gpu: do without selector #0 (false)"
    ]


def test_a_claim_that_pods_wait_for() -> None:
    found = of_claim(NODE, my_claim(), my_pod("a"), my_pod("b"))

    assert found["verdict"] == (
        "Claim default/mine is not allocated yet: it will be when pod a, b is scheduled."
    )
    assert [(pod["pod"], pod["state"]) for pod in found["pods"]] == [
        ("default/a", "DoesNotFit"),
        ("default/b", "DoesNotFit"),
    ]


def test_a_claim_that_no_pod_uses() -> None:
    fits = of_claim(NODE, slice_of("node-1", a_gpu()), my_claim())
    does_not = of_claim(NODE, slice_of("node-1", a_gpu()), my_claim(exactly(count=2)))

    assert (fits["state"], does_not["state"]) == ("Unused", "Unused")
    assert fits["verdict"].endswith("no pod uses it; one that did would fit on node node-1.")
    assert fits["summary"]["devices"][0]["device"] == f"{DRIVER}/node-1/gpu-0"
    assert "one that did would be pending: " in does_not["verdict"]
    assert does_not["proposals"]


# --- how it is asked ---


def test_for_machines() -> None:
    objects = [CLASS, NODE, my_claim(), my_pod()]
    as_json = json.loads(explain("pod/pod", "-o", "json", objects=objects))

    assert as_json == yaml.safe_load(explain("pod/pod", "-o", "yaml", objects=objects))
    assert list(as_json)[:3] == ["pod", "state", "verdict"]


@pytest.mark.parametrize(
    ("what", "target"),
    [
        (["pod/x"], ("pods", "x")),
        (["pods", "x"], ("pods", "x")),
        (["resourceclaim/x"], ("resourceclaims", "x")),
        (["Claim", "x"], ("resourceclaims", "x")),
    ],
)
def test_targets(what: list[str], target: tuple[str, str]) -> None:
    found = read_target(what)

    assert (found.resource.plural, found.name) == target


OTHER = my_pod("elsewhere") | {"metadata": {"name": "elsewhere", "namespace": "prod"}}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pod"], "pod: say pod/NAME or claim/NAME"),
        (["node/x"], "node: only pods, claims and workloads can be explained"),
        (["pod/podd"], r"no pod podd in namespace default; did you mean pod\?"),
        (["pod/elsewhere"], r"there is one in prod \(-n\)"),
        (["claim/far-away"], "no claim far-away in namespace default$"),
        (["pod/pod", "--context", "x"], "files or a cluster, not both"),
        (["pod/pod", "--scheduler-name", "x"], "no scheduler x in the configuration"),
    ],
)
def test_mistakes(arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        explain(*arguments, objects=[CLASS, NODE, my_claim(), my_pod(), OTHER])


def test_other_namespaces_and_lists_such_as_kubectl_prints(tmp_path: Path) -> None:
    dump = {"apiVersion": "v1", "kind": "List", "items": [NODE, OTHER]}
    (tmp_path / "dump.yaml").write_text(yaml.safe_dump(dump))
    command = ["explain", "pod/elsewhere", "-n", "prod", "-f", str(tmp_path)]

    result = CliRunner().invoke(allot, command, standalone_mode=False)

    assert "claim prod/mine does not exist" in result.output


def test_what_could_not_be_read_is_said() -> None:
    snapshot = Snapshot()
    snapshot.put(
        resources.PODS, Pod(my_pod() | {"metadata": {"name": "pod", "namespace": "default"}})
    )
    snapshot.unread[resources.NODES] = "nodes is forbidden"
    snapshot.unread[resources.DEVICE_TAINT_RULES] = "the server does not have them"
    now = datetime.now(UTC)
    model = StaticScheduler(snapshot, SchedulerConfiguration(), DEFAULTS, lambda: now)
    key = ObjectKey("default", "pod")

    found = explained(read_target(["pod/pod"]), key, model, ObjectExplainer(model, Effort()))

    assert found.notes == ("nodes could not be read: nodes is forbidden",)
    snapshot.unread[resources.RESOURCE_CLAIMS] = "only those in namespace x"
    with pytest.raises(CommandError, match="can be read: only those in namespace x"):
        explained(read_target(["claim/c"]), key, model, ObjectExplainer(model, Effort()))


def test_what_may_be_held_by_claims_that_could_not_be_read() -> None:
    """Claims of other namespaces look free to a user who may not list them; the verdict does not hide that."""
    snapshot = Snapshot()
    in_default = {"metadata": {"name": "pod", "namespace": "default", "uid": "u"}}
    snapshot.put(resources.PODS, Pod(my_pod(resourceClaims=[]) | in_default))
    snapshot.put(resources.NODES, Node(NODE))
    snapshot.unread[resources.RESOURCE_CLAIMS] = "only those in namespace default"
    now = datetime.now(UTC)
    model = StaticScheduler(snapshot, SchedulerConfiguration(), DEFAULTS, lambda: now)
    key = ObjectKey("default", "pod")

    found = explained(read_target(["pod/pod"]), key, model, ObjectExplainer(model, Effort()))

    assert found.verdict == (
        "Pod default/pod fits on node node-1 by what you may read: not all resourceclaims could be"
        " read, and what the others hold looks free here. A role that lets you list them in all"
        " namespaces is needed to tell."
    )


def test_a_closed_gate_of_alternatives_is_told_with_what_to_do() -> None:
    request = {"name": "gpu", "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}]}
    objects = [CLASS, NODE, slice_of("node-1", a_gpu()), my_claim(request), my_pod()]

    shown = explain("pod/pod", "--feature-gates", "DRAPrioritizedList=false", objects=objects)

    assert (
        "request gpu: has subrequests, but the DRAPrioritizedList feature is disabled. Switch on"
        " feature gate DRAPrioritizedList, or ask for one of the alternatives with exactly."
        in shown
    )


def test_a_proposal_for_another_node_than_the_nearest_names_it() -> None:
    """Equally near, node-1 comes first by name; there a second gate is closed."""
    request = a_request_manifest("gpu", derivedAttributes=[{"name": "x", "expression": "1"}])
    attaching = a_gpu(bindingConditions=["a"], bindingFailureConditions=["b"])
    objects = [
        CLASS,
        NODE,
        node_with("node-2"),
        slice_of("node-1", attaching),
        slice_of("node-2", a_gpu()),
        my_claim(request, constraints=[{"matchAttribute": "x"}]),
        my_pod(),
    ]
    closed = "DRADerivedAttributes=false,DRADeviceBindingConditions=false"

    shown = explain("pod/pod", "--feature-gates", closed, objects=objects)

    assert "on node node-1, which comes nearest, request gpu" in shown
    assert "What would help: switch on feature gate DRADerivedAttributes (on node node-2)." in shown


def test_profiles_from_a_configuration(tmp_path: Path) -> None:
    """A profile without NodeAffinity does not mind labels."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {"schedulerName": "default-scheduler"},
            {
                "schedulerName": "easy",
                "plugins": {"multiPoint": {"disabled": [{"name": "NodeAffinity"}]}},
            },
        ],
    }
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    objects = [NODE, my_pod(nodeSelector={"disk": "ssd"}, resourceClaims=[])]

    strict = explain("pod/pod", "--scheduler-config", str(path), objects=objects)
    easy = explain(
        "pod/pod", "--scheduler-config", str(path), "--scheduler-name", "easy", objects=objects
    )

    assert "is pending" in strict
    assert "fits on node node-1" in easy


def test_gates() -> None:
    tainted = a_gpu(taints=[{"key": "k", "effect": "NoSchedule"}])
    objects = [NODE, CLASS, slice_of("node-1", tainted), my_claim(), my_pod()]

    shown = explain(
        "pod/pod",
        "--feature-gates",
        "DRADeviceTaints=false,DRADeviceTaintRules=false",
        objects=objects,
    )

    assert "fits on node node-1" in shown


def test_volumes_count_too() -> None:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    found = of_pod(NODE, my_pod(resourceClaims=[], volumes=[volume]))

    assert found["reason"] == 'persistentvolumeclaim "data" not found'
