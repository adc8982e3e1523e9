"""Paths of collections are remembered; what is found must not depend on it."""

from __future__ import annotations

from itertools import permutations

import pytest

from allot.apiserver.http import routes
from allot.apiserver.http.routes import MAX_REMEMBERED_PATHS, Router, find_target
from allot.apiserver.registry.served import BY_DEFAULT

CORE = "/api/v1"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


@pytest.mark.parametrize(
    "paths",
    [
        pytest.param(
            [
                f"{CORE}/namespaces/a/pods",
                f"{CORE}/namespaces/a/pods/b",
                f"{CORE}/namespaces/a/pods/b/status",
                f"{CORE}/namespaces/a/pods/b/%73tatus",
                f"{CORE}/namespaces/a/pods//status",
            ],
            id="namespaced",
        ),
        pytest.param([f"{CORE}/pods", f"{CORE}/pods/b"], id="all-namespaces"),
        pytest.param(
            [
                f"{CORE}/namespaces",
                f"{CORE}/namespaces/a",
                f"{CORE}/namespaces/a/status",
                f"{CORE}/namespaces/a/status/b",
                f"{CORE}/namespaces/a/pods",
            ],
            id="namespaces",
        ),
        pytest.param(
            [
                f"{CORE}/nodes",
                f"{CORE}/nodes/",
                f"{CORE}/nodes/a",
                f"{CORE}/nodes/a/",
                f"{CORE}/nodes//a",
            ],
            id="slashes",
        ),
        pytest.param(
            [f"{CORE}/nodes/a", f"{CORE}/nodes/a%2fb", f"{CORE}/node%73/a", f"{CORE}/node%73"],
            id="escaped",
        ),
        pytest.param([REVIEWS, f"{REVIEWS}/a"], id="not-stored"),
        pytest.param([f"{CORE}/nothing", f"{CORE}/nothing/a", "/healthz", "/"], id="not-served"),
    ],
)
def test_what_is_found_does_not_depend_on_what_was_asked_before(paths: list[str]) -> None:
    for order in permutations(paths):
        router = Router(BY_DEFAULT)
        for path in (*order, *order):
            assert router.find(path) == find_target(path, BY_DEFAULT)


def test_parts_of_objects_in_known_collections_are_not_searched_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    router = Router(BY_DEFAULT)
    router.find(f"{CORE}/namespaces/a/pods")
    expected = find_target(f"{CORE}/namespaces/a/pods/b/binding", BY_DEFAULT)
    monkeypatch.setattr(routes, "find_target", None)

    assert router.find(f"{CORE}/namespaces/a/pods/b/binding") == expected


def test_few_paths_are_remembered() -> None:
    router = Router(BY_DEFAULT)
    for number in range(MAX_REMEMBERED_PATHS + 10):
        router.find(f"{CORE}/namespaces/n{number}/pods")
    router.find(f"{CORE}/namespaces/{'n' * 1000}/pods")

    assert len(router._collections) <= MAX_REMEMBERED_PATHS
    assert all(len(path) < 300 for path in router._collections)
