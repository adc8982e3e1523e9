"""The API server's errors about expressions, with the position in the expression and a suggestion."""

from __future__ import annotations

from allot.cel import CelCompileError, Origin, Program, compile_derived, compile_selector
from allot.cel.compile_advice import compile_advice
from allot.cel.cost_advice import cost_problem, estimated_cost_text, rewriting_advice
from allot.features import FeatureGates
from allot.lint import rule_table as rules
from allot.lint.expressions import FoundExpression, expression_issues, expressions_in
from allot.lint.findings import Problem
from allot.lint.subjects import LintSubject
from allot.validation.derived_attributes import TOTAL_TOO_COMPLEX
from allot.validation.expressions import COST_LIMIT, TOO_COMPLEX
from allot.validation.fields import FieldError


def expression_problems(
    subject: LintSubject, error: FieldError, errors: list[FieldError], gates: FeatureGates
) -> list[Problem] | None:
    """What a field error says about expressions; None if it is about something else."""
    path = str(error.path)
    if error.detail.startswith(TOO_COMPLEX):
        return [Problem(rules.CEL_COST, path, _cost_message(subject, path, gates))]
    if error.detail.startswith(TOTAL_TOO_COMPLEX):
        if any(each.detail.startswith(TOO_COMPLEX) for each in errors):
            return []  # one of them alone exceeds the limit, which its own error reports
        return [Problem(rules.CEL_COST, path, _total_message(subject, gates))]
    issues = expression_issues(error.detail)
    if issues:
        return [
            Problem(
                rules.CEL_COMPILE,
                path,
                issue.message + compile_advice(issue.message),
                issue=issue,
            )
            for issue in issues
        ]
    if path.endswith(".expression") and error.detail.startswith("must evaluate"):
        return [Problem(rules.CEL_COMPILE, path, error.message)]
    return None


def _cost_message(subject: LintSubject, path: str, gates: FeatureGates) -> str:
    text = subject.manifest.value_at(subject.written_path(path))
    expression = FoundExpression(path, str(text or ""), "derivedAttributes[" in path)
    program = compiled(expression, gates)
    return (program and cost_problem(program)) or TOO_COMPLEX


def _total_message(subject: LintSubject, gates: FeatureGates) -> str:
    derived = [each for each in expressions_in(subject.manifest.data) if each.is_derived]
    programs = [program for each in derived if (program := compiled(each, gates)) is not None]
    total = sum(program.max_cost for program in programs)
    dearest = max(programs, key=lambda program: program.max_cost)
    return (
        f"too complex: the estimated cost of all derived attributes together is "
        f"{estimated_cost_text(total)}, the limit is {COST_LIMIT:,}; the most expensive one "
        f"({estimated_cost_text(dearest.max_cost)}) is {dearest.expression!r}: "
        f"{rewriting_advice(dearest.expression)}"
    )


def compiled(expression: FoundExpression, gates: FeatureGates) -> Program | None:
    """The program; None if it does not compile, which the API server reports."""
    compile_ = compile_derived if expression.is_derived else compile_selector
    try:
        return compile_(expression.text, Origin.NEW, gates)
    except CelCompileError:
        return None
