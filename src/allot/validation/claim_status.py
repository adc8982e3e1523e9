"""The status of a ResourceClaim: what was allocated, for whom, and what drivers report."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from operator import attrgetter
from typing import Final

from allot.api.base import is_set
from allot.api.claims import (
    MAX_CONSUMERS,
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceClaim,
    DeviceRequestAllocationResult,
    NetworkDeviceData,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from allot.api.identities import SharedDeviceId
from allot.api.resource import FROM_CLAIM, FROM_CLASS, MAX_RESULTS
from allot.features import FeatureGates
from allot.rules import ONE_KIND_OF_BINDING_CONDITIONS
from allot.validation.binding_conditions import validate_binding_conditions
from allot.validation.conditions import validate_conditions
from allot.validation.device_config import validate_json_object, validate_opaque_configuration
from allot.validation.fields import (
    FieldError,
    FieldPath,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from allot.validation.formats import byte_length, is_label, is_share_id
from allot.validation.lists import duplicates, validate_items
from allot.validation.metadata import validate_metadata_update
from allot.validation.names import (
    PLAIN_NAMES,
    validate_declared_driver_name,
    validate_declared_pool_name,
    validate_driver_name,
    validate_label,
    validate_pool_name,
)
from allot.validation.node_operations import validate_skipped_operations
from allot.validation.node_selector import names_nodes, validate_node_selector
from allot.validation.resource_claim import RequestNames, validate_references
from allot.validation.tolerations import validate_toleration

MAX_ALLOCATED_CONFIGS: Final = 64
MAX_DEVICE_CONDITIONS: Final = 8
MAX_INTERFACE_NAME: Final = 256
MAX_HARDWARE_ADDRESS: Final = 128
MAX_IPS: Final = 16
CONFIG_SOURCES: Final = (FROM_CLASS, FROM_CLAIM)

STATUS: Final = FieldPath("status")
ALLOCATION: Final = STATUS / "allocation"
RESERVED_FOR: Final = STATUS / "reservedFor"


def validate_claim_status_update(
    new: ResourceClaim, old: ResourceClaim, gates: FeatureGates
) -> Iterator[FieldError]:
    """A write to the status. The spec is always the stored one."""
    yield from validate_metadata_update(new.metadata, old.metadata)
    if new.status.reserved_for:
        yield from _validate_consumers(new, old)
    if new.status.devices:
        yield from _validate_device_statuses(new, old)
    allocation, before = new.status.allocation, old.status.allocation
    if before is None:
        if allocation is not None and not _is_plain_allocation(allocation, new.spec.devices):
            names = RequestNames.of(new.spec.devices)
            yield from _validate_allocation(allocation, ALLOCATION, names, gates)
    elif allocation is not None and allocation != before:
        yield invalid(ALLOCATION, None, "field cannot be modified once set")


# --- consumers ---


def _validate_consumers(new: ResourceClaim, old: ResourceClaim) -> Iterator[FieldError]:
    consumers, path = new.status.reserved_for, RESERVED_FOR
    if not _are_plain_consumers(consumers):
        yield from validate_items(consumers, path, MAX_CONSUMERS, _validate_consumer)
        if len(consumers) <= MAX_CONSUMERS:
            yield from duplicates(consumers, path, lambda consumer: consumer.uid)
    if new.status.allocation is None:
        yield forbidden(path, "may not be specified when `allocated` is not set")
    elif new.metadata.deletion_timestamp is not None and not set(consumers) <= set(
        old.status.reserved_for
    ):
        yield forbidden(
            path,
            "new entries may not be added while "
            "`deallocationRequested` or `deletionTimestamp` are set",
        )


def _are_plain_consumers(consumers: tuple[ResourceClaimConsumerReference, ...]) -> bool:
    """Whether all are complete and different, and not too many: the usual case."""
    seen: dict[str, None] = {}
    for consumer in consumers:
        uid = consumer.uid
        if not (uid and consumer.name and consumer.resource) or uid in seen:
            return False
        seen[uid] = None
    return len(consumers) <= MAX_CONSUMERS


def _validate_consumer(
    consumer: ResourceClaimConsumerReference, path: FieldPath
) -> Iterator[FieldError]:
    for name in ("resource", "name", "uid"):
        if not getattr(consumer, name):
            yield required(path / name)


# --- allocation ---


def _is_plain_allocation(allocation: AllocationResult, claim: DeviceClaim) -> bool:
    """Whether it certainly has no errors: devices and shares for requests of the claim, anywhere or on nodes by name."""
    selector, results = allocation.node_selector, allocation.devices.results
    if selector is not None and not names_nodes(selector):
        return False
    if allocation.devices.config or len(results) > MAX_RESULTS:
        return False
    requests = RequestNames.of(claim).names
    for result in results:
        names = (result.driver, result.pool)
        request = result.request
        if (
            request not in requests
            or not all(map(is_label, request.split("/")))
            or not is_label(result.device)
            or not (names in PLAIN_NAMES or PLAIN_NAMES.accepts(*names))
            or not (result.share_id is None or is_share_id(result.share_id))
            or result.binding_conditions
            or result.binding_failure_conditions
            or result.tolerations
            or result.skip_node_operations
        ):
            return False
    return True


def _validate_allocation(
    allocation: AllocationResult, path: FieldPath, names: RequestNames, gates: FeatureGates
) -> Iterator[FieldError]:
    def check_result(
        result: DeviceRequestAllocationResult, result_path: FieldPath
    ) -> Iterator[FieldError]:
        return _validate_result(result, result_path, names, gates)

    def check_config(
        config: DeviceAllocationConfiguration, config_path: FieldPath
    ) -> Iterator[FieldError]:
        source_path = config_path / "source"
        if not config.source:
            yield required(source_path, declared=True)
        elif config.source not in CONFIG_SOURCES:
            yield not_supported(source_path, config.source, CONFIG_SOURCES, declared=True)
        yield from validate_references(config.requests, config_path / "requests", names)
        yield from validate_opaque_configuration(config.opaque, config_path)

    devices, devices_path = allocation.devices, path / "devices"
    yield from validate_items(devices.results, devices_path / "results", MAX_RESULTS, check_result)
    if devices.config:
        yield from validate_items(
            devices.config, devices_path / "config", MAX_ALLOCATED_CONFIGS, check_config
        )
    if allocation.node_selector is not None:
        yield from validate_node_selector(allocation.node_selector, path / "nodeSelector")


def _validate_result(
    result: DeviceRequestAllocationResult,
    path: FieldPath,
    names: RequestNames,
    gates: FeatureGates,
) -> Iterator[FieldError]:
    """One allocated device. Duplicates of a device or share are allowed."""
    if result.request not in names.names or not is_label(result.request):
        yield from names.validate_reference(result.request, path / "request")
    if (result.driver, result.pool) not in PLAIN_NAMES:
        yield from validate_declared_driver_name(result.driver, path / "driver")
        if not result.pool:
            yield required(path / "pool", declared=True)
        else:
            yield from validate_declared_pool_name(result.pool, path / "pool")
    if not is_label(result.device):
        yield from validate_label(result.device, path / "device")
    if result.binding_conditions or result.binding_failure_conditions:
        yield from validate_binding_conditions(
            result.binding_conditions,
            result.binding_failure_conditions,
            path,
            one_kind_is_enough=ONE_KIND_OF_BINDING_CONDITIONS in gates,
        )
    if result.share_id is not None:
        yield from _validate_share_id(result.share_id, path / "shareID")
    for index, toleration in enumerate(result.tolerations):
        yield from validate_toleration(toleration, path / "tolerations" @ index)
    if result.skip_node_operations:
        yield from validate_skipped_operations(
            result.skip_node_operations, path / "skipNodeOperations"
        )


def _validate_share_id(share_id: str | None, path: FieldPath) -> Iterator[FieldError]:
    if share_id is not None and not is_share_id(share_id):
        yield invalid(
            path, share_id, "must be a lowercase UUID in 8-4-4-4-12 format", declared=True
        )


# --- what drivers report ---


def allocated_device_ids(claim: ResourceClaim) -> frozenset[SharedDeviceId]:
    """The devices and shares that are allocated for a claim."""
    allocation = claim.status.allocation
    if allocation is None:
        return frozenset()
    return frozenset(result.shared_device_id for result in allocation.devices.results)


def _validate_device_statuses(new: ResourceClaim, old: ResourceClaim) -> Iterator[FieldError]:
    path = STATUS / "devices"
    statuses = new.status.devices
    allocated = allocated_device_ids(new)
    before = {status.shared_device_id: status for status in old.status.devices}
    for index, status in enumerate(statuses):
        identity = status.shared_device_id
        yield from _validate_device_status(status, path @ index, before.get(identity))
        if identity not in allocated:
            shown = {
                "Driver": status.driver,
                "Pool": status.pool,
                "Device": status.device,
                "ShareID": status.share_id or "",
            }
            yield invalid(path @ index, shown, "must be an allocated device in the claim")
    yield from duplicates(statuses, path, attrgetter("shared_device_id"))


def _validate_device_status(
    status: AllocatedDeviceStatus, path: FieldPath, before: AllocatedDeviceStatus | None
) -> Iterator[FieldError]:
    yield from validate_driver_name(status.driver, path / "driver")
    yield from validate_pool_name(status.pool, path / "pool")
    yield from validate_label(status.device, path / "device")
    if before is None:  # the share id is part of the identity: a stored one is not validated again
        yield from _validate_share_id(status.share_id, path / "shareID")
    yield from validate_conditions(status.conditions, path / "conditions", MAX_DEVICE_CONDITIONS)
    if is_set(status.data):
        yield from validate_json_object(status.data, path / "data")
    if status.network_data is not None:
        yield from _validate_network(status.network_data, path / "networkData")


def _validate_network(network: NetworkDeviceData, path: FieldPath) -> Iterator[FieldError]:
    if byte_length(network.interface_name) > MAX_INTERFACE_NAME:
        yield too_long(path / "interfaceName", MAX_INTERFACE_NAME)
    if byte_length(network.hardware_address) > MAX_HARDWARE_ADDRESS:
        yield too_long(path / "hardwareAddress", MAX_HARDWARE_ADDRESS)
    ips_path = path / "ips"
    if len(network.ips) > MAX_IPS:
        yield too_many(ips_path, len(network.ips), MAX_IPS)
        return
    for index, ip in enumerate(network.ips):
        yield from _validate_interface_address(ip, ips_path @ index)
    yield from duplicates(network.ips, ips_path, lambda ip: ip, declared=False)


def _validate_interface_address(text: str, path: FieldPath) -> Iterator[FieldError]:
    """An address with its prefix length, in canonical form."""
    canonical = canonical_interface_address(text)
    if canonical is None:
        yield invalid(
            path,
            text,
            "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)",
        )
    elif canonical != text:
        yield invalid(path, text, f'must be in canonical form ("{canonical}")')


def canonical_interface_address(text: str) -> str | None:
    """The canonical form of `text`; leading zeros are read as decimal, mapped IPv4 as IPv4."""
    address_text, slash, length_text = text.partition("/")
    if not slash or not (length_text.isascii() and length_text.isdecimal()) or len(length_text) > 9:
        return None
    head, colon, tail = address_text.rpartition(":")
    if "." in tail:
        tail = ".".join(
            part.lstrip("0") or "0" if part.isascii() and part.isdecimal() else part
            for part in tail.split(".")
        )
    address_text = f"{head}{colon}{tail}"
    try:
        address = ipaddress.ip_address(address_text)
    except ValueError:
        return None
    length = int(length_text)
    if length > address.max_prefixlen or "%" in address_text:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        # Go subtracts even where nothing is left to subtract from.
        return f"{address.ipv4_mapped}/{length - 96 if length > 32 else length}"
    return f"{address}/{length}"
