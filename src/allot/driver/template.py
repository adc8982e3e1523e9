"""The template of a driver's project, for `allot driver init`. `@NAME@` and `@MODULE@` are replaced."""

from __future__ import annotations

from typing import Final

_DRIVER: Final = '''\
"""The DRA driver @NAME@."""

from collections.abc import Iterable

from allot.driver import AllocatedClaim, ContainerEdits, Device, Driver, PreparedDevice, make_device, run_driver


class NodeDriver(Driver):
    name = "@NAME@"

    def devices(self) -> Iterable[Device]:
        """Replace this by what the node has."""
        return [make_device(f"device-{i}", {"model": "example", "index": i}, {"memory": "1Gi"}) for i in range(4)]

    async def prepare(self, claim: AllocatedClaim) -> list[PreparedDevice]:
        """Make the devices usable. Called again after a crash: it must be idempotent."""
        return [device.prepared(ContainerEdits(env={f"DEVICE_{i}": device.device})) for i, device in enumerate(claim.devices)]

    async def unprepare(self, claim: AllocatedClaim) -> None:
        """Undo that. The claim may not exist any more."""


if __name__ == "__main__":
    run_driver(NodeDriver())
'''

_TEST: Final = '''\
"""The driver keeps its contract with the kubelet and the API. No hardware and no cluster is needed."""

import subprocess
import sys
from pathlib import Path

DRIVER = Path(__file__).parent / "@MODULE@.py"


def test_conformance() -> None:
    driver = [
        sys.executable, str(DRIVER), "--kubeconfig={kubeconfig}", "--node-name={node}", "--kubelet-dir={kubelet}",
        "--cdi-dir={cdi}", "--instance={instance}", "--repair-seconds=1",
    ]
    program = [sys.executable, "-c", "from allot.cli.main import run; run()"]
    done = subprocess.run(
        [*program, "conformance", "driver", "--driver-name=@NAME@", "--", *driver], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
'''

_MANIFESTS: Final = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata:
  name: @NAME@
spec:
  selectors:
  - cel:
      expression: device.driver == "@NAME@"
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: one-device
spec:
  spec:
    devices:
      requests:
      - name: device
        exactly:
          deviceClassName: @NAME@
---
apiVersion: v1
kind: Pod
metadata:
  name: user
spec:
  resourceClaims:
  - name: device
    resourceClaimTemplateName: one-device
  containers:
  - name: main
    image: busybox
    resources:
      claims:
      - name: device
"""

_NODE: Final = """\
apiVersion: v1
kind: Node
metadata:
  name: n1
  labels:
    allot.dev/simulated: "true"
"""

_DEPLOYMENT: Final = """\
apiVersion: v1
kind: ServiceAccount
metadata:
  name: @MODULE@-driver
  namespace: kube-system
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: @MODULE@-driver
rules:
- apiGroups: [""]
  resources: [nodes]
  verbs: [get]
- apiGroups: [resource.k8s.io]
  resources: [resourceslices]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims]
  verbs: [get]
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims/status]
  verbs: [update, patch]
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims/driver]
  resourceNames: [@NAME@]
  verbs: ["associated-node:update", "associated-node:patch"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: @MODULE@-driver
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: @MODULE@-driver
subjects:
- kind: ServiceAccount
  name: @MODULE@-driver
  namespace: kube-system
---
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: @MODULE@-driver
  namespace: kube-system
spec:
  selector:
    matchLabels:
      app: @MODULE@-driver
  updateStrategy:
    rollingUpdate:
      maxSurge: 1
      maxUnavailable: 0
  template:
    metadata:
      labels:
        app: @MODULE@-driver
    spec:
      serviceAccountName: @MODULE@-driver
      containers:
      - name: driver
        image: @MODULE@-driver:latest
        command: [python, /app/@MODULE@.py]
        env:
        - name: NODE_NAME
          valueFrom:
            fieldRef:
              fieldPath: spec.nodeName
        - name: POD_UID
          valueFrom:
            fieldRef:
              fieldPath: metadata.uid
        securityContext:
          privileged: true
        volumeMounts:
        - name: registry
          mountPath: /var/lib/kubelet/plugins_registry
        - name: plugins
          mountPath: /var/lib/kubelet/plugins
        - name: cdi
          mountPath: /var/run/cdi
      volumes:
      - name: registry
        hostPath:
          path: /var/lib/kubelet/plugins_registry
      - name: plugins
        hostPath:
          path: /var/lib/kubelet/plugins
          type: DirectoryOrCreate
      - name: cdi
        hostPath:
          path: /var/run/cdi
          type: DirectoryOrCreate
"""

_README: Final = """\
# @NAME@

A DRA driver. It needs `pip install 'allot[drivers]'`.

- `@MODULE@.py`: the driver. Replace `devices`, `prepare` and `unprepare`.
- `test_@MODULE@.py`: `pytest` runs the driver through allot's conformance suite, without hardware or a cluster.
- `manifests.yaml`: a device class, and a pod that uses a device.
- `node.yaml`: a simulated node.
- `deployment.yaml`: the driver as a DaemonSet, with the rights that it needs.

Try it on a simulated node:

    allot up --detach -f node.yaml --plugin-dir /tmp/plugins
    python @MODULE@.py --node-name n1 --kubeconfig "$(allot kubeconfig)" \\
      --kubelet-dir /tmp/plugins/n1 --cdi-dir /tmp/plugins/n1/cdi &
    kubectl --kubeconfig "$(allot kubeconfig)" apply -f manifests.yaml
    kubectl --kubeconfig "$(allot kubeconfig)" get pods -w
"""


def project_files(name: str) -> dict[str, str]:
    """The files of a project for a driver, by their paths."""
    module = name.partition(".")[0].replace("-", "_")
    if not module[0].isalpha():
        module = f"driver_{module}"
    files = {
        f"{module}.py": _DRIVER,
        f"test_{module}.py": _TEST,
        "manifests.yaml": _MANIFESTS,
        "node.yaml": _NODE,
        "deployment.yaml": _DEPLOYMENT,
        "README.md": _README,
    }
    return {
        path: content.replace("@NAME@", name).replace("@MODULE@", module)
        for path, content in files.items()
    }
