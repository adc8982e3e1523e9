"""Laws of selectors: they read back as they print, agree with a naive reading, and never fall over."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allot.api.selectors import LabelMatcher
from allot.apiserver.selectors import (
    SelectorError,
    parse_field_selector,
    parse_label_selector,
)

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
keys = st.sampled_from(["a", "b", "in", "notin", "example.com/x", "X_y.z"])
values = st.sampled_from(["", "x", "in", "1", "5", "12", "a.b-c"])
numbers = st.sampled_from(["1", "5", "012"])
spaces = st.sampled_from(["", " ", "\t "])
value_lists = st.lists(values, min_size=1, max_size=3)
labels = st.dictionaries(keys, values, max_size=4)


@st.composite
def requirements(draw: st.DrawFn) -> str:
    key, space = draw(keys), draw(spaces)
    match draw(st.sampled_from(["=", "==", "!=", "in", "notin", "", "!", ">", "<"])):
        case "":
            return f"{space}{key}"
        case "!":
            return f"!{space}{key}"
        case ("in" | "notin") as operator:
            listed = f"{space},{space}".join(draw(value_lists)) or ","
            return f"{key} {operator}{space}({listed}){space}"
        case (">" | "<") as operator:
            return f"{key}{space}{operator}{space}{draw(numbers)}"
        case operator:
            return f"{key}{space}{operator}{space}{draw(values)}"


selectors = st.lists(requirements(), max_size=4)


def naively_matches(requirement: str, given_labels: dict[str, str]) -> bool:
    """By splitting the text, without any parsing."""
    text = requirement.strip()
    if text.startswith("!"):
        return text[1:].strip() not in given_labels
    if "(" in text:
        head, _, rest = text.partition("(")
        key, operator = head.split()
        wanted = [value.strip() for value in rest.rstrip().removesuffix(")").split(",")]
        return (given_labels.get(key) in wanted) == (operator == "in")
    for sign in ("!=", "==", "=", ">", "<"):
        if sign in text:
            key, value = (part.strip() for part in text.split(sign, 1))
            found = given_labels.get(key)
            if sign == "!=":
                return found != value
            if sign in ("=", "=="):
                return found == value
            if found is None or not found.isdigit():
                return False
            return int(found) > int(value) if sign == ">" else int(found) < int(value)
    return text in given_labels


@unhurried
@given(selectors, labels)
def test_agrees_with_a_naive_reading(parts: list[str], given_labels: dict[str, str]) -> None:
    selector = parse_label_selector(",".join(parts))

    expected = all(naively_matches(part, given_labels) for part in parts)
    assert selector.matches(given_labels) == expected
    assert LabelMatcher(selector).matches(given_labels) == expected
    assert selector.is_everything == (not parts)


@unhurried
@given(selectors)
def test_label_selectors_read_back_as_they_print(parts: list[str]) -> None:
    selector = parse_label_selector(",".join(parts))

    assert parse_label_selector(str(selector)) == selector


letters = st.text(st.sampled_from(list("ab=!(),>< \tin~/é\\")), max_size=20)


@unhurried
@given(letters | st.text(max_size=30))
def test_any_text_is_a_label_selector_or_refused(text: str) -> None:
    try:
        selector = parse_label_selector(text)
    except SelectorError:
        return
    assert parse_label_selector(str(selector)) == selector


@unhurried
@given(st.lists(st.tuples(st.sampled_from(["a", "spec.x"]), st.text(max_size=6), st.booleans())))
def test_any_value_can_be_selected(wanted: list[tuple[str, str, bool]]) -> None:
    special = str.maketrans({letter: f"\\{letter}" for letter in ",=\\"})
    text = ",".join(
        f"{field}{'=' if is_equal else '!='}{value.translate(special)}"
        for field, value, is_equal in wanted
    )

    assert [tuple(found) for found in parse_field_selector(text).requirements] == wanted


@unhurried
@given(letters | st.text(max_size=30))
def test_any_text_is_a_field_selector_or_refused(text: str) -> None:
    try:
        selector = parse_field_selector(text)
    except SelectorError:
        return
    assert parse_field_selector(str(selector)) == selector
