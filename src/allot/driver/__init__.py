"""For drivers: an SDK for real ones, and a simulated one that publishes what a hardware description lists.

    kubelet_plugin: the node side of a driver ──┐
                                                ▼
    resource_slices: what a driver publishes ──► slice_reconciler ──► publishing: what must be written
                                                ▲
    hardware file ──► hardware ──► expansion ──► publisher

A driver is a subclass of `Driver`; `run_driver` makes a program of it (docs/guides/drivers.md). gRPC is imported when a driver
starts, and needs the extra `drivers`.
"""

from typing import TYPE_CHECKING

from allot._lazy import lazy_names

if TYPE_CHECKING:
    from allot.api.resource import DeviceTaint
    from allot.api.slices import (
        Counter,
        CounterSet,
        Device,
        DeviceAttribute,
        DeviceCapacity,
        DeviceCounterConsumption,
    )
    from allot.driver.device import make_device
    from allot.driver.errors import HardwareError
    from allot.driver.hardware import Hardware
    from allot.driver.kubelet_plugin.claims import (
        AllocatedClaim,
        AllocatedDevice,
        ClaimReference,
        ContainerEdits,
        PreparedDevice,
    )
    from allot.driver.kubelet_plugin.device_metadata import DeviceMetadataError
    from allot.driver.kubelet_plugin.device_status import (
        DeviceCondition,
        DeviceStatus,
        DeviceStatusWriter,
    )
    from allot.driver.kubelet_plugin.driver import Driver, PrepareError
    from allot.driver.kubelet_plugin.health import Health
    from allot.driver.kubelet_plugin.metrics import DriverMetrics
    from allot.driver.kubelet_plugin.network_data import NetworkData
    from allot.driver.kubelet_plugin.plugin import KubeletPlugin, MissingExtraError, PluginOptions
    from allot.driver.kubelet_plugin.running import driver_options, run_driver, run_with_options
    from allot.driver.loading import load_hardware
    from allot.driver.publisher import SlicePublisher
    from allot.driver.resource_slices import (
        DriverResources,
        InvalidPoolError,
        Pool,
        ResourceSliceController,
    )
    from allot.driver.slice_reconciler import DroppedFieldsError, RejectedPoolError

__all__ = [
    "AllocatedClaim",
    "AllocatedDevice",
    "ClaimReference",
    "ContainerEdits",
    "Counter",
    "CounterSet",
    "Device",
    "DeviceAttribute",
    "DeviceCapacity",
    "DeviceCondition",
    "DeviceCounterConsumption",
    "DeviceMetadataError",
    "DeviceStatus",
    "DeviceStatusWriter",
    "DeviceTaint",
    "Driver",
    "DriverMetrics",
    "DriverResources",
    "DroppedFieldsError",
    "Hardware",
    "HardwareError",
    "Health",
    "InvalidPoolError",
    "KubeletPlugin",
    "MissingExtraError",
    "NetworkData",
    "PluginOptions",
    "Pool",
    "PrepareError",
    "PreparedDevice",
    "RejectedPoolError",
    "ResourceSliceController",
    "SlicePublisher",
    "driver_options",
    "load_hardware",
    "make_device",
    "run_driver",
    "run_with_options",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "AllocatedClaim": "allot.driver.kubelet_plugin.claims",
            "AllocatedDevice": "allot.driver.kubelet_plugin.claims",
            "ClaimReference": "allot.driver.kubelet_plugin.claims",
            "ContainerEdits": "allot.driver.kubelet_plugin.claims",
            "Counter": "allot.api.slices",
            "CounterSet": "allot.api.slices",
            "Device": "allot.api.slices",
            "DeviceAttribute": "allot.api.slices",
            "DeviceCapacity": "allot.api.slices",
            "DeviceCondition": "allot.driver.kubelet_plugin.device_status",
            "DeviceCounterConsumption": "allot.api.slices",
            "DeviceMetadataError": "allot.driver.kubelet_plugin.device_metadata",
            "DeviceStatus": "allot.driver.kubelet_plugin.device_status",
            "DeviceStatusWriter": "allot.driver.kubelet_plugin.device_status",
            "DeviceTaint": "allot.api.resource",
            "Driver": "allot.driver.kubelet_plugin.driver",
            "DriverMetrics": "allot.driver.kubelet_plugin.metrics",
            "DriverResources": "allot.driver.resource_slices",
            "DroppedFieldsError": "allot.driver.slice_reconciler",
            "Hardware": "allot.driver.hardware",
            "HardwareError": "allot.driver.errors",
            "Health": "allot.driver.kubelet_plugin.health",
            "InvalidPoolError": "allot.driver.resource_slices",
            "KubeletPlugin": "allot.driver.kubelet_plugin.plugin",
            "MissingExtraError": "allot.driver.kubelet_plugin.plugin",
            "NetworkData": "allot.driver.kubelet_plugin.network_data",
            "PluginOptions": "allot.driver.kubelet_plugin.plugin",
            "Pool": "allot.driver.resource_slices",
            "PrepareError": "allot.driver.kubelet_plugin.driver",
            "PreparedDevice": "allot.driver.kubelet_plugin.claims",
            "RejectedPoolError": "allot.driver.slice_reconciler",
            "ResourceSliceController": "allot.driver.resource_slices",
            "SlicePublisher": "allot.driver.publisher",
            "driver_options": "allot.driver.kubelet_plugin.running",
            "load_hardware": "allot.driver.loading",
            "make_device": "allot.driver.device",
            "run_driver": "allot.driver.kubelet_plugin.running",
            "run_with_options": "allot.driver.kubelet_plugin.running",
        },
    )
