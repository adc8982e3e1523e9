"""What every function and operator costs here, per unit of its price.

    ./scripts/bench cel prices [NAME ...]

The price is v1.38's: the cost that counts against the limit of a million. Each row calls something
in a loop, on arguments that are bad for it: long texts and lists, texts that do not parse, values
that are never found. What the loop costs without the call is taken off. Every call costs something,
so the figure is nanoseconds per unit of price, and a call of price 0 counts as one unit.

The last column is the ratio to the median. It says how much longer an evaluation at the limit may
take than a usual one.
"""

from __future__ import annotations

import sys
import time
from statistics import median
from typing import Final, NamedTuple

from allot.cel import AttributeValue, CelError, Origin, cel_device, compile_derived
from allot.cel.kubernetes import environment
from allot.features import FeatureGates

DEVICE: Final = cel_device(
    "gpu.example.com",
    "gpu-0",
    {"three": AttributeValue(int_=3), "texts": AttributeValue(strings=("a", "b"))},
    {},
)


class Row(NamedTuple):
    """A call about `a`, in a loop over `x` from 0 on."""

    about: str
    call: str
    turns: int = 2_000


NUMBERS: Final = "lists.range(200)"
DOUBLES: Final = "lists.range(200).map(i, double(i))"
TEXTS: Final = "lists.range(200).map(i, 'text' + string(i))"
LONG: Final = "lists.range(100).map(i, 'abcdefghi').join('-')"
ODD: Final = "lists.range(100).map(i, 'abc\\u00e9\\n\\\"ghi').join('-')"
MAP: Final = "lists.range(200).transformMap(i, v, v)"
NESTED: Final = "lists.range(100).map(i, [[i]])"
JOINED: Final = "cel.bind(b, lists.range(1000), cel.bind(b, b + b, cel.bind(b, b + b, b + b)))"
TIME: Final = "timestamp('2024-02-29T12:00:00.5Z')"
IP4: Final = "ip('10.1.2.3')"
NET: Final = "cidr('fd00::/64')"
URL: Final = "url('https://user@host:80/path%20x?a=1&b=2&a=3#f')"

