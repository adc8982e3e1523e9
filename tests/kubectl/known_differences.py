"""Where the answers differ from Kubernetes v1.38's.

`KNOWN` differences stay, each with its reason: at most ten.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple


class KnownDifference(NamedTuple):
    """Lines that may differ in the answers of some invocations."""

    invocations: re.Pattern[str]
    """Of `SECTION: INVOCATION`."""
    lines: re.Pattern[str]
    reason: str


def _known(invocations: str, lines: str, reason: str) -> KnownDifference:
    return KnownDifference(re.compile(invocations), re.compile(lines), reason)


KNOWN: Final = (
    _known(
        r": (version|get --raw /version)",
        r'\s*"?(compiler|gitCommit|gitVersion|goVersion|platform|Server Version)"?: .*',
        "the server says its own version",
    ),
    _known(
        r": get --raw '/(livez|readyz)\?verbose'",
        r"\[\+\]\S+ ok",
        "the checks are those of this server's parts",
    ),
    _known(
        r": (create|apply|run) ",
        r"Warning: \w+ objects are stored without effect: .*",
        "a warning says that the object has no effect",
    ),
    _known(
        r": wait .*--timeout=",
        r'<log> reflector\.go\] ("(Failed to watch|Warning: watch ended with error)"|\S+ watch of \S+ ended with: ).*',
        "when its time is over, kubectl logs at random that its watch ended; often over HTTP/1.1, hardly ever over HTTP/2",
    ),
)
UNORDERED: Final = re.compile(
    r": (describe (secret|configmap)|(label|annotate) .*--list|set env .*--from=)"
)
"""kubectl prints maps in any order."""
_REASONS: Final = re.compile(r"(error: unable to drain node \S+ due to error: )\[(.*)\](.*)")
"""kubectl 1.32 names reasons in any order."""


def compared_lines(name: str, text: str) -> Iterator[str]:
    """The lines of an answer without those that are known to differ."""
    text = _REASONS.sub(_in_order, text)
    ignored = [known.lines for known in KNOWN if known.invocations.search(name)]
    lines = text.splitlines()
    for line in sorted(filter(None, lines)) if UNORDERED.search(name) else lines:
        if not any(pattern.fullmatch(line) for pattern in ignored):
            yield line


def _in_order(found: re.Match[str]) -> str:
    return f"{found[1]}{sorted(re.split(', (?=cannot)', found[2]))}{found[3]}"
