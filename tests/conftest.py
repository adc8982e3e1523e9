"""What holds for all tests."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import HealthCheck, settings

SLOW_SECONDS: Final = 3600

# No test depends on the speed of the machine: what takes too long is for the `timeout` of pyproject.toml to say.
settings.register_profile(
    "unhurried",
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)
settings.load_profile("unhurried")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests may take long. All others end within the `timeout` of pyproject.toml, or fail by name."""
    for item in items:
        if item.get_closest_marker("slow") is not None:
            item.add_marker(pytest.mark.timeout(SLOW_SECONDS))
