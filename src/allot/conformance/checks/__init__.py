"""The checks, in the order in which they run."""

from allot.conformance.checks import (  # noqa: F401, I001 - the order of the report
    registration,
    publishing,
    prepare,
    unprepare,
    health,
    bad_input,
    restart,
    upgrade,
)
