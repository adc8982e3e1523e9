"""How many devices a claim asks for, and alternatives that are never reached (KEP-4816)."""

from __future__ import annotations

from collections.abc import Iterator

from allot.api.resource import ALL, MAX_RESULTS
from allot.features import FeatureGates
from allot.lint import rule_table as rules
from allot.lint.findings import Problem
from allot.lint.known_objects import KnownObjects
from allot.lint.rules.availability import another_may_do, most_on_one_node
from allot.lint.subjects import Alternative, ClaimView, LintSubject


def too_many_devices(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    """More devices than a claim can get: in one alternative, or in all requests together."""
    claim = subject.claim
    if claim is None:
        return
    total = 0
    for index in range(len(claim.devices.requests)):
        alternatives = claim.alternatives_of(index)
        for alternative in alternatives:
            if not alternative.wants_all and alternative.needed > MAX_RESULTS:
                yield Problem(
                    rules.TOO_MANY_DEVICES,
                    f"{alternative.path}.count",
                    f"asks for {alternative.needed} devices, and a claim gets at most {MAX_RESULTS}",
                )
                return
        total += min((alternative.needed for alternative in alternatives), default=0)
    if total > MAX_RESULTS:
        yield Problem(
            rules.TOO_MANY_DEVICES,
            f"{claim.path}.requests",
            f"all requests together ask for {total} devices, and a claim gets at most {MAX_RESULTS}",
        )


def not_enough_devices(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    """More devices than match on any one node."""
    if subject.claim is None:
        return
    for alternative in subject.claim.alternatives():
        candidates = known.candidates(alternative)
        if alternative.wants_all or not candidates:
            continue
        most, node = most_on_one_node(candidates)
        if alternative.needed > most and not another_may_do(
            alternative, subject.claim, known, gates
        ):
            where = f", on node {node}" if node else ""
            yield Problem(
                rules.NOT_ENOUGH_DEVICES,
                f"{alternative.path}.count",
                f"asks for {alternative.needed} devices, and at most {most} of those {known.where} "
                f"match on one node{where}",
            )


# --- alternatives that are never reached ---


def unreachable_alternatives(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    claim = subject.claim
    if claim is None:
        return
    for index in range(len(claim.devices.requests)):
        alternatives = claim.alternatives_of(index)
        for number, later in enumerate(alternatives):
            for earlier in alternatives[:number]:
                why = _why_never_reached(earlier, later, claim, known)
                if why:
                    yield Problem(
                        rules.UNREACHABLE_ALTERNATIVE,
                        later.path,
                        f'"{later.subrequest}" is never used: "{earlier.subrequest}" comes first and '
                        f"{why}; put the narrower alternative first, or remove it",
                    )
                    break


def _why_never_reached(
    earlier: Alternative, later: Alternative, claim: ClaimView, known: KnownObjects
) -> str:
    if not _needs_no_more(earlier, later, claim):
        return ""
    ours, theirs = earlier.spec, later.spec
    if ours.device_class_name == theirs.device_class_name and set(ours.selectors) <= set(
        theirs.selectors
    ):
        return "accepts every device that it accepts"
    before, after = known.candidates(earlier), known.candidates(later)
    if before is None or not after:
        return ""
    accepted, wanted = {device.id for device in before}, {device.id for device in after}
    # Equal sets are common in manifests written for several clusters.
    if wanted < accepted:
        return f"accepts every device {known.where} that it accepts"
    return ""


def _needs_no_more(earlier: Alternative, later: Alternative, claim: ClaimView) -> bool:
    """Whether the earlier one fits on any devices on which the later one fits."""
    ours, theirs = earlier.spec, later.spec
    if ours.allocation_mode == ALL:
        # All needs every device free, which is more than a count needs.
        if theirs.allocation_mode != ALL or ours.selectors != theirs.selectors:
            return False
    elif earlier.needed > later.needed:
        return False
    return (
        set(ours.tolerations) >= set(theirs.tolerations)
        and earlier.capacity.keys() == later.capacity.keys()
        and all(amount <= later.capacity[name] for name, amount in earlier.capacity.items())
        and ours.derived_attributes == theirs.derived_attributes
        and all(
            later.is_subject_to(constraint)
            for constraint in claim.devices.constraints
            if earlier.is_subject_to(constraint)
        )
    )
