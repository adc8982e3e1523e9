"""A recording has, at every time, the state that the cluster had."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from allot.api.core import Pod
from allot.client import resources
from allot.client.snapshot import Snapshot
from allot.questions.observed_cluster import KINDS
from allot.questions.recording.reader import Recording
from allot.questions.recording.recorder import ChangeLog, observed, open_log
from allot.questions.recording.writer import Limits
from allot.testing.builders import a_pod

START = datetime(2026, 5, 1, tzinfo=UTC)

steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 5), st.sampled_from(["", "n1", "n2"])),
        st.tuples(st.just("drop"), st.integers(0, 5), st.just("")),
        st.tuples(st.sampled_from(["flush", "restart", "tear"]), st.just(0), st.just("")),
    ),
    max_size=60,
)


def numbered_pod(number: int, node: str) -> Pod:
    return a_pod(f"pod-{number}", uid=f"uid-{number}", node=node)


def opened(path: Path, limits: Limits) -> ChangeLog:
    return open_log(path, observed(Snapshot(), KINDS, anonymized=False), limits, b"salt")


@given(steps, st.sampled_from([Limits(), Limits(timedelta(seconds=7)), Limits(max_bytes=600)]))
def test_states_are_those_of_the_cluster(steps: list[tuple[str, int, str]], limits: Limits) -> None:
    """Through changes, restarts, torn last lines, and folding."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "r"
        log = opened(path, limits)
        log.begin(START)
        pods: dict[int, str] = {}
        states: dict[datetime, dict[int, str]] = {}
        now = START
        for what, number, node in steps:
            now += timedelta(seconds=1)
            if what == "put":
                pods[number] = node
                log.put(resources.PODS, numbered_pod(number, node), now)
            elif what == "drop":
                pods.pop(number, None)
                log.drop(resources.PODS, numbered_pod(number, "").key, now)
            else:
                log.flush(now)
                if what == "tear":
                    with path.open("ab") as file:
                        file.write(b'{"at":"2026-05-01T00:0')
                if what != "flush":
                    log = opened(path, limits)
                    log.begin(now)
            states[now] = dict(pods)
        log.end(now)
        with Recording.open(path) as recording:
            for time, state in states.items():
                if time >= recording.begins:
                    found = recording.snapshot_at(time).of(resources.PODS)
                    assert {int(pod.key.name[4:]): pod.node_name for pod in found} == state
