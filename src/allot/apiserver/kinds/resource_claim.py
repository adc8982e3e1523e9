"""ResourceClaims. `claim_authorization` says who may write their status."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Final

from allot.api.base import replace
from allot.api.claims import ResourceClaim, ResourceClaimSpec, ResourceClaimStatus
from allot.apiserver.kinds.claim_authorization import (
    ADMIN_ACCESS_NEEDS_LABEL,
    authorize_status_update,
)
from allot.apiserver.kinds.claim_fields import (
    drop_disabled_spec_fields,
    drop_disabled_status_fields,
)
from allot.apiserver.kinds.definition import STATUS, KindDefinition
from allot.apiserver.kinds.known_valid import KnownValid
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.kinds.strategy import StatusStrategy, metadata_for_status_update
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Column, Table
from allot.validation.claim_status import (
    allocated_device_ids,
    validate_claim_status_update,
)
from allot.validation.fields import FieldError, forbidden
from allot.validation.metadata import validate_metadata
from allot.validation.resource_claim import SPEC, validate_claim_spec, validate_claim_update


def validate_admin_access(spec: ResourceClaimSpec, request: WriteRequest) -> Iterator[FieldError]:
    """Only the first offender is named, on a path without `exactly`."""
    for index, asked in enumerate(spec.devices.requests):
        if asked.exactly is not None and asked.exactly.admin_access:
            if not request.grants_admin_access:
                path = SPEC / "devices" / "requests" @ index / "adminAccess"
                yield forbidden(path, ADMIN_ACCESS_NEEDS_LABEL)
            return


_in_exactly: Final = re.compile(r"(\.requests\[\d+\])\.exactly\b")


def flat_request_path(path: str) -> str:
    """The path of a field of a request in v1beta1, which has no `exactly`."""
    return _in_exactly.sub(r"\1", path)


_valid_specs: Final = KnownValid()


class ResourceClaimStrategy(StatusStrategy[ResourceClaim]):
    """The spec is written once; the status belongs to the scheduler, controllers and drivers."""

    def prepare_create(self, new: ResourceClaim, request: WriteRequest) -> ResourceClaim:
        spec = drop_disabled_spec_fields(new.spec, None, request.gates)
        return replace(new, spec=spec, status=ResourceClaimStatus())

    def validate_create(self, new: ResourceClaim, request: WriteRequest) -> Iterator[FieldError]:
        spec = new.spec
        return chain(
            validate_admin_access(spec, request),
            validate_metadata(new.metadata, namespaced=True),
            _valid_specs.errors(
                spec,
                lambda: validate_claim_spec(spec, SPEC, request.context),
                (request.gates, request.version, request.expressions),
            ),
        )

    def prepare_update(
        self, new: ResourceClaim, old: ResourceClaim, request: WriteRequest
    ) -> ResourceClaim:
        spec = drop_disabled_spec_fields(new.spec, old, request.gates)
        return replace(new, spec=spec, status=old.status)

    def validate_update(
        self, new: ResourceClaim, old: ResourceClaim, request: WriteRequest
    ) -> Iterator[FieldError]:
        return validate_claim_update(new, old)

    def prepare_status_update(
        self, new: ResourceClaim, old: ResourceClaim, request: WriteRequest
    ) -> ResourceClaim:
        status = drop_disabled_status_fields(new.status, old, request.gates)
        prepared = replace(
            new,
            metadata=metadata_for_status_update(new.metadata, old.metadata),
            spec=old.spec,
            status=status,
        )
        if not status.devices:
            return prepared
        # What is not allocated any more has nothing to report.
        gone = allocated_device_ids(old) - allocated_device_ids(prepared)
        kept = tuple(device for device in status.devices if device.shared_device_id not in gone)
        return replace(prepared, status=replace(status, devices=kept))

    def validate_status_update(
        self, new: ResourceClaim, old: ResourceClaim, request: WriteRequest
    ) -> Iterator[FieldError]:
        yield from authorize_status_update(new, old, request)
        yield from validate_claim_status_update(new, old, request.gates)

    def flat_path(self, path: str) -> str:
        return flat_request_path(path)


def claim_state(claim: ResourceClaim) -> str:
    states = []
    deleting = claim.metadata.deletion_timestamp is not None
    if deleting:
        states.append("deleted")
    if claim.status.allocation is not None:
        states.append("allocated")
        if claim.status.reserved_for:
            states.append("reserved")
    elif not deleting:
        states.append("pending")
    return ",".join(states)


def _row(claim: ResourceClaim, age: Age) -> list[Cell]:
    return [claim.metadata.name, claim_state(claim), age(claim.metadata.creation_timestamp)]


DEFINITION: Final = KindDefinition(
    strategy=ResourceClaimStrategy,
    table=Table((NAME, Column("State"), AGE), _row),
    subresources=(STATUS,),
    plain_tables=("status",),
    returns_deleted_in=("v1", "v1beta2", "v1beta1"),
)
