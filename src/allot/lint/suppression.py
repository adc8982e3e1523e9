"""Comments that suppress findings: `# allot-lint: ignore RULE`.

On the line of a finding or the line above, a comment applies to that finding; among the comments at the
top of a file, to the whole file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from allot.lint.findings import Finding

_COMMENT: Final = re.compile(r"#\s*allot-lint:\s*ignore[ =]+(?P<rules>[\w-]+(?:\s*,\s*[\w-]+)*)")


def is_suppressed(finding: Finding, lines: Sequence[str]) -> bool:
    """Whether a comment in the file suppresses the finding."""
    above = lines[finding.line - 2 : finding.line - 1] if finding.line > 1 else ()
    near = [*(line for line in above if line.lstrip().startswith("#"))]
    near += lines[finding.line - 1 : finding.line]
    return any(finding.rule in _ignored(line) for line in (*near, *_heading(lines)))


def _ignored(line: str) -> frozenset[str]:
    found = _COMMENT.search(line)
    return frozenset(re.split(r"\s*,\s*", found["rules"])) if found else frozenset()


def _heading(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if line.strip() and not line.startswith(("#", "---", "%")):
            return
        yield line
