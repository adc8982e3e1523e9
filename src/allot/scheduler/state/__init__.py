"""The scheduler's view of the cluster: pods and nodes parsed once per version, sums kept up to date.

`ClusterState` is a live view. All of the scheduler runs in one event loop, and a scheduling cycle
awaits nothing between `pre_filter` and `reserve`, so the view does not change for exactly as long as a
decision needs; there is no snapshot to copy. What-if questions (preemption) clone a `NodeInfo`.
"""
