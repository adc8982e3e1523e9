"""The API server's answers to an object: would it be accepted, and which fields would be ignored?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from allot.api.base import replace
from allot.api.core import PodParts
from allot.api.decoding import DecodeError, decode
from allot.api.identities import GroupVersionKind
from allot.api.kinds import Kind
from allot.api.resource import ADMIN_ACCESS_LABEL, GROUP
from allot.api.scheme import KINDS, UnknownKindError, decode_object, is_typed_group, lookup
from allot.api.strictness import strict_issues
from allot.apiserver.kinds.request import Caller, WriteRequest
from allot.apiserver.kinds.resources import find_kind
from allot.apiserver.registry.write_pipeline import (
    Accepted,
    Outcome,
    Refused,
    Rejected,
    WritePipeline,
    pipeline_for,
)
from allot.features import FeatureGates
from allot.lint import rule_table as rules
from allot.lint.expression_errors import expression_problems
from allot.lint.findings import Problem, Severity
from allot.lint.fixes import Fix, ReplaceValue
from allot.lint.known_objects import KnownObjects
from allot.lint.qualified_names import qualified_names
from allot.lint.spelling import did_you_mean, one_of, only_typo
from allot.lint.subjects import NOW, POD_SPECS, LintSubject, pod_body
from allot.lint.unknown_fields import unknown_field_problems
from allot.validation.cel_checker import CelChecker
from allot.validation.fields import ErrorType, FieldError
from allot.validation.pod import validate_pod_spec
from allot.validation.resource_claim import NOT_A_REQUEST, ONE_OF

_EXPRESSIONS: Final = CelChecker()


def server_problems(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem] | None:
    """The problems of one object; None if objects of its kind are not checked."""
    manifest, gvk = subject.manifest, subject.gvk
    if not manifest.api_version or not manifest.kind:
        missing = "apiVersion" if not manifest.api_version else "kind"
        problem = Problem(
            rules.UNKNOWN_KIND, missing, "Required value: every object says what it is"
        )
        return iter([problem])
    path = POD_SPECS.get((gvk.group, gvk.kind))
    if is_typed_group(gvk.group):
        return _until_undecodable(_typed_problems(subject, known, gates))
    if path is not None:
        return _until_undecodable(_pod_problems(subject, path))
    return None


def _until_undecodable(problems: Iterator[Problem]) -> Iterator[Problem]:
    """All problems. A decoding error is the last one."""
    try:
        yield from problems
    except UnknownKindError as error:
        yield Problem(rules.UNKNOWN_KIND, "apiVersion", _unknown_kind(error.gvk))
    except DecodeError as error:
        yield Problem(rules.WRONG_TYPE, error.field, error.problem)


def _unknown_kind(gvk: GroupVersionKind) -> str:
    kind = KINDS.get(gvk.kind)
    if kind is None:
        return f"no kind {gvk.kind} in {GROUP}; available: {', '.join(sorted(KINDS))}"
    served = ", ".join(f"{GROUP}/{version}" for version in kind.versions)
    return f"no {gvk.kind} in {gvk.group_version}; it is served as: {served}"


# --- typed objects ---


def _typed_problems(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    gvk, body = subject.gvk, subject.manifest.body
    kind, version = lookup(gvk)
    moved: set[str] = set()
    for problem in unknown_field_problems(subject, strict_issues(body, version.cls)):
        if problem.rule is rules.MOVED_FIELD:
            moved.add(problem.path.rpartition(".")[0])
        yield problem
    sent = decode_object(body, gvk, NOW)
    request = write_request(subject, gates)
    pipeline = _pipeline(gvk)
    for problem in _outcome(subject, known, pipeline.create(_as_new(sent), request), gates):
        # A moved field is also missing at its new place, which is already reported.
        if not (problem.path in moved and ONE_OF in problem.message):
            yield problem
    yield from _status_problems(subject, known, sent, kind, request)


def write_request(subject: LintSubject, gates: FeatureGates) -> WriteRequest:
    return WriteRequest(
        gates=gates,
        version=subject.gvk.version,
        expressions=_EXPRESSIONS,
        now=NOW,
        new_name_suffix=lambda: "xxxxx",
        caller=Caller("lint", {}, lambda _: True),
        # Whether the namespace allows admin access is a rule of its own: `admin_namespace`.
        namespace_labels={ADMIN_ACCESS_LABEL: "true"},
    )


def create_outcome(subject: LintSubject, gates: FeatureGates) -> Outcome | None:
    """The outcome of creating the object; None if it cannot be decoded."""
    if subject.object is None:
        return None
    request = write_request(subject, gates)
    return _pipeline(subject.gvk).create(_as_new(subject.object), request)


def prepared_object(subject: LintSubject, gates: FeatureGates) -> Any:
    """The object as it would be stored: without fields whose gate is off."""
    resource = find_kind(subject.gvk)
    assert resource is not None
    return resource.strategy.prepare_create(_as_new(subject.object), write_request(subject, gates))


def _pipeline(gvk: GroupVersionKind) -> WritePipeline:
    resource = find_kind(gvk)
    assert resource is not None
    return pipeline_for(resource)


def _as_new(sent: Any) -> Any:
    """The object as if it were created now: dumps contain fields that only the server sets."""
    return replace(sent, metadata=replace(sent.metadata, resource_version="", managed_fields=()))


def _status_problems(
    subject: LintSubject, known: KnownObjects, sent: Any, kind: Kind, request: WriteRequest
) -> Iterator[Problem]:
    """Validates the status in a dump as if it were written now."""
    if not kind.has_status or not subject.manifest.data.get("status"):
        return
    version = sent.metadata.resource_version or "1"
    metadata = replace(sent.metadata, resource_version=version, deletion_timestamp=None)
    new = replace(sent, metadata=metadata)
    empty = kind.hub_type().status  # type: ignore[attr-defined]
    old = replace(new, status=empty)
    outcome = _pipeline(subject.gvk).update_status(new, old, request)
    # A create ignores the status, so only a stored object can have an invalid one.
    severity = None if sent.metadata.uid or sent.metadata.resource_version else Severity.WARNING
    for problem in _outcome(subject, known, outcome, request.gates):
        if problem.path.startswith("status"):
            yield problem._replace(severity=severity)


def _outcome(
    subject: LintSubject, known: KnownObjects, outcome: Outcome, gates: FeatureGates
) -> Iterator[Problem]:
    match outcome:
        case Accepted(_, warnings):
            for warning in warnings:
                path, _, message = warning.partition(": ")
                yield Problem(rules.SERVER_WARNING, path, message)
        case Rejected(errors):
            yield from field_problems(subject, known, errors, gates)
        case Refused(_, _, message):
            yield Problem(rules.REFUSED, "metadata", message)


def field_problems(
    subject: LintSubject, known: KnownObjects, errors: list[FieldError], gates: FeatureGates
) -> Iterator[Problem]:
    """One problem per error; for an expression, one per problem in it."""
    for error in errors:
        special = expression_problems(subject, error, errors, gates)
        if special is not None:
            yield from special
            continue
        rule, path = rules.FIELD_RULES[error.type], str(error.path)
        hint: str
        fix: Fix | None
        if _is_bare_attribute(error):
            hint, fix = qualified_names(path, str(error.value), known)
        else:
            hint, fix = _reference(subject, path, error)
        yield Problem(rule, path, error.message + hint, fix)


def _is_bare_attribute(error: FieldError) -> bool:
    is_attribute = str(error.path).endswith((".matchAttribute", ".distinctAttribute"))
    return is_attribute and "/" not in str(error.value or "/") and " slash" in error.detail


def _reference(subject: LintSubject, path: str, error: FieldError) -> tuple[str, Fix | None]:
    """What a constraint or configuration can name instead, and a fix if it is a typo."""
    if NOT_A_REQUEST not in error.detail or subject.claim is None:
        return "", None
    names = {request.name for request in subject.claim.devices.requests}
    names |= {alternative.label for alternative in subject.claim.alternatives()}
    meant = only_typo(str(error.value), names)
    fix = ReplaceValue(path, meant) if meant is not None else None
    return one_of(str(error.value), names), fix


# --- pods and what creates them ---


def _pod_problems(subject: LintSubject, path: tuple[str, ...]) -> Iterator[Problem]:
    """The DRA parts of a pod spec, wherever in the object it is."""
    body = pod_body(subject.manifest, path)
    prefix = ".".join(path)
    yield from unknown_field_problems(
        subject,
        [
            issue._replace(path=issue.path.replace("spec", prefix, 1))
            for issue in strict_issues(body, PodParts)
        ],
    )
    spec = decode(body, PodParts, "v1").spec
    names = [claim.name for claim in spec.resource_claims]
    for error in validate_pod_spec(spec):
        where = str(error.path).replace("spec", prefix, 1)
        hint, fix = "", None
        if error.type is ErrorType.NOT_FOUND:
            hint = did_you_mean(str(error.value), names)
            meant = only_typo(str(error.value), names)
            fix = ReplaceValue(f"{where}.name", meant) if meant is not None else None
        yield Problem(rules.FIELD_RULES[error.type], where, error.message + hint, fix)
