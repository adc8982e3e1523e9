"""The KubeSchedulerConfiguration file (kubescheduler.config.k8s.io/v1), as msgspec decodes it.

Fields that are not listed here are accepted and ignored, as distributions ship files with more of them. null means the
default.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from allot.rules import RuleSet
from allot.scheduler.framework.plugin_args import ConfigurationError

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"

Count = Annotated[int, Meta(ge=0)]
Number = Annotated[float, Meta(ge=0)]
Name = Annotated[str, Meta(min_length=1)]


class PluginEntry(Struct, frozen=True):
    """A plugin in one of the lists of a plugin set."""

    name: Name
    weight: Count | None = None


class PluginSet(Struct, frozen=True):
    """The plugins that are enabled and disabled at one extension point; `*` disables all."""

    enabled: tuple[PluginEntry, ...] | None = None
    disabled: tuple[PluginEntry, ...] | None = None


class PluginSets(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Plugin sets by extension point; `multiPoint` counts for all of them."""

    multi_point: PluginSet | None = None
    pre_enqueue: PluginSet | None = None
    queue_sort: PluginSet | None = None
    pre_filter: PluginSet | None = None
    filter: PluginSet | None = None
    post_filter: PluginSet | None = None
    pre_score: PluginSet | None = None
    score: PluginSet | None = None
    reserve: PluginSet | None = None
    permit: PluginSet | None = None
    pre_bind: PluginSet | None = None
    bind: PluginSet | None = None
    post_bind: PluginSet | None = None

    def at(self, point: str) -> PluginSet:
        """The set of an extension point by its name in the file, such as `preFilter`."""
        found: PluginSet | None = getattr(self, _attributes[point])
        return found or NO_PLUGINS


_attributes: Final = {field.encode_name: field.name for field in msgspec.structs.fields(PluginSets)}
NO_PLUGINS: Final = PluginSet()


class PluginConfig(Struct, frozen=True):
    """The arguments of a plugin."""

    name: Name
    args: dict[str, Any] | None = None


class ProfileFile(Struct, frozen=True, rename="camel"):
    """A profile."""

    scheduler_name: str | None = None
    plugins: PluginSets | None = None
    plugin_config: tuple[PluginConfig, ...] | None = None
    percentage_of_nodes_to_score: Count | None = None


class ClientConnectionFile(Struct, frozen=True):
    """How the scheduler reaches the API server."""

    kubeconfig: str | None = None
    qps: Number | None = None
    burst: Count | None = None


class LeaderElectionFile(Struct, frozen=True, rename="camel"):
    """Leader election; durations as Go writes them."""

    leader_elect: bool | None = None
    resource_namespace: str | None = None
    resource_name: str | None = None
    lease_duration: Any = None
    renew_deadline: Any = None
    retry_period: Any = None


class ConfigurationFile(Struct, frozen=True, rename="camel"):
    """The whole file."""

    profiles: tuple[ProfileFile | None, ...] | None = None
    percentage_of_nodes_to_score: Count | None = None
    pod_initial_backoff_seconds: Number | None = None
    pod_max_backoff_seconds: Number | None = None
    client_connection: ClientConnectionFile | None = None
    leader_election: LeaderElectionFile | None = None
    rules: RuleSet | None = None


def decode_configuration(document: Any) -> ConfigurationFile:
    """The file; `ConfigurationError` names the first field that is wrong, and its value."""
    if not isinstance(document, dict):
        raise ConfigurationError("the configuration is not an object")
    kind, version = document.get("kind"), document.get("apiVersion")
    if kind != KIND or version != API_VERSION:
        raise ConfigurationError(f"expected {KIND} in {API_VERSION}, found {kind!r} in {version!r}")
    try:
        return msgspec.convert(document, ConfigurationFile)
    except msgspec.ValidationError as error:
        raise ConfigurationError(_message(str(error), document)) from None


_located: Final = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<path>.*)`)?", re.DOTALL)
_unknown_field: Final = re.compile(r"Object contains unknown field `(.*)`")


def _message(text: str, document: Any) -> str:
    """msgspec's message with the path first, and the value that was found."""
    match = _located.fullmatch(text)
    assert match is not None
    what, path = match["what"], match["path"] or ""
    if unknown := _unknown_field.fullmatch(what):
        points = ", ".join(_attributes)
        return f"{path}.{unknown[1]}: unknown extension point; available: {points}"
    if what.startswith("Object missing"):
        return f"{path}: missing required field {what.split('`')[1]}"
    value = _value_at(document, path)
    if what.startswith("Invalid enum value"):
        return f"{path}: {value!r} is not one of {', '.join(RuleSet)}"
    expected = what.partition(", got ")[0].replace("`", "").replace(" | null", "")
    found = "an object" if isinstance(value, dict) else repr(value)
    return f"{path}: {expected[0].lower()}{expected[1:]}, found {found}"


def _value_at(document: Any, path: str) -> Any:
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        document = document[int(index)] if index else document.get(name)
    return document
