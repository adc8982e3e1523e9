"""The table of kinds, and what is derived from it."""

from __future__ import annotations

from allot.api import scheme
from allot.api.kinds import KINDS, find_kind, kind_named
from allot.apiserver.kinds.resources import RESOURCES as SERVED
from allot.client.resources import RESOURCES as KNOWN_TO_CLIENTS


def test_every_name_means_one_kind() -> None:
    for names in (
        [(kind.group, kind.plural) for kind in KINDS],
        [(kind.group, kind.name) for kind in KINDS],
    ):
        assert len(set(names)) == len(names)


def test_server_client_and_scheme_are_derived_from_the_table() -> None:
    assert [resource.info for resource in SERVED] == list(KINDS)
    assert [(each.group, each.plural) for each in KNOWN_TO_CLIENTS] == [
        (kind.group, kind.plural) for kind in KINDS if kind.is_stored
    ]
    assert set(scheme.KINDS.values()) == {kind for kind in KINDS if kind.is_typed}


def test_the_storage_version_is_served() -> None:
    for kind in KINDS:
        assert kind.storage_version in kind.versions, kind


def test_every_version_of_a_typed_kind_can_be_read() -> None:
    for kind in scheme.KINDS.values():
        for version in kind.versions:
            assert scheme.lookup(kind.gvk(version)) == (kind, scheme.version_of(kind, version))


def test_lookups() -> None:
    pods = kind_named("", "pods")

    assert find_kind("", "Pod") is pods
    assert find_kind("apps", "Pod") is None
    assert (pods.singular, pods.is_typed, pods.has_status) == ("pod", False, False)
    assert kind_named("resource.k8s.io", "resourceclaims").has_status
