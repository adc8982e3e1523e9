"""PodCertificateRequests."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, change, fill
from allot.apiserver.kinds.definition import STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.printers.column import NAME, Age, Cell, Column, Table
from allot.apiserver.printers.words import labels_text, text_at
from allot.validation.certificates import unchanged_spec, validate_pod_certificate_request
from allot.validation.fields import OMITTED, ErrorType, FieldError, FieldPath

SPEC: Final = FieldPath("spec")
EXPIRATION_SECONDS: Final = 86400


def pod_certificate_request_defaults(request: Data) -> Data:
    return change(request, "spec", lambda spec: fill(spec, maxExpirationSeconds=EXPIRATION_SECONDS))


def _validate(request: RawObject) -> Iterator[FieldError]:
    yield from validate_pod_certificate_request(request)
    yield from _validate_stub(request.get("spec", "stubPKCS10Request", default=""))


def _validate_stub(text: str) -> Iterator[FieldError]:
    if not text:
        yield FieldError(
            ErrorType.INVALID,
            SPEC,
            OMITTED,
            "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set",
        )
        return
    from cryptography import x509  # slow to import

    try:
        x509.load_der_x509_csr(base64.b64decode(text, validate=True))
    except (ValueError, binascii.Error):
        path = SPEC / "stubPKCS10Request"
        yield FieldError(ErrorType.INVALID, path, OMITTED, "must be a valid PKCS#10 CSR")


def _request_row(request: RawObject, _: Age) -> list[Cell]:
    types = {c.get("type") for c in request.get("status", "conditions", default=[])}
    state = next((type_ for type_ in ("Denied", "Failed", "Issued") if type_ in types), "Pending")
    spec = ("podName", "serviceAccountName", "nodeName", "signerName")
    return [
        request.metadata.name,
        *(text_at(request, "spec", field) for field in spec),
        state,
        labels_text(request.get("spec", "unverifiedUserAnnotations")),
    ]


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(validate=_validate, validate_change=unchanged_spec, status={}),
    ),
    defaults=pod_certificate_request_defaults,
    table=Table(
        (
            NAME,
            Column("PodName"),
            Column("ServiceAccountName"),
            Column("NodeName"),
            Column("SignerName"),
            Column("State"),
            Column("UnverifiedUserAnnotations"),
        ),
        _request_row,
    ),
    subresources=(STATUS,),
    selectable_fields={
        f"spec.{field}": f"spec.{field}" for field in ("signerName", "podName", "nodeName")
    },
    without_effect="requests are not signed",
)
