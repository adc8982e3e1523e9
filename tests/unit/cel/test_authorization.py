"""The authorizer library: declared in every environment, usable where there is an authorizer."""

from __future__ import annotations

import pytest

from allot.cel import CelCompileError, Origin, compile_selector
from allot.cel.admission import (
    AdmissionInput,
    Declared,
    admission_environment,
    compile_admission,
)
from allot.cel.library.authorization import AccessQuestion, Authorizer, Decision, ResourceCheck


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        pytest.param(
            "device.driver.allowed()",
            "found no matching overload for 'allowed' applied to 'string.()'",
            id="decision",
        ),
        pytest.param(
            "device.driver.check('get')",
            "found no matching overload for 'check' applied to 'string.(string)'",
            id="check",
        ),
        pytest.param(
            "device.driver.group('')",
            "found no matching overload for 'group' applied to 'string.(string)'",
            id="group",
        ),
        pytest.param(
            "authorizer.group('').resource('pods').check('get').allowed()",
            "undeclared reference to 'authorizer' (in container '')",
            id="variable",
        ),
    ],
)
def test_device_expressions_know_the_functions_but_no_authorizer(
    expression: str, problem: str
) -> None:
    with pytest.raises(CelCompileError) as caught:
        compile_selector(expression, Origin.NEW)

    assert [issue.message for issue in caught.value.issues] == [problem]


class Recorder:
    """Allows everything about pods, and remembers what it is asked."""

    def __init__(self) -> None:
        self.asked: list[AccessQuestion] = []

    def __call__(self, question: AccessQuestion) -> Decision:
        self.asked.append(question)
        return Decision(question.resource == "pods", f"about {question.resource}")


def evaluated(expression: str, ask: Recorder) -> object:
    authorizer = Authorizer(ask)
    program = compile_admission(expression, admission_environment(Declared()))
    own = ResourceCheck(authorizer, AccessQuestion("", "", "apps", "deployments", "", "ns", "d"))
    variables = {"authorizer": authorizer, "authorizer.requestResource": own}
    result = program.evaluate(AdmissionInput(variables))
    return result.value if result.error is None else result.error


def test_a_question_is_built_step_by_step() -> None:
    ask = Recorder()
    expression = (
        "authorizer.serviceAccount('ns', 'robot').group('').resource('pods').subresource('log')"
        ".namespace('a').name('b').fieldSelector('spec.nodeName=n').labelSelector('x=y')"
        ".check('get').allowed()"
    )

    assert evaluated(expression, ask) is True
    assert ask.asked == [
        AccessQuestion(
            "get", "", "", "pods", "log", "a", "b", "spec.nodeName=n", "x=y", ("ns", "robot")
        )
    ]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("authorizer.path('/healthz').check('get').allowed()", False),
        ("authorizer.path('').check('get').allowed()", "path must not be empty"),
        ("authorizer.requestResource.check('get').reason()", "about deployments"),
        ("authorizer.group('').resource('pods').check('get').errored()", False),
        ("authorizer.group('').resource('pods').check('get').error()", ""),
        (
            "[1, 2, 3].all(x, authorizer.group('').resource('pods').check('get').allowed())",
            "operation cancelled: actual cost limit exceeded",
        ),
    ],
)
def test_answers(expression: str, value: object) -> None:
    assert evaluated(expression, Recorder()) == value