ROWS: Final[dict[str, Row]] = {
    "!_": Row("true", "!a"),
    "-_": Row("3", "-a"),
    "@in": Row(NUMBERS, "(x + 1000) in a"),
    "@in (zero)": Row("lists.range(200).map(i, i + 1)", "(x - x) in a"),
    "@in (doubles)": Row(DOUBLES, "0.5 in a"),
    "@in (map)": Row(MAP, "x in a"),
    "@in (joined)": Row(JOINED, "-5 in (a + [x])", 100),
    "@not_strictly_false": Row("[1]", "[x].all(y, true)"),
    "@sortByAssociatedKeys": Row("lists.range(60)", "a.sortBy(y, double(y))", 100),
    "_!=_": Row("3", "a != x"),
    "_!=_ (texts)": Row(LONG, "(a + 'x') != (a + 'y')"),
    "_%_": Row("7", "x % a"),
    "_&&_": Row("true", "a && x >= 0"),
    "_*_": Row("7", "x * a"),
    "_+_": Row("7", "x + a"),
    "_+_ (texts)": Row(LONG, "a + a"),
    "_+_ (lists)": Row(NUMBERS, "a + [x]"),
    "_+_ (durations)": Row("duration('1s')", "a + a"),
    "_-_": Row("7", "x - a"),
    "_/_": Row("7", "x / a"),
    "_<=_": Row("7", "x <= a"),
    "_<_": Row("7", "x < a"),
    "_<_ (texts)": Row(LONG, "a < a"),
    "_==_": Row("7", "x == a"),
    "_==_ (numbers)": Row(NUMBERS, "a == a", 500),
    "_==_ (doubles)": Row(DOUBLES, "a == a", 500),
    "_==_ (nested)": Row(NESTED, "a == a", 200),
    "_==_ (maps)": Row(MAP, "a == a", 500),
    "_==_ (joined)": Row(JOINED, "(a + [x]) == (a + [x])", 50),
    "_>=_": Row("7", "x >= a"),
    "_>_": Row("7", "x > a"),
    "_?._": Row("{'k': 1}", "a.?k"),
    "_?_:_": Row("true", "a ? x : 0"),
    "_[?_]": Row("{'k': 1}", "a[?'k']"),
    "_[_]": Row(NUMBERS, "a[x % 200]"),
    "_[_] (map)": Row("{'k': 1}", "a['k']"),
    "_[_] (joined)": Row(JOINED, "(a + [x])[0]"),
    "_||_": Row("false", "a || x >= 0"),
    "add": Row("quantity('1.5Gi')", "a.add(a)"),
    "asApproximateFloat": Row("quantity('1.5Gi')", "a.asApproximateFloat()"),
    "asInteger": Row("quantity('1Gi')", "a.asInteger()"),
    "bool": Row("'true'", "bool(a)"),
    "bytes": Row(ODD, "bytes(a)"),
    "cel.@mapInsert": Row(MAP, "[1].transformMapEntry(i, v, a)", 200),
    "charAt": Row(LONG, "a.charAt(3)"),
    "cidr": Row("'10.0.'", "cidr(a + string(x) + '.0/16')", 256),
    "compareTo": Row("semver('1.2.3-a.1.b')", "a.compareTo(a)"),
    "compareTo (quantity)": Row("quantity('1.5Gi')", "a.compareTo(a)"),
    "contains": Row(LONG, "a.contains('xyz')"),
    "containsCIDR": Row(NET, "a.containsCIDR('fd00::/65')"),
    "containsIP": Row(NET, "a.containsIP('fd00::' + string(x))"),
    "containsIP (ip)": Row(NET, "a.containsIP(a.ip())"),
    "distinct": Row("lists.range(60).map(i, double(i))", "a.distinct()", 50),
    "double": Row("'1.5e3'", "double(a)"),
    "double (long)": Row("'1.' + lists.range(1000).map(i, '1').join()", "double(a)", 500),
    "duration": Row("'1h1m'", "duration(a + string(x) + 's')"),
    "dyn": Row("7", "dyn(a)"),
    "endsWith": Row(LONG, "a.endsWith(a)"),
    "family": Row(IP4, "a.family()"),
    "find": Row(LONG, "a.find('[xyz]+')"),
    "findAll": Row(LONG, "a.findAll('.')", 20),
    "first": Row(JOINED, "(a + [x]).first()"),
    "flatten": Row("lists.range(50).map(i, [[i], [i]])", "dyn(a).flatten(2)", 500),
    "flatten (long)": Row(f"[{JOINED}, {JOINED}]", "a.flatten()", 20),
    "format": Row("'a'", "'%s-%d'.format([a, x])"),
    "format (clauses)": Row(NUMBERS, f"'{'%d' * 200}'.format(a)", 50),
    "format (doubles)": Row("1.5", "'%.3f%e'.format([a, a])"),
    "format (list)": Row(DOUBLES, "'%s'.format([a])", 50),
    "getDate": Row(TIME, "a.getDate()"),
    "getDayOfMonth": Row(TIME, "a.getDayOfMonth()"),
    "getDayOfWeek": Row(TIME, "a.getDayOfWeek()"),
    "getDayOfYear": Row(TIME, "a.getDayOfYear()"),
    "getEscapedPath": Row("url('https://host/' + 'é^ ' + 'x')", "a.getEscapedPath()"),
    "getFullYear": Row(TIME, "a.getFullYear()"),
    "getFullYear (zone)": Row(TIME, "a.getFullYear('America/New_York')"),
    "getHost": Row(URL, "a.getHost()"),
    "getHostname": Row(URL, "a.getHostname()"),
    "getHours": Row("duration('1h')", "a.getHours()"),
    "getMilliseconds": Row(TIME, "a.getMilliseconds()"),
    "getMinutes": Row(TIME, "a.getMinutes('+01:00')"),
    "getMonth": Row(TIME, "a.getMonth()"),
    "getPort": Row(URL, "a.getPort()"),
    "getQuery": Row(URL, "a.getQuery()"),
    "getScheme": Row(URL, "a.getScheme()"),
    "getSeconds": Row(TIME, "a.getSeconds()"),
    "hasValue": Row("optional.of(1)", "a.hasValue()"),
    "includes": Row(NUMBERS, "a.includes(-1)", 500),
    "indexOf": Row(NUMBERS, "a.indexOf(-1)", 500),
    "indexOf (texts)": Row(TEXTS, "a.indexOf('x')", 500),
    "indexOf (text)": Row(LONG, "a.indexOf('xyz')"),
    "int": Row("'12'", "int(a)"),
    "ip": Row("'10.0.'", "ip(a + string(x % 250) + '.1')"),
    "ip.isCanonical": Row("'fd00::'", "ip.isCanonical(a + string(x))"),
    "isCIDR": Row("'10.0.0.0/'", "isCIDR(a + string(x))"),
    "isGlobalUnicast": Row(IP4, "a.isGlobalUnicast()"),
    "isGreaterThan": Row("quantity('1.5Gi')", "a.isGreaterThan(a)"),
    "isIP": Row("'10.0.0.'", "isIP(a + string(x))"),
    "isIP (long)": Row(ODD, "isIP(a)", 200),
    "isInteger": Row("quantity('1Gi')", "a.isInteger()"),
    "isLessThan": Row("semver('1.2.3-a.1.b')", "a.isLessThan(a)"),
    "isLinkLocalMulticast": Row(IP4, "a.isLinkLocalMulticast()"),
    "isLinkLocalUnicast": Row(IP4, "a.isLinkLocalUnicast()"),
    "isLoopback": Row(IP4, "a.isLoopback()"),
    "isQuantity": Row("'1.5'", "isQuantity(a + string(x) + 'Gi')"),
    "isQuantity (long)": Row("lists.range(190).map(i, '0000000000').join()", "isQuantity(a + 'x')"),
    "isSemver": Row("'1.2.3-a'", "isSemver(a + string(x))"),
    "isSemver (long)": Row(LONG, "isSemver('1.2.3-' + a)"),
    "isSorted": Row(NUMBERS, "a.isSorted()", 500),
    "isSorted (texts)": Row("lists.range(200).map(i, 'a')", "a.isSorted()", 500),
    "isURL": Row("'https://host/path'", "isURL(a + string(x))"),
    "isURL (long)": Row(ODD, "isURL(a)", 200),
    "isUnspecified": Row(IP4, "a.isUnspecified()"),
    "join": Row(TEXTS, "a.join('-')", 500),
    "last": Row(JOINED, "(a + [x]).last()"),
    "lastIndexOf": Row(NUMBERS, "a.lastIndexOf(-1)", 500),
    "lists.range": Row("200", "lists.range(a)", 500),
    "lowerAscii": Row(ODD, "a.lowerAscii()"),
    "major": Row("semver('1.2.3')", "a.major()"),
    "masked": Row(NET, "a.masked()"),
    "matches": Row(LONG, "a.matches('^([a-z]+-?)*$')"),
    "matches (dynamic)": Row("'a{1,9}'", "'aaa'.matches(a + string(x % 9))"),
    "max": Row(NUMBERS, "a.max()", 500),
    "max (texts)": Row("lists.range(200).map(i, 'a')", "a.max()", 500),
    "min": Row(NUMBERS, "a.min()", 500),
    "minor": Row("semver('1.2.3')", "a.minor()"),
    "optional.none": Row("1", "optional.none().orValue(a)"),
    "optional.of": Row("1", "optional.of(a)"),
    "optional.ofNonZeroValue": Row("1", "optional.ofNonZeroValue(a)"),
    "optional.unwrap": Row("lists.range(200).map(i, optional.of(i))", "optional.unwrap(a)", 500),
    "or": Row("optional.of(1)", "a.or(a)"),
    "orValue": Row("optional.of(1)", "a.orValue(2)"),
    "patch": Row("semver('1.2.3')", "a.patch()"),
    "prefixLength": Row(NET, "a.prefixLength()"),
    "quantity": Row("'1.5'", "quantity(a + string(x) + 'Gi')"),
    "replace": Row(LONG, "a.replace('a', 'bcd')"),
    "replace (interleave)": Row(LONG, "a.replace('', a)", 100),
    "reverse": Row(NUMBERS, "a.reverse()"),
    "semver": Row("'1.2.3-a.'", "semver(a + string(x))"),
    "sets.contains": Row(DOUBLES.replace("200", "60"), "sets.contains(a, a)", 50),
    "sets.contains (numbers)": Row(NUMBERS, "sets.contains(a, a)", 20),
    "sets.equivalent": Row(DOUBLES.replace("200", "60"), "sets.equivalent(a, a)", 50),
    "sets.intersects": Row(DOUBLES.replace("200", "60"), "sets.intersects(a, [0.5])", 500),
    "sign": Row("quantity('1.5Gi')", "sign(a)"),
    "size": Row(LONG, "size(a)"),
    "slice": Row(JOINED, "(a + [x]).slice(1, 3)"),
    "sort": Row("lists.range(60).map(i, duration(string(60 - i) + 's'))", "a.sort()", 50),
    "split": Row(LONG, "a.split('')"),
    "split (text)": Row(LONG, "a.split('-')"),
    "startsWith": Row(LONG, "a.startsWith(a)"),
    "string": Row("1.5", "string(a)"),
    "string (timestamp)": Row(TIME, "string(a)"),
    "strings.quote": Row(ODD, "strings.quote(a)"),
    "sub": Row("quantity('1.5Gi')", "a.sub(a)"),
    "substring": Row(LONG, "a.substring(3)"),
    "sum": Row(NUMBERS, "a.sum()", 500),
    "timestamp": Row("'2024-01-01T00:00:'", "timestamp(a + string(10 + x % 50) + 'Z')"),
    "trim": Row(LONG, "a.trim()"),
    "type": Row("1", "type(a)"),
    "uint": Row("'12'", "uint(a)"),
    "unwrapOpt": Row("lists.range(200).map(i, optional.of(i))", "a.unwrapOpt()", 500),
    "upperAscii": Row(ODD, "a.upperAscii()"),
    "url": Row("'https://host/path'", "url(a + string(x))"),
    "validate (dns1123Label)": Row("format.dns1123Label()", "a.validate('Label' + string(x))"),
    "validate (uri)": Row("format.uri()", "a.validate('http://x/' + string(x))"),
    "validate (datetime)": Row("format.datetime()", "a.validate('2024-01-01T00:00:00z')"),
    "value": Row("optional.of(1)", "a.value()"),
    # --- loops and literals ---
    "all": Row(NUMBERS, "a.all(y, true)", 200),
    "exists": Row(NUMBERS, "a.exists(y, false)", 200),
    "exists_one": Row(NUMBERS, "a.exists_one(y, y == x)", 200),
    "map": Row(NUMBERS, "a.map(y, y)", 200),
    "filter": Row(NUMBERS, "a.filter(y, y == x)", 200),
    "transformList": Row(NUMBERS, "a.transformList(i, y, y)", 200),
    "transformMap": Row(NUMBERS, "a.transformMap(i, y, y)", 200),
    "bind": Row("1", "cel.bind(y, x, y + y + a)"),
    "optMap": Row("optional.of(1)", "a.optMap(y, y)"),
    "has": Row("{'k': 1}", "has(a.k)"),
    "list literal": Row("1", "[a, a, a]"),
    "map literal": Row("1", "{'k': a, 'l': a}"),
    "map literal (computed keys)": Row("1", "{x: a}"),
    "list literal (optional)": Row("optional.of(1)", "[?a, ?a]"),
    "x in [constants]": Row("1", "x in [1, 2, 3]"),
    "device.attributes": Row("1", "device.attributes['gpu.example.com'].three"),
}


