"""Update strategies of workloads: types, maxUnavailable and maxSurge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from allot.validation.container_resources import NOT_NEGATIVE
from allot.validation.fields import (
    FieldError,
    FieldPath,
    forbidden,
    invalid,
    not_supported,
    required,
)
from allot.validation.internal_types import internal_value
from allot.validation.parts import Part, part

DEPLOYMENT_STRATEGIES: Final = ("Recreate", "RollingUpdate")
UPDATE_STRATEGIES: Final = ("RollingUpdate", "OnDelete")
POD_MANAGEMENT: Final = ("OrderedReady", "Parallel")
NOT_A_PERCENTAGE: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)


def validate_rollout(kind: str, spec: Part, path: FieldPath) -> Iterator[FieldError]:
    """The spec of a workload of this kind."""
    validate = _BY_KIND.get(kind)
    if validate is not None:
        yield from validate(spec, path)


def validate_number_or_percentage(value: Any, path: FieldPath) -> Iterator[FieldError]:
    if isinstance(value, int) and value < 0:
        yield invalid(path, value, NOT_NEGATIVE)
    elif isinstance(value, str) and not _is_percentage(value):
        yield invalid(path, value, NOT_A_PERCENTAGE)


def _is_percentage(text: str) -> bool:
    return text.endswith("%") and text[:-1].isdecimal() and text.isascii()


def _validate_deployment(spec: Part, path: FieldPath) -> Iterator[FieldError]:
    strategy, strategy_path = part(spec, "strategy"), path / "strategy"
    match strategy.get("type"):
        case "Recreate":
            if strategy.get("rollingUpdate") is not None:
                yield forbidden(
                    strategy_path / "rollingUpdate",
                    "may not be specified when strategy `type` is 'Recreate'",
                )
        case "RollingUpdate":
            yield from _validate_rolling_update(
                part(strategy, "rollingUpdate"), strategy_path / "rollingUpdate"
            )
        case _:
            yield not_supported(
                strategy_path,
                internal_value(strategy, "DeploymentStrategy"),
                DEPLOYMENT_STRATEGIES,
            )
    deadline, ready = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds") or 0
    if deadline is not None and 0 <= deadline <= ready:
        yield invalid(
            path / "progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"
        )


def _validate_rolling_update(update: Part, path: FieldPath) -> Iterator[FieldError]:
    missing, surplus = update.get("maxUnavailable"), update.get("maxSurge")
    for field, value in (("maxUnavailable", missing), ("maxSurge", surplus)):
        yield from validate_number_or_percentage(value, path / field)
    if _is_zero(missing) and _is_zero(surplus):
        yield invalid(path / "maxUnavailable", missing, "may not be 0 when `maxSurge` is 0")
    yield from _validate_at_most_all(missing, path / "maxUnavailable")


def _validate_at_most_all(value: Any, path: FieldPath) -> Iterator[FieldError]:
    if isinstance(value, str) and _is_percentage(value) and int(value[:-1]) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def _is_zero(value: Any) -> bool:
    if isinstance(value, str):
        return _is_percentage(value) and int(value[:-1]) == 0
    return not value


def _validate_stateful_set(spec: Part, path: FieldPath) -> Iterator[FieldError]:
    management = spec.get("podManagementPolicy")
    if management not in POD_MANAGEMENT:
        yield invalid(
            path / "podManagementPolicy", management, "must be 'OrderedReady' or 'Parallel'"
        )
    strategy = part(spec, "updateStrategy").get("type")
    if strategy not in UPDATE_STRATEGIES:
        yield invalid(path / "updateStrategy", strategy, "must be 'RollingUpdate' or 'OnDelete'")


def _validate_daemon_set(spec: Part, path: FieldPath) -> Iterator[FieldError]:
    strategy, strategy_path = part(spec, "updateStrategy"), path / "updateStrategy"
    if strategy.get("type") not in UPDATE_STRATEGIES:
        yield not_supported(strategy_path / "type", strategy.get("type") or "", UPDATE_STRATEGIES)
    elif strategy["type"] == "RollingUpdate":
        yield from _validate_daemon_update(
            part(strategy, "rollingUpdate"), strategy_path / "rollingUpdate"
        )


def _validate_daemon_update(update: Part, path: FieldPath) -> Iterator[FieldError]:
    """Exactly one of maxUnavailable and maxSurge must be positive."""
    missing, surplus = update.get("maxUnavailable"), update.get("maxSurge")
    for field, value in (("maxUnavailable", missing), ("maxSurge", surplus)):
        yield from validate_number_or_percentage(value, path / field)
        yield from _validate_at_most_all(value, path / field)
    match _is_zero(missing), _is_zero(surplus):
        case True, True:
            yield required(path / "maxUnavailable", "cannot be 0 when maxSurge is 0")
        case False, False:
            yield invalid(
                path / "maxSurge", surplus, "may not be set when maxUnavailable is non-zero"
            )


_BY_KIND: Final[Mapping[str, Callable[[Part, FieldPath], Iterator[FieldError]]]] = {
    "Deployment": _validate_deployment,
    "StatefulSet": _validate_stateful_set,
    "DaemonSet": _validate_daemon_set,
}
