"""Runs checks on a driver, one after the other."""

from __future__ import annotations

import asyncio
import fnmatch
from collections.abc import Callable, Sequence
from typing import Final

import grpc

from allot.api.identities import ObjectKey
from allot.api.raw import RawObject
from allot.client.apply import apply
from allot.client.errors import ClientError
from allot.client.resources import NODES
from allot.conformance.claims import DEVICE_CLASS, NAMESPACE
from allot.conformance.harness import Harness
from allot.conformance.registry import Check, all_checks
from allot.conformance.results import (
    CheckFailedError,
    CheckResult,
    CheckSkippedError,
    Level,
    Outcome,
    Report,
)

CHECK_SECONDS: Final = 300.0


class UnknownCheckError(ValueError):
    def __init__(self, pattern: str) -> None:
        names = ", ".join(check.name for check in all_checks())
        super().__init__(f"no check matches {pattern}; available: {names}")


def chosen_checks(only: Sequence[str] = (), skip: Sequence[str] = ()) -> list[Check]:
    """Checks by name or pattern, such as `prepare/*`. Raises `UnknownCheckError`."""
    checks = all_checks()
    for pattern in (*only, *skip):
        if not any(_matches(check, [pattern]) for check in checks):
            raise UnknownCheckError(pattern)
    return [
        check
        for check in checks
        if (not only or _matches(check, only)) and not _matches(check, skip)
    ]


def _matches(check: Check, patterns: Sequence[str]) -> bool:
    group = check.name.partition("/")[0]
    return any(pattern == group or fnmatch.fnmatch(check.name, pattern) for pattern in patterns)


async def prepare_cluster(harness: Harness) -> None:
    """Create what claims need: a node, a namespace with admin access and a device class."""
    admin = {"resource.kubernetes.io/admin-access": "true"}
    documents: list[dict[str, object]] = [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": NAMESPACE, "labels": admin},
        },
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": DEVICE_CLASS},
            "spec": {},
        },
    ]
    if await harness.client.find(NODES, ObjectKey("", harness.node)) is None:
        documents.append({"apiVersion": "v1", "kind": "Node", "metadata": {"name": harness.node}})
    found: list[RawObject] = await apply(harness.client, documents)
    assert len(found) == len(documents)


async def run_checks(
    harness: Harness,
    checks: Sequence[Check],
    on_result: Callable[[CheckResult], None] | None = None,
) -> Report:
    """Run the checks. The driver runs already; its cluster is prepared."""
    results = []
    for check in checks:
        result = await _run_one(harness, check)
        results.append(result)
        if on_result is not None:
            on_result(result)
    return Report(harness.driver_name, results)


async def _run_one(harness: Harness, check: Check) -> CheckResult:
    started = harness.client.clock.now()
    outcome, message = Outcome.PASSED, ""
    broken = Outcome.FAILED if check.level is Level.MUST else Outcome.WARNING
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            await check.run(harness)
    except CheckFailedError as error:
        outcome, message = broken, str(error)
    except CheckSkippedError as error:
        outcome, message = Outcome.SKIPPED, str(error)
    except grpc.aio.AioRpcError as error:
        outcome, message = broken, f"{error.code().name}: {error.details()}"
    except TimeoutError:
        outcome, message = broken, f"not done within {CHECK_SECONDS:.0f} s"
    except ClientError as error:
        outcome, message = broken, f"the API server: {error}"
    await harness.clean_up()
    if harness.driver.can_restart and harness.problem():
        await harness.driver.kill(harness.instance)
        await harness.driver.start(harness.instance)
    seconds = harness.client.clock.now() - started
    return CheckResult(check.name, check.title, outcome, " ".join(message.split()), seconds)
