"""What holds for all tests."""

from __future__ import annotations

from typing import Final

import pytest

SLOW_SECONDS: Final = 3600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests may take long. All others end within the `timeout` of pyproject.toml, or fail by name."""
    for item in items:
        if item.get_closest_marker("slow") is not None:
            item.add_marker(pytest.mark.timeout(SLOW_SECONDS))
