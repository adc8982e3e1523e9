"""Wording: explanations as sentences. Only here and in `phrases` do reasons, conflicts and changes become messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from allot.allocation.explain import changes
from allot.allocation.explain.amounts import counted
from allot.allocation.explain.conflicts import Proof
from allot.allocation.explain.findings import (
    Conflict,
    Explanation,
    Refusal,
    RequestReport,
)
from allot.allocation.explain.phrases import (
    amounts_text,
    constraint_verb,
    constraints_text,
    device_names,
    found_text,
    has_error,
    joined,
    listed,
    merged_refusals,
    pool_text,
    sides_text,
    unmet_text,
    values_read_text,
)
from allot.allocation.explain.reasons import (
    AnyReason,
    BindingConditionsDisabled,
    ConstraintUnmet,
    CountersDisabled,
    ExpressionFailed,
    Held,
    IncompatibleGroups,
    NoAttribute,
    NodeOperations,
    NotDecidable,
    NotSelected,
    OtherNodes,
    RecentlyFailed,
    Tainted,
    TakenByRequest,
    TakenBySameRequest,
)
from allot.api.similar_names import did_you_mean
from allot.features import BINDING_CONDITIONS

_MAX_EXPRESSION: Final = 400
"""How many characters of an expression a reason shows."""
_MAX_BRIEF_REASONS: Final = 3
_NO_NAMES: Final[Mapping[str, str]] = {}


class Wording:
    """Words findings for one reader."""

    def __init__(
        self,
        namespace: str | None = None,
        claim_names: Mapping[str, str] = _NO_NAMES,
        max_expression: int = _MAX_EXPRESSION,
    ) -> None:
        """Claims of other namespaces than `namespace` are not named; with None, all are.

        `claim_names` maps the explanation's claim names to those the reader knows.
        """
        self._namespace = namespace
        self._claim_names = claim_names
        self._max_expression = max_expression

    # --- reasons ---

    def reason(self, reason: AnyReason) -> str:
        """Why a device is refused."""
        match reason:
            case Held(claims, shares):
                return self.held_by(claims, shares=shares)
            case RecentlyFailed():
                return "could not be bound for this pod, and is avoided for a while"
            case TakenByRequest(claim, request):
                return f"taken by request {request} of {self.claim(claim)}"
            case TakenBySameRequest():
                return "already in this request, which never gets one device twice"
            case NotSelected():
                return self._not_selected(reason)
            case ExpressionFailed():
                return self._failed(reason)
            case NotDecidable(problem):
                return problem.partition("\n")[0]
            case OtherNodes():
                return "is for other nodes"
            case BindingConditionsDisabled():
                return f"has binding conditions, and the {BINDING_CONDITIONS} feature is disabled"
            case NodeOperations(operations):
                return f"needs {', '.join(operations)} skipped, which the node does not support"
            case CountersDisabled():
                return "consumes counters, but partitionable devices are disabled"
            case IncompatibleGroups():
                return "its compatibility groups do not go with devices in the same counter set"
            case Tainted(key, value, effect, rule):
                source = f" (from DeviceTaintRule {rule})" if rule else ""
                taint = f"{key}{f'={value}' if value else ''}:{effect}"
                return f"taint {taint} is not tolerated{source}"
            case NoAttribute(attribute, must_match):
                return f"has no attribute {attribute}, which must {constraint_verb(must_match)}"
            case ConstraintUnmet():
                return unmet_text(reason)
        return amounts_text(reason)

    def held_by(self, claims: Sequence[str], *, shares: bool = False) -> str:
        """The claims that hold devices or shares, as far as the reader may know them."""
        if shares:
            return f"shares of it, which may not be shared any more, are {self.held_by(claims)}"
        own = [each for each in claims if self._may_name(each)]
        hidden = len(claims) - len(own)
        if not own:
            some = "a claim" if hidden == 1 else f"{hidden} claims"
            return f"held by {some} in {'another namespace' if hidden == 1 else 'other namespaces'}"
        shown = f"held by claim{'s' * (len(own) != 1)} {listed(own)}"
        return f"{shown} and {hidden} in other namespaces" if hidden else shown

    def _may_name(self, claim: str) -> bool:
        return self._namespace is None or claim.partition("/")[0] == self._namespace

    def claim(self, key: str) -> str:
        """`claim namespace/name`."""
        return f"claim {self._claim_names.get(key, key)}"

    def _not_selected(self, reason: NotSelected) -> str:
        place = f"class {reason.class_name}" if reason.class_name else self.claim(reason.claim)
        return (
            f"{place}: selector #{reason.selector} is false:"
            f" {self._shown(reason.expression)}{values_read_text(reason.values)}"
        )

    def _failed(self, reason: ExpressionFailed) -> str:
        if reason.derived_attribute:
            place = f"derived attribute {reason.derived_attribute}"
        elif reason.class_name:
            place = f"selector #{reason.selector} of class {reason.class_name}"
        else:
            place = f"selector #{reason.selector}"
        expression = self._shown(reason.expression)
        if not reason.missing:
            return f"{place} ends in an error: {reason.cause} ({expression})"
        hint = did_you_mean(reason.similar) or "; guard it with has(), or with .? and orValue()"
        return f"{place} reads {listed(reason.missing)}, which is not set: {expression}{hint}"

    def _shown(self, expression: str) -> str:
        """The expression, or its beginning."""
        if len(expression) <= self._max_expression:
            return expression
        return f"{expression[: self._max_expression]}…"

    # --- requests ---

    def report(self, report: RequestReport) -> str:
        """How far a request got."""
        found = f"{report.found} of {counted(report.wanted, 'device')} found"
        problem = f" ({report.problem})" if report.problem else ""
        return f"{self.claim(report.claim)}, request {report.request}: {found}{problem}"

    def refusal(self, refusal: Refusal) -> str:
        """The devices, then why they are refused."""
        return f"{device_names(refusal.devices)}: {self.reason(refusal.reason)}"

    def brief(self, report: RequestReport, most: int = _MAX_BRIEF_REASONS) -> str:
        """Why a request does not get all its devices: the reasons of the suitable ones."""
        if report.problem:
            return report.problem
        merged = merged_refusals(report.refusals)
        suitable = [each for each in merged if not each.reason.is_wrong_class]
        if not suitable:
            more = "no more" if report.found else "no"
            return f"there are {more} devices{' of its class' if merged else ''}"
        # First errors, which keep other devices from being tried; then selected devices that are in use.
        suitable.sort(
            key=lambda each: (
                not isinstance(each.reason, ExpressionFailed | NotDecidable),
                each.reason.is_unsuitable,
                -len(each.devices),
            )
        )
        texts: dict[str, None] = {}
        for each in suitable:
            if isinstance(each.reason, NotSelected):
                texts[self._false_for(each.reason, suitable)] = None
            else:
                texts[self.refusal(each)] = None
        shown = "; ".join(list(texts)[:most])
        left = len(texts) - most
        return f"{shown}; and {counted(left, 'more reason')}" if left > 0 else shown

    def _false_for(self, reason: NotSelected, refusals: Iterable[Refusal]) -> str:
        """A false selector, with its devices and the values that differ."""
        selector = (reason.class_name, reason.selector, reason.expression)
        devices = [
            f"{device_names(each.devices)}{values_read_text(each.reason.values)}"
            for each in refusals
            if isinstance(each.reason, NotSelected)
            and (each.reason.class_name, each.reason.selector, each.reason.expression) == selector
        ]
        place = f"selector #{reason.selector} is false for {listed(devices)}"
        return f"{place}: {self._shown(reason.expression)}"

    # --- conflicts ---

    def conflict(self, explanation: Explanation) -> str:
        """The conflict and its cause, without a full stop; empty without a conflict."""
        conflict = explanation.conflict
        if conflict is None:
            if explanation.error:
                return explanation.error
            return pool_text(explanation.pools[0]) if explanation.pools else ""
        if conflict.proof is Proof.UNPROVEN:
            return self._unproven(explanation)
        reports = [report for report in explanation.requests if report.in_conflict]
        text = self._conflict(conflict, reports)
        if explanation.pools and all(not report.refusals for report in reports):
            text += f" ({pool_text(explanation.pools[0])})"
        if conflict.proof is Proof.REDUCIBLE:
            text += " (not proven: fewer of them may be enough)"
        return text

    def _unproven(self, explanation: Explanation) -> str:
        short = [report for report in explanation.requests if report.short]
        came = f"; {self._finds(short[0])}" if short else ""
        return f"it is not proven which requests cannot be satisfied together{came}"

    def _conflict(self, conflict: Conflict, reports: Sequence[RequestReport]) -> str:
        names = self._names(conflict)
        if conflict.constraints and not any(map(has_error, reports)):
            together = " together" * (len(conflict.requests) + len(conflict.constraints) > 2)
            constraints = constraints_text(conflict.constraints)
            sides = sides_text(conflict.constraints)
            return f"{names} cannot meet {constraints}{together}{f': {sides}' if sides else ''}"
        name, lacking = self._lacking(reports)
        if len(conflict.requests) == 1:
            return f"{names} {lacking}"
        return f"{names} cannot be satisfied together: {name} {lacking}"

    def _names(self, conflict: Conflict) -> str:
        """`request a of claim x`, `requests a and b of claim x`."""
        parts = []
        for claim, requests in groupby(conflict.requests, lambda each: each.claim):
            own = [each.request for each in requests]
            parts.append(f"request{'s' * (len(own) > 1)} {joined(own)} of {self.claim(claim)}")
        return " and ".join(parts)

    def _lacking(self, reports: Sequence[RequestReport]) -> tuple[str, str]:
        """The request that lacks devices when the others have theirs, as it is called here, and what it lacks.

        Lists each alternative, the nearest to success first.
        """
        by_request = [
            list(alternatives)
            for _, alternatives in groupby(reports, lambda each: (each.claim, each.name))
        ]
        incomplete = [
            each
            for each in by_request
            if all(report.short for report in each) or any(map(has_error, each))
        ]
        if not incomplete:
            return "one of them", "cannot be satisfied"
        tried = incomplete[-1]
        name = tried[0].name if len(tried) > 1 else tried[0].request
        if len({each.claim for each in reports}) > 1:
            name = f"request {name} of {self.claim(tried[0].claim)}"
        failing = [report for report in tried if has_error(report)]
        if failing and any(not report.short for report in tried):
            why = f"{failing[0].request} {found_text(failing[0])} ({self.brief(failing[0], 1)})"
            return name, f"cannot be decided: {why}"
        if len(tried) == 1:
            return name, f"{found_text(tried[0])}; {self.brief(tried[0])}"
        nearest = sorted(tried, key=lambda each: (each.short, -each.found))
        each_of = "; ".join(
            f"{each.request} {found_text(each)} ({self.brief(each, 1)})" for each in nearest
        )
        return name, f"has no alternative that fits: {each_of}"

    def _finds(self, report: RequestReport) -> str:
        return (
            f"request {report.request} of {self.claim(report.claim)} {found_text(report)} at most"
        )

    # --- changes ---

    def change(self, change: changes.AnyChange) -> str:
        """What would help, as an instruction."""
        match change:
            case changes.FewerDevices(claim, request, count, instead_of):
                where = self._where(claim, request)
                return f"{where}: ask for {counted(count, 'device')} instead of {instead_of}"
            case changes.CountInsteadOfAll(claim, request, count):
                where = self._where(claim, request)
                return f"{where}: ask for {counted(count, 'device')} instead of all"
            case changes.OtherClass(claim, request, class_name, instead_of_class):
                where = self._where(claim, request)
                return f"{where}: ask for class {class_name} instead of {instead_of_class}"
            case changes.OtherCapacityName(claim, request, name, instead_of_name):
                where = self._where(claim, request)
                return f"{where}: ask for capacity {name} instead of {instead_of_name}"
            case changes.ConvertedAttribute(claim, request, attribute, function):
                where = self._where(claim, request)
                return f"{where}: convert derived attribute {attribute} with {function}()"
            case changes.DerivedLikewise(claim, request, attribute, like):
                return f"{self._where(claim, request)}: derive {attribute} as request {like} does"
            case changes.WithoutRequest(claim, request, is_whole_claim):
                if is_whole_claim:
                    return f"do without {self.claim(claim)}"
                return f"{self.claim(claim)}: do without request {request}"
            case changes.LessCapacity(claim, request, capacity, amount, instead_of_amount):
                where = self._where(claim, request)
                return f"{where}: ask for {amount} of {capacity} instead of {instead_of_amount}"
            case changes.OtherConstraintAttribute(claim, index, attribute, instead_of_name):
                return (
                    f"{self.claim(claim)}: write {attribute} instead of {instead_of_name}"
                    f" in constraint #{index}"
                )
            case changes.WithoutConstraint(claim, index, attribute, must_match):
                return (
                    f"{self.claim(claim)}: do not require {attribute} to {constraint_verb(must_match)}"
                    f" (constraint #{index})"
                )
            case changes.WithoutSelector(claim, request, index, expression):
                where = self._where(claim, request)
                return f"{where}: do without selector #{index} ({self._shown(expression)})"
            case changes.OtherAttribute():
                return self._other_attribute(change)
            case changes.GuardedSelector(
                claim, request, index, guard, class_name, needs_parentheses
            ):
                where = f"class {class_name}" if class_name else self._where(claim, request)
                if needs_parentheses:
                    return f"{where}: put selector #{index} in parentheses, and write {guard} && before it"
                return f"{where}: write {guard} && before selector #{index}"
            case changes.AddToleration(claim, request, key, effect):
                return f"{self._where(claim, request)}: tolerate the taint {key}:{effect}"
            case changes.AddTolerations(claim, request, taints):
                return f"{self._where(claim, request)}: tolerate the taints {joined(taints)}"
            case changes.EnableFeature(gate):
                return f"switch on feature gate {gate}"
            case changes.OnlyAlternative(claim, request, alternative):
                return f"{self.claim(claim)}: use only alternative {request}/{alternative}"
            case changes.ReleaseClaim(claim):
                if self._may_name(claim):
                    return f"release {self.claim(claim)}"
                return "release a claim in another namespace"
            case changes.MoreDevices(number, device, _, driver, node):
                devices = f"{number} more device{'s' * (number != 1)}"
                return f"{devices} like {device} of {driver} on node {node}"

    def _other_attribute(self, change: changes.OtherAttribute) -> str:
        where = (
            f"class {change.class_name}"
            if change.class_name
            else self._where(change.claim, change.request)
        )
        place = (
            f"derived attribute {change.derived_attribute}"
            if change.derived_attribute
            else f"selector #{change.selector}"
        )
        return f"{where}: write {change.name} instead of {change.instead_of} in {place}"

    def _where(self, claim: str, request: str) -> str:
        return f"{self.claim(claim)}, request {request}"

    # --- everything ---

    def lines(self, explanation: Explanation) -> Iterator[str]:
        """The explanation of one node as lines."""
        yield f"node {explanation.node}: {self.conflict(explanation) or 'the claims fit'}"
        yield from (f"  {pool_text(pool)}" for pool in explanation.pools)
        for report in explanation.requests:
            yield f"  {self.report(report)}"
            yield from (f"    {self.refusal(each)}" for each in report.refusals)
        if not explanation.is_complete:
            yield "  (time ran out: there may be more reasons)"
