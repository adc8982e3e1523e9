"""Field selectors."""

from __future__ import annotations

import pytest

from allot.apiserver.selectors import (
    FieldMatcher,
    FieldRequirement,
    SelectorError,
    parse_field_selector,
    require_supported,
)

POD = {"metadata.name": "p", "spec.nodeName": "", "status.phase": "Pending", "x": "a,b=c\\d"}


@pytest.mark.parametrize(
    ("selector", "is_match"),
    [
        ("", True),
        ("metadata.name=p", True),
        ("metadata.name==p", True),
        ("metadata.name!=p", False),
        ("metadata.name=q", False),
        ("spec.nodeName=", True),
        ("spec.nodeName!=", False),
        ("status.phase=Pending,spec.nodeName=", True),
        ("status.phase!=Succeeded,status.phase!=Failed", True),
        ("status.phase=Pending,metadata.name=q", False),
        (",metadata.name=p,,", True),
        (r"x=a\,b\=c\\d", True),
        (r"x!=a\,b\=c\\d", False),
        ("status.phase=Pending,status.phase=Failed", False),
        ("status.phase=Pending,status.phase!=Failed", True),
    ],
)
def test_matching(selector: str, is_match: bool) -> None:
    assert FieldMatcher(parse_field_selector(selector)).matches(POD.__getitem__) is is_match


def test_each_field_is_read_once_however_many_requirements_there_are() -> None:
    many = ",".join(f"metadata.name!=x{number}" for number in range(1_000))
    reads: list[str] = []

    def get(field: str) -> str:
        reads.append(field)
        return POD[field]

    matcher = FieldMatcher(parse_field_selector(f"{many},status.phase=Pending"))

    assert matcher.matches(get)
    assert sorted(reads) == ["metadata.name", "status.phase"]


def test_no_field_has_two_values() -> None:
    assert not FieldMatcher(parse_field_selector("x=1,x=2")).matches(lambda _: "1")


def test_exact_values() -> None:
    selector = parse_field_selector("spec.nodeName=n,status.phase!=Failed")

    assert selector.exact("spec.nodeName") == "n"
    assert selector.exact("status.phase") is None
    assert selector.exact("metadata.name") is None
    assert not selector.is_everything
    assert parse_field_selector("").is_everything


def test_requirements() -> None:
    assert parse_field_selector(r"a=1,b!=\,").requirements == (
        FieldRequirement("a", "1"),
        FieldRequirement("b", ",", is_equal=False),
    )
    assert str(parse_field_selector(r"a==1,b!=\,")) == r"a=1,b!=\,"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'"),
        ("a=b=c", "invalid field selector: unescaped character in value: ="),
        ("a===c", "invalid field selector: unescaped character in value: ="),
        (r"a=\\=", "invalid field selector: unescaped character in value: ="),
        (r"a=\b", r"invalid field selector: invalid escape sequence: \b"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_texts_that_are_no_selector(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_field_selector(text)

    assert str(caught.value) == message


def test_supported_fields() -> None:
    require_supported(parse_field_selector("metadata.name=a,metadata.namespace!=b"))
    require_supported(parse_field_selector("spec.driver=a,metadata.name=b"), ["spec.driver"])

    with pytest.raises(SelectorError) as plain:
        require_supported(parse_field_selector("data.k=v"))
    with pytest.raises(SelectorError) as own:
        require_supported(parse_field_selector("spec.x=v"), ["spec.driver"])
    with pytest.raises(SelectorError) as named:
        require_supported(parse_field_selector("spec.x=v"), ["spec.driver"], "{field} of a Job")

    assert str(plain.value) == (
        '"data.k" is not a known field selector: only "metadata.name", "metadata.namespace"'
    )
    assert str(own.value) == "field label not supported: spec.x"
    assert str(named.value) == "spec.x of a Job"