class Measured(NamedTuple):
    """Nanoseconds and price of one call."""

    nanoseconds: float
    price: float

    @property
    def per_unit(self) -> float:
        return self.nanoseconds / max(self.price, 1)


def expression(row: Row, call: str) -> str:
    """The call on arguments that no constant folding sees through."""
    start = "device.name == '' ? " + f"dyn(0) : dyn({row.about})"
    loop = f"lists.range({row.turns}).all(x, device.driver != '' && [{call}] != [])"
    return f"cel.bind(a, {start}, {loop})"


def measured(row: Row, rounds: int = 4) -> Measured:
    """The best of several rounds, in which both loops take turns."""
    programs = [compile_derived(expression(row, call)) for call in (row.call, "x")]
    seconds = [float("inf")] * 2
    prices = [0, 0]
    for _ in range(rounds + 1):
        for index, program in enumerate(programs):
            start = time.thread_time()
            outcome = program.evaluate(DEVICE, limit=10**12)
            seconds[index] = min(seconds[index], time.thread_time() - start)
            prices[index] = outcome.cost
            if outcome.error is not None:
                raise ValueError(f"{program.expression}: {outcome.error}")
    return Measured(
        max(seconds[0] - seconds[1], 0) / row.turns * 1e9, (prices[0] - prices[1]) / row.turns
    )


def uncovered() -> list[str]:
    """Functions of the environment that no row calls."""
    called = {name.partition(" (")[0] for name in ROWS}
    named = set(environment(Origin.STORED, FeatureGates(())).functions)
    return sorted(name for name in named - called if not name.startswith("format."))


def main(wanted: list[str]) -> None:
    assert not uncovered(), f"no row calls {', '.join(uncovered())}"
    results: dict[str, Measured] = {}
    for name, row in ROWS.items():
        if wanted and not any(word in name for word in wanted):
            continue
        try:
            results[name] = measured(row)
        except (CelError, ValueError) as error:
            sys.exit(f"{name}: {error}")
    usual = median(result.per_unit for result in results.values())
    print(f"Median: {usual:.0f} ns per unit of price.\n")
    print("| call | price | ns per call | ns per unit | ratio |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, result in sorted(results.items(), key=lambda item: -item[1].per_unit):
        shown = f"{result.price:.1f} | {result.nanoseconds:.0f} | {result.per_unit:.0f}"
        print(f"| `{name}` | {shown} | {result.per_unit / usual:.1f} |")
