"""How failures are logged: trouble with the server in one line, our own mistakes with their traceback."""

from __future__ import annotations

import logging

import pytest

from allot.client.errors import ApiStatusError, ContentionError, TransportError, log_failure

log = logging.getLogger(__name__)


def caused_by(cause: Exception) -> Exception:
    error = RuntimeError("outer")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "is_expected"),
    [
        pytest.param(TransportError("no answer", was_sent=False), True, id="transport"),
        pytest.param(ApiStatusError(503, "", "storage is away"), True, id="unavailable"),
        pytest.param(ContentionError("claim a/b changes"), True, id="contention"),
        pytest.param(caused_by(ApiStatusError(503)), True, id="cause"),
        pytest.param(ExceptionGroup("tasks", [ApiStatusError(503)]), True, id="group"),
        pytest.param(
            ExceptionGroup("tasks", [ApiStatusError(503), KeyError("a")]), False, id="mixed-group"
        ),
        pytest.param(KeyError("a"), False, id="mistake"),
    ],
)
def test_only_mistakes_have_tracebacks(
    error: Exception, is_expected: bool, caplog: pytest.LogCaptureFixture
) -> None:
    log_failure(log, error, "%s broke", "part")
    (record,) = caplog.records
    assert record.getMessage().startswith("part broke")
    assert (record.exc_info is None) == is_expected
    assert "\n" not in record.getMessage()
    if is_expected:
        assert record.levelno == logging.WARNING
