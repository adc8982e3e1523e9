"""Versions of etcd that are not safe to use."""

from __future__ import annotations

import logging
import re
from typing import Final

from allot.storage.etcd_client import EtcdClient

OLDEST_ETCD: Final = (3, 5, 5)
"""Older versions can lose acknowledged writes (etcd issues 13766 and 14370)."""

logger = logging.getLogger(__name__)


async def warn_of_old_members(client: EtcdClient) -> None:
    """Warn of members whose version may lose writes."""
    for url, version in (await client.versions()).items():
        numbers = [int(number) for number in re.findall(r"\d+", version)[:3]]
        if tuple(numbers) < OLDEST_ETCD:
            oldest = ".".join(map(str, OLDEST_ETCD))
            logger.warning(
                "%s runs etcd %s, which can lose acknowledged writes; upgrade to %s or newer",
                url,
                version,
                oldest,
            )
