"""Functions of the libraries, where the vectors do not reach."""

from __future__ import annotations

import pytest

from allot.cel import AttributeValue, CelCompileError, cel_device, compile_derived
from allot.cli.cel_jsonl import attribute_to_json

DEVICE = cel_device("d", "gpu-0", {"text": AttributeValue(string="rack1-node3")}, {})


def answer(expression: str) -> object:
    """The value as JSON, or the text of the error."""
    outcome = compile_derived(expression).evaluate(DEVICE)
    if outcome.error is not None:
        return outcome.error
    assert isinstance(outcome.value, AttributeValue)
    (value,) = attribute_to_json(outcome.value).values()
    return value


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param('string(ip("2001:db8:0:0:1:0:0:1"))', "2001:db8::1:0:0:1", id="shortest"),
        pytest.param('string(ip("::"))', "::", id="unspecified"),
        pytest.param('ip.isCanonical("::0")', False, id="not-canonical"),
        pytest.param('isIP("1.2.3.04")', False, id="leading-zero"),
        pytest.param('isIP("fe80::1%eth0")', False, id="zone"),
        pytest.param('ip("169.254.1.1").isLinkLocalUnicast()', True, id="link-local"),
        pytest.param('ip("ff02::1").isLinkLocalMulticast()', True, id="multicast"),
        pytest.param('ip("255.255.255.255").isGlobalUnicast()', False, id="broadcast"),
        pytest.param('string(cidr("192.168.1.77/20").masked())', "192.168.0.0/20", id="masked"),
        pytest.param('cidr("10.0.0.0/8").containsIP(ip("::1"))', False, id="families"),
        pytest.param('cidr("10.0.0.0/8").containsCIDR("0.0.0.0/0")', False, id="larger-network"),
        pytest.param('isCIDR("10.0.0.0/08")', False, id="bits-with-zero"),
        pytest.param(
            'ip("1.2.3").family()',
            'IP Address "1.2.3" parse error during conversion from string: '
            'ParseAddr("1.2.3"): IPv4 address too short',
            id="too-short",
        ),
    ],
)
def test_network(expression: str, expected: object) -> None:
    assert answer(expression) == expected


@pytest.mark.parametrize("text", ["1e", "1.5e", "1e+", ".5E", "1ex", "1e5.", "+", ".", "0x1p"])
def test_what_is_no_double(text: str) -> None:
    """Python 3.11.2 matches the first ones by a possessive group, and `float` refuses them."""
    with pytest.raises(CelCompileError, match="type conversion error from 'string' to 'double'"):
        compile_derived(f'string(double("{text}"))')


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param('url("https://u@[::1]:80/a%20b?x#f").getHostname()', "::1", id="hostname"),
        pytest.param('url("https://h/a b").getEscapedPath()', "/a%20b", id="escaped"),
        pytest.param('url("https://h/?a=1&a=2&b").getQuery()["a"]', ["1", "2"], id="query"),
        pytest.param('url("/p?a=%41+b").getQuery()["a"][0]', "A b", id="unescaped-query"),
        pytest.param('isURL("relative")', False, id="relative"),
        pytest.param('isURL("http://h:port/")', False, id="bad-port"),
        pytest.param('isURL("mailto:someone")', True, id="opaque"),
    ],
)
def test_urls(expression: str, expected: object) -> None:
    assert answer(expression) == expected


