"""The conformance suite: the SDK's driver passes, and every check finds a driver that breaks its rule."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from allot.apiserver.running import RunningServer, ServerOptions, running_server
from allot.client.connection import connect
from allot.client.options import Scope
from allot.client.resources import RESOURCE_SLICES
from allot.conformance.harness import FIRST, SECOND, Harness
from allot.conformance.limits import Limits
from allot.conformance.registry import all_checks
from allot.conformance.results import CheckResult, Level, Outcome, Report
from allot.conformance.suite import UnknownCheckError, chosen_checks, prepare_cluster, run_checks
from allot.conformance.under_test import RunningDriver
from allot.driver import Driver
from allot.features import DEFAULTS
from allot.kubelet.dra.paths import NodePaths
from tests.driver_conformance.drivers import NODE, InProcessDriver, SimpleDriver
from tests.driver_conformance.mutants import MUTANTS, Mutant

pytestmark = pytest.mark.timeout(300)
PATIENT = Limits(start=30.0, repair=30.0, quiet=0.5)
IMPATIENT = Limits(start=3.0, repair=3.0, quiet=0.5)


class Bench:
    """An API server in an event loop that runs while a test asks for something."""

    def __init__(self, runner: asyncio.Runner, server: RunningServer) -> None:
        self._runner = runner
        self._server = server

    def report(
        self,
        names: Sequence[str],
        limits: Limits,
        driver: type[Driver] = SimpleDriver,
        *,
        is_running: bool = False,
    ) -> Report:
        """Run checks on a driver in directories of its own; one that `is_running` is known by its socket only."""
        return self._runner.run(self._report(names, limits, driver, is_running))

    async def _report(
        self, names: Sequence[str], limits: Limits, driver: type[Driver], is_running: bool
    ) -> Report:
        root = Path(tempfile.mkdtemp(prefix="allot-"))  # short: it has sockets
        client = connect(self._server.kubeconfig)
        paths = NodePaths(root)
        paths.create()
        under_test = InProcessDriver(client, paths, driver)
        harness = Harness(client, under_test, paths, NODE, limits=limits)
        try:
            await prepare_cluster(harness)
            await under_test.start(FIRST)
            if is_running:
                socket = str(next(paths.registry.iterdir()))
                harness = Harness(
                    client, RunningDriver(), paths, NODE, registration_socket=socket, limits=limits
                )
            return await run_checks(harness, chosen_checks(names))
        finally:
            for instance in (FIRST, SECOND):
                await under_test.stop(instance)
            await client.delete_collection(RESOURCE_SLICES, Scope())
            await client.close()
            shutil.rmtree(root)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    options = ServerOptions(tmp_path_factory.mktemp("api"), DEFAULTS, "memory", port=0)
    stack = AsyncExitStack()
    with asyncio.Runner() as runner:
        server = runner.run(stack.enter_async_context(running_server(options)))
        yield Bench(runner, server)
        runner.run(stack.aclose())


def _messages(report: Report) -> dict[str, str]:
    return {
        result.name: result.message
        for result in report.results
        if result.outcome is not Outcome.PASSED
    }


def test_the_driver_of_the_sdk_passes(bench: Bench) -> None:
    report = bench.report((), PATIENT)

    assert _messages(report) == {}
    assert report.is_conformant
    assert report.driver == SimpleDriver.name


def test_a_driver_that_runs_already_is_not_restarted(bench: Bench) -> None:
    checks = ["registration", "prepare/devices", "restart", "upgrade"]
    report = bench.report(checks, PATIENT, is_running=True)

    assert report.is_conformant
    skipped = {each.name for each in report.results if each.outcome is Outcome.SKIPPED}
    assert {each.split("/")[0] for each in skipped} == {"registration", "restart", "upgrade"}
    assert "registration/refused" in skipped


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_broken_driver_is_found(
    bench: Bench, mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant.apply(monkeypatch)

    report = bench.report(mutant.checks, IMPATIENT, mutant.driver)

    levels = {check.name: check.level for check in all_checks()}
    expected = {
        name: Outcome.FAILED if levels[name] is Level.MUST else Outcome.WARNING
        for name in mutant.checks
    }
    assert {result.name: result.outcome for result in report.results} == expected
    assert all(result.message for result in report.results)


def test_every_check_can_fail() -> None:
    found = {name for mutant in MUTANTS for name in mutant.checks}
    missing = {check.name for check in all_checks()} - found

    # A driver may end when it is refused; a claim that is named twice has one entry in a map.
    assert missing == {"registration/refused", "bad-input/duplicates"}


def test_checks_are_chosen_by_name_group_and_pattern() -> None:
    names = [check.name for check in chosen_checks(["health", "*/empty"], ["health/a*"])]

    assert names == ["prepare/empty", "unprepare/empty", "health/stream", "health/devices"]
    with pytest.raises(UnknownCheckError, match="no check matches nothing"):
        chosen_checks(["nothing"])


def test_a_report_in_one_line_and_as_junit() -> None:
    results = [
        CheckResult("a/one", "One", Outcome.PASSED, "", 0.5),
        CheckResult("a/two", "Two", Outcome.FAILED, "it <broke>", 1.0),
        CheckResult("b/three", "Three", Outcome.SKIPPED, "no devices"),
        CheckResult("b/four", "Four", Outcome.WARNING, "hm"),
    ]
    report = Report("d.example.com", results)

    assert report.summary() == (
        "d.example.com: NOT conformant (1 passed, 1 failed, 1 warning, 1 skipped)"
    )
    assert not report.is_conformant
    suite: Any = ElementTree.fromstring(report.junit())  # noqa: S314 - our own
    assert suite.attrib | {"time": ""} == {
        "name": "DRA driver conformance: d.example.com",
        "tests": "4",
        "failures": "1",
        "skipped": "1",
        "errors": "0",
        "time": "",
    }
    assert suite.find("testcase[@name='a/two']/failure").get("message") == "it <broke>"


def test_the_contract_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "driver-conformance.md").read_text()

    rows = [line for line in page.splitlines() if line.startswith("| `") and "/" in line[:30]]
    documented = [row for row in rows if not row.startswith("| `{")]
    assert documented == [
        f"| `{check.name}` | {check.level.value} | {check.title} | {check.demanded_by} |"
        for check in all_checks()
    ]
