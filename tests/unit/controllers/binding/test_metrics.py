"""What a binding controller counts, and the pages that show it."""

from __future__ import annotations

from allot.api.claims import ResourceClaim
from allot.api.identities import DeviceId, ObjectKey, SharedDeviceId
from allot.controllers.binding import (
    AttachFailedError,
    Attachment,
    AttachOutcome,
    AttachRequest,
    BindingMetrics,
)

DRIVER = "fabric.example.com"
DEVICE = Attachment(SharedDeviceId(DRIVER, "rack", "gpu-0", ""), "n0")
REQUEST = AttachRequest(DEVICE, ResourceClaim(), "r", ("Ready",), ("Failed",))


def samples(metrics: BindingMetrics) -> dict[str, float]:
    """Names and labels without their common parts, and values that are not zero."""
    found = {}
    for family in metrics.registry.collect():
        for sample in family.samples:
            if sample.name.endswith(("_created", "_bucket")) or not sample.value:
                continue
            labels = sorted(set(sample.labels.values()) - {DRIVER})
            name = sample.name.removeprefix("allot_binding_")
            found["/".join((name, *labels))] = sample.value
    return found


def test_one_device_that_is_ready_at_the_second_attempt() -> None:
    metrics = BindingMetrics()
    metrics.attach_started(REQUEST)
    metrics.attach_tried(REQUEST)
    metrics.attach_retried(REQUEST, AttachFailedError("Busy"), 1.0)
    assert samples(metrics) == {
        "attaching": 1,
        "attach_attempts_total": 1,
        "attach_failures_total/Busy": 1,
    }
    metrics.attach_tried(REQUEST)
    metrics.attach_ended(REQUEST, AttachOutcome.READY, 1.5)
    metrics.claim_written(ObjectKey("default", "c"), 2)
    assert samples(metrics) == {
        "attach_attempts_total": 2,
        "attach_failures_total/Busy": 1,
        "attaches_total/ready": 1,
        "attach_duration_seconds_count/ready": 1,
        "attach_duration_seconds_sum/ready": 1.5,
        "claim_writes_total": 1,
        "reports_total": 2,
    }


def test_failures_and_letting_go() -> None:
    metrics = BindingMetrics()
    metrics.attach_failed(REQUEST, AttachFailedError("LinkDown", permanent=True))
    metrics.quarantined(DeviceId(DRIVER, "rack", "gpu-0"), "")
    metrics.quarantined(DeviceId(DRIVER, "rack", "gpu-0"), "forbidden")
    metrics.detach_retried(DEVICE, "no answer", 1.0)
    metrics.detach_ended(DEVICE, 3.0)
    assert samples(metrics) == {
        "attach_failures_total/LinkDown": 1,
        "quarantined_total/success": 1,
        "quarantined_total/failure": 1,
        "detach_failures_total": 1,
        "detaches_total": 1,
        "detach_duration_seconds_count": 1,
        "detach_duration_seconds_sum": 3,
    }