@pytest.mark.parametrize(
    ("format_", "text", "is_valid"),
    [
        pytest.param("dns1123Label", "a-b", True, id="label"),
        pytest.param("dns1123Label", "a" * 64, False, id="long-label"),
        pytest.param("dns1123LabelPrefix", "a-", True, id="prefix"),
        pytest.param("dns1123Subdomain", "a.b-c", True, id="subdomain"),
        pytest.param("dns1035Label", "1a", False, id="starts-with-digit"),
        pytest.param("qualifiedName", "example.com/My_Name", True, id="qualified"),
        pytest.param("qualifiedName", "/x", False, id="no-prefix"),
        pytest.param("labelValue", "", True, id="empty-label-value"),
        pytest.param("uri", "http://a/b", True, id="uri"),
        pytest.param("uuid", "8f6d0e1c-1111-2222-3333-444455556666", True, id="uuid"),
        pytest.param("byte", "YQ==", True, id="base64"),
        pytest.param("byte", "YQ", False, id="not-base64"),
        pytest.param("date", "2024-02-29", True, id="leap-day"),
        pytest.param("date", "2023-02-29", False, id="no-leap-day"),
        pytest.param("datetime", "2024-01-01T00:00:00Z", True, id="datetime"),
    ],
)
def test_named_formats(format_: str, text: str, is_valid: bool) -> None:
    assert answer(f'!format.{format_}().validate("{text}").hasValue()') is is_valid


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param('"%f".format([1234567.5])', "1,234,567.500000", id="american"),
        pytest.param('"%e".format([0.00123])', "1.230000\u202f×\u202f10⁻⁰³", id="scientific"),
        pytest.param('"%x %X %o %b".format([255, "hi", 8, true])', "ff 6869 10 1", id="bases"),
        pytest.param(
            '"%s".format([[1, "a", {"k": 2.5, "a": duration("1s")}]])',
            '[1, "a", {"a":duration("1s"), "k":2.500000}]',
            id="literals-within",
        ),
        pytest.param('"%s %s".format([null, 1.5])', "null 1.5", id="bare-at-the-top"),
        pytest.param('dyn("%d").format(["x"])', None, id="wrong-type"),
    ],
)
def test_formatting(expression: str, expected: object) -> None:
    if expected is None:
        assert "decimal clause can only be used on integers, was given string" in str(
            answer(expression)
        )
    else:
        assert answer(expression) == expected


@pytest.mark.parametrize(
    ("expression", "finding"),
    [
        pytest.param('"%".format([])', "unexpected end of string", id="lone-percent"),
        pytest.param('"%d".format([])', "index 0 out of range", id="too-few"),
        pytest.param('"%z".format([])', "index 0 out of range", id="too-few-for-what-is-no-verb"),
        pytest.param(
            '"%é".format([1])',
            'could not parse formatting clause: unrecognized formatting clause "Ã"',
            id="only-the-first-byte-is-told",
        ),
    ],
)
def test_wrong_formats_are_found_before_they_are_used(expression: str, finding: str) -> None:
    with pytest.raises(CelCompileError) as raised:
        compile_derived(expression)

    assert [issue.message for issue in raised.value.issues] == [finding]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("string(1234567.0)", "1.234567e+06", id="exponent"),
        pytest.param("string(100000.0)", "100000", id="no-exponent"),
        pytest.param("string(-0.00001)", "-1e-05", id="small"),
        pytest.param('string(duration("90m"))', "5400s", id="duration"),
        pytest.param(
            'string(timestamp("2024-01-01T02:00:00.50+02:00"))', "2024-01-01T00:00:00.5Z", id="utc"
        ),
        pytest.param('dyn("a") * 2', "no such overload", id="texts-do-not-say-what"),
        pytest.param("dyn(true) * 2", "no such overload: _*_", id="bools-do"),
        pytest.param('dyn(5).matches("a")', "no such overload", id="constant-pattern"),
        pytest.param('"a".matches(dyn(5))', "no such overload", id="pattern-is-no-text"),
        pytest.param("dyn([1]).size(1)", None, id="wrong-number-of-arguments"),
        pytest.param('"aXbX".replace("X", "", 1)', "abX", id="limited-replace"),
        pytest.param('"héllo".substring(1, 3)', "él", id="code-points"),
        pytest.param('device.attributes["d"].text.findAll("[0-9]")', ["1", "3"], id="find-all"),
        pytest.param('"aaa".findAll("a*", 5)', ["aaa"], id="empty-matches"),
        pytest.param("{1: 'int', 2: 'two'}[dyn(1u)]", "int", id="numbers-as-keys"),
        pytest.param("{true: 'yes', false: 'no'}[true]", "yes", id="bools-as-keys"),
        pytest.param("dyn(1) == dyn(true)", False, id="one-is-not-true"),
        pytest.param("{'a': 1}.transformMap(k, v, v == 2, v).size()", 0, id="filtered-map"),
        pytest.param("['b', 'a'].sortBy(x, x)", ["a", "b"], id="sort-by"),
    ],
)
def test_language(expression: str, expected: object) -> None:
    if expected is None:
        with pytest.raises(Exception, match="found no matching overload"):
            answer(expression)
    else:
        assert answer(expression) == expected


