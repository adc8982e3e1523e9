"""The versions of a custom resource: their schemas, subresources and columns, as its definition has them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from allot.api.custom_resources import CustomResourceDefinition
from allot.api.versions import version_order
from allot.validation.structural.rules import RuleSet
from allot.validation.structural.schemas import Schema

if TYPE_CHECKING:
    from allot.apiserver.kinds.resources import Resource


HEAVY: Final = 2_000
"""Schemas with more parts are applied in a thread."""


class ScalePaths(NamedTuple):
    """Where the numbers of the scale endpoint are in an object."""

    spec_replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    selector: tuple[str, ...] = ()


class CustomKind:
    """A custom resource in all its versions."""

    def __init__(self, definition: CustomResourceDefinition) -> None:
        self.definition = definition
        self.storage_version = definition.storage_version
        self.has_webhook = definition.has_webhook
        """Whether a webhook converts objects between versions."""
        self.versions: dict[str, CustomVersion] = {
            version["name"]: CustomVersion(self, version) for version in definition.versions
        }
        self.resources: dict[str, Resource] = {}
        """By version, also those that are not served."""

    @property
    def home(self) -> Resource:
        """The resource in whose version objects are stored."""
        return self.resources[self.storage_version]


class CustomVersion:
    """One version of a custom resource."""

    def __init__(self, kind: CustomKind, source: Mapping[str, Any]) -> None:
        self.kind = kind
        self.source = source
        self.name: str = source["name"]
        self.is_served = bool(source.get("served"))
        validation = source.get("schema") or {}
        self.schema = Schema(validation.get("openAPIV3Schema") or {})
        self.schema.prepare()
        subresources = source.get("subresources") or {}
        self.has_status = subresources.get("status") is not None
        self._is_heavy, self._is_weighed = True, False
        self.scale = _scale_paths(subresources.get("scale"))

    @property
    def is_heavy(self) -> bool:
        """Whether a small object may be much work: because of rules, or of a large schema.

        True until the schema is weighed, which compiles its patterns and is much work itself.
        """
        return self._is_heavy

    def weigh(self) -> None:
        if not self._is_weighed:
            self._is_heavy = self.schema.has_rules_below or self.schema.weight > HEAVY
            self._is_weighed = True

    @cached_property
    def rules(self) -> RuleSet | None:
        """The validation rules, compiled when they are first needed."""
        return RuleSet(self.schema) if self.schema.has_rules_below else None

    @cached_property
    def status_schema(self) -> Schema | None:
        return self.schema.properties.get("status")

    @property
    def deprecation(self) -> str:
        """The warning for clients of a deprecated version; empty if it is not deprecated."""
        if not self.source.get("deprecated"):
            return ""
        return str(self.source.get("deprecationWarning") or self._usual_deprecation)

    @cached_property
    def _usual_deprecation(self) -> str:
        definition = self.kind.definition
        group, kind = definition.group, definition.names.get("kind", "")
        better = sorted(
            (
                version.name
                for version in self.kind.versions.values()
                if version.is_served and not version.source.get("deprecated")
            ),
            key=version_order,
        )
        text = f"{group}/{self.name} {kind} is deprecated"
        if better and version_order(better[0]) < version_order(self.name):
            text += f"; use {group}/{better[0]} {kind}"
        return text


def _scale_paths(scale: Mapping[str, Any] | None) -> ScalePaths | None:
    if scale is None:
        return None
    return ScalePaths(
        _parts(scale["specReplicasPath"]),
        _parts(scale["statusReplicasPath"]),
        _parts(scale.get("labelSelectorPath") or ""),
    )


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split(".") if part)
