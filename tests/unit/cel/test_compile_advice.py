"""Suggestions for expressions that do not compile."""

from __future__ import annotations

import pytest

from allot import features
from allot.cel import CelCompileError, Origin, compile_selector
from allot.cel.compile_advice import compile_advice


@pytest.mark.parametrize(
    ("expression", "advice"),
    [
        ('device.atributes["d.e"].model == "x"', "; did you mean attributes?"),
        ('device.attribute["d.e"].model == "x"', "; did you mean attributes?"),
        ('device.capacities["d.e"].memory == "x"', "; did you mean capacity?"),
        ('devices.driver == "x"', "; did you mean device?"),
        ('device.driver.startWith("x")', "; did you mean startsWith?"),
        (
            'device.capacity["d.e"].memory > quantity("1Gi")',
            "; quantities are compared with a.compareTo(b) > 0",
        ),
        (
            'device.capacity["d.e"].memory >= "1Gi"',
            '; quantities are compared with a.compareTo(b) >= 0, where b is such as quantity("10Gi")',
        ),
        (
            'device.attributes["d.e"].version < semver("1.0.0")',
            '; versions are compared with a.compareTo(b) < 0, where b is such as semver("1.2.3")',
        ),
        ("device.nope", ""),
        ("1 + true", ""),
    ],
)
def test_advice(expression: str, advice: str) -> None:
    with pytest.raises(CelCompileError) as error:
        compile_selector(expression, Origin.NEW, features.DEFAULTS)

    assert compile_advice(error.value.text) == advice
