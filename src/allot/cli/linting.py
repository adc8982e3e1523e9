"""What `allot lint` finds in manifests: the answers of the API server, with the place in the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Final, NamedTuple

import msgspec

from allot.api.base import replace
from allot.api.claims import ResourceClaim, ResourceClaimTemplate
from allot.api.core import PodParts, PodSpec
from allot.api.decoding import DecodeError, decode
from allot.api.identities import GroupVersion, GroupVersionKind
from allot.api.resource import ADMIN_ACCESS_LABEL, GROUP
from allot.api.scheme import KINDS, Kind, UnknownKindError, decode_object, lookup
from allot.api.strictness import strict_issues
from allot.apiserver.strategies import pipeline
from allot.apiserver.strategies.request import Caller, WriteRequest
from allot.cli.expressions import (
    PublishedNames,
    expression_issues,
    point_at,
    published_names,
    unpublished_reads,
)
from allot.cli.manifests import Manifest, Unreadable
from allot.features import FeatureGates
from allot.validation.cel_checker import CelChecker
from allot.validation.expressions import ExpressionChecker
from allot.validation.fields import FieldError
from allot.validation.pod import validate_pod_spec

NOW: Final = datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)
DEFAULT_NAMESPACE: Final = "default"

# Where the pod spec is in kinds that have one.
POD_SPECS: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("", "Pod"): ("spec",),
    ("", "ReplicationController"): ("spec", "template", "spec"),
    ("apps", "Deployment"): ("spec", "template", "spec"),
    ("apps", "ReplicaSet"): ("spec", "template", "spec"),
    ("apps", "StatefulSet"): ("spec", "template", "spec"),
    ("apps", "DaemonSet"): ("spec", "template", "spec"),
    ("batch", "Job"): ("spec", "template", "spec"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
}


class Finding(NamedTuple):
    """Something to mend (`error`) or to think about (`warning`), and where it is."""

    severity: str
    source: str
    line: int
    column: int
    object: str
    field: str
    message: str
    snippet: str = ""  # the line in question, and a caret under the place


class Report(NamedTuple):
    """All that was found, and how much was looked at."""

    findings: list[Finding]
    checked: int
    skipped: int

    @property
    def errors(self) -> int:
        return sum(finding.severity == "error" for finding in self.findings)


class Linter:
    """Checks manifests as the API server would, one by one, with what the others tell."""

    def __init__(self, gates: FeatureGates, expressions: ExpressionChecker | None = None) -> None:
        self._gates = gates
        self._expressions = expressions or CelChecker()

    def check(self, manifests: Iterable[Manifest | Unreadable]) -> Report:
        everything = list(manifests)
        namespaces = _namespace_labels(everything)
        published = published_names(everything, NOW)
        findings: list[Finding] = []
        checked = skipped = 0
        for manifest in everything:
            if isinstance(manifest, Unreadable):
                findings.append(_unreadable(manifest))
                continue
            found = self._check_one(manifest, namespaces)
            if found is None:
                skipped += 1
            else:
                checked += 1
                findings += _until_undecodable(manifest, found)
                findings += self._unpublished(manifest, published)
        findings.sort(key=lambda finding: (finding.source, finding.line, finding.column))
        return Report(findings, checked, skipped)

    def _check_one(
        self, manifest: Manifest, namespaces: dict[str, dict[str, str]]
    ) -> Iterator[Finding] | None:
        """What is wrong with one object; None if objects of its kind are not looked at."""
        if not manifest.api_version or not manifest.kind:
            missing = "apiVersion" if not manifest.api_version else "kind"
            why = "Required value: every object says what it is"
            return iter([_finding(manifest, missing, why)])
        gvk = GroupVersionKind(*GroupVersion.parse(manifest.api_version), manifest.kind)
        path = POD_SPECS.get((gvk.group, gvk.kind))
        if gvk.group == GROUP:
            return chain(_duplicates(manifest), self._check_typed(manifest, gvk, namespaces))
        if path is not None:
            return chain(_duplicates(manifest), _check_pod(manifest, path))
        return None

    def _unpublished(self, manifest: Manifest, published: PublishedNames) -> Iterator[Finding]:
        """Attributes and capacities that no device among the manifests has."""
        for path, message in unpublished_reads(manifest, published, self._gates):
            yield _finding(manifest, path, message, severity="warning")

    def _check_typed(
        self, manifest: Manifest, gvk: GroupVersionKind, namespaces: dict[str, dict[str, str]]
    ) -> Iterator[Finding]:
        kind, version = lookup(gvk)
        yield from _unknown_fields(manifest, version.cls)
        sent = decode_object(manifest.body, gvk, NOW)
        namespace = sent.metadata.namespace or DEFAULT_NAMESPACE
        labels = namespaces.get(namespace)
        request = WriteRequest(
            gates=self._gates,
            version=gvk.version,
            expressions=self._expressions,
            now=NOW,
            new_name_suffix=lambda: "xxxxx",
            caller=Caller("lint", {}, lambda _: True),
            # What is not known about a namespace is not held against its claims.
            namespace_labels={ADMIN_ACCESS_LABEL: "true"} if labels is None else labels,
        )
        yield from _outcome(manifest, pipeline.create(_as_new(sent), kind, request))
        yield from _check_status(manifest, sent, kind, request)
        yield from _advice(manifest, sent, gvk, labels is None)


def _until_undecodable(manifest: Manifest, findings: Iterator[Finding]) -> Iterator[Finding]:
    """All findings. What cannot be decoded is one, and the last."""
    try:
        yield from findings
    except UnknownKindError as error:
        yield _finding(manifest, "apiVersion", _unknown_kind(error.gvk))
    except DecodeError as error:
        yield _finding(manifest, error.field, error.problem)


def _namespace_labels(manifests: Sequence[Manifest | Unreadable]) -> dict[str, dict[str, str]]:
    """Labels of the namespaces among the manifests."""
    return {
        manifest.name: {
            str(key): str(value)
            for key, value in ((manifest.data.get("metadata") or {}).get("labels") or {}).items()
        }
        for manifest in manifests
        if isinstance(manifest, Manifest) and manifest.kind == "Namespace"
    }


# --- typed objects ---


def _as_new(sent: Any) -> Any:
    """The object as if it were created now: dumps carry what only the server may set."""
    return replace(sent, metadata=replace(sent.metadata, resource_version="", managed_fields=()))


def _check_status(
    manifest: Manifest, sent: Any, kind: Kind, request: WriteRequest
) -> Iterator[Finding]:
    """A status that came along, in a dump, is judged as if it were written now."""
    if not kind.has_status or not manifest.data.get("status"):
        return
    version = sent.metadata.resource_version or "1"
    metadata = replace(sent.metadata, resource_version=version, deletion_timestamp=None)
    new = replace(sent, metadata=metadata)
    empty = kind.hub().status  # type: ignore[attr-defined]
    old = replace(new, status=empty)
    yield from _outcome(manifest, pipeline.update_status(new, old, kind, request), "status")


def _outcome(
    manifest: Manifest, outcome: pipeline.Outcome, only_under: str = ""
) -> Iterator[Finding]:
    match outcome:
        case pipeline.Accepted(_, warnings):
            for warning in warnings:
                path, _, message = warning.partition(": ")
                yield _finding(manifest, path, message, severity="warning")
        case pipeline.Rejected(errors):
            for error in errors:
                if str(error.path).startswith(only_under):
                    yield from _field_findings(manifest, error)
        case pipeline.Refused(_, _, message):
            yield _finding(manifest, "metadata", message)


def _advice(
    manifest: Manifest, sent: Any, gvk: GroupVersionKind, unknown_namespace: bool
) -> Iterator[Finding]:
    """What is allowed, but probably not meant or not going to work."""
    preferred = next(iter(KINDS[gvk.kind].versions))
    if gvk.version != preferred and not gvk.version.startswith("v1alpha"):
        yield _finding(
            manifest,
            "apiVersion",
            f"{gvk.group_version} is an old version that clusters do not serve by default; "
            f"write {GROUP}/{preferred}",
            severity="warning",
        )
    spec = (
        sent.spec
        if isinstance(sent, ResourceClaim)
        else sent.spec.spec
        if isinstance(sent, ResourceClaimTemplate)
        else None
    )
    if spec is None or not unknown_namespace:
        return
    for index, request in enumerate(spec.devices.requests):
        if request.exactly is not None and request.exactly.admin_access:
            prefix = "spec.spec" if isinstance(sent, ResourceClaimTemplate) else "spec"
            yield _finding(
                manifest,
                f"{prefix}.devices.requests[{index}].exactly.adminAccess",
                "the namespace needs the label `resource.kubernetes.io/admin-access: true`, "
                "and is not among these files",
                severity="warning",
            )


def _unknown_fields(manifest: Manifest, cls: type[msgspec.Struct]) -> Iterator[Finding]:
    for issue in strict_issues(manifest.body, cls):
        known = ", ".join(sorted(issue.known))
        hint = f"; known here: {known}" if known else ""
        name = issue.path.rpartition(".")[2]
        yield _finding(manifest, issue.path, f'unknown field "{name}"{hint}')


def _unknown_kind(gvk: GroupVersionKind) -> str:
    kind = KINDS.get(gvk.kind)
    if kind is None:
        return f"no kind {gvk.kind} in {GROUP}; there are: {', '.join(sorted(KINDS))}"
    served = ", ".join(f"{GROUP}/{version}" for version in kind.versions)
    return f"no {gvk.kind} in {gvk.group_version}; it is served as: {served}"


# --- pods and what creates them ---


def _check_pod(manifest: Manifest, path: tuple[str, ...]) -> Iterator[Finding]:
    """The DRA parts of a pod spec, wherever in the object it is."""
    spec: Any = manifest.data
    for part in path:
        spec = spec.get(part) if isinstance(spec, dict) else None
    body = msgspec.json.encode({"spec": spec if isinstance(spec, dict) else {}})
    prefix = ".".join(path)
    for issue in strict_issues(body, PodParts):
        where = issue.path.replace("spec", prefix, 1)
        yield _finding(manifest, where, f'unknown field "{issue.path.rpartition(".")[2]}"')
    parts: PodSpec = decode(body, PodParts, "v1").spec
    for error in validate_pod_spec(parts):
        where = str(error.path).replace("spec", prefix, 1)
        yield _finding(manifest, where, error.message)


# --- findings ---


def _finding(manifest: Manifest, path: str, message: str, *, severity: str = "error") -> Finding:
    place = manifest.locate(path)
    name = f"{manifest.kind}/{manifest.name}" if manifest.name else manifest.kind
    return Finding(severity, manifest.source, place.line, place.column, name, path, message)


def _field_findings(manifest: Manifest, error: FieldError) -> Iterator[Finding]:
    """One finding per error; for an expression, one per problem in it."""
    finding = _finding(manifest, str(error.path), error.message)
    issues = expression_issues(error.detail)
    if not issues:
        yield finding
    for issue in issues:
        place, snippet = point_at(manifest, finding.field, str(error.value), issue)
        yield finding._replace(
            line=place.line, column=place.column, message=issue.message, snippet=snippet
        )


def _duplicates(manifest: Manifest) -> Iterator[Finding]:
    for path, place in manifest.duplicates:
        finding = _finding(manifest, path, "this key stands here twice; only the last one counts")
        yield finding._replace(line=place.line, column=place.column)


def _unreadable(problem: Unreadable) -> Finding:
    return Finding("error", problem.source, problem.line, problem.column, "", "", problem.problem)
