"""CertificateSigningRequests: the server notes who asks; approvals are written at a subresource of their own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from allot.api.durations import human_duration
from allot.api.raw import RawObject
from allot.api.times import written_time
from allot.apiserver.kinds.definition import APPROVAL, STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.printers.column import AGE, NAME, NONE, Age, Cell, Column, Table
from allot.apiserver.printers.words import age_of, text_at
from allot.validation.certificates import validate_approval, validate_signing_request
from allot.validation.core_names import path_segment_problems
from allot.validation.fields import FieldError, FieldPath, invalid

USAGES: Final = ("digital signature", "key encipherment")


class SigningRequestStrategy(RawStrategy):
    """The requester is the caller, and stays."""

    def prepare_create(self, new: RawObject, request: WriteRequest) -> RawObject:
        caller = request.caller
        spec: dict[str, Any] = dict(new.get("spec", default={}))
        extra = {name: list(values) for name, values in caller.extra.items()}
        spec |= {"username": caller.name, "groups": list(caller.groups)}
        spec.pop("uid", None)
        spec.pop("extra", None)
        if extra:
            spec["extra"] = extra
        return super().prepare_create(new.with_value(spec, "spec"), request)

    def prepare_update(self, new: RawObject, old: RawObject, request: WriteRequest) -> RawObject:
        """The spec cannot be changed."""
        kept = new.with_value(old.get("spec"), "spec")
        return super().prepare_update(kept, old, request)

    def prepare_status_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> RawObject:
        """New conditions get their times."""
        updated = super().prepare_status_update(new, old, request)
        conditions: list[dict[str, Any]] = updated.get("status", "conditions", default=[])
        known = {c.get("type"): c for c in old.get("status", "conditions", default=[])}
        now = written_time(request.now)
        stamped = [
            condition
            if condition.get("type") in known
            else {"lastUpdateTime": now, "lastTransitionTime": now, **condition}
            for condition in conditions
        ]
        return updated.with_value(stamped, "status", "conditions") if stamped else updated

    def validate_status_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> Iterator[FieldError]:
        yield from super().validate_status_update(new, old, request)
        yield from validate_approval(new)
        before = {c.get("type") for c in old.get("status", "conditions", default=[])}
        after = {c.get("type") for c in new.get("status", "conditions", default=[])}
        for type_ in ("Approved", "Denied", "Failed"):
            if type_ in before - after:
                path = FieldPath("status") / "conditions"
                yield invalid(path, type_, "updates may not remove a condition of this type")


def _request_row(request: RawObject, age: Age) -> list[Cell]:
    seconds = request.get("spec", "expirationSeconds")
    return [
        request.metadata.name,
        age_of(request, age),
        text_at(request, "spec", "signerName") or NONE,
        text_at(request, "spec", "username"),
        human_duration(seconds) if isinstance(seconds, int) else NONE,
        _condition(request),
    ]


def _condition(request: RawObject) -> str:
    types = {condition.get("type") for condition in request.get("status", "conditions", default=[])}
    words = (
        ["Denied"] if "Denied" in types else ["Approved"] if "Approved" in types else ["Pending"]
    )
    if "Failed" in types:
        words.append("Failed")
    if request.get("status", "certificate"):
        words.append("Issued")
    return ",".join(words)


DEFINITION: Final = KindDefinition(
    strategy=partial(
        SigningRequestStrategy,
        KindRules(
            name_problems=path_segment_problems, validate=validate_signing_request, status={}
        ),
    ),
    table=Table(
        (
            NAME,
            AGE,
            Column("SignerName"),
            Column("Requestor"),
            Column("RequestedDuration"),
            Column("Condition"),
        ),
        _request_row,
    ),
    subresources=(APPROVAL, STATUS),
    plain_tables=("approval",),
    selectable_fields={"spec.signerName": "spec.signerName"},
    without_effect="approved requests are not signed",
)
