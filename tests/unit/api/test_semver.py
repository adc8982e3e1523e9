from __future__ import annotations

import pytest

from allot.api.semver import Semver, SemverError, is_version_attribute


def test_precedence() -> None:
    texts = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2", "1.0.0-beta.11"]
    texts += ["1.0.0-rc.1", "1.0.0", "1.0.1", "1.10.0", "2.0.0"]
    versions = [Semver.parse(text) for text in texts]

    assert versions == sorted(versions)
    assert [str(version) for version in versions] == texts


def test_build_metadata_is_kept_but_not_compared() -> None:
    plain, built = Semver.parse("1.2.3"), Semver.parse("1.2.3+b.1")

    assert plain == built
    assert hash(plain) == hash(built)
    assert str(built) == "1.2.3+b.1"
    assert plain != "1.2.3"


def test_attributes_may_have_larger_numbers_than_versions() -> None:
    text = "99999999999999999999.0.0"

    assert is_version_attribute(text)
    with pytest.raises(SemverError, match="value out of range"):
        Semver.parse(text)


def test_quotes_are_escaped_in_messages() -> None:
    with pytest.raises(SemverError, match=r'found in major number "\\"1"'):
        Semver.parse('"1.0.0')
