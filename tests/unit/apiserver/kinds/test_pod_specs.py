"""Facts about specs of pods: found once for all equal specs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from allot.apiserver.kinds.pod_specs import KnownPodSpecs
from allot.apiserver.known_results import MAX_BYTES, MAX_KNOWN
from allot.validation.fields import FieldError, FieldPath, required


class Rules:
    """Counts how often a spec is validated."""

    def __init__(self, *errors: FieldError) -> None:
        self.errors = errors
        self.asked = 0

    def __call__(self) -> Iterator[FieldError]:
        self.asked += 1
        yield from self.errors


def a_spec(name: str = "c") -> dict[str, Any]:
    return {"containers": [{"name": name}]}


def test_equal_specs_are_validated_once_by_each_set_of_rules() -> None:
    known, claims, basics = KnownPodSpecs(), Rules(), Rules()

    for _ in range(3):
        facts = known.facts(a_spec())
        assert not list(facts.errors("claims", claims))
        assert not list(facts.errors("basics", basics))

    assert (claims.asked, basics.asked) == (1, 1)


def test_a_spec_with_errors_is_validated_every_time() -> None:
    known, rules = KnownPodSpecs(), Rules(required(FieldPath("spec")))

    for _ in range(3):
        assert len(list(known.facts(a_spec()).errors("claims", rules))) == 1

    assert rules.asked == 3


def test_other_specs_have_other_facts() -> None:
    known = KnownPodSpecs()

    known.facts(a_spec("a")).quality = "Guaranteed"

    assert known.facts(a_spec("b")).quality is None
    assert known.facts(a_spec("a")).quality == "Guaranteed"


def test_large_specs_and_too_many_are_forgotten() -> None:
    known = KnownPodSpecs()
    large = a_spec("c" * MAX_BYTES)
    known.facts(large).quality = "BestEffort"
    known.facts(a_spec()).quality = "BestEffort"

    assert known.facts(dict(large)).quality is None
    for number in range(MAX_KNOWN):
        known.facts(a_spec(str(number)))
    assert known.facts(a_spec()).quality is None
