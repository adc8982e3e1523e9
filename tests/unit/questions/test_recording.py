"""Recordings: what was written is read again, at every time, and after every kind of ending."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from allot.client import resources
from allot.client.resources import Resource
from allot.client.snapshot import Snapshot
from allot.questions.cluster_clone import clone_cluster
from allot.questions.observed_cluster import KINDS
from allot.questions.recording.aliases import private_path
from allot.questions.recording.detection import is_recording
from allot.questions.recording.lines import RecordingError
from allot.questions.recording.reader import Recording
from allot.questions.recording.recorder import ChangeLog, observed, open_log
from allot.questions.recording.writer import Limits
from tests.unit.questions.test_cluster_clone import MARKER, a_marked_object, an_object, marked

START = datetime(2026, 5, 1, 14, 0, tzinfo=UTC)
SALT = b"salt"
UNLIMITED = Limits()


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def a_log(
    path: Path, *, anonymized: bool = False, limits: Limits = UNLIMITED, cluster: str = "one"
) -> ChangeLog:
    first = Snapshot()
    system: Any = an_object("Namespace", "kube-system", metadata={"uid": cluster})
    first.put(resources.NAMESPACES, system)
    first.server_version = "v1.38.0"
    return open_log(path, observed(first, KINDS, anonymized=anonymized), limits, SALT)


def recorded_pod(name: str, node: str = "", **metadata: Any) -> Any:
    return an_object("Pod", name, "default", spec={"nodeName": node}, metadata=metadata)


def pods_of(recording: Recording, time: datetime | None = None) -> dict[str, str]:
    """Names and nodes."""
    objects = recording.snapshot_at(time or recording.ends)
    return {pod.key.name: pod.node_name for pod in objects.of(resources.PODS)}


def a_recording(path: Path) -> None:
    """At 0: a. At 10: b too. At 20: a has a node. At 30: b is deleted. Until 40."""
    log = a_log(path)
    log.put(resources.PODS, recorded_pod("a"), at(0))
    log.begin(at(0))
    log.put(resources.PODS, recorded_pod("b"), at(10))
    log.put(resources.PODS, recorded_pod("a", "node-1"), at(20))
    log.flush(at(20))
    log.drop(resources.PODS, recorded_pod("b").key, at(30))
    log.end(at(40))


# --- times ---


def test_states_at_all_times(tmp_path: Path) -> None:
    path = tmp_path / "r"
    a_recording(path)
    with Recording.open(path) as recording:
        assert pods_of(recording, at(0)) == {"a": ""}
        assert pods_of(recording, at(9.9)) == {"a": ""}
        assert pods_of(recording, at(10)) == {"a": "", "b": ""}
        assert pods_of(recording, at(25)) == {"a": "node-1", "b": ""}
        assert pods_of(recording, at(15)) == {"a": "", "b": ""}
        assert pods_of(recording) == {"a": "node-1"}
        assert (recording.begins, recording.ends) == (at(0), at(40))
        assert recording.times() == [at(10), at(20), at(30)]


def test_changes_between_two_times(tmp_path: Path) -> None:
    path = tmp_path / "r"
    a_recording(path)
    with Recording.open(path) as recording:
        found = [
            (change.at, change.key.key.name, change.object is None)
            for change in recording.changes(at(10), at(30))
        ]
        assert found == [(at(20), "a", False), (at(30), "b", True)]
        assert len(list(recording.changes())) == 3


def test_times_outside_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "r"
    a_recording(path)
    with Recording.open(path) as recording:
        with pytest.raises(
            RecordingError, match="begins at 2026-05-01T14:00:00Z, after 2026-05-01T13:59:58Z"
        ):
            recording.snapshot_at(at(-2))
        with pytest.raises(RecordingError, match="ends at 2026-05-01T14:00:40Z, before"):
            recording.snapshot_at(at(42))


def test_equal_objects_are_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "r"
    a_recording(path)
    size = path.stat().st_size
    log = a_log(path)
    for second in range(5):
        log.put(
            resources.PODS, recorded_pod("a", "node-1", annotations={"any": str(second)}), at(45)
        )
    log.flush(at(45))
    assert path.stat().st_size == size


# --- files ---


def test_the_owner_alone_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "r"
    a_recording(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert private_path(path).stat().st_mode & 0o777 == 0o600
    log = a_log(path, limits=Limits(timedelta(seconds=1)))
    log.begin(at(60))
    log.put(resources.PODS, recorded_pod("c"), at(60))
    log.flush(at(60))
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_recording_is_recognized(tmp_path: Path) -> None:
    path = tmp_path / "r"
    a_recording(path)
    assert is_recording(path)
    other = tmp_path / "pod.yaml"
    other.write_text("apiVersion: v1\nkind: Pod\n")
    assert not is_recording(other)
    assert not is_recording(tmp_path)


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r"
    a_recording(path)
    path.write_bytes(path.read_bytes().replace(b'"version":1', b'"version":2', 1))
    with pytest.raises(
        RecordingError, match=r"newer version of allot \(format 2, this one reads up to 1\)"
    ):
        Recording.open(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"kind: Pod\n", "is not a recording"),
        (b'{"kind":"Pod"}\n', "is not a recording"),
        (b'{"kind":"ClusterRecording"}\n', "no complete snapshot"),
        (b'{"kind":"ClusterRecording"}\n{"at":"2026-05-01T14:00:00Z","base":1}\n', "no complete snapshot"),
        (b'{"kind":"ClusterRecording"}\n{"mark":true}\n{"mark":true}\n', "line 2: .*a snapshot must come first"),
    ],
)  # fmt: skip
def test_other_files_are_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "r"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=said):
        Recording.open(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="No such file"):
        Recording.open(tmp_path / "none")


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "r"
    a_recording(path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[3] = b"{broken\n"
    path.write_bytes(b"".join(lines))
    with pytest.raises(RecordingError, match="line 4: not a line of a recording"):
        Recording.open(path)


# --- continued ---


def test_a_recording_is_continued_with_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "r"
    a_recording(path)
    log = a_log(path)
    # What the reflector does with a first list.
    assert set(log.keys(resources.PODS)) == {recorded_pod("a").key}
    log.drop(resources.PODS, recorded_pod("a").key, at(100))
    log.put(resources.PODS, recorded_pod("c"), at(100))
    log.begin(at(100))
    log.end(at(101))
    with Recording.open(path) as recording:
        assert pods_of(recording, at(35)) == {"a": "node-1"}
        assert pods_of(recording, at(70)) == {"a": "node-1"}
        assert pods_of(recording) == {"c": ""}
        notes = recording.notes_at(at(70))
        assert any("nothing was recorded from 2026-05-01T14:00:40Z" in note for note in notes)
        assert not recording.notes_at(at(35))


def test_another_cluster_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r"
    a_recording(path)
    with pytest.raises(RecordingError, match="a recording of another cluster"):
        a_log(path, cluster="two")


def test_anonymized_or_not_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r"
    a_recording(path)
    with pytest.raises(RecordingError, match="is not anonymized: leave out --anonymize"):
        a_log(path, anonymized=True)


def test_a_recording_can_end_after_any_byte(tmp_path: Path) -> None:
    """A killed recorder leaves a prefix; what was flushed before it is there, nothing twice."""
    path = tmp_path / "r"
    a_recording(path)
    whole = path.read_bytes()
    with Recording.open(path) as recording:
        first = recording.changes_start
    ends = [index + 1 for index, byte in enumerate(whole) if byte == ord("\n")]
    for size in range(first, len(whole) + 1):
        path.write_bytes(whole[:size])
        kept = sum(end <= size for end in ends) - sum(end <= first for end in ends)
        with Recording.open(path) as recording:
            times = [change.at for change in recording.changes()]
        assert times == [at(10), at(20), at(30)][:kept]
        log = a_log(path)
        log.put(resources.PODS, recorded_pod("late"), at(200))
        log.begin(at(200))
        log.flush(at(200))
        with Recording.open(path) as recording:
            assert [change.at for change in recording.changes()] == [*times, at(200)]
            assert recording.torn_bytes == 0


# --- limits ---


def test_old_changes_are_folded(tmp_path: Path) -> None:
    path = tmp_path / "r"
    log = a_log(path, limits=Limits(keep=timedelta(seconds=100)))
    log.begin(at(0))
    for second in range(500):
        log.put(resources.PODS, recorded_pod("a", f"node-{second}"), at(second))
        log.flush(at(second))
    with Recording.open(path) as recording:
        assert at(350) < recording.begins <= at(399)
        assert pods_of(recording, at(450)) == {"a": "node-450"}
        assert pods_of(recording, recording.begins) != {}
        assert len(recording.times()) <= 112


def test_the_size_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "r"
    log = a_log(path, limits=Limits(max_bytes=20_000))
    log.begin(at(0))
    for second in range(1000):
        log.put(resources.PODS, recorded_pod(f"pod-{second % 10}", f"node-{second}"), at(second))
        log.flush(at(second))
        assert path.stat().st_size < 20_000 + 3_000
    with Recording.open(path) as recording:
        assert recording.ends == at(999)
        assert len(pods_of(recording)) == 10
        assert len(recording.times()) > 20


def test_a_folded_recording_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "r"
    a_recording(path)
    log = a_log(path, limits=Limits(keep=timedelta(seconds=5)))
    log.begin(at(50))
    log.put(resources.PODS, recorded_pod("c"), at(50))
    log.flush(at(55))
    with Recording.open(path) as recording:
        assert recording.begins == at(45)
        assert pods_of(recording) == {"a": "node-1", "c": ""}
    log.put(resources.PODS, recorded_pod("d"), at(61))
    log.flush(at(61))
    with Recording.open(path) as recording:
        assert pods_of(recording) == {"a": "node-1", "c": "", "d": ""}


# --- only what scheduling reads ---


@pytest.mark.parametrize("resource", KINDS, ids=lambda resource: resource.kind)
def test_only_fields_that_scheduling_needs(resource: Resource[Any], tmp_path: Path) -> None:
    """In the snapshot and in changes there is what a clone has, and nothing else of the object anywhere."""
    path = tmp_path / "r"
    obj = a_marked_object(resource)
    snapshot = Snapshot()
    snapshot.put(resource, obj)
    (clone,) = clone_cluster(snapshot, salt=SALT)
    log = a_log(path)
    log.put(resource, obj, at(0))
    log.begin(at(0))
    log.drop(resource, resource.codec.key(obj), at(1))
    log.put(resource, obj, at(2))
    log.end(at(3))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    found = [line["put"] for line in lines if "put" in line]
    assert [set(marked(each)) for each in found] == [set(marked(clone))] * 2
    others = [line for line in lines if "put" not in line and "delete" not in line]
    assert MARKER not in json.dumps(others)
    assert MARKER not in private_path(path).read_text()


def test_an_anonymized_recording_has_no_names(tmp_path: Path) -> None:
    path = tmp_path / "r"

    def record(log: ChangeLog, second: float) -> None:
        """Objects in an order in which their names occur in others before they exist."""
        owner = {"apiVersion": "batch/v1", "kind": "Job", "controller": True}
        owner |= {"name": "secret-job", "uid": "uid-Job-secret-job"}
        metadata = {"labels": {"job-name": "secret-job"}, "ownerReferences": [owner]}
        pod = an_object("Pod", "secret-pod", "secret-ns", metadata=metadata,
                        spec={"nodeName": "secret-node"})  # fmt: skip
        log.put(resources.PODS, pod, at(second))
        log.put(resources.JOBS, an_object("Job", "secret-job", "secret-ns"), at(second))
        log.put(resources.NAMESPACES, an_object("Namespace", "secret-ns"), at(second))

    log = a_log(path, anonymized=True)
    log.put(resources.NODES, an_object("Node", "secret-node"), at(0))
    log.begin(at(0))
    record(log, 1)
    log.end(at(2))
    size = path.stat().st_size
    log = a_log(path, anonymized=True)  # continued: the same names
    assert set(log.keys(resources.NODES)) == {an_object("Node", "secret-node").key}
    log.put(resources.NODES, an_object("Node", "secret-node"), at(3))
    record(log, 3)
    log.flush(at(3))
    assert path.stat().st_size == size
    log.drop(resources.PODS, an_object("Pod", "secret-pod", "secret-ns").key, at(4))
    log.end(at(4))
    assert b"secret" not in path.read_bytes()
    with Recording.open(path) as recording:
        (pod,) = recording.snapshot_at(at(2)).of(resources.PODS)
        (node,) = recording.snapshot_at(at(2)).of(resources.NODES)
        assert pod.node_name == node.metadata.name == "node-1"
        assert recording.snapshot_at(recording.ends).of(resources.PODS) == ()


def test_aliases_that_are_no_longer_used_are_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "r"
    limits = Limits(keep=timedelta(seconds=10))
    log = a_log(path, anonymized=True, limits=limits)
    log.begin(at(0))
    for second in range(100):
        log.put(resources.PODS, recorded_pod(f"secret-{second}"), at(second))
        log.flush(at(second))
        log.drop(resources.PODS, recorded_pod(f"secret-{second}").key, at(second))
    log.end(at(100))
    kept = private_path(path).read_text()
    assert "secret-99" in kept
    assert "secret-50" not in kept
    names = {
        line["put"]["metadata"]["name"]
        for line in map(json.loads, path.read_text().splitlines())
        if "put" in line
    }
    assert "pod-100" in names, "numbers are not given twice"


def test_without_its_private_file_it_is_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "r"
    a_recording(path)
    private_path(path).unlink()
    with pytest.raises(RecordingError, match=r"r.private: No such file"):
        a_log(path)
