"""Profiles in annotations and fields agree."""

from __future__ import annotations

from typing import Any

import pytest

from allot.validation.fields import FieldPath
from allot.validation.profile_annotations import (
    APP_ARMOR,
    SECCOMP,
    SECCOMP_OF_POD,
    validate_profile_annotations,
)

LOCAL = {"type": "Localhost", "localhostProfile": "p"}


@pytest.mark.parametrize(
    ("annotations", "own", "whole", "wrong_fields"),
    [
        pytest.param({APP_ARMOR: "localhost/p"}, {"appArmorProfile": LOCAL}, {}, [], id="equal"),
        pytest.param(
            {APP_ARMOR: "localhost/q"},
            {"appArmorProfile": LOCAL},
            {},
            ["containers[0].securityContext.appArmorProfile.localhostProfile"],
            id="another-profile",
        ),
        pytest.param(
            {APP_ARMOR: "unconfined"},
            {},
            {"appArmorProfile": LOCAL},
            ["containers[0].securityContext.appArmorProfile.type"],
            id="profile-of-the-pod",
        ),
        pytest.param(
            {APP_ARMOR: "unconfined"}, {"appArmorProfile": {"type": "Foo"}}, {}, [], id="unknown"
        ),
        pytest.param({APP_ARMOR: "unconfined"}, {}, {}, [], id="no-field"),
        pytest.param(
            {SECCOMP: "docker/default"},
            {"seccompProfile": {"type": "RuntimeDefault"}},
            {},
            [],
            id="older-name",
        ),
        pytest.param(
            {SECCOMP: "unconfined"},
            {},
            {"seccompProfile": LOCAL},
            [],
            id="seccomp-is-not-inherited",
        ),
        pytest.param(
            {SECCOMP_OF_POD: "unconfined"},
            {},
            {"seccompProfile": LOCAL},
            ["securityContext.seccompProfile.type"],
            id="seccomp-of-the-pod",
        ),
    ],
)
def test_profiles(
    annotations: dict[str, str],
    own: dict[str, Any],
    whole: dict[str, Any],
    wrong_fields: list[str],
) -> None:
    named = {name + "c" if name.endswith("/") else name: text for name, text in annotations.items()}
    spec = {"containers": [{"name": "c", "securityContext": own}], "securityContext": whole}

    errors = validate_profile_annotations(named, spec, FieldPath("spec"))

    assert [str(error.path) for error in errors] == [f"spec.{field}" for field in wrong_fields]
