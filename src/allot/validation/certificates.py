"""Kinds of certificates.k8s.io."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any, Final

from allot.api.raw import RawObject
from allot.validation.core_names import path_segment_problems
from allot.validation.fields import (
    FieldError,
    FieldPath,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from allot.validation.formats import label_problems, subdomain_problems
from allot.validation.lists import repeated
from allot.validation.names import validate_label_key
from allot.validation.parts import part, parts, text, texts

SPEC: Final = FieldPath("spec")
CONDITIONS: Final = FieldPath("status") / "conditions"
NOT_A_SIGNER: Final = (
    "must be a fully qualified domain and path of the form 'example.com/signer-name'"
)
USAGES: Final = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign",
    "data encipherment", "decipher only", "digital signature", "email protection", "encipher only",
    "ipsec end system", "ipsec tunnel", "ipsec user", "key agreement", "key encipherment",
    "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime", "server auth", "signing", "timestamping",
)  # fmt: skip
MIN_EXPIRATION_SECONDS: Final = 600
POD_EXPIRATION_SECONDS: Final = (3600, 7862400)
_block: Final = re.compile(
    rb"-----BEGIN ([A-Z0-9 ]+)-----\s*([A-Za-z0-9+/=\s]*)-----END \1-----"
).search
_blocks: Final = re.compile(
    r"-----BEGIN ([A-Z0-9 ]+)-----\s*([A-Za-z0-9+/=\s]*)-----END \1-----"
).findall


def validate_signer_name(name: str, path: FieldPath) -> Iterator[FieldError]:
    if not name:
        yield required(path)
        return
    domain, *rest = name.split("/")
    if len(rest) != 1:
        yield invalid(path, name, NOT_A_SIGNER)
        return
    labels = domain.split(".")
    if len(labels) < 2:
        yield invalid(
            path, domain, "should be a domain with at least two segments separated by dots"
        )
    for label in labels:
        for problem in label_problems(label):
            yield invalid(path, domain, f'validating label "{label}": {problem}')
    for segment in rest[0].split("."):
        for problem in subdomain_problems(segment.lower()):
            yield invalid(path, rest[0], f'validating label "{segment}": {problem}')


def _decoded(value: Any) -> bytes:
    try:
        return base64.b64decode(value or "", validate=True)
    except (binascii.Error, ValueError, TypeError):
        return b""


def validate_signing_request(request: RawObject) -> Iterator[FieldError]:
    spec = request.get("spec", default={})
    found = _block(_decoded(spec.get("request")))
    if found is None or found[1] != b"CERTIFICATE REQUEST":
        yield invalid(
            SPEC / "request", spec.get("request"), "PEM block type must be CERTIFICATE REQUEST"
        )
    usages = texts(spec, "usages")
    if not usages:
        yield required(SPEC / "usages")
    for index, (usage, is_repeated) in enumerate(zip(usages, repeated(usages), strict=True)):
        if usage not in USAGES:
            yield not_supported(SPEC / "usages" @ index, usage, USAGES)
        if is_repeated:
            yield duplicate(SPEC / "usages" @ index, usage)
    signer = text(spec, "signerName")
    if signer == "kubernetes.io/legacy-unknown":
        yield invalid(
            SPEC / "signerName", signer, "the legacy signerName is not allowed via this API version"
        )
    else:
        yield from validate_signer_name(signer, SPEC / "signerName")
    seconds = spec.get("expirationSeconds")
    if isinstance(seconds, int) and seconds < MIN_EXPIRATION_SECONDS:
        yield invalid(
            SPEC / "expirationSeconds",
            seconds,
            "may not specify a duration less than 600 seconds (10 minutes)",
        )
    yield from validate_approval(request)


def validate_approval(request: RawObject) -> Iterator[FieldError]:
    """The conditions of a CertificateSigningRequest."""
    types: list[str] = []
    for index, condition in enumerate(parts(request.get("status", default={}), "conditions")):
        path, type_ = CONDITIONS @ index, text(condition, "type")
        if not type_:
            yield required(path / "type")
        status = text(condition, "status")
        if type_ in ("Approved", "Denied", "Failed") and status != "True":
            if not status:
                yield required(path / "status")
            else:
                yield not_supported(path / "status", status, ("True",))
        elif not status:
            yield required(path / "status")
        if type_ in types:
            yield duplicate(path / "type", type_)
        types.append(type_)
    if "Approved" in types and "Denied" in types:
        yield invalid(CONDITIONS, "Denied", "Approved and Denied conditions are mutually exclusive")


def validate_trust_bundle(bundle: RawObject) -> Iterator[FieldError]:
    spec, name = bundle.get("spec", default={}), bundle.metadata.name
    signer = text(spec, "signerName")
    if signer:
        prefix = signer.replace("/", ":") + ":"
        if not name.startswith(prefix):
            yield invalid(
                FieldPath("metadata") / "name",
                name,
                f"ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}",
            )
        yield from validate_signer_name(signer, SPEC / "signerName")
    elif ":" in name:
        yield invalid(
            FieldPath("metadata") / "name",
            name,
            'ClusterTrustBundle without signer name must not have ":" in its name',
        )
    path, hidden = SPEC / "trustBundle", "<value omitted>"
    found = _blocks(text(spec, "trustBundle"))
    if not found:
        yield invalid(path, hidden, "at least one trust anchor must be provided")
    for index, (type_, _) in enumerate(found):
        if type_ != "CERTIFICATE":
            yield invalid(path, hidden, f"entry {index} has bad block type: {type_}")


def trust_bundle_name_problems(name: str) -> list[str]:
    """A subdomain, or `signer:domain:name` of a bundle for a signer."""
    return path_segment_problems(name) if ":" in name else subdomain_problems(name)


def validate_pod_certificate_request(request: RawObject) -> Iterator[FieldError]:
    spec = request.get("spec", default={})
    yield from validate_signer_name(text(spec, "signerName"), SPEC / "signerName")
    for what in ("pod", "serviceAccount", "node"):
        name, uid = text(spec, f"{what}Name"), text(spec, f"{what}UID")
        for problem in subdomain_problems(name):
            yield invalid(SPEC / f"{what}Name", name, problem)
        if not uid:
            yield invalid(SPEC / f"{what}UID", uid, "must not be empty")
    seconds = spec.get("maxExpirationSeconds")
    low, high = POD_EXPIRATION_SECONDS
    if isinstance(seconds, int) and not low <= seconds <= high:
        yield invalid(
            SPEC / "maxExpirationSeconds", seconds, f"must be in the range [{low}, {high}]"
        )
    for key in part(spec, "unverifiedUserAnnotations"):
        yield from validate_label_key(key, SPEC / "unverifiedUserAnnotations")


def unchanged_spec(new: RawObject, old: RawObject) -> Iterator[FieldError]:
    if new.get("spec") != old.get("spec"):
        yield forbidden(SPEC, "field is immutable")