NOON = 'timestamp("2024-02-29T12:00:00Z")'


@pytest.mark.parametrize(
    ("zone", "hours"),
    [
        pytest.param("+05:30", 17, id="east"),
        pytest.param("-03:30", 8, id="west"),
        pytest.param("2:00", 14, id="without-sign"),
        pytest.param("+25:00", 13, id="more-than-a-day"),
        pytest.param("1:2:3", 'strconv.Atoi: parsing "2:3": invalid syntax', id="no-minutes"),
        pytest.param("x:00", 'strconv.Atoi: parsing "x": invalid syntax', id="no-hours"),
        pytest.param("nowhere", "unknown time zone nowhere", id="unknown"),
    ],
)
def test_zones(zone: str, hours: object) -> None:
    assert answer(f'{NOON}.getHours("{zone}")') == hours


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        pytest.param("1h30m", "5400s", id="whole"),
        pytest.param("-1.5s", "-1.5s", id="negative"),
        pytest.param("1ns", "0.000000001s", id="tiny"),
        pytest.param("0s", "0s", id="nothing"),
        pytest.param("123456789.123456789s", "123456789.12345679s", id="as-a-double"),
    ],
)
def test_durations_are_written_in_seconds(duration: str, text: str) -> None:
    assert answer(f'string(duration("{duration}"))') == text


