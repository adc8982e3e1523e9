"""KubeSchedulerConfiguration files, as users have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from allot.rules import RuleSet
from allot.scheduler.framework.plugin_args import ConfigurationError, duration_seconds
from allot.scheduler.framework.plugins import EXTENSION_POINTS
from allot.scheduler.plugins.registry import IN_TREE

__all__ = [
    "ConfigurationError",
    "LeaderElection",
    "ProfileConfiguration",
    "SchedulerConfiguration",
    "duration_seconds",
    "read_configuration",
]

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"
DEFAULT_SCHEDULER: Final = "default-scheduler"

DEFAULT_WEIGHTS: Final[Mapping[str, int]] = {spec.name: spec.weight for spec in IN_TREE}
"""The plugins that are enabled by default, in order, with the weights of their scores."""

POINTS: Final = tuple(EXTENSION_POINTS)
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


def read_configuration(document: Any) -> SchedulerConfiguration:
    """The configuration in a decoded file; `ConfigurationError` if it is none."""
    if not isinstance(document, dict):
        raise ConfigurationError("the configuration is not an object")
    kind, version = document.get("kind"), document.get("apiVersion")
    if kind != KIND or version != API_VERSION:
        raise ConfigurationError(f"expected {KIND} in {API_VERSION}, found {kind!r} in {version!r}")
    listed = _list(document, "profiles", "profiles") or [{}]
    percentage = _integer(document, "percentageOfNodesToScore", 0)
    profiles = tuple(
        _profile(_is_object(profile, f"profiles[{index}]"), f"profiles[{index}]", percentage)
        for index, profile in enumerate(listed)
    )
    names = [profile.scheduler_name for profile in profiles]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"profiles: schedulerName {name!r} stands there twice")
    connection = _object(document, "clientConnection", "clientConnection")
    return SchedulerConfiguration(
        profiles=profiles,
        initial_backoff_seconds=_number(document, "podInitialBackoffSeconds", 1.0),
        max_backoff_seconds=_number(document, "podMaxBackoffSeconds", 10.0),
        leader_election=_leader_election(_object(document, "leaderElection", "leaderElection")),
        kubeconfig=str(connection.get("kubeconfig") or ""),
        qps=_number(connection, "qps", 50.0),
        burst=_integer(connection, "burst", 100),
        rules=_rules(document.get("rules")),
    )


def _rules(value: Any) -> RuleSet | None:
    if value is None:
        return None
    try:
        return RuleSet(value)
    except ValueError:
        known = ", ".join(RuleSet)
        raise ConfigurationError(f"rules: {value!r} is not one of {known}") from None


def _leader_election(document: Mapping[str, Any]) -> LeaderElection:
    def seconds(name: str, default: float) -> float:
        text = document.get(name)
        return default if text is None else duration_seconds(text, f"leaderElection.{name}")

    return LeaderElection(
        enabled=bool(document.get("leaderElect", True)),
        namespace=str(document.get("resourceNamespace") or "kube-system"),
        name=str(document.get("resourceName") or "kube-scheduler"),
        lease_seconds=seconds("leaseDuration", 15.0),
        renew_seconds=seconds("renewDeadline", 10.0),
        retry_seconds=seconds("retryPeriod", 2.0),
    )


def _profile(document: Mapping[str, Any], path: str, percentage: int) -> ProfileConfiguration:
    sets = _object(document, "plugins", f"{path}.plugins")
    for point in sets:
        if point not in POINTS and point != MULTI_POINT:
            raise ConfigurationError(f"{path}.plugins.{point}: there is no such extension point")
    where = f"{path}.plugins.{MULTI_POINT}"
    multi = _object(sets, MULTI_POINT, where)
    off = set(_names(multi, "disabled", where))
    plugins = [] if EVERYTHING in off else [name for name in DEFAULT_WEIGHTS if name not in off]
    weights = dict(DEFAULT_WEIGHTS)
    for name, weight in _entries(multi, "enabled", where):
        if name not in plugins:
            plugins.append(name)
        if weight:
            weights[name] = weight
    disabled = _disabled(sets, plugins, weights, path)
    _check_plugins(plugins, path)
    return ProfileConfiguration(
        scheduler_name=str(document.get("schedulerName") or DEFAULT_SCHEDULER),
        plugins=tuple(plugins),
        disabled={point: frozenset(names) for point, names in disabled.items() if names},
        weights=weights,
        args=_args(_list(document, "pluginConfig", f"{path}.pluginConfig"), path),
        percentage_of_nodes_to_score=_integer(document, "percentageOfNodesToScore", percentage),
    )


def _disabled(
    sets: Mapping[str, Any], plugins: list[str], weights: dict[str, int], path: str
) -> dict[str, set[str]]:
    """The plugins that are off at single points; those enabled there alone are added. Weights count."""
    everywhere = tuple(plugins)
    disabled: dict[str, set[str]] = {}
    enabled: dict[str, set[str]] = {}
    for point in POINTS:
        where = f"{path}.plugins.{point}"
        set_ = _object(sets, point, where)
        off = disabled[point] = set(_names(set_, "disabled", where))
        if EVERYTHING in off:
            off.remove(EVERYTHING)
            off.update(everywhere)
        for name, weight in _entries(set_, "enabled", where):
            off.discard(name)
            enabled.setdefault(name, set()).add(point)
            if weight:
                weights[name] = weight
    for name, points in enabled.items():
        if name not in everywhere:
            plugins.append(name)
            for point in POINTS:
                if point not in points:
                    disabled[point].add(name)
    return disabled


def _check_plugins(plugins: list[str], path: str) -> None:
    unknown = [name for name in plugins if name not in DEFAULT_WEIGHTS]
    if unknown:
        raise ConfigurationError(
            f"{path}.plugins: unknown plugin {', '.join(unknown)}; known are "
            f"{', '.join(DEFAULT_WEIGHTS)}"
        )
    for needed in ("PrioritySort", "DefaultBinder"):
        if needed not in plugins:
            raise ConfigurationError(f"{path}.plugins: nothing can be scheduled without {needed}")


def _args(listed: list[Any], path: str) -> dict[str, Mapping[str, Any]]:
    args: dict[str, Mapping[str, Any]] = {}
    for index, entry in enumerate(listed):
        name = entry.get("name") if isinstance(entry, dict) else None
        if not name:
            raise ConfigurationError(f"{path}.pluginConfig[{index}]: it has no name")
        if name not in DEFAULT_WEIGHTS:
            raise ConfigurationError(f"{path}.pluginConfig[{index}]: unknown plugin {name}")
        args[name] = _object(entry, "args", f"{path}.pluginConfig[{index}].args")
    return args


def _entries(set_: Mapping[str, Any], field: str, path: str) -> Iterator[tuple[str, int]]:
    """The plugins in one of the lists of a set, and their weights."""
    for index, entry in enumerate(_list(set_, field, f"{path}.{field}")):
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not name:
            raise ConfigurationError(f"{path}.{field}[{index}]: it has no name")
        yield name, _integer(entry, "weight", 0)


def _names(set_: Mapping[str, Any], field: str, path: str) -> list[str]:
    return [name for name, _ in _entries(set_, field, path)]


def _is_object(value: Any, path: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigurationError(f"{path}: it is not an object")
    return value


def _object(document: Mapping[str, Any], name: str, path: str) -> Mapping[str, Any]:
    return _is_object(document.get(name), path)


def _list(document: Mapping[str, Any], name: str, path: str) -> list[Any]:
    value = document.get(name)
    if value is not None and not isinstance(value, list):
        raise ConfigurationError(f"{path}: it is not a list")
    return value or []


def _number(document: Mapping[str, Any], name: str, default: float) -> float:
    value = document.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise ConfigurationError(f"{name}: {value!r} is not a number that makes sense here")
    return float(value)


def _integer(document: Mapping[str, Any], name: str, default: int) -> int:
    return int(_number(document, name, float(default)))
