"""The kubelet's checkpoint file."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from allot.kubelet.dra.checkpoint import (
    Checkpoint,
    CheckpointError,
    decode_checkpoint,
    encode_checkpoint,
)
from allot.kubelet.dra.claim_info import ClaimInfo, ClaimReference, PreparedDevice

INFO = ClaimInfo(
    ClaimReference("ns", "u", "claim"),
    {"pod-1", "pod-2"},
    {
        "a.example.com": (PreparedDevice("p", "d", ("r",), ("v/c=x",), "share"),),
        "b.example.com": (),
    },
    frozenset({"b.example.com"}),
)


def test_what_is_written_is_read() -> None:
    (found,) = decode_checkpoint(encode_checkpoint([INFO]))

    assert found.reference == INFO.reference
    assert found.pod_uids == INFO.pod_uids
    assert found.devices_by_driver == INFO.devices_by_driver
    assert found.unprepare_skips == INFO.unprepare_skips


def test_prepared_is_not_persisted() -> None:
    """After a restart drivers are asked again."""
    info = ClaimInfo(INFO.reference, is_prepared=True)

    assert [each.is_prepared for each in decode_checkpoint(encode_checkpoint([info]))] == [False]


def test_the_format_is_that_of_kubernetes() -> None:
    written = json.loads(encode_checkpoint([INFO]))
    data = json.loads(written["Data"])

    assert (data["kind"], data["apiVersion"]) == (
        "DRACheckpoint",
        "checkpoint.dra.kubelet.k8s.io/v1",
    )
    (state,) = data["ClaimInfoStateList"]
    assert state["PodUIDs"] == {"pod-1": {}, "pod-2": {}}
    assert state["DriverState"]["a.example.com"]["Devices"][0] == {
        "PoolName": "p",
        "DeviceName": "d",
        "ShareID": "share",
        "RequestNames": ["r"],
        "CDIDeviceIDs": ["v/c=x"],
    }


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"[]", id="no-object"),
        pytest.param(b'{"Data": "{}", "Checksum": 1}', id="checksum"),
        pytest.param(encode_checkpoint([INFO]).replace(b"claim", b"Claim"), id="changed"),
        pytest.param(encode_checkpoint([INFO])[:-20], id="cut"),
    ],
)
def test_damage_is_found(content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(CheckpointError):
        decode_checkpoint(content)
    path = tmp_path / "dra_manager_state"
    path.write_bytes(content)

    with caplog.at_level(logging.ERROR):
        assert Checkpoint(path).load() == []

    assert path.with_name("dra_manager_state.damaged").read_bytes() == content
    assert "renamed to dra_manager_state.damaged" in caplog.text


def test_an_unchanged_checkpoint_is_not_written(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "state")
    checkpoint.save([INFO])
    (tmp_path / "state").unlink()

    checkpoint.save([INFO])
    assert not (tmp_path / "state").exists()
    checkpoint.save([])
    assert Checkpoint(tmp_path / "state").load() == []


# --- claims that were begun after the last save ---


def an_info(name: str, uid: str, *pods: str) -> ClaimInfo:
    return ClaimInfo(ClaimReference("default", uid, name), set(pods), {"a.example.com": ()})


def loaded(path: Path) -> dict[str, set[str]]:
    return {info.reference.uid: info.pod_uids for info in Checkpoint(path).load()}


def test_what_was_begun_is_loaded(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "state")
    checkpoint.save([an_info("a", "1", "p")])
    checkpoint.begin([an_info("a", "1", "p", "q"), an_info("b", "2", "q")])
    checkpoint.begin([an_info("c", "3", "r")])

    assert loaded(tmp_path / "state") == {"1": {"p", "q"}, "2": {"q"}, "3": {"r"}}


def test_a_new_claim_of_the_same_name_is_another_one(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "state")
    checkpoint.save([an_info("a", "1", "p")])
    checkpoint.begin([an_info("a", "2", "q")])

    assert loaded(tmp_path / "state") == {"2": {"q"}}


def test_a_save_replaces_what_was_begun(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "state")
    checkpoint.begin([an_info("a", "1", "p")])

    checkpoint.save([])

    assert loaded(tmp_path / "state") == {}


def test_what_an_earlier_process_began_is_replaced(tmp_path: Path) -> None:
    Checkpoint(tmp_path / "state").begin([an_info("a", "1", "p")])

    Checkpoint(tmp_path / "state").save([])

    assert loaded(tmp_path / "state") == {}


def test_a_line_that_is_cut(tmp_path: Path) -> None:
    """The process ended while it was written, before a driver was called."""
    checkpoint = Checkpoint(tmp_path / "state")
    checkpoint.begin([an_info("a", "1", "p")])
    checkpoint.begin([an_info("b", "2", "q")])
    begun = tmp_path / "state.begun"
    begun.write_bytes(begun.read_bytes()[:-30])

    assert loaded(tmp_path / "state") == {"1": {"p"}}
