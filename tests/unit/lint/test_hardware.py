"""Hardware descriptions among manifests."""

from __future__ import annotations

import pytest

from allot import features
from allot.lint.findings import Report
from allot.lint.linter import Linter
from allot.lint.manifests import parse_manifests

GOOD = """\
nodes: {count: 2}
pools:
- driver: gpu.example.com
  devices:
  - {name: "gpu-{i}", count: 4, attributes: {model: A100}}
deviceClasses:
- name: gpu.example.com
  selectors: [{cel: {expression: device.driver == "gpu.example.com"}}]
"""
CLAIM = """\
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: CLASS}}]}}
"""


def linted(text: str, *ignored: str) -> Report:
    return Linter(features.DEFAULTS, ignored=ignored).check(
        parse_manifests("rack.yaml", text.encode())
    )


def test_good_description() -> None:
    report = linted(GOOD)

    assert report.findings == []
    assert (report.checked, report.skipped) == (1, 0)


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "message"),
    [
        pytest.param(
            "{count: 2}",
            "{cuont: 2}",
            1,
            "nodes",
            "there is no field cuont; did you mean count?",
            id="field",
        ),
        pytest.param("driver: gpu", "driver: GPU_", 3, "pools[0].driver", "GPU_", id="driver"),
        pytest.param("device.driver ==", "device.driver =", 8, "deviceClasses", "=", id="cel"),
    ],
)
def test_mistakes(old: str, new: str, line: int, field: str, message: str) -> None:
    (finding,) = linted(GOOD.replace(old, new)).findings

    assert finding.rule == "invalid-hardware"
    assert finding.object == "hardware/rack"
    assert (finding.source, finding.line) == ("rack.yaml", line)
    assert finding.field.startswith(field)
    assert message in finding.message


def test_ignored() -> None:
    assert linted(GOOD.replace("count: 2", "cuont: 2"), "invalid-hardware").findings == []


def test_classes_and_devices_are_known() -> None:
    assert linted(GOOD + CLAIM.replace("CLASS", "gpu.example.com")).findings == []

    (finding,) = linted(GOOD + CLAIM.replace("CLASS", "gup.example.com")).findings

    assert finding.rule == "missing-class"
    assert "gpu.example.com" in finding.message


def test_other_documents_without_a_kind_are_manifests() -> None:
    (finding,) = linted("metadata: {name: c}\n").findings

    assert finding.rule == "unknown-kind"
