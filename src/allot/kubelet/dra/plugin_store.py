"""The drivers of one node, by name: registered instances, or a simulated driver.

Several instances of a driver may be registered, as in a rolling update: the latest that is connected is used. A driver that
has ever registered is not simulated any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from allot.client.clock import Clock
from allot.kubelet.dra.driver_plugin import DriverNotRegisteredError, DriverPlugin
from allot.kubelet.dra.faults import NodeFaults


class PluginInstance(DriverPlugin, Protocol):
    """A registered instance of a driver."""

    @property
    def endpoint(self) -> str: ...

    @property
    def is_connected(self) -> bool: ...


class PluginStore:
    """Finds the driver to call."""

    def __init__(
        self,
        clock: Clock,
        faults: NodeFaults,
        simulated: Callable[[str], DriverPlugin | None],
    ) -> None:
        """`simulated` makes a simulated driver, if one of that name is to be simulated."""
        self._clock = clock
        self._faults = faults
        self._make_simulated = simulated
        self._simulated: dict[str, DriverPlugin] = {}
        self._instances: dict[str, list[PluginInstance]] = {}

    def get(self, driver: str) -> DriverPlugin:
        """Raises `DriverNotRegisteredError`."""
        faults = self._faults.of(driver)
        plugin = self._chosen(driver) or self._simulation_of(driver)
        if plugin is None or (faults is not None and faults.is_gone):
            raise DriverNotRegisteredError(driver)
        return self._faults.with_faults(plugin, self._clock)

    def _chosen(self, driver: str) -> PluginInstance | None:
        instances = self._instances.get(driver, ())
        connected = (each for each in reversed(instances) if each.is_connected)
        return next(connected, instances[-1] if instances else None)

    def _simulation_of(self, driver: str) -> DriverPlugin | None:
        if driver in self._instances:
            return None
        plugin = self._simulated.get(driver)
        if plugin is None:
            plugin = self._make_simulated(driver)
            if plugin is not None:
                self._simulated[driver] = plugin
        return plugin

    def is_usable(self, driver: str) -> bool:
        """Whether an instance is connected."""
        faults = self._faults.of(driver)
        return not (faults is not None and faults.is_gone) and any(
            each.is_connected for each in self._instances.get(driver, ())
        )

    @property
    def registered(self) -> list[str]:
        """The drivers that have registered since the kubelet started."""
        return list(self._instances)

    def has_endpoint(self, driver: str, endpoint: str) -> bool:
        return any(each.endpoint == endpoint for each in self._instances.get(driver, ()))

    def add(self, plugin: PluginInstance) -> None:
        self._simulated.pop(plugin.driver, None)
        self._instances.setdefault(plugin.driver, []).append(plugin)

    def remove(self, driver: str, endpoint: str) -> PluginInstance | None:
        """The instance that was registered with the endpoint."""
        instances = self._instances.get(driver, [])
        for plugin in instances:
            if plugin.endpoint == endpoint:
                instances.remove(plugin)
                return plugin
        return None

    def clear(self) -> list[PluginInstance]:
        """Forget all instances: those that were registered."""
        found = [plugin for instances in self._instances.values() for plugin in instances]
        self._instances.clear()
        return found
