"""Manifests for tests of lint: classes and slices to lint claims and pods against."""

from __future__ import annotations

from allot import features
from allot.features import FeatureGates
from allot.lint.findings import Finding
from allot.lint.known_objects import KnownObjects
from allot.lint.linter import Linter
from allot.lint.manifests import parse_manifests
from allot.lint.target import TargetCluster

CLASSES = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec:
  selectors:
  - cel: {expression: device.driver == "gpu.example.com"}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: nic.example.com}
spec:
  selectors:
  - cel: {expression: device.driver == "nic.example.com"}
---
"""

SLICES = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: gpus}
spec:
  driver: gpu.example.com
  nodeName: server-1
  pool: {name: server-1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    attributes: {model: {string: A100}, numaNode: {int: 0}, fast: {bool: true}}
    capacity: {memory: {value: 40Gi}}
  - name: gpu-1
    attributes: {model: {string: H100}, numaNode: {int: 1}}
    capacity: {memory: {value: 80Gi}}
    taints: [{key: example.com/broken, effect: NoSchedule}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: nics}
spec:
  driver: nic.example.com
  nodeName: server-1
  pool: {name: server-1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: eth0
    allowMultipleAllocations: true
    attributes: {numaNode: {int: 0}, numa: {string: "0"}, rail: {int: 7}}
    capacity:
      bandwidth:
        value: 10Gi
        requestPolicy:
          default: 1Gi
          validRange: {min: 1Gi, max: 5Gi, step: 1Gi}
      share:
        value: 2
        requestPolicy:
          default: 100m
          validRange: {min: 100m, step: 100m}
      queues:
        value: 16
        requestPolicy: {default: 2, validValues: [2, 4, 8]}
---
"""


def indented(text: str, spaces: int) -> str:
    return "".join(f"{' ' * spaces}{line}\n" for line in text.strip("\n").splitlines())


def claim_yaml(devices: str, name: str = "c") -> str:
    """A claim with this under `spec.devices`."""
    return (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"
        f"metadata: {{name: {name}}}\nspec:\n  devices:\n{indented(devices, 4)}---\n"
    )


def one_request(fields: str, rest: str = "") -> str:
    """A claim with one request for GPUs."""
    request = "requests:\n- name: r\n  exactly:\n    deviceClassName: gpu.example.com\n"
    return claim_yaml(request + indented(fields, 4) + rest)


def findings(
    *texts: str,
    gates: FeatureGates = features.DEFAULTS,
    target: TargetCluster = TargetCluster.ALLOT,
    live: str = "",
) -> list[Finding]:
    """What lint finds in these manifests, given together; `live`: what the cluster has."""

    def known() -> KnownObjects:
        from allot.lint.subjects import subject_of

        objects = KnownObjects(is_live=bool(live))
        for manifest in parse_manifests("live", live.encode()):
            objects.add_subjects([subject_of(manifest)])  # type: ignore[arg-type]
        return objects

    linter = Linter(gates, new_known=known, target=target)
    manifests = [
        manifest
        for number, text in enumerate(texts)
        for manifest in parse_manifests(f"file-{number}.yaml", text.encode())
    ]
    return linter.check(manifests).findings
