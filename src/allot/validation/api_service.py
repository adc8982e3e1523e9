"""APIServices and StorageVersionMigrations."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from typing import Final

from allot.api.raw import RawObject
from allot.validation.fields import FieldError, FieldPath, invalid, required
from allot.validation.names import validate_subdomain
from allot.validation.parts import Part, part, text

SPEC: Final = FieldPath("spec")
MAX_LABEL: Final = 63
_LABEL: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_is_label: Final = re.compile(_LABEL).fullmatch
LABEL_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an"
    " alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123',"
    f" regex used for validation is '{_LABEL}')"
)


def validate_api_service(service: RawObject) -> Iterator[FieldError]:
    spec = service.get("spec", default={})
    group, version = text(spec, "group"), text(spec, "version")
    wanted = f"{version}.{group}"
    if service.metadata.name != wanted:
        yield invalid(
            FieldPath("metadata") / "name",
            service.metadata.name,
            f'must be `spec.version+"."+spec.group`: "{wanted}"',
        )
    if group:
        yield from validate_subdomain(group, SPEC / "group")
    elif version != "v1":
        yield required(
            SPEC / "group", "only v1 may have an empty group and it better be legacy kube"
        )
    if not _is_label(version):
        yield invalid(SPEC / "version", version, LABEL_RULE)
    for field, limit in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
        number = spec.get(field) or 0
        if not 0 < number <= limit:
            yield invalid(SPEC / field, number, f"must be positive and less than {limit}")
    yield from _validate_backend(spec)


def _validate_backend(spec: Part) -> Iterator[FieldError]:
    insecure, bundle = spec.get("insecureSkipTLSVerify"), spec.get("caBundle")
    if spec.get("service") is None:
        if bundle:
            yield invalid(
                SPEC / "caBundle",
                f"{len(b64decode(bundle))} bytes",
                "local APIServices may not have a caBundle",
            )
        if insecure:
            yield invalid(
                SPEC / "insecureSkipTLSVerify",
                True,
                "local APIServices may not have insecureSkipTLSVerify",
            )
        return
    service = part(spec, "service")
    for field in ("namespace", "name"):
        if not text(service, field):
            yield required(SPEC / "service" / field)
    port = service.get("port")
    if port is not None and not 1 <= port <= 65535:
        yield invalid(
            SPEC / "service" / "port",
            port,
            "port is not valid: must be between 1 and 65535, inclusive",
        )
    if insecure and bundle:
        yield invalid(
            SPEC / "insecureSkipTLSVerify", True, "may not be true if caBundle is present"
        )


def validate_storage_version_migration(migration: RawObject) -> Iterator[FieldError]:
    path, resource = SPEC / "resource", part(migration.get("spec", default={}), "resource")
    name, group = text(resource, "resource"), text(resource, "group")
    if not name:
        yield required(path / "resource", "resource is required to be set")
    else:
        if len(name) > MAX_LABEL:
            yield invalid(path / "resource", name, f"must be no more than {MAX_LABEL} characters")
        if not _is_label(name):
            yield invalid(path / "resource", name, LABEL_RULE)
    if group:
        yield from validate_subdomain(group, path / "group")
