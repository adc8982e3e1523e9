"""DeviceClasses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot import features
from allot.api.base import replace
from allot.api.classes import DeviceClass, DeviceClassSpec
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.kinds.gated_fields import GatedFields, drop_disabled_fields
from allot.apiserver.kinds.generations import with_generation
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.kinds.strategy import Strategy
from allot.validation.device_class import validate_class, validate_class_update
from allot.validation.fields import FieldError


class DeviceClassStrategy(Strategy[DeviceClass]):
    """Counts generations of the spec as it will be stored."""

    def prepare_create(self, new: DeviceClass, request: WriteRequest) -> DeviceClass:
        return with_generation(self._with_enabled_fields(new, None, request), 1)

    def validate_create(self, new: DeviceClass, request: WriteRequest) -> Iterator[FieldError]:
        return validate_class(new, request.context)

    def prepare_update(
        self, new: DeviceClass, old: DeviceClass, request: WriteRequest
    ) -> DeviceClass:
        new = self._with_enabled_fields(new, old, request)
        return with_generation(new, old.metadata.generation + (new.spec != old.spec))

    def validate_update(
        self, new: DeviceClass, old: DeviceClass, request: WriteRequest
    ) -> Iterator[FieldError]:
        return validate_class_update(new, old, request.context)

    def _with_enabled_fields(
        self, new: DeviceClass, old: DeviceClass | None, request: WriteRequest
    ) -> DeviceClass:
        stored = old.spec if old is not None else None
        spec = drop_disabled_fields(new.spec, stored, request.gates, GATED)
        return replace(new, spec=spec)


GATED: Final[tuple[GatedFields[DeviceClassSpec, DeviceClassSpec], ...]] = (
    GatedFields(
        (features.EXTENDED_RESOURCE,),
        lambda spec: spec.extended_resource_name is not None,
        lambda spec: replace(spec, extended_resource_name=None),
    ),
)


DEFINITION: Final = KindDefinition(
    strategy=DeviceClassStrategy,
    returns_deleted_in=("v1", "v1beta2", "v1beta1"),
)
