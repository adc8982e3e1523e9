from itertools import count
from typing import Any

import pytest
from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily

from allot.apiserver.http.flow_control import MUTATING, FlowControl, FlowLimits
from allot.apiserver.http.metrics import BUCKETS, Labels, Metrics

GET = Labels("get", "", "v1", "pods", "", "resource")
SAID = 'group="",resource="pods",scope="resource",subresource="",verb="get",version="v1"'


def samples(metrics: Metrics) -> dict[str, float]:
    """Values by name and labels, the labels in order."""
    found = {}
    for family in metrics.registry.collect():
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}"] = sample.value
    return found


def test_requests_are_counted_by_code_and_duration() -> None:
    metrics = Metrics()
    for seconds, code in ((0.0005, 200), (0.001, 200), (0.0011, 404), (100.0, 200)):
        metrics.requests.count(GET, code, seconds)
    found = samples(metrics)
    assert found[f'apiserver_request_total{{code="200",{SAID}}}'] == 3
    assert found[f'apiserver_request_total{{code="404",{SAID}}}'] == 1
    name = "apiserver_request_duration_seconds"
    assert found[f"{name}_count{{{SAID}}}"] == 4
    assert round(found[f"{name}_sum{{{SAID}}}"], 4) == 100.0026
    buckets = {
        sample.labels["le"]: sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == f"{name}_bucket"
    }
    assert len(buckets) == len(BUCKETS) + 1
    assert [buckets[le] for le in ("0.001", "0.0025", "60.0", "+Inf")] == [2, 3, 3, 4]
    assert b"# TYPE apiserver_request_duration_seconds histogram" in generate_latest(
        metrics.registry
    )


def test_requests_may_be_counted_while_a_thread_collects(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = Metrics()
    metrics.requests.count(GET, 200, 0.1)
    add, codes = CounterMetricFamily.add_metric, count(400)

    def add_meanwhile(*values: Any, **others: Any) -> None:
        code = next(codes)
        metrics.requests.count(GET, code, 0.1)
        metrics.requests.count(GET._replace(verb=f"verb-{code}"), 200, 0.1)
        add(*values, **others)

    monkeypatch.setattr(CounterMetricFamily, "add_metric", add_meanwhile)
    samples(metrics)
    monkeypatch.undo()

    assert f'apiserver_request_total{{code="401",{SAID}}}' in samples(metrics)


def test_watches_are_counted_without_a_duration() -> None:
    metrics = Metrics()
    metrics.requests.count_watch(GET._replace(verb="watch"))
    names = {name.partition("{")[0] for name in samples(metrics)}
    assert "apiserver_request_total" in names
    assert "apiserver_request_duration_seconds_count" not in names


def test_requests_in_flight_are_shown() -> None:
    metrics = Metrics()
    flow = FlowControl(FlowLimits(), metrics)
    flow.inflight[MUTATING] += 2
    found = samples(metrics)
    name = "apiserver_current_inflight_requests"
    assert found[f'{name}{{request_kind="mutating"}}'] == 2
    assert found[f'{name}{{request_kind="readOnly"}}'] == 0
