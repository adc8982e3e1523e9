"""Names of other objects: classes, templates, claims, and requests of claims."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from allot.allocation.explain.phrases import sentence
from allot.api.claims import DeviceClaim, ResourceClaim, ResourceClaimTemplate
from allot.api.classes import DeviceClass
from allot.api.core import PodResourceClaim
from allot.api.identities import ObjectKey
from allot.features import FeatureGates
from allot.lint import rule_table as rules
from allot.lint.findings import Problem, Rule, Severity
from allot.lint.fixes import ReplaceValue
from allot.lint.known_objects import KnownObjects
from allot.lint.spelling import close_names, did_you_mean, one_of, only_typo
from allot.lint.subjects import LintSubject

_MOST_LISTED = 5


def missing_classes(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    if subject.claim is None:
        return
    for alternative in subject.claim.alternatives():
        name = alternative.spec.device_class_name
        if not name or name in known.classes:
            continue
        path = f"{alternative.path}.deviceClassName"
        rule = rules.MISSING_ALTERNATIVE_CLASS if alternative.subrequest else rules.MISSING_CLASS
        found = _missing(rule, path, DeviceClass, name, known.classes, known)
        if found is None or not alternative.subrequest:
            yield from (found,) if found is not None else ()
            continue
        yield found._replace(
            message=f"{sentence(found.message)} allot skips this alternative; kube-scheduler v1.38 "
            "leaves the pod pending",
            severity=None,
        )


def missing_claims(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    """Claims and templates that a pod names."""
    if subject.pod is None:
        return
    for index, entry in enumerate(subject.pod.spec.resource_claims):
        path = f"{subject.pod.path}.resourceClaims[{index}]"
        if entry.resource_claim_template_name:
            yield from _missing_in_namespace(
                subject,
                rules.MISSING_TEMPLATE,
                f"{path}.resourceClaimTemplateName",
                ResourceClaimTemplate,
                entry.resource_claim_template_name,
                known.templates,
                known,
            )
        elif entry.resource_claim_name:
            yield from _missing_in_namespace(
                subject,
                rules.MISSING_CLAIM,
                f"{path}.resourceClaimName",
                ResourceClaim,
                entry.resource_claim_name,
                known.claims,
                known,
            )


def _missing_in_namespace(
    subject: LintSubject,
    rule: Rule,
    path: str,
    kind: type,
    name: str,
    objects: Collection[ObjectKey],
    known: KnownObjects,
) -> Iterator[Problem]:
    if ObjectKey(subject.namespace, name) in objects:
        return
    here = [key.name for key in objects if key.namespace == subject.namespace]
    elsewhere = sorted(key.namespace for key in objects if key.name == name)
    problem = _missing(rule, path, kind, name, here, known)
    if other := _other_kind(subject, kind, name, known):
        yield Problem(rule, path, other)
    elif elsewhere:
        message = (
            f'{kind.__name__} "{name}" is in namespace {elsewhere[0]}, and the pod in '
            f"{subject.namespace}; they must be in the same namespace"
        )
        yield Problem(rule, path, message)
    elif problem is not None:
        yield problem


def _other_kind(subject: LintSubject, kind: type, name: str, known: KnownObjects) -> str:
    """Whether the name is that of a template where a claim is wanted, or the other way round."""
    key = ObjectKey(subject.namespace, name)
    if kind is ResourceClaim and key in known.templates:
        return f'"{name}" is a ResourceClaimTemplate; write resourceClaimTemplateName'
    if kind is ResourceClaimTemplate and key in known.claims:
        return f'"{name}" is a ResourceClaim; write resourceClaimName'
    return ""


def _missing(
    rule: Rule, path: str, kind: type, name: str, names: Collection[str], known: KnownObjects
) -> Problem | None:
    """None if nothing can be said: no object of this kind was given, and none has a close name."""
    close = close_names(name, names)
    if not close and not known.knows_all(kind):
        return None
    hint = did_you_mean(name, names)
    if not hint and names:
        listed = sorted(names)
        more = f" and {len(listed) - _MOST_LISTED} more" if len(listed) > _MOST_LISTED else ""
        hint = f"; available: {', '.join(listed[:_MOST_LISTED])}{more}"
    meant = only_typo(name, names)
    # A name that resembles no other may exist in the cluster.
    is_sure = known.is_live or bool(close)
    return Problem(
        rule,
        path,
        f'no {kind.__name__} "{name}" {known.where}{hint}',
        ReplaceValue(path, meant) if meant is not None else None,
        None if is_sure else Severity.WARNING,
    )


def missing_requests(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    """Requests that a container names, of claims that are known."""
    if subject.pod is None:
        return
    spec = subject.pod.spec
    claims = {
        entry.name: found
        for entry in spec.resource_claims
        if (found := _claim_of(subject, entry, known)) is not None
    }
    for field, containers in (
        ("initContainers", spec.init_containers),
        ("containers", spec.containers),
    ):
        for index, container in enumerate(containers):
            for number, use in enumerate(container.resources.claims):
                claim = claims.get(use.name)
                if claim is None or not use.request:
                    continue
                names = [request.name for request in claim.requests]
                if use.request in names:
                    continue
                path = f"{subject.pod.path}.{field}[{index}].resources.claims[{number}].request"
                meant = only_typo(use.request, names)
                hint = one_of(use.request, names, "its requests")
                yield Problem(
                    rules.MISSING_REQUEST,
                    path,
                    f'the claim "{use.name}" has no request "{use.request}"{hint}',
                    ReplaceValue(path, meant) if meant is not None else None,
                )


def _claim_of(
    subject: LintSubject, entry: PodResourceClaim, known: KnownObjects
) -> DeviceClaim | None:
    if entry.resource_claim_template_name:
        key = ObjectKey(subject.namespace, entry.resource_claim_template_name)
        template: ResourceClaimTemplate | None = known.templates.get(key)
        return template.spec.spec.devices if template is not None else None
    key = ObjectKey(subject.namespace, entry.resource_claim_name or "")
    claim: ResourceClaim | None = known.claims.get(key)
    return claim.spec.devices if claim is not None else None
