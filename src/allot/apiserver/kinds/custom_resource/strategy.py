"""Writes of custom resources: validated by the schema and the rules of the version they are written in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from allot.api.base import replace
from allot.api.kinds import Kind
from allot.api.meta import ObjectMeta
from allot.api.raw import RawObject
from allot.apiserver.kinds.custom_resource.scale import validate_replicas
from allot.apiserver.kinds.custom_versions import CustomVersion
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.kinds.strategy import StatusStrategy
from allot.validation.fields import ErrorType, FieldError, FieldPath, invalid
from allot.validation.metadata import (
    finalizer_warnings,
    validate_metadata,
    validate_metadata_update,
)
from allot.validation.structural.correlation import NO_OLD
from allot.validation.structural.embedded import validate_embedded
from allot.validation.structural.list_types import validate_list_types
from allot.validation.structural.rule_evaluation import run_rules
from allot.validation.structural.rules import RuleSet
from allot.validation.structural.values import validate_value

_BLOCKING: Final = frozenset(
    {ErrorType.REQUIRED, ErrorType.TOO_LONG, ErrorType.TOO_MANY, ErrorType.TYPE_INVALID}
)
"""Errors after which rules are not run: they might fail for the same reason."""
_NOT_CHECKED: Final = (
    "some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation"
)
_STATUS: Final = FieldPath("status")


class CustomResourceStrategy(StatusStrategy[RawObject]):
    """The steps of a write of one version of a custom resource."""

    def __init__(self, version: CustomVersion, kind: Kind) -> None:
        super().__init__(kind)
        self._version = version

    # --- create ---

    def prepare_create(self, new: RawObject, request: WriteRequest) -> RawObject:
        if self._version.has_status:
            new = new.with_value(None, "status")
        return new.with_metadata(replace(new.metadata, generation=1))

    def validate_create(self, new: RawObject, request: WriteRequest) -> Iterator[FieldError]:
        found = list(
            validate_metadata(new.metadata, namespaced=self.kind.namespaced, any_finalizer=True)
        )
        schema, data = self._version.schema, new.data
        found += validate_value(data, schema)
        found += validate_replicas(new, self._version.scale)
        found += validate_embedded(data, schema)
        found += validate_list_types(data, schema, None)
        yield from found
        yield from _rule_errors(found, self._version.rules, data, NO_OLD, request)

    # --- update ---

    def prepare_update(self, new: RawObject, old: RawObject, request: WriteRequest) -> RawObject:
        if self._version.has_status:
            new = new.with_value(old.get("status"), "status")
        changed = self._counted(new) != self._counted(old)
        metadata = replace(new.metadata, generation=old.metadata.generation + changed)
        return new.with_metadata(metadata)

    def _counted(self, obj: RawObject) -> dict[str, Any]:
        """What a generation counts the changes of."""
        left = {"metadata", "apiVersion", "kind"}
        if self._version.has_status:
            left.add("status")
        return {name: value for name, value in obj.data.items() if name not in left}

    def validate_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> Iterator[FieldError]:
        found = list(validate_metadata_update(new.metadata, old.metadata, any_finalizer=True))
        schema, data, before = self._version.schema, new.data, old.data
        found += validate_value(data, schema, old=before)
        found += validate_replicas(new, self._version.scale)
        found += validate_embedded(data, schema)
        if next(validate_list_types(before, schema, None), None) is None:
            found += validate_list_types(data, schema, None)
        yield from found
        yield from _rule_errors(found, self._version.rules, data, before, request)

    # --- status ---

    def prepare_status_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> RawObject:
        """The old object with the new status; of the metadata only its managers change."""
        kept = old.with_value(new.get("status"), "status")
        metadata = replace(
            old.metadata,
            managed_fields=new.metadata.managed_fields,
            resource_version=new.metadata.resource_version,
        )
        return kept.with_metadata(metadata)

    def validate_status_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> Iterator[FieldError]:
        found = list(validate_metadata_update(new.metadata, old.metadata, any_finalizer=True))
        schema = self._version.status_schema
        data, before = new.get("status"), old.get("status")
        if schema is not None and data is not None:
            past = NO_OLD if before is None else before
            found += [
                error._replace(path=_below_status(error))
                for error in validate_value(data, schema, old=past)
            ]
            found += validate_list_types(data, schema, _STATUS)
        found += validate_replicas(new, self._version.scale, only_status=True)
        yield from found
        if schema is not None and data is not None:
            yield from _rule_errors(found, self._version.rules, new.data, old.data, request)

    # --- the rest ---

    def accepts_unconditional_update(self, version: str) -> bool:
        return False

    def warnings(self, new: RawObject) -> list[str]:
        return list(finalizer_warnings(new.metadata))

    def with_metadata(self, obj: Any, metadata: ObjectMeta) -> Any:
        return obj.with_metadata(metadata)

    def as_listed(self, errors: list[FieldError], request: WriteRequest) -> list[FieldError]:
        return errors


def _below_status(error: FieldError) -> FieldPath:
    relative_path = str(error.path)
    return error.path if relative_path == "<nil>" else FieldPath(f"status.{relative_path}")


def _rule_errors(
    found: list[FieldError], rules: RuleSet | None, new: Any, old: Any, request: WriteRequest
) -> Iterator[FieldError]:
    if rules is None:
        return
    if any(error.type in _BLOCKING for error in found):
        yield invalid(FieldPath("<nil>"), None, _NOT_CHECKED)
        return
    outcome = run_rules(rules, new, old, request.new_deadline())
    if request.warnings is not None:
        request.warnings.extend(map(str, outcome.ratcheted))
    yield from outcome.errors
