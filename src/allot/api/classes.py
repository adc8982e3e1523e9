"""DeviceClass and DeviceTaintRule in resource.k8s.io/v1: what an administrator says about devices."""

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
    """The devices a rule taints. What is not set, any device has."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(ApiObject, frozen=True):
    """A taint and where to put it. Without a selector: nowhere."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = always(DeviceTaint)


class DeviceTaintRuleStatus(ApiObject, frozen=True):
    """How far eviction has come."""

    conditions: tuple[Condition, ...] = ()


class DeviceTaintRule(KubernetesObject, frozen=True):
    """Taints devices from outside, without their driver's help (KEP-5055)."""

    spec: DeviceTaintRuleSpec = always(DeviceTaintRuleSpec)
    status: DeviceTaintRuleStatus = always(DeviceTaintRuleStatus)
