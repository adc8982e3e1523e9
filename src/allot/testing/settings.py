"""The settings of a cluster for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from allot import features
from allot.components import ClusterParts
from allot.driver.loading import load_hardware
from allot.features import FeatureGates
from allot.kubelet.settings import KubeletSettings as NodeSettings
from allot.rules import RuleSet
from allot.scheduler.configuration import ProfileConfiguration, SchedulerConfiguration


@dataclass(frozen=True)
class ClusterSettings:
    """The settings of a cluster for tests."""

    hardware: Sequence[str] = ()
    """Profiles or files; `=N` sets the number of nodes."""
    directory: Path | None = None
    """Where files with relative paths are looked for first: the directory of the test, with the pytest fixture."""
    feature_gates: Mapping[str, bool] | None = None
    """Of all components."""
    scheduler_gates: Mapping[str, bool] | None = None
    """Where the scheduler's differ from `feature_gates`: version skew."""
    controller_gates: Mapping[str, bool] | None = None
    """The same for the controllers."""
    rules: str = RuleSet.SEEDS
    """Whose answers: `seeds`, or those of Kubernetes `v1.38`."""
    controllers: Sequence[str] = ("*",)
    has_scheduler: bool = True
    binding_timeout: str = "600s"
    """How long pods wait for devices to become ready (KEP-5007), as in the scheduler's configuration."""
    all_nodes: bool = True
    """Simulate every node that a test creates."""
    has_nodes: bool = True
    """Whether nodes are simulated at all."""
    plugin_dir: str | None = None
    """Drivers may register with nodes, through sockets in DIR/NODE/plugins_registry. In real time only."""
    unregistered_drivers: str = ""
    """`hold` or `simulate`: pods with devices of drivers that have not registered. Default: as `allot nodes`."""
    driver_grace_seconds: float = 30.0
    """How long a driver may be gone before its slices are deleted."""

    @property
    def gates(self) -> FeatureGates:
        return self._gates_with({})

    def _gates_with(self, own: Mapping[str, bool] | None) -> FeatureGates:
        wanted = {**(self.feature_gates or {}), **(own or {})}
        return features.with_overrides(wanted, RuleSet(self.rules))

    @property
    def _scheduler(self) -> SchedulerConfiguration:
        args = {"DynamicResources": {"bindingTimeout": self.binding_timeout}}
        return SchedulerConfiguration(profiles=(ProfileConfiguration(args=args),))

    @property
    def _nodes(self) -> NodeSettings:
        return NodeSettings(
            all_nodes=self.all_nodes,
            plugin_dir=self.plugin_dir,
            unregistered_drivers=self.unregistered_drivers,
            slice_wipe_seconds=self.driver_grace_seconds,
        )

    @property
    def parts(self) -> ClusterParts:
        return ClusterParts(
            self._scheduler if self.has_scheduler else None,
            self.controllers,
            self._nodes if self.has_nodes else None,
            [load_hardware(reference, self.directory) for reference in self.hardware],
            self._gates_with(self.scheduler_gates),
            self._gates_with(self.controller_gates),
        )
