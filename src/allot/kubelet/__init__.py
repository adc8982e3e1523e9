"""Simulated nodes: Node objects that are alive, and pods on them that start, run, end and go.

    nodes ──► node_loop: status, heartbeats, leases        (node_status decides)
    pods  ──► pod_loop:  status, restarts, deletion        (pod_lifecycle decides, with containers, conditions)
    claims ─► pod_loop:  a pod waits until its claims are its own (pod_claims)

Nothing runs, and nothing is remembered that the API does not say: whoever is started again goes on from there,
and two at once write the same.
"""
