"""KubeSchedulerConfiguration files, as users have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from allot.rules import RuleSet
from allot.scheduler.configuration_file import (
    ClientConnectionFile,
    LeaderElectionFile,
    PluginConfig,
    PluginSets,
    ProfileFile,
    decode_configuration,
)
from allot.scheduler.framework.plugin_args import ConfigurationError, duration_seconds
from allot.scheduler.framework.plugins import EXTENSION_POINTS
from allot.scheduler.plugins.registry import IN_TREE, PluginRegistry

__all__ = [
    "ConfigurationError",
    "LeaderElection",
    "ProfileConfiguration",
    "SchedulerConfiguration",
    "duration_seconds",
    "read_configuration",
]

T = TypeVar("T")

DEFAULT_SCHEDULER: Final = "default-scheduler"

DEFAULT_WEIGHTS: Final[Mapping[str, int]] = {
    spec.name: spec.weight for spec in IN_TREE if spec.is_default
}
"""The plugins that are enabled by default, in order, with the weights of their scores."""

MULTI_POINT: Final = "multiPoint"
EVERYTHING: Final = "*"


@dataclass(frozen=True, slots=True)
class ProfileConfiguration:
    """One profile: its plugins in order, where single ones are off, weights and arguments."""

    scheduler_name: str = DEFAULT_SCHEDULER
    plugins: tuple[str, ...] = tuple(DEFAULT_WEIGHTS)
    disabled: Mapping[str, frozenset[str]] = field(default_factory=dict)
    weights: Mapping[str, int] = field(default_factory=lambda: DEFAULT_WEIGHTS)
    args: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    percentage_of_nodes_to_score: int = 0


@dataclass(frozen=True, slots=True)
class LeaderElection:
    """Whether several replicas agree on one that schedules, and where."""

    enabled: bool = True
    namespace: str = "kube-system"
    name: str = "kube-scheduler"
    lease_seconds: float = 15.0
    renew_seconds: float = 10.0
    retry_seconds: float = 2.0


@dataclass(frozen=True, slots=True)
class SchedulerConfiguration:
    """All that a file can say and that we honour."""

    profiles: tuple[ProfileConfiguration, ...] = (ProfileConfiguration(),)
    initial_backoff_seconds: float = 1.0
    max_backoff_seconds: float = 10.0
    leader_election: LeaderElection = LeaderElection()
    kubeconfig: str = ""
    qps: float = 50.0
    burst: int = 100
    rules: RuleSet | None = None
    """Whose answers, where the KEPs and Kubernetes v1.38 differ; None: as the component is started."""


def read_configuration(
    document: Any, registry: PluginRegistry | None = None
) -> SchedulerConfiguration:
    """The configuration in a decoded YAML file; `ConfigurationError` if it cannot be used.

    Plugins come from `registry`: by default those of this package and of all installed ones.
    """
    file = decode_configuration(document)
    registry = registry or PluginRegistry.with_installed()
    percentage = file.percentage_of_nodes_to_score or 0
    profiles = tuple(
        _profile(profile or ProfileFile(), f"profiles[{index}]", percentage, registry)
        for index, profile in enumerate(file.profiles or (ProfileFile(),))
    )
    names = [profile.scheduler_name for profile in profiles]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"profiles: duplicate schedulerName {name!r}")
    defaults = SchedulerConfiguration()
    connection = file.client_connection or ClientConnectionFile()
    return SchedulerConfiguration(
        profiles=profiles,
        initial_backoff_seconds=_or(
            file.pod_initial_backoff_seconds, defaults.initial_backoff_seconds
        ),
        max_backoff_seconds=_or(file.pod_max_backoff_seconds, defaults.max_backoff_seconds),
        leader_election=_leader_election(file.leader_election or LeaderElectionFile()),
        kubeconfig=connection.kubeconfig or "",
        qps=_or(connection.qps, defaults.qps),
        burst=_or(connection.burst, defaults.burst),
        rules=file.rules,
    )


def _or(value: T | None, default: T) -> T:
    return default if value is None else value


def _leader_election(file: LeaderElectionFile) -> LeaderElection:
    def seconds(value: Any, name: str, default: float) -> float:
        return default if value is None else duration_seconds(value, f"leaderElection.{name}")

    defaults = LeaderElection()
    return LeaderElection(
        enabled=_or(file.leader_elect, defaults.enabled),
        namespace=file.resource_namespace or defaults.namespace,
        name=file.resource_name or defaults.name,
        lease_seconds=seconds(file.lease_duration, "leaseDuration", defaults.lease_seconds),
        renew_seconds=seconds(file.renew_deadline, "renewDeadline", defaults.renew_seconds),
        retry_seconds=seconds(file.retry_period, "retryPeriod", defaults.retry_seconds),
    )


def _profile(
    file: ProfileFile, path: str, percentage: int, registry: PluginRegistry
) -> ProfileConfiguration:
    sets = file.plugins or PluginSets()
    multi = sets.at(MULTI_POINT)
    off = {entry.name for entry in multi.disabled or ()}
    everything = EVERYTHING in off
    plugins = [] if everything else [name for name in registry.default_names if name not in off]
    weights: dict[str, int] = {}
    for entry in multi.enabled or ():
        if entry.name not in plugins:
            plugins.append(entry.name)
        if entry.weight:
            weights[entry.name] = entry.weight
    disabled = _disabled(sets, plugins, weights)
    _check_plugins(plugins, f"{path}.plugins", registry)
    defaults = {name: registry[name].weight for name in (*registry.default_names, *plugins)}
    return ProfileConfiguration(
        scheduler_name=file.scheduler_name or DEFAULT_SCHEDULER,
        plugins=tuple(plugins),
        disabled={point: frozenset(names) for point, names in disabled.items() if names},
        weights=defaults | weights,
        args=_args(file.plugin_config or (), f"{path}.pluginConfig", registry),
        percentage_of_nodes_to_score=_or(file.percentage_of_nodes_to_score, percentage),
    )


def _disabled(sets: PluginSets, plugins: list[str], weights: dict[str, int]) -> dict[str, set[str]]:
    """The plugins that are disabled at single extension points.

    Plugins that are enabled at single points only are added to `plugins`, and their weights to `weights`.
    """
    everywhere = tuple(plugins)
    disabled: dict[str, set[str]] = {}
    enabled: dict[str, set[str]] = {}
    for point in EXTENSION_POINTS:
        plugin_set = sets.at(point)
        off = disabled[point] = {entry.name for entry in plugin_set.disabled or ()}
        if EVERYTHING in off:
            off.remove(EVERYTHING)
            off.update(everywhere)
        for entry in plugin_set.enabled or ():
            off.discard(entry.name)
            enabled.setdefault(entry.name, set()).add(point)
            if entry.weight:
                weights[entry.name] = entry.weight
    for name, points in enabled.items():
        if name not in everywhere:
            plugins.append(name)
            for point in EXTENSION_POINTS:
                if point not in points:
                    disabled[point].add(name)
    return disabled


def _check_plugins(plugins: list[str], path: str, registry: PluginRegistry) -> None:
    unknown = [name for name in plugins if name not in registry]
    if unknown:
        raise ConfigurationError(
            f"{path}: unknown plugin {', '.join(unknown)}; available: {', '.join(registry)}"
        )
    points = {point for name in plugins for point in registry[name].extension_points}
    for point, example in (("queueSort", "PrioritySort"), ("bind", "DefaultBinder")):
        if point not in points:
            raise ConfigurationError(
                f"{path}: no plugin for {point}; enable one, such as {example}"
            )


def _args(
    configs: Iterable[PluginConfig], path: str, registry: PluginRegistry
) -> dict[str, Mapping[str, Any]]:
    args: dict[str, Mapping[str, Any]] = {}
    for index, config in enumerate(configs):
        if config.name not in registry:
            raise ConfigurationError(f"{path}[{index}]: unknown plugin {config.name}")
        args[config.name] = config.args or {}
    return args
