"""API versions that are no longer served, and admin access in namespaces that do not allow it."""

from __future__ import annotations

from collections.abc import Iterator

from allot.api.claims import ExactDeviceRequest
from allot.api.resource import ADMIN_ACCESS_LABEL, GROUP
from allot.api.scheme import KINDS
from allot.features import FeatureGates
from allot.lint import rule_table as rules
from allot.lint.findings import Problem, Severity
from allot.lint.known_objects import KnownObjects
from allot.lint.subjects import LintSubject


def old_version(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    if subject.object is None:
        return
    version = subject.gvk.version
    preferred = next(iter(KINDS[subject.gvk.kind].versions))
    if version != preferred and not version.startswith("v1alpha"):
        yield Problem(
            rules.OLD_VERSION,
            "apiVersion",
            f"{subject.gvk.group_version} is an old version that clusters do not serve by default; "
            f"write {GROUP}/{preferred}",
        )


def admin_namespace(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    if subject.claim is None:
        return
    namespace = subject.namespace
    labels = known.namespace_labels.get(namespace)
    if labels is not None and labels.get(ADMIN_ACCESS_LABEL) == "true":
        return
    needed = f"the namespace {namespace} needs the label `{ADMIN_ACCESS_LABEL}: true`"
    for alternative in subject.claim.alternatives():
        spec = alternative.spec
        if isinstance(spec, ExactDeviceRequest) and spec.admin_access:
            yield Problem(
                rules.ADMIN_NAMESPACE,
                f"{alternative.path}.adminAccess",
                f"{needed}, and is not {known.where}"
                if labels is None
                else f"{needed} and does not have it",
                severity=None if labels is None else Severity.ERROR,
            )
