"""DeviceClass and DeviceTaintRule in resource.k8s.io/v1."""

from __future__ import annotations

from allot.api.base import ApiObject, always
from allot.api.meta import Condition, KubernetesObject
from allot.api.resource import DeviceSelector, DeviceTaint, OpaqueDeviceConfiguration


class DeviceClassConfiguration(ApiObject, frozen=True):
    """Driver parameters for every claim that uses the class."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(ApiObject, frozen=True):
    """Which devices belong to the class, and how they are configured."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(KubernetesObject, frozen=True):
    """A kind of device that users ask for by name."""

    spec: DeviceClassSpec = always(DeviceClassSpec)


class DeviceTaintSelector(ApiObject, frozen=True):
    """The devices a rule taints. A field that is not set matches every device."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(ApiObject, frozen=True):
    """A taint and the devices it applies to; none without a selector."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = always(DeviceTaint)


class DeviceTaintRuleStatus(ApiObject, frozen=True):
    """The progress of eviction."""

    conditions: tuple[Condition, ...] = ()


class DeviceTaintRule(KubernetesObject, frozen=True):
    """Taints devices independently of their driver (KEP-5055)."""

    spec: DeviceTaintRuleSpec = always(DeviceTaintRuleSpec)
    status: DeviceTaintRuleStatus = always(DeviceTaintRuleStatus)
