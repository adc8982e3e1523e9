"""Simulated kubelets: Node objects with heartbeats, and pods on them that start, run, finish and are deleted.

    nodes ──► node_loop: status, heartbeats, leases        (node_status decides)
    pods  ──► pod_loop:  status, restarts, deletion        (pod_lifecycle decides, with containers, conditions)
    claims ─► pod_loop:  a pod waits until its claims are its own (pod_claims) and prepared (dra/)

No container runs, and all state is in the API: a restarted simulation continues from there, and two instances
write the same. With drivers that register (`dra/`) a node also has a checkpoint on disk, and one instance.
"""
