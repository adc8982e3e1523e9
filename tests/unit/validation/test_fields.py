from __future__ import annotations

import pytest

from allot.api.quantity import Quantity
from allot.testing.builders import a_request
from allot.validation.claim_status import canonical_interface_address
from allot.validation.fields import (
    FieldPath,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    show_value,
    too_long,
    too_many,
)
from allot.validation.formats import shorten_key

PATH = FieldPath("spec") / "devices" @ 0 / "attributes" @ "a.b/c"


def test_paths() -> None:
    assert str(PATH) == "spec.devices[0].attributes[a.b/c]"
    assert repr(PATH) == "FieldPath('spec.devices[0].attributes[a.b/c]')"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (required(PATH), "Required value"),
        (required(PATH, "must be there"), "Required value: must be there"),
        (invalid(PATH, 'a"b', "no quotes"), 'Invalid value: "a\\"b": no quotes'),
        (invalid(PATH, None, "is immutable"), "Invalid value: null: is immutable"),
        (duplicate(PATH, 3), "Duplicate value: 3"),
        (
            not_supported(PATH, "c", ("b", "a")),
            'Unsupported value: "c": supported values: "a", "b"',
        ),
        (forbidden(PATH, "not here"), "Forbidden: not here"),
        (too_long(PATH, 5), "Too long: may not be more than 5 bytes"),
        (too_many(PATH, 9, 8), "Too many: 9: must have at most 8 items"),
    ],
)
def test_messages(error: object, message: str) -> None:
    assert str(error) == f"{PATH}: {message}"


def test_values_in_messages() -> None:
    assert show_value(Quantity.parse("1Gi")) == '"1Gi"'
    assert show_value(a_request("x")) == '{"name":"x"}'
    assert show_value(True) == "true"


def test_long_keys_lose_their_middle() -> None:
    assert shorten_key("a" * 96, 96) == "a" * 96
    assert shorten_key("a" * 50 + "b" * 50, 96) == "a" * 47 + "..." + "b" * 46


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("10.0.0.01/024", "10.0.0.1/24"),
        ("::FFFF:10.0.0.1/120", "10.0.0.1/24"),
        ("2001:db8::1/64", "2001:db8::1/64"),
        ("::ffff:10.0.0.1/64", "10.0.0.1/-32"),
        ("::ffff:010.0.0.1/128", "10.0.0.1/32"),
        ("10.0.0.1", None),
        ("10.0.0.1/33", None),
        ("fe80::1%eth0/64", None),
        ("10.0.0.1/-1", None),
        ("x/1", None),
    ],
)
def test_interface_addresses(text: str, canonical: str | None) -> None:
    assert canonical_interface_address(text) == canonical
