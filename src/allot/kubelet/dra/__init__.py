"""Dynamic resources on a node: claims are prepared by drivers before a pod starts, and unprepared after it ends.

    node_drivers: all nodes ──► node: one kubelet's drivers and claims
                                  │
      plugin_watcher ► plugin_registration ► plugin_store: drivers by name ─► slice_wipes
                                  │                            ▲
      pod loop ──► manager ──► claim_info, checkpoint          ├─ plugin: a driver behind a socket
                      └──────────── calls ─────────────────────┴─ simulated_driver: answers by itself
      container_devices, cdi: what containers get     health: the health of devices     pod_resources: who has what

A driver that is a program of its own is reached by gRPC over unix sockets, as Kubernetes' kubelet does; `plugin`,
`plugin_registration`, `health_stream` and `pod_resources` need the extra `drivers`, and are imported only when a plugin directory is
configured. Drivers without a socket are simulated, or missing: `KubeletSettings.unregistered_drivers` decides.
"""
