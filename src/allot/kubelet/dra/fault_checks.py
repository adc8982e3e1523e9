"""Whether the devices that the faults of a node name are published there. A misspelt name would have no effect."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from allot.api.slices import ResourceSlice
from allot.client.client import Client
from allot.client.options import Scope
from allot.client.resources import Resource
from allot.kubelet.dra.faults import ALL_DRIVERS, DriverFaults

PUBLISH_SECONDS: Final = 5.0
"""Drivers may still publish their devices when the annotation is read."""


async def unknown_devices(
    client: Client,
    slices: Resource[ResourceSlice],
    node: str,
    faults: Mapping[str, DriverFaults],
) -> list[str]:
    """A message for each device that no slice for the node has, after drivers had time to publish. Raises `ClientError`."""
    messages = await _unknown_now(client, slices, node, faults)
    if messages:
        await client.clock.sleep(PUBLISH_SECONDS)
        messages = await _unknown_now(client, slices, node, faults)
    return messages


async def _unknown_now(
    client: Client,
    slices: Resource[ResourceSlice],
    node: str,
    faults: Mapping[str, DriverFaults],
) -> list[str]:
    messages = []
    for driver, found in faults.items():
        if not found.health_by_device:
            continue
        published = await _device_names(client, slices, node, driver)
        messages += [
            _message(node, driver, name, published)
            for name in found.health_by_device
            if name not in published
        ]
    return messages


async def _device_names(
    client: Client, slices: Resource[ResourceSlice], node: str, driver: str
) -> set[str]:
    """Of the slices of the node, and of those that belong to no single node."""
    of_driver = "" if driver == ALL_DRIVERS else f",spec.driver={driver}"
    names: set[str] = set()
    for node_name in (node, ""):
        scope = Scope(field_selector=f"spec.nodeName={node_name}{of_driver}")
        for slice_ in (await client.list(slices, scope)).items:
            names.update(device.name for device in slice_.spec.devices or ())
    return names


def _message(node: str, driver: str, name: str, published: set[str]) -> str:
    owner = "no driver" if driver == ALL_DRIVERS else f"driver {driver}"
    verb = "publishes" if driver == ALL_DRIVERS else "does not publish"
    near = get_close_matches(name, sorted(published), n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{owner} {verb} a device {name!r} for node {node}{hint}"