VERSION = 'dyn(semver("1.0.0"))'


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param(f"{VERSION} == 'a'", "no such overload", id="object-first"),
        pytest.param(f"dyn('a') == {VERSION}", False, id="object-second"),
        pytest.param(f"{VERSION} != 'a'", True, id="different"),
        pytest.param(f"{VERSION} == null", False, id="null"),
        pytest.param(f"[{VERSION}] == [dyn('a')]", True, id="list-pays-no-heed"),
        pytest.param(f"[{VERSION}, dyn(1)] == [dyn('a'), dyn(2)]", False, id="list-goes-on"),
        pytest.param(f"[dyn('a')] == [{VERSION}]", False, id="list-the-other-way"),
        pytest.param(f"[{VERSION}] == [dyn(null)]", False, id="null-in-list"),
        pytest.param(f"{{1: {VERSION}}} == {{1: dyn('a')}}", True, id="map-pays-no-heed"),
        pytest.param(
            f"[{VERSION}] + [dyn(1)] == [dyn('a'), dyn(1)]", "no such overload", id="joined-tells"
        ),
        pytest.param(
            f"[{VERSION}] + [dyn(1)] == [dyn('a'), dyn(2)]", False, id="joined-but-different"
        ),
        pytest.param(
            f"optional.of({VERSION}) == optional.of(dyn('a'))",
            "no such overload",
            id="optional-tells",
        ),
        pytest.param(
            f"[optional.of({VERSION})] == [optional.of(dyn('a'))]", True, id="optional-in-list"
        ),
        pytest.param(f"{VERSION} in [dyn('a')]", False, id="membership-pays-no-heed"),
    ],
)
def test_equality_of_what_cannot_be_compared(expression: str, expected: object) -> None:
    assert answer(expression) == expected


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        pytest.param("dyn(1.0)", 8, id="whole-double"),
        pytest.param("dyn(1u)", 8, id="uint"),
        pytest.param("dyn(1.5)", "unsupported index value 1.5 in list", id="fraction"),
        pytest.param("dyn(1e30)", "unsupported index value 1e+30 in list", id="huge"),
        pytest.param(
            "dyn(18446744073709551615u)",
            "unsupported index value 18446744073709551615 in list",
            id="huge-uint",
        ),
        pytest.param("dyn('a')", "unsupported index type 'string' in list", id="text"),
        pytest.param("2", "index out of bounds: 2", id="outside"),
    ],
)
def test_indices_of_lists(index: str, expected: object) -> None:
    assert answer(f"[7, 8][{index}]") == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        pytest.param("(?P<n>a)(?P<n>b)", "ab", id="same-name-twice"),
        pytest.param("(?<=a)b", "invalid named capture: `(?<=a)b`", id="look-behind"),
        pytest.param("(?<!a)b>c", "invalid named capture: `(?<!a)b>`", id="look-behind-with-end"),
        pytest.param("(?=a)", "invalid or unsupported Perl syntax: `(?=`", id="look-ahead"),
        pytest.param(r"a\\C", r"invalid escape sequence: `\C`", id="any-byte"),
        pytest.param("a**", "invalid nested repetition operator: `**`", id="repeated-twice"),
    ],
)
def test_patterns_are_those_of_go(pattern: str, expected: str) -> None:
    prefix = "" if expected == "ab" else "Illegal regex: error parsing regexp: "
    assert answer(f'"cab".find("{pattern}" + "")') == prefix + expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("dyn(1).flatten()", "no such overload: int.flatten()", id="no-list"),
        pytest.param("dyn(1).flatten(2)", "no such overload: int.flatten(int)", id="with-depth"),
        pytest.param(
            "[[1]].flatten(dyn('a'))", "no such overload: list.flatten(string)", id="no-depth"
        ),
        pytest.param("[[1]].flatten(-1)", "level must be non-negative", id="negative"),
        pytest.param("[[[1], [2]], [[3]]].flatten(2)", [1, 2, 3], id="deep"),
    ],
)
def test_flattening(expression: str, expected: object) -> None:
    assert answer(expression) == expected


TEXT = 'device.attributes["d"].text'


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param(f"has({TEXT}.x)", False, id="has"),
        pytest.param(f"{TEXT}.?x.hasValue()", False, id="optional-field"),
        pytest.param(f"{TEXT}[?0].orValue('none')", "none", id="optional-index"),
        pytest.param("device.attributes['d'].?text.x.hasValue()", False, id="after-an-optional"),
        pytest.param(f"{TEXT}.x", "no such key: x", id="field"),
        pytest.param(f"has({TEXT}.x.y)", "no such key: x", id="has-further-on"),
        pytest.param(
            "has(dyn([1]).x)", "unsupported index type 'string' in list", id="field-of-a-list"
        ),
    ],
)
def test_what_has_no_parts_has_none_of_any_name(expression: str, expected: object) -> None:
    assert answer(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("[1, ?optional.none()].size()", 1, id="missing-element"),
        pytest.param("[?optional.of(2)][0]", 2, id="element"),
        pytest.param("[?optional.of(optional.none())].size()", 1, id="element-that-is-none"),
        pytest.param("{'a': 1, ?'a': optional.none()}.size()", 0, id="missing-entry"),
        pytest.param("{?'a': optional.of(optional.none())}.size()", 1, id="entry-that-is-none"),
        pytest.param(
            "[?dyn(1)]",
            "cannot initialize optional list element from non-optional value 1",
            id="no-optional",
        ),
        pytest.param("[?optional.of(1 / 0)]", "division by zero", id="error"),
    ],
)
def test_optional_elements(expression: str, expected: object) -> None:
    assert answer(expression) == expected
