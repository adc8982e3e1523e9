"""`allot explain` of pods that wait: for claims that cannot be made, and for devices that are made ready."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from allot.testing.builders import DRIVER
from allot.testing.manifests import a_dra_manifest, a_request_manifest
from tests.unit.cli.explain_objects import (
    CLASS,
    NODE,
    Object,
    a_gpu,
    allocated,
    exactly,
    explain,
    my_claim,
    my_pod,
    of_pod,
    slice_of,
)

FROM_TEMPLATE: Object = {"name": "gpu", "resourceClaimTemplateName": "template"}
DEVICES = "gpu.deviceclass.resource.k8s.io/devices"
CLAIMS = "count/resourceclaims.resource.k8s.io"
SLICE = slice_of("node-1", a_gpu())


def a_template(count: int = 1, name: str = "template") -> Object:
    spec = {"devices": {"requests": [exactly(count=count)]}}
    return a_dra_manifest("ResourceClaimTemplate", name, {"spec": spec})


def a_quota(hard: Object, used: Object | None = None, name: str = "gpus") -> Object:
    quota: Object = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}}
    quota["spec"] = {"hard": hard}
    if used is not None:
        quota["status"] = {"hard": hard, "used": used}
    return quota


def an_event(reason: str, note: str, ago: float = 5, **fields: Any) -> Object:
    """As kubectl prints it."""
    time = (datetime.now(UTC) - timedelta(seconds=ago)).isoformat()
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"pod.{reason}.{ago}"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "pod"},
        "reason": reason,
        "message": note,
        "lastTimestamp": time,
    } | fields


# --- claims that are not made ---


def test_a_quota_does_not_allow_the_claim() -> None:
    quota = a_quota({DEVICES: "2"}, {DEVICES: "1"})

    found = of_pod(NODE, SLICE, a_template(2), quota, my_pod("pod", FROM_TEMPLATE))

    assert found["state"] == "Gated"
    assert found["verdict"] == (
        "Pod default/pod is not being scheduled: ResourceQuota gpus does not allow the claim"
        f" from template default/template for its entry gpu: {DEVICES} is limited to 2,"
        f" 1 of it used and 2 asked for. Raise {DEVICES} to 3 in ResourceQuota gpus,"
        " delete claims that are not needed, or ask for less in template default/template."
    )
    (obstacle,) = found["obstacles"]
    assert (obstacle["kind"], obstacle["quota"]) == ("QuotaExceeded", "gpus")
    assert obstacle["excess"] == [
        {
            "name": DEVICES,
            "requested": "2",
            "used": "1",
            "hard": "2",
            "needed": "3",
            "canBeFreed": True,
        }
    ]
    assert any("With its claims, it would be pending" in note for note in found["notes"])


def test_deleting_claims_is_no_advice_if_the_quota_is_too_small_anyway() -> None:
    quota = a_quota({DEVICES: "1"}, {DEVICES: "1"})

    found = of_pod(NODE, SLICE, a_template(2), quota, my_pod("pod", FROM_TEMPLATE))

    assert found["verdict"].endswith(
        f" Raise {DEVICES} to 3 in ResourceQuota gpus or ask for less in template default/template."
    )


def test_a_quota_in_a_manifest_is_counted_by_the_claims_that_exist() -> None:
    quota = a_quota({CLAIMS: "1"})
    pod = my_pod("pod", FROM_TEMPLATE)

    full = of_pod(NODE, SLICE, a_template(), quota, my_claim(name="other"), pod)
    free = of_pod(NODE, SLICE, a_template(), quota, pod)

    assert f"{CLAIMS} is limited to 1, 1 of it used and 1 asked for" in full["verdict"]
    assert full["notes"] == ["With its claims, it would fit on node node-1."]
    assert free["verdict"].endswith("if there were one, it would fit on node node-1.")


def test_quotas_of_other_namespaces_and_with_room_do_not_count() -> None:
    other = a_quota({CLAIMS: "0"}, {CLAIMS: "0"})
    other["metadata"]["namespace"] = "team-a"
    wide = a_quota({CLAIMS: "5"}, {CLAIMS: "4"}, name="wide")

    found = of_pod(NODE, SLICE, a_template(), other, wide, my_pod("pod", FROM_TEMPLATE))

    assert found["obstacles"][0]["kind"] == "ClaimNotMade"


def test_two_entries_together_exceed_a_quota() -> None:
    entries = [FROM_TEMPLATE, FROM_TEMPLATE | {"name": "second"}]
    quota = a_quota({CLAIMS: "1"}, {CLAIMS: "0"})

    found = of_pod(NODE, SLICE, a_template(), quota, my_pod("pod", *entries))

    kinds = [(each["kind"], each["entry"]) for each in found["obstacles"]]
    assert kinds == [("ClaimNotMade", "gpu"), ("QuotaExceeded", "second")]


LABEL = "resource.kubernetes.io/admin-access"


def an_admin_claim(kind: str) -> Object:
    """A claim, or a template of one, with admin access, and the pod's entry that names it."""
    request = exactly()
    request["exactly"] |= {"adminAccess": True}
    spec: Object = {"devices": {"requests": [request]}}
    return a_dra_manifest(kind, "admin", spec if kind == "ResourceClaim" else {"spec": spec})


