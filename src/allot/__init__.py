"""Kubernetes Dynamic Resource Allocation in Python.

    import allot

    cluster = allot.load("cluster/*.yaml")          # or allot.snapshot(): the cluster that kubectl uses
    cluster.node("n1").allocate("train")            # which devices does the claim get there?
    print(cluster.explain("pod/train"))             # why is it pending, and what would help?
    allot.compile("device.driver == 'gpu.example.com'").select(cluster.devices)

The names in `__all__` are the public API, documented in docs/python-api.md and covered by semantic versioning.
They are imported when they are first used: `import allot` alone loads nothing else.
"""

from allot import _version
from allot._lazy import lazy_names

TYPE_CHECKING = False  # as type checkers know it; `typing` takes longer to import than all of this
if TYPE_CHECKING:
    from allot import client, driver, features, testing
    from allot.cel import CelCompileError, CelError, CelEvaluationError
    from allot.client.client import Client
    from allot.client.connection import connect
    from allot.features import FeatureGateError, FeatureGates
    from allot.public.allocations import AllocatedDevice, Allocation
    from allot.public.devices import Device
    from allot.public.errors import (
        AllotError,
        ClusterError,
        ManifestError,
        NotFoundError,
    )
    from allot.public.explanations import Explanation
    from allot.public.expressions import Expression
    from allot.public.expressions import compile_expression as compile  # noqa: A004 - as in `re`
    from allot.public.gates import feature_gates
    from allot.public.nodes import NodeSnapshot
    from allot.public.snapshot import ClusterSnapshot, load, loads, snapshot, snapshot_async

__version__ = _version.VERSION

__all__ = [
    "AllocatedDevice",
    "Allocation",
    "AllotError",
    "CelCompileError",
    "CelError",
    "CelEvaluationError",
    "Client",
    "ClusterError",
    "ClusterSnapshot",
    "Device",
    "Explanation",
    "Expression",
    "FeatureGateError",
    "FeatureGates",
    "ManifestError",
    "NodeSnapshot",
    "NotFoundError",
    "__version__",
    "client",
    "compile",
    "connect",
    "driver",
    "feature_gates",
    "features",
    "load",
    "loads",
    "snapshot",
    "snapshot_async",
    "testing",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "AllocatedDevice": "allot.public.allocations",
            "Allocation": "allot.public.allocations",
            "AllotError": "allot.public.errors",
            "CelCompileError": "allot.cel",
            "CelError": "allot.cel",
            "CelEvaluationError": "allot.cel",
            "Client": "allot.client.client",
            "ClusterError": "allot.public.errors",
            "ClusterSnapshot": "allot.public.snapshot",
            "Device": "allot.public.devices",
            "Explanation": "allot.public.explanations",
            "Expression": "allot.public.expressions",
            "FeatureGateError": "allot.features",
            "FeatureGates": "allot.features",
            "ManifestError": "allot.public.errors",
            "NodeSnapshot": "allot.public.nodes",
            "NotFoundError": "allot.public.errors",
            "client": "allot.client",
            "compile": "allot.public.expressions:compile_expression",
            "connect": "allot.client.connection",
            "driver": "allot.driver",
            "feature_gates": "allot.public.gates",
            "features": "allot.features",
            "load": "allot.public.snapshot",
            "loads": "allot.public.snapshot",
            "snapshot": "allot.public.snapshot",
            "snapshot_async": "allot.public.snapshot",
            "testing": "allot.testing",
        },
    )


def __dir__() -> list[str]:
    return sorted(__all__)
