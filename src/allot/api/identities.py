"""Identities of kinds, objects and devices: hashable, ordered tuples."""

from __future__ import annotations

from typing import NamedTuple


class GroupVersion(NamedTuple):
    """An API group and version. Written `resource.k8s.io/v1`, or just `v1` for the core group."""

    group: str
    version: str

    @staticmethod
    def parse(text: str) -> GroupVersion:
        group, _, version = text.rpartition("/")
        return GroupVersion(group, version)

    def __str__(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class GroupVersionKind(NamedTuple):
    """A kind in one version. Written `resource.k8s.io/v1/ResourceClaim`."""

    group: str
    version: str
    kind: str

    @staticmethod
    def parse(text: str) -> GroupVersionKind:
        api_version, _, kind = text.rpartition("/")
        return GroupVersionKind(*GroupVersion.parse(api_version), kind)

    @property
    def group_version(self) -> GroupVersion:
        return GroupVersion(self.group, self.version)

    def __str__(self) -> str:
        return f"{self.group_version}/{self.kind}"


class ObjectKey(NamedTuple):
    """An object among those of its kind; `namespace` is empty for cluster-wide kinds."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class DeviceId(NamedTuple):
    """A device, unique in the cluster. Sorts by driver, pool, device."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class SharedDeviceId(NamedTuple):
    """A device, or one share of it; `share_id` is empty for the whole device."""

    driver: str
    pool: str
    device: str
    share_id: str = ""

    @property
    def device_id(self) -> DeviceId:
        """The device, whichever share of it this is."""
        return DeviceId(self.driver, self.pool, self.device)


class NamesDevice:
    """A part of an object that names a device, or one share of it."""

    __slots__ = ()

    driver: str
    pool: str
    device: str
    share_id: str | None

    @property
    def device_id(self) -> DeviceId:
        return DeviceId(self.driver, self.pool, self.device)

    @property
    def shared_device_id(self) -> SharedDeviceId:
        return SharedDeviceId(self.driver, self.pool, self.device, self.share_id or "")
