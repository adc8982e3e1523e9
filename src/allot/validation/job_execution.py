"""How a job runs: how many pods at once and in all, which of them may fail, and who manages it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot.validation.container_resources import NOT_NEGATIVE
from allot.validation.fields import (
    FieldError,
    FieldPath,
    invalid,
    not_supported,
    required,
    too_long,
)
from allot.validation.formats import byte_length
from allot.validation.networking import validate_domain_path
from allot.validation.parts import Part

MAX_PARALLEL_INDEXES: Final = 100_000
MAX_FAILED_INDEXES: Final = 100_000
MANY_INDEXES: Final = 100_000
"""Above it, jobs with limits per index are judged more strictly."""
MAX_OF_MANY_INDEXES: Final = 10_000
MAX_MANAGER_NAME: Final = 63
INDEXED: Final = "Indexed"
COMPLETION_MODES: Final = ("NonIndexed", INDEXED)
REPLACEMENT_POLICIES: Final = ("Failed", "TerminatingOrFailed")
_COUNTS: Final = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished", "backoffLimitPerIndex",
    "maxFailedIndexes",
)  # fmt: skip


def validate_execution(spec: Part, path: FieldPath) -> Iterator[FieldError]:
    """The spec of a job, without its selector and template."""
    for field in _COUNTS:
        value = spec.get(field)
        if isinstance(value, int) and value < 0:
            yield invalid(path / field, value, NOT_NEGATIVE)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield required(path / "backoffLimitPerIndex", "when maxFailedIndexes is specified")
    yield from _validate_manager(spec, path / "managedBy")
    mode = spec.get("completionMode")
    if mode is not None and mode not in COMPLETION_MODES:
        yield not_supported(path / "completionMode", mode, COMPLETION_MODES, is_ordered=True)
    elif mode == INDEXED:
        yield from _validate_indexes(spec, path)
    else:
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(field) is not None:
                yield invalid(path / field, spec[field], "requires indexed completion mode")
    policy = spec.get("podReplacementPolicy")
    allowed = REPLACEMENT_POLICIES[: 1 if spec.get("podFailurePolicy") is not None else None]
    if policy is not None and policy not in allowed:
        yield not_supported(path / "podReplacementPolicy", policy, allowed)


def _validate_manager(spec: Part, path: FieldPath) -> Iterator[FieldError]:
    manager = spec.get("managedBy")
    if manager is None:
        return
    if not manager:
        yield required(path)
        return
    yield from validate_domain_path(manager, path)
    if byte_length(manager) > MAX_MANAGER_NAME:
        yield too_long(path, MAX_MANAGER_NAME)


def _validate_indexes(spec: Part, path: FieldPath) -> Iterator[FieldError]:
    completions, parallelism = spec.get("completions"), spec.get("parallelism") or 0
    failed = spec.get("maxFailedIndexes")
    if completions is None:
        yield required(path / "completions", "when completion mode is Indexed")
    if parallelism > MAX_PARALLEL_INDEXES:
        rule = (
            f"must be less than or equal to {MAX_PARALLEL_INDEXES} when completion mode is Indexed"
        )
        yield invalid(path / "parallelism", parallelism, rule)
    if completions is not None and failed is not None and failed > completions:
        yield invalid(
            path / "maxFailedIndexes", failed, "must be less than or equal to completions"
        )
    if failed is not None and failed > MAX_FAILED_INDEXES:
        rule = f"must be less than or equal to {MAX_FAILED_INDEXES}"
        yield invalid(path / "maxFailedIndexes", failed, rule)
    is_large = (completions or 0) > MANY_INDEXES
    if not is_large or spec.get("backoffLimitPerIndex") is None:
        return
    if failed is None:
        rule = f"must be specified when completions is above {MANY_INDEXES}"
        yield required(path / "maxFailedIndexes", rule)
    rule = (
        f"must be less than or equal to {MAX_OF_MANY_INDEXES} when completions are above {MANY_INDEXES} "
        "and used with backoff limit per index"
    )
    for field, value in (("parallelism", parallelism), ("maxFailedIndexes", failed or 0)):
        if value > MAX_OF_MANY_INDEXES:
            yield invalid(path / field, value, rule)