def a_namespace(**labels: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", **labels}}


@pytest.mark.parametrize(
    ("kind", "field", "source"),
    [
        ("ResourceClaim", "resourceClaimName", "claim"),
        ("ResourceClaimTemplate", "resourceClaimTemplateName", "template"),
    ],
)
def test_admin_access_in_a_namespace_that_does_not_allow_it(
    kind: str, field: str, source: str
) -> None:
    objects = [NODE, SLICE, an_admin_claim(kind), my_pod("pod", {"name": "gpu", field: "admin"})]
    labelled = {"metadata": {"name": "default", "labels": {LABEL: "true"}}}

    refused = of_pod(*objects, a_namespace())
    allowed = of_pod(*objects, a_namespace() | labelled)
    unknown = of_pod(*objects)

    assert refused["verdict"] == (
        f"Pod default/pod is not being scheduled: {source} default/admin asks for admin access, and"
        f" namespace default does not have the label {LABEL}: true. Label namespace default or"
        f" remove adminAccess from {source} default/admin."
    )
    assert refused["obstacles"][0]["kind"] == "AdminAccessForbidden"
    assert refused["notes"] == ["With its claims, it would fit on node node-1."]
    assert "fit" in allowed["verdict"]
    assert not allowed["notes"]
    assert "fit" in unknown["verdict"]
    (note,) = unknown["notes"]
    assert note.startswith(f"Admin access needs the label {LABEL}: true on namespace default,")


def test_a_claim_with_admin_access_that_no_pod_uses() -> None:
    objects = [CLASS, NODE, SLICE, an_admin_claim("ResourceClaim"), a_namespace()]

    assert explain("claim/admin", objects=objects).startswith(
        "Claim default/admin cannot be allocated: claim default/admin asks for admin access, and"
        f" namespace default does not have the label {LABEL}: true. Label namespace default or"
        " remove adminAccess from claim default/admin."
    )


def test_what_the_claim_controller_said() -> None:
    why = "template includes a prioritized list of subrequests, but the feature is disabled"
    event = an_event("FailedResourceClaimCreation", f"PodResourceClaim gpu: {why}", count=3)
    other = an_event("FailedResourceClaimCreation", "PodResourceClaim nic: no", 1)

    found = of_pod(NODE, SLICE, a_template(), event, other, my_pod("pod", FROM_TEMPLATE))

    assert found["verdict"] == (
        "Pod default/pod is not being scheduled: no claim can be made from template"
        f" default/template for its entry gpu: {why}. Change template default/template or what"
        " refuses the claim; it is tried again."
    )
    (obstacle,) = found["obstacles"]
    assert (obstacle["kind"], obstacle["count"]) == ("ClaimRefused", 3)


def test_a_template_that_is_older_than_a_closed_gate() -> None:
    derived = a_request_manifest("a", derivedAttributes=[{"name": "x", "expression": "1"}])
    spec = {"devices": {"requests": [derived], "constraints": [{"matchAttribute": "x"}]}}
    template = a_dra_manifest("ResourceClaimTemplate", "t", {"spec": spec}, namespace="")
    entry = {"name": "gpu", "resourceClaimTemplateName": "t"}
    objects = [CLASS, NODE, slice_of("node-1", a_gpu()), template, my_pod("pod", entry)]
    closed = ("--feature-gates", "DRADerivedAttributes=false")

    assert explain("pod/pod", *closed, objects=objects).startswith(
        "Pod default/pod is not being scheduled: no claim can be made from template default/t for"
        " its entry gpu: spec.devices.requests[0].exactly.derivedAttributes: Forbidden: may not be"
        " used while feature gate DRADerivedAttributes is off. Change template default/t or what"
        " refuses the claim; it is tried again."
    )
    assert "would fit on node node-1" in explain("pod/pod", objects=objects)


def test_what_was_said_about_an_earlier_pod_of_the_name_does_not_count() -> None:
    event = an_event("FailedResourceClaimCreation", "PodResourceClaim gpu: no")
    event["involvedObject"]["uid"] = "another"

    found = of_pod(NODE, SLICE, a_template(), event, my_pod("pod", FROM_TEMPLATE))

    assert found["obstacles"][0]["kind"] == "ClaimNotMade"


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        (
            "templates",
            "Create it, or create the pod again with resourceClaimTemplateName: templates in entry gpu.",
        ),
        (
            "unlike",
            "Create it, or create the pod again with another resourceClaimTemplateName in entry gpu.",
        ),
    ],
)
def test_a_template_that_does_not_exist(name: str, advice: str) -> None:
    found = of_pod(NODE, a_template(name=name), my_pod("pod", FROM_TEMPLATE))

    assert found["verdict"] == (
        "Pod default/pod is not being scheduled: template default/template does not exist."
        f" {advice}"
    )


