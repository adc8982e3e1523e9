"""Questions about a whole cluster: who holds what, what waits and why, what fits, what happens if.

Answers are values, computed from an `ObservedCluster` by the scheduler's own plugins and the allocator. Nothing is
written to the cluster, so read-only rights suffice. Commands and views print them.

    observed_cluster   what every question is asked about: objects, feature gates, scheduler configuration
    devices            every device, and its state
    pending            pending pods, grouped by cause
    fit                how many more pods fit
    what_if            what changes would do to all pods
    simulation         pods that arrive and end, in virtual time
    plan               findings about manifests, before they are applied
"""
