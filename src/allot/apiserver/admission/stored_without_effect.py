"""Warns clients that create objects of a kind that is stored but has no effect in this cluster."""

from __future__ import annotations

from allot.apiserver.admission.chain import AdmissionAttributes, Admitted
from allot.apiserver.kinds.resources import Resource


class StoredWithoutEffectWarning:
    def handles(self, operation: str, resource: Resource) -> bool:
        return operation == "create" and bool(resource.without_effect)

    async def validate(self, attributes: AdmissionAttributes) -> Admitted:
        resource = attributes.resource
        note = f"{resource.kind} objects are stored without effect: {resource.without_effect}"
        return Admitted(warnings=(note,))
