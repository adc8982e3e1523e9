"""For tests of drivers, controllers and schedulers: a control plane in the test's own process, and builders.

    `RealTimeCluster`, `VirtualTimeCluster`, `ClusterSettings`   a cluster as a context manager
    the pytest fixture `allot_cluster`                           the same, in `plugin`
    `builders`, `manifests`                                      API objects in one line, typed and as JSON

The names in `__all__` are public; other modules here serve allot's own tests.
"""

from typing import TYPE_CHECKING

from allot._lazy import lazy_names

if TYPE_CHECKING:
    from allot.testing.cluster import ClusterSettings, RealTimeCluster, VirtualTimeCluster

__all__ = ["ClusterSettings", "RealTimeCluster", "VirtualTimeCluster"]

if not TYPE_CHECKING:
    # A cluster loads every component.
    __getattr__ = lazy_names(__name__, dict.fromkeys(__all__, "allot.testing.cluster"))
