"""ResourceClaimTemplates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot.api.base import replace
from allot.api.claims import ResourceClaimTemplate
from allot.apiserver.kinds.claim_fields import StoredTemplate, drop_disabled_spec_fields
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.kinds.resource_claim import flat_request_path, validate_admin_access
from allot.apiserver.kinds.strategy import Strategy
from allot.validation.fields import FieldError
from allot.validation.resource_claim_template import validate_template, validate_template_update


class ResourceClaimTemplateStrategy(Strategy[ResourceClaimTemplate]):
    """A claim spec that is judged as strictly as a claim's, also on update."""

    def prepare_create(
        self, new: ResourceClaimTemplate, request: WriteRequest
    ) -> ResourceClaimTemplate:
        return self._with_enabled_fields(new, None, request)

    def validate_create(
        self, new: ResourceClaimTemplate, request: WriteRequest
    ) -> Iterator[FieldError]:
        yield from validate_admin_access(new.spec.spec, request)
        yield from validate_template(new, request.context)

    def prepare_update(
        self, new: ResourceClaimTemplate, old: ResourceClaimTemplate, request: WriteRequest
    ) -> ResourceClaimTemplate:
        return self._with_enabled_fields(new, StoredTemplate(old.spec.spec), request)

    def validate_update(
        self, new: ResourceClaimTemplate, old: ResourceClaimTemplate, request: WriteRequest
    ) -> Iterator[FieldError]:
        return validate_template_update(new, old, request.context)

    def flat_path(self, path: str) -> str:
        return flat_request_path(path)

    def _with_enabled_fields(
        self, new: ResourceClaimTemplate, stored: StoredTemplate | None, request: WriteRequest
    ) -> ResourceClaimTemplate:
        spec = drop_disabled_spec_fields(new.spec.spec, stored, request.gates)
        return replace(new, spec=replace(new.spec, spec=spec))


DEFINITION: Final = KindDefinition(
    strategy=ResourceClaimTemplateStrategy,
    returns_deleted_in=("v1", "v1beta2", "v1beta1"),
)
