"""The resource.k8s.io types that several kinds share: selectors, opaque configuration, taints."""

from __future__ import annotations

from typing import Annotated, Final

from allot.api.base import NULL, ApiObject, GoName, Int64, Opaque, Time, always

GROUP: Final = "resource.k8s.io"

# In Go's messages `{v}` is the version of the request.
QualifiedName = Annotated[str, GoName("{v}.QualifiedName")]
FullyQualifiedName = Annotated[str, GoName("{v}.FullyQualifiedName")]
DeviceTaintEffect = Annotated[str, GoName("{v}.DeviceTaintEffect")]
TolerationOperator = Annotated[str, GoName("{v}.DeviceTolerationOperator")]

EXACT_COUNT: Final = "ExactCount"
ALL: Final = "All"
EQUAL: Final = "Equal"
EXISTS: Final = "Exists"
FROM_CLASS: Final = "FromClass"
FROM_CLAIM: Final = "FromClaim"
NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
NO_EFFECT: Final = "None"

MAX_RESULTS: Final = 32
"""The most devices one claim can get; also what `All` counts for in a quota."""

ADMIN_ACCESS_LABEL: Final = "resource.kubernetes.io/admin-access"
DELETE_PROTECTION: Final = "resource.kubernetes.io/delete-protection"
DEVICE_ALREADY_ALLOCATED: Final = "DeviceAlreadyAllocated"
"""The reason of a cause in a 409: an allocation has a device that others hold. The message is `driver/pool/device`."""
POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
EXTENDED_RESOURCE_CLAIM: Final = "resource.kubernetes.io/extended-resource-claim"
IMPLICIT_EXTENDED_RESOURCE_PREFIX: Final = "deviceclass.resource.kubernetes.io/"


class CELDeviceSelector(ApiObject, frozen=True):
    """A CEL expression that is true for the devices it selects."""

    expression: str = always(str)


class DeviceSelector(ApiObject, frozen=True):
    """One condition on devices. CEL is the only way to write one so far."""

    cel: CELDeviceSelector | None = None


class OpaqueDeviceConfiguration(ApiObject, frozen=True):
    """Parameters that only the named driver understands."""

    driver: str = always(str)
    parameters: Opaque = always(lambda: NULL)


class DeviceTaint(ApiObject, frozen=True):
    """Keeps claims that do not tolerate it away from a device, or evicts them from it."""

    key: str = always(str)
    value: str = ""
    effect: DeviceTaintEffect = always(str)
    time_added: Time | None = None


class DeviceToleration(ApiObject, frozen=True):
    """Lets a request use devices with matching taints."""

    key: str = ""
    operator: TolerationOperator = ""
    value: str = ""
    effect: DeviceTaintEffect = ""
    toleration_seconds: Int64 | None = None
