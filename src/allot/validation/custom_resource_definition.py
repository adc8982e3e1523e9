"""CustomResourceDefinitions: names, versions, columns, subresources, conversion; their schemas in `structural`.

Paths follow the real server, which moves what all versions have in common from the versions to the spec before it
looks at it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from allot.deadline import Deadline, DeadlineExceededError, no_deadline
from allot.validation.custom_resource_parts import (
    validate_column,
    validate_conversion,
    validate_selectable_fields,
    validate_subresources,
)
from allot.validation.fields import (
    FieldError,
    FieldPath,
    forbidden,
    invalid,
    required,
)
from allot.validation.formats import subdomain_problems
from allot.validation.structural.default_rules import validate_defaults
from allot.validation.structural.embedded import MIXED_CASE, dns_1035_problems
from allot.validation.structural.rules import RuleSet, RuleValidation
from allot.validation.structural.schemas import Schema
from allot.validation.structural.structure_rules import (
    unsupported,
    validate_keywords,
    validate_structure,
)

Document = Mapping[str, Any]

SCOPES: Final = ("Cluster", "Namespaced")
APPROVAL: Final = "api-approved.kubernetes.io"
_PROTECTED: Final = (".k8s.io", ".kubernetes.io")
_PROTECTED_GROUPS: Final = ("k8s.io", "kubernetes.io")
_SPEC: Final = FieldPath("spec")
_SHARED: Final = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")
_TOO_LARGE: Final = "the schema takes too long to check"


def versions_of(spec: Document) -> list[Document]:
    return [version for version in spec.get("versions") or () if isinstance(version, dict)]


def shared_parts(spec: Document) -> dict[str, Any]:
    """What all versions have in common, by name."""
    versions = versions_of(spec)
    if not versions:
        return {}
    first = versions[0]
    return {
        name: first[name]
        for name in _SHARED
        if first.get(name) is not None
        and all(version.get(name) == first[name] for version in versions)
    }


def name_problems(spec: Document, name: str) -> list[str]:
    """The name of a CRD follows from its spec."""
    problems = subdomain_problems(name)
    names = spec.get("names") or {}
    if name != f"{names.get('plural') or ''}.{spec.get('group') or ''}":
        problems.append('must be spec.names.plural+"."+spec.group')
    return problems


def validate_definition(
    document: Document, old: Document | None = None, deadline: Deadline = no_deadline
) -> Iterator[FieldError]:
    """A CRD apart from its metadata; an old one is given if it is an update."""
    spec = document.get("spec") or {}
    yield from _validate_spec(spec, (old or {}).get("spec"), deadline)
    yield from _validate_stored_versions(document, spec)
    yield from _validate_approval(document, spec, old)
    if spec.get("preserveUnknownFields") and not (old or {}).get("spec", {}).get(
        "preserveUnknownFields"
    ):
        yield invalid(
            _SPEC / "preserveUnknownFields",
            True,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead",
        )


def _validate_spec(
    spec: Document, old: Document | None, deadline: Deadline
) -> Iterator[FieldError]:
    group, versions, shared = spec.get("group") or "", versions_of(spec), shared_parts(spec)
    if not group:
        yield required(_SPEC / "group")
    elif problems := subdomain_problems(group):
        yield invalid(_SPEC / "group", group, ",".join(problems))
    elif "." not in group:
        yield invalid(_SPEC / "group", group, "should be a domain with at least one dot")
    scope = spec.get("scope") or ""
    if not scope:
        yield required(_SPEC / "scope")
    elif scope not in SCOPES:
        yield unsupported(_SPEC / "scope", scope, SCOPES)
    yield from _validate_versions(spec, versions, shared, old, deadline)
    yield from _validate_required_names(spec.get("names") or {}, _SPEC / "names")
    yield from validate_names(spec.get("names") or {}, _SPEC / "names")
    if "schema" in shared:
        yield from _validate_schema(
            shared["schema"], _SPEC / "validation" / "openAPIV3Schema", _old_schemas(old), deadline
        )
    if "subresources" in shared:
        yield from validate_subresources(shared["subresources"], _SPEC / "subresources")
    for index, column in enumerate(shared.get("additionalPrinterColumns") or ()):
        yield from validate_column(column, _SPEC / "additionalPrinterColumns" @ index)
    if "selectableFields" in shared:
        yield from validate_selectable_fields(
            shared["selectableFields"], _schema_of(versions[0]), _SPEC / "selectableFields"
        )
    yield from validate_conversion(spec.get("conversion") or {}, _SPEC / "conversion")


def _validate_versions(
    spec: Document,
    versions: list[Document],
    shared: Mapping[str, Any],
    old: Document | None,
    deadline: Deadline,
) -> Iterator[FieldError]:
    path = _SPEC / "versions"
    for index, version in enumerate(versions):
        where = path @ index
        if version.get("served") and not (version.get("schema") or {}).get("openAPIV3Schema"):
            yield required(where / "schema" / "openAPIV3Schema")
    for index, version in enumerate(versions):
        where = path @ index
        name = version.get("name") or ""
        if problems := dns_1035_problems(name):
            yield invalid(where / "name", name, ",".join(problems))
        warning = version.get("deprecationWarning")
        if warning is not None:
            yield from _validate_deprecation(version, warning, where / "deprecationWarning")
        if "schema" not in shared and version.get("schema"):
            yield from _validate_schema(
                version["schema"],
                where / "schema" / "openAPIV3Schema",
                _old_schemas(old),
                deadline,
            )
        if "subresources" not in shared and version.get("subresources"):
            yield from validate_subresources(version["subresources"], where / "subresources")
        if "additionalPrinterColumns" not in shared:
            for number, column in enumerate(version.get("additionalPrinterColumns") or ()):
                yield from validate_column(column, where / "additionalPrinterColumns" @ number)
        if "selectableFields" not in shared and version.get("selectableFields"):
            yield from validate_selectable_fields(
                version["selectableFields"], _schema_of(version), where / "selectableFields"
            )
    names = [version.get("name") for version in versions]
    shown = _shown_versions(spec, versions, shared)
    if len(set(names)) < len(names):
        yield invalid(path, shown, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield invalid(path, shown, "must have exactly one version marked as storage version")
    if names and (problems := dns_1035_problems(str(names[0] or ""))):
        yield invalid(_SPEC / "version", names[0], ",".join(problems))


def _shown_versions(
    spec: Document, versions: list[Document], shared: Mapping[str, Any]
) -> list[dict[str, Any]] | None:
    """The versions as Go writes them."""
    if spec.get("versions") is None:
        return None

    def part(version: Document, name: str) -> Any:
        return None if name in shared else version.get(name)

    return [
        {
            "Name": version.get("name") or "",
            "Served": bool(version.get("served")),
            "Storage": bool(version.get("storage")),
            "Deprecated": bool(version.get("deprecated")),
            "DeprecationWarning": version.get("deprecationWarning"),
            "Schema": part(version, "schema"),
            "Subresources": part(version, "subresources"),
            "AdditionalPrinterColumns": part(version, "additionalPrinterColumns"),
            "SelectableFields": part(version, "selectableFields"),
        }
        for version in versions
    ]


def _validate_deprecation(version: Document, warning: str, path: FieldPath) -> Iterator[FieldError]:
    if not version.get("deprecated"):
        yield invalid(path, warning, "can only be set for deprecated versions")
    elif not warning:
        yield invalid(path, warning, "must not be an empty string")
    elif len(warning) > 256:
        yield invalid(path, warning, "must be <= 256 characters long")
    elif not warning.isprintable():
        yield invalid(path, warning, "must only contain printable characters")


# --- schemas ---


def _schema_of(version: Document) -> Schema:
    return Schema((version.get("schema") or {}).get("openAPIV3Schema") or {})


def _old_schemas(old: Document | None) -> frozenset[bytes]:
    """The schemas that were accepted before: they are not checked again."""
    return frozenset(
        _identity(version["schema"]["openAPIV3Schema"])
        for version in versions_of(old or {})
        if (version.get("schema") or {}).get("openAPIV3Schema")
    )


def _identity(source: Any) -> bytes:
    return msgspec.json.encode(source, order="sorted")


def _validate_schema(
    validation: Document, path: FieldPath, accepted: frozenset[bytes], deadline: Deadline
) -> Iterator[FieldError]:
    source = validation.get("openAPIV3Schema")
    if not source or _identity(source) in accepted:
        return
    schema = Schema(source)
    try:
        found = list(validate_keywords(schema, path))
        if not found:
            found = list(validate_structure(schema, path))
        if not found:
            found = list(validate_defaults(schema, path, deadline=deadline))
        if not found and schema.has_rules_below:
            found = list(RuleValidation(RuleSet(schema, deadline)).errors(path))
    except DeadlineExceededError:
        found = [forbidden(path, _TOO_LARGE)]
    yield from found


# --- names ---


def _validate_required_names(names: Document, path: FieldPath) -> Iterator[FieldError]:
    for name in ("plural", "singular", "kind", "listKind"):
        if not names.get(name):
            yield required(path / name)


def validate_names(names: Document, path: FieldPath) -> Iterator[FieldError]:
    """The names of a spec, or those that a status says are accepted."""
    for name in ("plural", "singular"):
        text = names.get(name) or ""
        if text and (problems := dns_1035_problems(text)):
            yield invalid(path / name, text, ",".join(problems))
    for name in ("kind", "listKind"):
        text = names.get(name) or ""
        if text and (problems := dns_1035_problems(text.lower())):
            problem = MIXED_CASE + ",".join(problems)
            yield invalid(path / name, text, problem)
    for name in ("shortNames", "categories"):
        for index, text in enumerate(names.get(name) or ()):
            if problems := dns_1035_problems(text):
                yield invalid(path / name @ index, text, ",".join(problems))
    kind = names.get("kind") or ""
    if kind and kind == names.get("listKind"):
        yield invalid(path / "listKind", kind, "kind and listKind may not be the same")


# --- status ---


def _validate_stored_versions(document: Document, spec: Document) -> Iterator[FieldError]:
    path = FieldPath("status") / "storedVersions"
    stored = (document.get("status") or {}).get("storedVersions")
    if not stored:
        yield invalid(path, stored, "must have at least one stored version")
        return
    versions = versions_of(spec)
    names = {version.get("name") for version in versions}
    storage = [version.get("name") for version in versions if version.get("storage")]
    for index, name in enumerate(stored):
        if name not in names:
            yield invalid(
                path @ index, name, f"missing from spec.versions; {_MIGRATION.format(version=name)}"
            )
    if storage and storage[-1] not in stored:
        yield invalid(path, list(stored), f"must have the storage version {storage[-1]}")


_MIGRATION: Final = (
    "{version} was previously a storage version, and must remain in spec.versions until a storage "
    "migration ensures no data remains persisted in {version} and removes {version} from "
    "status.storedVersions"
)


def _validate_approval(
    document: Document, spec: Document, old: Document | None
) -> Iterator[FieldError]:
    if not is_protected(spec.get("group") or ""):
        return
    problem = approval_problem(document)
    if problem is None or (old is not None and approval_problem(old) is not None):
        return
    path = FieldPath("metadata") / "annotations" @ APPROVAL
    value = ((document.get("metadata") or {}).get("annotations") or {}).get(APPROVAL)
    if value is None:
        yield required(path, problem)
    else:
        yield invalid(path, value, problem)


def is_protected(group: str) -> bool:
    """Whether a group is one of Kubernetes, for which definitions need an approval."""
    return group.endswith(_PROTECTED) or group in _PROTECTED_GROUPS


def approval_problem(document: Document) -> str | None:
    """Why a CRD in a group of Kubernetes is not approved; None if it is."""
    annotations = (document.get("metadata") or {}).get("annotations") or {}
    value = annotations.get(APPROVAL)
    if not value:
        return (
            f'protected groups must have approval annotation "{APPROVAL}", see '
            "https://github.com/kubernetes/enhancements/pull/1111"
        )
    if value.startswith("unapproved"):
        return None
    if urlsplit(value).scheme and urlsplit(value).netloc:
        return None
    return (
        f'protected groups must have approval annotation "{APPROVAL}" with either a URL or a reason '
        'starting with "unapproved", see https://github.com/kubernetes/enhancements/pull/1111'
    )


# --- updates ---


def validate_definition_update(new: Document, old: Document) -> Iterator[FieldError]:
    """What an update of an established CRD cannot change."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    conditions = (old.get("status") or {}).get("conditions") or ()
    is_established = any(
        condition.get("type") == "Established" and condition.get("status") == "True"
        for condition in conditions
    )
    immutable = [("group", before.get("group"), after.get("group"))]
    names_before, names_after = before.get("names") or {}, after.get("names") or {}
    immutable.append(("names.plural", names_before.get("plural"), names_after.get("plural")))
    if is_established:
        immutable.append(("scope", before.get("scope"), after.get("scope")))
        immutable.append(("names.kind", names_before.get("kind"), names_after.get("kind")))
    for name, was, is_ in immutable:
        if was != is_:
            path = FieldPath(f"spec.{name}")
            yield invalid(path, is_, "field is immutable")
