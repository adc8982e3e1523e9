"""A web page that shows the devices of a cluster and answers questions about it. It changes nothing in the cluster.

    cluster_source: informers or files ──► floor_plan ──► viewers: server-sent events ──► static/: the page
                          └──► answers: pending pods, claims, what-if, CEL, in child processes

`access` decides which requests are answered, `server` answers them, in the terms of `http_messages`, and `history` keeps what has changed.
"""