# --- devices that are made ready ---


def conditioned(*conditions: Object, minutes: float = 5) -> Object:
    """A claim of the pod whose device must be Attached, with what was reported about it."""
    claim = allocated(my_claim(), pod="pod", bindingConditions=["Attached"])
    allocation = claim["status"]["allocation"]
    allocation["allocationTimestamp"] = (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat()
    if conditions:
        device = {"driver": DRIVER, "pool": "node-1", "device": "gpu-0"}
        claim["status"]["devices"] = [device | {"conditions": list(conditions)}]
    return claim


WAITING = my_pod() | {"status": {"nominatedNodeName": "node-1"}}
BUSY: Object = {
    "type": "Attached",
    "status": "False",
    "reason": "Connecting",
    "message": "the switch is busy",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def test_what_the_controller_reported() -> None:
    found = of_pod(NODE, SLICE, conditioned(BUSY), WAITING)
    shown = explain("pod/pod", objects=[CLASS, NODE, SLICE, conditioned(BUSY), WAITING])

    assert found["verdict"] == (
        "Pod default/pod has devices on node node-1 and waits until they are ready:"
        f" {DRIVER}/node-1/gpu-0: Attached is False (Connecting: the switch is busy)."
        f" The controller of driver {DRIVER} has reported this: look there for the cause."
    )
    (condition,) = found["claims"][0]["devices"][0]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "Connecting")
    assert "not ready: Attached is False (Connecting: the switch is busy) for " in shown


def test_the_slice_is_gone() -> None:
    found = of_pod(NODE, slice_of("node-1", a_gpu("gpu-1")), conditioned(BUSY), WAITING)

    assert found["verdict"].endswith(
        f" {DRIVER}/node-1/gpu-0 is in no ResourceSlice any more: publish it again,"
        " or delete the pod, so that its successor gets another device."
    )


def test_the_node_is_gone() -> None:
    found = of_pod(SLICE, conditioned(BUSY), WAITING)

    assert found["verdict"].endswith(
        " Node node-1 does not exist any more: delete the pod, or wait until its scheduler gives"
        " the devices back."
    )


@pytest.mark.parametrize("text", ["device binding timeout: claim=mine", "device binding failed: x"])
def test_earlier_failures_are_told(text: str) -> None:
    prefix = 'running PreBind plugin "DynamicResources": '
    event = an_event("FailedScheduling", f"{prefix}{text}", 90, count=2)
    objects = [NODE, SLICE, event, an_event("FailedScheduling", "0/1 nodes are available")]

    found = of_pod(*objects, conditioned(), WAITING)
    shown = explain("pod/pod", objects=[CLASS, *objects, conditioned(), WAITING])
    pending = of_pod(*objects, my_claim(exactly(count=2)), my_pod())

    (failure,) = found["earlierFailures"]
    assert (failure["message"], failure["count"]) == (text, 2)
    assert re.search(rf"^Failed before \(\w+ ago, 2 times\): {text}$", shown, re.MULTILINE)
    assert pending["earlierFailures"] == found["earlierFailures"]


# --- until when ---


def _pending(seconds: str) -> Object:
    event = an_event("BindingConditionsPending", "waiting")
    event["metadata"]["annotations"] = {"allot.dev/binding-timeout-seconds": seconds}
    return event


def _limit(found: Object) -> tuple[float, float]:
    since, deadline = map(datetime.fromisoformat, (found["since"], found["deadline"]))
    return (deadline - since).total_seconds(), found.get("assumedTimeoutSeconds", 0)


def test_the_deadline_is_that_of_the_running_scheduler() -> None:
    told = of_pod(NODE, SLICE, conditioned(), _pending("1200"), WAITING)
    assumed = of_pod(NODE, SLICE, conditioned(), _pending("soon"), WAITING)

    assert _limit(told) == (1200, 0)
    assert _limit(assumed) == (600, 600)


def test_the_deadline_is_that_of_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "profiles:\n"
        "- pluginConfig: [{name: DynamicResources, args: {bindingTimeout: 900s}}]\n"
    )
    objects = [CLASS, NODE, SLICE, conditioned(), _pending("1200"), WAITING]

    shown = explain("pod/pod", "-o", "json", "--scheduler-config", str(path), objects=objects)

    assert _limit(json.loads(shown)) == (900, 0)


def test_a_limit_that_is_assumed_does_not_end_a_wait() -> None:
    objects = [NODE, SLICE, conditioned(minutes=15), WAITING]

    assert of_pod(*objects)["state"] == "WaitingForDevices"
    assert "(over, assuming a bindingTimeout of 600 s)" in explain(
        "pod/pod", objects=[CLASS, *objects]
    )
    assert of_pod(*objects, _pending("600"))["state"] != "WaitingForDevices"
