"""When single containers are restarted: their own policy, and rules about exit codes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot.validation.fields import FieldError, FieldPath, not_supported, required, too_many
from allot.validation.parts import Part, part, parts, text

POLICIES: Final = ("Always", "Never", "OnFailure")
ACTIONS: Final = ("Restart", "RestartAllContainers")
OPERATORS: Final = ("In", "NotIn")
MAX_RULES: Final = 20
MAX_EXIT_CODES: Final = 255


def validate_restarts(
    container: Part, path: FieldPath, *, is_init: bool = False
) -> Iterator[FieldError]:
    """`restartPolicy` and `restartPolicyRules` of a container."""
    policy, rules = container.get("restartPolicy"), parts(container, "restartPolicyRules")
    if policy is not None and policy not in POLICIES:
        yield not_supported(path / "restartPolicy", policy, POLICIES)
    if rules and policy is None:
        yield required(
            path / "restartPolicy", "must specify restartPolicy when restart rules are used"
        )
        if is_init:
            return
    if len(rules) > MAX_RULES:
        yield too_many(path / "restartPolicyRules", len(rules), MAX_RULES)
    for index, rule in enumerate(rules):
        one = path / "restartPolicyRules" @ index
        action = text(rule, "action")
        if action not in ACTIONS:
            yield not_supported(one / "action", action, ACTIONS)
        if rule.get("exitCodes") is None:
            yield required(one / "exitCodes", "must be specified")
            continue
        codes = part(rule, "exitCodes")
        operator, values = text(codes, "operator"), codes.get("values") or ()
        if operator not in OPERATORS:
            yield not_supported(one / "exitCodes" / "operator", operator, OPERATORS)
        if len(values) > MAX_EXIT_CODES:
            yield too_many(one / "exitCodes" / "values", len(values), MAX_EXIT_CODES)
