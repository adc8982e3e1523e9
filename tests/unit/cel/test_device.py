"""Devices: what is broken about them, and what a program remembers of them."""

from __future__ import annotations

import threading

import pytest

from allot.api.quantity import Quantity
from allot.cel import (
    AttributeValue,
    CelDevice,
    CelEvaluationError,
    cel_device,
    compile_derived,
    compile_selector,
)


class Amount:
    def __init__(self, text: str) -> None:
        self.value = Quantity.parse(text)


def a_cel_device(
    name: str = "gpu-0", memory: str = "80Gi", **attributes: AttributeValue
) -> CelDevice:
    return cel_device("d", name, attributes, {"memory": Amount(memory)}, None)


def test_names_without_domain_belong_to_the_driver() -> None:
    attributes = {"x": AttributeValue(int_=1), "other.com/x": AttributeValue(int_=2)}
    device = cel_device("d", "gpu-0", attributes, {})

    assert compile_selector('device.attributes["d"].x == 1').matches(device)
    assert compile_selector('device.attributes["other.com"].x == 2').matches(device)


def test_lists_win_over_scalars() -> None:
    device = a_cel_device(x=AttributeValue(int_=1, ints=(2, 3)))

    assert compile_derived('device.attributes["d"].x').attribute(device).ints == (2, 3)


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        pytest.param(AttributeValue(), "attribute v: unsupported attribute value", id="nothing"),
        pytest.param(
            AttributeValue(version="1"),
            "attribute v: parse semantic version: No Major.Minor.Patch elements found",
            id="bad-version",
        ),
    ],
)
def test_a_broken_attribute_breaks_every_expression(attribute: AttributeValue, text: str) -> None:
    with pytest.raises(CelEvaluationError) as raised:
        compile_selector("true").matches(a_cel_device(v=attribute))

    assert raised.value.text == text


def test_ten_thousand_devices_of_three_models_are_three_evaluations() -> None:
    selector = compile_selector(
        'device.attributes["d"].model == "H100" && "x.com" in device.attributes || '
        'has(device.capacity["d"].memory) && device.attributes["d"].model != "A100"'
    )
    devices = [
        a_cel_device(
            f"gpu-{i}",
            model=AttributeValue(string=("A100", "H100", "L40")[i % 3]),
            uuid=AttributeValue(string=f"GPU-{i}"),
        )
        for i in range(10_000)
    ]

    matched = sum(selector.matches(device) for device in devices)

    assert matched == 6_666
    assert selector.evaluations == 3


@pytest.mark.parametrize(
    ("expression", "first", "second"),
    [
        pytest.param(
            'device.attributes["d"].x == 1',
            a_cel_device(x=AttributeValue(int_=1)),
            a_cel_device(x=AttributeValue(bool_=True)),
            id="one-is-not-true",
        ),
        pytest.param(
            'device.capacity["d"].memory.isInteger()',
            a_cel_device(memory="1000m"),
            a_cel_device(memory="1"),
            id="equal-amounts-written-differently",
        ),
        pytest.param(
            "device.attributes.exists(d, d == 'b.com')",
            cel_device("d", "gpu-0", {"a.com/x": AttributeValue(int_=1)}, {}),
            cel_device("d", "gpu-0", {"b.com/x": AttributeValue(int_=1)}, {}),
            id="whole-map",
        ),
        pytest.param(
            'device.attributes["d"].v == semver("1.0.0") && "x" in device.attributes',
            a_cel_device(v=AttributeValue(version="1.0.0")),
            a_cel_device(v=AttributeValue(version="1.0.1")),
            id="versions",
        ),
    ],
)
def test_different_inputs_are_never_mixed_up(
    expression: str, first: CelDevice, second: CelDevice
) -> None:
    program = compile_derived(expression)
    before = program.evaluations

    for device in (first, second, first, second):
        expected = program.evaluate(device)
        assert program.answer(device) == expected.value

    assert program.evaluations == before + 2


def test_a_program_knows_what_it_reads() -> None:
    program = compile_derived(
        'device.driver == "d" && device.attributes["d"].x == device.capacity["d"].memory.asInteger()'
    )

    assert program.reads == (("attributes", "d", "x"), ("capacity", "d", "memory"), ("driver",))


def test_programs_and_devices_are_shared_between_threads() -> None:
    device = a_cel_device(x=AttributeValue(int_=5))
    answers: list[bool] = []

    def work() -> None:
        for limit in range(200):
            selector = compile_selector(f'device.attributes["d"].x < {limit}')
            answers.append(selector.matches(device) == (limit > 5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(answers) == 800
    assert all(answers)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("dyn(optional.of(true))", True, id="optional-decision"),
        pytest.param("dyn(optional.none())", "optional.none() dereference", id="no-decision"),
        pytest.param(
            "dyn(optional.of(1))", "unsupported type conversion from 'int' to bool", id="number"
        ),
        pytest.param("dyn(type(1))", "type conversion not supported for 'type'", id="type"),
        pytest.param(
            "dyn([1] + [2])", "type conversion error from list to 'bool'", id="joined-list"
        ),
    ],
)
def test_decisions_of_unknown_types(expression: str, expected: object) -> None:
    outcome = compile_selector(expression).evaluate(a_cel_device())

    if outcome.error is None:
        assert outcome.value is expected
    else:
        assert outcome.error.endswith(f" could not be converted to bool: {expected}")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("dyn(optional.of(1))", AttributeValue(int_=1), id="optional"),
        pytest.param("dyn(type(1))", AttributeValue(string="int"), id="type"),
        pytest.param("dyn([optional.of(1)])", AttributeValue(ints=(1,)), id="list-of-optionals"),
        pytest.param("dyn(optional.none())", "unsupported CEL return type: <nil>", id="nothing"),
        pytest.param(
            "dyn(optional.of([1]))", "unsupported CEL return type: []ref.Val", id="optional-list"
        ),
        pytest.param("dyn([1.5])", "unsupported list element type: float64", id="doubles"),
        pytest.param("dyn([[1]])", "unsupported list element type: []ref.Val", id="lists"),
    ],
)
def test_attributes_of_unknown_types(expression: str, expected: object) -> None:
    outcome = compile_derived(expression).evaluate(a_cel_device())

    assert expected == (outcome.value if outcome.error is None else outcome.error)
