"""Which controllers run."""

from __future__ import annotations

import pytest

from allot.controllers.registry import (
    CONTROLLERS,
    ON_REQUEST,
    UnknownControllerError,
    chosen,
)

USUAL = set(CONTROLLERS) - ON_REQUEST


def names(*choice: str) -> set[str]:
    made = chosen(choice)
    return {name for name, make in CONTROLLERS.items() if make in made}


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (("*",), USUAL),
        (("*", *ON_REQUEST), set(CONTROLLERS)),
        ((), set()),
        (("job-controller",), {"job-controller"}),
        (("*", "-job-controller"), USUAL - {"job-controller"}),
        (("-job-controller", "*"), USUAL - {"job-controller"}),
        (("resource-claim-controller",), {"resourceclaim-controller"}),
    ],
)
def test_choice(choice: tuple[str, ...], expected: set[str]) -> None:
    assert names(*choice) == expected


@pytest.mark.parametrize("name", ["job", "-jobs", ""])
def test_unknown_names(name: str) -> None:
    with pytest.raises(UnknownControllerError, match="there is no controller"):
        chosen(["*", name])


def test_another_in_its_place() -> None:
    other = CONTROLLERS["deployment-controller"]

    assert chosen(["job-controller"], {"job-controller": other}) == (other,)
