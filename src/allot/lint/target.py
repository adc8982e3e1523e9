"""How the target cluster treats an object: Kubernetes v1.38 with its default feature gates."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final

import msgspec

from allot import features
from allot.api.classes import DeviceClass
from allot.api.decoding import to_builtin
from allot.apiserver.registry.write_pipeline import Rejected
from allot.features import FeatureGates
from allot.lint import rule_table as rules
from allot.lint.expression_errors import compiled
from allot.lint.expressions import expressions_in
from allot.lint.findings import Problem
from allot.lint.known_objects import KnownObjects
from allot.lint.server import create_outcome, field_problems, prepared_object
from allot.lint.subjects import LintSubject
from allot.validation.kubernetes_warnings import kubernetes_warnings


class TargetCluster(StrEnum):
    """The cluster that manifests are for."""

    ALLOT = "allot"
    KUBERNETES_1_38 = "kubernetes-1.38"


NAME: Final = "Kubernetes v1.38"


def target_problems(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    """The problems that the object has in v1.38 and not with `gates`."""
    reported: set[str] = set()
    for problem in (
        *_refusals(subject, known, gates),
        *_drops(subject, gates),
        *_device_names(subject, gates),
        *_skipped_alternatives(subject, known),
        *_differences(subject),
    ):
        if problem.path not in reported:
            reported.add(problem.path)
            yield problem


def _refusals(subject: LintSubject, known: KnownObjects, gates: FeatureGates) -> Iterator[Problem]:
    there = create_outcome(subject, features.KUBERNETES_DEFAULTS)
    if not isinstance(there, Rejected):
        return
    here = create_outcome(subject, gates)
    errors = here.errors if isinstance(here, Rejected) else ()
    reported = {(str(error.path), error.message) for error in errors}
    new = [error for error in there.errors if (str(error.path), error.message) not in reported]
    for problem in field_problems(subject, known, new, features.KUBERNETES_DEFAULTS):
        message = f"{NAME} refuses it: {problem.message}"
        yield problem._replace(rule=rules.TARGET_REFUSES, message=message, fix=None)


def _drops(subject: LintSubject, gates: FeatureGates) -> Iterator[Problem]:
    if subject.object is None:
        return
    here = prepared_object(subject, gates)
    there = prepared_object(subject, features.KUBERNETES_DEFAULTS)
    for path in _lost(_plain(here), _plain(there), ""):
        message = f"{NAME} drops this field: its feature gate is off there by default"
        yield Problem(rules.TARGET_DROPS, path, message)


def _differences(subject: LintSubject) -> Iterator[Problem]:
    for warning in kubernetes_warnings(subject.object):
        yield Problem(
            rules.TARGET_DIFFERS, str(warning.path), f"{warning.text} (rule {warning.rule})"
        )


def _plain(obj: Any) -> Any:
    return msgspec.to_builtins(obj, enc_hook=to_builtin)


def _lost(ours: Any, theirs: Any, path: str) -> Iterator[str]:
    """The outermost fields that only `ours` has."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, inner in ours.items():
            inner_path = f"{path}.{key}" if path else str(key)
            if key in theirs:
                yield from _lost(inner, theirs[key], inner_path)
            elif inner not in (None, "", 0, False, [], {}):
                yield inner_path
    elif isinstance(ours, list | tuple) and isinstance(theirs, list | tuple):
        if ours and not theirs:
            yield path
        for index, (inner, other) in enumerate(zip(ours, theirs, strict=False)):
            yield from _lost(inner, other, f"{path}[{index}]")
    elif ours != theirs and theirs is None:
        yield path


def _device_names(subject: LintSubject, gates: FeatureGates) -> Iterator[Problem]:
    """Uses of `device.name`, which only allot's expressions have."""
    if subject.object is None:
        return
    for expression in expressions_in(subject.manifest.data):
        program = compiled(expression, gates)
        if program is not None and ("name",) in program.reads:
            yield Problem(
                rules.TARGET_REFUSES,
                expression.path,
                f"{NAME} refuses it: undefined field 'name'. Publish the name as an attribute, and "
                "read that",
            )


def _skipped_alternatives(subject: LintSubject, known: KnownObjects) -> Iterator[Problem]:
    """Alternatives that allot skips, where v1.38 stops; with the classes that are known."""
    if subject.claim is None or not known.knows_all(DeviceClass):
        return
    for alternative in subject.claim.alternatives():
        name = alternative.spec.device_class_name
        if alternative.subrequest and name and name not in known.classes:
            yield Problem(
                rules.TARGET_DIFFERS,
                f"{alternative.path}.deviceClassName",
                f'{NAME} leaves the pod pending while no DeviceClass "{name}" exists, also if '
                "another alternative fits",
            )
