"""Conformance of DRA drivers: runs any driver, in any language, through what the kubelet and the API demand of it.

    running     a run: an API server, or one that runs already; the driver; the checks
    under_test  the driver: a program that is started and killed, or a socket
    harness     what checks use: registrations, published_slices, claims with allocations, the kubelet's calls
    registry    the list of all checks
    checks/     one function for each rule, with the place that demands it
    suite       runs them; results: outcomes, JUnit XML

No container and no scheduler runs: checks write allocations themselves, and call the driver as a kubelet does.
"""
